"""A thread (or a GPU's stream): pieces of constant power on its own line of time, and the spans that it is in."""

import copy

import numpy as np


class Names:
    """Numbers of span names and of paths of them. Path 0 is outside of all spans."""

    def __init__(self, first=1, prefix="", kinds=None):
        self.first, self.prefix, self.kinds = first, prefix, kinds or {}
        self.names, self.paths, self.calls = {}, {(): 0}, {}

    def name(self, kind, name):
        return self.names.setdefault((self.kinds.get(kind, kind), self.prefix + name), len(self.names) + self.first)

    def path(self, stack):
        return self.paths.setdefault(tuple(stack), len(self.paths))

    def called(self, stack):
        path = self.path(stack)
        self.calls[path] = self.calls.get(path, 0) + 1

    def spelled(self):
        """For each path but the first: (its number, kind of its last span, names)."""
        of = {number: name for name, number in self.names.items()}
        return [(number, of[path[-1]][0], [of[name][1] for name in path]) for path, number in self.paths.items() if number]


class Thread:
    def __init__(self, names, t, index):
        self.names, self.t, self.index = names, t, index
        self.pieces = []  # (begin, end, watts, CPUs, path)
        self.events = []  # (time, 0 begin or 1 end, name, value or None)
        self.stack = []

    def run(self, seconds, watts, cpus=1):
        if seconds > 0:
            self.pieces.append((self.t, self.t + seconds, watts, cpus, self.names.path(self.stack)))
            self.t += seconds

    def sleep(self, seconds):
        self.run(seconds, 0.0, 0)

    def begin(self, kind, name, value=None):
        number = self.names.name(kind, name)
        self.stack.append(number)
        self.names.called(self.stack)
        self.events.append((self.t, 0, number, value))

    def end(self):
        self.events.append((self.t, 1, self.stack.pop(), None))

    def step_begins(self):
        return [t for t, event, _, value in self.events if event == 0 and value is not None]

    def finish(self):
        """Pieces as arrays, once there are no more."""
        self.begins, self.ends, self.watts, self.cpus, self.paths = (np.array(column) for column in zip(*self.pieces))
        self.edges = np.concatenate([self.begins, self.ends[-1:]])
        self.cpu_s = np.concatenate([[0], np.cumsum(self.cpus * (self.ends - self.begins))])

    def piece_at(self, t):
        return np.clip(np.searchsorted(self.begins, t, "right") - 1, 0, len(self.begins) - 1)

    def alive(self, t):
        return (t >= self.begins[0]) & (t < self.ends[-1])

    def alone(self):
        """Without the helpers that run some of its calls on further CPUs."""
        one = copy.copy(self)
        one.cpus = np.minimum(self.cpus, 1)
        one.cpu_s = np.concatenate([[0], np.cumsum(one.cpus * (self.ends - self.begins))])
        return one
