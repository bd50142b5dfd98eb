"""CPU times as a kernel shows them: exact up to its last tick while a thread runs, or counted by ticks."""

import numpy as np

from recorder import BEGIN_S, PERIOD_S
from writer import ns

CPUS = 8
JIFFY_S = 0.01  # unit of /proc/stat
BOOTED_S = 5000  # CPU time before the recording
FIRST_PID, START_TICKS = 4000, 77700
READ_AGAIN_S = 2e-3  # a thread reads its own CPU time not more often than this, but at each step
WIDTH_NS = 20000


def thread_cpu_s(thread, t, tick_s=0.0):
    """Up to a tick late while it runs."""
    exact = np.interp(t, thread.edges, thread.cpu_s)
    if not tick_s:
        return exact
    last_tick = np.floor((t - BEGIN_S) / tick_s) * tick_s + BEGIN_S
    running = (thread.cpus[thread.piece_at(t)] > 0) & thread.alive(t)
    return np.where(running, np.interp(last_tick, thread.edges, thread.cpu_s), exact)


def others_cpu_s(power, t, tick_s):
    last_tick = np.floor((t - BEGIN_S) / tick_s) * tick_s + BEGIN_S
    return np.interp(np.where(power.others_run(t), last_tick, t), power.edges, power.others_cpu_s)


def exact_busy_s(machine, t):
    """As cpuacct counts."""
    tick_s = machine.words.tick_s
    of_threads = sum(thread_cpu_s(thread, t, tick_s) for thread in machine.threads)
    return of_threads + others_cpu_s(machine.power, t, tick_s) + machine.words.recorder * (t - BEGIN_S)


def ticked_busy(machine, t):
    """As /proc/stat counts, in its unit: a tick is all of who runs when it comes. The recorder never does."""
    tick_s = machine.words.tick_s
    ticks = np.arange(BEGIN_S - 2 + machine.rng.uniform(0, tick_s), machine.timeline.end + 1, tick_s)
    n = machine.power.others_run(ticks).astype(float)
    for thread in machine.threads:
        n += thread.cpus[thread.piece_at(ticks)] * thread.alive(ticks)
    counted = np.concatenate([[0], np.cumsum(n)]) * tick_s + BOOTED_S + 0.123
    return np.floor(counted[np.searchsorted(ticks, t, "right")] / JIFFY_S + 1e-9).astype(np.int64)


def write_cpu_times(machine, recording):
    t = machine.timeline.cpu_readings(machine.rng)
    new = machine.words.revision == 2  # which reads processes first, then the machine
    write_machine(machine, recording, t + (30e-6 if new else 0.0))
    t = t + (0.0 if new else 100e-6)
    run_begin, run_end = machine.timeline.run_begin, machine.timeline.run_end
    t = t[(t >= run_begin) & (t <= run_end + 1e-9)]
    t = np.unique(np.concatenate([[run_begin], t, [run_end]]))
    write_processes(machine, recording, t)
    write_threads(machine, recording, t[1:-1] + 15e-6)


def write_machine(machine, recording, t):
    words, sensor = machine.words, recording.sensor("machine", "machine", PERIOD_S)
    seconds, columns = dict(quantity="seconds", unit="s"), []
    stat = dict(seconds, scale=JIFFY_S, update_ns=10000000, resolution=JIFFY_S, source="/proc/stat")
    if words.busy == "stat":
        busy = ticked_busy(machine, t)
        busy_s = busy * JIFFY_S - 5000.12
        columns.append((busy, dict(stat, name="cpu.busy")))
    else:
        busy_s = exact_busy_s(machine, t)
        series = recording.series("samples", sensor, 1)
        recording.channel(series, 0, sensor, **seconds, name="cpu.busy", scale=1e-9, update_ns=int(words.tick_s * 1e9), resolution=1e-9,
                          source="/sys/fs/cgroup/cpuacct/cpuacct.usage")
        recording.rows(series, ns(t), [ns(busy_s) + BOOTED_S * 10**9], WIDTH_NS)
    idle = np.floor((CPUS * (t - BEGIN_S) - busy_s) / JIFFY_S).astype(np.int64) + 4000000
    columns.append((np.maximum.accumulate(idle), dict(stat, name="cpu.idle")))
    if words.revision == 2:
        own = dict(seconds, name="cpu.recorder", scale=1e-9, update_ns=0, resolution=1e-9, source="CLOCK_PROCESS_CPUTIME_ID")
        columns.append((ns(words.recorder * (t - BEGIN_S) + 0.01), own))
    series = recording.series("samples", sensor, len(columns))
    for i, (_, channel) in enumerate(columns):
        recording.channel(series, i, sensor, **channel)
    recording.rows(series, ns(t), [values for values, _ in columns], WIDTH_NS)


def processes(machine):
    """Threads of each process: those with spans in turn, then workers."""
    n = machine.words.procs
    return [machine.program.threads[i::n] for i in range(n)] + [[worker] for worker in machine.program.workers]


def write_processes(machine, recording, t):
    series = recording.series("processes", 0, 4, "process,cpu_ns,rss_bytes,threads")
    columns = []
    for i, threads in enumerate(processes(machine)):
        cpu_s = sum(thread_cpu_s(thread, t, machine.words.tick_s) for thread in threads)
        cpu_s[-1] = sum(thread.cpu_s[-1] for thread in threads)
        recording.insert("process", i + 2, FIRST_PID + i, FIRST_PID if i else FIRST_PID - 1, START_TICKS + i, int(ns(t[0])), int(ns(t[-1])),
                         int(ns(cpu_s[-1])), 0, 10**8, 1000, 1, "python3", "python3 train.py", "", "")
        columns.append([ns(t), np.full(len(t), i + 2), ns(cpu_s), np.full(len(t), 10**8), np.full(len(t), len(threads))])
    t_ns, *columns = (np.concatenate(column) for column in zip(*columns))
    recording.rows(series, t_ns, columns, WIDTH_NS)


def own_times(thread):
    """When a thread reads its own CPU time: just before a span begins, just after it ends."""
    found, last = [], -1.0
    for t, event, _, value in thread.events:
        if t - last > READ_AGAIN_S or (event == 0 and value is not None):
            found.append(t + (-200e-9 if event == 0 else 200e-9))
            last = t
    return np.array(found)


def with_own(thread, t, cpu_s):
    """The recorder's readings and the thread's own. The recorder leaves out what would go back."""
    own_t = own_times(thread)
    own = np.concatenate([np.zeros(len(t), bool), np.ones(len(own_t), bool)])
    t, cpu_s = np.concatenate([t, own_t]), np.concatenate([cpu_s, thread_cpu_s(thread, own_t)])
    order = np.argsort(t, kind="stable")
    t, cpu_s, own = t[order], cpu_s[order], own[order]
    kept = own | (cpu_s >= np.maximum.accumulate(np.where(own, cpu_s, -1)))
    return t[kept], cpu_s[kept]


def write_threads(machine, recording, times):
    series = recording.series("threads", 0, 2, "track,cpu_ns")
    columns = []
    for i, thread in enumerate(machine.program.threads):
        thread = thread.alone() if machine.words.omp else thread
        t, cpu_s = times, thread_cpu_s(thread, times, machine.words.tick_s)
        if machine.words.own_rows:
            t, cpu_s = with_own(thread, t, cpu_s)
        columns.append([ns(t), np.full(len(t), i + 1), ns(np.maximum.accumulate(cpu_s))])
    t_ns, *columns = (np.concatenate(column) for column in zip(*columns))
    recording.rows(series, t_ns, columns, WIDTH_NS)
