"""What the kernel shows: CPU times of the machine, of the process and of its threads, ten times a second and at edges of runs."""

import numpy as np

from power import integral
from program import BEGIN
from recorder import apart, read_times
from writer import NS, described, whole_ns

PID, START_TICKS = 4711, 101234
N_CPUS = 8
BEFORE_S, IDLE_BEFORE_S = 5000.0, 90000  # CPU time before the recording, of the whole machine


class Busy:
    """CPU time of one that is scheduled: exact, and as the kernel may show it. It runs on n CPUs from begin to end each."""

    def __init__(self, begins, ends, n, tick_s, phase_s):
        self.begins, self.ends, self.n, self.tick_s, self.phase_s = begins, ends, n, tick_s, phase_s
        self.exact = integral(begins, ends, n)
        goes_on = np.abs(begins[1:] - ends[:-1]) < 1e-9
        self.switched_on = np.maximum.accumulate(np.where(np.r_[False, goes_on][:len(begins)], -np.inf, begins))

    def running(self, t):
        """The stretch that t is in or behind, and whether it is in it."""
        i = np.clip(np.searchsorted(self.begins, t, side="right") - 1, 0, None)
        return i, (t >= self.begins[i]) & (t < self.ends[i])

    def scheduled(self, t):
        """Up to the last tick or switch."""
        ticked = self.exact(np.floor((t - self.phase_s) / self.tick_s) * self.tick_s + self.phase_s)
        if not len(self.begins):
            return ticked
        i, on = self.running(t)
        return np.maximum(ticked, np.where(on, self.exact(np.minimum(self.switched_on[i], t)), self.exact(t)))

    def sampled(self, t):
        """Whole ticks, of those at which it ran."""
        if not len(self.begins):
            return np.zeros_like(t)
        first, last = (t.min() - 1 - self.phase_s) / self.tick_s, (t.max() + 1 - self.phase_s) / self.tick_s
        ticks = np.arange(np.floor(first), np.ceil(last)) * self.tick_s + self.phase_s
        i, on = self.running(ticks)
        counted = np.r_[0, np.cumsum(on * self.n[i] * self.tick_s)]
        return counted[np.searchsorted(ticks, t, side="right")]


def cpu_channel(name, scale_s, update_s, resolution_s, source):
    return described(name, "seconds", "counter", "s", scale_s, resolution_s, update_ns=whole_ns(update_s), source=source)


