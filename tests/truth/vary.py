"""Moves the parameters of a scenario at random, each seed to another place: what holds should not hold for the scenarios' own figures alone.

What makes a scenario what it is stays: which sensor, how often it is read, how calls wait, what is recorded.
"""
import dataclasses
import math

import numpy as np

FIXED_PHASE = {"idle_w": (0.5, 2)}  # a load in step with its sensor is not in step any more when its times are moved
FACTORS = {"shortest_s": (0.5, 2), "longest_s": (0.5, 2), "gap_s": (0.2, 3), "jitter": (0.3, 2), "gap_jitter": (0.3, 2), "length_s": (0.5, 2),
           "low_w": (0.5, 1), "idle_w": (0.3, 1.5), "baseline_s": (0.5, 3), "stalls": (0.3, 1.5), "others": (0.3, 1.5),
           "others_w": (0.5, 1.2), "drift": (0.2, 1.2), "workers": (0.5, 1.2), "tau_s": (0.5, 2)}
NO_LAYERS = (4, 25)
LEAST_STEPS = 3  # of the longest calls alone
WATTS = (0.4, 1.2)
WARMS_UP = (0.25, 2.5)
SLOWEST_UPDATES = 0.01  # RAPL's update is what it is, but for its clock, which each seed has another of


def between(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def varied(scenario, seed):
    rng = np.random.default_rng([seed, 20261117])
    fixed = scenario.phase_s is not None
    factors = FIXED_PHASE if fixed else FACTORS
    changes = {name: getattr(scenario, name) * between(rng, *limits) for name, limits in factors.items()}
    if not fixed:
        watts = between(rng, *WATTS)
        changes |= {"low_w": changes["low_w"] * watts, "high_w": scenario.high_w * watts}
        changes["layers"] = int(rng.integers(*NO_LAYERS))
        changes["length_s"] = max(changes["length_s"], LEAST_STEPS * changes["layers"] * changes["longest_s"])
        if scenario.threads > 1:
            changes["threads"] = int(rng.integers(2, 5))
        if scenario.update_s >= SLOWEST_UPDATES:
            changes["update_s"] = scenario.update_s * between(rng, 0.6, 1.5)
            changes["window_s"] = scenario.window_s / scenario.update_s * changes["update_s"]
    if scenario.per_call not in (0, 1):
        changes["per_call"] = float(rng.uniform(0.2, 0.8))
    if scenario.drift_tau_s:
        changes["drift_tau_s"] = scenario.drift_tau_s * between(rng, *WARMS_UP)
    return dataclasses.replace(scenario, **changes)
