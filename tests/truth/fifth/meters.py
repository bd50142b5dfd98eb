"""What sensors show of the power: RAPL, an INA3221 that lags, a meter at the plug, and a GPU's counter or gauge."""

import math

import numpy as np

from recorder import readings

RAPL_J = 61.035e-6  # the unit of its registers,
DRAM_J = 15.3e-6
RAPL_UPDATE_S = 0.000976
REGISTER = 2**32
INA_STEP_S, INA_UPDATE_S, INA_STEP_W = 0.0005, 0.002, 0.02
POWERCAP = "/sys/class/powercap/"


def counter(name, scale_j, update_ns, **more):
    return dict(name=name, quantity="energy", kind="counter", unit="J", scale=scale_j, update_ns=int(update_ns), **more)


def gauge(name, scale_w, update_ns, **more):
    return dict(name=name, quantity="power", kind="gauge", unit="W", scale=scale_w, update_ns=int(update_ns), **more)


def write_host_sensor(recording, rng, words, times, power, read_s, seed):
    width_s = words["width_us"] * 1e-6
    shown_s = read_s + rng.uniform(-width_s / 2, width_s / 2, len(read_s))  # when in a reading the sensor was asked
    if words["sensor"] == "rapl":
        Rapl(rng, words, times, power, shown_s, seed).write(recording, read_s)
    elif words["sensor"] == "ina":
        write_ina(recording, rng, words, times, power, read_s)
    elif words["sensor"] == "wall":
        write_wall(recording, rng, words, times, power)


class Rapl:
    """Counters that are renewed about each ms and, with every third seed, wrap in the run."""

    def __init__(self, rng, words, times, power, shown_s, seed):
        self.rng, self.words, self.times, self.power, self.shown_s, self.seed = rng, words, times, power, shown_s, seed

    def shown(self, joules, unit_j):
        """(values in µJ, what they wrap at) of a counter of its own phase."""
        rng, phase_s = self.rng, self.rng.uniform(0, 1e-3)
        updates = np.arange(-0.01, self.times.close_s + 0.01, RAPL_UPDATE_S) + phase_s
        if self.words["jitter_us"]:
            updates = np.sort(updates + rng.normal(0, self.words["jitter_us"] * 1e-6, len(updates)))
        last = np.clip(np.searchsorted(updates, self.shown_s, side="right") - 1, 0, None)
        energy = np.interp(np.clip(updates[last], 0, self.times.close_s), self.power.edges, joules)
        before = rng.uniform(0, REGISTER * unit_j)
        if self.seed % 3 == 0:
            before = REGISTER * unit_j - 0.5 * energy[-1]
        wrap = int(REGISTER * unit_j * 1e6)
        return np.round(np.floor((energy + before) / unit_j) * unit_j * 1e6).astype(np.int64) % wrap, wrap

    def package(self, number, joules):
        values, wrap = self.shown(joules, RAPL_J)
        return counter(f"package-{number}", 1e-6, 976563, wrap=wrap, resolution=RAPL_J, limit_w=250.0, covers_cpu=1,
                       source=f"{POWERCAP}intel-rapl:{number}/energy_uj"), values

    def dram(self):
        values, wrap = self.shown(self.power.joules(self.power.dram_w), DRAM_J)
        return counter("dram-0", 1e-6, 976563, wrap=wrap, resolution=DRAM_J, limit_w=80.0,
                       source=POWERCAP + "intel-rapl:0:0/energy_uj"), values

    def write(self, recording, read_s):
        power, channels = self.power, [self.package(0, self.power.joules())]
        if len(self.words["migrate"]):  # drawn anew, after the one above: otherwise the same seeds were other machines
            second_w = power.second_package()
            channels = [self.package(0, power.joules(power.watts - second_w)), self.package(1, power.joules(second_w))]
        if self.words["dram"]:
            channels.append(self.dram())
        sensor = recording.sensor("rapl-powercap", "intel-rapl:0", 1e9 / self.words["rate"])
        recording.samples(sensor, self.times.ns(read_s), channels, int(self.words["width_us"] * 1000))


