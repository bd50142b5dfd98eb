"""From a scenario and a seed to a recording, with the truth beside it."""
import numpy as np

import estimate
import sensors
from machine import Machine
from recording import NO_VALUE, Recording

CONTEXT_S = 0.1  # how often nrg reads /proc/stat, processes and threads, at most
RAPL_J = 61e-6
GPU_LIMIT_W = 400.0  # the board's own; the loads of scenarios.py stay below 360
PID = 4000
LEAK = 0.008  # of idle power, per degree


def power_samples(rng, machine, o, recording):
    t = sensors.read_times(rng, machine, 1 / o.rate_hz)
    update = {"update_ns": round(o.update_s * 1e9)}
    if o.sensor == "rapl":
        off = o.clock_off * rng.uniform(-1, 1)
        if o.almost_in_step:
            off = rng.choice((-1, 1)) * np.exp(rng.uniform(np.log(1e-5), np.log(2e-3)))
        period_s = o.update_s * (1 + off)
        raw = sensors.counter(rng, machine, t, period_s, RAPL_J, o.update_jitter_s, o.ppm)
        driver, channel = "rapl-powercap", {"name": "package-0", "scale": RAPL_J, "resolution": RAPL_J, "update_ns": 1_000_000,
                                            "covers_cpu": 1, "wrap": 2**32, "limit_w": 400.0}
        raw %= 2**32
    elif o.sensor == "nvml-counter":
        raw = sensors.counter(rng, machine, t, o.update_s, 1e-3, o.update_jitter_s, o.ppm)
        driver, channel = "nvml", {"name": "gpu-0", "scale": 1e-3, "resolution": 1e-3, **update, "limit_w": 700.0}
    elif o.sensor == "nvml-gauge":
        raw = sensors.mean_gauge(rng, machine, t, o.update_s, o.window_s, 1e-3, o.ppm, phase_s=o.phase_s)
        driver, channel = "nvml", {"name": "gpu-0", "quantity": "power", "kind": "gauge", "unit": "W", "scale": 1e-3,
                                   "resolution": 1e-3, **update, "window_ns": round(o.window_s * o.said_of_window * 1e9) if o.says_window else 0,
                                   "limit_w": GPU_LIMIT_W}
    elif o.sensor == "ina3221":
        at = sensors.converted(rng, machine, t, o.held_s, o.ppm) if o.held_s else t
        raw = np.round(sensors.averaged(machine, at, o.tau_s) / 8e-3).astype(np.int64)
        driver, channel = "ina3221", {"name": "VDD_IN", "quantity": "power", "kind": "gauge", "unit": "W", "scale": 8e-3,
                                      "resolution": 8e-3, "covers_cpu": 1, "lag_ns": round(o.tau_s * 1e9) if o.says_lag else 0,
                                      "update_ns": round(o.held_s * 1e9)}
    else:
        raw = sensors.mean_gauge(rng, machine, t, o.update_s, o.window_s, 0.1, o.ppm)
        driver, channel = "meter", {"name": "wall", "quantity": "power", "kind": "gauge", "unit": "W", "scale": 0.1,
                                    "resolution": 0.1, **update, "covers_cpu": 1, "wide": 1}
    recording.samples(driver, channel["name"], 1 / o.rate_hz, sensors.stamp(t), [(channel, raw)])


def kernel_samples(rng, machine, o, recording):
    period = max(CONTEXT_S, 1 / o.rate_hz)
    t = sensors.read_times(rng, machine, period)
    busy = sensors.busy_ticks(rng, machine, t, o.busy)
    scale = 1e-9 if o.busy == "fine" else sensors.TICK_S
    seconds = {"quantity": "seconds", "unit": "s", "scale": scale, "resolution": scale, "update_ns": 10_000_000}
    idle = np.floor((o.cpus * t - machine.cpu(t)) / scale).astype(np.int64)
    recording.samples("machine", "machine", period, sensors.stamp(t),
                      [({**seconds, "name": "cpu.busy"}, busy), ({**seconds, "name": "cpu.idle"}, idle)])
    return t


def temperature(machine, recording):
    """Leakage grows by 0.8 % of idle power per degree, so idle power says how warm the package is. Where that is steady, it is the temperature of
    something else."""
    t = np.arange(0.05, machine.after_s - 0.05, 1.0)
    celsius = 40 + (machine.idle.at(t) / machine.idle.power_w - 1) / LEAK
    if not machine.o.drift:
        celsius = 40 + 0.2 * t + 8 * np.sin(t / 3)
    channel = {"name": "temperature.coretemp.package-id-0", "quantity": "temperature", "kind": "gauge", "unit": "C", "scale": 1e-3,
               "resolution": 1.0, "update_ns": 10**9}
    recording.samples("environment", "environment", 1.0, sensors.stamp(t), [(channel, np.round(celsius).astype(np.int64) * 1000)])


