"""Compares what `nrg attribute` says of a recording with the truth, and adds up over seeds."""
import json
import math
import subprocess
from dataclasses import dataclass, field

import numpy as np


def nrg_json(nrg, command, path, arguments=()):
    done = subprocess.run([nrg, command, "--json", *arguments, path], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"nrg {command}: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def attribute(nrg, path, arguments):
    return nrg_json(nrg, "attribute", path, arguments)


def paths_of(rows):
    """(path, row) of each: its path is (kind, name) of all that it is in and of itself."""
    by_id = {row["id"]: row for row in rows}
    for row in rows:
        path, at = (), row
        while at is not None:
            path, at = ((at["kind"], at["name"]), *path), by_id.get(at.get("parent"))
        yield path, row


@dataclass
class Tally:
    """Rows of one scenario: relative errors, half-widths, whether the interval held, whether the row is resolved.

    Of an estimate the rows are compared with what its law says of the true CPU times; `scaled` are the same rows with the estimate's scale, compared with
    what the machine drew."""
    rows: list = field(default_factory=list)
    scaled: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    totals: list = field(default_factory=list)
    methods: list = field(default_factory=list)

    def add(self, machine, result):
        self.methods.append(result["domains"][0]["method"] if result["domains"] else "none")
        self.totals.append(compared(machine.total_j(), result["total_j"], result["total_low_j"], result["total_high_j"], True))
        rows = {row["name"]: row for row in result["rows"]}
        for p in range(len(machine.threads)):
            truth, factor = machine.layer_j(p), machine.factor if "scale" in result else 1
            for i, layer_j in enumerate(truth):
                row = rows[f"layer-{p}-{i}"]
                self.rows.append(row_compared(layer_j / factor, row))
                if "scale" in result:
                    self.scaled.append(row_compared(layer_j, row, "_with_scale"))
            self.steps.append(row_compared(truth.sum() / factor, rows[f"step-{p}"]))

    def join(self, other):
        for mine, theirs in ((self.rows, other.rows), (self.scaled, other.scaled), (self.steps, other.steps), (self.totals, other.totals),
                             (self.methods, other.methods)):
            mine += theirs

    def figures(self):
        return {"methods": sorted(set(self.methods)), "layers": figures(self.rows), "step": figures(self.steps),
                "total": figures(self.totals), **({"scaled": figures(self.scaled)} if self.scaled else {})}


def row_compared(truth, row, scale=""):
    if row.get("energy_j") is None:
        return compared(truth, math.nan, -math.inf, math.inf, False)
    return compared(truth, row["energy_j"], row[f"low{scale}_j"], row[f"high{scale}_j"], "not resolved" not in row["flags"])


def compared(truth, value, low, high, resolved):
    slack = 1e-9 * abs(truth)
    return (abs(value / truth - 1), (high - low) / 2 / truth, low - slack <= truth <= high + slack, resolved, value / truth - 1)


def figures(rows):
    error, width, held, resolved, bias = (np.array(c) for c in zip(*rows))
    held, resolved = held.astype(bool), resolved.astype(bool)
    return {"n": len(rows), "error": float(np.nanmedian(error)), "bias": float(np.nanmedian(bias)), "half_width": float(np.median(width)),
            "cover": float(held.mean()), "resolved": float(resolved.mean()),
            "cover_resolved": float(held[resolved].mean()) if resolved.any() else math.nan,
            "error_resolved": float(np.median(error[resolved])) if resolved.any() else math.nan}


LEAST_WIDTH = {"layers": 1e-4, "step": 2e-4}  # what an interval is never narrower than; up to twice that is no hiding


def too_wide(part, of):
    return of["cover"] > 0.99 and of["half_width"] > 4 * of["error"] and of["half_width"] > 2 * LEAST_WIDTH[part]


def short_of(f):
    """Which bars a scenario misses: 90 % of the resolved rows, of steps and of totals hold, 85 % of all rows; and nothing hides behind width."""
    rows, missed = f["layers"], []
    if rows["cover_resolved"] < 0.9:
        missed.append("RESOLVED")
    if rows["cover"] < 0.85:
        missed.append("ALL")
    missed += [part.upper() for part in ("step", "total") if f[part]["cover"] < 0.9]
    return missed + [f"WIDE-{part.upper()}" for part in ("layers", "step") if too_wide(part, f[part])]
