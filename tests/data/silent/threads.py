"""Threads that train, and one that is still at it when the program ends."""
import threading

import torch
from torch import nn


def train(found, n):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    found[n] = net


def forever():
    net = nn.Linear(2, 2)
    begun.set()
    while True:
        net(torch.ones(1, 2))


found, begun = {}, threading.Event()
workers = [threading.Thread(target=train, args=(found, n)) for n in range(3)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(sorted(found))
threading.Thread(target=forever, daemon=True).start()
begun.wait()
