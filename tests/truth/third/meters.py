"""What sensors of the host show of its power: RAPL, an INA3221 in two ways, a meter at the wall."""

import numpy as np

from power import filtered
from recorder import read_times
from writer import NS, energy_counter, power_gauge, whole_ns

RAPL_J = 2.0**-14  # the unit of RAPL's registers, of 32 bits
HWMON = "/sys/class/hwmon/hwmon0/power1_input"


class Meters:
    """Draws what the scenario's sensor shows, and writes it to the recording."""

    def __init__(self, rng, words, times, power, recorder):
        self.rng, self.words, self.times, self.power, self.recorder = rng, words, times, power, recorder

    def write(self, recording):
        self.recording = recording
        {"rapl": self.rapl, "ina": self.ina, "inabox": self.inabox, "wall": self.wall}[self.words.sensor]()

    def energy_j(self, t):
        return self.power.energy_j("package-0", t)

    def rapl(self):
        """Powercap's files: registers that update about each millisecond and wrap once during the run, in microjoules."""
        words = self.words
        period_s = 0.1 if words.rate == "auto" else 1.0 / words.rate
        updates = self.rapl_updates()
        for domain in words.domains:
            of_package = domain.startswith("package")
            name = f"intel-rapl:{domain[-1]}" + ("" if of_package else ":1")
            sensor = self.recording.sensor("rapl-powercap", name, period_s)
            t = self.recorder.reads + {"package-0": 0, "package-1": 12e-6, "dram-0": 25e-6}[domain]
            taken, width_ns = self.taken(t)
            energy_j = self.power.energy_j(domain, updates[np.searchsorted(updates, taken, side="right") - 1])
            start_j = 2**32 * RAPL_J - self.rng.uniform(0, 2) * (energy_j[-1] - energy_j[0])
            register = np.floor((start_j + energy_j - energy_j[0]) / RAPL_J) % 2**32
            said = energy_counter(domain, 1e-6, RAPL_J, wrap=262144000000, update_ns=1000000, limit_w=250.0,
                                  covers_cpu=int(of_package), source=f"/sys/class/powercap/intel-rapl:{domain[-1]}/energy_uj")
            self.recording.samples(sensor, t, [(said, np.floor(register * RAPL_J * 1e6))], width_ns)

    def rapl_updates(self):
        rng, words, times = self.rng, self.words, self.times
        period_s = words.rapl_update or 1e-3 * (1 + rng.uniform(-0.03, 0.03))
        n = int((times.close_s - times.record_s + 2) / period_s) + 10
        wander = np.cumsum(rng.normal(0, words.rapl_wander, n)) if words.rapl_wander else 0.0
        grid = times.record_s - 1 + rng.uniform(0, period_s) + period_s * np.arange(n)
        return np.maximum.accumulate(grid + wander + rng.normal(0, words.rapl_jitter, n))

    def taken(self, t):
        """When the values really were taken, and how long the readings took (ns): microseconds, seldom a millisecond."""
        rng, n = self.rng, len(t)
        width_s = 3e-6 * np.exp(rng.normal(0, 0.4, n))
        width_s += (rng.random(n) < 2e-4) * rng.exponential(1e-3, n)
        return t + width_s * (rng.random(n) - 0.5), (width_s * NS).astype(int)

    def gauge(self, name, driver, period_s, t, watts, step_w, **more):
        sensor = self.recording.sensor(driver, name, period_s)
        said = power_gauge(name, step_w, covers_cpu=1, **more)
        self.recording.samples(sensor, t, [(said, np.round(watts / step_w))], width_ns=30000)

    def ina_reads(self):
        period_s, times = self.words.read_s or 0.01, self.times
        return period_s, read_times(self.rng, times.record_s + 0.001, times.close_s, period_s, self.words.late)[0]

    def noise_w(self, t):
        return self.rng.normal(0, self.words.gauge_noise, len(t))

    def ina(self):
        """INA3221 behind a filter, in steps of 20 mW."""
        words = self.words
        period_s, t = self.ina_reads()
        watts = filtered(self.power.lines["package-0"], words.lag, t, self.times.record_s - 0.5, words.idle)
        lag_ns = whole_ns(words.lag) if words.lag_known else 0
        self.gauge("VDD_IN", "ina3221", period_s, t, watts + self.noise_w(t), 0.02, lag_ns=lag_ns, source=HWMON)

    def inabox(self):
        """INA3221 as the chip does it: the mean of its last conversion cycle, held until the next."""
        period_s, t = self.ina_reads()
        cycle_s = self.words.update * (1 + self.words.ppm * 1e-6)
        cycles = np.arange(self.times.record_s - 1 + self.rng.uniform(0, cycle_s), self.times.close_s + 1, cycle_s)
        means_w = np.diff(self.energy_j(cycles)) / cycle_s
        watts = means_w[np.searchsorted(cycles, t, side="right") - 2]
        self.gauge("VDD_IN", "ina3221", period_s, t, watts + self.noise_w(t), 0.02, source=HWMON)

    def wall(self):
        """A plug that sends once a second the mean of the last second; rows are updates."""
        rng, times = self.rng, self.times
        period_s = 1.0 * (1 + rng.normal(0, 2e-4))
        sent = np.arange(times.record_s + rng.uniform(0, period_s), times.close_s, period_s)
        watts = (self.energy_j(sent) - self.energy_j(sent - period_s)) / period_s
        t = sent + 0.02 + rng.exponential(0.01, len(sent))
        self.gauge("wall", "meter-lines", 1.0, t, watts, 0.1, update_ns=10**9, wide=1, source="serial")
