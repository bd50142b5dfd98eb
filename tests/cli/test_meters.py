"""External meters on serial lines, against a meter of known truth.

The meter is a process of its own (tests/emulator/meter_emulator.py) on a pseudo-terminal. The run's
edges come from the recording and the true energy between them from the emulator. A machine that is
busy with other things reads a line late, by more than the bar allows at times: such a measurement
is repeated, at most twice.
"""
import concurrent.futures
import unittest

from retries import retried
from support import *

METER = os.path.join(TOP, "tests", "emulator", "meter_emulator.py")
BAR = 0.01
SHAPES = {
    "constant": "constant:450",
    "step": "step:0=120,2.2=800,3.4=300",
    "bursty": "burst:0.07,0.4,80,950",
}
# average= is the period at which the emulator sends means.
OK = "emonpi:{link}?node=5&layout=notes&average=100ms&covers=power1:machine"
RPICT = "rpict:{link}?board=rpict3t1&average=100ms&covers=P1:machine"


class Meter(Case):
    def emulate_meter(self, shape, *options):
        """Starts a meter; (its link, zero_ns)."""
        link = self.path(f"tty-{time.monotonic_ns()}")
        process = subprocess.Popen([PYTHON, METER, "--link", link, *options, shape],
                                   stdout=subprocess.PIPE)
        self.started.append(process)
        return link, json.loads(process.stdout.readline())["zero_ns"]

    def true_j(self, shape, zero_ns, edges):
        return float(subprocess.run([PYTHON, METER, "--truth", shape, str(zero_ns),
                                     *map(str, edges)], check=True, stdout=subprocess.PIPE).stdout)

    def measure(self, shape, options, uri, seconds="3"):
        """One run beside a meter; (results, relative error of wall)."""
        link, zero_ns = self.emulate_meter(shape, *options)
        out = self.path(f"run-{os.path.basename(link)}.nrg")
        results, _ = self.run_json("-o", out, "--meter", uri.format(link=link), "--", "sleep",
                                   seconds)
        wall = domains(results).get("wall")
        error = wall["energy_j"] / self.true_j(shape, zero_ns, run_edges(out)) - 1 if wall else None
        return results, error

    def close_to_truth(self, cases):
        """All cases {name: (shape, options, uri)} at once; the results of each."""
        good, errors = {}, {name: [] for name in cases}
        for _ in range(3):
            left = [name for name in cases if name not in good]
            with concurrent.futures.ThreadPoolExecutor(max_workers=len(left) or 1) as pool:
                for name, done in [(name, pool.submit(self.measure, *cases[name])) for name in left]:
                    results, error = done.result()
                    self.assertIsNotNone(error, (name, results["missing"]))
                    errors[name].append(round(error, 4))
                    if abs(error) <= BAR:
                        good[name] = results
                    elif len(errors[name]) < 3:
                        retried(f"{name}: off by {error:.4f}")
        self.assertEqual(set(good), set(cases), errors)
        return good


class Accuracy(Meter):
    def test_loads(self):
        found = self.close_to_truth(
            {("emonpi", name): (shape, ["--partial", "7"], OK) for name, shape in SHAPES.items()} |
            {("rpict", name): (shape, ["--form", "rpict", "--partial", "3"], RPICT)
             for name, shape in SHAPES.items()})
        for results in found.values():
            self.assertEqual(results["total"]["domains"], ["wall"])
            self.assertEqual(domains(results)["wall"]["provenance"], "measured")

    def test_other_forms(self):
        """Key and value, hexadecimal, and lines further apart than nrg's own readings."""
        found = self.close_to_truth({
            "msg": (SHAPES["bursty"], ["--form", "msg"],
                    "emonpi:{link}?layout=P1,P2,Vrms&covers=P1:machine"),
            "okx": (SHAPES["constant"], ["--form", "okx"], OK),
            "slow": (SHAPES["constant"], ["--period", "0.5"],
                     "emonpi:{link}?layout=notes&covers=power1:machine"),
        })
        self.assertNotIn("no readings for", self.missing(found["slow"], "wall"))

    def test_what_happens_to_bytes_on_their_way_changes_nothing(self):
        constant = SHAPES["constant"]
        found = self.close_to_truth({
            "lf": (constant, ["--ending", "lf"], OK),
            "cr": (constant, ["--ending", "cr"], OK),
            "lfcr": (constant, ["--ending", "lfcr"], OK),
            "byte by byte": (SHAPES["step"], ["--chunk", "1"], OK),
            "several at once": (SHAPES["bursty"], ["--chunk", "100", "--period", "0.05"],
                                OK.replace("100ms", "50ms")),
            "noise": (constant, ["--noise", "0.01", "--seed", "3"], OK),
            "noise, rpict": (constant, ["--form", "rpict", "--noise", "0.01"], RPICT),
            "banner": (constant, ["--banner"], OK),
        })
        self.assertNotIn("garbage", self.missing(found["banner"], "emonpi"))

    def test_flood(self):
        """Thousands of lines a second: all of the time is covered, and the command's code comes."""
        link, _ = self.emulate_meter(SHAPES["constant"], "--flood")
        results, _ = self.run_json("--meter", OK.format(link=link), "--", "sh", "-c",
                                   "sleep 2; exit 7", code=7)
        self.assertLess(abs(domains(results)["wall"]["mean_w"] / 450 - 1), BAR)


