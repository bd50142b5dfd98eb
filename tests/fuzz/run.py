#!/usr/bin/env python3
"""Runs one fuzz target from its corpus: run.py PROGRAM CORPUS. One TAP line.

As a test it repeats the same inputs every time, so that a change is judged by what it changes: STEADY_RUNS of them, or
as many as a second allows. With NRG_FUZZ_S it seeks new ones for that many seconds, begins where the last such run
ended (PROGRAM-corpus, minimised at the end), and adds a line to fuzz-figures.txt beside the program: seconds, runs,
edges of the code that were reached, features, and inputs that are kept. An input that fails is kept beside the program,
as NAME-crash-… and the like. What is worth committing of PROGRAM-corpus goes into CORPUS: small, and few.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

STEADY_RUNS = 20000

program, corpus = sys.argv[1:]
seconds = int(os.environ.get("NRG_FUZZ_S") or 0)
given = [corpus] if os.path.isdir(corpus) else []
options = ["-timeout=10", "-rss_limit_mb=2048", f"-artifact_prefix={program}-"]
if os.path.basename(program).startswith("fuzz_cmd_"):
    options += ["-close_fd_mask=3", "-max_len=65536", "-timeout=60"]  # commands print, and take longer


def fuzz(*arguments, halt=True):
    # Without halt_on_error what UBSan finds is a line, which -close_fd_mask hides.
    env = dict(os.environ, UBSAN_OPTIONS=f"halt_on_error={int(halt)}:print_stacktrace=1")
    return subprocess.run([program, *options, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=env)


def note_figures(output):
    """What the run reached, for docs/security.md."""
    reached = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", output)
    runs = re.search(r"Done (\d+) runs", output)
    if reached and runs:
        with open(os.path.join(os.path.dirname(program), "fuzz-figures.txt"), "a", encoding="utf-8") as figures:
            figures.write(f"{os.path.basename(program)[5:]:24} {seconds:6} s {runs[1]:>10} runs {reached[-1][0]:>7} edges"
                          f" {reached[-1][1]:>7} features {reached[-1][2]:>6} inputs\n")


def seek(kept):
    """Fuzzes for a while with the inputs of earlier runs, and keeps the fewest that reach as much."""
    os.makedirs(kept, exist_ok=True)
    done = fuzz(f"-max_total_time={seconds}", kept, *given)
    note_figures(done.stdout.decode("utf-8", "replace"))
    with tempfile.TemporaryDirectory(dir=os.path.dirname(kept)) as fewest:
        if done.returncode == 0 and fuzz("-merge=1", fewest, *given, kept).returncode == 0:
            shutil.rmtree(kept)
            shutil.copytree(fewest, kept)
    return done


def repeat():
    """The inputs that are kept; then others made of them. How many of these a second allows is the machine's, so that
    what UBSan finds there, of which most is a pointer of nothing with 0 added, is left to long runs."""
    kept = [os.path.join(folder, name) for folder in given for name in sorted(os.listdir(folder))]
    done = fuzz(*kept) if kept else None
    if done and done.returncode:
        return done
    with tempfile.TemporaryDirectory() as found:
        return fuzz("-seed=1", f"-runs={STEADY_RUNS}", "-max_total_time=1", found, *given, halt=False)


done = seek(program + "-corpus") if seconds else repeat()
output = done.stdout.decode("utf-8", "replace")
runs = re.search(r"Done (\d+) runs", output)
good = done.returncode == 0 and runs
if not good:
    print("".join(f"# {line}\n" for line in output.splitlines()), end="")
print(f"{'ok' if good else 'not ok'} 1 - {runs[1] if runs else 'no'} runs\n1..1")
sys.exit(0 if good else 1)
