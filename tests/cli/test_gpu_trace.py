"""nrg run --gpu-trace: kernels through a stand-in for CUPTI that is told what runs (tests/fake_cupti), NVTX's ranges
through a stand-in for its loader (nvtx_stand_in.py; the real NVTX is in tests/house/test_gpu_headers.py). What real kernels did comes from public traces of PyTorch's
profiler: `nrg import` reads the same trace, and both must give the same spans."""
import collections
import glob
import gzip
import json
import os
import re
import subprocess
import unittest

import support

PLAYER = os.path.join(support.TOOLS, "cuda-player")
FAKE = os.path.join(support.TOOLS, "libcupti-fake.so")
CLIENT = os.path.join(support.TOOLS, "roctx-client")
DUMP = os.path.join(support.TOOLS, "spans-dump")
STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nvtx_stand_in.py")
SHARED = os.environ.get("NRG_SHARED", os.path.join(support.TOP, "..", "shared"))
TRACES = os.path.join(SHARED, "data", "kineto")
KERNEL, COPY, FILL = 10, 1, 2
PLAIN = os.environ.get("NRG_PLAIN_BUILD") or os.path.dirname(support.NRG)


def spans_of(recording):
    out = subprocess.run([DUMP, recording], check=True, capture_output=True, text=True).stdout
    return [dict({"path": [], "end_ns": None}, **json.loads(line)) for line in out.splitlines()]


def script_of(threads, work):
    """threads: lists of (t_ns, word, rest); work: (kind, device, context, stream, correlation, start, end, name)."""
    lines = []
    for number, events in enumerate(threads):
        lines.append(f"thread {number}")
        lines += [f"{word} {t} {rest}".rstrip() for t, word, rest in events]
    lines += ["work " + " ".join(map(str, item)) for item in work]
    return "\n".join(lines) + "\n"


class Trace(support.Case):
    def run_nrg(self, *args, code=0, **environment):
        """nrg's result with its texts as such."""
        done = self.nrg(*args, env=self.env(**environment))
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def play(self, script, *options, odd="", code=7, **environment):
        path = self.write("script.txt", script)
        recording = self.path("run.nrg")
        more = dict(NRG_CUPTI_LIBRARY=FAKE, FAKE_CUPTI=odd)
        more.update(environment)
        done = self.run_nrg("run", "--gpu-trace", "--sensor", "machine", "-q", "-f", "-o", recording, "--", PLAYER, *options,
                            path, code=code, **more)
        return done, recording

    def notes(self, recording):
        got = json.loads(self.run_nrg("attribute", "--json", recording).stdout)
        return " / ".join(json.dumps(n, ensure_ascii=False) for n in got.get("notes", []))

    def layers(self, n=40, streams=2):
        """n layers on one thread, each with a kernel on one of the streams some time later."""
        events, work = [], []
        for i in range(n):
            t = i * 1_000_000
            events += [(t, "begin", f"layer {i % 4}"), (t + 1, "begin", "op"), (t + 2, "call", i + 1),
                       (t + 3, "end", ""), (t + 4, "end", "")]
            start = t + 30_000_000
            work.append((KERNEL, 0, 1, 7 + i % streams, i + 1, start, start + 700_000, f"_Z6kernel{i % 3}v"))
        return [events], work

    def check_layers(self, done, recording, work):
        base = int(done.stdout.split()[1])
        got = [s for s in spans_of(recording) if s["track_kind"] == "gpu"]
        self.assertEqual(len(got), len(work))
        by_start = {s["begin_ns"] - base: s for s in got}
        for i, (_, _, _, stream, _, start, end, _) in enumerate(work):
            s = by_start[start]
            self.assertEqual((s["end_ns"] - base, s["track"], s["domain"], s["kind"]),
                             (end, f"GPU 0 stream {stream}", "gpu-0", "kernel"))
            self.assertEqual(s["path"], [f"layer {i % 4}", "op"])


