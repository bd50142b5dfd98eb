"""Hooks of modules, tensors and nodes, which see what happens and in which order."""
import inspect

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
for name, module in net.named_modules():
    module.register_forward_pre_hook(lambda m, a, name=name: print("before", name or "net"))
    module.register_forward_hook(lambda m, a, out, name=name: print("after", name or "net", tuple(out.shape)))
net[0].register_full_backward_hook(lambda m, gi, go: print("backward 0", [g is None for g in gi]))
net[0].weight.register_hook(lambda g: print("weight", tuple(g.shape)))
out = net(torch.ones(3, 4))
out.register_hook(lambda g: print("out", g.tolist()))
out.grad_fn.register_hook(lambda gi, go: print("node", len(gi), len(go)))
print(out._backward_hooks is not None, net[0](torch.ones(1, 4))._backward_hooks)
out.sum().backward()
(first,) = torch.autograd.grad(net[2](net[0](torch.ones(1, 4))).sum(), net[0].weight, create_graph=True)
print(tuple(first.shape))
print(inspect.signature(nn.Module.__call__), nn.Module.__call__.__name__, nn.Module.__call__.__module__,
      nn.Module.__call__, inspect.ismethod(net.__call__), net.__call__.__func__ is nn.Module.__call__)
