"""Who draws power when: threads (and GPUs) with spans, and loads, which use CPUs without spans. Both answer what they do at given times.

A thread is a list of segments of constant power, one after the other; events of spans stand between segments. Only at the end, when it is known
who interrupts it, segments get their places in time."""

from typing import NamedTuple

import numpy as np

OUTSIDE = -1  # the path of what is in no span; the number of what is in no step
BEGIN, END = 0, 1
STOPPED = 1e-6  # progress below this is none,
AS_GOOD_AS_STOPPED = 1e-7  # and this is written for it: time must go on


class State(NamedTuple):
    """At some times: which segment (-1: none), watts, busy CPUs, whether the thread runs, watts of memory."""
    segment: np.ndarray
    watts: np.ndarray
    cpus: np.ndarray
    running: np.ndarray
    dram_w: np.ndarray


class Event(NamedTuple):
    """Of a span, before the segment `at`."""
    at: int
    what: int
    name: int
    number: int = None
    parent: int = None  # a path, where a kernel says below which span it belongs


class Interruption(NamedTuple):
    """Somebody else takes the CPU or a part of it: how fast the thread goes on, and what part of its watts it draws."""
    begin_s: float
    length_s: float
    rate: float
    power: float


class Names:
    """Ids of (kind, name, detail), and numbers of places in the tree of spans: `places` are (place of the parent, id of the name)."""

    def __init__(self):
        self.ids, self.numbers, self.places = {}, {}, []

    def id(self, kind, name, detail=""):
        return self.ids.setdefault((kind, name, detail), len(self.ids) + 1)

    def path(self, parent, name_id):
        place = (parent, name_id)
        if place not in self.numbers:
            self.numbers[place] = len(self.places)
            self.places.append(place)
        return self.numbers[place]


class Thread:
    """A track of spans. A GPU's has a domain; `process` counts processes of the program."""

    def __init__(self, names, domain="", number=0, process=0):
        self.names, self.domain, self.number, self.process = names, domain, number, process
        self.segments, self.events, self.interruptions = [], [], []
        self.stack, self.step, self.t = [(OUTSIDE, 0)], OUTSIDE, 0.0
        self.calls, self.step_names = {}, set()
        self.progress = self.end_s = None

    def begin(self, kind, name, detail="", number=None, parent=None):
        name_id = self.names.id(kind, name, detail)
        inside = self.stack[-1][0] if parent is None or len(self.stack) > 1 else parent
        path = self.names.path(inside, name_id)
        self.calls[path] = self.calls.get(path, 0) + 1
        self.events.append(Event(len(self.segments), BEGIN, name_id, number, parent))
        self.stack.append((path, name_id))
        if kind == "step":
            self.step_names.add(name_id)
            self.step = number

    def end(self):
        _, name_id = self.stack.pop()
        self.events.append(Event(len(self.segments), END, name_id))
        if name_id in self.step_names:
            self.step = OUTSIDE

    def work(self, length_s, watts, cpus=1.0, running=1, dram_w=0.0):
        if length_s > 0:
            self.segments.append((length_s, watts, cpus, running, self.stack[-1][0], dram_w, self.step))
            self.t += length_s

    def wait(self, length_s):
        self.work(length_s, 0.0, 0.0, 0)

    def until(self, t):
        if t > self.t:
            self.wait(t - self.t)

    def span(self, kind, name, *works, detail="", wait=0):
        """A span that only works ((length, watts) or (length, watts, watts of memory)) and then waits."""
        self.begin(kind, name, detail)
        for length_s, watts, *dram_w in works:
            self.work(length_s, watts, dram_w=dram_w[0] if dram_w else 0.0)
        if wait:
            self.wait(wait)
        self.end()

    def place(self, start_s):
        """Puts segments into time, the first at start_s."""
        columns = [np.asarray(column) for column in zip(*self.segments)]
        self.length_s, self.path, self.step_of = columns[0], columns[4], columns[6]
        self.watts, self.cpus, self.running, self.dram_w = (columns[i].astype(float) for i in (1, 2, 3, 5))
        worked_s = np.concatenate([[0.0], np.cumsum(self.length_s)])
        self.times = start_s + worked_s
        if self.interruptions:
            self.stretch(start_s, worked_s)
        self.end_s = self.times[-1]

    def stretch(self, start_s, worked_s):
        """Moves segments to when the thread gets to them, slowed down by its interruptions."""
        times, rates, powers = [start_s], [], []
        for begin_s, length_s, rate, power in sorted(self.interruptions):
            if begin_s > times[-1]:
                times += [begin_s, begin_s + length_s]
                rates += [1.0, max(rate, AS_GOOD_AS_STOPPED)]
                powers += [1.0, power]
        times.append(times[-1] + worked_s[-1] + 1)
        times, rates, powers = np.asarray(times), np.asarray(rates + [1.0]), np.asarray(powers + [1.0])
        done_s = np.concatenate([[0.0], np.cumsum(np.diff(times) * rates)])
        self.times = np.interp(worked_s, done_s, times)
        self.progress = (times, rates, powers)

    def edges(self):
        """Times at which its power may change."""
        if self.progress is None:
            return self.times
        changes = self.progress[0]
        return np.union1d(self.times, changes[changes < self.end_s])

    def at(self, t):
        segment = np.searchsorted(self.times, t, side="right") - 1
        inside = (segment >= 0) & (segment < len(self.length_s))
        i = np.where(inside, segment, 0)
        watts, cpus, running, dram_w = (column[i] * inside for column in (self.watts, self.cpus, self.running, self.dram_w))
        if self.progress is not None:
            times, rates, powers = self.progress
            k = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(rates) - 1)
            stopped = rates[k] < STOPPED
            watts, dram_w = watts * powers[k], dram_w * powers[k]
            cpus, running = np.where(stopped, 0, cpus), np.where(stopped, 0, running)
        return State(np.where(inside, segment, OUTSIDE), watts, cpus, running, dram_w)

    def times_of(self, what, kind, name, detail=""):
        """When spans of a name begin or end."""
        name_id = self.names.ids[(kind, name, detail)]
        return self.times[np.array([event.at for event in self.events if event.what == what and event.name == name_id])]


class Load:
    """CPU use without spans. owner: 'other' (a process of somebody else), 'recorder', or 'worker' (a child of the program). bursts: (begin,
    length, CPUs, watts); one that runs into the next is cut."""

    def __init__(self, owner, bursts):
        self.owner = owner
        bursts = np.asarray(sorted(map(tuple, bursts)), float).reshape(-1, 4)
        if len(bursts) > 1:
            next_s = np.append(bursts[1:, 0], np.inf)
            bursts[:, 1] = np.minimum(bursts[:, 1], next_s - bursts[:, 0])
            bursts = bursts[bursts[:, 1] > 0]
        self.bursts = bursts
        self.times = np.stack([bursts[:, 0], bursts[:, 0] + bursts[:, 1]], 1).ravel() if len(bursts) else np.zeros(0)

    def edges(self):
        return self.times

    def at(self, t):
        if not len(self.times):
            nothing = np.zeros(len(t))
            return State(nothing.astype(int) - 1, nothing, nothing, nothing, nothing)
        edge = np.searchsorted(self.times, t, side="right") - 1
        inside = (edge >= 0) & (edge % 2 == 0)
        i = np.where(inside, edge // 2, 0)
        cpus = self.bursts[i, 2] * inside
        return State(np.where(inside, edge, OUTSIDE), self.bursts[i, 3] * inside, cpus, (cpus > 0) * 1.0, 0 * cpus)
