"""The estimate's model of a machine's power, learnt from cpu_hosts.py. cpu_power.py is the program.

Two levels, in logarithms of watts per hardware thread, idle and full load apart:

  machine = median of SPEC's servers of the family                    level 1: tuned servers
            x (clock / the family's clock) ^ a
            x (cores per chip / the family's) ^ b                     not in a virtual machine: not known there
            x what machines as they come draw more than SPEC's        level 2: cpu_hosts.csv

a and b are least squares within the families. The band must hold both kinds of machine, because nrg can't
know which it runs on: it reaches from the 10th percentile of the family's tuned servers to the 95th of machines as
they come (not the 90th: they are few, and nobody drew them at random). Both are prediction intervals, so few
machines give a wide band; the spread of a family with few of them leans on that of all families. Families that SPEC
does not have (boards, Apple, desktops) have one level: mean and 80 % prediction interval of the machines measured,
90 % in the rows for ARM machines of no family, which mix unlike ones.
"""
import csv
import glob
import math
from statistics import mean, median

import cpu_hosts as data

Z90, Z95 = 1.2816, 1.6449
# Percentiles of Student's t for 1, 2, ... degrees of freedom; the normal's beyond are close enough
T95 = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
       1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708]
T90 = [3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.350,
       1.345, 1.341, 1.337, 1.333, 1.330, 1.328, 1.325, 1.323, 1.321, 1.319, 1.318, 1.316]
PRIOR_HOSTS = 6  # how many machines' worth the spread of all families has in a family's own
# As in src/sensors/machine/cpu_power.c: beyond these ratios the powers of clock and cores do not hold; and no
# machine draws more of its full power when idle.
CLOCK_RATIO, CORES_RATIO = 2.5, 16.0
IDLE_OF_FULL = 0.8
QUANTITIES = ("idle", "full")
VIEWS = ("metal", "guest")


def spread(values, about):
    return math.sqrt(sum((v - about) ** 2 for v in values) / len(values))


def bounded(log_ratio, most):
    return max(-math.log(most), min(math.log(most), log_ratio))


def quantile_of_t(table, degrees, normal):
    return table[degrees - 1] if degrees <= len(table) else normal


def prediction(values, table=T90, normal=Z90):
    """(mean, half width of the prediction interval) of one more value"""
    n, centre = len(values), mean(values)
    sd = spread(values, centre) * math.sqrt(n / (n - 1))
    return centre, quantile_of_t(table, n - 1, normal) * sd * math.sqrt(1 + 1 / n)


class Line:
    """One family of SPEC's servers: where it stands, and its part of the normal equations for a and b."""

    def __init__(self, members):
        self.members = members
        self.points = {}  # {quantity: [(log clock, log cores, log W), about the family's]}
        self.clock = median(s.clock_mhz for s in members)
        self.cores = median(s.chip_cores for s in members)
        self.level, self.sums = {}, {}
        for q in QUANTITIES:
            y0 = self.level[q] = median(s.log_w[q] for s in members)
            points = self.points[q] = [(*self.offset(s), s.log_w[q] - y0) for s in members]
            self.sums[q] = [sum(p[i] * p[j] for p in points) for i, j in
                            ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2))]

    def offset(self, host):
        return (bounded(math.log(host.clock_mhz / self.clock), CLOCK_RATIO),
                bounded(math.log(host.chip_cores / self.cores), CORES_RATIO))


def exponents(lines):
    """{(view, quantity): (a, b)} by least squares; b is 0 for a guest, which can't see the chip's cores."""
    result = {}
    for q in QUANTITIES:
        xx, xz, zz, xy, zy = (sum(line.sums[q][i] for line in lines) for i in range(5))
        det = xx * zz - xz * xz
        result["metal", q] = ((xy * zz - zy * xz) / det, (zy * xx - xy * xz) / det)
        result["guest", q] = (xy / xx, 0.0)
    return result


