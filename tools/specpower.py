#!/usr/bin/env python3
"""Make src/sensors/cpu_table.c from SPECpower_ssj2008 results, and check how good the table is.

Input: the CSV of published results (one row per server: wall power at full load and at active
idle, hardware threads, processor), found under $NRG_SHARED/data/specpower (default ../shared);
it is not part of the project. Output: one row per processor family with the median and the band
of idle and full watts per hardware thread.

A family is what /proc/cpuinfo can tell apart (vendor, family, model, stepping), not what is
printed on the box: a virtual machine often hides the name, never these numbers. Hence Bergamo and
Siena (9754, 8534P) are one family apart from Genoa, and EPYC 4004 is none of them.

Watts are per hardware thread with SMT as the family has it: a server of an SMT family that was
tested with SMT off counts as two threads per core. A server whose core counts contradict each
other (chips x cores per chip is not cores) is left out.

The band is the 10th to 90th percentile; with fewer than ten servers the lowest to the highest.
A family with fewer than four servers gets no row.

  specpower.py                  print the C table
  specpower.py --check FILE     fail if FILE is not that text; exit 77 (skipped) without the data
  specpower.py --validate       leave one server out: error and band coverage per family
"""
import argparse
import csv
import glob
import os
import re
import sys

MIN_SERVERS = 4
FEW_SERVERS = 10
GENERIC_SINCE = 2017
SKIPPED = 77


class Family:
    """name; pattern of the CPU description; CPUID matches."""

    def __init__(self, name, pattern, *cpuids):
        self.name, self.pattern, self.cpuids = name, re.compile(pattern), cpuids


def amd(family, first, last, unless="Ryzen", where="ANYWHERE"):
    return ("AuthenticAMD", family, first, last, 0, 255, where, unless)


def intel(model, low=0, high=255, unless="", where="ANYWHERE"):
    return ("GenuineIntel", 6, model, model, low, high, where, unless)


def hedt(model, low=0, high=255):
    """Server silicon that was also sold as a desktop Core i7/i9, which is not run like a server."""
    return intel(model, low, high, unless="Core(TM)")


def client(model):
    """A small chip on bare metal; in a virtual machine the number is a QEMU model's."""
    return intel(model, where="BARE_METAL")


def qemu(model):
    """QEMU's named models carry a client's number, whatever server they run on."""
    return intel(model, where="VIRTUAL")


def arm(part):
    return ("ARM", 0x41, part, part, 0, 255, "ANYWHERE", "")  # implementer 0x41: ARM Ltd.


