"""A program whose layers launch kernels: the host's thread, the kernels on a stream of their own, and the GPU's sensor."""

import numpy as np

from kernel import PID, START_TICKS
from program import BEGIN, END, OUTSIDE
from recorder import read_times
from thread import Thread
from writer import energy_counter, power_gauge, whole_ns

STEP = (("step", "train"),)
TRACK = 50
IDLE_W = 42.0


def columns(rows):
    return [np.array(column) for column in zip(*rows)]


class Gpu:
    """Draws steps: `thread` is the host's, `begins`, `ends`, `path` and `watts` those of the kernels."""

    def __init__(self, rng, words, times, paths):
        self.rng, self.words, self.times, self.paths = rng, words, times, paths
        self.layers = [STEP + (("module", f"layer{k}"),) for k in range(words.layers)]
        self.kernels = [layer + (("kernel", f"kern{k}"),) for k, layer in enumerate(self.layers)]
        self.sync = STEP + (("span", "cudaStreamSynchronize"),)
        for path in (STEP, *self.layers, *self.kernels, self.sync):
            paths.number(path)
        self.draw_laws()
        self.draw_steps()

    def draw_laws(self):
        rng, words, n = self.rng, self.words, self.words.layers
        self.median_s = np.exp(rng.uniform(*np.log(words.call_s), n))
        self.spread = rng.uniform(*words.spread, n)
        self.kernel_w = rng.uniform(60, 300, n)
        self.host_w = rng.uniform(10, 25, n)
        self.calls = rng.choice([1, 1, 1, 2, 3], n)

    def draw_steps(self):
        times, n = self.times, 0
        self.now, self.free = times.first_s, [times.first_s] * self.words.streams
        self.events, self.worked, self.launched = [], [], []
        while self.now < times.stop_s:
            self.step(n)
            n += 1
        self.begins, self.ends, kernel, self.stream = columns(self.launched)
        self.path = np.array([self.paths.number(path) for path in self.kernels])[kernel]
        self.watts = self.kernel_w[kernel]
        self.thread = Thread()
        self.thread.event(*columns(self.events), np.arange(len(self.events)))
        self.thread.segment(*columns(self.worked), 1.0, 1, 0)
        self.thread.segment(times.work_s, times.first_s, OUTSIDE, 15.0, 2.0, 1, 0)
        self.thread.segment(self.now, self.now + 0.01, OUTSIDE, 12.0, 1.0, 1, 0)
        self.thread.finish(self.now + 0.01)

    def event(self, what, path, number=-1):
        self.events.append((self.now, what, self.paths.number(path), number))

    def work(self, end_s, path, watts):
        self.worked.append((self.now, end_s, self.paths.number(path), watts))
        self.now = end_s

    def step(self, n):
        """Launches all kernels, and waits for the last."""
        rng, words, begin_s = self.rng, self.words, self.now
        self.event(BEGIN, STEP, n)
        for k in np.repeat(np.arange(words.layers), self.calls):
            self.launch(k)
        self.event(BEGIN, self.sync)
        self.work(max(*self.free, self.now) + 15e-6, self.sync, 9.0)
        self.event(END, self.sync)
        self.event(END, STEP, n)
        if words.step_period:
            self.now = max(self.now, begin_s + words.step_period)
        elif words.gap:
            self.now += rng.exponential(words.gap)

    def launch(self, k):
        """The host's part of a call of layer k; its kernel begins when the one before it on its stream has ended, or a little before this has."""
        rng, stream = self.rng, len(self.launched) % self.words.streams
        self.work(self.now + rng.uniform(5e-6, 10e-6), STEP, 12.0)
        self.event(BEGIN, self.layers[k])
        self.work(self.now + 20e-6 * np.exp(rng.normal(0, 0.3)), self.layers[k], self.host_w[k])
        self.event(END, self.layers[k])
        begin_s = max(self.free[stream] + 2e-6, self.now - 8e-6)
        alike = self.words.step_period
        self.free[stream] = begin_s + (self.median_s[k] if alike else self.median_s[k] * np.exp(self.spread[k] * rng.normal()))
        self.launched.append((begin_s, self.free[stream], k, stream))

    def add_to(self, power, frequency):
        watts = self.watts * frequency.at(self.begins)
        if self.words.awake:
            watts = watts + self.words.awake[0]
        power.add_domain("gpu-0", IDLE_W, *self.of_stream(0, watts))
        for stream in range(1, self.words.streams):
            power.add("gpu-0", *self.of_stream(stream, watts))
        if self.words.awake:
            self.stay_awake(power)

    def of_stream(self, stream, watts):
        on = self.stream == stream
        kernels = self.begins[on], self.ends[on], self.path[on], watts[on]
        return kernels if self.words.beside == 1 else self.beside_others(*kernels, ~on)

    def beside_others(self, begins, ends, path, watts, others):
        """Kernels of a stream, cut where those of the other one begin and end."""
        others = np.c_[self.begins[others], self.ends[others]].ravel()
        cuts = np.unique(np.concatenate([begins, ends, others]))
        middles = (cuts[:-1] + cuts[1:]) / 2
        kernel = np.searchsorted(begins, middles, side="right") - 1
        mine = (kernel >= 0) & (middles < ends[kernel])
        part = np.where(np.searchsorted(others, middles) % 2, self.words.beside, 1.0)
        return cuts[:-1][mine], cuts[1:][mine], path[kernel[mine]], (watts[kernel] * part)[mine]

    def stay_awake(self, power):
        """After each kernel, until the next or until it falls asleep. One stream only."""
        watts, rest_s = self.words.awake
        ends = np.minimum(self.ends + rest_s, np.r_[self.begins[1:], np.inf])
        power.add("gpu-0", self.ends, ends, np.full(len(ends), OUTSIDE), np.full(len(ends), watts))

    def write_sensor(self, recording, power):
        words, times = self.words, self.times
        updates = self.draw_updates()
        period_s = words.read_s or 0.02
        t, _ = read_times(self.rng, times.record_s + 0.003, times.close_s, period_s, words.late)
        t = np.sort(np.r_[self.read_of(t), times.begin_s - 3e-5, times.end_s + 3e-5])
        shown = updates[np.searchsorted(updates, t, side="right") - 1]
        said = self.counter if words.gpu_sensor == "counter" else self.gauge
        recording.samples(recording.sensor("nvml", "GPU-0", period_s), t, [said(power, shown)], width_ns=60000)
        self.write_processes(recording)

    def read_of(self, t):
        """Those of the readings that the driver answers."""
        if not self.words.unread:
            return t
        n, length_s = self.words.unread
        begins = self.rng.uniform(self.times.first_s, self.times.stop_s, n)
        return t[~((t[:, None] > begins) & (t[:, None] < begins + length_s)).any(1)]

    def draw_updates(self):
        rng, words, times = self.rng, self.words, self.times
        period_s = words.update * (1 + rng.uniform(-1, 1) * words.ppm * 1e-6)
        n = int((times.close_s - times.record_s + 3) / period_s)
        return times.record_s - 2 + rng.uniform(0, period_s) + period_s * np.arange(n) + rng.normal(0, words.update_jitter, n)

    def counter(self, power, shown):
        said = energy_counter("gpu-0", 1e-3, 1e-3, update_ns=whole_ns(self.words.update), limit_w=400.0,
                              source="nvmlDeviceGetTotalEnergyConsumption")
        return said, np.floor(power.energy_j("gpu-0", shown) * 1000 + 7e6)

    def gauge(self, power, shown):
        words = self.words
        window_s = words.window or 1e-4
        update_ns = whole_ns(words.update) if words.update_known else 0
        window_ns = whole_ns(words.window) if words.window_known else 0
        said = power_gauge("gpu-0", 1e-3, update_ns=update_ns, window_ns=window_ns, limit_w=400.0, source="nvmlDeviceGetPowerUsage")
        watts = (power.energy_j("gpu-0", shown) - power.energy_j("gpu-0", shown - window_s)) / window_s
        return said, np.floor(watts * 1000)

    def write_processes(self, recording):
        """The program is the only one on the GPU; how large a part it has is not known."""
        t = np.arange(self.times.first_s, self.times.end_s, 0.1)
        ones, missing = np.ones(len(t)), np.zeros(len(t), bool)
        values = {"pid": PID, "gpu": 0, "device_pid": PID, "sm_ppm": 900000, "memory_bytes": 1e9, "size_ppm": 0}
        rows = [value * ones for value in values.values()]
        recording.series("gpu_processes", list(values), t, rows, [None] * 5 + [missing], width_ns=4000)

    def write_spans(self, recording, names):
        """The kernels; each says below which span of the host it was launched."""
        parents = {}
        for kernel in self.kernels:
            for path in (kernel[:1], kernel[:2]):
                if path not in parents:
                    parents[path] = recording.row("span_path", parent=parents.get(path[:-1], 0), name=names[path[-1]])
        for stream in range(self.words.streams):
            recording.row("span_track", id=TRACK + stream, kind="gpu", pid=PID, tid=0, start_ticks=START_TICKS, domain="gpu-0",
                          name=f"GPU 0 stream {7 + stream}")
        of_path = {self.paths.number(kernel): (names[kernel[-1]], parents[kernel[:-1]]) for kernel in self.kernels}
        name, parent = np.repeat([of_path[path] for path in self.path.tolist()], 2, axis=0).T
        t = np.column_stack([self.begins, self.ends]).ravel()
        event = np.tile([BEGIN, END], len(self.begins))
        order = np.argsort(t, kind="stable")
        t, event, name, parent, track = (column[order] for column in (t, event, name, parent, TRACK + np.repeat(self.stream, 2)))
        present = [None, None, None, np.zeros(len(t), bool), event == BEGIN]
        recording.spans(t, [track, event, name, 0 * event, parent], present)
