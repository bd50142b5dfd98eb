"""What GPUs waited for (nrg attribute, `waiting`): real traces of torch.profiler against a sweep over their events in Python, joined with a
power log whose joules are known, and small recordings of which each state is known."""
import gzip
import json
import os
import unittest
from datetime import datetime, timezone

import spans_file
from support import *

SHARED = os.environ.get("NRG_SHARED", os.path.join(TOP, "..", "shared"))
KINETO = os.path.join(SHARED, "data", "kineto")
needs_data = unittest.skipUnless(os.path.isdir(KINETO), "the shared data are not here")
GPU = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}
HOST = {"cpu_op", "Operator", "user_annotation", "cuda_runtime", "cuda_driver", "Runtime"}
SYNCHRONISES = {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "aten::item", "aten::_local_scalar_dense",
                "aten::is_nonzero"}


def state_of(event):
    """What an open event makes of the GPU, with its place in the order of what wins; None: nothing."""
    name = event["name"]
    if event["cat"] in GPU:
        return ((1, "collective") if "nccl" in name.lower() else (2, "copy to device") if "HtoD" in name else
                (3, "copy to host") if "DtoH" in name else (0, "work"))
    if "dataloader" in name.lower() or "data_load" in name:
        return 4, "data loader"
    return (5, "synchronisation") if name in SYNCHRONISES else None


def pieces(events):
    """(from, to, state) in us between first and last work: an event at a time, with all that is open counted."""
    edges = []
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in GPU | HOST and state_of(event):
            edges += [(event["ts"], 1, state_of(event)), (event["ts"] + event.get("dur", 0), -1, state_of(event))]
    gpu = [e for e in events if e.get("ph") == "X" and e.get("cat") in GPU]
    first, last = min(e["ts"] for e in gpu), max(e["ts"] + e["dur"] for e in gpu)
    opened, found, now = {}, [], first
    for t, change, state in sorted(edges):
        t = min(max(t, first), last)
        if t > now:
            found.append((now, t, min((s for s, n in opened.items() if n), default=(6, "gap"))[1]))
        now = max(now, t)
        opened[state] = opened.get(state, 0) + change
    return found


