"""Training loops of many kinds, under `nrg run --torch` (tests/support/loop_counts.py).

    python tests/data/loops OUT.json [NAME...]

Each returns what is true of it, as its own code says: samples for training and of evaluations, steps, epochs, evaluations. Imports are
made once; each loop runs in a fork, where PyTorch has not been used. OUT.json has {name: {"pids": [...], "truth": {...}}}.
"""
import json
import os
import shutil
import sys
import tempfile

import torch

import batches  # noqa: F401
import frameworks  # noqa: F401
import plain  # noqa: F401
import steps  # noqa: F401
from common import LOOPS, fork


def run(name, folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    true = LOOPS[name]()
    with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
        json.dump(true, out)


def main(out, *names):
    folder, found = tempfile.mkdtemp(), {}
    for name in names or LOOPS:
        pid = fork(lambda name=name: run(name, folder))
        if os.waitpid(pid, 0)[1]:
            found[name] = {"failed": True}
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as text:
            true = json.load(text)
        found[name] = {"pids": true.pop("pids", []) + [pid], "truth": true}
    shutil.rmtree(folder)
    with open(out, "w", encoding="utf-8") as text:
        json.dump(found, text)


main(*sys.argv[1:])
