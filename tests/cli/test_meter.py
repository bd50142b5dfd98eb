"""nrg meter, and meters that print lines: driven by a program of known truth through real pipes and files."""
import concurrent.futures
import json
import os
import signal
import subprocess
import time
import unittest

from meter_source import Load
from retries import steadily
from support import Case, PYTHON, domains, eventually, query, run_edges

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "meter_source.py")
BAR = 0.01


class Lines(Case):
    def source(self, load, *options):
        return " ".join([PYTHON, SOURCE, load, *options])

    def measure(self, uri, *command, name="m.nrg"):
        out = self.path(name)
        r, _ = self.run_json("--meter", uri, "-f", "-o", out, "--", *(command or ("sleep", "1")))
        return r, out

    def compare(self, load, r, out, driver):
        d = domains(r)["wall"]
        self.assertAlmostEqual(d["energy_j"] / Load(load).between(*run_edges(out)), 1, delta=BAR)
        self.assertGreater(d["covered"], 0.99)
        self.assertEqual((d["driver"], d["provenance"]), (driver, "measured"))

    def test_loads_of_known_energy(self):
        """Side by side, because they mostly wait. A step is somewhere in the run, wherever that begins."""
        step, bursts = f"step:{time.monotonic_ns() + 2_500_000_000}:20:120", "burst:1:0.5:40:110"
        path = self.path("log.csv")
        self.started.append(subprocess.Popen([PYTHON, SOURCE, bursts, "--form", "csv", "--file", path, "--names",
                                              "time,power (mW),voltage"]))
        eventually(lambda: os.path.exists(path) and os.path.getsize(path) > 200, "lines in the file")
        cases = (("constant:42", "exec:" + self.source("constant:42") + "?period=1s"),
                 (step, "exec:" + self.source(step, "--form pattern --noise 10")
                  + "?pattern=P={power} W&average=50ms&period=1s"),
                 (bursts, "exec:" + self.source(bursts, "--form joules") + "?columns=energy:J&period=1s"),
                 (bursts, f"file:{path}?columns=time,power:mW,voltage&average=50ms&period=1s"))
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            jobs = [pool.submit(self.measure, uri, "sleep", "5", name=f"{i}.nrg") for i, (_, uri) in enumerate(cases)]
        for i, ((load, uri), job) in enumerate(zip(cases, jobs)):
            with self.subTest(uri):
                steadily(lambda result, case=(load, uri): self.compare(case[0], *result, case[1].split(":")[0]),
                         lambda n, u=uri, k=i: self.measure(u, "sleep", "5", name=f"{k}.nrg"), 4, job.result())
        self.assertEqual(query(self.path("3.nrg"), "SELECT count(*) FROM channel WHERE name='voltage'"), [(1,)])

    def test_scale_offset_and_delay_are_honoured(self):
        r, out = self.measure("exec:" + self.source("constant:50") + "?columns=power&scale=2&offset=-10")
        self.assertAlmostEqual(domains(r)["wall"]["mean_w"], 90, delta=0.9)

    def test_wrong_keys_say_why(self):
        for uri, word in (("exec:true?pattern=nothing", "names no value"), ("exec:true?columns=x", "unit of 'x'"),
                          ("exec:true?pattern={power}&columns=power", "exclude"), ("exec:true?columns=power:furlong",
                           "neither a unit"), ("exec:true?pattern={power", "not closed"), ("file:/nonexistent", "nonexistent"),
                          ("exec:true?time=never", "time="), ("exec:true?delay=soon", "delay="),
                          ("exec:true?shape=round", "shape")):
            done = self.nrg("meter", "watch", uri)
            self.assertEqual(done.returncode, 2, (uri, done.stderr))
            self.assertIn(word, self.one_line(done.stderr), uri)


