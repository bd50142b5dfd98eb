"""nrg calibrate on a machine whose power is known: a scenario of constant watts, so that energy is watts times time.

Nothing here asserts how fast anything is; the readings are short to keep the test so.
"""
import csv
import json
import os
import signal
import unittest

from support import Case, eventually

WATTS = 40
SHORT = ["--quick", "--window", "20ms", "--limit", "60ms", "--idle-time", "100ms", "--threads", "2", "--error", "90"]
MODEL = """graph(%x : Float(64, 256), %w : Float(128, 256), %c : Float(4, 64, 28, 28), %k : Float(64, 64, 3, 3), %n : int):
  %y : Float(64, 128) = aten::linear(%x, %w, %n)
  %z : Float(64, 128) = aten::relu(%y)
  %d : Float(4, 64, 28, 28) = aten::conv2d(%c, %k, %n, %n, %n, %n, %n)
  return (%z)
"""


class Calibrate(Case):
    def calibrate(self, *args, code=0):
        done = self.nrg("calibrate", *SHORT, "--sensor", self.simulated(), *args)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def simulated(self):
        return "simulate:" + self.write("machine.txt", f"domain package-0\n  power 0s:{WATTS}\n")

    def refused(self, *args, code=2):
        done = self.nrg("calibrate", *args)
        self.assertEqual(done.returncode, code, done.stdout.decode())
        return self.one_line(done.stderr)


class Numbers(Calibrate):
    def test_energy_is_watts_times_time(self):
        got = json.loads(self.calibrate("--json", "-q").stdout)
        self.assertEqual(got["schema"], "nrg.calibration/1")
        self.assertEqual(got["domains"], "package-0")
        self.assertAlmostEqual(got["idle"]["power_w"], WATTS, delta=0.05 * WATTS)
        self.assertEqual({p["family"] for p in got["points"]}, {"gemm", "conv", "stream"})
        self.assertEqual(len(got["points"]), got["points_planned"])
        for point in got["points"]:
            self.assertGreaterEqual(point["repeats"], 3)
            self.assertAlmostEqual(point["energy_j"], WATTS * point["time_s"], delta=0.05 * point["energy_j"],
                                   msg=point["name"])
            self.assertAlmostEqual(point["gb_per_s"], (point["read_bytes"] + point["written_bytes"]) / point["time_s"] / 1e9)
            if point["macs"]:
                self.assertAlmostEqual(point["gflop_per_s"], 2 * point["macs"] / point["time_s"] / 1e9)
        gemm = next(p for p in got["points"] if p["name"] == "256 x 256 x 256")
        self.assertEqual((gemm["macs"], gemm["read_bytes"], gemm["written_bytes"]), (256 ** 3, 8 * 256 ** 2, 4 * 256 ** 2))
        conv = next(p for p in got["points"] if p["name"] == "1x64x56x56 to 64, 3x3/1")
        self.assertEqual(conv["macs"], 56 * 56 * 64 * 64 * 9)

    def test_text(self):
        done = self.calibrate("--only", "gemm,stream")
        for word in (b"pJ/MAC", b"GFLOP/s", b"idle", b"package-0", b"2 threads"):
            self.assertIn(word, done.stdout)
        self.assertNotIn(b"\nconv", done.stdout)
        self.assertIn(b"nrg: 1 of", done.stderr)

    def test_caches_of_the_root(self):
        for index, kind, level, size, shared in (("index0", "Data", 1, "48K", "0"), ("index2", "Unified", 2, "2048K", "0-1")):
            for name, value in (("type", kind), ("level", level), ("size", size), ("shared_cpu_list", shared)):
                self.write(f"root/sys/devices/system/cpu/cpu0/cache/{index}/{name}", f"{value}\n")
        got = json.loads(self.calibrate("--json", "-q", "--only", "stream", "--root", self.path("root")).stdout)
        self.assertEqual(got["caches"], [{"level": 1, "size_bytes": 48 << 10, "shared_by": 1},
                                         {"level": 2, "size_bytes": 2 << 20, "shared_by": 2}])
        levels = {p["level"]: p["working_set_bytes"] for p in got["points"]}
        self.assertEqual(set(levels), {"L1", "L2", "memory"})
        self.assertLess(levels["L1"], 2 * (48 << 10))
        self.assertGreater(levels["memory"], 4 << 20)

    def test_no_caches_told(self):
        os.makedirs(self.path("root/sys"))
        done = self.calibrate("--only", "stream", "--root", self.path("root"))
        self.assertIn(b"usual ones were taken", done.stdout)