# In order: the first pattern that matches the description decides.
FAMILIES = [
    Family("EPYC Naples (7001)", r"EPYC 7\d\d1", amd(23, 0x00, 0x07)),
    Family("EPYC Rome (7002)", r"EPYC 7[\dFH]\d2", amd(23, 0x30, 0x3f)),
    Family("EPYC Milan (7003)", r"EPYC 7[\dF]\d3", amd(25, 0x00, 0x0f)),
    Family("EPYC Genoa (9004)", r"EPYC 9[0-6]\d4", amd(25, 0x10, 0x1f)),
    Family("EPYC Bergamo, Siena (97x4, 8004)", r"EPYC (97|8\d)\d4", amd(25, 0xa0, 0xaf)),
    Family("EPYC Turin Dense (98x5, 9965)", r"EPYC 9(645|745|8\d5|965)", amd(26, 0x10, 0x1f)),
    Family("EPYC Turin (9005)", r"EPYC 9\d\d5", amd(26, 0x00, 0x0f)),
    Family("EPYC 4004/4005, Ryzen 7000/9000", r"EPYC 4\d\d[45]", amd(25, 0x60, 0x6f, ""),
           amd(26, 0x40, 0x4f, "")),
    Family("Opteron 6200/6300/4300", r"Opteron (62|63|43)\d\d", amd(21, 0x00, 0x0f)),
    Family("Opteron K10 (2300-6100)", r"Opteron(\(r\) Processor)? (23|24|41|61|83|84)\d\d",
           amd(16, 0x00, 0x0a)),
    Family("Xeon 6 P-core (Granite Rapids)", r"Xeon(\(R\))? 6[579]\d\dP", intel(173), intel(174)),
    Family("Xeon 6 E-core (Sierra Forest)", r"6[79]\d\dE", intel(175)),
    Family("Xeon E-2400, 6300 (Raptor Lake)", r"E-24\d\d|Xeon 63\d\dP", hedt(183)),
    Family("Xeon E-2300, Core 11 (Rocket Lake)", r"E-23\d\dG", intel(167)),
    Family("Xeon E3 v6, E-2100, Core 7-9 (Coffee Lake)", r"E-2[12]\d\dG|E3-\d+L? ?[vV]6",
           intel(158)),
    Family("Xeon E3 v5, Core 6 (Skylake)", r"E3-\d+L? ?[vV]5", client(94)),
    Family("Xeon E3 v3, Core 4 (Haswell)", r"E3-\d+L? ?[vV]3|Core i5-4\d\d\d", client(60)),
    Family("Xeon E3 v2, Core 3 (Ivy Bridge)", r"E3-\d+L? ?[vV]2", client(58)),
    Family("Xeon E3, Core 2 (Sandy Bridge)", r"E3-\d+L?$", client(42)),
    Family("Core Ultra 200H (Arrow Lake-H)", r"Core Ultra \d 2\d\dH", intel(197)),
    Family("Xeon D-2700 (Ice Lake-D)", r"D-? ?27\d\d", intel(108)),
    Family("Xeon Emerald Rapids", r"(Xeon(\(R\))?|Platinum|Gold|Silver) [4568]5\d\d", intel(207)),
    Family("Xeon Sapphire Rapids", r"(Xeon(\(R\))?|Platinum|Gold|Silver) [4568]4\d\d", intel(143)),
    Family("Xeon Cooper Lake", r"(Platinum|Gold) [568]3\d\dHL?$", intel(85, 10, 11)),
    Family("Xeon Ice Lake-SP", r"(Platinum|Gold|Silver) [4568]3\d\d", intel(106), qemu(134)),
    Family("Xeon Cascade Lake", r"(Platinum|Gold|Silver) [4568]2\d\d", hedt(85, 5, 9)),
    Family("Xeon Skylake-SP", r"(Platinum|Gold|Silver) [4568]1\d\d", hedt(85, 0, 4), qemu(94)),
    Family("Xeon E5 v4 (Broadwell-EP)", r"E5-\d+L? ?[vV]4", hedt(79), intel(86), qemu(61)),
    Family("Xeon E5 v3 (Haswell-EP)", r"E5-\d+L? ?[vV]3", hedt(63), qemu(60)),
    Family("Xeon E5 v2 (Ivy Bridge-EP)", r"E5-\d+L? ?[vV]2", hedt(62), qemu(58)),
    Family("Xeon E5 (Sandy Bridge-EP)", r"E5-\d+L?$", hedt(45), qemu(42)),
    Family("Xeon 5600 (Westmere-EP)", r"[XLE]?56[0-9]\d$", hedt(44)),
    Family("Xeon 7500, E7 (Nehalem-EX, Westmere-EX)", r"X75\d\d|E7-[48]8\d\d", intel(46),
           intel(47)),
    Family("Xeon 5500 (Nehalem-EP)", r"[XLE]55\d\d", hedt(26)),
    Family("Xeon 3400 (Lynnfield)", r"X34\d\d", intel(30)),
    Family("Xeon 5400, 3300 (Harpertown, Yorkfield)", r"[XLE](33|54|52|31)\d\d", hedt(23)),
    Family("Neoverse N1 (Ampere Altra)", r"Altra", arm(0xd0c)),
]
ARM_PATTERN = re.compile(r"Altra|Grace|Cortex")


