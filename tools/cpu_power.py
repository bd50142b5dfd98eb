#!/usr/bin/env python3
"""Print the estimate's model of a machine's power as C (src/sensors/machine/cpu_table.c), and test it.

cpu_fit.py says what the model is, cpu_hosts.py what it is learnt from. The test leaves one host out (for SPEC: all
results of that system), fits everything anew, and asks whether the host lies in its band: as nrg sees it on
bare metal, and as it would see it from a virtual machine on that host.

  cpu_power.py                  print the C table
  cpu_power.py --check FILE     fail if FILE is not that text, or if the bands hold fewer machines than they
                                promise; exit 77 (skipped) without the data
  cpu_power.py --validate       the test's result per source and family, as in docs/estimate.md
"""
import argparse
import math
import sys
from statistics import mean, median

import cpu_fit
import cpu_hosts as data
from cpu_fit import QUANTITIES, VIEWS, fit

SKIPPED = 77
BAR_PERCENT = 80
JUDGED = QUANTITIES + ("mix", "above")  # half of the time full; at full load above idle, as processes are charged


# --- the test ---

def without(model, servers, real, host):
    """The model of all hosts but this one; for a server, but all results of its system."""
    if host.source != "SPEC":
        return cpu_fit.Model(model.lines, servers, [h for h in real if h is not host])
    rest = [s for s in servers if s.name != host.name]
    lines = dict(model.lines)
    for name in {s.family for s in servers if s.name == host.name} & set(lines):
        members = [s for s in lines[name].members if s.name != host.name]
        if len(members) < data.MIN_SERVERS:
            del lines[name]
        else:
            lines[name] = cpu_fit.Line(members)
    return cpu_fit.Model(lines, rest, real)


class Outcome:
    """Whether a host that was left out lies in its band, and how far it is from the middle."""

    def __init__(self, model, name, host, view):
        self.host, self.row = host, name
        self.inside, self.error, self.bands = {}, {}, {}
        for q in QUANTITIES:
            if host.per_thread[q]:
                self.judge(q, host.per_thread[q], model.band(name, host, view, q))
        if len(self.bands) == 2:
            idle, full = (host.per_thread[q] for q in QUANTITIES)
            self.judge("mix", (idle + full) / 2, tuple(map(mean, zip(*self.bands.values()))))
            _, typical_idle, _ = self.bands["idle"]
            self.judge("above", full - idle, tuple(v - typical_idle for v in self.bands["full"]))

    def judge(self, q, truth, band):
        self.bands[q] = band
        self.inside[q] = band[0] <= truth <= band[2]
        self.error[q] = band[1] / truth - 1


def row_of(model, host, view):
    """The row that nrg would take, None when there is none or the host is not seen so."""
    if host.family in model.lines:
        return host.family
    real = host.source != "SPEC" and not data.is_spec_family(host.family)
    return host.family if real and view == "metal" else None  # no board is a virtual machine


def leave_one_out(servers, real):
    """{view: [Outcome]}, and the same of servers as if their processor were not in the table"""
    whole, models = fit(servers, real), {}
    found, unknown = ({view: [] for view in VIEWS} for _ in range(2))
    for host in servers + real:
        key = host.source, host.name
        if key not in models:
            models[key] = without(whole, servers, real, host)
        for view in VIEWS:
            name = row_of(models[key], host, view)
            if name:
                found[view].append(Outcome(models[key], name, host, view))
            if host.generic:
                unknown[view].append(Outcome(models[key], host.generic, host, view))
    return found, unknown


def percent_inside(found, q):
    values = [o.inside[q] for o in found if q in o.inside]
    return 100 * sum(values) / len(values) if values else None


def table_line(title, found):
    cells = [f"{title} | {len(found)}"]
    for q in JUDGED:
        errors = [100 * abs(o.error[q]) for o in found if q in o.error]
        cells.append(f"{median(errors):.0f} % | {percent_inside(found, q):.0f} %" if errors
                     else "- | -")
    return "| " + " | ".join(cells) + " |"


