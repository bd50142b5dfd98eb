#!/usr/bin/env python3
"""Runs one fuzz target from its corpus: run.py PROGRAM CORPUS. One TAP line.

As a test it repeats the same inputs every time, so that a change is judged by what it changes: STEADY_RUNS of them, or
as many as two seconds allow. With NRG_FUZZ_S it seeks new ones for that many seconds. An input that fails is kept
beside the program, as NAME-crash-… and the like.
"""
import os
import re
import subprocess
import sys
import tempfile

STEADY_RUNS = 20000

program, corpus = sys.argv[1:]
seconds = int(os.environ.get("NRG_FUZZ_S") or 0)
limits = [f"-max_total_time={seconds}"] if seconds else ["-seed=1", f"-runs={STEADY_RUNS}", "-max_total_time=2"]
with tempfile.TemporaryDirectory() as found:
    done = subprocess.run([program, *limits, "-timeout=10", "-rss_limit_mb=2048",
                           f"-artifact_prefix={program}-", found] + ([corpus] if os.path.isdir(corpus) else []),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
output = done.stdout.decode("utf-8", "replace")
runs = re.search(r"Done (\d+) runs", output)
good = done.returncode == 0 and runs
if not good:
    print("".join(f"# {line}\n" for line in output.splitlines()), end="")
print(f"{'ok' if good else 'not ok'} 1 - {runs[1] if runs else 'no'} runs\n1..1")
sys.exit(0 if good else 1)
