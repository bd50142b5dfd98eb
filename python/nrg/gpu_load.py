"""A load of known times for `nrg calibrate --gpu`: matrix products on a GPU, then sleep, in irregular turns.

    python3 -m nrg.gpu_load [--seconds 60] [--seed 1] [--device cuda:0]

Spans called `on` and `off` say what was when. Needs PyTorch with CUDA. No GPU has run it yet.
"""
import argparse
import random
import time

import nrg

SHORTEST_S, LONGEST_S = 0.004, 0.3
CHUNK_S = 0.001


def torch_products(device):
    """A function that keeps the GPU busy for about a ms and returns when it is done."""
    try:
        import torch
    except ImportError:
        raise SystemExit("nrg.gpu_load: needs PyTorch; nrg calibrate --gpu -- COMMAND takes another load")
    if not torch.cuda.is_available():
        raise SystemExit("nrg.gpu_load: PyTorch finds no CUDA device")
    a = torch.randn(2048, 2048, device=device, dtype=torch.float16)

    def products(n):
        for _ in range(n):
            torch.matmul(a, a)
        torch.cuda.synchronize(device)

    products(10)
    begin = time.perf_counter()
    products(100)
    n = max(1, round(CHUNK_S / ((time.perf_counter() - begin) / 100)))
    return lambda: products(n)


def durations(seconds, seed):
    """Pairs of (on, off), log-uniform: short ones show the window's edges, long ones its level."""
    chance, left = random.Random(seed), seconds
    while left > 0:
        pair = [SHORTEST_S * (LONGEST_S / SHORTEST_S) ** chance.random() for _ in range(2)]
        left -= sum(pair)
        yield pair


def run(work, seconds, seed, sleep=time.sleep, now=time.perf_counter):
    for on_s, off_s in durations(seconds, seed):
        with nrg.span("on"):
            end = now() + on_s
            while now() < end:
                work()
        with nrg.span("off"):
            sleep(off_s)


def main():
    parser = argparse.ArgumentParser(prog="python3 -m nrg.gpu_load", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda:0")
    given = parser.parse_args()
    run(torch_products(given.device), given.seconds, given.seed)


if __name__ == "__main__":
    main()