class Server:
    def __init__(self, row):
        cpu = row["CPU Description"].replace("®", "").rstrip(" ,")
        self.cpu = re.sub(r"\s+(CPU|Processor|\d+-core|\d+-Core Processor|Dell SKU.*)$", "", cpu)
        self.system = row["Hardware Vendor"] + " " + row["System"]
        self.cores = int(row["# Cores"])
        self.smt = int(row["# Threads Per Core"])
        self.full_w = float(row["avg. watts @ 100%"])
        self.idle_w = float(row["avg. watts @ active idle"])
        self.year = int(row["Published"][-4:])
        self.consistent = int(row["Chips"]) * int(row["# Cores Per Chip"]) == self.cores
        self.arm = bool(ARM_PATTERN.search(self.cpu))
        self.family = next((f for f in FAMILIES if f.pattern.search(self.cpu)), None)

    def set_threads(self, smt):
        threads = self.cores * smt
        self.full, self.idle = self.full_w / threads, self.idle_w / threads
        self.mix = (self.full + self.idle) / 2


def usual_smt(servers):
    smt = [s.smt for s in servers]
    return max(set(smt), key=smt.count)


def quantile(values, q):
    """Linear interpolation between order statistics."""
    values = sorted(values)
    at = q * (len(values) - 1)
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (at - below)


def band(values):
    """(low, median, high)"""
    low, high = (0.1, 0.9) if len(values) >= FEW_SERVERS else (0.0, 1.0)
    return tuple(quantile(values, q) for q in (low, 0.5, high))


def load():
    """(servers, date of the results), or (None, None) where the data is not at hand."""
    here = os.path.dirname(os.path.abspath(__file__))
    shared = os.environ.get("NRG_SHARED", os.path.join(here, "..", "..", "shared"))
    files = sorted(glob.glob(os.path.join(shared, "data", "specpower", "SPECpower-*.csv")))
    if not files:
        return None, None
    with open(files[-1], newline="", encoding="utf-8") as file:
        servers = [s for s in map(Server, csv.DictReader(file)) if s.consistent]
    for family in FAMILIES + [None]:
        members = [s for s in servers if s.family is family]
        for server in members:
            server.set_threads(usual_smt(members) if family else min(server.smt, 2))
    return servers, re.search(r"\d{4}-\d\d-\d\d", files[-1]).group(0)


def table_rows(servers):
    """[(name, cpuids, servers)] of all rows of the table; the two generic ones last."""
    rows = [(f.name, f.cpuids, [s for s in servers if s.family is f]) for f in FAMILIES]
    rows = [row for row in rows if len(row[2]) >= MIN_SERVERS]
    rows.append(("ARM servers", (), [s for s in servers if s.arm]))
    rows.append((f"servers since {GENERIC_SINCE}", (),
                 [s for s in servers if s.year >= GENERIC_SINCE and not s.arm]))
    return rows


def c_table(servers, date):
    rows = table_rows(servers)
    lines = [
        "/*",
        " * Generated by tools/specpower.py from SPECpower_ssj2008 results: do not edit.",
        f" * {len(servers)} servers as of {date}. What the columns mean is in cpu_table.h; how well the",
        " * table predicts a server it has not seen is in docs/estimate.md.",
        " */",
        "/* clang-format off */",
        '#include "sensors/machine/cpu_table.h"',
        "",
        "const struct nrg_cpu_family nrg_cpu_families[] = {",
        "    /* name, servers, newest, threads per core, idle W/thread: low, median, high, full: same */",
    ]
    for name, _, members in rows:
        idle, full = band([s.idle for s in members]), band([s.full for s in members])
        numbers = ", ".join(f"{x:.3f}" for x in idle + full)
        lines.append(f'    {{"{name}", {len(members)}, {max(s.year for s in members)}, '
                     f"{usual_smt(members)}, {numbers}}},")
    lines += ["};", "", f"const size_t nrg_cpu_n_families = {len(rows)};", "",
              "const struct nrg_cpu_id nrg_cpu_ids[] = {",
              "    /* vendor, family, models, steppings, where, unless the name has, row above */"]
    count = 0
    for number, (_, cpuids, _) in enumerate(rows):
        for vendor, family, first, last, low, high, where, unless in cpuids:
            count += 1
            lines.append(f'    {{"{vendor}", {family}, {first}, {last}, {low}, {high}, '
                         f'NRG_CPU_{where}, "{unless}", {number}}},')
    lines += ["};", "", f"const size_t nrg_cpu_n_ids = {count};"]
    return "\n".join(lines) + "\n"