class Watch(Case):
    def watch(self, uri, *options):
        done = self.nrg("meter", "watch", uri, *options)
        return done, done.stdout.decode()

    def test_readings_refusals_and_summary(self):
        script = self.write("meter.sh", "echo '# banner'\necho P=10 W\necho P=oops\necho P=30 W\nsleep 60\n")
        done, text = self.watch(f"exec:sh {script}?pattern=P={{power}} W", "--count", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(text, r"(?m)^\d\d:\d\d:\d\d\.\d+  wall 10 W$")
        self.assertRegex(text, r"(?m)^- # banner +\(a comment\)$")
        self.assertRegex(text, r"(?m)^- P=oops +\(does not match the pattern\)$")
        self.assertIn("2 readings", text)
        self.assertRegex(text, r"wall +power +10 \.\. 30 W, mean 20")

    def test_count_is_how_many_are_shown(self):
        script = self.write("burst.sh", "seq -f 'P=%g W' 23\nsleep 60\n")
        for options in ((), ("--json",)):
            done, text = self.watch(f"exec:sh {script}?pattern=P={{power}} W", "--count", "4", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            if options:
                events = [json.loads(line) for line in text.splitlines()]
                self.assertEqual([e["event"] for e in events].count("reading"), 4)
                self.assertEqual(events[-1]["readings"], 4)
            else:
                self.assertEqual(text.count("  wall "), 4)
                self.assertIn("4 readings", text)

    def test_a_noisy_line_is_said_once(self):
        script = self.write("noise.sh", "for i in 1 2 3 4 5 6; do\n  for j in $(seq 60); do echo xxxxxxxxxxxxxxxxxxxxxxxxxx,2; "
                            "done\n  echo 10,230\n  sleep 0.1\ndone\nsleep 60\n")
        done, text = self.watch(f"exec:sh {script}?columns=power,voltage", "--count", "4", "--json")
        kinds = [e["kind"] for e in map(json.loads, text.splitlines()) if e["event"] == "note"]
        self.assertEqual(kinds, ["garbage", "back"])

    def test_json_lines(self):
        script = self.write("meter.sh", "echo time,power,voltage\necho 5,10,230\necho 6,x,230\necho 7,30,231\n"
                            "sleep 60\n")
        done, text = self.watch(f"exec:sh {script}?columns=time,power,voltage", "--count", "2", "--json", "--raw")
        events = [json.loads(line) for line in text.splitlines()]
        kinds = [e["event"] for e in events]
        self.assertEqual(kinds.count("reading"), 2)
        self.assertIn("raw", kinds)
        readings = [e for e in events if e["event"] == "reading"]
        self.assertEqual([v["value"] for v in readings[0]["values"]], [10, 230])
        self.assertEqual([v["unit"] for v in readings[0]["values"]], ["W", "V"])
        self.assertAlmostEqual(readings[1]["time_s"] - readings[0]["time_s"], 2, delta=0.01)  # its own clock
        refused = [e for e in events if e["event"] == "refused" and not e["harmless"]]
        self.assertEqual(len(refused), 1)
        self.assertIn("column 2", refused[0]["why"])
        end = events[-1]
        self.assertEqual((end["event"], end["readings"], end["refused"]), ("end", 2, 1))

    def test_control_c_ends_with_a_summary(self):
        script = self.write("meter.sh", "while :; do echo 5; sleep 0.05; done\n")
        process = self.start("meter", "watch", f"exec:sh {script}")
        self.assertRegex(process.stdout.readline(), rb"wall 5 W")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(b"readings", out)

    def test_program_that_ends_ends_the_watch(self):
        done, text = self.watch("exec:echo 5; echo 6")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 readings", text)
        self.assertIn("the program has ended", text)

    def test_serial_line_of_unknown_kind(self):
        master, slave = os.openpty()
        try:
            process = self.start("meter", "watch", f"lines:{os.ttyname(slave)}?columns=-,power:mW&baud=115200",
                                 "--count", "2")
            seen = process.stderr.readline()
            self.assertIn(b"waiting", seen)
            os.write(master, b"node,1\r\n5,150")
            os.write(master, b"0\r\n5,x\r\n5,250")
            os.write(master, b"0\r\n")
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
            self.assertRegex(out, rb"wall 1\.5 W\n(.*\n)*.*wall 2\.5 W")
            self.assertRegex(out, rb"\? 5,x +\(column 2 \(power\)")
        finally:
            os.close(master)
            os.close(slave)

    def test_program_that_says_nothing_useful(self):
        done, text = self.watch("exec:echo hello; sleep 60?pattern={power} W", "--for", "1s")
        self.assertEqual(done.returncode, 1)
        self.assertIn("- hello", text)
        self.assertIn("no value came", text)

    def test_what_is_no_meter(self):
        scenario = self.scenario("domain wall\n power 5\n")
        done = self.nrg("meter", "watch", f"simulate:{scenario}")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is not a meter", self.one_line(done.stderr))
        for args in ((), ("dance",), ("watch", "a:b", "c:d"), ("list", "x")):
            self.assertEqual(self.nrg("meter", *args).returncode, 2)

    def test_list_shows_the_desk_and_all_kinds(self):
        os.chmod(self.dir, 0o755)  # what anybody can write may name no program
        self.write("conf/nrg/nrg.conf", "meter = exec:my-meter?columns=power\n")
        done = self.nrg("meter", "list", env=self.env(XDG_CONFIG_HOME=self.path("conf")))
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("exec:my-meter?columns=power", text)
        for kind in ("emonpi:", "rpict:", "mqtt:", "mqtts:", "exec:", "file:", "lines:"):
            self.assertRegex(text, f"(?m)^{kind}")


class Calibrate(Case):
    """The reference is an emulated RAPL device, the meter a program that sees the same watts, changed and late."""

    STEPS = [(0, 30), (2.1, 90), (3.4, 25), (6.2, 70), (7.7, 40), (9.0, 95), (11.8, 20), (13.1, 85), (15.9, 35),
             (17.3, 80), (19.9, 28), (21.2, 92), (24.3, 45), (26.0, 88), (28.8, 22), (31.0, 75), (33.5, 30),
             (35.2, 90), (38.0, 30)]

    def setUp(self):
        super().setUp()
        steps = " ".join(f"{t}s:{w}" for t, w in self.STEPS)
        scenario = self.scenario(f"domain package-0\n power {steps}\n")
        self.zero_ns = self.emulate(scenario, self.path("root"))
        numbers = ",".join(f"{t},{w}" for t, w in self.STEPS)
        self.load = f"steps:{self.zero_ns}:{numbers}"

    def calibrate(self, source, *options):
        uri = f"exec:{PYTHON} {SOURCE} {source}"
        return self.nrg("meter", "calibrate", uri, "--root", self.path("root"), "--against", "rapl", "--for", "14s",
                        "--max-delay", "2s", *options)

    def test_what_was_done_to_the_meter_is_found(self):
        # The meter says 0.8 * truth + 12, 700 ms late: truth = 1.25 * meter - 15.
        changed = f"{self.load} --scale 0.8 --offset 12 --delay 0.7 --interval 0.1?columns=power&average=100ms"
        with concurrent.futures.ThreadPoolExecutor() as pool:
            found = pool.submit(self.calibrate, changed, "--json")
            known = pool.submit(self.calibrate, changed + "&scale=1.25&offset=-15&delay=700ms", "-o",
                                self.path("c.nrg"))
            other = pool.submit(self.calibrate, "constant:40 --interval 0.1?columns=power")
        self.check_found(found.result())
        self.check_known(known.result())
        self.assertEqual(other.result().returncode, 1)
        self.assertIn(b"does not follow the reference", other.result().stderr)

    def check_found(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        r = json.loads(done.stdout)
        self.assertAlmostEqual(r["scale"], 1.25, delta=0.03)
        self.assertAlmostEqual(r["offset_w"], -15, delta=2)
        self.assertAlmostEqual(r["delay_s"], 0.7, delta=0.05)
        self.assertGreater(r["correlation"], 0.98)
        self.assertLess(r["residual_w"], 0.2 * r["spread_w"])
        self.assertRegex(r["keys"], r"^scale=1\.2\d+&offset=-1\d\.\d+&delay=\d+ms$")

    def check_known(self, done):
        """Keys that the URI has are replaced by what is suggested; they were right, so nothing is left to find."""
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.decode()
        self.assertIn("replace those", text)
        self.assertRegex(text, r"(?m)^scale +1\.2\d* ±")
        again = self.nrg("meter", "calibrate", "--from", self.path("c.nrg"), "--max-delay", "2s", "--json")
        r = json.loads(again.stdout)
        self.assertAlmostEqual(r["scale"], 1, delta=0.03)
        self.assertAlmostEqual(r["offset_w"], 0, delta=2)
        self.assertAlmostEqual(r["delay_s"], 0, delta=0.05)

    def test_nothing_to_compare_with_is_said_at_once(self):
        os.mkdir(self.path("empty"))
        done = self.nrg("meter", "calibrate", "exec:echo 5", "--root", self.path("empty"), "--against", "rapl")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing of it measures energy", self.one_line(done.stderr))


if __name__ == "__main__":
    unittest.main()