class Kernels(Trace):
    def test_kernels_are_below_what_launched_them(self):
        threads, work = self.layers()
        done, recording = self.play(script_of(threads, work))
        self.check_layers(done, recording, work)
        self.assertIn("40 spans of GPU work from 80 records", self.notes(recording))

    def test_records_that_come_late(self):
        threads, work = self.layers()
        done, recording = self.play(script_of(threads, work), odd="late")
        self.check_layers(done, recording, work)

    def test_a_thread_without_spans(self):
        events = [(0, "call", 1)]
        done, recording = self.play(script_of([events], [(KERNEL, 0, 1, 7, 1, 5_000_000, 6_000_000, "k")]))
        kernel, = [s for s in spans_of(recording) if s["track_kind"] == "gpu"]
        self.assertEqual(kernel["path"], [])  # not below what main has open

    def test_threads_contexts_devices_copies(self):
        threads = [[(0, "begin", "a"), (1000, "call", 1), (30_000_000, "call", 2), (40_000_000, "end", "")],
                   [(0, "begin", "b"), (1000, "call", 3), (2000, "call", 4), (40_000_000, "end", "")]]
        work = [(COPY, 0, 1, 7, 1, 10_000_000, 11_000_000, "-"), (KERNEL, 1, 2, 7, 2, 50_000_000, 51_000_000, "k"),
                (FILL, 0, 1, 8, 3, 10_000_000, 12_000_000, "-"), (KERNEL, 0, 3, 7, 4, 60_000_000, 61_000_000, "k")]
        done, recording = self.play(script_of(threads, work), CUDA_VISIBLE_DEVICES="4,2")
        got = {(s["track"], s["domain"], s["name"], s["detail"], s["path"][0])
               for s in spans_of(recording) if s["track_kind"] == "gpu"}
        self.assertEqual(got, {("GPU 4 stream 7", "gpu-4", "Memcpy HtoD (Pageable -> Device)", "memcpy", "a"),
                               ("GPU 2 stream 7", "gpu-2", "k", "", "a"),
                               ("GPU 4 stream 8", "gpu-4", "Memset (Device)", "memset", "b"),
                               ("GPU 4 stream 7 of context 3", "gpu-4", "k", "", "b")})

    def waited(self, done, gaps):
        """Calls as the player made them, {correlation: (begin, end)} from its base on, and their seconds within the gaps (ms), each moment
        once: however late a busy machine woke its threads."""
        base = int(done.stdout.split()[1])
        calls = {int(n): (int(begin) - base, int(end) - base) for n, begin, end in re.findall(r"^sync (\d+) (\d+) (\d+)$", done.stdout, re.M)}
        parts = sorted((max(a * 1_000_000, begin), min(b * 1_000_000, end)) for begin, end in calls.values() for a, b in gaps)
        total, reached = 0, 0
        for begin, end in parts:
            total += max(0, end - max(begin, reached))
            reached = max(reached, end)
        return base, calls, total * 1e-9

    def test_what_the_gpu_waited_for(self):
        """Kernels at 40..80, 120..160 and 240..280 ms; a call that waits 80 ms on one thread, from 60 ms on, one of 20 ms on another, from
        180 ms on. A machine with much to do begins them later: what counts is when they were. The first is longer than a kernel,
        and so waits in a gap however late it is, up to 180 ms."""
        ms = 1_000_000
        threads = [[(0, "begin", "step"), (4 * ms, "call", 1), (8 * ms, "call", 2), (12 * ms, "call", 3), (60 * ms, "sync", f"7 {80 * ms}"),
                    (168 * ms, "end", "")], [(180 * ms, "sync", f"8 {20 * ms}")]]
        work = [(KERNEL, 0, 1, 7, n, start * ms, end * ms, "k") for n, start, end in ((1, 40, 80), (2, 120, 160), (3, 240, 280))]
        done, recording = self.play(script_of(threads, work))
        base, calls, expected = self.waited(done, ((80, 120), (160, 240)))
        waits = [s for s in spans_of(recording) if s["kind"] == "runtime"]
        self.assertEqual(sorted((s["begin_ns"] - base, s["end_ns"] - base, s["name"], tuple(s["path"])) for s in waits),
                         sorted((*calls[n], "cudaStreamSynchronize", path) for n, path in ((7, ("step",)), (8, ()))))  # once each
        for s in waits:
            self.assertRegex(s["track"], r"^waits of thread \d+$")
        said = json.loads(self.run_nrg("attribute", "--json", recording).stdout)["waiting"]
        got = {p["kind"]: p["seconds"] for p in said["parts"]}
        self.assertAlmostEqual(sum(got.values()), 0.120, delta=1e-9)
        self.assertAlmostEqual(got.get("synchronisation", 0), expected, delta=1e-8)
        self.assertGreater(expected, 0)

    def test_which_gpu_a_call_waits_for(self):
        """One process, two GPUs, both with kernels at 10..20 and 60..70 ms. CUPTI's records of synchronisation say that a call from 25 to
        30 ms waits for context 1, which is GPU 0's; that cudaMemcpy waits for GPU 1 from 35 to 45 ms; and of a query and of a stream's
        wait for an event from 50 to 55 ms, in which no thread waits."""
        ms = 1_000_000
        threads = [[(0, "begin", "step"), *[(n * ms, "call", n) for n in (1, 2, 3, 4)], (25 * ms, "sync", f"7 {5 * ms} 1"),
                    (35 * ms, "sync", f"8 {10 * ms} 2 2"), (50 * ms, "sync", f"9 {2 * ms} 1 3"), (53 * ms, "sync", f"10 {2 * ms} 2 4"),
                    (57 * ms, "end", "")]]
        work = [(KERNEL, device, device + 1, 7, 1 + device + 2 * i, start * ms, (start + 10) * ms, "k") for device in (0, 1)
                for i, start in enumerate((10, 60))]
        done, recording = self.play(script_of(threads, work))
        base = int(done.stdout.split()[1])
        waits = [s for s in spans_of(recording) if s["kind"] == "runtime"]
        self.assertEqual(sorted((s["name"], s["detail"], *s["path"]) for s in waits),
                         [("Context Sync", "gpu-1", "step"), ("cudaStreamSynchronize", "gpu-0", "step")])
        said = json.loads(self.run_nrg("attribute", "--json", recording).stdout)["waiting"]
        got = {(p["device"], p["kind"]): p["seconds"] for p in said["parts"]}
        for s in waits:  # a busy machine begins them later, maybe after the gap
            begin, end = (max(20 * ms, min(s[t] - base, 60 * ms)) for t in ("begin_ns", "end_ns"))
            self.assertAlmostEqual(got.get((s["detail"], "synchronisation"), 0), (end - begin) * 1e-9, delta=1e-8)
            self.assertAlmostEqual(got.get((s["detail"], "gap"), 0), 0.040 - (end - begin) * 1e-9, delta=1e-8)

    def test_spans_that_were_open_before_cuda_was(self):
        """The player opens `main` before it initialises CUDA, and launches from there: the recorder knows it from the thread's own ring."""
        done, recording = self.play(script_of([], [(KERNEL, 0, 1, 7, 1, 5_000_000, 6_000_000, "k")]), "--launch")
        kernel, = [s for s in spans_of(recording) if s["track_kind"] == "gpu"]
        self.assertEqual(kernel["path"], ["main"])

    def test_more_at_the_end_than_a_ring_holds(self):
        """What is held for half a second comes at once when the program ends: 30,000 kernels, and a ring has room for 21,845. The recorder
        takes none for 300 ms, as on a machine with much to do."""
        n = 30_000
        work = [(KERNEL, 0, 1, 7, 1, 1_000_000 + 3000 * i, 1_002_000 + 3000 * i, "k") for i in range(n)]
        done, recording = self.play(script_of([], work), "--launch", "--hold")
        got = json.loads(self.run_nrg("attribute", "--json", recording).stdout)
        self.assertEqual((got["dropped"], sum(r["calls"] for r in got["rows"] if r["name"] == "k")), (0, n))
        self.assertIn(f"{n} spans of GPU work from {n + 1} records", self.notes(recording))

    def test_an_old_cupti(self):
        """Without clock, thread ids and period: times are tied, flushes are asked for; only threads are not known."""
        threads, work = self.layers(10, 1)
        done, recording = self.play(script_of(threads, work), odd="old")
        base = int(done.stdout.split()[1])
        got = [s for s in spans_of(recording) if s["track_kind"] == "gpu"]
        self.assertEqual(len(got), 10)
        for s, item in zip(sorted(got, key=lambda s: s["begin_ns"]), work):
            self.assertLess(abs(s["begin_ns"] - base - item[5]), 5_000_000)
            self.assertAlmostEqual(s["end_ns"] - s["begin_ns"], 700_000, delta=1_000_000)

    def test_what_is_dropped_is_said(self):
        """Records that came and those that are missing are all there were, also when the last ones are missing."""
        for odd, n in (("lossy", 400), ("unended", 100)):
            threads, work = self.layers(n, 1)
            done, recording = self.play(script_of(threads, work), odd=odd)
            notes = self.notes(recording)
            missing = int(re.search(r"(\d+) records are missing", notes)[1])
            taken = int(re.search(r"spans of GPU work from (\d+) records", notes)[1])
            self.assertGreater(missing, 0)
            self.assertEqual(missing + taken, 2 * n)

    def test_what_has_no_times_is_said(self):
        threads, work = self.layers(40, 1)
        done, recording = self.play(script_of(threads, work), odd="timeless")
        self.assertIn("CUPTI had no times for 4 records", self.notes(recording))
        self.assertIn("36 spans of GPU work from 80 records", self.notes(recording))

    def test_the_child_is_never_harmed(self):
        threads, work = self.layers(5, 1)
        script = script_of(threads, work)
        done, recording = self.play(script, odd="taken")
        self.assertIn("CUPTI refused", self.notes(recording))
        done, recording = self.play(script, NRG_CUPTI_LIBRARY="/nowhere/libcupti.so")
        self.assertIn("CUPTI was not found", self.notes(recording))
        done, recording = self.play(script, NRG_CUPTI_LIBRARY=support.FAKE_NVML)
        self.assertIn("too old", self.notes(recording))
        done, recording = self.play(script, CUDA_INJECTION64_PATH="/nowhere/other.so")
        self.assertIn("another profiler gets the GPU's kernels", done.stderr)
        done, recording = self.play(script, "--fork")
        self.assertEqual(len([s for s in spans_of(recording) if s["track_kind"] == "gpu"]), 5)
        self.play(script, "--crash", code=134)

    def test_a_program_without_cuda_has_nothing_in_it(self):
        done, recording = self.play(script_of([[(0, "begin", "a"), (1, "end", "")]], []), "--none")
        self.assertIn("mapped 0\n", done.stdout)

    def test_it_goes_with_a_command(self):
        done = self.run_nrg("run", "--gpu-trace", "--system", "--for", "1s", code=2)
        self.assertIn("--gpu-trace goes with a command", done.stderr)


