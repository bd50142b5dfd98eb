"""Two ranks with gloo."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def rank(number, folder):
    dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "meeting"), rank=number, world_size=2)
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = net(torch.full((2, 4), float(number))).sum()
        loss.backward()
        optimizer.step()
    if number == 0:
        print("%.6f" % loss.item(), net.module[0].weight.grad.abs().sum() > 0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank, (folder,), nprocs=2)
    print("joined")
