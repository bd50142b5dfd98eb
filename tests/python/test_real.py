"""The package with the real libnrg: what ends up in a recording, read by the code of the format's document."""
import collections
import json
import os
import re
import sqlite3
import subprocess
import time
import unittest

from support import Case, LIMIT_S, NRG, PYTHON, TOP

# Constant, so that joules are watts times seconds.
SCENARIO = "domain package-0\n  power 40\ndomain dram-0\n  power 10\n"
BEGIN, END, MARK, COUNT = range(4)


def reader():
    with open(os.path.join(TOP, "docs", "recording-format.md"), encoding="utf-8") as text:
        source = re.search(r"^```python\n(.*?)^```", text.read(), re.M | re.S)[1]
    space = {"__name__": "reader"}
    exec(compile(source, "recording-format.md", "exec"), space)
    return space


def events(path):
    """[(t_ns, track name, event, name, kind, value)] of a recording, in order."""
    column = reader()["column"]
    db = sqlite3.connect(path)
    names = {row[0]: row[1:] for row in db.execute("SELECT id, name, kind FROM span_name")}
    tracks = {row[0]: row[1:] for row in db.execute("SELECT id, tid, kind, domain, name FROM span_track")}
    rows = []
    for series, columns in db.execute("SELECT id, n_columns FROM series WHERE kind = 'spans'").fetchall():
        for n, data in db.execute("SELECT n, data FROM chunk WHERE series = ? ORDER BY rowid", (series,)):
            at, values = 0, []
            for _ in range(columns + 1):
                decoded, at = column(data, at, n)
                values.append(decoded)
            for t_ns, track, event, name, value, _ in zip(*values):
                rows.append((t_ns, tracks[track], event) + (names[name] if name else ("", "")) + (value,))
    db.close()
    return rows


def shape(rows):
    """Names with their depth, per track."""
    depth, shown = collections.Counter(), collections.defaultdict(list)
    for _, track, event, name, _, value in rows:
        if event == END:
            depth[track] -= 1
            continue
        shown[track].append("  " * depth[track] + name + ("" if value is None else " %d" % value))
        depth[track] += event == BEGIN
    assert not any(depth.values()), depth
    return shown


