"""nrg export, import and replay, from the command line.

Run with NRG_BIN=build/nrg and, for the round trip, NRG_TOOLS=build/tests.
Tests on published recordings need NRG_SHARED (default: ../shared beside the repository).
"""
import csv
import io
import json
import math
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from retries import steadily

REPO = pathlib.Path(__file__).resolve().parents[2]
NRG = os.environ.get("NRG_BIN", str(REPO / "build/nrg"))
EMULATOR = os.path.join(os.environ.get("NRG_TOOLS", REPO / "build/tests"), "rapl-emulator")
SHARED = pathlib.Path(os.environ.get("NRG_SHARED", REPO.parent / "shared"))
JETSON = SHARED / "data/jetson"
AIPM = JETSON / "aipowermeter/examples"

RECORD = ('{"date": "2022-03-04 10:00:%s", "metrics": {"cpu": {"intel_power": %s,'
          ' "psys_power": -1, "uncore_power": [0.5]}}}\n')
END = '"END OF RECORDING SEGMENT"\n'


def nrg(*args, check=True, env=None):
    done = subprocess.run([NRG, *map(str, args)], capture_output=True, text=True,
                          env={**os.environ, "TZ": "UTC", **(env or {})})
    if check and done.returncode:
        raise AssertionError(f"nrg {args}: {done.returncode}\n{done.stderr}")
    return done


class Folder(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.tmp.name)

    def tearDown(self):
        self.tmp.cleanup()

    def write(self, name, text):
        path = self.dir / name
        path.write_text(text)
        return path

    def imported(self, source, *options):
        out = self.dir / "imported.nrg"
        nrg("import", "-q", "-f", *options, "-o", out, source)
        return out

    def energies(self, recording):
        report = json.loads(nrg("report", "--json", recording).stdout)
        return {d["name"]: d["energy_j"] for d in report["domains"]}

    def run_s(self, recording):
        """How long the run took by the recording's own edges."""
        return json.loads(nrg("report", "--json", recording).stdout)["duration_s"]

    def simulate(self, scenario, *options, command=("sleep", "1.2")):
        scenario = self.write("scenario.txt", scenario)
        out = self.dir / "run.nrg"
        nrg("run", "-q", "-f", "-o", out, "--sensor", f"simulate:{scenario}", *options, "--",
            *command)
        return out


@unittest.skipUnless(AIPM.is_dir(), "no published recordings here")
class Published(Folder):
    """Integrals of AIPowerMeter's own files, computed independently."""

    def check(self, folder, expected, *options):
        got = self.energies(self.imported(AIPM / folder / "power_metrics.json", *options))
        for name, energy_j in expected.items():
            self.assertAlmostEqual(got[name] / energy_j, 1, delta=0.001, msg=name)
        return got

    def test_two_gpus(self):
        got = self.check("example_data", {"package-0": 1141.26, "dram-0": 200.17})
        self.assertAlmostEqual((got["gpu-0"] + got["gpu-1"]) / 1523.43, 1, delta=0.001)
        self.assertNotIn("psys", got)

    def test_segments_are_gaps(self):
        self.check("example_data/train", {
            "package-0": 1367.97 + 1289.63, "core-0": 1266.55 + 1180.84,
            "dram-0": 36.88 + 40.97, "psys": 2014.58 + 2002.92})
        self.check("example_data/test", {"package-0": 163.56 + 154.02})

    def test_segments_as_runs(self):
        self.check("example_data/train", {"package-0": 1367.97, "psys": 2014.58}, "--per-segment")
        recording = self.dir / "imported.nrg"
        report = json.loads(nrg("report", "--json", recording).stdout)
        self.assertEqual([round(r["duration_s"], 3) for r in report["runs"]], [33.871, 36.015])

    def test_one_process(self):
        self.check("measure_power", {"package-0": 562.13, "core-0": 493.49, "psys": 884.96})
        report = json.loads(nrg("report", "--json", "--split", "busy-time",
                                self.dir / "imported.nrg").stdout)
        self.assertEqual(report["processes"][0]["pid"], 16809)

    def test_own_memory_energy(self):
        recording = self.imported(AIPM / "example_data")  # the folder
        report = json.loads(nrg("report", "--json", "--split", "busy-time", recording).stdout)
        own = sum(p["energy_j"]["dram"] for p in report["processes"])
        self.assertAlmostEqual(own / 70.95, 1, delta=0.005)

    def test_jetson_log(self):
        base = JETSON / "jetson/power_logging/raw_data_pruned/prebuilt_models"
        log = next((base / "lenet").glob("lenet_power_log*.log"))
        recording = self.imported(log, "--idle-power", base / "idling_power.json")
        rows = [line.split(",") for line in log.read_text().split()]
        stamps = [float(r[0].split(":")[-1]) for r in rows]
        power = [float(r[1]) * float(r[2]) * 1e-6 for r in rows]
        expected = sum((b - a) * (p + q) / 2 for a, b, p, q in
                       zip(stamps, stamps[1:], power, power[1:]))
        self.assertAlmostEqual(self.energies(recording)["VDD_IN"] / expected, 1, delta=1e-6)
        document = json.loads(nrg("export", "--format", "json", recording).stdout)
        self.assertAlmostEqual(float(document["metadata"]["idle_w"]), 4.182323798965708)
        voltage = [c for c in document["channels"] if c["quantity"] == "voltage"][0]
        self.assertEqual(len(voltage["samples"]["value"]), 410)


