"""What the kernel shows of CPU time: of all processes (cpu.busy), of the recorder, of the program's processes, and of its threads.

A CPU time that somebody else reads is as old as the last tick or switch; a thread that reads its own gets it exactly. Where cpu.busy is what ticks
saw, it has steps of ticks, and the recorder, which a timer wakes, is never seen by them."""

import numpy as np

from power import summed
from tracks import BEGIN, Load, Thread

PID, START_TICKS = 4242, 77000
EVERY_S = 0.1  # CPU times are read
BUSY_AFTER_S, THREADS_AFTER_S = 60e-6, 30e-6  # the processes' of the same reading
OWN_AFTER_S = 3e-7  # a thread reads its own, before a begin and after an end
RSS_BYTES = 300 << 20
SECONDS = dict(quantity="seconds", kind="counter", unit="s")


def pid_of(process):
    return PID + 100 * process


class Kernel:
    def __init__(self, rng, words, times, power):
        self.words, self.times, self.power = words, times, power
        self.tick_s = 1.0 / words["hz"]
        self.phase_s = rng.uniform(0, self.tick_s)
        begin_s, end_s = times.begin_s, times.end_s
        grid = np.arange(begin_s + EVERY_S, end_s, EVERY_S)
        grid = grid + rng.uniform(0, 300e-6, len(grid))
        self.read_s = times.unstalled(np.concatenate([[begin_s + 1e-5], grid, [end_s - 1e-5]]))
        self.used_s = [summed(power.edges, state.cpus) for state in power.states]

    def write(self, recording):
        self.write_busy(recording)
        self.write_processes(recording)

    def known(self, used_s, rate, t):
        """CPU time as the kernel shows it: up to the last tick or switch."""
        edges, runs = self.power.edges, rate > 0
        switches = np.flatnonzero(np.diff(np.concatenate([[0], runs * 1.0, [0]])) != 0)
        switches = edges[np.minimum(switches, len(edges) - 1)]
        tick = np.floor((t - self.phase_s) / self.tick_s) * self.tick_s + self.phase_s
        before = np.searchsorted(switches, t, side="right") - 1
        switch = np.where(before >= 0, switches[np.maximum(before, 0)], 0.0)
        running = np.interp(t, self.power.middle, runs * 1.0) > 0.5
        return np.interp(np.where(running, np.maximum(tick, switch), t), edges, used_s)

    # Of all processes.

    def busy_times(self):
        """cpu.busy is read in baselines, too."""
        if not self.words["baseline"]:
            return self.read_s
        begin_s, end_s, close_s = self.times.begin_s, self.times.end_s, self.times.close_s
        before = np.concatenate([[0.012], np.arange(0.05, begin_s - 0.03, EVERY_S), [begin_s - 0.021]])
        after = np.concatenate([np.arange(end_s + 0.021, close_s - 0.03, EVERY_S), [close_s - 0.021]])
        return np.concatenate([before, self.read_s, after])

    def sampled(self, t):
        """Seconds up to t as ticks saw them."""
        power = self.power
        ticks = np.arange(self.phase_s, self.times.close_s, self.tick_s)
        at = np.clip(np.searchsorted(power.edges, ticks, side="right") - 1, 0, len(power.middle) - 1)
        seen = sum(np.round(state.cpus[at]) for state in power.states)
        if self.words["recorder"]:
            seen -= np.round(power.states[-1].cpus[at])
        return np.concatenate([[0.0], np.cumsum(seen * self.tick_s)])[np.searchsorted(ticks, t, side="right")]

    def busy(self, t):
        """(seconds up to t, what the channel says of itself)."""
        if self.words["busy"] == "cpuacct":
            seconds = np.zeros(len(t))
            for used_s, state in zip(self.used_s, self.power.states):
                seconds += self.known(used_s, state.cpus, t)
            return seconds, dict(scale=1e-9, resolution=1e-9, update_ns=int(self.tick_s * 1e9), source="/sys/fs/cgroup/cpuacct/cpuacct.usage")
        if self.words["busy"] == "procstat":
            return self.sampled(t), dict(scale=0.01, resolution=0.01, update_ns=10**7, source="/proc/stat")
        return self.sampled(t), dict(scale=1e-6, resolution=self.tick_s, update_ns=int(self.tick_s * 1e9), source="/sys/fs/cgroup/cpu.stat")

    def write_busy(self, recording):
        read_s = self.busy_times()
        t = read_s + BUSY_AFTER_S
        seconds, said = self.busy(t)
        busy = (dict(SECONDS, name="cpu.busy", **said), np.floor((seconds + 1000.0) / said["scale"] + 1e-6).astype(np.int64))
        idle = np.floor((self.words["cpus"] * read_s - seconds) / 0.01).astype(np.int64) + 500000
        recorder = np.zeros(len(t), np.int64)
        if self.words["recorder"]:
            recorder = (np.interp(t, self.power.edges, self.used_s[-1]) * 1e9).astype(np.int64)
        rest = [(dict(SECONDS, name="cpu.idle", scale=0.01, update_ns=10**7, resolution=0.01, source="/proc/stat"), idle),
                (dict(SECONDS, name="cpu.recorder", scale=1e-9, resolution=1e-9, source="clock"), recorder)]
        sensor, t_ns = recording.sensor("cpu", "cpu", 1e8), self.times.ns(t)
        for channels in ([[busy, *rest]] if self.words["busy"] == "procstat" else [[busy], rest]):
            recording.samples(sensor, t_ns, channels, 10000)

    # Of the program's processes.

    def processes(self):
        """(pid, parent, name, seconds used, CPUs busy, first seen) of those with threads, then of workers."""
        parts, found = list(zip(self.power.parts, self.used_s, self.power.states)), []
        for process in sorted({part.process for part, _, _ in parts if isinstance(part, Thread)}):
            mine = [(used_s, state.cpus) for part, used_s, state in parts if isinstance(part, Thread) and part.process == process]
            found.append((pid_of(process), 1, "python3", *map(sum, zip(*mine)), self.read_s[0]))
        for part, used_s, state in parts:
            if isinstance(part, Load) and part.owner == "worker":
                found.append((4302 + len(found), PID, "pt_data_worker", used_s, state.cpus, self.read_s[1]))
        return found

    def write_processes(self, recording):
        rows = []
        for number, (pid, parent, name, used_s, cpus, first_s) in enumerate(self.processes(), 2):
            t = self.read_s[self.read_s >= first_s]
            cpu_ns = (self.known(used_s, cpus, t) * 1e9).astype(np.int64)
            rows += [(at, number, value) for at, value in zip(t, cpu_ns)]
            recording.row("process", id=number, pid=pid, parent_pid=parent, start_ticks=START_TICKS + number, first_ns=self.times.ns(first_s),
                          last_ns=self.times.ns(t[-1]), cpu_ns=cpu_ns[-1], cpu_before_ns=cpu_ns[0], peak_rss_bytes=RSS_BYTES, uid=1000,
                          ended=1, name=name, command=name + " train.py", container="", unit="")
        rows.sort()
        t, number, cpu_ns = (np.array(column) for column in zip(*rows))
        series = recording.series("processes", 0, 4, "process,cpu_ns,rss_bytes,threads")
        columns = [number, cpu_ns, np.full(len(rows), RSS_BYTES), np.full(len(rows), 4)]
        recording.rows(series, self.times.ns(t), columns, by_first=True)

    # Of its threads.

    def own_times(self, thread, event_s):
        """When a thread reads its own CPU time: at begins and ends, not too often, but at the begin of each step."""
        if not self.words["own_rows"]:
            return np.zeros(0)
        found, next_s = [], -1.0
        for event, t in zip(thread.events, event_s):
            if t >= next_s or (event.what == BEGIN and event.number is not None):
                found.append(t + (-OWN_AFTER_S if event.what == BEGIN else OWN_AFTER_S))
                next_s = t + self.words["own_rows"]
        return np.array(found)

    def thread_times(self, thread, event_s):
        """(times, seconds): its own, and those that the recorder reads, without those that are behind an earlier one of its own."""
        running = self.power.states[self.power.parts.index(thread)].running
        used_s, own_s, theirs_s = summed(self.power.edges, running), self.own_times(thread, event_s), self.read_s + THREADS_AFTER_S
        t = np.concatenate([own_s, theirs_s])
        seconds = np.concatenate([np.interp(own_s, self.power.edges, used_s), self.known(used_s, running, theirs_s)])
        own = np.concatenate([np.ones(len(own_s)), np.zeros(len(theirs_s))]) > 0
        order = np.argsort(t, kind="stable")
        t, seconds, own = t[order], seconds[order], own[order]
        kept = own | (seconds >= np.maximum.accumulate(np.where(own, seconds, -1)))
        seconds = np.maximum.accumulate(np.where(kept, seconds, 0))
        return t[kept], seconds[kept]

    def write_threads(self, recording, threads):
        """threads: (number of the track, thread, times of its events)."""
        found = [(track, *self.thread_times(thread, event_s)) for track, thread, event_s in threads]
        track = np.concatenate([np.full(len(t), number) for number, t, _ in found])
        t_ns = self.times.ns(np.concatenate([t for _, t, _ in found]))
        cpu_ns = (np.concatenate([seconds for _, _, seconds in found]) * 1e9).astype(np.int64)
        order = np.argsort(t_ns, kind="stable")
        series = recording.series("threads", 0, 2, "track,cpu_ns")
        recording.rows(series, t_ns[order], [track[order], cpu_ns[order]], by_first=True)
