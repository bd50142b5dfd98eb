"""Power cuts: what the recorder does to its files is written down, and the states that a disk may show after a cut are
rebuilt (disk_model.py). Each opens, has no less than docs/recording-format.md promises ("Durability"), and nothing wrong.

NRG_TEST_CUTS says how many states of each recording are tried (25); `make power-cuts` tries 1000.
"""
import json
import os
import sqlite3
import unittest

import disk_model
from retries import steadily
from support import *

CUTS = int(os.environ.get("NRG_TEST_CUTS", "25"))
SEED = int(os.environ.get("NRG_TEST_SEED", "1"))
SPANS = os.path.join(TOOLS, "span-maker")
POWER_W = 50
NOTHING_YET = r"\.nrg: holds no (run|readings of the run): its recorder was cut off before .*; record again$"


class Recorded:
    """A recording that is made on a logged disk, and what is promised of it."""

    def __init__(self, case, name, promised_s, options, command):
        self.name, self.promised_s = name, promised_s
        self.folder, self.log = case.path(name), case.path(name + ".log")
        self.path = os.path.join(self.folder, "run.nrg")
        os.makedirs(self.folder, exist_ok=True)
        self.before = {n: open(os.path.join(self.folder, n), "rb").read() for n in os.listdir(self.folder)}
        env = case.env(LD_PRELOAD=preload(DISK_LOG), NRG_TEST_DISK=self.folder, NRG_TEST_DISK_LOG=self.log)
        self.process = case.start("run", "-q", *options, "--sensor", "simulate:" + case.machine, "-o", self.path, "--", *command,
                                  env=env)

    def records(self):
        return disk_model.read_log(self.log)


class PowerCuts(Case):
    def setUp(self):
        super().setUp()
        self.machine = self.scenario(f"domain package-0\n power {POWER_W}\n")

    def test_plain(self):
        self.cut_all("plain", 5, ("--rate", "10Hz"), ("sleep", "7"))

    def test_slow(self):
        """Fewer commits, the same promise."""
        self.cut_all("slow", 5, ("--rate", "1Hz"), ("sleep", "8"))

    def test_durable(self):
        self.cut_all("durable", 1, ("--rate", "10Hz", "--durable"), ("sleep", "2.5"))

    def test_spans(self):
        """Many of them: SQLite folds the log into the file while recording."""
        part = f"{SPANS} threads 2 40000; sleep 1.2; "
        self.cut_all("spans", 5, ("--rate", "1kHz"), ("sh", "-c", 3 * part))
        log = disk_model.read_log(self.path("spans-0.log"))
        opened = next(i for i, r in enumerate(log) if r[1] == "open" and r[2][2] == "run.nrg")
        syncs = sum(r[1:3] == ("sync", log[opened][2][:1]) for r in log[opened:])
        self.assertGreater(syncs, 2, "the end has two: SQLite did not fold the log in before")

    def test_over_a_killed_recording(self):
        """The new file never meets the log of the old one."""
        for n in range(3):
            os.makedirs(self.path(f"force-{n}"))
            old = self.start("run", "-q", "-r", "100Hz", "-o", self.path(f"force-{n}", "run.nrg"), "--", "sleep", "60")
            eventually(lambda: begun(self.path(f"force-{n}", "run.nrg")), "a recording")
            for child in children_of(old.pid):
                os.kill(child, signal.SIGKILL)
            os.kill(old.pid, signal.SIGKILL)
            old.wait()
            self.assertTrue(os.path.exists(self.path(f"force-{n}", "run.nrg-wal")))
        self.cut_all("force", 5, ("--rate", "10Hz", "--force", "--note", "new=1"), ("sleep", "0.5"))

    def cut_all(self, name, promised_s, options, command):
        def measure(n):
            recorded = Recorded(self, f"{name}-{n}", promised_s, options, command)
            out, err = self.finish(recorded.process)
            self.assertEqual(recorded.process.returncode, 0, err)
            return self.cut(recorded)

        def check(worst_s):  # a machine that is too busy to let the recorder write adds to it
            self.assertLess(worst_s, promised_s)
        worst_s = steadily(check, measure, 3)
        print(f"# {name}: {CUTS} states, at most {worst_s:.2f} s lost of {promised_s} s promised")

    def cut(self, recorded):
        """Cuts the power at many moments; the longest time that was lost."""
        records = recorded.records()
        disk, at, worst_s = disk_model.Disk(recorded.before), 0, 0
        begin_ns = run_edges(recorded.path)[0]  # the command is started right after it
        for n, cut in enumerate(disk_model.cuts(records, CUTS, SEED) + [len(records)] * 3):
            for record in records[at:cut]:
                disk.apply(*record[1:])
            at = cut
            state = disk.after_cut(SEED * 100003 + n)
            with self.subTest(recording=recorded.name, cut=cut, of=len(records), n=n):
                cut_ns = records[min(cut, len(records) - 1)][0]
                worst_s = max(worst_s, self.look(recorded, state, cut_ns, cut_ns >= begin_ns, cut == len(records)))
        return worst_s

    def look(self, recorded, state, cut_ns, sure, ended):
        """Opens a state; how much it lost."""
        folder = self.path("state")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name, content in state.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(content)
        path = os.path.join(folder, "run.nrg")
        if not os.path.exists(path):
            self.assertFalse(sure, "there is no file, and the command may have started")
            return 0
        done = self.nrg("report", "--json", path)
        if done.returncode:
            self.assertRegex(self.one_line(done.stderr), NOTHING_YET)
        db = sqlite3.connect(path)
        try:
            return self.compare(recorded, db, {} if done.returncode else json.loads(done.stdout), cut_ns, sure, ended)
        finally:
            db.close()

    def compare(self, recorded, db, results, cut_ns, sure, ended):
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        meta = dict(db.execute("SELECT key, value FROM meta"))
        if recorded.before and meta.get("note.new") != "1":
            self.assertFalse(sure, "the old recording, which was overwritten")
            return 0
        for domain in results.get("domains", ()):
            if domain["name"] == "package-0" and domain.get("energy_j"):
                true_j = POWER_W * results["duration_s"]
                self.assertTrue(domain["low_j"] <= true_j * 1.001 and domain["high_j"] >= true_j * 0.999, domain)
        if ended:  # nrg has returned: nothing is missing
            self.assertEqual(results["exit_code"], 0)
            self.assertIn("end_ns", meta)
            return 0
        if "end_ns" in meta:
            return 0
        last_ns = db.execute("SELECT max(last_ns) FROM chunk c JOIN series s ON s.id = c.series "
                             "WHERE s.kind = 'samples'").fetchone()[0]
        return (cut_ns - (last_ns or int(meta["begin_ns"]))) / 1e9


if __name__ == "__main__":
    unittest.main()
