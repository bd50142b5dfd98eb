"""Processes started anew, and a pool by fork."""
import multiprocessing

import torch
from torch import nn


def work(n):
    torch.manual_seed(n)
    torch.set_num_threads(1)
    return "%.6f" % nn.Linear(4, 1)(torch.ones(1, 4)).item()


if __name__ == "__main__":
    here = [work(n) for n in range(3)]
    for method in ("spawn", "fork"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(work, range(3)) == here)