def host_script(ops, calls, first, last):
    """Operators and launches of one thread between two times (us), in order: (time, word, rest)."""
    marks, stack = [], []
    ops = [(max(e["ts"], first), 0, -e["dur"], e) for e in ops if e["ts"] < last and e["ts"] + e["dur"] > first]
    for t, is_call, _, what in sorted(ops + [(e["ts"], 1, 0, e) for e in calls], key=lambda x: x[:3]):
        while stack and stack[-1] <= t:
            marks.append((stack.pop(), "end", ""))
        if is_call:
            marks.append((t, "call", what["args"]["correlation"]))
        else:
            marks.append((t, "begin", re.sub(r"^(ProfilerStep)#\d+$", r"\1", what["name"])))  # as import names it
            stack.append(min(what["ts"] + what["dur"], last))
    return [(round((t - first) * 1000), word, rest) for t, word, rest in marks + [(t, "end", "") for t in stack[::-1]]]


def kineto_script(path, limit_s):
    """The first part of a trace of PyTorch's profiler, for the player; and when it begins, in us."""
    with gzip.open(path) as f:
        events = [e for e in json.load(f)["traceEvents"] if e.get("ph") == "X"]
    kinds = {"kernel": KERNEL, "gpu_memcpy": COPY, "gpu_memset": FILL}
    gpu = {e["args"]["correlation"]: e for e in events if e.get("cat") in kinds}
    calls = [e for e in events if e.get("cat") == "cuda_runtime" and e["args"].get("correlation") in gpu]
    first = min(e["ts"] for e in calls) - 1000
    calls = [e for e in calls if e["ts"] - first < limit_s * 1e6]
    last = max(e["ts"] for e in calls) + 1000
    threads = [host_script([e for e in events if e.get("cat") in ("cpu_op", "user_annotation") and e["tid"] == tid],
                           [e for e in calls if e["tid"] == tid], first, last) for tid in {e["tid"] for e in calls}]
    work, free = [], collections.Counter()
    for e in sorted((gpu[c["args"]["correlation"]] for c in calls), key=lambda e: -e["ts"]):
        # The trace's times are whole us, so that kernels seem to overlap by one; CUPTI's are ns.
        a, start = e["args"], round((e["ts"] - first) * 1000)
        end = min(start + round(e["dur"] * 1000), free.get(a["stream"], 1 << 62))
        free[a["stream"]] = start
        work.append((kinds[e["cat"]], a["device"], a["context"], a["stream"], a["correlation"], start, end, e["name"]))
    return first, threads, work


