"""kill -9 at any moment from the first millisecond on: there is a recording from before the command
starts, it opens, and it has what docs/recording-format.md promises ("Durability").

NRG_TEST_KILLS says how many kills (40); `make kills` does 300, and prints what was lost.
"""
import json
import os
import random
import unittest

from retries import steadily
from support import *

KILLS = int(os.environ.get("NRG_TEST_KILLS", "40"))
YOUNG_S, YOUNG_LOSS_S, LOSS_S = 1.0, 0.2, 1.2  # the promises; the last with what writing takes
POWER_W = 50
NOTHING_YET = r"\.nrg: holds no (run|readings of the run): its recorder was cut off before .*; record again$"


def moments(n, seed):
    """Seconds after the start: half of them while the recording is made, the rest up to 2 s."""
    rng = random.Random(seed)
    ranges = [(0, 0.012), (0, 0.04), (0.04, 0.3), (0.3, 2)]
    return [rng.uniform(*ranges[i % len(ranges)]) for i in range(n)]


class Kills(Case):
    def kill_after(self, name, after_s):
        """Starts a recorder, kills it, and gives what there is then."""
        out, mark = self.path(name + ".nrg"), self.path(name + ".mark")
        child = f"echo $$ > {mark}; exec sleep 30"
        p = self.start("run", "-q", "--rate", "100Hz", "--sensor", "simulate:" + self.machine, "-o", out, "--",
                       "sh", "-c", child)
        time.sleep(after_s)
        killed_ns = time.monotonic_ns()
        p.kill()
        p.wait()
        self.assertEqual(p.returncode, -signal.SIGKILL)
        state = {"after_s": after_s, "killed_ns": killed_ns, "there": os.path.exists(out)}
        if not state["there"]:
            time.sleep(0.05)  # a command that was started has written its mark by now
        state["started"] = os.path.exists(mark)
        if state["there"]:
            state.update(self.look(out, killed_ns))
        self.end_child(mark)
        for side in ("", "-wal", "-shm"):
            if os.path.exists(out + side):
                os.unlink(out + side)
        return state

    def end_child(self, mark):
        if os.path.exists(mark):
            with open(mark) as f:
                pid = f.read().strip()
            if pid:
                os.kill(int(pid), signal.SIGKILL)

    def look(self, out, killed_ns):
        done = self.nrg("report", "--json", out)
        if done.returncode:  # killed before there was more than the first reading
            self.assertRegex(self.one_line(done.stderr), NOTHING_YET)
            results = {}
        else:
            results = json.loads(done.stdout)
        begin_ns = int(query(out, "SELECT value FROM meta WHERE key='begin_ns'")[0][0])
        last_ns = query(out, "SELECT max(last_ns) FROM chunk c JOIN series s ON s.id = c.series "
                             "WHERE s.kind = 'samples'")[0][0]
        energies = [d for d in results.get("domains", ()) if d["name"] == "package-0" and d.get("energy_j")]
        return {"age_s": (killed_ns - begin_ns) / 1e9, "lost_s": (killed_ns - (last_ns or begin_ns)) / 1e9,
                "energies": energies, "true_j": POWER_W * results.get("duration_s", 0)}

    def check(self, state):
        if not state["there"]:
            return
        self.assertLess(state["lost_s"], YOUNG_LOSS_S if state["age_s"] < YOUNG_S else LOSS_S, state)
        for d in state["energies"]:
            self.assertTrue(d["low_j"] <= state["true_j"] * 1.001 and d["high_j"] >= state["true_j"] * 0.999, state)

    def test_before_the_first_period_is_over(self):
        """A run is read once more soon after its begin, and committed, however slow the rate is."""
        self.machine, out = self.scenario(f"domain package-0\n power {POWER_W}\n"), self.path("young.nrg")
        p = self.start("run", "-q", "--rate", "0.1Hz", "--sensor", "simulate:" + self.machine, "-o", out, "--",
                       "sh", "-c", f"echo $$ > {out}.mark; exec sleep 20")
        eventually(lambda: begun(out) and self.nrg("report", out).returncode == 0, "a run with readings")
        p.kill()
        p.wait()
        self.end_child(out + ".mark")
        done = self.nrg("report", "--json", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)
        self.assertLess(results["duration_s"], 9)  # the rate's first reading would be at 10 s
        self.assertAlmostEqual(domains(results)["package-0"]["energy_j"], POWER_W * results["duration_s"],
                               delta=0.06)

    def test_from_the_first_millisecond_on(self):
        self.machine = self.scenario(f"domain package-0\n power {POWER_W}\n")
        states = []
        for i, after_s in enumerate(moments(KILLS, 13)):
            def once(n):
                state = self.kill_after(f"{i}-{n}", after_s)
                self.assertTrue(state["there"] or not state["started"], state)
                return state
            states.append(steadily(self.check, once, 3))
        there = [s for s in states if s["there"]]
        young = [s["lost_s"] for s in there if s["age_s"] < YOUNG_S]
        old = [s["lost_s"] for s in there if s["age_s"] >= YOUNG_S]
        print(f"# {len(states)} kills, {len(there)} recordings, the rest before the command was started; lost at "
              f"most {max(young, default=0):.3f} s in the first second, {max(old, default=0):.3f} s later")
        self.assertTrue(young and old and len(there) < len(states))
        self.assertEqual([n for n in os.listdir(self.dir) if n.endswith(".new")], [])


if __name__ == "__main__":
    unittest.main()
