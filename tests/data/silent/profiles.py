"""PyTorch's own profiler, and Python's."""
import os
import sys

os.environ["KINETO_LOG_LEVEL"] = "99"  # else it prints the time

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
with torch.autograd.profiler.profile() as seen:
    net(torch.ones(2, 4)).sum().backward()
for event in seen.function_events:
    print(event.name)
frames = set()
sys.setprofile(lambda frame, event, argument: frames.add((frame.f_code.co_filename, frame.f_code.co_name)))
net(torch.ones(2, 4)).sum().backward()
sys.setprofile(None)
print(sorted(name for _, name in frames if name in ("forward", "_call_impl", "backward")))