def errors(members, target, others):
    """Per member: |error| in percent and whether the truth lies in the band of the others."""
    result = []
    for server in members:
        low, median, high = band([getattr(s, target) for s in others(server)])
        truth = getattr(server, target)
        result.append((100 * abs(median - truth) / truth, low <= truth <= high))
    return result


def print_errors(name, members, others, columns):
    cells = [f"{name} | {len(members)}"]
    for target in ("idle", "full", "mix"):
        found = errors(members, target, others)
        columns[target] += found
        cells.append(summary(found))
    print("| " + " | ".join(cells) + " |")


def summary(found):
    inside = 100 * sum(ok for _, ok in found) / len(found)
    return f"{quantile([e for e, _ in found], 0.5):.0f} % | {inside:.0f} %"


def print_overall(name, columns):
    cells = [summary(columns[target]) for target in ("idle", "full", "mix")]
    print(f"| {name} | {len(columns['full'])} | " + " | ".join(cells) + " |")


def without(members, server):
    return [s for s in members if s is not server]


def without_system(members, server):
    return [s for s in members if s.system != server.system]


def validate(servers):
    """Median absolute error and band coverage, as the table of docs/estimate.md."""
    rows = table_rows(servers)
    known = {id(s) for _, _, members in rows[:-2] for s in members}
    columns, strict, recent = ({t: [] for t in ("idle", "full", "mix")} for _ in range(3))
    print("| family | servers | idle | in band | full | in band | half the time full | in band |")
    print("|---|---|---|---|---|---|---|---|")
    for name, _, members in rows[:-2]:
        print_errors(name, members, lambda s, m=members: without(m, s), columns)
        for target in strict:
            fit = [s for s in members if len(without_system(members, s)) >= MIN_SERVERS]
            found = errors(fit, target, lambda s, m=members: without_system(m, s))
            strict[target] += found
            recent[target] += [e for s, e in zip(fit, found) if s.year >= GENERIC_SINCE]
    print_overall("**all families**", columns)
    print_overall("the same, all results of the same system left out", strict)
    print_overall(f"of these, published since {GENERIC_SINCE}", recent)
    for name, _, members in rows[-2:]:
        print_errors(f"not in the table: {name}", members, lambda s, m=members: without(m, s),
                     columns)
    old = len(servers) - len(known)
    print(f"\n{old} of {len(servers)} servers are in no family.", file=sys.stderr)


def check(text, path):
    with open(path, encoding="utf-8") as file:
        if file.read() == text:
            return 0
    print(f"{path} is not what tools/specpower.py prints: regenerate it", file=sys.stderr)
    return 1


def main():
    parser = argparse.ArgumentParser(description="CPU power table from SPECpower results")
    parser.add_argument("--check", metavar="FILE", help="fail if FILE is not the generated text")
    parser.add_argument("--validate", action="store_true", help="leave-one-server-out errors")
    args = parser.parse_args()
    servers, date = load()
    if servers is None:
        print("no SPECpower-*.csv under $NRG_SHARED/data/specpower: skipped", file=sys.stderr)
        return SKIPPED
    if args.validate:
        validate(servers)
        return 0
    if args.check:
        return check(c_table(servers, date), args.check)
    sys.stdout.write(c_table(servers, date))
    return 0


if __name__ == "__main__":
    sys.exit(main())