def lagged(power, close_s, lag_s):
    """(times, watts) of power behind a low-pass filter of the first order."""
    t = np.arange(0, close_s, INA_STEP_S)
    joules = np.interp(t + INA_STEP_S / 2, power.edges, power.joules())
    watts = np.diff(np.append(joules, joules[-1] + power.watts[-1] * INA_STEP_S)) / INA_STEP_S
    follow, value, shown = 1 - math.exp(-INA_STEP_S / lag_s), watts[:200].mean(), np.empty(len(watts))
    for i, now in enumerate(watts):
        value += follow * (now - value)
        shown[i] = value
    return t, shown


def write_ina(recording, rng, words, times, power, read_s):
    t, shown = lagged(power, times.close_s, words["lag"])
    watts = np.interp(np.floor(read_s / INA_UPDATE_S) * INA_UPDATE_S, t, shown)
    watts = np.round(watts / INA_STEP_W) * INA_STEP_W + rng.normal(0, INA_STEP_W, len(watts))
    said = gauge("VDD_IN", 1e-6, 2000000, lag_ns=int(words["lag"] * 1e9) if words["lag_known"] else 0, resolution=INA_STEP_W,
                 limit_w=60.0, wide=1, covers_cpu=1, provenance="derived", source="hwmon")
    sensor = recording.sensor("ina3221", "ina3221:1-0040", 1e9 / words["rate"])
    recording.samples(sensor, times.ns(read_s), [(said, np.round(watts * 1e6))], 200000)


def write_wall(recording, rng, words, times, power):
    """A plug that sends the mean of the past second, once a second."""
    t = np.arange(0.3, times.close_s, 1.0)
    t = t + rng.normal(0, 0.01, len(t))
    mean_s, joules = words["wall_mean"], power.joules()
    past = np.interp(t, power.edges, joules) - np.interp(np.maximum(t - mean_s, 0), power.edges, joules)
    said = gauge("wall", 1e-3, 10**9, resolution=0.01, limit_w=2000.0, wide=1, covers_cpu=1, source="serial")
    values = np.round(past / np.minimum(t, mean_s) * 100) * 10
    recording.samples(recording.sensor("meter", "wall", 1e9), times.ns(t + 0.02), [(said, values)], 1000000)


def write_gpu_sensor(recording, rng, words, times, gpu):
    """NVML's counter, its gauge, or both: renewed by a clock of the GPU's own."""
    read_s = readings(rng, words, times, 1.0 / words["gpu_read"])
    period_s = words["gpu_update"] * (1 + words["ppm"] * 1e-6 * rng.choice([-1, 1]))
    updates = np.arange(-period_s, times.close_s + period_s, period_s) + rng.uniform(0, period_s)
    if words["pub_jitter"]:
        updates = np.sort(updates + rng.normal(0, words["pub_jitter"], len(updates)))
    shown_s = read_s + rng.uniform(-0.5, 0.5, len(read_s)) * words["gpu_width_us"] * 1e-6
    last = np.clip(np.searchsorted(updates, shown_s, side="right") - 1, 0, None)
    sensor = recording.sensor("nvml", gpu.thread.domain, 1e9 * words["gpu_read"])
    channels = []
    if "counter" in words["gpu"]:
        channels.append(gpu_counter(words, gpu, updates))
    if "gauge" in words["gpu"]:
        channels.append(gpu_gauge(words, times, gpu, updates, period_s))
    for said, values in channels:
        recording.samples(sensor, times.ns(read_s), [(said, values[last])], int(words["gpu_width_us"] * 1000))


def gpu_counter(words, gpu, updates):
    said = counter(gpu.thread.domain, 1e-3, words["gpu_update"] * 1e9, resolution=1e-3, limit_w=700.0,
                   source="nvmlDeviceGetTotalEnergyConsumption")
    return said, np.floor((gpu.up_to(updates) + 12345.0) * 1e3)


def gpu_gauge(words, times, gpu, updates, period_s):
    from_s = updates - words["gpu_window"] * period_s
    mean_of_s = np.clip(updates, 0, times.close_s) - np.clip(from_s, 0, times.close_s)
    watts = np.maximum((gpu.up_to(updates) - gpu.up_to(from_s)) / np.maximum(mean_of_s, 1e-9), 0)
    window_ns = int(words["gpu_window"] * words["gpu_update"] * 1e9) if words["window_known"] else 0
    said = gauge(gpu.thread.domain, 1e-3, words["gpu_update"] * 1e9, window_ns=window_ns, resolution=1e-3, limit_w=700.0,
                 source="nvmlDeviceGetPowerUsage")
    return said, np.round(watts * 1e3)
