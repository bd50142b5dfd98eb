"""Defaults of options in nrg.conf, and words that were probably meant."""
import json
import re
import sqlite3
import subprocess
import unittest

from support import *

SCENARIO = "domain package-0\n power 50\n"


class Settings(Case):
    def run_with(self, settings, *args):
        """nrg run with a settings file; returns what the recording says about options."""
        self.write("config/nrg/nrg.conf", settings)
        done = self.nrg("run", "-q", "-f", "-o", self.path("a.nrg"), "--sensor", "simulate:" + self.scenario(SCENARIO),
                        *args, "--", "sleep", "0.2")
        self.assertEqual(done.returncode, 0, done.stderr)
        db = sqlite3.connect(self.path("a.nrg"))
        return {key[7:]: value for key, value in db.execute("SELECT key, value FROM meta WHERE key LIKE 'option.%'")}

    def report(self):
        return json.loads(self.nrg("report", "--json", self.path("a.nrg")).stdout)

    def test_a_default_is_used_and_kept(self):
        used = self.run_with("rate = 50Hz\n# comment\nrun.carbon-intensity = 100\nattribute.by = module\n")
        self.assertEqual(used, {"rate": "50Hz", "carbon-intensity": "100"})
        rows = self.nrg("export", "--format", "csv", self.path("a.nrg")).stdout.decode().count("package-0,energy")
        self.assertGreaterEqual(rows, 6)  # at 10 Hz there would be three
        self.write("config/nrg/nrg.conf", "")
        self.assertEqual(self.report()["carbon_intensity_g_per_kwh"], 100)

    def test_the_command_line_wins(self):
        self.assertEqual(self.run_with("rate = 50Hz\n", "--rate", "20Hz")["rate"], "20Hz")

    def test_secrets_stay_out(self):
        used = self.run_with("note = a=b\n", "--note", "c=d")
        self.assertEqual(used, {})
        notes = self.report()["metadata"]
        self.assertEqual((notes["note.a"], notes["note.c"]), ("b", "d"))

    def test_flags_are_yes_or_no(self):
        self.assertEqual(self.run_with("run.per-cpu = yes\n"), {"per-cpu": "yes"})
        self.assertEqual(self.run_with("run.per-cpu = off\n"), {"per-cpu": "off"})

    def test_a_value_that_may_be_left_out(self):
        """`json = yes` is --json; it wrote a file called yes."""
        for settings, starts in (("report.json = yes\n", b"{"), ("report.json = no\n", b"s")):
            self.run_with(settings)
            done = subprocess.run([NRG, "report", self.path("a.nrg")], stdout=subprocess.PIPE, env=self.env(), cwd=self.path("."), check=True)
            self.assertEqual(done.stdout[:1], starts, done.stdout[:80])
            self.assertNotIn("yes", os.listdir(self.path(".")))

    def test_errors_have_file_and_line(self):
        for settings, why in (("\nrate = fast\n", "nrg.conf:2: rate wants a rate"),
                              ("rtae = 5Hz\n", "nrg.conf:1: there is no option 'rtae': did you mean 'rate'?"),
                              ("run.rtae = 5Hz\n", "there is no option 'run.rtae': did you mean 'rate'?"),
                              ("colour = blue\n", "'colour' is not a setting"),
                              ("run.per-cpu = maybe\n", "run.per-cpu wants yes or no, not 'maybe'"),
                              ("report.rate = 5Hz\n", "'report.rate'"), ("root = /tmp\n", "nrg.conf:1: ")):
            with self.subTest(settings):
                self.write("config/nrg/nrg.conf", settings)
                done = self.nrg("report", "a.nrg") if "colour" in settings else self.nrg("run", "--", "true")
                self.assertEqual(done.returncode, 2 if "colour" in settings else 125)
                self.assertIn(why, self.one_line(done.stderr))

    def test_a_captured_tree_sets_nothing(self):
        self.write("tree/etc/nrg.conf", "rate = fast\n")
        self.assertEqual(self.nrg("report", "--root", self.path("tree"), "--help").returncode, 0)


class Completion(Case):
    def test_values(self):
        script = self.nrg("help", "--completion").stdout.decode()
        for words, wanted in ((["run", "--rate", "10"], "10Hz 100Hz"), (["run", "--torch", "=", "mo"], "modules"),
                              (["meter", "w"], "watch"), (["profile", "s"], "show"), (["help", "att"], "attribute"),
                              (["run", "--sensor", "simu"], "simulate")):
            with self.subTest(words):
                done = subprocess.run(["bash", "-c", script + 'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))\n_nrg\n'
                                       'echo "${COMPREPLY[@]}"', "-", "nrg", *words], stdout=subprocess.PIPE, text=True, check=True)
                self.assertEqual(done.stdout.strip(), wanted)


class Width(Case):
    """Reports and help in 80 columns, with a micro sign where the locale has one."""

    def test_reports_fit(self):
        done = self.nrg("run", "-q", "-o", self.path("a.nrg"), "--sensor", "simulate:" + self.scenario(
            "domain package-0\n power 0.00001\ndomain a-domain-with-a-long-name\n power 50\n"), "--", "sh", "-c",
            "sleep 0.2; : a command line that is so long that it can not stand in the last column of eighty columns")
        self.assertEqual(done.returncode, 0, done.stderr)
        for locale, unit in (("C.UTF-8", "µJ"), ("C", "uJ")):
            text = self.nrg("report", self.path("a.nrg"), env=self.env(COLUMNS="80", LC_ALL=locale)).stdout.decode()
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 80, text)
            self.assertRegex(text, rf"package-0 .* {unit}\b")
            self.assertIn("a-domain-with-a-long-name", text)

    def test_help_fits(self):
        for command in re.findall(r"^  (\w+) ", self.nrg("help").stdout.decode(), re.M):
            for line in self.nrg(command, "--help").stdout.decode().splitlines():
                self.assertLessEqual(len(line), 80, f"nrg {command} --help: {line}")


class Guesses(Case):
    def test_words_that_were_meant(self):
        for args, meant in ((["reprot", "a"], "did you mean 'report'?"), (["att", "a"], "did you mean 'attribute'?"),
                            (["run", "--bseline", "1s", "--", "true"], "did you mean --baseline?"),
                            (["graph", "--detph=3", "a"], "did you mean --depth?")):
            with self.subTest(args):
                done = self.nrg(*args)
                self.assertEqual(done.returncode, 2)
                self.assertIn(meant, self.one_line(done.stderr))
        self.assertNotIn("did you mean", self.one_line(self.nrg("xylophone").stderr))


if __name__ == "__main__":
    unittest.main()
