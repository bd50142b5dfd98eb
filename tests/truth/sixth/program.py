"""What the program does: steps of modules of layers, validation, pauses; other threads and workers."""

import math
from dataclasses import dataclass, replace

import numpy as np

from thread import Thread

STARTUP_W = 10.0
WAITING = 0.15  # part of its watts that a call draws while it waits
WATTS_OF_PROCESS = (1.0, 2.0, 0.6, 1.4)


@dataclass
class Layer:
    name: str
    seconds: float
    watts: float
    calls: int  # in a step
    same_joules: bool
    stalls: bool
    shape: float
    cpus: int  # with omp
    rare: bool = False


class Program:
    def __init__(self, words, rng, names, timeline):
        self.words, self.rng, self.names, self.timeline = words, rng, names, timeline
        n_layers = int(rng.integers(words.layers[0], words.layers[1] + 1))
        layers = self.layers(6 if words.span_s else n_layers, "l")
        if words.dominate:
            layers[2].seconds, layers[2].calls = 8e-3, 8
        if words.rare:
            layers[1].rare = layers[4].rare = True
        self.validated = self.layers(3, "v") + layers[:2]
        self.overhead_s = 2e-3 if words.span_s else 60e-6
        self.step_s = self.longest_step(layers)
        blocks = in_blocks(layers)
        self.threads = [self.thread(index, blocks) for index in range(words.threads)]
        self.workers = [self.worker(index) for index in range(words.workers)]

    def layers(self, n, tag):
        words, rng, found = self.words, self.rng, []
        low, high = words.span_s or words.layer_s
        for i in range(n):
            seconds = math.exp(rng.uniform(math.log(low), math.log(high)))
            watts = rng.uniform(*words.watts)
            calls = 1 if rng.random() < 0.7 else 2
            same_joules = rng.random() < words.same_joules
            stalls = words.stall > 0 and rng.random() < 0.6
            found.append(Layer(f"{tag}{i}", seconds, watts, calls, same_joules, stalls, rng.uniform(-1, 1), int(rng.integers(1, 5))))
        return found

    def longest_step(self, layers):
        """About: no step begins that could not end in the run."""
        words, seconds = self.words, sum(layer.seconds * layer.calls for layer in layers)
        if words.span_s and words.span_s[1] > 2:
            return seconds * 0.8
        return seconds * (1 + words.warm * 0.8 + (words.step_length is not None) * 0.7) + 20 * self.overhead_s

    def thread(self, index, blocks):
        words, rng, run_end = self.words, self.rng, self.timeline.run_end
        begin = self.timeline.run_begin
        first_step = begin + (0.05 + rng.uniform(0, 0.02))
        thread = Thread(self.names, begin, index)
        thread.run(first_step - begin, STARTUP_W)
        if words.late and index > 0:
            thread.sleep(words.run_s * words.late * rng.uniform(0.7, 1.3))
        scale = 1.0
        if words.procs > 1:
            scale = WATTS_OF_PROCESS[index]
            blocks = [(f"p{index}_{name}", [replace(layer, name=f"p{index}_{layer.name}") for layer in inside]) for name, inside in blocks]
        elif index > 0:  # the same layers, in an order of its own
            blocks = [(name, list(rng.permutation(np.array(inside, dtype=object)))) for name, inside in blocks]
        self.work(thread, run_end - 0.01, blocks, scale)
        thread.run(run_end - thread.t, STARTUP_W)
        thread.finish()
        return thread

    def worker(self, index):
        """A process without spans that helps for 3 to 20 ms: each time the first thread begins a step, or at times of its own."""
        rng, begin, run_end = self.rng, self.timeline.run_begin, self.timeline.run_end
        thread = Thread(self.names, begin, 10 + index)
        thread.run(0.03, 8.0)
        if self.words.workers_in_step:
            times = self.threads[0].step_begins()
        else:
            times = np.cumsum(rng.exponential(0.04, 5000) + 0.005) + begin
        for t in times:
            if thread.t <= t <= run_end - 0.05:
                thread.sleep(t - thread.t)
                thread.run(rng.uniform(3e-3, 20e-3), 14.0 + 4 * index)
        thread.sleep(run_end - 0.005 - thread.t)
        thread.run(run_end - thread.t, STARTUP_W)
        thread.finish()
        return thread

    def work(self, thread, end, blocks, scale):
        """Steps until the end."""
        words, begin, number, validate_at = self.words, thread.t, 0, thread.t + 5.0
        pauses = [begin + (end - begin) * 0.3, begin + (end - begin) * 0.65] if words.pause else []
        overhead_w = 9.0 * scale * (words.watts[1] / 60)
        while thread.t + self.step_s * 2.2 <= end:
            if pauses and thread.t > pauses[0]:
                pauses.pop(0)
                left = end - thread.t - self.step_s * 3
                thread.sleep(min(3.5, left) if end - thread.t > self.step_s * 3 + 1 else 0)
            longer, watts = self.step_factors(thread.t - begin, scale)
            if words.validation and thread.t > validate_at:
                validate_at = thread.t + 5.0
                self.validate(thread, watts, overhead_w)
                continue
            step_begin = thread.t
            self.step(thread, number, blocks, longer, watts, overhead_w)
            number += 1
            self.gap(thread, step_begin, scale)
        thread.sleep(end - thread.t)

    def step_factors(self, since_begin, scale):
        """By how much a step's calls take longer, and draw more."""
        words, rng = self.words, self.rng
        longer = rng.uniform(*words.step_length) if words.step_length else 1.0
        watts = scale * (math.exp(rng.normal(0, words.step_watts)) if words.step_watts else 1.0)
        if words.warm:
            cold = math.exp(-since_begin / 3.0)
            watts *= 1 + 0.4 * cold
            longer *= 1 + 0.8 * cold
        if words.watts_grow:
            watts *= 1 + words.watts_grow * since_begin / words.run_s
        if words.throttle and int(since_begin / 3.0) % 2:
            watts *= 0.7
            longer *= 1.3
        return longer, watts

    def validate(self, thread, watts, overhead_w):
        thread.begin("phase", "validation")
        end = thread.t + 1.0
        while thread.t < end:
            for layer in self.validated:
                self.call(thread, layer, 1.0, watts)
                thread.run(self.rng.uniform(0.2, 2) * 20e-6, overhead_w)
        thread.end()

    def step(self, thread, number, blocks, longer, watts, overhead_w):
        words, rng = self.words, self.rng
        thread.begin("step", "step", number)
        thread.run(self.overhead_s * rng.uniform(0.5, 1.5), overhead_w)
        for block, layers in blocks:
            modules = (block, block + ".inner")[:words.nest - 1]
            for module in modules:
                thread.begin("module", module)
            thread.run(self.overhead_s * 0.3 * rng.uniform(0.5, 1.5), overhead_w)
            for layer in layers:
                if layer.rare and rng.random() > 0.03:
                    continue
                for _ in range(layer.calls):
                    self.call(thread, layer, longer, watts)
                    thread.run(self.overhead_s * 0.2 * rng.uniform(0.5, 1.5), overhead_w)
            for _ in modules:
                thread.end()
        if words.recurse:
            self.tree(thread, 0)
        thread.end()

    def gap(self, thread, step_begin, scale):
        words, rng = self.words, self.rng
        if words.pad:
            n = math.ceil((thread.t - step_begin) / words.pad + 0.02)
            thread.sleep(max(0, step_begin + n * words.pad - thread.t + rng.normal(0, 10e-6)))
        elif words.gap == "sleep":
            thread.sleep(rng.uniform(*words.gap_ms) * 1e-3 * (20 * words.span_s[0] if words.span_s else 1))
        elif words.gap == "busy":
            thread.run(rng.uniform(*words.gap_ms) * 1e-3, 15.0 * scale)

    def call(self, thread, layer, longer, factor):
        words, rng = self.words, self.rng
        seconds = layer.seconds * longer * math.exp(rng.normal(0, words.spread))
        watts = layer.watts * factor
        if words.call_watts:
            watts *= math.exp(rng.normal(0, words.call_watts))
        if words.watts_by_length:
            watts *= (seconds / (layer.seconds * longer)) ** words.watts_by_length
        if layer.same_joules:
            watts *= layer.seconds / seconds
        thread.begin("layer", layer.name)
        self.inside(thread, layer, seconds, watts)
        thread.end()

    def inside(self, thread, layer, seconds, watts):
        """Of a call: on several CPUs, by others, with a wait, in two halves, or plain."""
        words, rng = self.words, self.rng
        if words.omp:
            if layer.stalls:
                waits = min(seconds * 0.8, seconds * words.stall * rng.gamma(1.0))
                thread.run(waits, WAITING * watts, 0)
                seconds -= waits
            thread.run(seconds, watts * layer.cpus, layer.cpus)
        elif words.pool and thread.index == 0:
            thread.sleep(seconds)
        elif layer.stalls:
            waits = min(seconds * 0.8, seconds * words.stall * rng.gamma(1.0))
            before = rng.uniform(0.1, 0.6)
            thread.run((seconds - waits) * before, watts)
            thread.run(waits, WAITING * watts, 0)
            thread.run((seconds - waits) * (1 - before), watts)
        elif words.shape:
            more = words.shape * layer.shape
            thread.run(seconds / 2, watts * (1 + more))
            thread.run(seconds / 2, watts * (1 - more))
        else:
            thread.run(seconds, watts)

    def tree(self, thread, depth):
        """A span that calls itself."""
        rng = self.rng
        thread.begin("span", "tree")
        thread.run(rng.uniform(0.2e-3, 1e-3), 30.0 - 4 * depth)
        if depth < 3:
            for _ in range(rng.integers(0, 3)):
                self.tree(thread, depth + 1)
        thread.run(rng.uniform(0.1e-3, 0.4e-3), 12.0)
        thread.end()


def in_blocks(layers):
    """(name, layers) of modules."""
    n = len(layers)
    k = 1 if n < 3 else 2 if n < 10 else 3
    cuts = [round(i * n / k) for i in range(k + 1)]
    return [(f"block{i}", layers[cuts[i]:cuts[i + 1]]) for i in range(k)]
