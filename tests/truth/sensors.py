"""What devices and the kernel show of the machine: ages, grids, averages, ticks. Times in s; values as raw integers.

The devices: RAPL (a counter that moves about every ms, on a clock of its own), NVML's energy counter (every 100 ms, on a grid of unknown
phase and a period that is a little off), NVML's power (mean of a window, on that grid, maybe of a part of it only), an INA3221 (an
exponential average), a wall meter (mean of the past second, each second). The kernel: /proc/stat in 10 ms, read ten times a second.
"""
import numpy as np

START_NS = 5_000_000_000_000  # of the machine's clock, at time 0 of the simulation
TICK_S = 0.01  # USER_HZ


def stamp(t_s):
    return START_NS + np.round(np.asarray(t_s) * 1e9).astype(np.int64)


def woken(rng, begin_s, end_s, period_s):
    """When a thread that sleeps until k * period really reads: 50 us late and more, seldom by a ms."""
    t = begin_s + np.arange(int((end_s - begin_s) / period_s) + 1) * period_s
    late = 30e-6 + rng.exponential(20e-6, len(t)) + (rng.random(len(t)) < 0.005) * rng.exponential(1e-3, len(t))
    return np.maximum.accumulate(t + np.minimum(late, 0.5 * period_s))


def read_times(rng, machine, period_s):
    """The same of the recorder, which also reads when the run begins and ends."""
    edges = np.array([machine.begin_s - 30e-6, machine.end_s + 30e-6])
    return np.unique(np.concatenate([woken(rng, 0.02, machine.after_s, period_s), edges]))


def grid(rng, begin_s, end_s, period_s, jitter_s=0.0, ppm=0.0):
    """Moments at which a device updates, in order."""
    step = period_s * (1 + ppm * 1e-6)
    t = begin_s - step * rng.random() + np.arange(int((end_s - begin_s) / step) + 2) * step
    return np.maximum.accumulate(t + jitter_s * rng.standard_normal(len(t)))


def shown(updates, values, t):
    """The last published value at each time of reading."""
    return values[np.maximum(np.searchsorted(updates, t, side="right") - 1, 0)]


def counter(rng, machine, t, update_s, quantum_j, jitter_s=0.0, ppm=0.0, delay_s=0.0):
    """An energy counter that publishes on a grid of its own, `delay_s` after it has measured. update_s 0: always fresh."""
    if not update_s:
        return np.floor(machine.energy(t) / quantum_j).astype(np.int64)
    u = grid(rng, -0.5, machine.after_s + 1, update_s, jitter_s, ppm)
    joules = machine.energy(np.maximum(u, 0))
    return np.floor(shown(u + delay_s, joules, t) / quantum_j).astype(np.int64)


def mean_gauge(rng, machine, t, update_s, window_s, quantum_w, ppm=0.0, noise=0.0, phase_s=None, delay_s=0.0):
    """Mean power of the last `window_s` before each update, shown from `delay_s` after it until the next."""
    u = grid(rng, -0.5, machine.after_s + 1, update_s, 0.0, ppm)
    if phase_s is not None:
        u = phase_s + np.arange(len(u)) * update_s - 0.5 - (0.5 % update_s)
    a, b = np.maximum(u - window_s, 0), np.maximum(u, window_s)
    watts = (machine.energy(b) - machine.energy(a)) / (b - a)
    watts *= 1 + noise * rng.standard_normal(len(u))
    return np.round(shown(u + delay_s, watts, t) / quantum_w).astype(np.int64)


def converted(rng, machine, t, update_s, ppm):
    """When the last of the sensor's conversions was, at each time; the first readings may come before any."""
    u = grid(rng, 0.0, machine.after_s + 1, update_s, 0.0, ppm)
    return u[np.maximum(np.searchsorted(u, t, "right") - 1, 0)]


def averaged(machine, t, tau_s):
    """Exponential average of the power up to each time, exactly: each piece of constant power decays from its end on."""
    marks = np.unique(np.concatenate([machine.energy.breaks(), t]))
    marks = marks[(marks >= 0) & (marks <= t[-1])]
    power = np.diff(machine.energy(marks)) / np.maximum(np.diff(marks), 1e-15)
    keep = np.exp(-np.diff(marks) / tau_s)
    value, out = float(machine.energy.at(np.array([0.0]))[0]), np.empty(len(marks))
    out[0] = value
    for i, (p, k) in enumerate(zip(power.tolist(), keep.tolist())):
        value = p + (value - p) * k
        out[i + 1] = value
    return out[np.searchsorted(marks, t)]


def busy_ticks(rng, machine, t, how):
    """cpu.busy of /proc/stat. `fine`: in ns, as a kernel could say; `exact`: exact times shown in ticks of 10 ms; `sampled`: a kernel that
    asks at each of its own ticks (250 Hz) who is running, and charges the whole tick."""
    if how == "fine":
        return np.floor(machine.cpu(t) * 1e9).astype(np.int64)
    if how == "exact":
        return np.floor(machine.cpu(t) / TICK_S + 1e-9).astype(np.int64)
    if machine.tick_phases is None:  # the kernel counts once, however often it is read
        machine.tick_phases = rng.random(len(machine.cpu.parts))
    hz, total = 250, np.zeros(len(t))
    for part, phase in zip(machine.cpu.parts, machine.tick_phases):
        k = (np.arange(int(machine.after_s * hz) + 2) + phase) / hz
        total += np.concatenate([[0], np.cumsum(part.at(k))])[np.searchsorted(k, t)] / hz
    return np.floor(total / TICK_S + 1e-9).astype(np.int64)
