"""A training job on GPUs whose waiting is known: what ran when on which stream, what each process did meanwhile, and the power of it.

Truth is found by cutting time at every begin and end and looking at what is open in each piece: no code of src/, and another algorithm.
"""
import numpy as np

import sensors
from machine import Piecewise, whole_ns
from recording import NO_VALUE, Recording

# What nrg should call the states, the power of each, and what communication under a kernel adds.
IDLE_W, UNDER_W = 55.0, 35.0
POWER_W = {"work": 310.0, "collective": 150.0, "copy to device": 120.0, "copy to host": 115.0, "data loader": 85.0,
           "synchronisation": 95.0, "gap": 90.0}
# Kernels, and how much more or less power than others' each uses.
KERNELS = {"void gemm_kernel<float>": 25.0, "void at::native::elementwise_kernel": -20.0, "Memcpy DtoD (Device -> Device)": -5.0,
           "Memset (Device)": -10.0}
COLLECTIVES = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclKernel_AllGather_RING_LL_Sum_int8_t")


class Rank:
    """One process with one GPU. Spans: (begin, end, track, name, kind)."""

    def __init__(self, rng, number, begin_s, end_s):
        self.number, self.spans, t = number, [], begin_s
        while t < end_s:
            t = self.step(rng, whole_ns(t))
        self.begin_s, self.end_s = begin_s, t

    def add(self, begin_s, length_s, track, name, kind):
        self.spans.append((float(whole_ns(begin_s)), float(whole_ns(begin_s + length_s)), track, name, kind))
        return self.spans[-1][1]

    def step(self, rng, t):
        begin = t
        loads = rng.random() < 0.7
        if loads:
            t = self.add(t, rng.exponential(0.012), "host", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "operator")
        copied = self.add(t + 20e-6, rng.uniform(1e-3, 6e-3), "stream 21", "Memcpy HtoD (Pinned -> Device)", "kernel")
        t = copied - (2e-3 if loads else 0.5e-3)  # the next kernel may begin under the copy
        for _ in range(int(rng.integers(3, 12))):
            t = self.add(max(t, begin) + rng.exponential(40e-6), rng.exponential(2.5e-3), "stream 7",
                         str(rng.choice(list(KERNELS))), "kernel")
            if rng.random() < 0.3:
                t += rng.exponential(1e-3)  # launches are late
        if rng.random() < 0.8:  # begins under the last kernels, ends after them
            t = max(t, self.add(t - rng.uniform(0, 4e-3), rng.uniform(3e-3, 12e-3), "stream 20",
                                str(rng.choice(COLLECTIVES)), "kernel"))
        if rng.random() < 0.5:
            out = self.add(t + 10e-6, rng.uniform(0.2e-3, 2e-3), "stream 22", "Memcpy DtoH (Device -> Pinned)", "kernel")
            t = self.add(t, out - t + rng.exponential(3e-3), "host", "cudaStreamSynchronize", "runtime")
        return t + rng.exponential(0.5e-3)

    def truth(self):
        """Pieces of constant state between first and last work: times [n + 1], states [n], powers [n]."""
        gpu = [s for s in self.spans if s[2] != "host"]
        first, last = min(s[0] for s in gpu), max(s[1] for s in gpu)
        times = np.unique([first, last] + [x for s in self.spans for x in s[:2] if first < x < last])
        middles = (times[:-1] + times[1:]) / 2

        def is_open(chosen):
            begins, ends = np.sort([s[0] for s in chosen]), np.sort([s[1] for s in chosen])
            return np.searchsorted(begins, middles, side="right") > np.searchsorted(ends, middles, side="right")

        said = {"collective": lambda s: "nccl" in s[3], "copy to device": lambda s: "HtoD" in s[3],
                "copy to host": lambda s: "DtoH" in s[3]}
        opened = {kind: is_open([s for s in gpu if rule(s)]) for kind, rule in said.items()}
        opened["work"] = is_open([s for s in gpu if not any(rule(s) for rule in said.values())])
        host = [s for s in self.spans if s[2] == "host"]
        opened["data loader"] = is_open([s for s in host if "DataLoader" in s[3]])
        opened["synchronisation"] = is_open([s for s in host if "Synchronize" in s[3]])
        order = [k for k in POWER_W if k != "gap"]
        states = np.select([opened[k] for k in order], order, "gap")
        power = np.array([POWER_W[s] for s in states]) + UNDER_W * (opened["collective"] & (states == "work"))
        for kernel, more_w in KERNELS.items():
            power += more_w * is_open([s for s in gpu if s[3] == kernel])
        return times, states, power