class Kernel:
    """phases_s: when ticks come, of each of those that are scheduled."""

    def __init__(self, rng, words, times, threads, recorder, others, phases_s):
        self.rng, self.words, self.times, self.threads = rng, words, times, threads
        self.of_threads = [self.busy((t.begin, t.end), t.on_cpu, phase) for t, phase in zip(threads, phases_s)]
        self.of_workers = [self.busy((t.begin, t.end), t.workers, phase) for t, phase in zip(threads, phases_s[20:])]
        beside = zip((recorder.work, others), phases_s[40:])
        self.of_others = [self.busy(work, np.ones(len(work[0])), phase) for work, phase in beside]

    def busy(self, work, n, phase_s):
        begins, ends = work
        on = n > 0
        return Busy(begins[on], ends[on], n[on], self.words.tick, phase_s)

    def write(self, recording):
        self.recording = recording
        if not self.words.busy_known:
            return
        self.draw_times()
        self.write_busy()
        self.write_processes()
        if self.words.threads_known:
            self.write_threads()

    def draw_times(self):
        """The process, threads and the machine are read one after the other, by old recorders in another order."""
        rng, times = self.rng, self.times
        t, _ = read_times(rng, times.record_s + 0.001, times.close_s, 0.1, self.words.late)
        t = apart(np.r_[t, times.edges(20e-6)], 1e-4)
        if self.words.rev == 2:
            self.process_t = t
            self.thread_t = t + 30e-6 * 0.4 * rng.uniform(0.5, 1.5, len(t))
            self.busy_t = t + 30e-6 * rng.uniform(0.5, 1.5, len(t))
        else:
            self.busy_t = t
            self.process_t = t + 100e-6 * rng.uniform(0.5, 1.5, len(t))
            self.thread_t = np.sort(t + rng.uniform(0, 0.02, len(t)))

    def machine_s(self, how):
        return sum(getattr(busy, how)(self.busy_t) for busy in self.of_threads + self.of_workers + self.of_others) + BEFORE_S

    def recorder_s(self):
        """Its own CPU time, which it knows exactly."""
        return self.of_others[0].exact(self.busy_t)

    def write_busy(self):
        """/proc/stat, whose unit is 10 ms, and a better counter where there is one."""
        words, recording = self.words, self.recording
        ticked = "sampled" if words.sampled else "exact"
        idle_s = N_CPUS * (self.busy_t - self.times.record_s) - (self.machine_s(ticked) - BEFORE_S) + IDLE_BEFORE_S
        shown = {"cpu.idle": idle_s, "cpu.steal": np.zeros(len(idle_s))}
        if words.busy == "stat":
            shown = {"cpu.busy": self.machine_s(ticked), **shown}
        channels = [(cpu_channel(name, 0.01, 0.01, 0.01, "/proc/stat"), np.floor(s / 0.01)) for name, s in shown.items()]
        if words.own:
            channels += [(cpu_channel("cpu.recorder", 1e-9, 0, 1e-9, "CLOCK_PROCESS_CPUTIME_ID"), np.floor(self.recorder_s() * NS))]
        sensor = recording.sensor("cpu", "load", 0.1)
        recording.samples(sensor, self.busy_t, channels, width_ns=20000)
        if words.busy != "stat":
            how, scale_s, resolution_s, source = {
                "cpuacct": ("scheduled", 1e-9, 1e-9, "/sys/fs/cgroup/cpuacct/cpuacct.usage"),
                "cgroup": ("scheduled", 1e-6, 1e-6, "/sys/fs/cgroup/user.slice/cpu.stat"),
                "cgticks": ("sampled", 1e-6, words.tick, "/sys/fs/cgroup/cpu.stat")}[words.busy]
            said = cpu_channel("cpu.busy", scale_s, words.tick, resolution_s, source)
            recording.samples(sensor, self.busy_t, [(said, np.floor(self.machine_s(how) / scale_s))], width_ns=20000)

    def write_processes(self):
        times, recording = self.times, self.recording
        alive = (self.process_t > times.work_s) & (self.process_t < times.end_s)
        t = np.unique(np.r_[times.work_s + 0.0005, self.process_t[alive], times.end_s - 0.0005])
        cpu_s = sum(busy.scheduled(t) for busy in self.of_threads + self.of_workers)
        cpu_ns = np.floor(np.maximum.accumulate(cpu_s) * NS)
        self.write_process(1, times.begin_s, times.end_s, pid=0, parent_pid=0, start_ticks=0, cpu_ns=0, peak_rss_bytes=0, uid=-1,
                           ended=0, name="(short-lived)", command="")
        self.write_process(2, t[0], t[-1], pid=PID, parent_pid=1, start_ticks=START_TICKS, cpu_ns=int(cpu_ns[-1]),
                           peak_rss_bytes=10**9, uid=1000, ended=1, name="python3", command="python3 train.py")
        ones = np.ones(len(t))
        recording.series("processes", ["process", "cpu_ns", "rss_bytes", "threads"], t,
                         [2 * ones, cpu_ns, 1e9 * ones, len(self.threads) * ones], width_ns=20000)

    def write_process(self, number, first_s, last_s, **more):
        self.recording.row("process", id=number, first_ns=whole_ns(first_s), last_ns=whole_ns(last_s), cpu_before_ns=0, container="",
                           unit="", **more)

    def write_threads(self):
        rows = [self.thread_rows(thread, busy) for thread, busy in zip(self.threads, self.of_threads)]
        track = np.concatenate([np.full(len(t), i) for i, (t, _) in enumerate(rows, 1)])
        t, cpu_s = (np.concatenate(column) for column in zip(*rows))
        self.recording.series("threads", ["track", "cpu_ns"], t, [track, np.floor(cpu_s * NS)], width_ns=1000)

    def thread_rows(self, thread, busy):
        """Times and CPU times of one thread, from its first mark on; of rows that say the same only the first and the last."""
        t = self.thread_t[(self.thread_t > thread.event_t[0]) & (self.thread_t < thread.end_s)]
        cpu_s = busy.scheduled(t)
        if self.words.edge:
            edges = np.array(list(self.edges(thread)))
            t, cpu_s = np.r_[t, edges], np.r_[cpu_s, busy.exact(edges)]
            order = np.argsort(t, kind="stable")
            t, cpu_s = t[order], np.maximum.accumulate(cpu_s[order])
        same = np.diff(cpu_s) == 0
        between = np.r_[False, same] & np.r_[same, False]
        return t[~between], cpu_s[~between]

    def edges(self, thread):
        """Where a thread reads its own: at the first edge of a span after 1 to 4 ms, at begins of steps, and at its end."""
        every_s, due = self.rng.uniform(1e-3, 4e-3), -1.0
        for t, what, number in zip(thread.event_t.tolist(), thread.event_what.tolist(), thread.event_number.tolist()):
            if t >= due or (what == BEGIN and number >= 0):
                yield t - 3e-7 if what == BEGIN else t + 3e-7
                due = t + every_s
        yield thread.end_s - 1e-6
