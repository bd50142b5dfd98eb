"""nrg import of layer times: every format against what Python itself makes of the same file, the join
with power by clock, by a given offset and by alignment, and the notes about unusual files."""
import bisect
import gzip
import hashlib
import json
import math
import os
import random
import re
import subprocess
import time
import unittest
from datetime import datetime, timedelta, timezone

from support import *

SHARED = os.environ.get("NRG_SHARED", os.path.join(TOP, "..", "shared"))
JETSON = os.path.join(SHARED, "data", "jetson")
LENET = os.path.join(JETSON, "jetson/power_logging/raw_data_pruned/prebuilt_models/lenet")
POWER_LOG = os.path.join(LENET, "lenet_power_log.rows600-1009.log")
LATENCY = os.path.join(LENET, "lenet_layerwise_latency.first70cycles.json")
TRT = os.path.join(JETSON, "jetson/power_logging/results_for_testing/trt_layer_latency.json")
TRTEXEC = os.path.join(JETSON, "desktop/torch_onnx_trtexec/results/alexnet")
KINETO = os.path.join(SHARED, "data", "kineto")
LEGACY = os.path.join(SHARED, "data", "graphs", "torch-1.13")
DUMP = os.path.join(TOOLS, "spans-dump")

needs_data = unittest.skipUnless(os.path.isdir(JETSON), "the shared data are not here")
US = 1000


