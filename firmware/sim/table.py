#!/usr/bin/env python3
"""The tables of docs/firmware.md: the meter beside calcVI in the simulator, in each scenario.

    sim/table.py BUILD [SECONDS]

BUILD holds the sketches and emon-sim (make all sim); each runs for SECONDS (30) of simulated time.
Everything but the sizes comes from emon-sim, which compares with a truth of its own.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

SCENARIOS = ["steady", "swing", "sixty", "drift", "step", "burst", "clean"]  # of sim/mains.c
SKETCHES = {"meter": "emon-joules.elf", "calcVI": "calcvi.elf"}


def simulate(build, sketch, scenario, seconds):
    done = subprocess.run([os.path.join(build, "emon-sim"), "--seconds", str(seconds), "--scenario", scenario,
                           os.path.join(build, sketch)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def sizes(elf):
    """(bytes of flash, bytes of static RAM) of a program."""
    done = subprocess.run(["avr-size", elf], check=True, capture_output=True, text=True)
    text, data, bss = map(int, done.stdout.splitlines()[1].split()[:3])
    return text + data, data + bss


def cost_rows(build, meter, classic):
    flash, ram = zip(*(sizes(os.path.join(build, sketch)) for sketch in SKETCHES.values()))
    busy = [f"{100 * r['busy_share']:.1f} %" for r in (meter, classic)]
    cycles = [meter["interrupt_cycles"] * 4 / 3, classic["seconds"] * 16e6 * 2 / classic["conversions"]]
    return [
        ("cycles per pair of samples (voltage, one current)", *(f"{c:.0f}" for c in cycles)),
        ("share of the processor", *busy),
        ("longest time that the main loop is blocked", *(f"{r['longest_pass_ms']:.1f} ms" for r in (meter, classic))),
        ("share of the time that a clamp is sampled", "100 %", "less than 33 %"),
        ("pairs of samples per clamp and second", f"{meter['conversions'] / meter['seconds'] / 4:.0f}",
         f"{classic['conversions'] / classic['seconds'] / 6:.0f}"),
        ("readings per second", *(f"{r['lines'] / r['seconds']:.1f}" for r in (meter, classic))),
        ("conversions lost", str(meter["lost"]), "-"),
        ("flash", *(f"{n} bytes" for n in flash)),
        ("RAM: static, and the deepest stack", *(f"{n} + {r['stack_bytes']} bytes"
                                                 for n, r in zip(ram, (meter, classic)))),
    ]


def percent(error):
    return f"{100 * error:+.2f}"


def main():
    build, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 30
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        waiting = {(scenario, name): pool.submit(simulate, build, sketch, scenario, seconds)
                   for scenario in SCENARIOS for name, sketch in SKETCHES.items()}
        results = {key: future.result() for key, future in waiting.items()}
    print("| | meter | calcVI |\n|---|---:|---:|")
    for row in cost_rows(build, results["steady", "meter"], results["steady", "calcVI"]):
        print("| " + " | ".join(row) + " |")
    print("\n| error, % | meter: energy 1 | 2 | 3 | Vrms | calcVI: energy 1 | 2 | 3 | Vrms |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for scenario in SCENARIOS:
        errors = [percent(e) for name in SKETCHES for e in
                  (*results[scenario, name]["energy_error_between_lines"], results[scenario, name]["vrms_error"])]
        print(f"| {results[scenario, 'meter']['what']} | " + " | ".join(errors) + " |")


if __name__ == "__main__":
    main()
