"""torch.compile: a module, one with a hook in it, and a function with a break."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
net[2].register_forward_hook(lambda m, a, out: out * 2)
quick = torch.compile(net, backend="aot_eager")
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = quick(torch.ones(2, 4)).sum()
    loss.backward()
    optimizer.step()
print("%.6f" % loss.item())


@torch.compile(backend="aot_eager")
def function(x):
    x = net(x)
    torch._dynamo.graph_break()
    return net[0](x.expand(2, 4)).sum()


print("%.6f" % function(torch.ones(2, 4)).item())
counters = torch._dynamo.utils.counters
print(dict(counters["stats"]), dict(counters["frames"]), sum(counters["graph_break"].values()))
