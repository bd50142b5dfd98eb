"""Defaults of options in nrg.conf, and words that were probably meant."""
import json
import sqlite3
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

    def test_errors_have_file_and_line(self):
        for settings, why in (("\nrate = fast\n", "nrg.conf:2: rate wants a rate"),
                              ("rtae = 5Hz\n", "nrg.conf:1: there is no option 'rtae': did you mean 'rate'?"),
                              ("colour = blue\n", "'colour' is not a setting"),
                              ("run.per-cpu = maybe\n", "run.per-cpu wants yes or no, not 'maybe'"),
                              ("report.rate = 5Hz\n", "'report.rate'"), ("root = /tmp\n", "nrg.conf:1: ")):
            with self.subTest(settings):
                self.write("config/nrg/nrg.conf", settings)
                done = self.nrg("report", "a.nrg") if "colour" in settings else self.nrg("run", "--", "true")
                self.assertEqual(done.returncode, 2)
                self.assertIn(why, self.one_line(done.stderr))

    def test_a_captured_tree_sets_nothing(self):
        self.write("tree/etc/nrg.conf", "rate = fast\n")
        self.assertEqual(self.nrg("report", "--root", self.path("tree"), "--help").returncode, 0)


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