class Replay(Trace):
    @unittest.skipUnless(glob.glob(os.path.join(TRACES, "*.gz")), "the shared traces are not here")
    def test_the_same_as_imported(self):
        """Kernel times to the ns, and the operators above them, are those that nrg import finds in the trace."""
        trace = os.path.join(TRACES, "HTA__timeline_analysis__sampled_rank-0.json.gz")
        first, threads, work = kineto_script(trace, 0.5)
        self.assertGreater(len(work), 100)
        done, recording = self.play(script_of(threads, work))
        imported = self.path("imported.nrg")
        self.run_nrg("import", trace, "-o", imported, "-f")
        base = int(done.stdout.split()[1])
        live = {(s["track"], s["begin_ns"] - base): s for s in spans_of(recording) if s["track_kind"] == "gpu"}
        truth = {(s["track"], s["begin_ns"] - round(first * 1000)): s for s in spans_of(imported)
                 if s["track_kind"] == "gpu"}
        self.assertEqual(sorted(live), sorted((f"GPU {w[1]} stream {w[3]}", w[5]) for w in work))
        for key, s in live.items():
            self.assertIn(key, truth)
            self.assertEqual(s["path"], truth[key]["path"], key)
            if s["detail"] == "":
                self.assertEqual(s["name"], truth[key]["name"])


