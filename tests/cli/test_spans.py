"""Spans from programs to the file: known numbers of known names, read back with the documents' own reader.

Also run with the TSan build: the marking side and the recorder's are in one address space when a program
records itself.
"""
import collections
import glob
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import unittest

from support import LIMIT_S, NRG, TOOLS, TOP, Case, can_unshare, eventually, needs_root, query

MAKER = os.path.join(TOOLS, "span-maker")
BEGIN, END, MARK, COUNT = range(4)
Event = collections.namedtuple("Event", "t_ns track event name value parent")


def documented_reader():
    """The functions of docs/recording-format.md."""
    with open(os.path.join(TOP, "docs", "recording-format.md"), encoding="utf-8") as f:
        source = re.search(r"^```python\n(.*?)^```", f.read(), re.M | re.S)[1]
    scope = {"__name__": "reader"}
    exec(source, scope)
    return scope


READER = documented_reader()


def rows(path, kind):
    """Rows of all series of a kind, each series in order of its chunks, and of time inside a chunk."""
    found = []
    for series, columns in query(path, f"SELECT id, n_columns FROM series WHERE kind='{kind}' ORDER BY id"):
        last_ns = 0
        for first, last, unit, n, data in query(
                path, "SELECT first_ns, last_ns, time_unit_ns, n, data FROM chunk"
                      f" WHERE series={series} ORDER BY id"):
            if first < last_ns:
                raise AssertionError(f"a chunk of {kind} begins before the one before has ended")
            last_ns = last
            times, at = READER["column"](data, 0, n)
            values = []
            for _ in range(columns):
                column, at = READER["column"](data, at, n)
                values.append(column)
            chunk = list(zip([first + t * unit for t in times], *values))
            found += sorted(chunk, key=lambda row: row[0])
    return found


def events(path):
    return [Event(*row) for row in rows(path, "spans")]


def meta(path, key):
    found = query(path, f"SELECT value FROM meta WHERE key='{key}'")
    return found[0][0] if found else None