def own_times(thread, gap_s):
    """When a thread reads its CPU time itself: at the first edge of a span after every `gap_s`, a sixteenth of that where a step begins; at a
    begin 1 us before it, at an end 1 us after it."""
    n, layers = thread.begin.shape
    edge, last, out = [], -1.0, []
    for i in range(n):
        edge.append((thread.begin[i, 0], -1e-6, gap_s / 16))
        for k in np.flatnonzero(thread.called[i]):
            edge += (thread.begin[i, k], -1e-6, gap_s), (thread.end[i, k], 1e-6, gap_s)
    for t, off, gap in edge:
        if t - last >= gap:
            last = t + off
            out.append(last)
    return np.array(out)


def thread_readings(thread, drained, o):
    """Times and CPU times of a thread: those of the recorder, and its own. Beside these, what the recorder sees of a thread that runs is up to a
    tick of the kernel (4 ms) old. There are none before its first mark."""
    drained = np.concatenate([[thread.first_s - 1e-6], drained[drained >= thread.first_s]]) if o.startup_s else drained
    if o.read_gap_s is None:
        return drained, np.floor(thread.cpu(drained) * 1e9).astype(np.int64)
    own = own_times(thread, o.read_gap_s)
    own = own[(own > drained[0]) & (own < drained[-1])]
    seen = np.concatenate([np.maximum(np.floor(drained[:-1] / 4e-3) * 4e-3, 0), drained[-1:]])
    seen[0] = drained[0] if o.startup_s else seen[0]
    at, used = np.concatenate([drained, own]), np.concatenate([thread.cpu(seen), thread.cpu(own)])
    order = np.argsort(at, kind="stable")
    return at[order], np.floor(used[order] * 1e9).astype(np.int64)


def processes(rng, machine, o, recording, looked):
    """CPU times of the processes and of their threads, exact when they are read: processes shortly before the busy time, threads in between
    (0.1.0: by whoever emptied their rings, some ms later); all at the begin and the end."""
    inside = looked[(looked > machine.begin_s + 5e-3) & (looked < machine.end_s - 5e-3)]
    edges = [machine.begin_s + 1.6e-3], [machine.end_s]
    t = np.concatenate([edges[0], inside - 25e-6 - rng.exponential(5e-6, len(inside)), edges[1]])
    drained = inside + o.threads_late_s * (1 + rng.exponential(0.1, len(inside)))
    drained = np.concatenate([edges[0], drained[drained < machine.end_s], edges[1]])
    rows, threads, track = [], [], 0
    for p, cpu in enumerate(machine.process_cpu):
        used = np.floor(cpu(t) * 1e9).astype(np.int64)
        rows.append((np.full(len(t), p + 2), used))
        recording.insert("process", (p + 2, PID + p, 1, 1000 + p, int(sensors.stamp(t[0])), int(sensors.stamp(machine.end_s)),
                                     round(float(cpu(machine.end_s)) * 1e9), 0, 1 << 20, 1000, 1, f"program-{p}", f"program-{p}", "", ""))
        for i, thread in enumerate(machine.threads[p]):
            track += 1
            recording.insert("span_track", (track, "thread", PID + p, PID + 1000 * i + p, 1000 + p, "", f"thread {i}"))
            at, used = thread_readings(thread, drained, o)
            threads.append((np.full(len(at), track), used, sensors.stamp(at)))
    stamps = np.tile(sensors.stamp(t), len(rows))
    ids, used = (np.concatenate(c) for c in zip(*rows))
    recording.series("processes", 0, ("process", "cpu_ns", "rss_bytes", "threads"), stamps,
                     [ids, used, np.full(len(ids), 1 << 20), np.full(len(ids), o.threads + int(np.ceil(o.workers)))], order=0)
    ids, used, stamps = (np.concatenate(c) for c in zip(*threads))
    if o.thread_times:
        recording.series("threads", 0, ("track", "cpu_ns"), stamps, [ids, used], order=0)
    return track


