"""A machine whose two CPUs are never idle: others run whenever the program does not, before, in and after the run.

Readings then tell the difference between what the program and the others draw, and neither by itself, unless baselines had more of them once. Found with a real
kernel (tests/truth/real): others' CPU time is known per 100 ms, and if it is spread evenly over them, the others seem to draw next to nothing.
"""
import os
import tempfile
import unittest

from support import NRG, np  # first: it skips where there is no numpy

from judge import nrg_json
from recording import NO_VALUE, Recording

MS = 10**6
CPUS, IDLE_W, OTHERS_W, UNIT_J = 2, 8.0, 11.0, 1 / 16384
LAYERS_MS, LAYERS_W = (0.7, 1.5, 2.5, 4.0, 6.0), (30.0, 12.0, 25.0, 38.0, 17.0)
START, BASE, RUN, BESIDE = 10**12, 3000 * MS, 12000 * MS, 300 * MS
SECONDS = {"quantity": "seconds", "unit": "s", "scale": 1e-9, "resolution": 1e-9}


class Crowd:
    """One thread that loses its CPU every few ms. Of the baselines, others have `before` and `after` CPUs; in the run, all that the thread leaves."""

    def __init__(self, seed, before=CPUS, after=CPUS):
        self.rng = np.random.default_rng(seed)
        self.begin = START + BASE + BESIDE
        self.pieces, self.spans, self.edges = [], [], []  # (begin, end, layer), (begin, end, layer), thread's CPU time at edges
        at, used = self.begin, 0
        while at < self.begin + RUN:
            step = len(self.spans)
            self.spans.append(None)
            first = at
            for layer, mean_ms in enumerate(LAYERS_MS):
                self.edges.append((at, used))
                at, end = self.call(at, layer, int(mean_ms * MS * self.rng.lognormal(0, 0.15)))
                used += end
                self.spans.append((self.call_begin, at, layer))
            self.spans[step] = (first, at, -1)
        self.edges.append((at, used))
        self.end, self.close = at, at + BESIDE + BASE
        self.cpus = ((START, before), (self.begin, CPUS), (self.end, after))

    def call(self, at, layer, left):
        """Works for so long, in stretches: returns its end, and its CPU time."""
        self.call_begin, used = at, left
        while left > 0:
            work = min(left, int(self.rng.exponential(5 * MS)) + 1)
            self.pieces.append((at, at + work, layer))
            at, left = at + work, left - work
            if left > 0 or self.rng.random() < 0.2:
                at += int(self.rng.exponential(4 * MS)) + 1
        return at, used

    def mine_ns(self, t, layer=None):
        begin, end, of = np.array(self.pieces).T
        chosen = slice(None) if layer is None else of == layer
        begin, end = begin[chosen], end[chosen]
        before = np.concatenate([[0], np.cumsum(end - begin)])
        i = np.searchsorted(begin, t, side="right")
        return before[i] - np.where(i > 0, np.maximum(end[np.maximum(i - 1, 0)] - t, 0), 0)

    def busy_ns(self, t):
        """Of all CPUs: the thread's and the others'."""
        ends = [at for at, _ in self.cpus[1:]] + [1 << 62]
        return sum(cpus * np.clip(np.minimum(t, until) - at, 0, None) for (at, cpus), until in zip(self.cpus, ends))

    def energy_j(self, t):
        layers = sum((watts - OTHERS_W) * self.mine_ns(t, i) for i, watts in enumerate(LAYERS_W))
        return (IDLE_W * (t - START) + OTHERS_W * self.busy_ns(t) + layers) * 1e-9

    def layer_j(self, layer):
        return LAYERS_W[layer] * float(self.mine_ns(self.end, layer)) * 1e-9

    def counted_ns(self, t):
        """The thread's CPU time as the kernel shows it: as of its last tick, or its last switch to another one."""
        begin, end, _ = np.array(self.pieces).T
        i = np.maximum(np.searchsorted(begin, t, side="right") - 1, 0)
        tick = np.maximum(t // (4 * MS) * (4 * MS), begin[i])
        return self.mine_ns(np.where(t < end[i], tick, t))

    def write_counter(self, r):
        fast = np.arange(START, self.close, 10 * MS) + self.rng.integers(0, MS // 5, (self.close - START - 1) // (10 * MS) + 1)
        fast = np.sort(np.append(fast, [self.begin, self.end]))
        grid = int(0.976 * MS)
        shown = self.energy_j((fast - START) // grid * grid + START)
        r.samples("rapl-powercap", "package-0", 0.01, fast, [({"name": "package-0", "scale": UNIT_J, "resolution": UNIT_J, "update_ns": MS,
                                                               "covers_cpu": 1, "limit_w": 500.0}, np.floor(shown / UNIT_J).astype(np.int64))])

    def write_estimate(self, r, slow):
        """A model of CPU time: idle power, and OTHERS_W for each busy CPU."""
        idle = IDLE_W * (slow - START) * 1e-3
        model = {"scale": 1e-6, "update_ns": 100 * MS, "provenance": "estimated"}
        r.samples("estimate", "a family", 0.1, slow, [
            ({"name": "machine", "covers_cpu": 1, "error_low": 0.5, "error_high": 1.0, **model}, idle + OTHERS_W * self.busy_ns(slow) * 1e-3),
            ({"name": "machine.idle", "parent": "machine", **model}, idle)])

    def write(self, path, estimate=False):
        r = Recording(path)
        slow = np.arange(START, self.close, 100 * MS)
        if estimate:
            self.write_estimate(r, slow)
        else:
            self.write_counter(r)
        late = self.rng.integers(0, 4 * MS, len(slow))  # busy time is as of the last tick of the other CPU
        r.samples("machine", "machine", 0.1, slow, [({"name": "cpu.busy", "update_ns": 4 * MS, "source": "/sys/fs/cgroup/cpuacct/cpuacct.usage", **SECONDS},
                                                     np.maximum.accumulate(self.busy_ns(slow) - late))])
        self.write_program(r, slow)
        r.insert("run", (1, "baseline", START, START + BASE, None), (2, "run", self.begin, self.end, 0),
                 (3, "baseline", self.close - BASE, self.close - MS, None))
        r.meta(nrg_version="crowd", revision=2, command_line="program", cpus=CPUS, begin_ns=START, end_ns=self.close)
        r.close()

    def write_program(self, r, slow):
        t = np.concatenate([[self.begin], slow[(slow > self.begin) & (slow < self.end)], [self.end]])
        r.insert("process", (2, 42, 1, 7, self.begin, self.end, int(self.mine_ns(self.end)), 0, 1 << 20, 0, 1, "program", "program", "", ""))
        r.series("processes", 0, ("process", "cpu_ns", "rss_bytes", "threads"), t,
                 [np.full(len(t), 2), self.counted_ns(t), np.full(len(t), 1 << 20), np.ones(len(t))], order=0)
        r.insert("span_track", (1, "thread", 42, 42, 7, "", "main"))
        edges = np.array(self.edges + list(zip(t, self.counted_ns(t))))
        edges = edges[np.argsort(edges[:, 0], kind="stable")]
        r.series("threads", 0, ("track", "cpu_ns"), edges[:, 0], [np.ones(len(edges)), edges[:, 1]], order=0)
        r.insert("span_name", (1, "step", "step", ""), *((2 + i, "layer", f"layer-{i}", "") for i in range(len(LAYERS_MS))))
        events = []
        for k, (begin, end, layer) in enumerate(self.spans):  # a step's begin comes before its first layer's, its end after the last one's
            events += [(begin, 2 * k, 0, 2 + layer), (end, 10**9 + (layer < 0), 1, NO_VALUE)]
        when, _, event, name = (np.array(c) for c in zip(*sorted(events, key=lambda e: (e[0], -e[2], e[1]))))
        none = np.full(len(when), NO_VALUE)
        r.series("spans", 0, ("track", "event", "name", "value", "parent"), when, [np.ones(len(when)), event, name, none, none])


class CrowdTest(unittest.TestCase):
    def judged(self, crowd, estimate=False):
        """(error, half-width, whether it holds) of the step and of its layers. Of an estimate: of what its law says."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.nrg")
            crowd.write(path, estimate)
            rows = {row["name"]: row for row in nrg_json(NRG, "attribute", path)["rows"]}
        layers = {f"layer-{i}": crowd.layer_j(i) * (OTHERS_W / LAYERS_W[i] if estimate else 1) for i in range(len(LAYERS_MS))}
        return [((rows[name]["energy_j"] - j) / j, (rows[name]["high_j"] - rows[name]["low_j"]) / 2 / j, rows[name]["low_j"] <= j <= rows[name]["high_j"])
                for name, j in {"step": sum(layers.values()), **layers}.items()]

    def test_intervals_have_what_others_may_draw(self):
        rows = [row for seed in (1, 2, 3) for row in self.judged(Crowd(seed))]
        self.assertGreaterEqual(sum(held for _, _, held in rows), len(rows) - 1, rows)
        self.assertLess(np.median([width for _, width, _ in rows]), 0.8)  # they draw no more than all of the baseline

    def test_baselines_that_differ_tell_it(self):
        for before, after in ((1, CPUS), (CPUS, 1)):
            rows = self.judged(Crowd(4, before, after))
            self.assertTrue(all(held for _, _, held in rows), rows)
            self.assertLess(abs(rows[0][0]), 0.1, rows)

    def test_rows_of_an_estimate_lose_nothing(self):
        """Processes are as of the last tick, threads' own readings are not: what the one lacks in a cell it has in the next."""
        for seed in (5, 6):
            rows = self.judged(Crowd(seed), estimate=True)
            self.assertLess(abs(rows[0][0]), 0.003, rows)
            self.assertTrue(rows[0][2], rows)


if __name__ == "__main__":
    unittest.main()