class Real(Case):
    def setUp(self):
        super().setUp()
        self.scenario = self.write("scenario.txt", SCENARIO)
        done = self.python("import nrg; print(nrg._nrg.library())")
        self.assertTrue(done.stdout.strip().endswith("libnrg.so.0"), done.stdout)

    def events(self, name="run.nrg"):
        return events(self.path(name))

    def test_a_recording_made_from_inside(self):
        done = self.python("""
            import time, nrg
            with nrg.record("run.nrg", rate=100, sensors=["simulate:scenario.txt"], note={"batch": 32}) as run:
                with nrg.span("outer", kind="phase"):
                    for i in range(3):
                        with nrg.span("step", kind="step", number=i):
                            time.sleep(0.1)
                            nrg.count("samples", 32)
                nrg.mark("done")
            energy = run.energy()
            print(energy.joules / run.duration_s, energy.low <= energy.joules <= energy.high, *energy.domains)
            print(run.report()["metadata"]["note.batch"], run.duration_s > 0.3)
        """)
        power_w, inside, *domains = done.stdout.splitlines()[0].split()
        self.assertAlmostEqual(float(power_w), 50, delta=0.5)
        self.assertEqual((inside, sorted(domains)), ("True", ["dram-0", "package-0"]))
        self.assertEqual(done.stdout.splitlines()[1], "32 True")
        rows = self.events()
        (track, lines), = shape(rows).items()
        self.assertEqual(track[1], "thread")
        self.assertEqual(lines, ["outer"] + [line for i in range(3) for line in ("  step %d" % i, "    samples 32")] + ["done"])
        times = [row[0] for row in rows]
        self.assertEqual(times, sorted(times))
        begins = [row[0] for row in rows if row[2] == BEGIN and row[3] == "step"]
        self.assertGreaterEqual(begins[1] - begins[0], 100e6)

    def test_energy_so_far_is_the_reports_total(self):
        # Two phases are this machine's, the first meter is not. Counters: a late reading loses nothing.
        for scenario, power_w in [("domain other\n power 500\n wide\n"
                                   "domain one\n power 40\n wide\n covers-cpu\n"
                                   "domain two\n power 70\n wide\n covers-cpu\n", 110),
                                  (SCENARIO + "domain core-0\n power 30\ndomain psys\n power 90\n", 50)]:
            self.write("meters.txt", scenario)
            done = self.python("""
                import time, nrg
                with nrg.record("run.nrg", overwrite=True, rate=100, sensors=["simulate:meters.txt"]) as run:
                    time.sleep(0.3)
                    joules, provenance, t_ns = nrg._nrg.read()
                print(joules, t_ns, run.energy().joules / run.duration_s)
            """)
            joules, t_ns, total_w = (float(word) for word in done.stdout.split())
            db = sqlite3.connect(self.path("run.nrg"))
            (begin_ns,), = db.execute("SELECT begin_ns FROM run")
            db.close()
            self.assertAlmostEqual(total_w, power_w, delta=0.01 * power_w)
            self.assertAlmostEqual(joules * 1e9 / (t_ns - begin_ns), power_w, delta=0.01 * power_w)

    def test_one_after_the_other_in_one_process(self):
        self.python("""
            import nrg
            kept = nrg.span("kept")
            for i in range(3):
                with kept:
                    pass
                with nrg.record("run%d.nrg" % i, sensors="simulate:scenario.txt"):
                    with kept, nrg.span("only %d" % i):
                        nrg.mark("m")
        """)
        for i in range(3):
            (lines,) = shape(self.events("run%d.nrg" % i)).values()
            self.assertEqual(lines, ["kept", "  only %d" % i, "    m"])

    def test_under_nrg_run(self):
        script = self.write("marks.py", """
            import nrg
            with nrg.record("own.nrg"):
                @nrg.span("f")
                def f():
                    nrg.count("n", 2)
                f()
        """)
        done = self.run_process(NRG, "run", "--quiet", "--sensor", "simulate:" + self.scenario, "-o", "run.nrg", "--",
                                PYTHON, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("makes no file", done.stderr)
        self.assertFalse(os.path.exists(self.path("own.nrg")))
        (lines,) = shape(self.events()).values()
        self.assertEqual(lines, ["own.nrg", "  f", "    n 2"])

    def test_threads_and_processes_have_tracks_of_their_own(self):
        self.python("""
            import multiprocessing, threading, nrg
            def work(what):
                for i in range(500):
                    with nrg.span(what), nrg.span("inner"):
                        pass
            if __name__ == "__main__":
                with nrg.record("run.nrg", sensors="simulate:scenario.txt"):
                    jobs = [threading.Thread(target=work, args=("thread %d" % i,)) for i in range(4)]
                    jobs += [multiprocessing.get_context("fork").Process(target=work, args=("process",))]
                    for job in jobs[4:] + jobs[:4]:
                        job.start()
                    for job in jobs:
                        job.join()
        """)
        tracks = shape(self.events())
        self.assertEqual(len(tracks), 5)
        self.assertEqual(sorted(lines[0] for lines in tracks.values()), ["process"] + ["thread %d" % i for i in range(4)])
        for lines in tracks.values():
            self.assertEqual(lines, [lines[0], "  inner"] * 500)

    def test_work_of_another_device(self):
        self.python("""
            import time, nrg
            with nrg.record("run.nrg", sensors="simulate:scenario.txt"):
                begin = time.monotonic_ns()
                time.sleep(0.02)
                nrg._nrg.past(nrg._nrg.name("kernel", "layer"), "gpu-0", "gpu-0", begin, begin + 5000000)
        """)
        rows = self.events()
        self.assertEqual([row[2] for row in rows], [BEGIN, END])
        self.assertEqual(rows[0][3:5], ("kernel", "layer"))
        self.assertEqual((rows[0][1][2], rows[0][1][3]), ("gpu-0", "gpu-0"))
        self.assertAlmostEqual(rows[1][0] - rows[0][0], 5000000, delta=1000)

    def test_refusals(self):
        self.write("there.nrg", "x")
        done = self.python("""
            import errno, nrg
            for path, options in (("there.nrg", {}), ("no/such/folder.nrg", {}), ("a.nrg", {"sensors": "nonsense"}),
                                  ("a.nrg", {"rate": -5})):
                try:
                    nrg.record(path, **options).start()
                    print("recorded")
                except nrg.Error as error:
                    print(error, "/", errno.errorcode[error.errno])
        """)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 4, lines)
        self.assertRegex(lines[0], r"there\.nrg: exists already.*overwrite=True.* / EEXIST$")
        self.assertRegex(lines[1], r"no/such/folder\.nrg.* / ENOENT$")
        self.assertIn("nonsense", lines[2])
        self.assertRegex(lines[3], r"rate.* / EINVAL$")

    def written(self, name):
        """True when a recording that is being made holds spans, and readings of a second."""
        try:
            db = sqlite3.connect("file:%s?mode=ro" % self.path(name), uri=True)
            kinds = dict(db.execute("SELECT kind, max(last_ns) - min(first_ns) FROM chunk JOIN series ON series = series.id"
                                    " GROUP BY kind"))
            db.close()
        except sqlite3.OperationalError:  # not even made yet
            return False
        return "spans" in kinds and kinds.get("samples", 0) > 1e9

    def test_killed_in_the_middle_it_can_be_read(self):
        script = self.write("killed.py", """
            import time, nrg
            nrg.record("run.nrg", sensors="simulate:scenario.txt", rate=50).start()
            with nrg.span("before"):
                pass
            time.sleep(600)
        """)
        process = subprocess.Popen([PYTHON, script], env=self.env(), cwd=self.folder)
        self.addCleanup(process.kill)
        until = time.monotonic() + LIMIT_S
        while not self.written("run.nrg") and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        process.kill()
        process.wait()
        done = self.python("import nrg; run = nrg.open('run.nrg'); print(run.energy().joules / run.duration_s)")
        self.assertAlmostEqual(float(done.stdout), 50, delta=1)
        self.assertEqual([row[3] for row in self.events() if row[2] == BEGIN], ["before"])

    def test_tables(self):
        if subprocess.run([NRG, "attribute", "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("there is no nrg attribute yet")
        done = self.python("""
            import json, time, nrg
            with nrg.record("run.nrg", rate=200, sensors="simulate:scenario.txt") as run:
                for i in range(4):
                    with nrg.span("step", kind="step", number=i):
                        with nrg.span("short"):
                            time.sleep(0.1)
                        with nrg.span("long"):
                            time.sleep(0.3)
            table = run.table("path", method="integrate", idle="share")
            print(json.dumps([list(table), table.total_j, table.unattributed_j]))
        """)
        rows, total_j, _ = json.loads(done.stdout)
        found = {row["name"]: row for row in rows}
        self.assertEqual([found[n]["calls"] for n in ("step", "short", "long")], [4, 4, 4])
        for name in ("step", "short", "long"):
            self.assertAlmostEqual(found[name]["energy_j"], 50 * found[name]["time_s"], delta=0.03 * found[name]["energy_j"])
        self.assertGreaterEqual(total_j, found["step"]["energy_j"])


if __name__ == "__main__":
    unittest.main()
