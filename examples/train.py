#!/usr/bin/env python3
"""Trains a small convolutional network on pictures that it makes itself. Something to measure.

    nrg run -- python3 examples/train.py                  about 10 s on two cores
    nrg run -- python3 examples/train.py --epochs 2 --samples 256

The pictures are bars: four classes (horizontal, vertical and the two diagonals) with noise, so
nothing has to be downloaded and the loss really falls. Runs with PyTorch 1.13 (Debian 12's
python3-torch) and later.
"""
import argparse
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit("train.py: PyTorch is not installed (Debian: python3-torch)")

SIDE = 24


def make_pictures(n, generator):
    """n noisy pictures of a bar, and which of the four directions it has."""
    labels = torch.randint(0, 4, (n,), generator=generator)
    shift = torch.randint(-6, 7, (n, 1, 1), generator=generator).float()
    y, x = torch.meshgrid(torch.arange(SIDE).float(), torch.arange(SIDE).float(), indexing="ij")
    y, x = y - SIDE / 2, x - SIDE / 2
    distance = torch.stack([y, x, (y - x) / 2 ** 0.5, (y + x) / 2 ** 0.5])[labels] - shift
    pictures = (distance.abs() < 1.5).float()
    pictures += 1.3 * torch.randn(pictures.shape, generator=generator)
    return pictures.unsqueeze(1), labels


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * (SIDE // 4) ** 2, 64), nn.ReLU(), nn.Linear(64, 4))


def train(model, pictures, labels, epochs, batch):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(1, epochs + 1):
        begin, total, right = time.monotonic(), 0.0, 0
        for some in torch.randperm(len(labels)).split(batch):
            optimizer.zero_grad()
            scores = model(pictures[some])
            loss = loss_of(scores, labels[some])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(some)
            right += (scores.argmax(1) == labels[some]).sum().item()
        print(f"epoch {epoch:2d}  loss {total / len(labels):.4f}  accuracy {right / len(labels):.3f}"
              f"  {time.monotonic() - begin:.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--samples", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, help="CPU threads (default: PyTorch's choice)")
    args = parser.parse_args()
    torch.manual_seed(1)
    if args.threads:
        torch.set_num_threads(args.threads)
    model = make_model()
    weights = sum(p.numel() for p in model.parameters())
    print(f"PyTorch {torch.__version__}, {weights} parameters, {args.samples} pictures", flush=True)
    pictures, labels = make_pictures(args.samples, torch.Generator().manual_seed(2))
    train(model, pictures, labels, args.epochs, args.batch)


main()