class Faults(Meter):
    def test_garbage_is_said(self):
        results, error = self.measure(SHAPES["constant"], ["--garbage"], OK)
        self.assertIsNone(error)
        self.assertIn("garbage", self.missing(results, "emonpi"))
        self.assertIn("baud=", self.missing(results, "emonpi"))

    def test_unplugged_and_plugged_in_again(self):
        shape = SHAPES["constant"]
        link, _ = self.emulate_meter(shape, "--unplug", "1.5,3")
        results, _ = self.run_json("--meter", OK.format(link=link), "--", "sleep", "7")
        wall, why = domains(results)["wall"], self.missing(results, "emonpi")
        self.assertIn("gone", why)
        self.assertIn("readings are back", why)
        self.assertLess(abs(wall["mean_w"] / 450 - 1), BAR)
        self.assertIn("no readings for", self.missing(results, "wall"))
        self.assertLess(wall["energy_j"], 450 * results["duration_s"])

    def test_silence_is_said(self):
        shape = SHAPES["constant"]
        link, _ = self.emulate_meter(shape, "--silent-after", "1.5")
        results, _ = self.run_json("--meter", OK.format(link=link), "--", "sleep", "5")
        self.assertIn("silent", self.missing(results, "emonpi"))

    def test_said_while_it_runs(self):
        link, _ = self.emulate_meter(SHAPES["constant"], "--garbage")
        process = self.start("run", "-o", self.path("x.nrg"), "--meter", OK.format(link=link), "--",
                             "sleep", "2")
        _, err = self.finish(process)
        self.assertIn(b"garbage", err.split(b"DOMAIN")[0])


class Usage(Meter):
    def refused(self, *args):
        done = self.nrg("run", *args, "--", "touch", "began")
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(os.path.exists(self.path("began")))
        return self.one_line(done.stderr)

    def test_a_meter_that_is_not_there(self):
        line = self.refused("--meter", "emonpi:/dev/nrg-no-such-tty?node=5")
        self.assertIn("/dev/nrg-no-such-tty", line)
        self.assertIn("plugged in", line)

    @needs_root
    def test_a_meter_that_may_not_be_read(self):
        link, _ = self.emulate_meter(SHAPES["constant"])
        os.chmod(os.path.realpath(link), 0o600)
        done = self.nrg("run", "--meter", OK.format(link=link), "--", "true", user=NOBODY)
        self.assertIn("dialout", self.one_line(done.stderr))

    def test_bad_uris(self):
        for uri, word in (("emonpi", "nothing is named"), ("nometer:/dev/x", "nometer"),
                          ("emonpi:/dev/x?node=five", "node="), ("emonpi:/dev/x?nod=5", "node"),
                          ("emonpi:/dev/x?layout=a:int17", "int16"), ("emonpi:/x?baud=1", "baud"),
                          ("rpict:/dev/x", "board="), ("rpict:/dev/x?board=rpict99", "rpict7v1"),
                          ("emonpi:/dev/x?covers=moon", "covers="), ("emonpi:/dev/x?", "key=value"),
                          ("emonpi:/dev/x?layout=%zz", "hexadecimal")):
            with self.subTest(uri):
                self.assertIn(word, self.refused("--meter", uri))

    def test_one_line_has_one_reader(self):
        link, _ = self.emulate_meter(SHAPES["constant"])
        uri = OK.format(link=link)
        self.assertIn("node=5,8", self.refused("--meter", uri, "--meter", uri))
        other = self.start("run", "-o", self.path("one.nrg"), "--meter", uri, "--", "sleep", "60")
        eventually(lambda: children_of(other.pid), "the first run's command")
        self.assertIn("another program", self.refused("--meter", uri))
        other.terminate()
        self.finish(other)

    def test_two_meters(self):
        one, _ = self.emulate_meter("constant:300")
        two, _ = self.emulate_meter("constant:200", "--form", "rpict")
        results, _ = self.run_json("--meter", OK.format(link=one), "--meter",
                                   RPICT.format(link=two), "--", "sleep", "2")
        found = domains(results)
        self.assertLess(abs(found["wall"]["mean_w"] / 300 - 1), BAR)
        self.assertLess(abs(found["wall-2"]["mean_w"] / 200 - 1), BAR)
        self.assertEqual(results["total"]["domains"], ["wall"])

    def test_sum_of_clamps(self):
        link, _ = self.emulate_meter("constant:300")
        uri = f"emonpi:{link}?layout=power1,power2,-,Vrms&covers=machine"
        results, _ = self.run_json("--meter", uri, "--", "sleep", "2")
        wall = domains(results)["wall"]
        self.assertLess(abs(wall["mean_w"] / 450 - 1), BAR)
        self.assertEqual(wall["provenance"], "derived")

    def test_sensors_lists_it(self):
        link, _ = self.emulate_meter("constant:300")
        done = self.nrg("sensors", "--json", "--meter", OK.format(link=link))
        channels = {c["name"]: c for c in json.loads(done.stdout)["channels"]}
        self.assertEqual(channels["wall"]["driver"], "emonpi")
        self.assertEqual(channels["Vrms"]["resolution"], 0.01)


