"""Saving, loading, pickling and copying models and optimizers."""
import copy
import io
import pickle

import torch
from torch import nn


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values()))


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 2))
optimizer = torch.optim.Adam(net.parameters())
net(torch.ones(1, 4)).sum().backward()
optimizer.step()
blob = io.BytesIO()
torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, blob)
print(len(blob.getvalue()))  # not of a pickle: addresses of storages are in it
blob.seek(0)
again = copy.deepcopy(net)
again.load_state_dict(torch.load(blob)["net"])
print(same(net, again), same(net, pickle.loads(pickle.dumps(net))), sorted(vars(again)))
other = copy.deepcopy(optimizer)
other.load_state_dict(optimizer.state_dict())
other.step()
print(type(other).__name__, sorted(vars(other)), pickle.loads(pickle.dumps(nn.Linear)) is nn.Linear)
print(again(torch.zeros(1, 4)).shape, copy.deepcopy(net.forward)(torch.zeros(1, 4)).shape)
