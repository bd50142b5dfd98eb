"""A worker process without spans that runs at the begin of each step, as one that loads data does: its energy is not the layers' beside it.

Its CPU time is known per 100 ms alone. Spread evenly over them, what it draws was taken for the power of the first layers of each step, and steps were 15 % too
high (found with an independent simulator). Truth is in closed form: each piece of work has one power.
"""
import os
import tempfile
import unittest

from support import NRG, np  # first: it skips where there is no numpy

from judge import nrg_json
from recording import NO_VALUE, Recording

MS = 10**6
IDLE_W, WORKER_W, UNIT_J = 10.0, 13.0, 1 / 16384
LAYERS_MS, LAYERS_W = (12.0, 18.0, 15.0, 20.0, 15.0), (18.0, 24.0, 15.0, 21.0, 17.0)
START, BASE, RUN, BESIDE = 10**12, 5000 * MS, 40000 * MS, 300 * MS
SECONDS = {"quantity": "seconds", "unit": "s", "scale": 1e-9, "resolution": 1e-9}


def within(pieces, t):
    """How much of the pieces, which are apart and in order, is before each t."""
    begin, end = np.array(pieces).T
    before = np.concatenate([[0], np.cumsum(end - begin)])
    i = np.searchsorted(begin, t, side="right")
    return before[i] - np.where(i > 0, np.maximum(end[np.maximum(i - 1, 0)] - t, 0), 0)