SOURCES = {
    "SPEC": "SPEC's servers", "aws": "AWS hosts", "anandtech": "servers in a review",
    "plug": "desktops at the plug", "geerling": "Ampere, desktops, laptops, Apple, boards at the wall",
}


UNKNOWN = {"servers, if their processor were not in the table": data.SERVERS,
           "ARM servers, if their core were not in the table": data.ARM_SERVERS}


def watts(value):
    return f"{value:.3g}" if value < 999 else f"{value:.0f}"


def print_view(found, unknown, view):
    print(f"\n{view}:\n\n| what | hosts | idle | in band | full | in band | half the time full | in band | "
          "above idle | in band |\n|---|---|---|---|---|---|---|---|---|---|")
    for source, title in SOURCES.items():
        members = [o for o in found if o.host.source == source]
        if members:
            print(table_line(title, members))
    print(table_line("**all**", found))
    for title, row in UNKNOWN.items():
        print(table_line(title, [o for o in unknown if o.row == row]))
    for family in data.FAMILIES + data.GENERIC:
        members = [o for o in found if o.row == family.name]
        if members:
            print(table_line(family.name, members))


def print_real(found):
    print("\n| host | idle: said | drawn | full: said | drawn |\n|---|---|---|---|---|")
    for o in found:
        if o.host.source == "SPEC":
            continue
        cells = [o.host.name]
        for q in QUANTITIES:
            if q in o.bands:
                low, middle, high = (watts(o.host.threads * v) for v in o.bands[q])
                mark = "" if o.inside[q] else " **outside**"
                cells += [f"{middle} ({low} to {high}) W", f"{watts(o.host.watts_w[q])} W{mark}"]
            else:
                cells += ["", ""]
        print("| " + " | ".join(cells) + " |")


def print_constants(model):
    for key, (a, b) in model.powers.items():
        more, half = model.factor[key]
        print(f"{key[0]} {key[1]}: clock ^ {a:.2f}, cores per chip ^ {b:.2f}; machines as they come draw "
              f"{math.exp(more):.2f} times ({math.exp(more - half):.2f} to {math.exp(more + half):.2f}) "
              f"SPEC's; spread of SPEC's own x/: {math.exp(cpu_fit.Z90 * model.pooled[key]):.2f}")


def print_without_source(servers, real, source):
    """The hardest question: all machines of one source left out together."""
    model = fit(servers, [h for h in real if h.source != source])
    for view in VIEWS:
        found = [Outcome(model, h.family, h, view) for h in real if h.source == source]
        print(table_line(f"{SOURCES[source]}, learnt without any of them ({view})", found))


def validate(servers, real):
    print_constants(fit(servers, real))
    curves = cpu_fit.load_curves()
    print(f"second thread of a core: {cpu_fit.second_thread(curves):.2f}", curves)
    found, unknown = leave_one_out(servers, real)
    for view in VIEWS:
        print_view(found[view], unknown[view], view)
        print_real(found[view])
    print()
    for source in ("aws", "anandtech"):
        print_without_source(servers, real, source)


def below_bar(servers, real):
    """What holds fewer machines than the band promises: '' or a sentence."""
    outcomes, unknown = leave_one_out(servers, real)
    for view in VIEWS:
        found = outcomes[view]
        groups = {title: [o for o in unknown[view] if o.row == row] for title, row in UNKNOWN.items()}
        groups["all machines"] = found
        for source, title in SOURCES.items():
            groups[title] = [o for o in found if o.host.source == source]
        for title, members in groups.items():
            for q in JUDGED:
                inside = percent_inside(members, q)
                if inside is not None and inside < BAR_PERCENT:
                    return f"{view}, {title}: {inside:.0f} % at {q} load in the band"
    return ""


# --- the table ---

