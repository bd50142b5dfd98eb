"""Linux's accounting: run time up to the last tick or switch, ticks of /proc/stat, rows that threads write themselves."""
import numpy as np


class RunTime:
    """CPU time of a task from its intervals on a CPU."""

    def __init__(self, intervals):
        self.a, self.b = intervals if len(intervals) else (np.zeros(0), np.zeros(0))
        self.sums = np.concatenate([[0], np.cumsum(self.b - self.a)])

    def exact(self, t):
        t = np.asarray(t, float)
        if not len(self.a):
            return np.zeros(t.shape)
        at = np.searchsorted(self.a, t, "right") - 1
        low = np.maximum(at, 0)
        return np.where(at < 0, 0, self.sums[low] + np.minimum(t, self.b[low]) - self.a[low])

    def late(self, t, hz, phase):
        """As the kernel shows it: of a task that runs, up to the last tick of its CPU."""
        t = np.asarray(t, float)
        if not len(self.a):
            return np.zeros(t.shape)
        tick = np.floor((t - phase) * hz) / hz + phase
        at = np.searchsorted(self.a, t, "right") - 1
        low = np.maximum(at, 0)
        seen = np.where((at >= 0) & (t < self.b[low]), np.maximum(tick, self.a[low]), t)
        return self.exact(seen)

    def runs_at(self, t):
        at = np.searchsorted(self.a, t, "right") - 1
        return (at >= 0) & (t < self.b[np.maximum(at, 0)]) if len(self.a) else np.zeros(np.shape(t), bool)


class Kernel:
    """tasks: list of (cpu, RunTime). hz: the kernel's tick."""

    def __init__(self, tasks, hz, rng, end, cpus):
        self.tasks, self.hz = tasks, hz
        self.phase = rng.uniform(0, 1 / hz) + np.arange(cpus) * rng.choice([0.0, 1 / hz / cpus])  # skew_tick or not
        ticks = []
        for cpu in range(cpus):
            mine = [r for c, r in tasks if c == cpu]
            if mine:
                at = np.arange(self.phase[cpu], end, 1 / hz)
                busy = np.zeros(len(at), bool)
                for r in mine:
                    busy |= r.runs_at(at)
                ticks.append(at[busy])
        self.ticks = np.sort(np.concatenate(ticks)) if ticks else np.zeros(0)

    def busy_ticks(self, t):
        """Seconds of busy ticks up to t."""
        return np.searchsorted(self.ticks, t, "right") / self.hz

    def busy_late(self, t):
        return sum((r.late(t, self.hz, self.phase[c]) for c, r in self.tasks), np.zeros(np.shape(t)))


def poll_times(begin, end, edges, rng, period=0.1, late=80e-6, loaded=0.02):
    """When the recorder wakes up: late by some 10 us, now and then by ms, and at the edges of runs."""
    t = np.arange(begin, end, period)
    t = t + rng.exponential(late, len(t)) + (rng.random(len(t)) < loaded) * rng.exponential(1.5e-3, len(t))
    t = np.concatenate([t, np.asarray(edges, float) + rng.uniform(-2e-5, 2e-5, len(edges))])
    t = np.sort(t[(t >= begin) & (t <= end)])
    return t[np.concatenate([[True], np.diff(t) > 1e-5])]


def own_rows(events, run_time, rng, skip=2e-3):
    """(t, CPU time) that a thread notes itself: at the first edge after `skip`, and before each numbered span."""
    out, last = [], -1.0
    for t, event, _, number, _ in events:
        if t - last >= skip or (event == 0 and number is not None):
            out.append(t - 2e-7 if event == 0 else t + 2e-7)
            last = t
    t = np.array(out)
    return t, run_time.exact(t)
