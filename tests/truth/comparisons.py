"""Comparisons whose answer is known: two programs, run in turn on a machine that drifts, seen by a sensor with noise.

A comparison is drawn at random from a world: the ratio of their energies, how much runs of each scatter, how the machine drifts over the session
(not, linearly, or warming up), the order of the runs, and the sensor (a counter like RAPL's, or a gauge of power whose every reading is off). Each side becomes one
recording with a run after the other, written from docs/recording-format.md (recording.py); `nrg compare --json` reads them. Nothing of src/ is used to
make them or to judge, and the true ratio is that of the programs' medians, free of drift.
"""
import dataclasses
import json
import math
import os
import subprocess

import numpy as np

from recording import Recording
from support import NRG

START_NS = 5_000_000_000_000
WALL_NS = 1_700_000_000_000_000_000
PERIOD_S = 0.1
COUNTER_J = 61e-6  # one step of RAPL's counter
PAUSE_S = 1.0


@dataclasses.dataclass
class World:
    runs: int
    ratio: float
    scatter: tuple  # relative, of A and of B
    drift: float  # of the machine's power from the first run to the last, logarithm
    warming: bool  # the drift is an exponential that comes to rest, not a line
    order: str  # "pairs": as nrg compare --run does; "shuffled"; "turn"
    gauge_noise: float  # of each reading; 0: a counter
    power_w: float
    duration_s: float


def draw(rng, runs, ratio=None):
    """A world at random."""
    return World(runs=runs, ratio=math.exp(rng.uniform(-0.2, 0.2)) if ratio is None else ratio,
                 scatter=tuple(np.exp(rng.uniform(np.log(0.003), np.log(0.03), 2))),
                 drift=float(rng.choice([0.0, rng.uniform(-0.06, 0.06)])), warming=bool(rng.random() < 0.25),
                 order=str(rng.choice(["pairs", "shuffled", "turn"])), gauge_noise=float(rng.choice([0.0, 0.03])),
                 power_w=float(np.exp(rng.uniform(np.log(5), np.log(300)))), duration_s=float(rng.uniform(1, 3)))


def sides_in_order(rng, world):
    """0 and 1 in the order in which the sides run."""
    n = world.runs
    if world.order == "shuffled":
        return list(rng.permutation([0] * n + [1] * n))
    pairs = [[0, 1] if world.order == "turn" or rng.random() < 0.5 else [1, 0] for _ in range(n)]
    return [side for pair in pairs for side in pair]


def drift_at(world, part):
    """Factor of the machine's power at that part of the session."""
    if world.warming:
        return math.exp(world.drift * (1 - math.exp(-4 * part)))
    return math.exp(world.drift * part)


def run_powers(rng, world):
    """(side, begin, end in s, mean power in W) of every run. Work takes power and time; both scatter."""
    t, found, order = 0.5, [], sides_in_order(rng, world)
    for i, side in enumerate(order):
        level = world.ratio if side else 1.0
        # Half of the difference is in the time, half in the power; so is the scatter.
        off = rng.normal(0, world.scatter[side])
        duration = world.duration_s * math.sqrt(level) * math.exp(0.5 * off)
        power = world.power_w * math.sqrt(level) * math.exp(0.5 * off) * drift_at(world, i / max(len(order) - 1, 1))
        found.append((side, t, t + duration, power))
        t += duration + PAUSE_S
    return found


def readings(rng, world, runs):
    """Times and raw values of the sensor during the runs, and the channel's description."""
    times, values, joules = [], [], 1000.0
    for _, begin, end, power in runs:
        t = np.unique(np.append(np.arange(begin, end, PERIOD_S), end))
        times.append(t)
        if world.gauge_noise:
            values.append(np.round(power * (1 + world.gauge_noise * rng.standard_normal(len(t))) * 1e3))
        else:
            values.append(np.floor((joules + power * (t - begin)) / COUNTER_J))
            joules += power * (end - begin) + 3.0 * PAUSE_S
    gauge = {"name": "package-0", "quantity": "power", "kind": "gauge", "unit": "W", "scale": 1e-3, "resolution": 1e-3,
             "update_ns": round(PERIOD_S * 1e9), "covers_cpu": 1}
    counter = {"name": "package-0", "scale": COUNTER_J, "resolution": COUNTER_J, "update_ns": 1_000_000, "covers_cpu": 1}
    return np.concatenate(times), np.concatenate(values).astype(np.int64), gauge if world.gauge_noise else counter


def write_side(rng, world, path, runs):
    t, values, channel = readings(rng, world, runs)
    stamps = START_NS + np.round(t * 1e9).astype(np.int64)
    recording = Recording(path)
    recording.meta(nrg_version="truth", command_line="program", host="bench", cpus=4, begin_ns=int(stamps[0]), end_ns=int(stamps[-1]))
    recording.insert("clock", (START_NS, WALL_NS, None), (int(stamps[-1]), WALL_NS + int(stamps[-1]) - START_NS, None))
    recording.samples("gauge" if world.gauge_noise else "rapl-powercap", "bench", PERIOD_S, stamps, [(channel, values)])
    recording.insert("run", *[(i + 1, "run", START_NS + round(begin * 1e9), START_NS + round(end * 1e9), 0)
                              for i, (_, begin, end, _) in enumerate(runs)])
    recording.close()


def compare(rng, world, folder, *more):
    """What nrg compare --json says of a comparison in that world."""
    runs, paths = run_powers(rng, world), []
    for side in (0, 1):
        paths.append(os.path.join(folder, "ab"[side] + ".nrg"))
        write_side(rng, world, paths[-1], [run for run in runs if run[0] == side])
    done = subprocess.run([NRG, "compare", "--json", *more, paths[0], "--", paths[1]], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"nrg compare ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def holds(said, ratio):
    """Whether the interval of the energy holds the ratio."""
    return said["low"] <= ratio <= said["high"]


def true_scatter(world):
    """What runs of the sides vary by, as the sensor shows them: their own, and the mean of so many readings that are off."""
    level = (1.0, math.sqrt(world.ratio))
    noise = [world.gauge_noise ** 2 * PERIOD_S / (world.duration_s * level[side]) for side in (0, 1)]
    return [math.sqrt(world.scatter[side] ** 2 + noise[side]) for side in (0, 1)]


def runs_for(scatter, difference):
    """
    Runs of each side that find the difference in 4 of 5 tries at 95 % when the scatter is known: the two-sample test with Student's quantiles by their
    expansion (Abramowitz and Stegun 26.7.5).
    """
    def quantile(z, freedom):
        return z + (z ** 3 + z) / (4 * freedom) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2)
    z_level, z_power = 1.959964, 0.841621
    n = 2.0
    for _ in range(100):
        freedom = max(2 * n - 3, 2)
        n = max(2.0, (quantile(z_level, freedom) + quantile(z_power, freedom)) ** 2
                * (scatter[0] ** 2 + scatter[1] ** 2) / math.log1p(difference) ** 2)
    return n