def span_events(machine, o, recording, n_tracks):
    """Begins and ends of steps and layers. On a GPU, the layers are kernels of its own track."""
    names = {}

    def name_id(kind, text):
        if (kind, text) not in names:
            names[kind, text] = len(names) + 1
            recording.insert("span_name", (len(names), kind, text, ""))
        return names[kind, text]

    columns, track = [], 0
    for p, process in enumerate(machine.threads):
        for thread in process:
            track += 1
            at = track
            if o.gpu:
                at = n_tracks + track
                recording.insert("span_track", (at, "gpu", PID + p, 0, 1000 + p, "gpu-0", "stream 7"))
            columns.append(thread_events(thread, at, name_id, p))
            if o.host_spans:
                columns.append(host_events(thread, track, name_id))
    t, tracks, events, ids, values = (np.concatenate(c) for c in zip(*columns))
    order = np.lexsort((np.arange(len(t)), t))
    cut = [c[order] for c in (t, tracks, events, ids, values)]
    recording.series("spans", 0, ("track", "event", "name", "value", "parent"), cut[0],
                     [*cut[1:], np.full(len(t), NO_VALUE)])
    return len(t) // 2


def thread_events(thread, track, name_id, process):
    """Rows (t, track, event, name, value) of a thread, in its own order."""
    n, layers = thread.begin.shape
    step = name_id("step", f"step-{process}")
    ids = np.array([name_id("layer", f"layer-{process}-{i}") for i in range(layers)])
    began, ended = sensors.stamp(thread.begin), sensors.stamp(thread.end)
    t = np.empty((n, 2 * layers + 2), dtype=np.int64)
    name, event = np.empty_like(t), np.empty_like(t)
    t[:, 0], t[:, -1] = began[:, 0], ended[:, -1]
    t[:, 1:-1:2], t[:, 2:-1:2] = began, ended
    name[:, 0] = name[:, -1] = step
    name[:, 1:-1:2] = name[:, 2:-1:2] = ids
    event[:, 0], event[:, -1] = 0, 1
    event[:, 1:-1:2], event[:, 2:-1:2] = 0, 1
    keep = np.ones(t.shape, dtype=bool)
    keep[:, 1:-1:2] = keep[:, 2:-1:2] = thread.called
    values = np.full(t.shape, NO_VALUE)
    values[:, 0] = np.arange(n)
    keep = keep.reshape(-1)
    flat = [c.reshape(-1)[keep] for c in (t, event, name, values)]
    return flat[0], np.full(len(flat[0]), track), *flat[1:]


def host_events(thread, track, name_id):
    """The same rows of a thread that launches the kernels of a step in the first twentieth of it, and then waits until the next one."""
    begin = thread.begin[:, 0]
    end = np.append(begin[1:], thread.end[-1, -1])
    launched = begin + 0.05 * (end - begin)
    names = [name_id("span", name) for name in ("launch", "cudaStreamSynchronize")]
    t = sensors.stamp(np.stack([begin, launched, launched, end], axis=1)).reshape(-1)
    n = len(begin)
    return t, np.full(4 * n, track), np.tile([0, 1, 0, 1], n), np.tile(np.repeat(names, 2), n), np.full(4 * n, NO_VALUE)


def write(path, o, seed):
    """The recording of one seed; returns the machine, which knows the truth."""
    rng = np.random.default_rng([seed, 20261116])
    # A load in step with its sensor begins in step with it.
    late_s = np.random.default_rng([seed, 20261117]).uniform(0, CONTEXT_S) if o.phase_s is None else 0.0
    machine = (estimate.EstimatedMachine if o.sensor == "estimate" else Machine)(rng, o, late_s)
    recording = Recording(path)
    looked = kernel_samples(rng, machine, o, recording)
    if o.sensor == "estimate":
        estimate.write_samples(rng, machine, o, recording, looked)
    else:
        power_samples(rng, machine, o, recording)
    if o.thermometer:
        temperature(machine, recording)
    n_tracks = processes(rng, machine, o, recording, looked)
    spans = span_events(machine, o, recording, n_tracks)
    stamp = sensors.stamp
    recording.meta(nrg_version="truth", command_line="simulated", cpus=o.cpus, begin_ns=int(stamp(0.0)),
                   end_ns=int(stamp(machine.after_s)), process_method="polling", spans=spans, spans_dropped=0)
    recording.insert("clock", (int(stamp(0.0)), 1_790_000_000_000_000_000, None))
    if machine.baseline:
        recording.insert("run", (1, "baseline", *(int(stamp(t)) for t in machine.baseline), None))
    if machine.second:
        recording.insert("run", (3, "baseline", *(int(stamp(t)) for t in machine.second), None))
    recording.insert("run", (2, "run", int(stamp(machine.begin_s)), int(stamp(machine.end_s)), 0))
    recording.close()
    return machine
