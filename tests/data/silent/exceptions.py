"""Tracebacks from everywhere: modules, backward passes, data sets, optimizers; the last one ends it."""
import traceback

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Bad(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x[:, :3])


class Breaks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient today")


class Missing(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        raise KeyError("picture %d" % i)


class Stubborn(torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("will not step")


def shown(function):
    try:
        function()
    except Exception:
        traceback.print_exc()


net = nn.Sequential(nn.Linear(4, 4), Bad())
shown(lambda: net(torch.ones(2, 4)))
shown(lambda: net())
shown(lambda: Breaks.apply(net[0](torch.ones(2, 4))).sum().backward())
shown(lambda: list(DataLoader(Missing())))
shown(lambda: Stubborn(net.parameters(), 0.1).step())
shown(lambda: torch.optim.SGD([], 0.1))
net(torch.ones(2, 4))