def unix_us(moment):
    """Whole microseconds since 1970, without a double on the way."""
    return (moment.replace(tzinfo=timezone.utc) - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(
        microseconds=1)


class Layers(Case):
    def imports(self, *args, code=0):
        """Runs nrg import; what it said."""
        result = self.nrg("import", *args)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr

    def nrg(self, *args):
        return subprocess.run([NRG, *args], capture_output=True, text=True, timeout=LIMIT_S, cwd=self.dir)

    def spans(self, recording, *options):
        out = subprocess.run([DUMP, *options, recording], capture_output=True, text=True, check=True,
                             timeout=LIMIT_S).stdout
        return [json.loads(line) for line in out.splitlines()]

    def runs(self, recording):
        return self.spans(recording, "--runs")

    def imported(self, content, *options, name="in.json"):
        """Imports a text or an object alone: what was said, and its spans."""
        text = content if isinstance(content, (str, bytes)) else json.dumps(content)
        said = self.imports("-f", *options, self.write(name, text), "-o", self.path("out.nrg"))
        return said, self.spans(self.path("out.nrg"))

    def refused(self, content, *options):
        """Imports something that must fail, with one line and no file left."""
        path = self.write("bad.json", content)
        result = self.nrg("import", *options, path, "-o", self.path("bad.nrg"))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("bad.json", result.stderr)
        self.assertFalse(os.path.exists(self.path("bad.nrg")))
        return result.stderr

    def write(self, name, content, mode=0o644):
        super().write(name, content, mode)
        return self.path(name)


def whole_us(ns):
    """Microseconds, half to even as timedelta does."""
    us, rest = divmod(ns, US)
    return us + (rest > US // 2 or (rest == US // 2 and us % 2))


def torch_phase_windows(cycles):
    """(cycle, layer, begin us, end us) as Python's own datetime rounds them."""
    for number, cycle in enumerate(cycles, 1):
        for layer, times in cycle.items():
            begin = datetime.fromtimestamp(times["start_time"], timezone.utc)
            end = begin + timedelta(milliseconds=times["elapsed_time"])
            yield number, layer, unix_us(begin), unix_us(end), times["elapsed_time"]


def trt_windows(layers):
    cycles = max(len(runs) for runs in layers.values())
    for number in range(cycles):
        for layer, runs in layers.items():
            ms, stamp = runs[number]
            end = datetime.strptime(stamp, "%Y%m%d-%H:%M:%S.%f")
            yield number + 1, layer, unix_us(end - timedelta(milliseconds=ms)), unix_us(end), ms


class TensorRT(Layers):
    def check_windows(self, runs, expected):
        expected = list(expected)
        self.assertEqual(len(runs), len(expected))
        for run, (cycle, layer, begin_us, end_us, ms) in zip(runs, expected):
            self.assertEqual((run["cycle"], run["name"]), (cycle, layer))
            begin = whole_us(run["begin_ns"])  # Python's datetime has no more; the recording has
            self.assertEqual((begin, begin + whole_us(run["end_ns"] - run["begin_ns"])), (begin_us, end_us))
            self.assertLessEqual(abs(run["end_ns"] - run["begin_ns"] - ms * 1e6), 0.51)
            if ms > 0:
                self.assertLessEqual(abs(run["duration_ns"] - ms * 1e6), 0.51)

    @needs_data
    def test_windows_are_pythons_to_the_microsecond(self):
        self.imports(TRT, "-o", self.path("trt.nrg"))
        with open(TRT) as f:
            self.check_windows(self.runs(self.path("trt.nrg")), trt_windows(json.load(f)))
        self.imports(LATENCY, "-o", self.path("torch.nrg"))
        with open(LATENCY) as f:
            self.check_windows(self.runs(self.path("torch.nrg")), torch_phase_windows(json.load(f)))

    @needs_data
    def test_the_projects_own_examples(self):
        folder = os.path.join(JETSON, "model_training/tests/test_data/example_raw_data")
        for name in ("simple", "multiple_readings", "multiple_layers"):
            latency = os.path.join(folder, name, "trt_profiling/trt_layer_latency.json")
            power = os.path.join(folder, name, name + "_power_log.log")
            joined = self.path(name + ".nrg")
            self.imports("--power-log", power, latency, "-o", joined)
            with open(os.path.join(folder, name, "expected_metrics_by_cycle.json")) as f:
                expected = json.load(f)
            found = self.window_means(joined, power)
            self.assertEqual([(r["cycle"], r["name"], p) for r, p in found],
                             [(e["cycle"], e["layer_name"], e["layer_power_including_idle_power_micro_watt"])
                              for e in expected])

    def window_means(self, recording, log):
        """The project's rule on our executions and the log's own text: rows are handed out once, in order."""
        rows = []
        with open(log) as f:
            for line in f:
                stamp, mv, ma = line.split(",")
                rows.append((unix_us(datetime.strptime(stamp, "%Y%m%d-%H:%M:%S.%f")) * US, float(mv) * float(ma)))
        at, means = 0, []
        for run in self.runs(recording):
            while at < len(rows) and rows[at][0] < run["begin_ns"]:
                at += 1
            taken = []
            while at < len(rows) and rows[at][0] <= run["end_ns"]:
                taken.append(rows[at][1])
                at += 1
            means.append((run, sum(taken) / len(taken) if taken else None))
        return means

    @needs_data
    def test_the_real_pair(self):
        said = self.imports("--power-log", POWER_LOG, LATENCY, "-o", self.path("lenet.nrg"))
        self.assertIn("420 spans in 70 cycles", said)
        hits = [(r["cycle"], r["name"], p) for r, p in self.window_means(self.path("lenet.nrg"), POWER_LOG) if p]
        self.assertEqual(hits, [(2, "_feat_conv1", 8653824), (30, "_feat_conv2", 8333312),
                                (40, "_classifer_fc1", 8213120), (50, "_feat_conv2", 8132992),
                                (54, "_classifer_fc2", 8092928), (60, "_feat_conv2", 8052864),
                                (61, "_feat_conv2", 8052864), (70, "_feat_conv1", 8012800)])
        spans = self.spans(self.path("lenet.nrg"))
        cycles = [s for s in spans if s["kind"] == "cycle"]
        self.assertEqual(sorted(s["number"] for s in cycles), list(range(1, 71)))
        self.assertTrue(all(s["depth"] == 1 for s in spans if s["kind"] == "layer"))
        # the power is in there too, as it was
        self.assertEqual(query(self.path("lenet.nrg"), "SELECT count(*), sum(n) FROM chunk JOIN series ON "
                               "series.id = series WHERE kind = 'samples'")[0][1], 410)

    @needs_data
    def test_bursts_are_not_cut(self):
        with open(TRT) as f:
            said, spans = self.imported(f.read())
        self.assertIn("windows of layers overlap", said)
        self.assertEqual(len(spans), 835)
        self.assertEqual(len({s["track"] for s in spans}), 167)
        self.assertTrue(all(s["path"] == ["cycle"] and s["depth"] == 0 for s in spans))

    @needs_data
    def test_packed(self):
        said = self.imports("--layout", "packed", TRT, "-o", self.path("packed.nrg"))
        self.assertIn("packed", said)
        with open(TRT) as f:
            layers = json.load(f)
        runs = self.runs(self.path("packed.nrg"))
        for cycle in range(5):
            stamps = [unix_us(datetime.strptime(r[cycle][1], "%Y%m%d-%H:%M:%S.%f")) * US for r in layers.values()]
            mine = [r for r in runs if r["cycle"] == cycle + 1]
            self.assertEqual(mine[-1]["end_ns"], min(stamps))
            for before, after in zip(mine, mine[1:]):
                self.assertEqual(before["end_ns"], after["begin_ns"])
            self.assertLessEqual(abs(sum(r["end_ns"] - r["begin_ns"] for r in mine)
                                     - sum(r[cycle][0] for r in layers.values()) * 1e6), 167)

    def test_pairs_in_either_order_and_compressed(self):
        pair = {"a": [[1.5, "20240101-00:00:01.500000"], [2.0, "20240101-00:00:03"]]}
        turned = {"a": [[b, a] for a, b in pair["a"]]}
        _, spans = self.imported(pair)
        self.assertEqual(self.imported(turned)[1], spans)
        self.assertEqual(self.imported(gzip.compress(json.dumps(pair).encode()), name="in.json.gz")[1], spans)
        begin = 1704067201500000000
        self.assertEqual([(s["begin_ns"], s["end_ns"]) for s in spans if s["kind"] == "layer"],
                         [(begin - 1500000, begin), (begin + 1498000000, begin + 1500000000)])
        _, moved = self.imported(pair, "--timezone-offset", "+02:00")
        self.assertEqual(moved[0]["begin_ns"], spans[0]["begin_ns"] - 7200 * 10**9)

    def test_plain_lists(self):
        said, spans = self.imported({"conv": [1.5, 2.0], "relu": [0.25, 0.5], "noop": [0, 0.0]})
        self.assertIn("no time stamps", said)
        layers = [(s["name"], s["number"], s["begin_ns"], s["end_ns"]) for s in spans if s["kind"] == "layer"]
        self.assertEqual(sorted(layers, key=lambda s: (s[1], s[2], s[3])),
                         [("conv", 1, 0, 1500000), ("relu", 1, 1500000, 1750000), ("noop", 1, 1750000, 1750000),
                          ("conv", 2, 1750000, 3750000), ("relu", 2, 3750000, 4250000),
                          ("noop", 2, 4250000, 4250000)])
        self.assertEqual([(s["begin_ns"], s["end_ns"]) for s in spans if s["kind"] == "cycle"],
                         [(0, 1750000), (1750000, 4250000)])

    def test_uneven_and_unusable_runs_are_said(self):
        said, spans = self.imported('{"a": [1.0, NaN, -3, null], "b": [2.0]}')
        self.assertIn("3 runs of a layer without a usable time were left out", said)
        self.assertIn("1 layer has fewer cycles", said)
        self.assertEqual([s["name"] for s in spans if s["kind"] == "layer"], ["a", "b"])

    def test_strange_names(self):
        names = ['quo"ted\\', "<script>alert(1)</script>", "line\nend", "é" * 30, "x" * 10000]
        _, spans = self.imported({name: [1.0] for name in names})
        self.assertEqual([s["name"] for s in spans if s["kind"] == "layer"],
                         [name.replace("\n", " ") for name in names])


class TrtExec(Layers):
    @needs_data
    def test_profile_and_times(self):
        profile = os.path.join(TRTEXEC, "alexnet_fp16.profile.json")
        times = os.path.join(TRTEXEC, "alexnet_fp16.timing.json")
        with open(profile) as f:
            layers = [e for e in json.load(f) if "name" in e]
        with open(times) as f:
            inferences = json.load(f)
        said = self.imports(profile, "-o", self.path("one.nrg"))
        self.assertIn("a profile has no times", said)
        runs = self.runs(self.path("one.nrg"))
        self.assertEqual([r["name"] for r in runs], [e["name"] for e in layers])
        for run, layer in zip(runs, layers):
            self.assertLessEqual(abs(run["duration_ns"] - layer["averageMs"] * 1e6), 0.51)
        said = self.imports("--times", times, profile, "-o", self.path("all.nrg"))
        self.assertIn("in proportion", said)
        runs = self.runs(self.path("all.nrg"))
        self.assertEqual(len(runs), len(layers) * len(inferences))
        total = sum(e["averageMs"] for e in layers)
        for i in (0, 17, len(inferences) - 1):
            part = runs[i * len(layers):(i + 1) * len(layers)]
            begin, end = (round(inferences[i][k] * 1e6) for k in ("startComputeMs", "endComputeMs"))
            self.assertEqual((part[0]["begin_ns"], part[-1]["end_ns"]), (begin, end))
            for run, layer in zip(part, layers):
                self.assertLessEqual(abs(run["end_ns"] - run["begin_ns"]
                                         - (end - begin) * layer["averageMs"] / total), 1.01)
        said = self.imports(times, "-o", self.path("times.nrg"))
        spans = self.spans(self.path("times.nrg"))
        self.assertEqual(len(spans), len(inferences))
        self.assertEqual([s["number"] for s in spans], list(range(1, len(inferences) + 1)))

    def test_copies_have_tracks_of_their_own(self):
        row = {"startEnqMs": 0, "endEnqMs": 0.1, "startH2dMs": 0.1, "endH2dMs": 0.3, "startComputeMs": 0.3,
               "endComputeMs": 1.3, "startD2hMs": 1.3, "endD2hMs": 1.5, "computeMs": 1.0}
        later = {k: v + 1 if k != "computeMs" else v for k, v in row.items()}
        _, spans = self.imported([row, later])
        self.assertEqual(sorted((s["track"], s["begin_ns"], s["end_ns"]) for s in spans),
                         [("copies from the GPU", 1300000, 1500000), ("copies from the GPU", 2300000, 2500000),
                          ("copies to the GPU", 100000, 300000), ("copies to the GPU", 1100000, 1300000),
                          ("inferences", 300000, 1300000), ("inferences", 1300000, 2300000)])


def load_trace(path):
    with (gzip.open(path) if path.endswith(".gz") else open(path, "rb")) as f:
        trace = json.load(f)
    return trace if isinstance(trace, dict) else {"traceEvents": trace}


class Chrome(Layers):
    HOST = {"cpu_op", "Operator", "user_annotation"}
    CALLS = {"cuda_runtime", "cuda_driver", "Runtime"}
    GPU = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}

    def ns(self, us):
        return round(us * 1000) if isinstance(us, float) else us * 1000

    def expected_launchers(self, events):
        """Correlation -> name of the shortest host span around the launching call: by looking at all."""
        host = {}
        for e in events:
            if e.get("ph") == "X" and e.get("cat") in self.HOST:
                host.setdefault(str(e["tid"]), []).append((e["ts"], e["ts"] + e["dur"], e["name"]))
        for spans in host.values():
            spans.sort()
        found = {}
        for e in events:
            if e.get("ph") != "X" or e.get("cat") not in self.CALLS or "correlation" not in e["args"]:
                continue
            spans = host.get(str(e["tid"]), [])
            at = bisect.bisect_right(spans, (e["ts"], math.inf, ""))
            around = [s for s in spans[max(0, at - 4000):at] if s[0] <= e["ts"] and s[1] >= e["ts"] + e["dur"]]
            found[e["args"]["correlation"]] = {s[2] for s in around if s[1] - s[0] == min(
                b - a for a, b, _ in around)} if around else set()
        return found

    def check_kineto(self, name):
        path = os.path.join(KINETO, name)
        trace = load_trace(path)
        events = trace["traceEvents"]
        base = trace.get("baseTimeNanoseconds", 0)
        said = self.imports(path, "-o", self.path("t.nrg"))
        spans = self.spans(self.path("t.nrg"))
        kept = [e for e in events if e.get("ph") == "X" and e.get("cat") in self.HOST | self.CALLS | self.GPU]
        self.assertEqual(len(spans), len(kept))
        gpu = sorted((e for e in kept if e["cat"] in self.GPU),
                     key=lambda e: (e["args"]["device"], e["args"]["stream"], e["ts"]))
        mine = sorted((s for s in spans if s["track_kind"] == "gpu"),
                      key=lambda s: (s["domain"], int(s["track"].split()[-1]), s["begin_ns"]))
        self.assertEqual(len(mine), len(gpu))
        launchers = self.expected_launchers(events)
        tied = wrong = 0
        for event, span in zip(gpu, mine):
            self.assertEqual(span["name"], event["name"][:16384])
            self.assertEqual(span["domain"], "gpu-%d" % event["args"]["device"])
            self.assertEqual(span["begin_ns"], base + self.ns(event["ts"]))
            expected = launchers.get(event["args"]["correlation"], set())
            tied += "path" in span
            if expected:
                self.assertIn("path", span)
                wrong += span["path"][-1] not in expected
            elif event["args"].get("External id", event["args"].get("external id")) in (None, 0):
                self.assertNotIn("path", span)
        self.assertLessEqual(wrong, len(gpu) // 200)  # spans of equal length to the rounded us
        if gpu:
            self.assertIn("%d spans of the GPU, %d tied" % (len(gpu), tied), said)
        return spans

    @needs_data
    def test_kineto_2021(self):
        spans = self.check_kineto("kineto__resnet50_num_workers_0__worker0.pt.trace.json.gz")
        self.assertEqual({s["number"] for s in spans if s["kind"] == "step"} & {1, 2, 3},
                         {s["number"] for s in spans if s["kind"] == "step" and s["number"] <= 3})
        shown = self.nrg("attribute", self.path("t.nrg")).stdout
        self.assertRegex(shown, r"ProfilerStep +- ")
        self.assertNotIn("0.000 J", shown)  # no energy was recorded: it is missing, not zero

    @needs_data
    def test_kineto_alexnet(self):
        self.check_kineto("HTA__critical_path__alexnet__benchmark_result_2869224_1695835535_trace.json.gz")

    @needs_data
    def test_kineto_sampled(self):
        self.check_kineto("HTA__timeline_analysis__sampled_rank-0.json.gz")

    @needs_data
    def test_kineto_with_a_base_time(self):
        name = "HTA__cpu_only__rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz"
        spans = self.check_kineto(name)
        first = min(s["begin_ns"] for s in spans)
        self.assertEqual(datetime.fromtimestamp(first / 1e9, timezone.utc).strftime("%Y-%m-%d"), "2024-07-15")
        clocks = query(self.path("t.nrg"), "SELECT mono_ns, real_ns FROM clock")
        self.assertEqual(clocks[0][0], clocks[0][1])

    @needs_data
    def test_legacy_traces(self):
        for model in ("resnet18", "unet", "bert_tiny_kwargs", "mobilenet_v2"):
            path = os.path.join(LEGACY, model, "chrome_trace.json")
            events = load_trace(path)["traceEvents"]
            said = self.imports("-f", path, "-o", self.path("t.nrg"))
            self.assertIn("count from a start of its own", said)
            spans = self.spans(self.path("t.nrg"))
            self.assertEqual(len(spans), len(events))
            modules = {e["name"].split("|")[1] or e["name"][11:-1] for e in events if "nn.Module" in e["name"]}
            self.assertEqual({s["name"] for s in spans if s["kind"] == "module"}, modules)
            self.assertEqual(query(self.path("t.nrg"), "SELECT count(*) FROM clock")[0][0], 0)
            total = sum(e["dur"] * 1000 for e in events)
            self.assertLessEqual(abs(sum(s["end_ns"] - s["begin_ns"] for s in spans) - total),
                                 1000 * len(events))

    def test_module_names_from_the_python_stack(self):
        def event(cat, name, ts, dur):
            return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": 8, "ts": ts, "dur": dur, "args": {}}
        name = {"ph": "M", "name": "thread_name", "pid": 7, "tid": "9", "args": {"name": "before"}}
        _, spans = self.imported({"traceEvents": [name, dict(event("cpu_op", "aten::mm", 1, 2), tid="9")]})
        self.assertEqual(spans[0]["track"], "before")
        said, spans = self.imported({"traceEvents": [
            event("python_function", "train.py(3): main", 0, 100), event("python_function", "nn.Module: Net_0", 10, 50),
            event("python_function", "nn.Module: Conv2d_3", 20, 30), event("cpu_op", "aten::conv2d", 25, 20),
            {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": "thread 8 (python)"}}]})
        self.assertIn("1 call of Python functions that are not modules left out", said)
        self.assertEqual([(s["kind"], s["name"], s["detail"], s["depth"]) for s in sorted(
            spans, key=lambda s: s["depth"])], [("module", "Net_0", "Net", 0), ("module", "Conv2d_3", "Conv2d", 1),
                                                ("operator", "aten::conv2d", "", 2)])
        self.assertEqual({s["track"] for s in spans}, {"thread 8 (python)"})

    def test_legacy_kernels(self):
        def event(ph, name, ts, pid, tid, **more):
            return {"name": name, "ph": ph, "ts": ts, "tid": tid, "pid": pid, "args": {}, **more}
        _, spans = self.imported([
            event("X", "aten::mm", 10, "CPU functions", 1, dur=50),
            event("s", "aten::mm", 10, "CPU functions", 1, id=5, cat="cpu_to_cuda"),
            event("f", "gemm", 40, "CUDA functions", 0, id=5, cat="cpu_to_cuda"),
            event("X", "gemm", 40, "CUDA functions", 0, dur=100),
            event("s", "aten::mm", 10, "CPU functions", 1, id=6, cat="cpu_to_cuda"),
            event("f", "copy", 150, "CUDA functions", 0, id=6, cat="cpu_to_cuda"),
            event("X", "copy", 150, "CUDA functions", 0, dur=10)])
        self.assertEqual([(s["name"], s["domain"], s.get("path")) for s in spans if s["kind"] == "kernel"],
                         [("gemm", "gpu-0", ["aten::mm"]), ("copy", "gpu-0", ["aten::mm"])])

    def test_begins_and_ends(self):
        def event(ph, ts, name="x"):
            return {"name": name, "ph": ph, "ts": ts, "tid": 1, "pid": 1}
        said, spans = self.imported([event("E", 1), event("B", 5, "a"), event("B", 6, "b"), event("E", 8), event("E", 9),
                                     event("B", 20, "open")])
        self.assertIn("1 end without a begin left out", said)
        self.assertIn("1 span was never closed", said)
        self.assertEqual([(s["name"], s["begin_ns"], s.get("end_ns"), s["depth"]) for s in spans],
                         [("b", 6000, 8000, 1), ("a", 5000, 9000, 0), ("open", 20000, None, 0)])

    def test_odd_events_are_said(self):
        said, spans = self.imported([{"name": "a", "ph": "X", "ts": 5, "dur": -3, "pid": 1, "tid": 1},
                                     {"name": "b", "ph": "X", "dur": 3, "pid": 1, "tid": 1},
                                     {"name": "c", "ph": "X", "ts": 10, "dur": 10, "pid": 1, "tid": 1},
                                     {"name": "d", "ph": "X", "ts": 15, "dur": 10, "pid": 1, "tid": 1},
                                     {"name": "e", "ph": "X", "ts": 30, "dur": 0, "pid": 1, "tid": 1}])
        for line in ("1 event with an impossible time left out", "1 event without a time left out",
                     "1 span of no length", "1 span cut where a later one began"):
            self.assertIn(line, said)
        self.assertEqual([(s["name"], s["begin_ns"], s["end_ns"]) for s in spans],
                         [("c", 10000, 15000), ("d", 15000, 25000), ("e", 30000, 30000)])

    def test_a_trace_that_was_cut_off(self):
        whole = json.dumps([{"name": "op%d" % i, "ph": "X", "ts": i * 10, "dur": 5, "pid": 1, "tid": 1}
                            for i in range(50)])
        for end in (len(whole) - 1, len(whole) - 20, len(whole) // 2):
            said, spans = self.imported(whole[:end])
            self.assertIn("the file is cut off", said)
            self.assertEqual(len(spans), whole[:end].count("}"))


def x(pid, tid, name, ts, dur, **args):
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, "args": args}


def named(what, pid, name, tid=None):
    event = {"ph": "M", "name": what + "_name", "pid": pid, "args": {"name": name}}
    return event if tid is None else dict(event, tid=tid)


XLA_NAMES = [named("process", 1, "/device:GPU:0"), named("process", 2, "/device:GPU:1"),
             named("process", 701, "/host:CPU"), named("thread", 1, "Stream #13(Compute)", 13),
             named("thread", 1, "Stream #14(MemcpyH2D)", 14), named("thread", 1, "XLA Ops", 20),
             named("thread", 1, "XLA Modules", 21), named("thread", 1, "Steps", 22),
             named("thread", 2, "Stream #13(Compute)", 13), named("thread", 701, "python", 5)]
XLA_EVENTS = [x(701, 5, "PjitFunction(f)", 0, 900), x(701, 5, "cuLaunchKernel", 100, 10, correlation_id="77"),
              x(1, 13, "loop_add_fusion", 200, 300, correlation_id="77", hlo_op="add.1", hlo_module="jit_f"),
              x(1, 14, "MemcpyH2D", 150, 100), x(1, 20, "add.1", 200, 300), x(1, 21, "jit_f(123)", 200, 300),
              x(1, 22, "4", 150, 400), x(2, 13, "gemm", 250, 200)]


class Devices(Layers):
    """Which tracks are those of a device, by the names that writers of traces give processes."""

    def tracks(self, spans):
        return {(s["name"], s["kind"], s["track_kind"], s["domain"]) for s in spans}

    def test_jax(self):
        expected = {("PjitFunction(f)", "span", "thread", ""), ("cuLaunchKernel", "runtime", "thread", ""),
                    ("loop_add_fusion", "kernel", "gpu", "gpu-0"), ("MemcpyH2D", "kernel", "gpu", "gpu-0"),
                    ("gemm", "kernel", "gpu", "gpu-1")}
        for events in (XLA_NAMES + XLA_EVENTS, XLA_EVENTS + XLA_NAMES, XLA_EVENTS[:4] + XLA_NAMES + XLA_EVENTS[4:]):
            said, spans = self.imported({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True},
                                         "traceEvents": events + [{}]})
            self.assertEqual(self.tracks(spans), expected)
            self.assertIn("3 spans that repeat the work of a device by operator, module or step left out", said)
            kernel = [s for s in spans if s["name"] == "loop_add_fusion"][0]
            self.assertEqual((kernel["path"], kernel["detail"], kernel["track"]),
                             (["PjitFunction(f)"], "add.1", "GPU 0 Stream #13(Compute)"))

    def test_tpu(self):
        """Lines of the sparse cores, which have processes of their own, and of counters do not take the place of the operators."""
        beside = ("Async XLA Ops", "Host Offload Ops", "_counters_", "Tensor Core Sync Flag")
        sparse = ("Sparse Core Steps", "Sparse Core Modules", "Sparse Core Ops", "Sparse Core Syncs")
        _, spans = self.imported({"traceEvents": [
            *(named("thread", 3, name, 10 + i) for i, name in enumerate(beside)),
            *(x(3, 10 + i, "other", 10, 80) for i in range(len(beside))), named("process", 4, "/device:TPU:2 SparseCore 0"),
            *(named("thread", 4, name, i) for i, name in enumerate(sparse)), *(x(4, i, "other", 10, 80) for i in range(len(sparse))),
            named("process", 3, "/device:TPU:2"), named("thread", 3, "Steps", 1), named("thread", 3, "XLA Modules", 2),
            named("thread", 3, "XLA Ops", 3), named("thread", 3, "Framework Ops", 4),
            x(3, 4, "jit", 10, 80), x(3, 1, "7", 0, 100), x(3, 2, "jit_step(9)", 10, 80), x(3, 3, "fusion.2", 10, 30),
            x(3, 3, "copy.1", 50, 40)]})
        self.assertEqual({(s["name"], s["kind"], s["domain"], s["depth"], s.get("number")) for s in spans},
                         {("step", "step", "tpu-2", 0, 7), ("jit_step(9)", "span", "tpu-2", 1, None),
                          ("fusion.2", "kernel", "tpu-2", 2, None), ("copy.1", "kernel", "tpu-2", 2, None)})

    def test_names_of_devices(self):
        """A process is a device when its name is that of one, not when it talks about one."""
        for label, domain in (("/device:GPU:0", "gpu-0"), ("host3 /device:GPU:7", "gpu-7"), ("GPU 3", "gpu-3"),
                              ("GPU1", "gpu-1"), ("cuda:2", "gpu-2"), ("/gpu:1 Compute", "gpu-1"),
                              ("/job:worker/replica:0/task:0/device:GPU:4/stream:all Compute", "gpu-4"),
                              ("/job:a/device:XLA_GPU:1", "gpu-1"), ("/device:NEURON:5", "neuron-5"),
                              ("/device:CPU:0", ""), ("/host:CPU", ""), ("python", ""), ("worker of GPU 0", ""),
                              ("GPUs", ""), ("train.py --gpu 0", ""), ("/host:metadata", "")):
            _, spans = self.imported([named("process", 9, label), x(9, 4, "work", 0, 5)])
            self.assertEqual([(s["domain"], s["track_kind"]) for s in spans],
                             [(domain, "gpu" if domain else "thread")], label)

    def test_tensorflow_timeline(self):
        device = "/job:localhost/replica:0/task:0/device:GPU:0/stream:"
        _, spans = self.imported({"traceEvents": [
            named("process", 1, device + "all Compute"), named("process", 2, device + "12 Compute"),
            dict(x(1, 0, "MatMul", 5, 10), cat="Op"), dict(x(2, 0, "sgemm", 5, 10), cat="Op")]})
        self.assertEqual(self.tracks(spans), {("sgemm", "kernel", "gpu", "gpu-0")})

    def test_begins_and_ends_on_a_gpu(self):
        _, spans = self.imported([named("process", 1, "GPU 1"), dict(x(1, 2, "k", 5, 0), ph="B"),
                                  dict(x(1, 2, "k", 9, 0), ph="E")])
        self.assertEqual([(s["domain"], s["begin_ns"], s["end_ns"]) for s in spans], [("gpu-1", 5000, 9000)])

    def test_streams_of_onnx_runtime(self):
        def kernel(stream, ts, **more):
            return '{"cat" : "Kernel","pid" :40,"tid" :41,"dur" :50,"ts" :%d,"ph" : "X","name" :"k%d","args" : ' \
                   '{"stream" : "%d"%s}}' % (ts, ts, stream, "".join(',"%s" : %d' % i for i in more.items()))
        said, spans = self.imported("[\n" + ",\n".join([ORT.splitlines()[1].rstrip(","), kernel(7, 100), kernel(8, 120),
                                                        kernel(7, 200, device=1)]) + "\n]")
        self.assertNotIn("cut where", said)
        self.assertEqual({(s["name"], s["domain"], s["track"]) for s in spans if s["kind"] == "kernel"},
                         {("k100", "gpu-0", "GPU 0 stream 7"), ("k120", "gpu-0", "GPU 0 stream 8"),
                          ("k200", "gpu-1", "GPU 1 stream 7")})

    def test_kernels_get_the_energy_of_their_gpu(self):
        """Constant powers: each kernel's energy is its length times the power of its own GPU."""
        power = self.write("p.csv", "time_s,package-0:power_w,gpu-0:power_w,gpu-1:power_w\n" + "".join(
            "%.2f,50,200,100\n" % (i / 100) for i in range(501)))
        second = 10**6
        trace = self.write("t.json", json.dumps({"traceEvents": XLA_NAMES + [
            x(701, 5, "main", 0, 5 * second), x(1, 13, "fusion", second, 2 * second), x(2, 13, "gemm", second, 3 * second)]}))
        self.imports("--power-log", power, "--offset", "0", trace, "-o", self.path("j.nrg"))
        shown = self.nrg("attribute", "--by", "name", "--json", self.path("j.nrg"))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        rows = {r["name"]: r for r in json.loads(shown.stdout)["rows"]}
        self.assertAlmostEqual(rows["fusion"]["energy_j"], 400, delta=4)
        self.assertAlmostEqual(rows["gemm"]["energy_j"], 300, delta=3)


ORT = """[
{"cat" : "Session","pid" :40,"tid" :41,"dur" :900,"ts" :10,"ph" : "X","name" :"session_initialization","args" : {}},
{"cat" : "Node","pid" :40,"tid" :41,"dur" :5,"ts" :1005,"ph" : "X","name" :"conv "1" \\a_fence_before","args" : {"op_name" : "Conv"}},
{"cat" : "Node","pid" :40,"tid" :41,"dur" :60,"ts" :1010,"ph" : "X","name" :"conv "1" \\a_kernel_time","args" : {"op_name" : "Conv","provider" : "CPUExecutionProvider","input_type_shape" : [{"float":[1,3]}],"node_index" : "0"}},
{"cat" : "Node","pid" :40,"tid" :41,"dur" :20,"ts" :1080,"ph" : "X","name" :"_kernel_time","args" : {"op_name" : "Relu"}},
{"cat" : "Session","pid" :40,"tid" :41,"dur" :150,"ts" :1002,"ph" : "X","name" :"SequentialExecutor::Execute","args" : {}},
{"cat" : "Session","pid" :40,"tid" :41,"dur" :160,"ts" :1000,"ph" : "X","name" :"model_run","args" : {}}
"""


class OnnxRuntime(Layers):
    EXPECTED = [("span", "session_initialization", "", 0), ("operator", 'conv "1" \\a', "Conv", 2),
                ("operator", "Relu", "Relu", 2), ("span", "SequentialExecutor::Execute", "", 1),
                ("cycle", "model_run", "", 0)]

    def test_profile(self):
        said, spans = self.imported(ORT + "]\n")
        self.assertIn("onnxruntime-profile, 5 spans in 1 cycle", said)
        self.assertEqual([(s["kind"], s["name"], s["detail"], s["depth"]) for s in spans], self.EXPECTED)
        self.assertEqual(spans[-1]["number"], 1)
        self.assertEqual((spans[1]["begin_ns"], spans[1]["end_ns"]), (1010000, 1070000))

    def test_without_its_end(self):
        said, spans = self.imported(ORT.rstrip() + ",\n")
        self.assertIn("the file is cut off", said)
        self.assertEqual([(s["kind"], s["name"], s["detail"], s["depth"]) for s in spans], self.EXPECTED)

    def test_needs_a_place(self):
        power = self.write("p.csv", "time_s,package-0:power_w\n" + "".join(
            "%.2f,%d\n" % (1.7e9 + i / 10, 5) for i in range(50)))
        self.write("ort.json", ORT + "]")
        said = self.imports("--power-log", power, self.path("ort.json"), "-o", self.path("j.nrg"), code=1)
        self.assertIn("counts time from a start of its own: give --offset SECONDS", said)
        self.assertFalse(os.path.exists(self.path("j.nrg")))
        self.imports("--power-log", power, "--offset", "1.5", self.path("ort.json"), "-o", self.path("j.nrg"))
        run = [s for s in self.spans(self.path("j.nrg")) if s["name"] == "model_run"][0]
        self.assertEqual(run["begin_ns"], int(1.7e18) + 1501000000)
        self.assertIn((1700000001500000000,), query(
            self.path("j.nrg"), "SELECT value FROM meta WHERE key = 'import.1.offset_ns'"))


class Joining(Layers):
    SCENARIO = "seed 1\ndomain package-0\n  power 30\n"

    def recorded(self):
        """A run, and dates and monotonic times that its command took at the same moments."""
        script = self.write("child.py", "import json, time, sys\nout = []\nfor i in range(20):\n"
                            "    m = time.clock_gettime_ns(time.CLOCK_MONOTONIC)\n"
                            "    r = time.time()\n    time.sleep(0.02)\n    out.append((m, r))\n"
                            "json.dump(out, open(sys.argv[1], 'w'))\n")
        self.write("scenario.txt", self.SCENARIO)
        result = self.nrg("run", "--sensor", "simulate:" + self.path("scenario.txt"), "-o", self.path("run.nrg"), "--",
                          PYTHON, script, self.path("moments.json"))
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("moments.json")) as f:
            return json.load(f)

    def test_into_a_recording(self):
        moments = self.recorded()
        layers = self.write("l.json", json.dumps([{"a": {"elapsed_time": 5.0, "start_time": real}}
                                                  for _, real in moments]))
        with open(self.path("run.nrg"), "rb") as f:
            before = hashlib.sha256(f.read()).hexdigest()
        self.imports("--into", self.path("run.nrg"), layers, "-o", self.path("joined.nrg"))
        with open(self.path("run.nrg"), "rb") as f:
            self.assertEqual(hashlib.sha256(f.read()).hexdigest(), before)
        runs = self.runs(self.path("joined.nrg"))
        self.assertEqual(len(runs), len(moments))
        for run, (mono, _) in zip(runs, moments):
            self.assertLess(abs(run["begin_ns"] - mono), 2 * 10**6)
        count = "SELECT sum(n) FROM chunk JOIN series ON series.id = series WHERE kind = 'samples'"
        self.assertEqual(query(self.path("joined.nrg"), count), query(self.path("run.nrg"), count))
        # once more, from the result: numbers go on
        self.imports("--into", self.path("joined.nrg"), "--offset", "0.5", layers, "-o", self.path("twice.nrg"))
        files = query(self.path("twice.nrg"), "SELECT key FROM meta WHERE key GLOB 'import.*.file' ORDER BY key")
        self.assertEqual(files, [("import.1.file",), ("import.2.file",)])
        twice = self.runs(self.path("twice.nrg"))
        self.assertEqual([r["begin_ns"] + 500000000 for r in twice[:20]], [r["begin_ns"] for r in twice[20:]])
        report = self.nrg("report", "--json", self.path("twice.nrg"))
        self.assertEqual(json.loads(report.stdout)["total"],
                         json.loads(self.nrg("report", "--json", self.path("run.nrg")).stdout)["total"])

    def test_the_recording_itself_only_by_force(self):
        self.recorded()
        layers = self.write("l.json", json.dumps([{"a": {"elapsed_time": 5.0, "start_time": time.time()}}]))
        said = self.imports("--into", self.path("run.nrg"), layers, "-o", self.path("run.nrg"), code=1)
        self.assertIn("is the recording itself", said)
        self.assertEqual(query(self.path("run.nrg"), "SELECT count(*) FROM span_track")[0][0], 0)
        said = self.imports("-f", "--into", self.path("run.nrg"), layers, "-o", self.path("run.nrg"))
        self.assertEqual(query(self.path("run.nrg"), "SELECT count(*) FROM span_track")[0][0], 1)
        self.assertEqual(sorted(n for n in os.listdir(self.dir) if "run.nrg" in n), ["run.nrg"])

    def test_layers_outside_of_the_power(self):
        power = self.write("p.csv", "time_s,package-0:power_w\n1700000000,5\n1700000001,6\n1700000002,6\n")
        def layers(*starts):
            return self.write("l.json", json.dumps([{"a": {"elapsed_time": 100.0, "start_time": s}} for s in starts]))
        said = self.imports("-f", "--power-log", power, layers(1700000000.5, 1700000010), "-o", self.path("j.nrg"))
        self.assertIn("lie outside of the power's readings", said)
        said = self.imports("-f", "--power-log", power, layers(1700003600), "-o", self.path("j.nrg"))
        self.assertIn("all spans lie outside of the power's readings", said)
        self.assertIn("--timezone-offset", said)

    def test_power_without_dates(self):
        power = self.write("p.csv", "time_s,package-0:power_w\n0,5\n1,6\n2,6\n")
        layers = self.write("l.json", json.dumps([{"a": {"elapsed_time": 100.0, "start_time": 1.7e9}}]))
        said = self.imports("--power-log", power, layers, "-o", self.path("j.nrg"), code=1)
        self.assertIn("has dates, but the times of the power are not", said)
        plain = self.write("plain.json", json.dumps({"a": [100.0]}))
        self.imports("--power-log", power, "--offset", "0.5", plain, "-o", self.path("j.nrg"))
        self.assertEqual(self.runs(self.path("j.nrg"))[0]["begin_ns"], 500000000)
        said = self.imports("--power-log", power, "--offset", "-0.5", plain, "-o", self.path("k.nrg"), code=1)
        self.assertIn("is the offset right?", said)
        self.assertFalse(os.path.exists(self.path("k.nrg")))

    def test_several_files_and_one_sample(self):
        power = self.write("p.log", "20240101-00:00:01.000000,5000.0,1000.0\n")
        a = self.write("a.json", json.dumps({"a": [[1.0, "20240101-00:00:01.000500"]]}))
        b = self.write("b.json", json.dumps({"b": [[1.0, "20240101-00:00:01.002500"]]}))
        said = self.imports("--power-log", power, a, b, "-o", self.path("j.nrg"))
        self.assertEqual([(r["name"], r["begin_ns"] % 10**9) for r in self.runs(self.path("j.nrg"))],
                         [("a", 999500000), ("b", 1500000)])
        self.assertIn("they begin after the last one", said)
        said = self.imports("--power-log", power, "--align", a, "-o", self.path("k.nrg"), code=1)
        self.assertIn("fewer than two readings", said)


def busy_power(seed, period_s, epoch, lag_s=0.0, repeat_s=None, counter=False):
    """A program that is busy now and then, and the readings of a sensor: text of a CSV, intervals."""
    rng = random.Random(seed)
    t, intervals = 2.0, []
    while t < 10:
        busy, rest = (0.1, repeat_s - 0.1) if repeat_s else (rng.expovariate(6) + 0.01, rng.expovariate(6) + 0.01)
        intervals.append((t, t + busy))
        t += busy + rest
    end = 12.0 if not repeat_s else t
    edges = sorted([(b, 1) for b, _ in intervals] + [(e, 0) for _, e in intervals])

    def exact(until):
        """Power of the low-passed signal at an instant, and its energy so far."""
        level, now, energy, u = 0.0, 0.0, 0.0, 0
        for at, high in edges + [(math.inf, 0)]:
            dt = min(at, until) - now
            if lag_s:
                decay = math.exp(-dt / lag_s)
                energy += u * dt + (level - u) * lag_s * (1 - decay)
                level = u + (level - u) * decay
            else:
                energy += u * dt
                level = u
            now, u = min(at, until), high
            if at >= until:
                return 5 + 3 * level, 5 * until + 3 * energy
    rows, t = [], rng.random() * period_s
    while t < end:
        power, energy = exact(t)
        rows.append((t, energy if counter else power + rng.gauss(0, 0.05)))
        t += period_s * (1 + rng.uniform(-0.02, 0.02))
    head = "time_s,package-0:%s\n" % ("energy_j" if counter else "power_w")
    return head + "".join("%.9f,%.9f\n" % (epoch + t, v) for t, v in rows), intervals


class Aligning(Layers):
    def aligned(self, said):
        found = re.search(r"moved by ([-+.\d]+) s \+- ([.\d]+) s \(correlation ([.\d]+)\)", said)
        self.assertTrue(found, said)
        return float(found[1]), float(found[2])

    def check(self, seed, **options):
        epoch, true = 1.7e9, random.Random(seed + 1000).uniform(-3, 3)
        text, intervals = busy_power(seed, epoch=epoch, **options)
        power = self.write("p.csv", text)
        layers = self.write("l.json", json.dumps([
            {"a": {"elapsed_time": (e - b) * 1e3, "start_time": epoch + b - true}} for b, e in intervals]))
        said = self.imports("-f", "--power-log", power, "--align", layers, "-o", self.path("j.nrg"))
        moved, width = self.aligned(said)
        self.assertLessEqual(abs(moved - true), width, said)
        meta = dict(query(self.path("j.nrg"), "SELECT key, value FROM meta WHERE key GLOB 'import.1.*'"))
        self.assertEqual(meta["import.1.placed"], "align")
        self.assertLess(abs(meta["import.1.offset_ns"] / 1e9 - moved), 2e-6)
        self.assertEqual(round(meta["import.1.offset_uncertainty_ns"] / 1e9, 6), width)
        return width

    def test_dates_of_another_clock(self):
        for seed in range(3):
            self.assertLess(self.check(seed, period_s=0.01), 0.005)
            self.assertLess(self.check(seed, period_s=0.1, counter=True), 0.05)

    def test_a_sensor_that_averages(self):
        self.assertLess(self.check(5, period_s=0.02, lag_s=0.4), 0.02)

    def test_files_without_dates(self):
        text, intervals = busy_power(7, 0.01, 1.7e9)
        power = self.write("p.csv", text)
        zero = intervals[0][0] - 0.75
        trace = self.write("t.json", json.dumps([{"name": "aten::mm", "ph": "X", "ts": (b - zero) * 1e6,
                                                  "dur": (e - b) * 1e6, "pid": 1, "tid": 1} for b, e in intervals]))
        self.imports("--power-log", power, "--align", trace, "-o", self.path("j.nrg"))
        first = min(s["begin_ns"] for s in self.spans(self.path("j.nrg")))
        self.assertLess(abs(first - 1.7e18 - intervals[0][0] * 1e9), 5e6)

    def test_what_can_not_be_told_is_refused(self):
        text, intervals = busy_power(9, 0.01, 1.7e9, repeat_s=0.3)
        rows = text.splitlines()  # the loop's own beginning and end are not in the log
        begin, end = intervals[3][0], intervals[-4][1]
        power = self.write("p.csv", "\n".join([rows[0]] + [r for r in rows[1:] if begin < float(
            r.split(",")[0]) - 1.7e9 < end]) + "\n")
        layers = self.write("l.json", json.dumps([
            {"a": {"elapsed_time": (e - b) * 1e3, "start_time": 1.7e9 + b}} for b, e in intervals[6:-7]]))
        said = self.imports("--power-log", power, "--align=2s", layers, "-o", self.path("j.nrg"), code=1)
        self.assertIn("two places nearly equally well", said)
        self.assertFalse(os.path.exists(self.path("j.nrg")))
        # within less than a round it is clear
        said = self.imports("--power-log", power, "--align=0.1s", layers, "-o", self.path("j.nrg"))
        moved, width = self.aligned(said)
        self.assertLessEqual(abs(moved), max(width, 0.002))
        rng = random.Random(1)
        noise = self.write("n.csv", rows[0] + "\n" + "".join("%.3f,%.3f\n" % (1.7e9 + i / 100, rng.gauss(5, 1))
                                                             for i in range(1200)))
        said = self.imports("--power-log", noise, "--align", layers, "-o", self.path("k.nrg"), code=1)
        self.assertIn("does not follow the layers' activity", said)


class Refusals(Layers):
    def test_bad_files(self):
        for text, why in (
                ("", "is empty"), ("[]", "holds no layer"), ("{}", "holds no"), ("hello", "is neither"),
                ('{"a": []}', "holds no layer"), ('{"a": [1.0], "b": 7}', "a layer has no list of runs"),
                ('{"a": [[1.0, "yesterday"]]}', "neither milliseconds nor"), ('{"a": [[1.0]]}', "no time stamp"),
                ('{"a": [[1.0, "20240101-00:00:01"], 2.0]}', "some have none"),
                ('{"a": [1.0, 2.0', "cut off"), ('[{"a": {"elapsed_time": 1, "start_time": "x"}}]', "not a number"),
                ('{"traceEvents": {}}', "traceEvents is not a list"), ('{"schemaVersion": 1}', 'no "traceEvents"'),
                ('[{"ph": "X", "name": "a"}, 7]', "an event is not an object"),
                ('{"a": [' + "[" * 100, "a run")):
            with self.subTest(text=text[:40]):
                self.assertIn(why, self.refused(text))

    def test_places_are_bytes(self):
        text = '{"a": [1.0, oops]}'
        self.assertIn("bad.json:%d:" % (text.index("oops") + 4), self.refused(text))

    def test_wrong_usage(self):
        self.write("l.json", '{"a": [1.0]}')
        for options in (["--offset", "soon"], ["--layout", "loose"], ["--align=far"], ["--into", "a", "--power-log", "b"]):
            self.imports(*options, self.path("l.json"), code=2)
        said = self.imports("--align", self.path("l.json"), code=1)
        self.assertIn("no power to align with", said)
        said = self.imports("--power-log", self.path("l.json"), self.path("l.json"), code=1)
        self.assertIn("is a file of layer times, not of power", said)


if __name__ == "__main__":
    unittest.main()