class Import(Folder):
    def test_trapezoid_and_held(self):
        path = self.write("p.json", "".join(RECORD % (s, w) for s, w in
                                            [("00", 10), ("01", 20), ("02", 40)]))
        self.assertAlmostEqual(self.energies(self.imported(path))["package-0"], 15 + 30)
        held = self.energies(self.imported(path, "--integrate", "held"))
        self.assertAlmostEqual(held["package-0"], 10 + 20 + 40)
        self.assertAlmostEqual(held["uncore-0"], 1.5)
        self.assertNotIn("psys", held)

    def test_short_pause_between_segments(self):
        lines = [RECORD % (f"{t:04.1f}", 10) for t in (0, 1, 2, 3)] + [END]
        lines += [RECORD % (f"{t:04.1f}", 10) for t in (5, 6, 7)] + [END]
        self.assertAlmostEqual(self.energies(self.imported(self.write("p.json", "".join(lines))))
                               ["package-0"], 30 + 20)

    def test_bad_line_names_the_place(self):
        for bad, why in (("{nonsense\n", "column"), ('{"metrics": {}}\n', "date"),
                         ('{"date": "2022-03-04 10:00:05", "metrics": 3}\n', "metrics"),
                         ('"something"\n', "END OF"),
                         (RECORD % ("05", '"x"'), "intel_power"),
                         (RECORD % ("05", "NaN"), "column"),
                         (RECORD.replace("10:00", "09:00") % ("05", 1), "back in time")):
            path = self.write("p.json", RECORD % ("00", 1) + bad + RECORD % ("09", 1))
            out = self.dir / "bad.nrg"
            done = nrg("import", path, "-o", out, check=False)
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn(f"{path}:2: ", done.stderr)
            self.assertIn(why, done.stderr)
            self.assertFalse(out.exists())

    def test_cut_last_line_is_a_warning(self):
        path = self.write("p.json", RECORD % ("00", 1) + RECORD % ("01", 1) + '{"date": "20')
        out = self.dir / "cut.nrg"
        done = nrg("import", path, "-o", out)
        self.assertIn(":3: the last line is cut off", done.stderr)
        self.assertAlmostEqual(self.energies(out)["package-0"], 1)

    def test_not_ours(self):
        for text in ("", "\n\n", "hello\n", "time_s,a:power_w\n", '{"date": 1}\n', END):
            done = nrg("import", self.write("x", text), "-o", self.dir / "x.nrg", check=False)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn(str(self.dir / "x"), done.stderr)
            self.assertFalse((self.dir / "x.nrg").exists())
        self.assertEqual(nrg("import", check=False).returncode, 2)
        self.assertEqual(nrg("import", "--timezone-offset", "x", "f", check=False).returncode, 2)
        self.assertEqual(nrg("import", self.dir / "absent", check=False).returncode, 1)

    def test_time_zone(self):
        path = self.write("p.json", RECORD % ("00", 1) + RECORD % ("01", 1))
        for options, expected in (((), 1646388000), (("--timezone-offset", "+02:00"), 1646380800),
                                  (("--timezone-offset=-0330",), 1646400600)):
            rows = list(csv.DictReader(io.StringIO(
                nrg("export", self.imported(path, *options)).stdout)))
            self.assertEqual(float(rows[0]["unix_time_s"]), expected)

    def test_existing_output_is_kept(self):
        path = self.write("p.json", RECORD % ("00", 1) + RECORD % ("01", 1))
        out = self.write("there.nrg", "mine")
        self.assertEqual(nrg("import", "-o", out, path, check=False).returncode, 1)
        self.assertEqual(out.read_text(), "mine")

    def test_2026_keys(self):
        gpu = ('"gpu": {"nvidia_power": 300, "per_gpu_nvidia_power": {"0": 100, "1": 200},'
               ' "per_gpu_nvidia_memory": {"0": 5}, "per_gpu_nvidia_use_rate": {"0": 50}}')
        cpu = ('"cpu": {"absolute_cpu_time_per_pid": {"7": 1.5}, "per_process_cpu_uses": {"7": 0.75},'
               ' "intel_power": 40, "per_process_mem_use_abs": {"7": 1000},'
               ' "per_process_mem_use_percent": {"7": 0.1}}')
        path = self.write("p.json", "".join(
            '{"date": "2026-03-04 10:00:0%d", "metrics": {%s, %s}}\n' % (i, cpu, gpu)
            for i in range(5)))
        recording = self.imported(path)
        report = json.loads(nrg("report", "--json", "--split", "busy-time", recording).stdout)
        energies = {d["name"]: d["energy_j"] for d in report["domains"]}
        self.assertAlmostEqual(energies["gpu-1"], 800)
        self.assertAlmostEqual(report["processes"][0]["cpu_time_s"], 6)
        self.assertAlmostEqual(report["processes"][0]["energy_j"]["cpu"], 0.75 * 160, delta=0.02)  # half a ms of others
        wide = list(csv.DictReader(io.StringIO(nrg("export", "--wide", "1s", recording).stdout)))
        self.assertAlmostEqual(float(wide[1]["gpu-0.util:util"]), 0.5)
        self.assertAlmostEqual(float(wide[1]["memory.used:bytes"]), 10000)
        self.assertAlmostEqual(float(wide[1]["cpu.busy:per_s"]), 2)


