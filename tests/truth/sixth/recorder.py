"""When what happens in a recording: baselines, the run, readings."""

import numpy as np

BEGIN_S = 1000.0  # of the recording, by CLOCK_MONOTONIC
PERIOD_S = 0.1  # between readings of CPU times, and of a sensor that nothing is attributed by


class Timeline:
    def __init__(self, words):
        self.words = words
        before_s, after_s = words.base
        self.run_begin = BEGIN_S + 0.05 + (before_s + 0.2 if before_s else 0)
        self.run_end = self.run_begin + words.run_s
        self.end = self.run_end + (after_s + 0.2 if after_s else 0) + 0.05
        self.before = (BEGIN_S + 0.02, BEGIN_S + 0.02 + before_s) if before_s else ()
        self.after = (self.run_end + 0.1, self.run_end + 0.1 + after_s) if after_s else ()
        self.edges = [self.run_begin, self.run_end, *self.before, *self.after]

    def part(self, of_run):
        return self.run_begin + self.words.run_s * of_run

    def without(self, t, parts, seconds):
        """Times but those that are lost: so many seconds from these parts of the run on."""
        for part in parts:
            first = self.part(part)
            t = t[(t < first) | (t > first + seconds)]
        return t

    def readings(self, rng):
        """Of the sensor."""
        words, period = self.words, 1.0 / self.words.rate
        if words.adaptive and words.rate > 10:
            t = np.concatenate([np.arange(BEGIN_S + 0.01, self.run_begin + 0.06, PERIOD_S), np.arange(self.run_begin + 0.07, self.end, period)])
        else:
            t = np.arange(BEGIN_S + 0.01, self.end, period)
        t = t + 30e-6 + rng.exponential(25e-6, len(t)) + (rng.random(len(t)) < 0.003) * rng.exponential(1e-3, len(t))
        if words.starve:
            t = np.sort(t + (rng.random(len(t)) < 0.1) * rng.uniform(5e-3, 50e-3, len(t)))
        t = np.unique(np.concatenate([t, self.edges]))
        t = t[(t >= BEGIN_S) & (t <= self.end)]
        return self.without(t, (0.3, 0.7), 1.0) if words.lost_readings else t

    def cpu_readings(self, rng):
        """Of CPU times."""
        t = np.arange(BEGIN_S + 0.01, self.end, PERIOD_S)
        t = np.unique(np.concatenate([t + 60e-6 + rng.exponential(40e-6, len(t)), self.edges]))
        t = t[t <= self.end]
        return self.without(t, (0.2, 0.55, 0.8), 1.5) if self.words.lost_processes else t
