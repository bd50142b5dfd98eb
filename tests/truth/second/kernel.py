"""What the kernel shows: CPU times of all, of the process and of its threads."""

import numpy as np

from program import BEGIN

PID, START_TICKS = 1000, 4242
RSS = 10**8


def whole_ns(seconds):
    return np.round(np.maximum.accumulate(seconds) * 1e9).astype(np.int64)


class Kernel:
    def __init__(self, rng, words, power, recording):
        self.rng, self.words, self.power, self.recording = rng, words, power, recording
        self.t = self.read_times()
        self.in_run = self.t[(self.t >= words.begin_s) & (self.t <= words.end_s)]

    def read_times(self):
        """Ten times a second, a little late within the run; and at the ends of the run and of its baselines."""
        words = self.words
        ends = [words.begin_s + 1e-5, words.end_s - 1e-5]
        ends += [x for begin, end in words.before() for x in (begin + 1e-6, end)]
        ends += [x for begin, end in words.behind() for x in (begin + 1e-3, end)]
        t = np.sort(np.concatenate([np.arange(0.05, words.after_s - 0.07, 0.1), ends]))
        if not words.late:
            return t
        inside = (t > words.begin_s + 0.01) & (t < words.end_s - 0.1)
        return np.sort(t + np.where(inside, self.rng.exponential(60e-6, len(t)), 0))

    def cpu_s(self, cpus, t):
        return sum((cpu.as_of_tick(t, self.words.tick) for cpu in cpus), np.zeros(len(t)))

    def pool_s(self, t):
        return self.power.pool.exact(np.floor(t / self.words.tick) * self.words.tick)

    def write_busy(self):
        """CPU time of the whole machine."""
        sensor = self.recording.sensor("cpu", "cpu", 10**8)
        if self.words.busy == "none":
            return
        said = {"name": "cpu.busy", "quantity": "seconds", "kind": "counter", "unit": "s"}
        background = self.words.bg * self.t
        if self.words.busy == "ns":
            how = {"scale": 1e-9, "update_ns": int(self.words.tick * 1e9), "resolution": 1e-9, "source": "/sys/fs/cgroup/cpuacct/cpuacct.usage"}
            values = np.round((self.scheduled_s() + background + 5000) * 1e9)
        else:
            how = {"scale": 0.01, "update_ns": 10**7, "resolution": 0.01, "source": "/proc/stat"}
            seconds = self.power.pieces.at(self.power.busy_s, self.t) if self.words.busy == "stat" else self.ticked_s()
            values = np.floor((seconds + background + 5000) * 100 + self.rng.random())
        values = np.maximum.accumulate(values.astype(np.int64))
        self.recording.samples(sensor, self.t + 3e-5, [({**said, **how}, values)], width_ns=5000)

    def scheduled_s(self):
        """As of the last tick, of whoever runs."""
        threads = [] if self.words.gpu else self.power.threads
        return self.cpu_s(threads + self.power.others, self.t + 3e-5) + self.pool_s(self.t)

    def ticked_s(self):
        """Whole ticks, of whoever runs when one comes."""
        tick = self.words.tick
        ticks = np.arange(0, self.words.after_s, tick) + 1e-4
        counted = np.cumsum(np.round(self.power.busy[self.power.pieces.index(ticks)])) * tick
        return counted[np.maximum(np.searchsorted(ticks, self.t, "right") - 1, 0)]

    def process_s(self):
        if not self.words.gpu:
            return self.cpu_s(self.power.threads, self.in_run) + self.pool_s(self.in_run)
        pieces, words = self.power.pieces, self.words
        inside = (pieces.mid > words.begin_s + 0.05) & (pieces.mid < words.end_s - 0.05)
        return pieces.at(pieces.integral(np.where(inside, 0.05, 0)), self.in_run)

    def write_processes(self):
        recording, t = self.recording, self.in_run
        cpu_ns = whole_ns(self.process_s())
        lived = {"first_ns": recording.ns(self.words.begin_s), "last_ns": recording.ns(self.words.end_s), "cpu_before_ns": 0}
        where = {"container": "", "unit": ""}
        nobody = {"pid": 0, "parent_pid": 0, "start_ticks": 0, "cpu_ns": 0, "peak_rss_bytes": 0, "uid": -1, "ended": 0}
        recording.row("process", id=1, **nobody, **lived, name="(short-lived)", command="", **where)
        python = {"pid": PID, "parent_pid": 1, "start_ticks": START_TICKS, "cpu_ns": cpu_ns[-1], "peak_rss_bytes": RSS, "uid": 1000, "ended": 1}
        recording.row("process", id=2, **python, **lived, name="python3", command="python3 attack.py", **where)
        series = recording.series("processes", 0, 4, "process,cpu_ns,rss_bytes,threads")
        columns = [np.full(len(t), 2), cpu_ns, np.full(len(t), RSS), np.full(len(t), self.words.threads)]
        recording.chunk(series, recording.ns(t), columns, width_ns=5000)

    def write_threads(self, tracks):
        if self.words.gpu or not self.words.threadrows:
            return
        series = self.recording.series("threads", 0, 2, "track,cpu_ns")
        rows = [self.thread(cpu, track) for cpu, track in zip(self.power.threads, tracks)]
        numbers = np.concatenate([np.full(len(t), i) for i, (t, _) in enumerate(rows, 1)])
        t_ns, cpu_ns = (np.concatenate(column) for column in zip(*rows))
        self.recording.chunk(series, t_ns, [numbers, cpu_ns], width_ns=5000)

    def thread(self, cpu, track):
        """Times and CPU times of one thread."""
        t = self.in_run + 1.5e-5
        seconds = cpu.as_of_tick(t, self.words.tick)
        if self.words.edges:
            edges = np.array(list(self.edges(track)))
            t, seconds = np.concatenate([t, edges]), np.concatenate([seconds, cpu.exact(edges)])
            order = np.argsort(t, kind="stable")
            t, seconds = t[order], seconds[order]
        return self.recording.ns(t), whole_ns(seconds)

    def edges(self, track):
        """Just outside of spans' ends: where a step begins, or a millisecond has passed."""
        last = -1
        for t, what, _, value in track.events:
            if t - last >= 1e-3 or (what == BEGIN and value is not None):
                yield t - 2e-7 if what == BEGIN else t + 2e-7
                last = t