class Export(Folder):
    SCENARIO = ("domain package-0\n power 20\n wrap 30J\n start 25J\n"
                "domain core-0\n power 8\ndomain dram-0\n kind gauge\n power 3\n")

    def test_long_csv(self):
        recording = self.simulate(self.SCENARIO)
        rows = list(csv.DictReader(io.StringIO(nrg("export", recording).stdout)))
        self.assertEqual(list(rows[0]), ["time_s", "unix_time_s", "channel", "quantity", "unit",
                                         "value", "provenance"])
        times = [float(r["time_s"]) for r in rows]
        self.assertEqual(times, sorted(times))
        package = [r for r in rows if r["channel"] == "package-0"]
        self.assertEqual(float(package[0]["value"]), 0)
        span = float(package[-1]["time_s"]) - float(package[0]["time_s"])
        self.assertAlmostEqual(float(package[-1]["value"]) / (20 * span), 1, delta=0.01)
        self.assertTrue(all(float(r["value"]) == 3 for r in rows if r["channel"] == "dram-0"))

    def test_wide_csv(self):
        recording = self.simulate(self.SCENARIO)
        text = nrg("export", "--wide", "250ms", recording).stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertGreaterEqual(len(rows), 5)
        for row in rows[:4]:
            self.assertAlmostEqual(float(row["package-0:power_w"]), 20, delta=0.5)
            self.assertAlmostEqual(float(row["dram-0:power_w"]), 3, delta=1e-6)

    def test_processes_csv(self):
        recording = self.simulate(self.SCENARIO, command=("sh", "-c", 'sleep 0.8; : "a,b"'))
        rows = list(csv.DictReader(io.StringIO(nrg("export", "--processes", recording).stdout)))
        self.assertTrue(any('"a,b"' in r["command"] for r in rows))
        self.assertTrue(all(None not in r and None not in r.values() for r in rows))
        self.assertTrue(any(r["pss_bytes"] for r in rows))

    def test_json(self):
        recording = self.simulate(self.SCENARIO)
        document = json.loads(nrg("export", "--format", "json", recording).stdout)
        self.assertEqual(document["schema"], "nrg.recording/1")
        package = document["channels"][0]
        samples = package["samples"]
        self.assertEqual(len(samples["time_s"]), len(samples["value"]))
        self.assertEqual(package["unknown_steps"], 0)
        self.assertAlmostEqual(package["wrap_range"], 30)
        self.assertGreater(samples["value"][-1], 20)
        self.assertEqual(document["runs"][0]["exit_code"], 0)
        table = document["process_samples"][0]
        self.assertEqual(len({len(column) for column in table.values()}), 1)

    def test_estimate_is_not_rapl(self):
        out = self.dir / "run.nrg"
        nrg("run", "-q", "-o", out, "--sensor", "machine", "--sensor", "estimate", "--cpu-watts",
            "40:100", "--", "sleep", "1.2")
        nrg("export", "--format", "aipowermeter", "-o", self.dir / "ap", out)
        first = json.loads((self.dir / "ap/power_metrics.json").read_text().split("\n")[0])
        cpu = first["metrics"]["cpu"]
        for key in ("intel_power", "psys_power", "total_cpu_power", "total_dram_power",
                    "rel_intel_power", "per_process_cpu_power"):
            self.assertNotIn(key, cpu)
        self.assertIn("per_process_cpu_uses", cpu)
        machine = first["metrics"]["nrg"]["domains"]["machine"]
        self.assertEqual(machine["provenance"], "estimated")
        self.assertGreater(machine["power_w"], 39)
        report = json.loads(nrg("report", "--json", self.imported(self.dir / "ap")).stdout)
        self.assertEqual(report["total"]["provenance"], "estimated")
        self.assertIn("machine:estimated_power_w",
                      nrg("export", "--wide", "1s", out).stdout.split("\n")[0])

    def test_aipowermeter_folder(self):
        recording = self.simulate(self.SCENARIO, "--sensor", "machine")
        folder = self.dir / "ap"
        nrg("export", "--format", "aipowermeter", "--period", "500ms", "-o", folder, recording)
        lines = [json.loads(line) for line in
                 (folder / "power_metrics.json").read_text().splitlines()]
        self.assertEqual(lines[-1], "END OF RECORDING SEGMENT")
        self.assertEqual(len(lines), math.ceil(self.run_s(recording) / 0.5) + 1)
        cpu = lines[0]["metrics"]["cpu"]
        self.assertAlmostEqual(cpu["intel_power"], 20, delta=0.5)
        self.assertAlmostEqual(cpu["total_cpu_power"], 8, delta=0.5)
        self.assertNotIn("psys_power", cpu)
        self.assertNotIn("gpu", lines[0]["metrics"])
        self.assertEqual(cpu["cpu_uses"], cpu["per_process_cpu_uses"])
        self.assertEqual(cpu["mem_use_abs"], cpu["per_process_mem_use_abs"])
        for pid, share in cpu["per_process_cpu_uses"].items():
            self.assertAlmostEqual(cpu["rel_intel_power"][pid], share * cpu["intel_power"])
        self.assertIn("sleep", json.loads((folder / "metadata.json").read_text())["description"])
        again = nrg("export", "--format", "aipowermeter", "-o", folder, recording, check=False)
        self.assertEqual(again.returncode, 1)

    def test_usage(self):
        recording = self.simulate(self.SCENARIO, command=("true",))
        for options in (("--format", "xml"), ("--format", "json", "--wide", "1s"),
                        ("--wide", "1s", "--processes"), ("--wide", "1ns"), ("--period", "1s")):
            self.assertEqual(nrg("export", *options, recording, check=False).returncode, 2, options)
        broken = self.write("broken.nrg", "not a recording")
        self.assertEqual(nrg("export", broken, check=False).returncode, 1)
        full = subprocess.run(f"{NRG} export {recording} > /dev/full", shell=True,
                              capture_output=True)
        self.assertEqual(full.returncode, 1)


