"""Both revisions of the recording format, written from docs/recording-format.md alone, give what is in them."""
import json
import os
import sqlite3
import subprocess
import tempfile
import unittest

from support import NRG, np  # first: it skips where there is no numpy

from recording import NO_VALUE, Recording
from test_truth import documented_reader

MS = 1_000_000
START = 5_000_000_000
PID = 4000
LAYER, GAP = 30 * MS, 20 * MS  # a step: the layer on one CPU, then sleep
STEPS = 100
BEGIN, END = START + 2000 * MS, START + 2000 * MS + STEPS * (LAYER + GAP)
AFTER = END + 2000 * MS
IDLE_W, ACTIVE_W, OTHERS = 10.0, 40.0, 0.5  # OTHERS: CPUs of a program that is always there, at as many watts


def worked_ns(t):
    """CPU time of the program up to t."""
    t = np.clip(np.asarray(t), BEGIN, END) - BEGIN
    return t // (LAYER + GAP) * LAYER + np.minimum(t % (LAYER + GAP), LAYER)


def busy_ns(t):
    return worked_ns(t) + ((np.asarray(t) - START) * OTHERS).astype(np.int64)


def energy_uj(t):
    return ((np.asarray(t) - START) * IDLE_W + busy_ns(t) * ACTIVE_W).astype(np.int64) // 1000


def seconds(name, **more):
    return {"name": name, "quantity": "seconds", "unit": "s", "scale": 0.01, "resolution": 0.01, "update_ns": 10 * MS,
            "source": "/proc/stat", **more}


def write(path, revision):
    """A machine of two CPUs. Idle power is 10 W before the run; in revision 2, where that is measured after it too, 10 W again."""
    r = Recording(path)
    fast, slow = np.arange(START, AFTER, 10 * MS), np.arange(START + 7 * MS, AFTER, 100 * MS)
    r.samples("rapl-powercap", "package-0", 0.01, fast,
              [({"name": "package-0", "scale": 1e-6, "resolution": 1e-6, "update_ns": MS, "covers_cpu": 1}, energy_uj(fast))])
    idle = (2 * (slow - START) - busy_ns(slow)) // (10 * MS)
    if revision == 1:
        r.samples("machine", "machine", 0.1, slow, [(seconds("cpu.busy"), busy_ns(slow) // (10 * MS)), (seconds("cpu.idle"), idle)])
    else:
        r.samples("machine", "machine", 0.1, slow, [(seconds("cpu.idle"), idle)])
        r.samples("machine", "machine", 0.1, slow, [(seconds("cpu.busy", scale=1e-9, resolution=1e-9, update_ns=4 * MS,
                                                            source="/sys/fs/cgroup/cpuacct/cpuacct.usage"), busy_ns(slow))])
    t = slow[(slow >= BEGIN) & (slow <= END)]
    t = np.concatenate([[BEGIN], t, [END]])
    r.insert("process", (2, PID, 1, 1000, BEGIN, END, int(worked_ns(END)), 0, 1 << 20, 1000, 1, "program", "program", "", ""))
    r.series("processes", 0, ("process", "cpu_ns", "rss_bytes", "threads"), t,
             [np.full(len(t), 2), worked_ns(t), np.full(len(t), 1 << 20), np.full(len(t), 1)], order=0)
    steps = BEGIN + np.arange(STEPS) * (LAYER + GAP)
    if revision > 1:
        t = np.unique(np.concatenate([t, steps, steps + LAYER]))
    r.insert("span_track", (1, "thread", PID, PID, 1000, "", "main"))
    r.series("threads", 0, ("track", "cpu_ns"), t, [np.ones(len(t)), worked_ns(t)], order=0)
    r.insert("span_name", (1, "step", "step", ""), (2, "layer", "work", ""), (3, "layer", "wait", ""))
    events = []
    for i, at in enumerate(steps.tolist()):
        events += [(at, 0, 1, i), (at, 0, 2, NO_VALUE), (at + LAYER, 1, NO_VALUE, NO_VALUE), (at + LAYER, 0, 3, NO_VALUE),
                   (at + LAYER + GAP, 1, NO_VALUE, NO_VALUE), (at + LAYER + GAP, 1, NO_VALUE, NO_VALUE)]
    when, event, name, value = (np.array(c) for c in zip(*events))
    r.series("spans", 0, ("track", "event", "name", "value", "parent"), when,
             [np.ones(len(when)), event, name, value, np.full(len(when), NO_VALUE)])
    r.meta(nrg_version="by hand", command_line="program", cpus=2, begin_ns=START, end_ns=AFTER, process_method="polling",
           spans=3 * STEPS, spans_dropped=0, **({"revision": revision} if revision > 1 else {}))
    r.insert("run", (1, "baseline", START + 100 * MS, BEGIN - 100 * MS, None), (2, "run", BEGIN, END, 0))
    if revision > 1:
        r.insert("run", (3, "baseline", END + 100 * MS, AFTER - 100 * MS, None))
    r.close()


class Versions(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def nrg(self, *args):
        done = subprocess.run([NRG, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
        return json.loads(done.stdout)

    def made(self, revision):
        path = self.path(f"{revision}.nrg")
        write(path, revision)
        return path

    def test_reports_of_both(self):
        truth = float(energy_uj(END) - energy_uj(BEGIN)) * 1e-6
        for revision in (1, 2):
            r = self.nrg("report", "--json", self.made(revision))
            self.assertAlmostEqual(r["total"]["energy_j"] / truth, 1, delta=1e-4)
            self.assertEqual((len(r.get("runs", [0])), r["idle_method"]), (1, "baseline"))
            # The baseline holds the other program, which works at 20 W: idle and it together.
            self.assertAlmostEqual(r["idle_w"], IDLE_W + OTHERS * ACTIVE_W, delta=0.3)

    def test_attributions_of_both(self):
        for revision in (1, 2):
            rows = {row["name"]: row for row in self.nrg("attribute", "--json", self.made(revision))["rows"]}
            self.assertEqual((rows["step"]["calls"], rows["work"]["calls"], rows["wait"]["calls"]), (STEPS,) * 3)
            self.assertGreater(rows["work"]["energy_j"], rows["wait"].get("energy_j", 0))
            self.assertLess(rows["step"]["energy_j"], float(energy_uj(END) - energy_uj(BEGIN)) * 1e-6)

    def test_a_later_revision_is_read(self):
        path = self.made(2)
        db = sqlite3.connect(path)
        db.execute("UPDATE meta SET value = 99 WHERE key = 'revision'")
        db.commit()
        db.close()
        self.assertIn("total", self.nrg("report", "--json", path))

    def test_changes_are_bracketed(self):
        """A counter that updates every 70 ms and is read every 10 ms: each update lies inside of its bracket."""
        changes = documented_reader()["changes"]
        read = np.arange(0, 2000 * MS, 10 * MS)
        updates = np.arange(3 * MS, 2000 * MS, 70 * MS)
        shown = np.searchsorted(updates, read, side="right")
        found = list(changes(zip(read.tolist(), shown.tolist())))
        self.assertEqual(len(found), shown[-1] - shown[0])
        for (old_t, new_t, _, new), at in zip(found, updates):
            self.assertTrue(old_t < at <= new_t)


if __name__ == "__main__":
    unittest.main()