class Kineto(Case):
    WATTS = {"work": 300, "collective": 160, "copy to device": 120, "copy to host": 120, "data loader": 80, "synchronisation": 90, "gap": 85}

    def trace(self, name):
        path = os.path.join(KINETO, name)
        with gzip.open(path) as f:
            return path, json.load(f)["traceEvents"]

    def attributed(self, *args):
        result = self.nrg("attribute", "--json", *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def check_times(self, name):
        path, events = self.trace(name)
        result = self.nrg("import", path, "-o", self.path("t.nrg"))
        self.assertEqual(result.returncode, 0, result.stderr)
        waiting = self.attributed(self.path("t.nrg"))["waiting"]
        expected = {}
        for begin, end, state in pieces(events):
            expected[state] = expected.get(state, 0) + (end - begin) * 1e-6
        got = {part["kind"]: part["seconds"] for part in waiting["parts"]}
        got["work"] = waiting["devices"][0]["work"]["seconds"]
        for kind in set(got) | {k for k, s in expected.items() if s > 1e-9}:
            self.assertAlmostEqual(got.get(kind, 0), expected.get(kind, 0), delta=2e-6 + 1e-6 * expected.get(kind, 0), msg=kind)
        self.assertNotIn("energy_j", waiting["parts"][0])  # not known is not 0
        self.assertNotIn("share", waiting)
        self.assertAlmostEqual(waiting["time_share"], 1 - expected["work"] / sum(expected.values()), delta=1e-5)
        return waiting

    @needs_data
    def test_resnet50(self):
        waiting = self.check_times("kineto__resnet50_num_workers_0__worker0.pt.trace.json.gz")
        self.assertEqual({p["kind"] for p in waiting["parts"]}, {"copy to device", "data loader", "synchronisation", "gap"})

    @needs_data
    def test_alexnet(self):
        self.check_times("HTA__critical_path__alexnet__benchmark_result_2869224_1695835535_trace.json.gz")

    @needs_data
    def test_a_rank_of_128(self):
        waiting = self.check_times("HTA__timeline_analysis__sampled_rank-0.json.gz")
        self.assertIn("collective", {p["kind"] for p in waiting["parts"]})
        self.assertEqual({p["rank"] for p in waiting["parts"]}, {"rank 0 of 128"})

    @needs_data
    def test_joules_beside_a_power_log(self):
        """The trace's own states make the power, as nvidia-smi would log it each 10 ms."""
        path, events = self.trace("kineto__resnet50_num_workers_0__worker0.pt.trace.json.gz")
        states = pieces(events)
        lines, true_j = ["timestamp, index, power.draw [W]"], {}
        for begin, end, state in states:
            true_j[state] = true_j.get(state, 0) + (end - begin) * 1e-6 * self.WATTS[state]
        bin_us, begin_us = 10000, states[0][0] - 200000
        at = 0
        for k in range(int((states[-1][1] - begin_us) / bin_us) + 20):
            low, high, joules = begin_us + k * bin_us, begin_us + (k + 1) * bin_us, 0
            while at < len(states) and states[at][1] <= low:
                at += 1
            i, covered = at, 0
            while i < len(states) and states[i][0] < high:
                part = min(high, states[i][1]) - max(low, states[i][0])
                joules, covered, i = joules + part * self.WATTS[states[i][2]], covered + part, i + 1
            watts = (joules + (bin_us - covered) * 50) / bin_us
            stamp = datetime.fromtimestamp(((low + high) / 2) * 1e-6, timezone.utc)
            lines.append(f"{stamp:%Y/%m/%d %H:%M:%S}.{stamp.microsecond // 1000:03d}, 0, {watts:.2f} W")
        log = self.write("smi.csv", "\n".join(lines) + "\n")
        result = self.nrg("import", "--power-log", log, path, "-o", self.path("joined.nrg"))
        self.assertEqual(result.returncode, 0, result.stderr)
        document = self.attributed(self.path("joined.nrg"))
        waiting = document["waiting"]
        share = 1 - true_j["work"] / sum(true_j.values())
        self.assertTrue(waiting["low"] <= share <= waiting["high"], (share, waiting["low"], waiting["high"]))
        self.assertAlmostEqual(waiting["share"], share, delta=0.15 * share)
        for part in waiting["parts"]:
            self.assertTrue(part["low_j"] <= true_j[part["kind"]] <= part["high_j"], (part, true_j[part["kind"]]))
        text = self.nrg("attribute", self.path("joined.nrg")).stdout.decode()
        self.assertIn("of the joules went to waiting", text)


class Rocm(Case):
    """A trace as PyTorch writes it on ROCm (Kineto by roctracer or rocprofiler-sdk): HIP's calls under CUDA's category or their own, a GPU's
    queues as tracks, RCCL's kernels. There is no public one of an MI250 here, so the form is made, from what Kineto's source writes."""

    def events(self, runtime, old_copies):
        def host(cat, name, ts, dur, **args):
            return {"ph": "X", "cat": cat, "name": name, "pid": 4242, "tid": 4242, "ts": 1.7e15 + ts, "dur": dur, "args": args}

        def gpu(cat, name, ts, dur, correlation, queue=0):
            return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": queue, "ts": 1.7e15 + ts, "dur": dur,
                    "args": {"device": 1, "stream": queue, "correlation": correlation, "kind": "Dispatch Kernel"}}
        copy = "CopyHostToDevice" if old_copies else "Memcpy HtoD (Host -> Device)"
        return [host("user_annotation", "ProfilerStep#3", 0, 1000), host("cpu_op", "aten::to", 10, 60, **{"External id": 7}),
                host(runtime, "hipMemcpyWithStream", 20, 40, correlation=1, cid=38), gpu("gpu_memcpy", copy, 100, 50, 1),
                host("cpu_op", "aten::mm", 100, 50, **{"External id": 8}),
                host(runtime, "hipExtModuleLaunchKernel", 110, 10, correlation=2), host(runtime, "hipLaunchKernel", 200, 10, correlation=3),
                gpu("kernel", "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1.kd", 150, 200, 2),
                gpu("kernel", "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", 300, 150, 3, queue=2),  # 100 us of it alone
                host(runtime, "hipLaunchKernel", 450, 10, correlation=4),
                gpu("kernel", "mscclKernel_Sum_half_Simple(mscclKernelArgs)", 500, 80, 4, queue=2),
                host(runtime, "hipStreamSynchronize", 450, 50, correlation=5),  # until 500, from where the collective runs
                host(runtime, "hipLaunchKernel", 600, 10, correlation=6), gpu("kernel", "elementwise_kernel.kd", 640, 60, 6)]

    def check(self, runtime, old_copies):
        trace = {"schemaVersion": 1, "deviceProperties": [{"id": 1, "name": "AMD Instinct MI250X", "totalGlobalMem": 68702699520}],
                 "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 8}, "traceEvents": self.events(runtime, old_copies)}
        path = self.write("rocm.json", json.dumps(trace))
        done = self.nrg("import", path, "-o", self.path("rocm.nrg"), "-f")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("5 spans of the GPU, 5 tied", " ".join(done.stderr.decode().split()) + " ".join(done.stdout.decode().split()))
        got = json.loads(self.nrg("attribute", "--json", self.path("rocm.nrg")).stdout)
        parts = {p["kind"]: round(p["seconds"] * 1e6) for p in got["waiting"]["parts"]}
        self.assertEqual(parts, {"copy to device": 50, "collective": 180, "synchronisation": 50, "gap": 60})
        self.assertEqual({(d["device"], d.get("rank")) for d in got["waiting"]["devices"]}, {("gpu-1", "rank 1 of 8")})
        rows = {r["id"]: r for r in got["rows"]}
        tile, = [r for r in got["rows"] if r["name"].startswith("Cijk")]
        names = []
        while "parent" in tile:
            tile = rows[tile["parent"]]
            names.append(tile["name"])
        self.assertIn("aten::mm", names)

    def test_as_cuda_runtime(self):
        self.check("cuda_runtime", old_copies=False)

    def test_as_hip_runtime(self):
        self.check("hip_runtime", old_copies=True)


class Small(Case):
    """Two streams, a host thread and a constant power of 100 W (5 V by a Jetson's log, called gpu-0)."""

    def recording(self, fill, domain="gpu-0"):
        log = self.write("power.log", spans_file.power_log([100.0] * 301))
        result = self.nrg("import", log, "-o", self.path("small.nrg"), "-f")
        self.assertEqual(result.returncode, 0, result.stderr)
        spans = spans_file.Spans()
        fill(spans, spans.track("main", pid=7, tid=7), spans.track("GPU 0 stream 7", "gpu", 7, 0, domain),
             spans.track("GPU 0 stream 8", "gpu", 7, 0, domain))
        spans.write(self.path("small.nrg"))
        with sqlite3.connect(self.path("small.nrg")) as db:
            db.execute("UPDATE channel SET name = 'gpu-0', covers_cpu = 0, wide = 0 WHERE name = 'VDD_IN'")
        return self.path("small.nrg")

    def waiting(self, path, *args):
        result = self.nrg("attribute", "--json", *args, path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout).get("waiting")

    def seconds(self, waiting):
        return {p["kind"]: round(p["seconds"], 6) for p in waiting["parts"]}

    def test_only_what_is_exposed_counts(self):
        def fill(spans, host, one, two):
            spans.span(0.5, 1.0, "gemm", "kernel", track=one)
            spans.span(0.9, 1.3, "ncclDevKernel_AllReduce", "kernel", track=two)  # 0.3 s of it alone
            spans.span(1.4, 1.5, "Memcpy HtoD (Pageable -> Device)", "kernel", "memcpy", track=two)
            spans.span(1.45, 2.0, "gemm", "kernel", track=one)  # 0.05 s of the copy alone
            spans.span(1.3, 1.42, "dataloader.next", "phase", track=host)  # 0.1 s with nothing on the GPU
            spans.span(2.0, 2.2, "cudaDeviceSynchronize", "runtime", track=host)
            spans.span(2.3, 2.4, "gemm", "kernel", track=one)
        path = self.recording(fill)
        waiting = self.waiting(path)
        self.assertEqual(self.seconds(waiting), {"collective": 0.3, "copy to device": 0.05, "data loader": 0.1, "synchronisation": 0.2,
                                                 "gap": 0.1})
        self.assertAlmostEqual(waiting["of_seconds"], 1.9, places=6)
        self.assertAlmostEqual(waiting["of_j"], 190, delta=1e-6 * 190)
        self.assertAlmostEqual(waiting["share"], 0.75 / 1.9, delta=0.01)  # 100 W whatever it does
        self.assertIsNone(self.waiting(path, "--from", "1"))
        text = self.nrg("attribute", path).stdout.decode()
        self.assertIn("gap", text.split("WAITING OF GPUS")[1])

    def test_modules_by_events_tell_the_loader_only(self):
        def fill(spans, host, one, two):
            spans.span(0.5, 1.0, "fc1", "module", track=one)
            spans.span(1.0, 1.4, "dataloader.next", "phase", track=host)
            spans.span(1.6, 2.0, "fc1", "module", track=one)
        waiting = self.waiting(self.recording(fill))
        self.assertEqual(self.seconds(waiting), {"data loader": 0.4})
        self.assertFalse(waiting["devices"][0]["kernels"])
        self.assertAlmostEqual(waiting["devices"][0]["work"]["seconds"], 0.9, places=6)
        self.assertNotIn("static_w", waiting["devices"][0])

    def test_a_process_waits_for_its_own_gpu_only(self):
        def fill(spans, host, one, two):
            other = spans.track("other", pid=8, tid=8)
            spans.span(0.5, 1.0, "gemm", "kernel", track=one)
            spans.span(1.0, 1.2, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "operator", track=other)
            spans.span(1.2, 1.4, "gemm", "kernel", track=one)
        self.assertEqual(self.seconds(self.waiting(self.recording(fill))), {"gap": 0.2})

    def test_without_kernels_nothing_is_said(self):
        def fill(spans, host, one, two):
            spans.span(0.5, 1.0, "fc1", "module", track=host)
        self.assertIsNone(self.waiting(self.recording(fill)))

    def test_hostile_events(self):
        """Ends without begins, spans that never end, names that are not there."""
        def fill(spans, host, one, two):
            spans.event(0.4, "end", spans.name("gemm", "kernel"), track=one)
            spans.span(0.5, None, "ncclKernel", "kernel", track=two)
            spans.event(0.6, "begin", 999, track=one)
            spans.event(0.7, "end", 999, track=one)
            spans.span(0.9, 0.9, "gemm", "kernel", track=one)
        waiting = self.waiting(self.recording(fill))
        self.assertEqual(set(self.seconds(waiting)), {"collective"})


if __name__ == "__main__":
    unittest.main()