@unittest.skipUnless(os.path.exists(EMULATOR), "no emulator built")
class RoundTrip(Folder):
    def test_emulated_machine(self):
        scenario = self.write("scenario.txt",
                              "domain package-0\n power 0s:15 1s:60 2s:25\n wrap 80J\n"
                              "domain core-0\n power 9\ndomain dram-0\n power 4\n")
        root = self.dir / "root"
        root.mkdir()
        emulator = subprocess.Popen([EMULATOR, "--for", "300s", scenario, root],
                                    stdout=subprocess.DEVNULL)
        out = self.dir / "run.nrg"
        try:
            while not (root / "truth.json").exists():
                self.assertIsNone(emulator.poll())
                time.sleep(0.01)
            # A reader that a busy machine held up can't tell wraps apart.
            steadily(lambda covered: self.assertGreater(min(covered), 0.9999), lambda n: self.recorded(out, root), 6)
        finally:
            emulator.terminate()
            emulator.wait()
        nrg("export", "--format", "aipowermeter", "-o", self.dir / "ap", out)
        before, after = self.energies(out), self.energies(self.imported(self.dir / "ap"))
        self.assertEqual(set(before), {"package-0", "core-0", "dram-0"})
        for name, energy_j in before.items():
            # Means over periods of the run, the last one short: nothing is lost or made.
            self.assertAlmostEqual(after[name] / energy_j, 1, delta=0.01, msg=name)


    def recorded(self, out, root):
        """Records the emulator; what was covered of each domain."""
        nrg("run", "-q", "-f", "-o", out, "--root", root, "--sensor", "rapl-powercap", "--", "sleep", "3.3")
        return [domain["covered"] for domain in json.loads(nrg("report", "--json", out).stdout)["domains"]]


