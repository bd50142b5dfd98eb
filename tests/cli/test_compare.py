"""nrg compare on recordings whose energies are known, and by running commands. The recordings are made by nrg import from logs of constant power,
so that the joules of each run are power times time."""
import json
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import unittest

from compare_files import Sides, Text
from support import LIMIT_S, NRG, eventually


class Compare(Sides):
    def test_less(self):
        a, b = self.sides(5, 0.88)
        got = self.json(*a, "--", *b)
        self.assertEqual(got["schema"], "nrg.compare/1")
        self.assertEqual((got["a"]["runs"], got["b"]["runs"]), (5, 5))
        self.assertAlmostEqual(got["b"]["energy_j"] / got["a"]["energy_j"], 0.88, delta=0.02)
        self.assertEqual(got["energy"]["verdict"], "less")
        self.assertLess(got["energy"]["low"], 0.88)
        self.assertGreater(got["energy"]["high"], 0.88)
        self.assertLess(got["energy"]["p_value"], 0.001)
        self.assertEqual(got["duration"]["verdict"], "none")
        self.assertAlmostEqual(got["duration"]["ratio"], 1, delta=1e-6)
        self.assertEqual([row["kind"] for row in got["rows"]], ["domain"])
        text = self.compare(*a, "--", *b).stdout
        self.assertRegex(text, r"^B uses 1\d\.\d % less energy than A \(95 %: \d+\.\d to \d+\.\d %\)")
        self.assertIn("B uses", self.compare("--markdown", *a, "--", *b).stdout)

    def test_none_and_how_many_runs_would_show_it(self):
        a, b = self.sides(6, 1.0, scatter=0.02, seed=3)
        got = self.json(*a, "--", *b)
        self.assertEqual(got["energy"]["verdict"], "none")
        self.assertGreater(got["runs_needed"], 15)
        self.assertLess(got["runs_needed_low"], got["runs_needed"])
        self.assertGreater(got["runs_needed_high"], got["runs_needed"])
        self.assertRegex(got["answer"], r"no difference of energy larger than \d")

    def test_runs_that_tell_nothing(self):
        a = [self.recording(f"a{i}", power, 2 * i) for i, power in enumerate((10, 90))]
        b = [self.recording(f"b{i}", power, 2 * i + 1) for i, power in enumerate((80, 12))]
        self.assertRegex(self.json(*a, "--", *b)["answer"], r"^runs vary too much to tell \(95 %: -\d.* to \+\d+ %\); ")

    def test_a_drift_is_no_difference(self):
        a, b = self.sides(5, 1.0, scatter=0.002, drift=0.2, seed=6)
        got = self.json(*a, "--", *b)
        self.assertEqual(got["energy"]["verdict"], "none")
        self.assertLess(got["energy"]["high"], 1.02)
        self.assertAlmostEqual(got["drift"], math.exp(0.2 * 0.9) - 1, delta=0.05)

    def test_blocks_are_told(self):
        a = [self.recording(f"a{i}", 50 + 0.1 * i, i) for i in range(4)]
        b = [self.recording(f"b{i}", 50.4 + 0.1 * i, 4 + i) for i in range(4)]
        got = self.json(*a, "--", *b)
        self.assertEqual(got["energy"]["verdict"], "none")
        self.assertTrue(any("not run in turn" in w for w in got["warnings"]), got["warnings"])

    def test_one_run_a_side_invents_nothing(self):
        a, b = self.sides(1, 0.5)
        got = self.json(*a, "--", *b)
        self.assertAlmostEqual(got["energy"]["ratio"], 0.5, delta=0.03)
        self.assertNotIn("low", got["energy"])
        self.assertNotIn("p_value", got["energy"])
        self.assertNotIn("runs_needed", got)
        self.assertFalse([name for name, effect in got.items() if isinstance(effect, dict) and "verdict" in effect])
        self.assertRegex(got["answer"], r"^B used [45]\d\.\d % less energy than A in these runs, .* nothing more can be said$")
        self.assertFalse(any("not of one command" in w for w in got["warnings"]), got["warnings"])

    def test_the_gate(self):
        a, b = self.sides(5, 1.10)
        self.compare("--fail-if", "energy > +2%", *a, "--", *b, code=3)
        self.compare(*a, "--", *b, "--fail-if", "energy > +20%")
        self.compare("--fail-if", "energy < -2%", *a, "--", *b)
        self.compare("--fail-if=power>2%", *a, "--", *b, code=3)
        got = self.json("--fail-if", "energy > +2%", "--fail-if", "time < -1%", *a, "--", *b, code=3)
        self.assertEqual(got["fail_if"], [{"condition": "energy > +2%", "result": "met"}, {"condition": "time < -1%", "result": "not met"}])
        for wrong in ("joules > 2%", "energy > 2", "energy = 2%", "energy > 2% and more", "energy > -100%", "> 2%", ""):
            done = self.compare("--fail-if", wrong, *a, "--", *b, code=2)
            self.assertIn("--fail-if wants", done.stderr)

    def test_a_gate_that_can_not_be_decided_is_no_pass(self):
        a, b = self.sides(3, 1.10)
        done = self.compare("--fail-if", "energy > +2%", a[0], "--", b[0], code=4)
        self.assertIn("can't be decided", done.stderr)
        # A log of power has no memory. What is met is met, whatever else is not known.
        got = self.json("--fail-if", "memory > +2%", "--fail-if", "energy > +2%", *a, "--", *b, code=3)
        self.assertEqual([c["result"] for c in got["fail_if"]], ["undecided", "met"])
        self.assertIn("fails if memory \\> +2%: undecided", self.compare("--markdown", "--fail-if", "memory > +2%", *a, "--", *b, code=4).stdout)

    def test_a_run_that_is_given_twice_counts_once(self):
        a, b = self.sides(3, 0.8)
        before = self.json(*a, "--", *b)
        shutil.copy(a[0], self.path("copy.nrg"))
        os.symlink(a[1], self.path("link.nrg"))
        os.link(a[2], self.path("other-name.nrg"))
        got = self.json(*a, a[0], os.path.relpath(a[1], self.dir), self.path("copy.nrg"), self.path("link.nrg"), self.path("other-name.nrg"), "--", *b)
        self.assertEqual(got["a"]["runs"], 3)
        self.assertEqual(got["energy"], before["energy"])
        self.assertTrue(any("5 runs are given more than once" in w for w in got["warnings"]), got["warnings"])
        once = self.json(a[0], a[0], "--", b[0], b[0])
        self.assertEqual((once["a"]["runs"], once["b"]["runs"]), (1, 1))
        self.assertNotIn("low", once["energy"])

    def test_a_run_on_both_sides_is_refused(self):
        a, b = self.sides(3, 0.8)
        shutil.copy(a[0], self.path("copy.nrg"))
        done = self.compare(*a, "--", *b, self.path("copy.nrg"), code=4)
        self.assertIn("1 run is given on both sides", done.stderr)
        self.assertIn("copy.nrg", done.stderr)
        self.compare("--self-check", a[0], self.path("copy.nrg"), code=4)
        self.compare("--force", *a, "--", *b, self.path("copy.nrg"))

    def test_what_is_not_comparable(self):
        a = [self.recording(f"a{i}", 50, 2 * i) for i in range(3)]
        b = [self.recording(f"b{i}", 50, 2 * i + 1, channel="wall") for i in range(3)]
        done = self.compare(*a, "--", *b, code=4)
        self.assertIn("not comparable: sensors differ", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn('"energy"', self.compare("--json", "--force", *a, "--", *b).stdout)

    def test_a_refusal_gives_no_answer(self):
        a = [self.recording(f"a{i}", 50 + i, 2 * i) for i in range(3)]
        b = [self.recording(f"b{i}", 90 + i, 2 * i + 1, channel="wall") for i in range(3)]
        said = {name: self.path("said." + name) for name in ("json", "markdown", "html")}
        done = self.compare("--json=" + said["json"], "--markdown=" + said["markdown"], "--html", said["html"], "--fail-if", "energy > +2%", *a, "--", *b, code=4)
        self.assertEqual(done.stdout, "")
        texts = {}
        for name, path in said.items():
            with open(path, encoding="utf-8") as text:
                texts[name] = text.read()
        got = json.loads(texts["json"])
        self.assertTrue(got["answer"].startswith("A and B are not comparable: sensors differ"), got["answer"])
        self.assertEqual((got["rows"], got["only"], len(got["refusals"])), ([], [], 1))
        self.assertFalse({"energy", "duration", "mean_power", "runs_needed"} & set(got))
        self.assertEqual([c["result"] for c in got["fail_if"]], ["undecided"])
        self.assertIn("not comparable: sensors differ", texts["markdown"])
        for name in ("markdown", "html"):
            self.assertNotIn("more energy", texts[name])
            self.assertNotIn("interval", texts[name])

    def test_an_estimate_against_a_measurement(self):
        a = [self.recording(f"a{i}", 50, 2 * i) for i in range(2)]
        b = []
        for i in range(2):
            b.append(self.path(f"e{i}.nrg"))
            self.nrg("run", "-q", "-o", b[-1], "--cpu-watts", "10:50", "--", "sleep", "0.05")
        self.assertIn("is measured, that of", self.compare(*a, "--", *b, code=4).stderr)

    def test_by_a_note(self):
        paths = []
        for i in range(6):
            paths.append(self.path(f"n{i}.nrg"))
            done = self.nrg("run", "-q", "-o", paths[-1], "--note", f"size={'large' if i % 2 else 'small'}", "--", "sleep", "0.05")
            self.assertEqual(done.returncode, 0, done.stderr)
        got = self.json("--by", "size", *paths)
        self.assertEqual((got["a"]["name"], got["b"]["name"], got["a"]["runs"]), ("small", "large", 3))
        with sqlite3.connect(paths[0]) as db:
            db.execute("UPDATE meta SET value = 'other' WHERE key = 'command_line'")
        self.assertTrue(any("runs of small are not of one command" in w for w in self.json("--by", "size", *paths)["warnings"]))
        self.assertIn("has no note 'kind'", self.compare("--by", "kind", *paths, code=1).stderr)

    def test_wrong_usage(self):
        a, b = self.sides(1, 1)
        for arguments in (a, [*a, "--"], ["--", *b], ["--run", "2", "--", "true"], ["--run", "2", "--", "true", "---"]):
            self.assertIn("wants two", self.compare(*arguments, code=2).stderr)
        self.assertIn("wants two sets", self.compare(*a, "--", *b, "--", *b, code=2).stderr)
        for arguments in (["--by", "k", *a, "--", *b], ["--self-check", *a, "--", *b], ["--by", "k"], ["--by", "k", "--self-check", *a],
                          ["--by", "k", "--run", "2", "--", "true", "---", "true"]):
            done = self.compare(*arguments, code=2)
            self.assertRegex(done.stderr, r"^nrg compare: --(by|self-check)\b[^\x01]*$")
        done = self.compare(self.path("none.nrg"), "--", *b, code=1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Runner(Text):
    def command(self, milliseconds):
        return ["/usr/bin/python3", "-c", f"import time\nt = time.process_time()\nwhile time.process_time() - t < {milliseconds / 1000}: pass\nprint('out')"]

    def test_runs_in_turn_and_goes_on(self):
        folder = self.path("runs")
        arguments = ["compare", "--json", "--run", "3", "--warmup", "0", "-o", folder, "--", *self.command(20), "---", *self.command(60)]
        got = json.loads(self.nrg(*arguments).stdout)
        self.assertEqual((got["a"]["runs"], got["b"]["runs"]), (3, 3))
        self.assertGreater(got["program_energy"]["ratio"], 1)
        with open(os.path.join(folder, "a-001.nrg.log"), encoding="utf-8") as log:
            self.assertEqual(log.read(), "out\n")
        kept = os.stat(os.path.join(folder, "a-001.nrg")).st_mtime_ns
        os.unlink(os.path.join(folder, "b-002.nrg"))
        done = self.nrg(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("nrg: run "), 1, done.stderr)
        self.assertEqual(os.stat(os.path.join(folder, "a-001.nrg")).st_mtime_ns, kept)

    def test_rows_that_are_the_whole_have_its_interval(self):
        """One process is the program, one domain the machine; an estimate's band differs from run to run."""
        loop = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done"
        done = self.nrg("compare", "--run", "3", "--warmup", "0", "-q", "--json", "-o", self.path("runs"), "--with=--sensor=estimate", "--with=--cpu-watts=20:90", "--", "sh", "-c", loop % 40000, "---", "sh", "-c", loop % 60000)
        self.assertEqual(done.returncode, 0, done.stderr)
        doc = json.loads(done.stdout)
        for whole, kind in (("energy", "domain"), ("program_energy", "process")):
            row, = (r for r in doc["rows"] if r["kind"] == kind)
            for key in ("ratio", "low", "high", "p_value"):
                self.assertTrue(math.isclose(row[key], doc[whole][key], rel_tol=1e-9), (whole, key, row, doc[whole]))

    def test_another_command_in_the_folder(self):
        folder = self.path("runs")
        self.nrg("compare", "--run", "1", "--warmup", "0", "-o", folder, "--", "true", "---", "true")
        done = self.nrg("compare", "--run", "1", "--warmup", "0", "-o", folder, "--", "false", "---", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is of another command", done.stderr)

    def test_a_command_that_fails(self):
        done = self.nrg("compare", "--run", "2", "--warmup", "0", "-o", self.path("runs"), "--", "true", "---", "false")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the command ended with 1", done.stderr)
        done = self.nrg("compare", "-k", "--run", "2", "--warmup", "0", "-o", self.path("more"), "--", "true", "---", "false")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_self_check(self):
        done = self.nrg("compare", "--json", "--self-check", "--run", "3", "--warmup", "1", "-o", self.path("runs"), "--", "sleep", "0.02")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["b"]["runs"], 3)

    def test_interrupted(self):
        folder = self.path("runs")
        with subprocess.Popen([NRG, "compare", "--run", "50", "--warmup", "0", "-o", folder, "--", "sleep", "0.05", "---", "sleep", "0.05"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            for line in run.stderr:
                if "run 3 of 50" in line:
                    break
            run.terminate()
            _, errors = run.communicate(timeout=60)
        self.assertIn("goes on", errors)
        self.assertLess(len(os.listdir(folder)), 60)

    def test_a_signal_reaches_the_command_once(self):
        """Sent to nrg compare alone it is passed on; sent to all of the group it is not sent again."""
        command = f"trap 'echo ended >> {self.path('ends')}; exit 3' TERM; echo > {self.path('ready')}; while :; do sleep 0.05; done"
        for group in (False, True):
            for name in ("ends", "ready"):
                if os.path.exists(self.path(name)):
                    os.unlink(self.path(name))
            run = subprocess.Popen([NRG, "compare", "-q", "--run", "2", "--warmup", "0", "-o", self.path(f"runs-{group}"), "--", "sh", "-c", command,
                                    "---", "sh", "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            try:
                eventually(lambda: os.path.exists(self.path("ready")), "the command")
                (os.killpg if group else os.kill)(run.pid, signal.SIGTERM)
                run.wait(LIMIT_S)
            finally:
                if run.poll() is None:
                    os.killpg(run.pid, signal.SIGKILL)
                    run.wait()
            with open(self.path("ends"), encoding="utf-8") as f:
                self.assertEqual(f.read(), "ended\n")

    def test_what_lies_in_the_folder(self):
        """A log that is a link, has a second name or is a FIFO is somebody else's."""
        for lay in (os.symlink, os.link, lambda _, to: os.mkfifo(to)):
            folder, precious = self.path(f"runs-{id(lay)}"), self.write("precious", "mine")
            os.mkdir(folder)
            lay(precious, os.path.join(folder, "warmup.nrg.log"))
            done = self.nrg("compare", "--run", "1", "-o", folder, "--", "true", "---", "true")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("could not start nrg run", done.stderr)
            with open(precious, encoding="utf-8") as f:
                self.assertEqual(f.read(), "mine")

    def test_a_long_name_of_a_folder_is_not_cut(self):
        folder = os.path.join(self.path("x" * 150), "y" * 150)
        os.makedirs(os.path.dirname(folder))
        done = self.nrg("compare", "--run", "1", "-o", folder, "--", "true", "---", "true")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("File name too long", done.stderr)
        self.assertEqual(os.listdir(os.path.dirname(folder)), [])


if __name__ == "__main__":
    unittest.main()
