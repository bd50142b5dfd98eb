"""What sensors show of a machine's power: RAPL, NVML, an INA3221, a meter at the wall."""

import math

import numpy as np

from power import decayed, flicker
from writer import NS


def energy_counter(name, unit_j, update_s, **more):
    said = {"quantity": "energy", "kind": "counter", "unit": "J", "scale": unit_j, "resolution": unit_j}
    return {"name": name, **said, "update_ns": int(update_s * 1e9), **more}


def power_gauge(name, scale_w, update_s, **more):
    said = {"quantity": "power", "kind": "gauge", "unit": "W", "scale": scale_w, "resolution": scale_w}
    return {"name": name, **said, "update_ns": int(update_s * 1e9), **more}


class Meters:
    """Draws what the scenario's sensor shows, and writes it to the recording."""

    def __init__(self, rng, words, power, recording):
        self.rng, self.words, self.power, self.recording = rng, words, power, recording

    def write(self):
        kind = self.words.sensor.split("-")[0]
        {"rapl": self.rapl, "nvml": self.nvml, "ina": self.ina, "wall": self.wall}[kind]()

    def sensor(self, driver, name):
        return self.recording.sensor(driver, name, NS / self.words.rate)

    def energy(self, t):
        return self.power.pieces.at(self.power.package_j, t)

    def read_times(self):
        """On a grid but late, sometimes very; and at the ends of the run and of its baselines."""
        rng, words = self.rng, self.words
        t = np.arange(0.02, words.after_s - 0.06, 1 / words.rate)
        if words.late:
            t = t + rng.exponential(40e-6, len(t)) * words.late
            very = rng.random(len(t)) < 0.01
            t[very] += rng.exponential(3e-3, very.sum())
        before = [x + 1e-6 for ends in words.before() for x in ends]
        behind = [x for ends in words.behind() for x in ends]
        t = np.unique(np.concatenate([t, [words.begin_s + 5e-6, words.end_s + 5e-6], before, behind]))
        if words.drop:
            t = t[self.kept(t)]
        return t[np.diff(t, prepend=-1) > 2e-6]

    def kept(self, t):
        """Which readings are there: never without those at the ends of the run."""
        rng, words = self.rng, self.words
        kept = rng.random(len(t)) > words.drop
        if words.dropburst:
            for begin in rng.uniform(words.begin_s, words.end_s, int(words.T / 10) + 1):
                kept &= ~((t > begin) & (t < begin + rng.uniform(0.02, 0.3)))
        return kept | (np.abs(t - words.begin_s) < 1e-4) | (np.abs(t - words.end_s) < 1e-4)

    def updates(self, period, wander=0):
        """When the sensor takes a new value."""
        n = int(self.words.after_s / period * 1.15) + 3
        periods = np.full(n, period)
        if wander:
            periods = periods * (1 + flicker(self.rng, n, period, wander))
        t = np.cumsum(periods) - period * (1 + self.rng.random())
        if self.words.ujit:
            t = np.maximum.accumulate(t + self.rng.normal(0, self.words.ujit, n))
        return t

    def last_update(self, updates, t):
        return updates[np.maximum(np.searchsorted(updates, t, "right") - 1, 0)]

    def counted(self, energy, t, updates, unit_j, offset_j):
        shown = self.power.pieces.at(energy, np.clip(self.last_update(updates, t), 0, None))
        return np.floor((shown + offset_j) / unit_j).astype(np.int64)

    def rapl_domains(self):
        """(name, energy, unit, more of the channel)"""
        words, power = self.words, self.power
        yield "package-0", power.package_j, words.unit, {"covers_cpu": 1}
        if words.dram:
            yield "dram-0", power.dram_j, 15.2587890625e-6, {}
        if words.uncore:
            yield "uncore-0", power.uncore_j, words.unit, {"parent": "package-0"}

    def rapl(self):
        rng, words = self.rng, self.words
        sensor = self.sensor("rapl-powercap", "intel-rapl:0")
        free, ms = rng.uniform(0.9e-3, 1.1e-3), 1.0e-3 * (1 + rng.normal(0, 20e-6))
        period = {"free": free, "ms": ms}.get(words.update, 0.9765625e-3)
        updates = self.updates(period, 2e-3 if words.update == "wander" else 0)
        t = self.read_times()
        channels = []
        for name, energy, unit, more in self.rapl_domains():
            if channels and not words.rapl_same:
                updates = self.updates(period)
            more = {"wrap": words.wrap, "limit_w": 400.0, "source": "/sys/class/powercap/x/energy_uj", **more}
            offset = rng.uniform(0, words.wrap * unit * 0.99)
            channels.append((energy_counter(name, unit, 1e-3, **more), self.counted(energy, t, updates, unit, offset) % words.wrap))
        self.recording.samples(sensor, t, channels, width_ns=8000)

    def nvml(self):
        words = self.words
        sensor = self.sensor("nvml", "gpu-0")
        t = self.read_times()
        updates = self.updates(words.gupd * (1 + self.rng.normal(0, 100) * 1e-6))
        if words.sensor == "nvml-counter":
            said = energy_counter("gpu-0", 1e-3, words.gupd, limit_w=400.0, source="nvmlDeviceGetTotalEnergyConsumption")
            values = self.counted(self.power.package_j, t, updates, 1e-3, 1234.5)
        else:
            window = {"nvml-mean": words.gupd, "nvml-part": words.gupd / 4, "nvml-instant": 1e-4}[words.sensor]
            said = power_gauge("gpu-0", 1e-3, words.gupd, window_ns=self.window_ns(window), limit_w=400.0, source="nvmlDeviceGetPowerUsage")
            shown = np.clip(self.last_update(updates, t), 0.2, None)
            values = np.round((self.energy(shown) - self.energy(shown - window)) / window * 1e3).astype(np.int64)
        self.recording.samples(sensor, t, [(said, values)], width_ns=50000)

    def window_ns(self, window_s):
        return int(window_s * 1e9) if self.words.winknown else None

    def ina(self):
        """Power with a first-order lag, reckoned in steps of a millisecond."""
        words = self.words
        sensor = self.sensor("ina3221", "ina3221@40")
        t = self.read_times()
        grid = np.arange(0, words.after_s, 1e-3)
        watts = np.diff(self.energy(np.append(grid, grid[-1] + 1e-3))) / 1e-3
        keep = math.exp(-1e-3 / words.tau)
        shown = np.interp(t, grid + 1e-3, decayed(watts, keep, 1 - keep, keep * watts[0]))
        shown = shown * (1 + self.rng.normal(0, 0.003, len(shown)))
        values = np.round(shown * 1e3 / 8).astype(np.int64) * 8
        lag_ns = int(words.tau * 1e9) if words.lagknown else 0
        said = power_gauge("VDD_IN", 1e-3, words.iupd, lag_ns=lag_ns, resolution=8e-3, covers_cpu=1, source="/sys/bus/i2c/in")
        self.recording.samples(sensor, t, [(said, values)], width_ns=300000)

    def wall(self):
        """The mean of each second."""
        sensor = self.recording.sensor("meter", "plug", NS)
        t = np.arange(1 + self.rng.random(), self.words.after_s - 0.1, 1.0)
        t = t + self.rng.normal(0, 0.005, len(t))
        values = np.round((self.energy(t) - self.energy(t - 1)) * 10).astype(np.int64)
        said = power_gauge("wall", 0.1, 1.0, window_ns=self.window_ns(1.0), wide=1, covers_cpu=1, source="meter")
        self.recording.samples(sensor, t, [(said, values)], width_ns=1000000)
