"""A scenario being made: its seed, what --off and --set ask for, its words, its main thread; and what several scenarios use."""

import numpy as np

from machine import build
from recorder import run_begin_s
from tracks import Interruption, Load, Names, Thread
from words import MACHINE, OFF_WORDS

SCENARIOS = {}
FIRST_WORK_S = 0.001  # after the run's begin


def scenario(function):
    """Random numbers come from the function's name: a scenario stays what it is when others are added, and not when it is renamed."""
    SCENARIOS[function.__name__] = function
    return function


class Scene:
    def __init__(self, name, seed, path, off=(), given=None):
        self.seed, self.path, self.off, self.given = seed, path, set(off), given or {}
        self.rng = np.random.default_rng([seed, sum(ord(letter) * 131**i for i, letter in enumerate(name)) % 2**31])
        self.names, self.words = Names(), {}

    def unless(self, mechanism, value, otherwise=0):
        return otherwise if mechanism in self.off else value

    def word(self, name, value):
        """Of the program: as --set says, or the scenario's own value."""
        return self.given.get(name, value)

    def start(self, without=(), **words):
        """The machine's words, and the main thread, which has loaded its libraries. without: mechanisms that are off in any case."""
        off = self.off.union(without)
        words.update({word: 0 for mechanism, word in OFF_WORDS.items() if mechanism in off})
        if "ticks" in off:
            words["busy"] = "cpuacct"
        self.words = {**MACHINE, **words, **{name: value for name, value in self.given.items() if name in MACHINE}}
        return self.loaded(self.words["startup"])

    def loaded(self, seconds, **more):
        thread = Thread(self.names, **more)
        thread.work(seconds, 11.0)
        return thread

    def begin_s(self):
        """When threads begin to work."""
        return run_begin_s(self.words) + FIRST_WORK_S

    def place(self, thread):
        """Puts a thread that has done all into time; loads that go by its spans are drawn after this."""
        thread.place(self.begin_s())

    def bursts(self, until_s, every_s, length_s, cpus, watts):
        """Of a load, at random times; both are means."""
        rng, t, found = self.rng, self.rng.exponential(every_s), []
        while t < until_s:
            length = length_s * rng.lognormal(0, 0.6)
            found.append((t, length, cpus, watts * rng.lognormal(0, 0.1) * cpus))
            t += length + rng.exponential(every_s)
        return found

    def worker(self, thread, every_s, length_s):
        """A child of the program that works at random times, from when its thread has loaded its libraries to shortly before it ends."""
        first_s = self.begin_s() + self.words["startup"]
        return Load("worker", [burst for burst in self.bursts(thread.end_s - 0.4, every_s, length_s, 1, 13.0) if burst[0] > first_s])

    def interrupt(self, thread, every_s, length_s, longest=1.1, rate=0.0, power=0.0):
        """Somebody takes the thread's CPU now and then. longest: by which factor that makes it take longer, at most."""
        bursts, first_s = self.bursts(thread.t * longest + 5, every_s, length_s, 1, 1.0), run_begin_s(self.words) + 0.1
        thread.interruptions = [Interruption(begin_s, length, rate, power) for begin_s, length, _, _ in bursts if begin_s > first_s]

    def write(self, threads, loads=(), others=True):
        """Writes the recording. loads have been drawn; others: also the little that runs on any machine."""
        for thread in threads:
            if thread.end_s is None:
                self.place(thread)
        loads = list(loads)
        if others and "others" not in self.off:
            main = next(thread for thread in threads if not thread.domain)
            loads.insert(0, Load("other", self.bursts(main.end_s + 6, 0.25, 0.0015, 1, 10.0)))
        build(self.path, self.names, threads, loads, self.words, self.rng, self.seed)


def interrupters(thread, watts):
    """Who interrupts a thread, as a load."""
    return Load("other", [(it.begin_s, it.length_s, 1, watts) for it in thread.interruptions])


def make(name, seed, path, off=(), given=None):
    SCENARIOS[name](Scene(name, seed, path, off, given))
