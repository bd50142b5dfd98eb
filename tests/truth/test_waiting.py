"""What GPUs waited for, against a job whose waiting is known in closed form: times to rounding, joules within their intervals."""
import os
import tempfile
import unittest
from unittest import mock

from support import NRG, np  # first: it skips where there is no numpy

from judge import nrg_json
from waiting import IDLE_W, KERNELS, POWER_W, InOrder, Job

SENSORS = [("gauge", 0.1, 50, 40.0), ("counter", 0.1, 20, 40.0), ("counter", 0.02, 100, 20.0), ("gauge", 0.1, 20, 15.0)]


class Waiting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def waiting(self, job, *how):
        path = os.path.join(self.folder, "job.nrg")
        job.write(path, *how)
        return nrg_json(NRG, "attribute", path)["waiting"]

    def test_joules_are_within_their_intervals(self):
        covered = parts = shares = 0
        off = []
        for how, update_s, rate, seconds in SENSORS:
            for seed in range(3):
                job = Job(seed, seconds=seconds)
                said = self.waiting(job, rate, how, update_s)
                true = job.truth(job.ranks[0])
                got = {p["kind"]: p for p in said["parts"]}
                got["work"] = said["devices"][0]["work"]
                self.assertEqual(set(got), set(true))
                for kind, (seconds_there, joules) in true.items():
                    self.assertAlmostEqual(got[kind]["seconds"], seconds_there, delta=1e-6)
                    covered += got[kind]["low_j"] <= joules <= got[kind]["high_j"]
                    parts += 1
                all_j = sum(j for _, j in true.values())
                share = 1 - true["work"][1] / all_j
                shares += said["low"] <= share <= said["high"]
                off.append(said["share"] / share - 1)
                self.assertAlmostEqual(said["of_j"], all_j, delta=0.01 * all_j)
                self.assertAlmostEqual(sum(p["energy_j"] for p in said["parts"]), said["energy_j"], delta=1e-6 * all_j)
        print(f"# {covered} of {parts} parts and {shares} of {len(off)} shares within their intervals, "
              f"shares off by {100 * np.sqrt(np.mean(np.square(off))):.2f} % rms")
        self.assertGreaterEqual(covered, 0.9 * parts)
        self.assertGreaterEqual(shares, 0.9 * len(off))
        self.assertLess(np.sqrt(np.mean(np.square(off))), 0.08)

    def test_gaps_beside_kernels_of_other_power(self):
        """All work had one power, so gaps had what the kernels around them differ by from others: a third off, below idle power."""
        kernels = {f"kernel of layer {n}": more_w for n, more_w in enumerate((-230.0, -200.0, -20.0, 90.0, 60.0, 80.0, -100.0))}
        with mock.patch.dict(KERNELS, kernels, clear=True), mock.patch.dict(POWER_W, {"gap": IDLE_W}):
            for seed, (how, update_s, rate, _) in enumerate(SENSORS):
                job = Job(seed, seconds=20.0, kind=InOrder)
                said = self.waiting(job, rate, how, update_s)
                gap, true_j = said["parts"][0], job.truth(job.ranks[0])["gap"][1]
                self.assertTrue(gap["low_j"] <= true_j <= gap["high_j"], (how, rate, gap, true_j))
                self.assertLess(abs(gap["energy_j"] / true_j - 1), 0.1)
                self.assertGreaterEqual(said["devices"][0]["static_w"]["value"], said["devices"][0]["idle_w"]["low"])

    def test_powers_apart(self):
        job = Job(5, seconds=40.0)
        device = self.waiting(job, 50, "gauge", 0.1)["devices"][0]
        true = job.truth(job.ranks[0])
        for key, kinds in (("static_w", ("gap", "data loader", "synchronisation")),
                           ("active_w", ("work", "collective", "copy to device", "copy to host"))):
            watts = sum(true[k][1] for k in kinds) / sum(true[k][0] for k in kinds)
            self.assertTrue(device[key]["low"] <= watts <= device[key]["high"], (key, watts, device[key]))
        self.assertTrue(device["idle_w"]["low"] <= IDLE_W <= device["idle_w"]["high"], device["idle_w"])
        self.assertLess(device["idle_w"]["high"], device["static_w"]["low"])
        self.assertLess(device["static_w"]["high"], device["active_w"]["low"])

    def test_each_rank_waits_for_its_own(self):
        job = Job(7, ranks=3, seconds=15.0)
        said = self.waiting(job, 50, "gauge", 0.1)
        self.assertEqual([(d["device"], d["rank"]) for d in said["devices"]], [(f"gpu-{n}", f"rank {n} of 3") for n in range(3)])
        for rank in job.ranks:
            true = job.truth(rank)
            for part in said["parts"]:
                if part["device"] == f"gpu-{rank.number}":
                    self.assertAlmostEqual(part["seconds"], true[part["kind"]][0], delta=1e-6)
        self.assertEqual({p["kind"] for p in said["parts"]}, set(POWER_W) - {"work"})


if __name__ == "__main__":
    unittest.main()