class Config(Meter):
    def conf(self, text):
        self.write("config/nrg/nrg.conf", text)
        return {"env": self.env(XDG_CONFIG_HOME=self.path("config"))}

    def test_the_desks_meter_is_found(self):
        link, _ = self.emulate_meter("constant:300")
        kw = self.conf(f"# desk\nlayout mine = power1 W, power2, -, Vrms*0.01V\n"
                       f"meter = emonpi:{link}?layout=mine&covers=power1:machine\n")
        results, _ = self.run_json("--", "sleep", "2", **kw)
        self.assertLess(abs(domains(results)["wall"]["mean_w"] / 300 - 1), BAR)
        results, _ = self.run_json("--no-meter", "--", "true", **kw)
        self.assertNotIn("wall", domains(results))

    def test_left_at_the_desk(self):
        results, _ = self.run_json("--", "true", **self.conf("meter = emonpi:/dev/nrg-no-tty\n"))
        self.assertIn("plugged in", self.missing(results, "emonpi:/dev/nrg-no-tty"))

    def test_mistakes_have_a_line(self):
        for text, place, word in (("\nmetre = x\n", ":2", "metre"), ("meter emonpi\n", ":1", "URI"),
                                  ("meter = emonpi:/x?nod=1\n", ":1", "node"),
                                  ("layout a b = x\n", ":1", "name"), ("meter =\n", ":1", "after")):
            with self.subTest(text):
                done = self.nrg("run", "--", "true", **self.conf(text))
                self.assertEqual(done.returncode, 125)
                line = self.one_line(done.stderr)
                self.assertIn("nrg.conf" + place, line)
                self.assertIn(word, line)


class NvidiaSmi(Case):
    """A stand-in prints what nvidia-smi --query-gpu=... --format=csv -lms 100 does."""

    def meter(self, header, *rows):
        lines = "".join(f'echo "{row}, $(date "+%Y/%m/%d %H:%M:%S.%3N")"; ' for row in rows)
        self.write("nvidia-smi", f"#!/bin/sh\necho '{header}, timestamp'\nwhile {lines} do sleep 0.1; done\n", 0o755)
        return "exec:" + self.path("nvidia-smi")

    def measure(self, meter):
        r, _ = self.run_json("--meter", meter, "-o", self.path("g.nrg"), "--force", "--", "sleep", "1.5")
        return r, domains(r)

    def test_two_gpus_are_two_channels(self):
        r, d = self.measure(self.meter("index, power.limit [W], power.draw [W]", "0, 300.00 W, 60.5 W", "1, 300.00 W, 61.5 W"))
        self.assertAlmostEqual(d["power-0"]["mean_w"], 60.5, places=6)
        self.assertAlmostEqual(d["power-1"]["mean_w"], 61.5, places=6)
        self.assertNotIn("wall", d)
        self.assertNotIn("power-0", r["total"]["domains"])

    def test_gpus_without_a_name_are_refused(self):
        """Every second line was dropped without a word: half of the power."""
        self.write("nvidia-smi", "#!/bin/sh\necho 'timestamp, power.draw [W]'\nwhile d=$(date '+%Y/%m/%d %H:%M:%S.%3N');\n"
                   "do echo \"$d, 60.5 W\"; echo \"$d, 61.5 W\"; sleep 0.1; done\n", 0o755)
        done = self.nrg("run", "--meter", "exec:" + self.path("nvidia-smi"), "-o", self.path("g.nrg"), "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("2 at a time, as of 2 GPUs", self.one_line(done.stderr))

    def test_one_gpu_is_not_the_machine(self):
        r, d = self.measure(self.meter("name, power.draw [W]", "Tesla T4, 44.94 W"))
        self.assertAlmostEqual(d["power"]["mean_w"], 44.94, places=6)
        self.assertNotIn("wall", d)
        self.assertEqual(r["total"]["provenance"], "estimated" if "machine" in d else "measured")


if __name__ == "__main__":
    unittest.main()