class Data(Calibrate):
    def test_to_a_prediction(self):
        data, profile = self.path("d.csv"), self.path("p.json")
        self.calibrate("-q", "-o", data, "--idle", "share", "--device", "box")
        with open(data, encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual({r["kind"] for r in rows}, {"aten::mm", "aten::conv2d", "aten::sum", "aten::copy_"})
        for row in rows:
            self.assertEqual((row["device"], row["level"], row["counts"]), ("box", "operator", "nrg"))
            self.assertAlmostEqual(float(row["energy_j"]), WATTS * float(row["time_s"]), delta=0.05 * float(row["energy_j"]))
        done = self.nrg("train", data, "-o", profile)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn(b"one model", done.stderr)
        done = self.nrg("predict", self.write("m.txt", MODEL), "--profile", profile, "--json")
        got = json.loads(done.stdout)
        reasons = " ".join(got["reasons"])
        self.assertIn("operators alone were measured on box", reasons)
        self.assertIn("aten::relu: none was measured on box, taken as others of the same traffic", reasons)
        self.assertTrue(got["out_of_range"])
        self.assertGreater(got["high_j"], 2 * got["energy_j"])
        self.assertLess(got["low_j"], got["energy_j"] / 2)
        self.assertGreater(got["low_j"], 0)
        self.assertEqual({o["group"] for o in got["operators"]}, {"gemm", "conv", "other memory"})

    def test_json_form(self):
        path = self.path("d.json")
        self.calibrate("-q", "-o", path, "--idle", "share", "--only", "gemm")
        self.assertEqual(self.nrg("dataset", path).returncode, 0)

    def test_nothing_above_idle(self):
        # Constant watts: by `apart` most points have no energy of their own, and none is made up.
        done = self.nrg("calibrate", *SHORT, "--only", "gemm", "--sensor", self.simulated(), "-o", self.path("d.csv"), "--json")
        got = json.loads(done.stdout)
        with_price = [p for p in got["points"] if "energy_above_idle_j" in p]
        for point in with_price:
            self.assertLess(point["energy_above_idle_j"], 0.1 * point["energy_j"])
        if with_price:
            with open(self.path("d.csv"), encoding="utf-8") as f:
                self.assertEqual(len(list(csv.DictReader(f))), len(with_price))
            if len(with_price) < len(got["points"]):
                self.assertIn(f"left out ({len(got['points']) - len(with_price)} of {len(got['points'])})", done.stderr.decode())
        else:
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"no point used more than the idle machine", done.stderr)

    def test_estimate_says_so(self):
        os.makedirs(self.path("root/sys"))
        done = self.nrg("calibrate", *SHORT, "--only", "gemm", "--root", self.path("root"), "--cpu-watts", "10:50",
                        "-o", self.path("d.csv"), "--idle", "share", "--json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(json.loads(done.stdout)["provenance"], "estimated")
        with open(self.path("d.csv"), encoding="utf-8") as f:
            self.assertEqual({r["provenance"] for r in csv.DictReader(f)}, {"estimated"})


class Interrupted(Calibrate):
    def said(self):
        with open(self.path("err"), encoding="utf-8") as f:
            return f.read()

    def test_keeps_what_is_there(self):
        with open(self.path("err"), "wb") as err:
            process = self.start("calibrate", *SHORT, "--limit", "300ms", "--sensor", self.simulated(), "--idle", "share",
                                 "-o", self.path("d.csv"), "--json=" + self.path("c.json"), stderr=err)
        eventually(lambda: "nrg: 4 of" in self.said(), "the fourth point")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"interrupted: ", out)
        with open(self.path("c.json"), encoding="utf-8") as f:
            got = json.load(f)
        self.assertTrue(got["interrupted"])
        self.assertTrue(3 <= len(got["points"]) < got["points_planned"])
        with open(self.path("d.csv"), encoding="utf-8") as f:
            self.assertEqual(len(list(csv.DictReader(f))), len(got["points"]))

    def test_no_reading_is_left_behind(self):
        # /dev/shm is preferred; where it can't be written, TMPDIR is ours alone.
        before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        done = self.nrg("calibrate", *SHORT, "--only", "gemm", "-q", "--sensor", self.simulated(),
                        env=self.env(TMPDIR=self.dir))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("nrg-calibrate-")], [])
        if before:
            left = {n for n in set(os.listdir("/dev/shm")) - before if n.startswith("nrg-calibrate-")}
            eventually(lambda: not [n for n in left if os.path.exists("/dev/shm/" + n)], "readings are removed")


class BadOptions(Calibrate):
    def test_said_in_one_line(self):
        for args, text in ((("x",), "takes no operands"), (("--threads", "1000"), "--threads wants"),
                           (("--only", "gemm,fft"), "--only wants"), (("--only", ""), "--only wants"),
                           (("--error", "200"), "--error wants"), (("--idle", "none"), "--idle wants"),
                           (("--cpu-watts", "5"), "--cpu-watts wants")):
            self.assertIn(text, self.refused(*args))
        self.assertIn("no driver", self.refused("--quick", "-q", "--sensor", "nothing", code=1))
        for option in ("-o/nowhere/d.csv", "--json=/nowhere/c.json"):
            done = self.calibrate("--only", "gemm", option, code=1)  # before anything is measured
            self.assertIn("cannot write", self.one_line(done.stderr))
            self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()
