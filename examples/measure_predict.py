#!/usr/bin/env python3
"""Joules before running, end to end: measures five small models, trains, predicts a sixth, and compares.

    PYTHONPATH=build/python python3 examples/measure_predict.py [FOLDER]

Every distinct module and operator is measured alone (nrg.torch.measure), and so are ten small random
compositions of each model's kinds of modules: held out in turn, they tell how wide the intervals must be.
On a machine without a power sensor the source is nrg's estimate from CPU utilisation, and everything says so.
Six to eight minutes. An interrupted run goes on where it stopped when it is given the same FOLDER.
"""
import json
import os
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

import nrg.torch

NRG = os.environ.get("NRG_BIN", "nrg")


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        return self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self, width=64, layers=2):
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(layers)])
        self.head = nn.Linear(width, 8)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class Tagger(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(500, width), nn.LSTM(width, width, batch_first=True), nn.Linear(width, 16)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm, self.across = nn.LayerNorm(width), nn.Linear(tokens, tokens)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.across(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.down(F.gelu(self.up(x)))


class Mixer(nn.Module):
    def __init__(self, tokens=32, width=96):
        super().__init__()
        self.blocks = nn.Sequential(MixerBlock(tokens, width), MixerBlock(tokens, width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(self.blocks(x))


class Patches(nn.Module):
    """The sixth: a small vision transformer, of parts that the others have in other sizes."""

    def __init__(self, width=80, layers=2):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def mlp():
    return nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 32, 2, 2), nn.Flatten(), nn.Linear(512, 10))


def models():
    tokens = torch.randint(0, 500, (4, 32))
    yield "mlp", mlp(), torch.randn(32, 128)
    yield "cnn", cnn(), torch.randn(2, 3, 32, 32)
    yield "tagger", Tagger(), tokens
    yield "encoder", Encoder(), tokens
    yield "mixer", Mixer(), torch.randn(4, 32, 96)


def run(*command):
    return subprocess.run([NRG, *command], check=True, stdout=subprocess.PIPE).stdout.decode()


def measure(folder, name, model, given, compositions=0):
    with torch.no_grad():
        return nrg.torch.measure(model.eval(), (given,), level="op", out=os.path.join(folder, name), name=name,
                                 round_s=0.15, limit_s=1.0, idle_s=0.5, compositions=compositions, compositions_s=60)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="nrg-measure-")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    profile, graph, table = (os.path.join(folder, n) for n in ("device.json", "patches.ts", "patches.json"))
    known = [measure(folder, *given, compositions=10).folder for given in models()]
    run("train", *known, "-o", profile)

    sixth, images = Patches(), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        nrg.torch.trace(sixth.eval(), images).save(graph)
    prediction = json.loads(run("predict", graph, "--profile", profile, "--json"))  # before it has run

    measured = measure(folder, "patches", sixth, images)
    run("dataset", measured.folder, "-o", table)
    with open(table, encoding="utf-8") as lines:
        rows = [r for r in json.load(lines)["rows"] if r["level"] != "operator"]
    predicted = {n["name"]: n for n in prediction["nodes"]}
    print("source: %s, %s; mJ above idle per call" % (rows[0]["device"], rows[0]["provenance"]))
    print("%-22s %-12s %9s  %-19s %9s %7s" % ("module", "class", "predicted", "95 % interval", "measured", "error"))
    for row in reversed(rows):
        p = predicted[row.get("node", "")]
        low, high = p["low_j"] * 1e3, p["high_j"] * 1e3
        print("%-22s %-12s %9.3f  %8.3f … %-8.3f %9.3f %+6.0f%%%s"
              % (row.get("node") or "(the model)", row["kind"], p["energy_j"] * 1e3, low, high, row["energy_j"] * 1e3,
                 (p["energy_j"] / row["energy_j"] - 1) * 100, "" if low <= row["energy_j"] * 1e3 <= high else "  outside"))
    print("recordings, profile and graph are in " + folder)


if __name__ == "__main__":
    main()