class Spans(Case):
    def record(self, *command, code=0, options=(), **kw):
        """nrg run of the maker: (recording, what it printed)."""
        recording = self.path("run.nrg")
        done = self.nrg("run", "-q", "--force", "--sensor", "machine", *options, "-o", recording, "--", *command, **kw)
        self.assertNotIn(b"ThreadSanitizer", done.stderr)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotIn(b"ThreadSanitizer", done.stdout)
        return recording, done.stdout.decode().split()

    def check_steps(self, recording, tracks, steps):
        """Every track has its steps, nested as the maker nests them, in order of time."""
        all_events = events(recording)
        names = {i: (kind, name) for i, kind, name in query(recording, "SELECT id, kind, name FROM span_name")}
        by_track = collections.defaultdict(list)
        for e in all_events:
            by_track[e.track].append(e)
        self.assertEqual(len(by_track), tracks)
        for track, own in by_track.items():
            self.assertEqual([e.t_ns for e in own], sorted(e.t_ns for e in own))
            shapes = collections.Counter()
            numbers, stack = [], []
            for e in own:
                self.assertIsNone(e.parent)
                if e.event == BEGIN:
                    stack.append(names[e.name])
                    shapes[tuple(kind for kind, _ in stack)] += 1
                    if names[e.name] == ("step", "step"):
                        numbers.append(e.value)
                elif e.event == END:
                    self.assertIsNone(e.name)
                    stack.pop()
                elif e.event == COUNT:
                    self.assertEqual((names[e.name], e.value), (("counter", "items"), 3))
                    self.assertEqual([name for _, name in stack][0::2], ["step", "inner"])
                else:
                    self.assertEqual((e.event, names[e.name]), (MARK, ("mark", "done")))
            self.assertEqual(stack, [])
            self.assertEqual(numbers, list(range(steps)))
            self.assertEqual(shapes, {("step",): steps, ("step", "span"): steps, ("step", "span", "span"): steps})
            self.assertEqual(sum(e.event == COUNT for e in own), steps)
            self.assertEqual(sum(e.event == MARK for e in own), steps)
        self.assertEqual(meta(recording, "spans"), 3 * tracks * steps)
        self.assertEqual(meta(recording, "spans_dropped"), 0)
        self.assertEqual(meta(recording, "spans_damaged"), 0)

    def test_threads(self):
        recording, said = self.record(MAKER, "threads", "4", "3000")
        self.assertEqual(said, ["active"])
        self.check_steps(recording, 4, 3000)
        pids = query(recording, "SELECT DISTINCT pid, start_ticks FROM span_track")
        self.assertEqual(len(pids), 1)
        # The process table knows it by the same pid and start.
        self.assertEqual(len(query(recording, "SELECT 1 FROM process p JOIN span_track t ON p.pid = t.pid AND"
                                              " p.start_ticks = t.start_ticks LIMIT 1")), 1)

    def readings(self, *options, command=(MAKER, "busy", "500")):
        """How often a simulated package was read, and how often ten times a second would be."""
        scenario = self.write("scenario.txt", "domain package-0\n power 50\n")
        recording, _ = self.record(*command, options=("--sensor", f"simulate:{scenario}", *options))
        (first, last, n), = query(recording, "SELECT min(first_ns), max(last_ns), sum(n) FROM chunk JOIN channel USING (series)"
                                             " WHERE name='package-0'")
        return n, (last - first) / 1e8

    def test_sensors_are_read_faster_from_the_first_span_on(self):
        n, slow = self.readings()
        self.assertGreater(n, 2 * slow)
        n, slow = self.readings("--rate", "10Hz")
        self.assertLess(n, slow + 10)  # and at the edges
        n, slow = self.readings(command=("sleep", "0.7"))
        self.assertLess(n, slow + 10)
        n, slow = self.readings("--torch", command=("sleep", "0.7"))
        self.assertGreater(n, 2 * slow)

    def test_processes(self):
        recording, _ = self.record(MAKER, "fork", "3", "2", "200")
        self.check_steps(recording, 6, 200)
        self.assertEqual(query(recording, "SELECT count(DISTINCT pid) FROM span_track")[0][0], 3)
        # The same texts have one id, whichever process wrote them.
        self.assertEqual(query(recording, "SELECT count(*), count(DISTINCT name) FROM span_name")[0], (6, 6))

    def test_descriptors_closed_before_exec(self):
        recording, said = self.record(MAKER, "exec", "2", "100")
        self.assertEqual(said, ["active", "active"])
        self.check_steps(recording, 2, 100)

    def test_started_by_python_which_closes_descriptors(self):
        script = f"import subprocess; subprocess.run([{MAKER!r}, 'threads', '1', '50'], check=True)"
        recording, said = self.record(sys.executable, "-c", script)
        self.assertEqual(said, ["active"])
        self.check_steps(recording, 1, 50)

    def test_without_recorder(self):
        done = subprocess.run([MAKER, "threads", "2", "10"], stdout=subprocess.PIPE, env=self.env(), timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stdout), (0, b"idle\n"))

    def test_old_variable(self):
        # Left over from a recorder that has ended: the number may be anybody's.
        done = subprocess.run([MAKER, "threads", "2", "10"], stdout=subprocess.PIPE, timeout=LIMIT_S,
                              env=self.env(NRG_SPANS="1,1,1,00112233445566778899aabbccddeeff,/proc/1/fd/1"))
        self.assertEqual((done.returncode, done.stdout), (0, b"idle\n"))

    def test_killed(self):
        recording, _ = self.record(MAKER, "kill", "40", code=128 + signal.SIGKILL)
        own = events(recording)
        begins, ends = (sum(e.event == kind for e in own) for kind in (BEGIN, END))
        self.assertEqual((begins, ends), (3 * 40 + 1, 3 * 40))
        name = query(recording, f"SELECT name FROM span_name WHERE id={own[-1].name}")[0][0]
        self.assertEqual((own[-1].event, name), (BEGIN, "left open"))

    def test_recorder_killed(self):
        # The program goes on as if nothing had happened, and what was recorded can be read.
        recording, done = self.path("run.nrg"), self.path("done")
        nrg = self.start("run", "-q", "--sensor", "machine", "-o", recording, "--", "sh", "-c",
                         f"{MAKER} threads 2 150000; echo $? > {done}.new; mv {done}.new {done}")

        def kinds():
            try:
                return {kind for kind, in query(recording, "SELECT DISTINCT kind FROM series JOIN chunk ON series.id = series")}
            except sqlite3.OperationalError:  # not even made yet
                return set()
        # The first readings may all be from before the run.
        eventually(lambda: kinds() >= {"spans", "samples"} and not self.nrg("report", recording).returncode,
                   "the first spans and readings of the run")
        os.kill(nrg.pid, signal.SIGKILL)
        self.finish(nrg)
        eventually(lambda: os.path.exists(done), "the end of the program")
        with open(done) as f:
            self.assertEqual(f.read().strip(), "0")
        shown = self.nrg("report", recording)
        self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_thread_that_ends_with_an_open_span(self):
        recording, _ = self.record(MAKER, "leave", "5")
        own = events(recording)
        self.assertEqual(sum(e.event == BEGIN for e in own), sum(e.event == END for e in own))

    def test_recorder_inside_another(self):
        inner = self.path("inner.nrg")
        recording, said = self.record(NRG, "run", "-q", "-f", "--sensor", "machine", "-o", inner, "--", MAKER,
                                      "threads", "1", "30")
        self.assertEqual(said, ["active"])
        self.check_steps(inner, 1, 30)
        self.assertEqual(events(recording), [])

    def test_recorder_in_the_program(self):
        recording = self.path("self.nrg")
        # LeakSanitizer's tracer crashes on the thread that has a table of descriptors of its own (record/isolate.c).
        environment = self.env(ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
        # The recorder's threads have no standard error of the program's: what a sanitizer finds there goes to a file.
        found = self.path("found")
        environment["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "") + ":log_path=" + found
        done = subprocess.run([MAKER, "inside", recording, "500"], capture_output=True, env=environment, timeout=LIMIT_S)
        for name in glob.glob(found + ".*"):
            with open(name) as report:
                self.fail(report.read())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_steps(recording, 2, 500)
        self.assertEqual(self.nrg("report", recording).returncode, 0)

    def test_burst_loses_whole_spans_and_says_so(self):
        recording, _ = self.record(MAKER, "burst", "400000")
        own = events(recording)
        begins, ends = (sum(e.event == kind for e in own) for kind in (BEGIN, END))
        dropped = meta(recording, "spans_dropped")
        self.assertEqual(begins, ends)
        self.assertEqual(begins + dropped, 400000)
        results = self.nrg("report", "--json", recording)
        results = json.loads(results.stdout)
        self.assertEqual(results["spans"], {"count": begins, "dropped": dropped,
                                            **({"dropped_by": {"ring_full": dropped}} if dropped else {})})
        text = self.nrg("report", recording).stdout.decode()
        self.assertIn(f"{begins} spans", text)
        if dropped:  # a slow machine may keep up
            self.assertIn(f"{dropped} dropped", text)
            self.assertIn("some are missing", self.missing(results, "spans"))

    def test_full_names_are_counted(self):
        """16 MB hold some 4,100 of the names; spans with their counts, the mark and the count that have others are all counted."""
        recording, _ = self.record(MAKER, "names", "6000")
        begins = sum(e.event == BEGIN for e in events(recording))
        dropped = meta(recording, "spans_dropped")
        self.assertGreater(begins, 4000)
        self.assertEqual(begins + dropped, 6002 + 6000 - begins)
        results = json.loads(self.nrg("report", "--json", recording).stdout)
        self.assertEqual(results["spans"], {"count": begins, "dropped": dropped, "dropped_by": {"names_full": dropped}})
        self.assertIn(f"{dropped} dropped ({dropped} no room for their names)", self.nrg("report", recording).stdout.decode())
        self.assertIn("no room for more names", self.missing(results, "spans"))
        self.assertIn("no room for their names", self.nrg("attribute", recording).stdout.decode())

    def test_too_deep_spans_are_counted_with_their_counts(self):
        recording, _ = self.record(MAKER, "deep", "1100")
        own = events(recording)
        self.assertEqual(sum(e.event == BEGIN for e in own), 1024)
        results = json.loads(self.nrg("report", "--json", recording).stdout)
        self.assertEqual(results["spans"], {"count": 1024, "dropped": 152, "dropped_by": {"nested_too_deep": 152}})

    def refused(self, script):
        """Runs two programs that mark, in memory that the script has changed before."""
        change = ("import mmap, os, subprocess, sys\nfd = int(os.environ['NRG_SPANS'].split(',')[1])\n"
                  "page = mmap.mmap(fd, 4096)\n" + script +
                  "\nfor i in range(2): subprocess.run([sys.argv[1], 'threads', '1', '5'], pass_fds=[fd],"
                  " stderr=subprocess.STDOUT)\n")
        recording, words = self.record(sys.executable, "-c", change, MAKER)
        return recording, " ".join(words)

    def test_a_program_of_another_layout_is_said(self):
        recording, said = self.refused("page[8] = 77")
        self.assertEqual(said, "idle idle")
        results = json.loads(self.nrg("report", "--json", recording).stdout)
        self.assertEqual(results["spans"], {"count": 0, "dropped": 0, "refused_programs": 2})
        self.assertIn("2 programs marked with a libnrg of another version: not recorded",
                      self.nrg("report", recording).stdout.decode())
        self.assertIn("2 programs marked with a libnrg of another layout", self.missing(results, "spans"))

    def test_a_recorder_that_can_not_know(self):
        """An earlier one has nothing where programs could tell it: the first of them says it, once."""
        _, said = self.refused("page[8] = 1\npage[2048:2056] = bytes(8)")
        self.assertEqual(said.count("the recorder is of another version of nrg"), 1, said)

    def test_cpu_time_of_threads(self):
        recording, _ = self.record(MAKER, "busy", "400")
        names = dict(query(recording, "SELECT name, id FROM span_name"))
        own = events(recording)
        edges = {name: [e.t_ns for i, e in enumerate(own) if e.name == names[name] or (i and own[i - 1].name == names[name])]
                 for name in ("busy", "asleep")}
        cpu = sorted((t, ns) for t, _, ns in rows(recording, "threads"))
        self.assertEqual(cpu, sorted(cpu, key=lambda row: row[1]))

        def at(t):
            before, after = [row for row in cpu if row[0] <= t], [row for row in cpu if row[0] > t]
            if not before or not after:
                return (before or after)[-1 if before else 0][1]
            (t0, a), (t1, b) = before[-1], after[0]
            return a + (b - a) * (t - t0) / (t1 - t0)

        busy_ns = at(edges["busy"][1]) - at(edges["busy"][0])
        asleep_ns = at(edges["asleep"][1]) - at(edges["asleep"][0])
        # Exact but for what a tick of the kernel hides; the interval around the end of the work, of 100 ms
        # where the machine lets it, spreads its CPU time over both.
        self.assertAlmostEqual(busy_ns + asleep_ns, 400e6, delta=15e6)
        between = [b[1] - a[1] for a, b in zip(cpu, cpu[1:]) if a[0] <= edges["busy"][1] < b[0]]
        self.assertLessEqual(asleep_ns, sum(between) + 10e6)

    def test_small_limit_of_files(self):
        # The shared memory would be beyond it: no spans, but the command is measured.
        recording, said = self.record("sh", "-c", f"ulimit -f unlimited; {MAKER} threads 1 5",
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, -1)))
        self.assertEqual(said, ["idle"])
        self.assertIn(("spans",), query(recording, "SELECT source FROM event WHERE kind='unavailable'"))

    @needs_root
    @unittest.skipUnless(can_unshare("--pid", "--fork", "--mount-proc"), "needs pid namespaces")
    def test_another_pid_namespace(self):
        # Its pids are not ours: spans come, CPU times of strangers do not.
        recording, said = self.record("unshare", "--pid", "--fork", "--mount-proc", MAKER, "threads", "2", "100")
        self.assertEqual(said, ["active"])
        self.check_steps(recording, 2, 100)


if __name__ == "__main__":
    unittest.main()
