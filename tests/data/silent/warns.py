"""Warnings name the line that they are about, by a number of frames."""
import warnings

import torch
from torch import nn


class Old(nn.Module):
    def forward(self, x):
        for level in (1, 2, 3, 4):
            warnings.warn("old, level %d" % level, DeprecationWarning, stacklevel=level)
        return x


warnings.simplefilter("always")
Old()(torch.ones(1))
net = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
scheduler.step()  # before optimizer.step(): PyTorch warns
optimizer.step()
with warnings.catch_warnings():
    warnings.simplefilter("error")
    net(torch.ones(1, 2)).sum().backward()
