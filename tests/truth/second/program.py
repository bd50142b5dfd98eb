"""A program of steps and layers, drawn at random: what each of its threads (or its GPU) does when, and in which spans."""

import math

import numpy as np

OUTSIDE = -1  # the path of what is in no span
BEGIN, END = 0, 1


class Spans:
    """Ids of the names and of the paths (tuples of names) of spans, shared by all tracks of a machine."""

    def __init__(self):
        self.names, self.paths = {}, {}

    def name(self, kind, name):
        return self.names.setdefault((kind, name), len(self.names) + 1)

    def path(self, path):
        return self.paths.setdefault(path, len(self.paths))


class Track:
    """One thread or GPU stream: pieces (from t on: in this path, at work or not) and events (t, begin or end, name, value)."""

    def __init__(self):
        self.t, self.path, self.busy = [], [], []
        self.events = []
        self.steps = 0
        self.now = 0.0

    def spend(self, seconds, path, busy):
        self.t.append(self.now)
        self.path.append(path)
        self.busy.append(busy)
        self.now += seconds

    def event(self, what, name, value=None):
        self.events.append((self.now, what, name, value))

    def at(self, t):
        """The path and whether it works, at times t."""
        i = np.searchsorted(np.array(self.t), t, "right") - 1
        begun, i = i >= 0, np.maximum(i, 0)
        return np.where(begun, np.array(self.path)[i], OUTSIDE), np.where(begun, np.array(self.busy)[i], 0)


class Program:
    """Draws one track from begin_s to end_s."""

    def __init__(self, rng, words, spans, begin_s, end_s, prefix):
        self.rng, self.words, self.spans, self.prefix, self.end_s = rng, words, spans, prefix, end_s
        self.draw_layers()
        self.step_path = (prefix + "step",)
        self.step_name = spans.name("step", prefix + "step")
        self.layers = [prefix + f"l{i:02d}" for i in range(words.layers)]
        self.layer_names = [spans.name("module", name) for name in self.layers]
        self.track = Track()
        self.begin(begin_s)

    def draw_layers(self):
        rng, words, n = self.rng, self.words, self.words.layers
        shortest, longest = words.len
        self.mean_s = np.exp(rng.uniform(math.log(shortest), math.log(longest), n))
        self.likely = rng.choice([1, 1, 0.7, 0.4, 0.15], n) if words.partial else np.ones(n)
        self.repeats = rng.integers(1, 4, n) if words.reps else np.ones(n, int)
        self.groups = [np.arange(n)]
        if words.nested:
            cuts = rng.choice(np.arange(1, n), max(2, n // 4) - 1, replace=False)
            self.groups = np.split(np.arange(n), np.sort(cuts))
        self.wait_s = rng.uniform(0, 2, n) if words.stall_uneven else np.ones(n)
        self.self_s = float(self.mean_s.mean()) * words.self

    def begin(self, begin_s):
        first_s = begin_s + self.rng.uniform(0.01, 0.05)
        edge = self.words.edgebusy
        self.track.now = begin_s - (0.0499 if edge else 0)
        self.track.spend(0, OUTSIDE, int(edge))
        self.track.now = first_s

    def run(self):
        while self.track.now <= self.end_s - 0.01:
            self.gap()
            if self.track.now + self.longest_step_s() > self.end_s - 0.01:
                break
            self.step()
        if self.words.edgebusy:
            self.track.spend(0, OUTSIDE, 1)
            self.track.now = max(self.track.now, self.end_s + 0.0499)
        self.track.spend(0, OUTSIDE, 0)
        return self.track

    def slow(self):
        return 4.0 if self.track.steps < self.words.warm else 1.0

    def longest_step_s(self):
        waits = 1 + (self.words.stall_frac if self.words.stall else 0)
        return (self.mean_s * self.likely * self.repeats).sum() * self.slow() * waits * 1.15

    def gap(self):
        if not self.words.gap or self.rng.random() >= self.words.gap[0]:
            return
        _, median_s, where = self.words.gap
        seconds = self.rng.lognormal(math.log(median_s), 0.5)
        if where == "span":
            self.load(seconds)
        else:
            self.track.spend(seconds, OUTSIDE, 0)

    def load(self, seconds):
        """A span that waits, then works."""
        name, path = self.spans.name("span", self.prefix + "load"), self.spans.path((self.prefix + "load",))
        self.track.event(BEGIN, name)
        self.track.spend(seconds * 0.7, path, 0)
        self.track.spend(seconds * 0.3, path, 1)
        self.track.event(END, name)
        self.track.spend(2e-6, OUTSIDE, 1)

    def work(self, path, seconds):
        self.track.spend(seconds, self.spans.path(path), 1)

    def about(self, seconds):
        return seconds * self.rng.uniform(0.5, 1.5)

    def step(self):
        self.track.event(BEGIN, self.step_name, self.track.steps)
        self.work(self.step_path, self.about(self.self_s))
        for number, group in enumerate(self.groups):
            if self.words.nested:
                self.block(number, group)
            else:
                self.calls(self.step_path, group)
            self.work(self.step_path, 1e-6)
        self.work(self.step_path, self.self_s * 0.5)
        self.track.event(END, self.step_name)
        self.track.spend(self.words.between * self.rng.uniform(0.3, 2), OUTSIDE, self.words.outbusy)
        self.track.steps += 1

    def block(self, number, group):
        block = self.prefix + f"block{number}"
        path, name = self.step_path + (block,), self.spans.name("module", block)
        own_s = self.mean_s[group].mean() * self.words.nested
        self.track.event(BEGIN, name)
        self.work(path, self.about(own_s))
        self.calls(path, group)
        self.work(path, self.about(own_s * 0.5))
        self.track.event(END, name)

    def calls(self, parent, group):
        """The layers of a group, and a little of the parent's own time after each."""
        order = np.repeat(group, self.repeats[group])
        if self.words.irregular:
            order = self.rng.permutation(order)
        for i in order:
            if self.likely[i] < 1 and self.rng.random() > self.likely[i]:
                continue
            self.call(parent, i)
            self.work(parent, self.about(self.self_s * 0.3) + 3e-7)

    def call(self, parent, i):
        path = self.spans.path(parent + (self.layers[i],))
        self.track.event(BEGIN, self.layer_names[i])
        seconds = self.mean_s[i] * self.rng.lognormal(0, self.words.jit) * self.slow()
        wait_s, where = self.wait(i) if self.words.stall else (0.0, 1.0)
        if where > 0:
            self.track.spend(seconds * where, path, 1)
        if wait_s > 0:
            self.track.spend(wait_s, path, 0)
        if where < 1:
            self.track.spend(seconds * (1 - where), path, 1)
        self.track.event(END, self.layer_names[i])

    def wait(self, i):
        """How long a call of layer i waits, and after which part of its work."""
        rng, kind = self.rng, self.words.stall
        seconds = self.mean_s[i] * self.words.stall_frac * self.wait_s[i]
        seconds *= min(rng.pareto(1.5), 200) if kind == "heavy" else rng.exponential()
        if kind == "heavy" and rng.random() > 0.5:
            seconds = 0
        where, where_heavy = rng.uniform(), rng.uniform()  # both, always: seeds stay what they were
        return seconds, {"uniform": where, "heavy": where_heavy, "start": 0.0, "end": 1.0}[kind]


def tracks(rng, words, spans):
    """The tracks of all threads."""
    own = words.threads > 1 and not words.same
    prefixes = [f"T{i}." if own else "" for i in range(words.threads)]
    return [Program(rng, words, spans, words.begin_s + 0.05, words.end_s - 0.05, prefix).run() for prefix in prefixes]
