"""What sensors show, and when. Each function writes one, and returns (readings, updates, raw values at updates) of what it is attributed by."""

import numpy as np

from kernel import CPUS, others_cpu_s, thread_cpu_s
from recorder import BEGIN_S, PERIOD_S
from writer import ns

RAPL_J = 61.03515625e-6  # a count
RAPL_WRAP = 2**32
MILLI = dict(scale=1e-3, resolution=1e-3)
WATTS = dict(quantity="power", kind="gauge", unit="W")
ESTIMATE = dict(idle_w=10.0, cpu_w=6.0, low=0.42, high=3.2)  # its law, and how wrong it may be


def updates_of(machine):
    """When the device updates what it shows."""
    words, rng = machine.words, machine.rng
    period = words.update_s * (1 + words.ppm * 1e-6)
    t = np.arange(BEGIN_S - 1.5 - rng.uniform(0, period), machine.timeline.end + period, period)
    return np.sort(t + rng.normal(0, words.jitter_s, len(t))) if words.jitter_s else t


def held(t, updates, values):
    """What is read at t: the last update's."""
    return values[np.clip(np.searchsorted(updates, t, "right") - 1, 0, len(values) - 1)]


def mean_w(power, t, window_s):
    return (power.until(t) - power.until(t - window_s)) / window_s


def whole(values):
    return np.rint(values).astype(np.int64)


def read_every(words):
    return PERIOD_S if words.adaptive else 1.0 / words.rate


def rapl_counter(machine, recording, package):
    """A series for a package's counter."""
    sensor = recording.sensor("rapl-msr", f"package-{package}", read_every(machine.words))
    series = recording.series("samples", sensor, 1)
    recording.channel(series, 0, sensor, name=f"package-{package}", scale=RAPL_J, wrap=RAPL_WRAP, update_ns=1000000, resolution=RAPL_J,
                      limit_w=500.0, covers_cpu=1, source=f"/dev/cpu/{package}/msr")
    return series


def rapl(machine, recording, t):
    words, rng, power = machine.words, machine.rng, machine.power
    updates = updates_of(machine)
    raw = np.floor(power.until(updates) / RAPL_J + rng.random() * 1e6).astype(np.int64)
    if words.wrap:
        until_wrap = power.until(np.array([machine.timeline.part(0.37)]))[0] / RAPL_J - power.until(updates[:1])[0] / RAPL_J
        raw = (raw - raw[0] + RAPL_WRAP - int(until_wrap)) % RAPL_WRAP
    else:
        raw = raw + 123456
    series = rapl_counter(machine, recording, 0)
    seen = t + (rng.uniform(-0.5, 0.5, len(t)) * words.slow_s if words.slow_s else 0)
    if words.sockets == 2:
        joules = power.second_until(updates)
        raw = np.floor((power.until(updates) - joules) / RAPL_J).astype(np.int64) + 123456
        second = rapl_counter(machine, recording, 1)
        later = t + 3e-6
        recording.rows(second, ns(later), [held(later, updates, np.floor(joules / RAPL_J).astype(np.int64) + 777)], 2000)
    recording.rows(series, ns(t), [held(seen, updates, raw)], 2000 + words.slow_s * 1e9)
    return seen, updates, raw


def nvml_channel(recording, series, sensor, **more):
    recording.channel(series, 0, sensor, name="gpu-0", **MILLI, update_ns=100000000, limit_w=700.0, **more)


def nvml(machine, recording, t):
    """A GPU's counter; and a gauge beside it, where one of the two is wrong."""
    words, power, updates = machine.words, machine.power, updates_of(machine)
    raw = np.floor(power.until(updates) * (0.6 if words.biased == "counter" else 1.0) * 1000).astype(np.int64) + 98765432
    sensor = recording.sensor("nvml", "GPU 0", read_every(words))
    series = recording.series("samples", sensor, 1)
    nvml_channel(recording, series, sensor, source="nvmlDeviceGetTotalEnergyConsumption")
    recording.rows(series, ns(t), [held(t, updates, raw)], 30000)
    if words.biased:
        series = recording.series("samples", sensor, 1)
        nvml_channel(recording, series, sensor, **WATTS, window_ns=100000000, source="nvmlDeviceGetPowerUsage")
        shown = whole(mean_w(power, updates, 0.1) * (1.6 if words.biased == "gauge" else 1.0) * 1000)
        recording.rows(series, ns(t + 50e-6), [held(t + 50e-6, updates, shown)], 30000)
    return t, updates, raw