class InOrder(Rank):
    """Its steps are all kernels, always in the same order, and a gap."""

    def step(self, rng, t):
        for kernel in KERNELS:
            t = self.add(t, rng.gamma(10, 0.2e-3), "stream 7", kernel, "kernel")
        return t + rng.exponential(1e-3)


class Job:
    def __init__(self, seed, ranks=1, seconds=20.0, idle_s=3.0, kind=Rank):
        self.rng = np.random.default_rng(seed)
        self.begin_s, self.ranks = idle_s, [kind(self.rng, n, idle_s + 0.5 + 0.1 * n, idle_s + seconds) for n in range(ranks)]
        self.end_s = max(r.end_s for r in self.ranks) + 0.5
        self.after_s = self.end_s + idle_s

    def truth(self, rank):
        """Joules and seconds by state, and in all."""
        times, states, power = rank.truth()
        lengths = np.diff(times)
        return {k: (lengths[states == k].sum(), (lengths * power)[states == k].sum()) for k in POWER_W if (states == k).any()}

    def energy(self, rank):
        times, _, power = rank.truth()
        t = np.concatenate([[0.0], times, [self.after_s + 10]])
        return Piecewise(t, np.concatenate([[IDLE_W], power, [IDLE_W]]))

    def write(self, path, rate_hz=100, how="counter", update_s=0.02):
        recording = Recording(path)
        for rank in self.ranks:
            self.write_sensor(recording, rank, rate_hz, how, update_s)
        self.write_spans(recording)
        recording.meta(nrg_version="truth", command_line="job", begin_ns=int(sensors.stamp(0.0)))
        stamp = lambda s: int(sensors.stamp(s))
        recording.insert("run", (1, "baseline", stamp(0.1), stamp(self.begin_s - 0.1), 0),
                         (2, "run", stamp(self.begin_s), stamp(self.end_s), 0),
                         (3, "baseline", stamp(self.end_s + 0.1), stamp(self.after_s - 0.1), 0))
        recording.close()

    def write_sensor(self, recording, rank, rate_hz, how, update_s):
        self.energy_of = self.energy(rank)
        device = type("Device", (), {"energy": self.energy_of, "after_s": self.after_s})
        t = sensors.woken(self.rng, 0.02, self.after_s, 1 / rate_hz)
        if how == "counter":
            raw = sensors.counter(self.rng, device, t, update_s, 1e-3)
            channel = {"quantity": "energy", "kind": "counter", "unit": "J", "update_ns": round(update_s * 1e9)}
        else:
            raw = sensors.mean_gauge(self.rng, device, t, update_s, update_s, 1e-3)
            channel = {"quantity": "power", "kind": "gauge", "unit": "W", "update_ns": round(update_s * 1e9),
                       "window_ns": round(update_s * 1e9)}
        recording.samples("nvml", f"GPU {rank.number}", 1 / rate_hz, sensors.stamp(t),
                          [({"name": f"gpu-{rank.number}", "scale": 1e-3, "resolution": 1e-3, **channel}, raw)])

    def write_spans(self, recording):
        names, tracks, rows = {}, {}, []
        for rank in self.ranks:
            host = (rank.number, "host")
            tracks[host] = len(tracks) + 1
            step = names.setdefault(("step", "step", f"rank {rank.number} of {len(self.ranks)}"), len(names) + 1)
            begin, end = (int(sensors.stamp(x)) for x in (rank.begin_s - 0.2, rank.end_s + 0.1))
            rows.append((begin, tracks[host], 0, step, 1, NO_VALUE))
            for begin_s, end_s, track, name, kind in sorted(rank.spans):
                t = tracks.setdefault((rank.number, track), len(tracks) + 1)
                n = names.setdefault((kind, name, ""), len(names) + 1)
                rows.append((int(sensors.stamp(begin_s)), t, 0, n, NO_VALUE, NO_VALUE))
                rows.append((int(sensors.stamp(end_s)), t, 1, n, NO_VALUE, NO_VALUE))
            rows.append((end, tracks[host], 1, step, NO_VALUE, NO_VALUE))
        for (kind, name, detail), n in names.items():
            recording.insert("span_name", (n, kind, name, detail))
        for (number, track), n in tracks.items():
            gpu = track != "host"
            recording.insert("span_track", (n, "gpu" if gpu else "thread", 4000 + number, 0 if gpu else 4000 + number, 1000,
                                            f"gpu-{number}" if gpu else "", f"GPU {number} {track}"))
        rows.sort(key=lambda r: (r[0], -r[2]))  # an end before a begin of the same time
        columns = np.array(rows, dtype=np.int64).T
        recording.series("spans", 0, ("track", "event", "name", "value", "parent"), columns[0], list(columns[1:]))