def c_row(model, family):
    line = model.lines.get(family.name)
    if line:
        members, year = line.members, max(s.year for s in line.members)
        real = sum(h.family == family.name for h in model.real)
        head = (f'"{family.name}", {len(members)}, {real}, {data.usual_smt(members)}, '
                f"{line.clock:.0f}, {line.cores:.0f}")
    elif family.name == data.SERVERS:
        head = f'"{family.name}", {sum(s.recent_server for s in model.servers)}, 0, 2, 0, 0'
    else:
        members = model.class_members(family.name)
        servers = sum(h.source == "SPEC" for h in members)
        head = f'"{family.name}", {servers}, {len(members) - servers}, 1, 0, 0'
    bands = ", ".join("{{" + "}, {".join(
        ", ".join(f"{math.exp(v):.3f}" for v in model.log_band(family.name, view, q))
        for q in QUANTITIES) + "}}" for view in VIEWS)
    return f"    {{{head}, {{{bands}}}}},"


def c_table(servers, real, date):
    model = fit(servers, real)
    rows = [f for f in data.FAMILIES if f.name in model.lines or not f.pattern] + data.GENERIC
    lines = [
        "/*",
        " * Generated by tools/cpu_power.py: do not edit. Learnt from",
        f" * {len(servers)} SPECpower_ssj2008 results as of {date} and {len(real)} machines as they come.",
        " * What the columns mean is in cpu_table.h; how well it predicts a machine that it has",
        " * not seen is in docs/estimate.md.",
        " */",
        "/* clang-format off */",
        '#include "sensors/machine/cpu_table.h"',
        "",
        "const struct nrg_cpu_family nrg_cpu_families[] = {",
        "    /* name, SPEC's servers, other machines, threads per core, MHz, cores per chip, "
        "{bare metal {idle W/thread: low, typical, high}, {full}}, {virtual machine} */",
    ]
    lines += [c_row(model, family) for family in rows]
    lines += ["};", "", f"const size_t nrg_cpu_n_families = {len(rows)};", "",
              "const struct nrg_cpu_id nrg_cpu_ids[] = {",
              "    /* vendor, family, models, steppings, where, unless the name has, row above */"]
    ids = [(cpuid, number) for number, family in enumerate(rows) for cpuid in family.cpuids]
    for (vendor, family, first, last, low, high, where, unless), number in ids:
        lines.append(f'    {{"{vendor}", {family}, {first}, {last}, {low}, {high}, '
                     f'NRG_CPU_{where}, "{unless}", {number}}},')
    lines += ["};", "", f"const size_t nrg_cpu_n_ids = {len(ids)};", "",
              "const struct nrg_cpu_powers nrg_cpu_powers[NRG_CPU_VIEWS] = {",
              "    /* idle: clock, cores per chip; full: same */"]
    for view in VIEWS:
        (a, b), (c, d) = (model.powers[view, q] for q in QUANTITIES)
        lines.append(f"    {{{{{a:.3f}, {b:.3f}}}, {{{c:.3f}, {d:.3f}}}}},")
    lines += ["};", "", f"const double nrg_cpu_second_thread = {cpu_fit.second_thread(cpu_fit.load_curves()):.2f};"]
    return "\n".join(lines) + "\n"


def check(servers, real, date, path):
    with open(path, encoding="utf-8") as file:
        if file.read() != c_table(servers, real, date):
            print(f"{path} is not what tools/cpu_power.py prints: regenerate it", file=sys.stderr)
            return 1
    problem = below_bar(servers, real)
    if problem:
        print(f"below {BAR_PERCENT} %: {problem}", file=sys.stderr)
    return 1 if problem else 0


def main():
    parser = argparse.ArgumentParser(description="the estimate's model of a machine's power")
    parser.add_argument("--check", metavar="FILE", help="fail if FILE is not the generated text")
    parser.add_argument("--validate", action="store_true", help="leave-one-host-out test")
    args = parser.parse_args()
    servers, date = data.spec_servers()
    if servers is None:
        print("no SPECpower-*.csv under $NRG_SHARED/data/specpower: skipped", file=sys.stderr)
        return SKIPPED
    real = data.real_hosts()
    if args.validate:
        validate(servers, real)
        return 0
    if args.check:
        return check(servers, real, date, args.check)
    sys.stdout.write(c_table(servers, real, date))
    return 0


if __name__ == "__main__":
    sys.exit(main())
