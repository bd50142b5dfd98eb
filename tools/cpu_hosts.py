"""Machines whose power was measured, and the processor families that /proc/cpuinfo can tell apart.

Two sources. SPECpower_ssj2008 results: the CSV of published results (one row per server: wall power
at full load and at active idle, hardware threads, processor, clock), found under
$NRG_SHARED/data/specpower (default ../shared); it is not part of the project. And cpu_hosts.csv
beside this file: machines that were measured as they come. cpu_power.py learns from both.

A family is what /proc/cpuinfo can tell apart (vendor, family, model, stepping), not what is
printed on the box: a virtual machine often hides the name, never these numbers. Hence Bergamo and
Siena (9754, 8534P) are one family apart from Genoa, and EPYC 4004 is none of them.

Watts are per hardware thread with SMT as the family has it: a server of an SMT family that was
tested with SMT off counts as two threads per core. A server whose core counts contradict each
other (chips x cores per chip is not cores) is left out.
"""
import csv
import glob
import math
import os
import re

MIN_SERVERS = 4
GENERIC_SINCE = 2017
ARM_BOARDS, ARM_SERVERS = "ARM boards", "ARM servers"
NEOVERSE_N1 = "Neoverse N1 (Ampere Altra)"
CLIENTS, SERVERS = "desktops and laptops", f"servers since {GENERIC_SINCE}"


class Family:
    """name; pattern of SPEC's CPU description, None for families that SPEC does not have; CPUID matches."""

    def __init__(self, name, pattern, *cpuids):
        self.name, self.cpuids = name, cpuids
        self.pattern = re.compile(pattern) if pattern else None

    def matches(self, cpu):
        return self.pattern is not None and self.pattern.search(cpu)


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


def arm(part, last=None, implementer=0x41, where="ANYWHERE"):
    """0x41: ARM Ltd., 0x43: Cavium, 0x48: HiSilicon, 0x4e: NVIDIA, 0x61: Apple, 0xc0: Ampere."""
    return ("ARM", implementer, part, last or part, 0, 255, where, "")


def board(part):
    """The same core in a virtual machine is a server's (Cortex-A72: Graviton 1)."""
    return arm(part, where="BARE_METAL")


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
    Family(NEOVERSE_N1, r"Altra", arm(0xd0c)),
    Family("Apple M1 to M4", None, arm(0, 0xfff, 0x61)),
    Family("Cortex-A53 boards", None, board(0xd03)),
    Family("Cortex-A55 boards (RK3566, RK3588)", None, board(0xd05)),
    Family("Raspberry Pi 4, 400 (Cortex-A72)", None, board(0xd08)),
    Family("Raspberry Pi 5, 500 (Cortex-A76)", None, board(0xd0b)),
]
# Rows for processors of no family. No id leads to the last two: cpu_model.c decides between them.
GENERIC = [
    # Jetson: Nano and TX2 (A57), Xavier (Carmel), Orin (A78AE)
    Family(ARM_BOARDS, None, board(0xd07), board(0xd42), arm(0x003, 0x004, 0x4e, "BARE_METAL")),
    # Graviton 1 (A72), 3 (V1), 4 (V2); Axion, Grace (V2); Cobalt (N2); V3, N3; AmpereOne; ThunderX; Kunpeng
    Family(ARM_SERVERS, None, arm(0xd08, where="VIRTUAL"), arm(0xd40), arm(0xd4f), arm(0xd49),
           arm(0xd84), arm(0xd8e), arm(0xac3, 0xac5, 0xc0), arm(0x0a1, 0x0af, 0x43),
           arm(0xd01, 0xd02, 0x48)),
    Family(CLIENTS, None),
    Family(SERVERS, None),
]


def is_spec_family(name):
    return any(f.name == name and f.pattern for f in FAMILIES)


class Host:
    """
    One measured machine. watts_w: {"idle": W or None, "full": W or None}; family: its row, None for SPEC's of no
    family; generic: the row that a server would have if its processor were in no family.
    """

    def set_threads(self, threads):
        self.threads = threads
        self.per_thread = {q: w and w / threads for q, w in self.watts_w.items()}
        self.log_w = {q: w and math.log(w) for q, w in self.per_thread.items()}


class Server(Host):
    source = "SPEC"

    def __init__(self, row):
        cpu = row["CPU Description"].replace("®", "").rstrip(" ,")
        cpu = re.sub(r"\s+(CPU|Processor|\d+-core|\d+-Core Processor|Dell SKU.*)$", "", cpu)
        self.name = row["Hardware Vendor"] + " " + row["System"]
        self.cores = int(row["# Cores"])
        self.smt = int(row["# Threads Per Core"])
        self.watts_w = {"idle": float(row["avg. watts @ active idle"]),
                        "full": float(row["avg. watts @ 100%"])}
        self.year = int(row["Published"][-4:])
        self.clock_mhz = float(row["Processor MHz"])
        self.chip_cores = int(row["# Cores Per Chip"])
        self.consistent = int(row["Chips"]) * self.chip_cores == self.cores
        self.arm = bool(re.search(r"Altra|Grace", cpu))
        # Cortex: sixteen little boards in one box (SC2A11) say nothing of a server's processor
        self.recent_server = self.year >= GENERIC_SINCE and not self.arm and "Cortex" not in cpu
        self.generic = ARM_SERVERS if self.arm else SERVERS if self.recent_server else None
        self.family = next((f.name for f in FAMILIES if f.matches(cpu)), None)


class RealHost(Host):
    """Full load is what matrix code draws: between stress-ng and HPL where both were measured."""

    def __init__(self, row):
        loads = [float(row[k]) for k in ("stress_w", "hpl_w") if row[k]]
        self.name, self.source, self.family = row["host"], row["source"], row["row"]
        self.watts_w = {"idle": float(row["idle_w"]) if row["idle_w"] else None,
                        "full": math.exp(sum(map(math.log, loads)) / len(loads))}
        self.generic = (ARM_SERVERS if self.family in (ARM_SERVERS, NEOVERSE_N1)
                        else SERVERS if is_spec_family(self.family) else None)
        self.clock_mhz = float(row["clock_mhz"] or 0)
        self.chip_cores = int(row["cores"])
        self.set_threads(int(row["threads"]))


def usual_smt(servers):
    smt = [s.smt for s in servers]
    return max(set(smt), key=smt.count) if smt else 1


def real_hosts():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cpu_hosts.csv")
    with open(path, newline="", encoding="utf-8") as file:
        return [RealHost(row) for row in csv.DictReader(line for line in file if line[0] != "#")]


def shared(*path):
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.join(os.environ.get("NRG_SHARED", os.path.join(here, "..", "..", "shared")), *path)


def spec_servers():
    """(servers, date of the results), or (None, None) where the data is not available."""
    files = sorted(glob.glob(shared("data", "specpower", "SPECpower-*.csv")))
    if not files:
        return None, None
    with open(files[-1], newline="", encoding="utf-8") as file:
        servers = [s for s in map(Server, csv.DictReader(file)) if s.consistent]
    for family in {s.family for s in servers}:
        members = [s for s in servers if s.family == family]
        for server in members:
            smt = usual_smt(members) if family else min(server.smt, 2)
            server.set_threads(server.cores * smt)
    return servers, re.search(r"\d{4}-\d\d-\d\d", files[-1]).group(0)
