"""What `nrg run --torch` records of training loops, against what is true of them (tests/data/loops).

A count belongs to the span that is innermost when it is made: samples for training must stand in a step, those of evaluations
in one. Only the recording is looked at, not the report.
"""
import collections
import json
import os
import subprocess

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "loops")
LIMIT_S = 500  # ends a hang; never a measure of speed
PLACES = {"step": "training", "evaluation": "evaluation", None: "other"}


def _lines(dump, *arguments):
    done = subprocess.run([dump, *arguments], stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _counted(pids, counts, spans):
    """Samples by the innermost span, steps, epochs and evaluations of some processes."""
    found = collections.Counter()
    for line in counts:
        if line["pid"] in pids and line["kind"] == "counter" and line["name"] == "samples":
            innermost = line["open"][-1] if line["open"] else None
            found[PLACES.get(innermost, "in " + str(innermost))] += line["amount"]
    mine = [span for span in spans if span["pid"] in pids]
    epochs = [span for span in mine if span["kind"] == "epoch"]
    for span in mine:
        if (span["kind"], span["name"]) in (("step", "step"), ("epoch", "epoch"), ("phase", "evaluation")):
            found[span["name"] + "s"] += 1
        if span["kind"] == "step":
            found["inside"] += any(e["pid"] == span["pid"] and e["begin_ns"] <= span["begin_ns"] and span["end_ns"] <= e["end_ns"] for e in epochs)
    return {key: n for key, n in found.items() if n}


def check(test, build, python, folder, at_least):
    """Runs all loops that this PyTorch can; fails where counted is not true."""
    out, answers = os.path.join(folder, "loops.nrg"), os.path.join(folder, "loops.json")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NRG_", "PYTHON"))}
    env.update(PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", NRG_DEBUG="1", TMPDIR=folder, CUDA_VISIBLE_DEVICES="")
    done = subprocess.run([os.path.join(build, "nrg"), "run", "--quiet", "--torch", "--force", "-o", out, "--", python, PROGRAMS, answers],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=folder, env=env, timeout=LIMIT_S)
    test.assertEqual(done.returncode, 0, done.stderr[-3000:])
    test.assertNotIn("nrg: ", done.stderr)
    with open(answers, encoding="utf-8") as text:
        loops = json.load(text)
    test.assertGreaterEqual(len(loops), at_least)
    dump = os.path.join(build, "tests", "spans-dump")
    counts, spans = _lines(dump, "--counts", out), _lines(dump, out)
    for name, loop in loops.items():
        with test.subTest(loop=name):
            test.assertNotIn("failed", loop, done.stderr[-3000:])
            true = {key: n for key, n in loop["truth"].items() if n}
            test.assertEqual(_counted(loop["pids"], counts, spans), true)