def gauge(machine, recording, t):
    """A GPU's power."""
    words, updates = machine.words, updates_of(machine)
    raw = whole(mean_w(machine.power, updates, words.window_s) * 1000)
    sensor = recording.sensor("nvml", "GPU 0", read_every(words))
    series = recording.series("samples", sensor, 1)
    nvml_channel(recording, series, sensor, **WATTS, window_ns=int(words.said_window_s * 1e9), source="nvmlDeviceGetPowerUsage")
    recording.rows(series, ns(t), [held(t, updates, raw)], 30000)
    return t, updates, raw


def lagging_w(machine, t):
    """The exponential average of power, exact over pieces of constant power: idle power must be."""
    words, edges, watts = machine.words, machine.power.edges, machine.power.active_w + machine.words.idle
    keeps, average = np.exp(-np.diff(edges) / words.lag_s), np.empty(len(edges))
    average[0] = watts[0]
    for i, keep in enumerate(keeps):
        average[i + 1] = watts[i] + (average[i] - watts[i]) * keep
    i = np.clip(np.searchsorted(edges, t, "right") - 1, 0, len(watts) - 1)
    return watts[i] + (average[i] - watts[i]) * np.exp(-(t - edges[i]) / words.lag_s)


def ina(machine, recording, t):
    words, updates = machine.words, updates_of(machine)
    assert not words.drift and not words.wander
    raw = whole((lagging_w(machine, updates) + machine.rng.normal(0, words.noise_w, len(updates))) * 1000)
    sensor = recording.sensor("ina3221", "1-0040", read_every(words))
    series = recording.series("samples", sensor, 1)
    said_s = words.update_s if words.said_update_s is None else words.said_update_s
    recording.channel(series, 0, sensor, name="VDD_IN", **WATTS, **MILLI, update_ns=int(said_s * 1e9), limit_w=60.0, wide=1, covers_cpu=1,
                      provenance="derived", source="curr1_input, in1_input")
    recording.rows(series, ns(t), [held(t, updates, raw)], 400000)
    return t, updates, raw


def wall(machine, recording, _):
    """Sends what it measured in the last second by itself, 20 ms later."""
    words, power, timeline, updates = machine.words, machine.power, machine.timeline, updates_of(machine)
    raw = whole((mean_w(power, updates, 1.0) + machine.rng.normal(0, words.noise_w, len(updates))) * 10)
    sent = (updates > BEGIN_S + 0.01) & (updates < timeline.end - 0.03)
    sensor = recording.sensor("emonpi", "wall", 0)
    series = recording.series("samples", sensor, 1)
    recording.channel(series, 0, sensor, name="wall", **WATTS, scale=0.1, update_ns=1000000000, window_ns=int(words.said_window_s * 1e9),
                      resolution=0.1, wide=1, covers_cpu=1, source="/dev/ttyAMA0")
    recording.rows(series, ns(updates[sent] + 20e-3), [raw[sent]], 1000000)
    return updates[sent] + 20e-3, updates[sent], raw[sent]


def estimate(machine, recording, _):
    """No sensor: a counter of a law, watts by busy CPUs, beside those of its bounds and of idle power, as nrg 0.2.0 writes them."""
    timeline, tick_s, idle_w, cpu_w = machine.timeline, machine.words.tick_s, ESTIMATE["idle_w"], ESTIMATE["cpu_w"]
    t = np.unique(np.concatenate([np.arange(BEGIN_S + 0.01, timeline.end, PERIOD_S), [timeline.run_begin, timeline.run_end]]))
    busy_s = sum(thread_cpu_s(thread, t, tick_s) for thread in machine.threads) + others_cpu_s(machine.power, t, tick_s)
    busy_s = busy_s + machine.words.recorder * (t - BEGIN_S)
    idle_j = idle_w * (t - BEGIN_S)
    joules = idle_j + cpu_w * busy_s
    low, high = ESTIMATE["low"], ESTIMATE["high"]
    sensor = recording.sensor("estimate", "EPYC", PERIOD_S)
    series = recording.series("samples", sensor, 4)
    for i, (name, factor) in enumerate((("machine", 1), ("machine.low", low), ("machine.high", high), ("machine.idle", 1))):
        recording.channel(series, i, sensor, name=name, scale=1e-6, update_ns=100000000, limit_w=factor * (idle_w + CPUS * cpu_w),
                          covers_cpu=int(i == 0), provenance="estimated", error_low=0.58 * (i == 0), error_high=2.2 * (i == 0),
                          source="EPYC, 8 hardware threads, 10 to 58 W")
    recording.rows(series, ns(t), [whole(column * 1e6) for column in (joules, joules * low, joules * high, idle_j)], 20000)
    return t, t, whole(joules * 1e6)


METERS = dict(rapl=rapl, nvml=nvml, gauge=gauge, ina=ina, wall=wall, est=estimate)


def write_meter(machine, recording):
    return METERS[machine.words.sensor](machine, recording, machine.timeline.readings(machine.rng))