class Replay(Folder):
    def test_recording_is_played(self):
        old = self.simulate("domain package-0\n power 20\n wrap 30J\n start 25J\n"
                            "domain dram-0\n kind gauge\n power 3\n", "--sensor", "machine",
                            command=("sleep", "2.5"))
        new = self.dir / "new.nrg"
        # Shorter than the old recording by more than a busy machine adds to a sleep.
        nrg("run", "-q", "-o", new, "--sensor", f"replay:{old}", "--", "sleep", "1.2")
        a, b = (json.loads(nrg("export", "--format", "json", f).stdout) for f in (old, new))
        keys = ("name", "quantity", "kind", "unit", "provenance", "parent", "wide", "wrap_range",
                "covers_cpu")
        self.assertEqual([[c.get(k) for k in keys] for c in a["channels"]],
                         [[c.get(k) for k in keys] for c in b["channels"]])
        self.assertGreater(b["origin"]["unix_time_ns"], a["origin"]["unix_time_ns"])
        report = json.loads(nrg("report", "--json", new).stdout)
        found = {d["name"]: d for d in report["domains"]}
        for name, power_w in (("package-0", 20), ("dram-0", 3)):
            self.assertGreater(found[name]["covered"], 0.5)
            self.assertAlmostEqual(found[name]["energy_j"] / (found[name]["covered"] * report["duration_s"]), power_w,
                                   delta=0.04 * power_w)

    def test_estimated_stays_estimated(self):
        old, new = self.dir / "old.nrg", self.dir / "new.nrg"
        nrg("run", "-q", "-o", old, "--sensor", "machine", "--sensor", "estimate", "--cpu-watts",
            "40:100", "--", "sleep", "0.8")
        nrg("run", "-q", "-o", new, "--sensor", f"replay:{old}?loop=1&speed=2", "--", "sleep", "1")
        report = json.loads(nrg("report", "--json", new).stdout)
        self.assertEqual(report["total"]["provenance"], "estimated")
        # Between idle and full, but for the joint of the loop.
        mean_w = report["domains"][0]["mean_w"]
        self.assertGreater(mean_w, 35)
        self.assertLess(mean_w, 101)

    def test_not_a_recording(self):
        other = self.dir / "other.db"
        subprocess.run(["/usr/bin/python3", "-c",
                        "import sqlite3,sys; sqlite3.connect(sys.argv[1])"
                        ".execute('create table t(x)')", other], check=True)
        done = nrg("run", "-o", self.dir / "n.nrg", "--sensor", f"replay:{other}", "--", "true",
                   check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn("not a recording", done.stderr)


if __name__ == "__main__":
    unittest.main()
