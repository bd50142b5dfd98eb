"""Everything at module level: the interpreter takes it apart at its end, graphs included."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
x, y = torch.randn(32, 8), torch.randn(32, 1)
losses = []
for step in range(3):
    out = net(x)
    loss = nn.functional.mse_loss(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
waiting = net(x).sum()  # a graph whose backward pass never comes
print("%.6f" % losses[-1].item(), waiting.grad_fn is not None)