class Model:
    """Everything that is learnt. lines: {family: Line}; real: machines as they come."""

    def __init__(self, lines, servers, real):
        self.lines, self.servers, self.real = lines, servers, real
        self.powers = exponents(lines.values())
        self.cache = {}
        self.pooled = {}
        for key in self.powers:
            squares = [r * r for name in lines for r in self.residuals(name, *key)]
            self.pooled[key] = math.sqrt(mean(squares))
        self.factor = {key: prediction(self.excess(*key), T95, Z95) for key in self.powers}
        self.class_spread = {q: self.pool_classes(q) for q in QUANTITIES}

    def scale(self, name, host, view, q):
        a, b = self.powers[view, q]
        x, z = self.lines[name].offset(host)
        return a * x + b * z

    def about(self, name, view, q):
        """(log W/thread of the family's typical tuned server, the others' distances from it)"""
        key = name, view, q
        if key not in self.cache:
            a, b = self.powers[view, q]
            line = self.lines[name]
            values = [y - a * x - b * z for x, z, y in line.points[q]]
            middle = median(values)
            self.cache[key] = line.level[q] + middle, [v - middle for v in values]
        return self.cache[key]

    def base(self, name, view, q):
        return self.about(name, view, q)[0]

    def residuals(self, name, view, q):
        return self.about(name, view, q)[1]

    def excess(self, view, q):
        """log of what machines as they come draw more than tuned ones of their family"""
        return [h.log_w[q] - self.scale(h.family, h, view, q)
                - self.base(h.family, view, q)
                for h in self.real if h.family in self.lines and h.per_thread[q]]

    def tuned(self, name, view, q):
        """half width of the band of one more tuned server of the family"""
        found = self.residuals(name, view, q)
        squares = sum(r * r for r in found) + PRIOR_HOSTS * self.pooled[view, q] ** 2
        return Z90 * math.sqrt(squares / (len(found) + PRIOR_HOSTS) * (1 + 1 / len(found)))

    def class_members(self, name):
        """Machines of a row that has one level."""
        if name == data.ARM_SERVERS:
            return [h for h in self.servers + self.real if h.generic == name]
        if name == data.ARM_BOARDS:
            return [h for h in self.real if "boards" in h.family or "Raspberry" in h.family]
        return [h for h in self.real if h.family == name]

    def class_logs(self, name, q):
        return [h.log_w[q] for h in self.class_members(name) if h.per_thread[q]]

    def pool_classes(self, q):
        """spread within the rows that have one level"""
        rows = [self.class_logs(f.name, q) for f in data.FAMILIES + data.GENERIC if not f.pattern]
        squares = [(v - mean(row)) ** 2 for row in rows if len(row) > 1 for v in row]
        return math.sqrt(mean(squares))

    def unknown_server(self, view, q):
        values = [s.log_w[q] for s in self.servers if s.recent_server]
        base = median(values)
        half = Z95 * spread(values, base)
        more, real_half = self.factor[view, q]
        return base - half, base + more, base + more + math.hypot(half, real_half)

    def log_band(self, name, view, q):
        """(low, typical, high) of the row at its own clock and cores"""
        if name == data.SERVERS:
            return self.unknown_server(view, q)
        if name not in self.lines:
            values = self.class_logs(name, q)
            mixed = name in (data.ARM_BOARDS, data.ARM_SERVERS)
            centre, half = prediction(values, T95, Z95) if mixed else prediction(values)
            half = max(half, Z90 * self.class_spread[q] * math.sqrt(1 + 1 / len(values)))
            return centre - half, centre, centre + half
        base, half = self.base(name, view, q), self.tuned(name, view, q)
        more, real_half = self.factor[view, q]
        return (base + min(-half, more - real_half), base + more,
                base + max(half, more + real_half))

    def band(self, name, host, view, q):
        """(low, typical, high) watts per thread of a host, as nrg would say"""
        scale = self.scale(name, host, view, q) if name in self.lines else 0.0
        band = tuple(math.exp(v + scale) for v in self.log_band(name, view, q))
        if q == "full":
            return band
        return tuple(min(idle, IDLE_OF_FULL * full)
                     for idle, full in zip(band, self.band(name, host, view, "full")))


def families_of(servers):
    """{family: Line} of those that get a row"""
    members = {}
    for server in servers:
        if server.family:
            members.setdefault(server.family, []).append(server)
    return {f.name: Line(members[f.name]) for f in data.FAMILIES
            if len(members.get(f.name, ())) >= data.MIN_SERVERS}


def fit(servers, real):
    return Model(families_of(servers), servers, real)


# --- the curve between idle and full ---

def load_curves():
    """{processor: (share of the range with half of the threads busy, each on a core of its own)}"""
    shares = {}
    for path in sorted(glob.glob(data.shared("data", "cpu-load", "codecarbon_*_some_cores.csv"))):
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        watts = {int(r["cores_used"]): float(r["rapl_power"]) for r in rows}
        half = watts[max(watts) // 2]
        shares[rows[0]["cpu_name"]] = (half - watts[0]) / (max(watts.values()) - watts[0])
    return shares


def second_thread(shares):
    """What the second thread of a core adds, as a share of what the core adds to idle."""
    return round(1 - mean([*shares.values(), 0.84]), 2)  # 0.84: Threadripper 1950X
