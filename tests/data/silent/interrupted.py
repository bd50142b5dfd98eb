"""Ctrl-C in a call, with graphs at module level; the program does not catch it."""
import os
import signal

import torch
from torch import nn


class Slow(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            x = x + 1


net = nn.Sequential(nn.Linear(2, 2), Slow())
kept = net[0](torch.ones(1, 2))
print("begins", flush=True)
net(kept)
