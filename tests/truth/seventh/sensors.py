"""Sensors as they are: what each would have shown at the moments it was read."""
import numpy as np


def read_times(begin, end, period, edges, rng, late=70e-6, loaded=0.01):
    """A recorder's readings: a grid with late wake-ups, and one at each edge of a run."""
    t = np.arange(begin + rng.uniform(0, period), end, period)
    t = t + rng.exponential(late, len(t)) + (rng.random(len(t)) < loaded) * rng.exponential(2e-3, len(t))
    t = np.concatenate([t, np.asarray(edges, float) + rng.uniform(0, 3e-5, len(edges)) * np.where(np.arange(len(edges)) % 2, 1, -1)])
    t = np.sort(t[(t >= begin) & (t <= end)])
    return t[np.concatenate([[True], np.diff(t) > 2e-5])]


def grid(begin, end, period, jitter, rng):
    """Updates of a device by its own clock."""
    t = begin - period * rng.uniform(1, 2) + np.arange(int((end - begin) / period) + 4) * period
    return np.sort(t + rng.normal(0, jitter, len(t))) if jitter else t


def shown(updates, values, t):
    """The value of the last update before each reading."""
    return values[np.maximum(np.searchsorted(updates, t, "right") - 1, 0)]


def rapl(domain, t, rng, unit=2.0**-14, period=1e-3, clock=0.0, jitter=1e-5, start=None):
    """Raw 32-bit counts."""
    u = grid(t[0], t[-1], period * (1 + clock), jitter, rng)
    start = rng.integers(0, 2**32) if start is None else start
    counts = (np.floor(domain.energy(u) / unit).astype(np.int64) + int(start)) % 2**32
    return shown(u, counts, t)


def nvml_counter(domain, t, rng, ppm=0.0, jitter=0.0, period=0.1):
    u = grid(t[0], t[-1], period * (1 + ppm * 1e-6), jitter, rng)
    return shown(u, np.floor(domain.energy(u) * 1e3 + 1e8).astype(np.int64), t)


def nvml_gauge(domain, t, rng, period=0.1, window=0.1, ppm=0.0, phase=None):
    """mW: the mean of `window` before each update; window 0: of the moment."""
    u = grid(t[0], t[-1], period * (1 + ppm * 1e-6), 0, rng)
    if phase is not None:
        u = np.floor(u / period) * period + phase
    watts = domain.power(u) if window == 0 else (domain.energy(u) - domain.energy(u - window)) / window
    return shown(u, np.rint(watts * 1e3).astype(np.int64), t)


def ina(domain, t, rng, tau=0.4, period=0.01, step_ma=8, volts=5.0, noise=0.0):
    """mW of an INA3221: filtered, converted every `period`, current in steps of mA."""
    u = grid(t[0], t[-1], period * (1 + rng.normal(0, 2e-3)), 0, rng)
    watts = domain.filtered(u, tau) if tau else domain.power(u)
    ma = np.rint((watts / volts * 1e3 + rng.normal(0, noise, len(u))) / step_ma) * step_ma
    return shown(u, np.rint(ma * volts).astype(np.int64), t)


def wall(domain, begin, end, rng, period=1.0, late=0.1, late_jitter=0.02, step=0.1):
    """(stamps, tenths of W): the mean of the second before, sent late."""
    u = np.arange(begin + rng.uniform(0, 1), end, period * (1 + rng.normal(0, 5e-5)))
    watts = (domain.energy(u) - domain.energy(u - period)) / period
    stamps = u + late + rng.exponential(late_jitter, len(u))
    return np.sort(stamps), np.rint(watts / step).astype(np.int64)