class Loop:
    """Steps of five layers, one after the other, on one thread that is always busy."""

    def __init__(self, seed, worker_ms=30.0, at_random=False):
        self.rng = np.random.default_rng(seed)
        self.begin = at = START + BASE + BESIDE
        self.layers, self.steps, self.worker = [[] for _ in LAYERS_MS], [], []
        while at < self.begin + RUN:
            first = at
            for layer, mean_ms in enumerate(LAYERS_MS):
                end = at + int(mean_ms * MS * self.rng.lognormal(0, 0.05))
                self.layers[layer].append((at, end))
                at = end
            self.steps.append((first, at))
            self.worker.append((first + MS // 2, first + MS // 2 + int(worker_ms * MS * self.rng.lognormal(0, 0.2))))
        self.end, self.close = at, at + BESIDE
        if at_random:
            self.worker = self.random_bursts()

    def random_bursts(self):
        """60 ms every 140 ms or so, whatever the program does."""
        bursts, at = [], self.begin
        while at < self.end:
            begin = at + int(self.rng.exponential(80 * MS))
            at = begin + int(60 * MS * self.rng.lognormal(0, 0.6))
            bursts.append((begin, at))
        return [(begin, end) for begin, end in bursts if end < self.end]

    def energy_j(self, t):
        work = sum(watts * within(pieces, t) for watts, pieces in zip(LAYERS_W, self.layers))
        return (IDLE_W * (t - START) + work + WORKER_W * within(self.worker, t)) * 1e-9

    def truth_j(self):
        layers = {f"layer-{i}": watts * sum(e - b for b, e in pieces) * 1e-9 for i, (watts, pieces) in enumerate(zip(LAYERS_W, self.layers))}
        return {"step": sum(layers.values()), **layers}

    def write(self, path, other):
        """`other`: the worker is no process of the workload."""
        r = Recording(path)
        fast = np.arange(START, self.close, 10 * MS)
        fast += self.rng.integers(0, MS // 5, len(fast))
        grid = int(0.976 * MS)
        shown = self.energy_j((fast - START) // grid * grid + START)
        r.samples("rapl-powercap", "package-0", 0.01, fast, [({"name": "package-0", "scale": UNIT_J, "resolution": UNIT_J, "update_ns": MS,
                                                               "covers_cpu": 1, "limit_w": 500.0}, np.floor(shown / UNIT_J).astype(np.int64))])
        slow = np.arange(START, self.close, 100 * MS)
        busy = np.clip(slow, self.begin, self.end) - self.begin + within(self.worker, slow)
        r.samples("machine", "machine", 0.1, slow, [({"name": "cpu.busy", "update_ns": MS, "source": "/sys/fs/cgroup/cpuacct/cpuacct.usage", **SECONDS}, busy)])
        self.write_program(r, slow, other)
        r.insert("run", (1, "baseline", START, START + BASE, None), (2, "run", self.begin, self.end, 0))
        r.meta(nrg_version="in step", revision=2, command_line="program", cpus=8, begin_ns=START, end_ns=self.close)
        r.close()

    def write_program(self, r, slow, other):
        t = np.concatenate([[self.begin], slow[(slow > self.begin) & (slow < self.end)], [self.end]])
        cpu = {2: t - self.begin} | ({} if other else {3: within(self.worker, t)})
        for process, used in cpu.items():
            r.insert("process", (process, 40 + process, 42 if process > 2 else 1, 7, self.begin, self.end, int(used[-1]), 0, 1 << 20, 0, 1, "program", "program", "", ""))
        many = len(cpu)
        used = np.array(list(cpu.values())).T.ravel()
        r.series("processes", 0, ("process", "cpu_ns", "rss_bytes", "threads"), np.repeat(t, many),
                 [np.tile(list(cpu), len(t)), used, np.full(len(used), 1 << 20), np.ones(len(used))], order=0)
        r.insert("span_track", (1, "thread", 42, 42, 7, "", "main"))
        r.series("threads", 0, ("track", "cpu_ns"), t, [np.ones(len(t)), t - self.begin], order=0)
        r.insert("span_name", (1, "step", "step", ""), *((2 + i, "layer", f"layer-{i}", "") for i in range(len(LAYERS_MS))))
        spans = [(b, e, -1) for b, e in self.steps] + [(b, e, i) for i, pieces in enumerate(self.layers) for b, e in pieces]
        events = [(b, 1, layer >= 0, 0, 2 + layer) for b, e, layer in spans] + [(e, 0, layer < 0, 1, NO_VALUE) for b, e, layer in spans]
        when, _, _, event, name = (np.array(c) for c in zip(*sorted(events)))
        none = np.full(len(when), NO_VALUE)
        r.series("spans", 0, ("track", "event", "name", "value", "parent"), when, [np.ones(len(when)), event, name, none, none])


class InStep(unittest.TestCase):
    def judged(self, loop, other):
        """(error, half-width, whether it holds) of the step and of its layers."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.nrg")
            loop.write(path, other)
            rows = {row["name"]: row for row in nrg_json(NRG, "attribute", path)["rows"]}
        return [((rows[name]["energy_j"] - j) / j, (rows[name]["high_j"] - rows[name]["low_j"]) / 2 / j, rows[name]["low_j"] <= j <= rows[name]["high_j"])
                for name, j in loop.truth_j().items()]

    def check(self, other):
        judged = [self.judged(Loop(seed), other) for seed in (1, 2, 3)]
        rows = [row for of_one in judged for row in of_one]
        self.assertGreaterEqual(sum(held for _, _, held in rows), len(rows) - 1, rows)
        self.assertLess(np.median([abs(of_one[0][0]) for of_one in judged]), 0.05, rows)
        self.assertLess(np.median([width for _, width, _ in rows]), 0.4, rows)

    def test_workers_of_the_workload(self):
        self.check(other=False)

    def test_other_processes(self):
        self.check(other=True)

    def test_workers_at_random_times(self):
        """The whitened column of CPU time that is known per 100 ms had too few watts: steps were 7 to 8 % too high, at 5 to 6 %, and none held."""
        steps = [self.judged(Loop(seed, at_random=True), other=False)[0] for seed in (1, 2, 3)]
        self.assertTrue(all(held for _, _, held in steps), steps)
        self.assertLess(np.median([abs(error) for error, _, _ in steps]), 0.04, steps)


if __name__ == "__main__":
    unittest.main()