class Roctx(Trace):
    """Ranges of ROCm's programs, by stand-ins of its libraries (tests/fake_roctx)."""
    SDK = os.path.join(support.TOOLS, "librocprofiler-sdk-roctx-fake.so")
    OLD = os.path.join(support.TOOLS, "libroctx64.so.4")
    LEVELS = "levels" + " 0 1 1 0" * 3 + " -1"

    def machine(self, gpu=True):
        """A root in which an AMD GPU is, or none; processes are the real ones."""
        root = self.path("amd" if gpu else "bare")
        os.makedirs(os.path.join(root, "dev"), exist_ok=True)
        if gpu:
            open(os.path.join(root, "dev", "kfd"), "w").close()
        return root

    def client(self, *args, code=0, **environment):
        recording = self.path("roctx.nrg")
        environment = dict({"NRG_ROOT": self.machine()}, **environment)
        done = self.run_nrg("run", "--gpu-trace", "--sensor", "machine", "-q", "-f", "-o", recording, "--", CLIENT, *args, code=code,
                            **environment)
        return done, spans_of(recording)

    def check_ranges(self, done, spans):
        self.assertIn(self.LEVELS, done.stdout)  # as without a profiler
        times = collections.defaultdict(list)
        for s in spans:
            if s["kind"] == "span":
                self.assertEqual(s["detail"], "roctx")
                self.assertIsNotNone(s["end_ns"], s["name"])
                times[s["name"]].append((s["begin_ns"], s["end_ns"], s["depth"]))
        self.assertEqual((len(times["step"]), len(times["forward"])), (3, 3))
        for outer, inner in zip(times["step"], times["forward"]):
            self.assertTrue(outer[0] <= inner[0] and inner[1] <= outer[1] and inner[2] == outer[2] + 1)
            self.assertGreaterEqual(inner[1] - inner[0], 2_000_000)
        (first,), second = times["first"], times["second"]
        self.assertLess(first[1], second[-1][1])  # which crosses it, and so comes in two parts
        self.assertGreaterEqual(sum(end - begin for begin, end, _ in second), 4_000_000)
        self.assertLessEqual(times["far"][0][1], times["after"][0][0])

    def test_ranges_of_rocprofilers_roctx(self):
        self.check_ranges(*self.client(self.SDK))

    def test_ranges_of_roctracers_roctx(self):
        self.check_ranges(*self.client(self.OLD, "hip"))

    def test_a_profiler_in_the_program_gets_the_tables_too(self):
        done, spans = self.client(self.SDK, os.path.join(support.TOOLS, "librocprofiler-sdk.so.1"))
        self.assertIn("rocprofiler has roctx 10000 1\n", done.stderr)
        self.check_ranges(done, spans)

    def compute(self, *words, **environment):
        """The client's kernels; what the stand-in said of their times, and the spans by name."""
        library = os.path.join(support.TOOLS, "librocprofiler-sdk-fake.so")
        environment = dict(dict(NRG_ROCPROFILER_LIBRARY=library, FAKE_ROCPROFILER=" ".join(words)), **environment)
        done, spans = self.client(self.SDK, "kernels", library, **environment)
        told = [(word, int(begin), int(end)) for word, begin, end in re.findall(r"^(kernel|copy) (\d+) (\d+)$", done.stdout, re.M)]
        return told, spans, self.notes(self.path("roctx.nrg")), done

    def test_kernels_of_rocm(self):
        """Times, names, launches, GPUs and waits, in both layouts of rocprofiler-sdk's correlation ids."""
        for version in ("10201", "600"):
            with self.subTest(version):
                told, spans, notes, done = self.compute("version=" + version)
                self.assertIn("rocprofiler has hip 60000\n", done.stderr)  # the table came to it
                work = sorted((s for s in spans if s["track_kind"] == "gpu"), key=lambda s: s["begin_ns"])
                self.assertEqual(len(work), len(told), work)
                for s, (_, begin, end) in zip(work, sorted(told, key=lambda t: t[1])):
                    self.assertEqual(s["end_ns"] - s["begin_ns"], end - begin)
                    self.assertLess(abs(s["begin_ns"] - begin), 1_000_000)  # the stand-in's clock is 1000 s ahead
                # As people write it where the program has a C++ runtime; a sanitizer brings one.
                shown = [(s["name"].replace("gemm(float*, int)", "_Z4gemmPfi"), s["domain"], s["path"]) for s in work]
                self.assertEqual(shown, [("Memcpy HtoD (Unknown -> Device)", "gpu-0", ["step"]), ("_Z4gemmPfi", "gpu-0", ["step", "forward"]),
                                         ("plain", "gpu-0", ["step"]), ("_Z4gemmPfi", "gpu-1", []),
                                         ("Memcpy PtoP (Device -> Device)", "gpu-1", []), ("(kernel without a name)", "gpu-1", [])])
                waits = [s for s in spans if s["name"] == "hipDeviceSynchronize"]
                self.assertEqual([w["domain"] for w in waits], ["waits"])
                self.assertGreaterEqual(waits[0]["end_ns"] - waits[0]["begin_ns"], 8_000_000)
                self.assertIn("6 spans of GPU work", notes)
                self.assertIn(f"rocprofiler-sdk {'1.2.1' if version == '10201' else '0.6.0'}", notes)

    def test_what_is_missing_of_rocm(self):
        """The program runs as before, and a note says why there are no kernels."""
        for words, says in ((["version=500"], "too old"), (["locked"], "another profiler was first"), (["refuse"], "refused (status 28)"),
                            (["drop"], " records are missing")):
            with self.subTest(words[0]):
                told, spans, notes, _ = self.compute(*words)
                self.assertEqual(len(told), 6)
                found = sum(s["track_kind"] == "gpu" for s in spans)
                self.assertTrue(0 < found < 6 if words == ["drop"] else found == 0, found)
                self.assertIn(says, notes)
        for library, says in ((self.OLD, "it has no force_configure"), ("/nowhere/librocprofiler-sdk.so", "librocprofiler-sdk.so was not found")):
            told, spans, notes, _ = self.compute(NRG_ROCPROFILER_LIBRARY=library)
            self.assertEqual(len(told), 6)
            self.assertIn(says, notes)

    def test_torch_traces_where_there_is_a_gpu(self):
        """Without being asked for it, and without a word where it can't."""
        def variables(*options, gpu, **environment):
            root = self.machine(gpu == "amd")
            if gpu == "nvidia":
                open(os.path.join(root, "dev", "nvidiactl"), "w").close()
            done = self.run_nrg("run", "-q", "-f", "--sensor", "machine", "-o", self.path("env.nrg"), *options, "--", "env",
                                NRG_ROOT=root, **environment)
            self.assertEqual(done.stderr, "")
            return set(re.findall(r"^(CUDA_INJECTION64_PATH|NVTX_INJECTION64_PATH|ROCPROFILER_REGISTER_LIBRARY)=.*libnrg-inject", done.stdout, re.M))

        cuda = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}
        self.assertEqual(variables("--torch", gpu=None), set())
        self.assertEqual(variables("--torch", gpu="nvidia"), cuda)
        self.assertEqual(variables("--torch", gpu="amd"), cuda | {"ROCPROFILER_REGISTER_LIBRARY"})
        self.assertEqual(variables("--torch", "--gpu-trace=off", gpu="nvidia"), set())
        self.assertEqual(variables(gpu="nvidia"), set())
        self.assertEqual(variables("--torch", gpu="nvidia", CUDA_INJECTION64_PATH="/nowhere/other.so"), {"NVTX_INJECTION64_PATH"})

    def test_a_mark_is_one(self):
        self.client(self.SDK)
        trace = self.run_nrg("attribute", "--trace", self.path("roctx.nrg")).stdout
        self.assertEqual(trace.count("half time"), 1)

    def test_a_program_that_marks_nothing_has_nothing_in_it(self):
        done, spans = self.client(self.OLD)  # it never hands over a table
        self.assertIn("mapped 0\n", done.stdout)
        self.assertIn(self.LEVELS, done.stdout)

    def test_another_profiler_stays(self):
        for name in ("ROCPROFILER_REGISTER_LIBRARY", "ROCP_TOOL_LIBRARIES"):
            done, spans = self.client(self.OLD, **{name: "/nowhere/other.so"})
            self.assertIn(f"{name} is set already (/nowhere/other.so): another profiler gets kernels of ROCm and the ranges of roctx", done.stderr)
            self.assertEqual([s for s in spans if s["kind"] == "span"], [])


    def variables(self, *command, **environment):
        """What nrg says, and the variables that the command sees, of those that load a library."""
        environment = dict({"NRG_ROOT": self.machine()}, **environment)
        done = self.run_nrg("run", "--gpu-trace", "--sensor", "machine", "-q", "-f", "-o", self.path("v.nrg"), "--", *command, **environment)
        return done.stderr, set(re.findall(r"^(CUDA_INJECTION64_PATH|NVTX_INJECTION64_PATH|ROCPROFILER_REGISTER_LIBRARY)=", done.stdout, re.M))

    def test_a_machine_without_an_amd_gpu(self):
        """librocprofiler-register ends a program that can't load the library: nobody gets the variable for nothing."""
        said, got = self.variables("env", NRG_ROOT=self.machine(gpu=False))
        self.assertEqual(got, {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"})
        said, got = self.variables("env")
        self.assertEqual(got, {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "ROCPROFILER_REGISTER_LIBRARY"})

    def test_a_command_that_enters_another_root(self):
        """A container without nrg's folder: what ends programs there, or may, is not set, and that is said; NVTX passes over it."""
        enter = self.write("apptainer", "#!/bin/sh\nexec env\n")
        os.chmod(enter, 0o755)
        for command in ((enter, "exec", "image.sif", "true"), ("nice", enter, "run"), ("sh", "-c", f"true; {enter} exec x"),
                        ("sh", "-c", "env", "--container-image=x")):
            said, got = self.variables(*command)
            self.assertEqual(got, {"NVTX_INJECTION64_PATH"}, command)
            self.assertRegex(said, r"kernels and ranges of roctx are off: (apptainer|\S*/apptainer|--container-image=x) may start programs where nrg's folder is not")
            self.assertEqual(said.count("\n"), 1, said)

    def test_a_program_in_a_container_lives(self):
        """Inside, the path that the variable names is not there: librocprofiler-register would end the program."""
        hide = 'ROCPROFILER_REGISTER_LIBRARY="${ROCPROFILER_REGISTER_LIBRARY:+/nowhere/libnrg-inject.so}"'
        enter = self.write("singularity", f"#!/bin/sh\n{hide} exec {CLIENT} {self.SDK}\n")
        os.chmod(enter, 0o755)
        said, _ = self.variables(enter, "exec", "image.sif")  # exit code 0, or it fails
        self.assertIn("singularity may start programs", said)

    def test_who_asks_for_it_in_a_container_gets_it(self):
        enter = self.write("podman", "#!/bin/sh\nexec env\n")
        os.chmod(enter, 0o755)
        library = os.path.join(os.path.dirname(os.path.realpath(support.NRG)), "src", "libnrg-inject.so")
        said, got = self.variables(enter, ROCPROFILER_REGISTER_LIBRARY=library)
        self.assertEqual((said, got), ("", {"NVTX_INJECTION64_PATH", "ROCPROFILER_REGISTER_LIBRARY"}))


class Nvtx(Trace):
    """With the plain build: what is loaded into Python can't be sanitized."""

    def scene(self, name):
        recording = self.path("nvtx.nrg")
        done = subprocess.run([os.path.join(PLAIN, "nrg"), "run", "--gpu-trace", "--sensor", "machine", "-q", "-f", "-o", recording,
                               "--", support.PYTHON, STAND_IN, name], env=self.env(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("accepted 1", done.stdout)
        return recording, spans_of(recording)

    def test_ranges_are_spans(self):
        recording, spans = self.scene("nested")
        count = collections.Counter((s["name"], s["detail"], tuple(s["path"])) for s in spans if s["kind"] == "span")
        self.assertEqual(count, {("step", "train/tokens", ()): 4, ("forward", "train", ()): 4, ("größer", "", ()): 4,
                                 ("plain", "", ()): 1})
        depth = {s["name"]: s["depth"] for s in spans}
        self.assertEqual([depth[n] - depth["step"] for n in ("forward", "größer", "plain")], [1, 2, 0])
        got = json.loads(self.run_nrg("attribute", "--json", recording).stdout)
        self.assertEqual([(u["name"], u["amount"], u["of"]) for u in got["per"]], [("tokens", 128, "step")])

    def test_payloads_belong_to_the_innermost_range(self):
        recording, _ = self.scene("counted")
        got = json.loads(self.run_nrg("attribute", "--json", "--per", "tokens/outer", recording).stdout)
        self.assertEqual([(u["name"], u["of"], u["counted"], u["amount"]) for u in got["per"]],
                         [("S", "S", "directly", 11), ("tokens", "B", "directly", 1005), ("tokens", "outer", "directly", 3),
                          ("tokens", got["per"][3]["of"], "directly", 2), ("tokens", "outer", "inside", 1008)])
        self.assertIn(got["per"][3]["of_kind"], ("program", "machine"))  # in no range

    def test_ranges_that_do_not_nest(self):
        _, spans = self.scene("crossing")
        times = collections.defaultdict(list)
        for s in spans:
            times[s["name"]].append((s["begin_ns"], s["end_ns"]))
        for name in ("first", "second", "one", "two", "far", "after"):
            self.assertTrue(times[name], name)
            self.assertTrue(all(end is not None for _, end in times[name]), name)
        first, = times["first"]
        self.assertLess(first[1], times["second"][-1][1])
        one, = times["one"]
        self.assertLess(one[1], times["two"][-1][1])
        self.assertLessEqual(times["far"][0][1], times["after"][0][0])

    def test_a_child_has_its_own(self):
        _, spans = self.scene("forked")
        names = collections.Counter((s["name"], s["depth"]) for s in spans if s["kind"] == "span")
        self.assertEqual(len({s["pid"] for s in spans if s["kind"] == "span"}), 2)
        self.assertEqual(sum(names.values()), 2)

    def test_without_a_recorder_it_stays_off(self):
        library = os.path.join(PLAIN, "src", "libnrg-inject.so")
        environment = {k: v for k, v in os.environ.items() if k != "NRG_SPANS"}
        out = subprocess.run([support.PYTHON, STAND_IN, "nested"], env=dict(environment, NVTX_INJECTION64_PATH=library),
                             capture_output=True, text=True)
        self.assertEqual((out.returncode, out.stdout), (0, "accepted 0\n"), out.stderr)


if __name__ == "__main__":
    unittest.main()
