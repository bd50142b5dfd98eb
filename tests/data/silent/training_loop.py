"""A data loader, a scheduler, training and evaluation."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.fc = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(48, 1, 8, 8), torch.randint(0, 3, (48,)))
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for epoch in range(2):
        net.train()
        for x, y in DataLoader(data, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        scheduler.step()
        net.eval()
        with torch.no_grad():
            right = sum(int((net(x).argmax(1) == y).sum()) for x, y in DataLoader(data, batch_size=16))
        print(epoch, "%.6f" % loss.item(), right, scheduler.get_last_lr())


main()
