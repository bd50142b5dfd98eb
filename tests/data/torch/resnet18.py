"""Trains ResNet-18 for a few steps: a program that knows nothing of nrg. Takes the number of steps, image size.

torchvision's network where it is installed, else the same one written down here.
"""
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    from torchvision.models import resnet18
except ImportError:
    class BasicBlock(nn.Module):
        def __init__(self, inner, outer, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outer)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outer)
            self.downsample = None
            if stride != 1 or inner != outer:
                self.downsample = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False),
                                                nn.BatchNorm2d(outer))

        def forward(self, x):
            identity = x if self.downsample is None else self.downsample(x)
            out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            out += identity
            return self.relu(out)

    class ResNet(nn.Module):
        def __init__(self, classes=1000):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            self.relu = nn.ReLU(inplace=True)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            for i, (inner, outer) in enumerate(((64, 64), (64, 128), (128, 256), (256, 512)), 1):
                blocks = BasicBlock(inner, outer, 1 if i == 1 else 2), BasicBlock(outer, outer, 1)
                setattr(self, "layer%d" % i, nn.Sequential(*blocks))
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(512, classes)

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(torch.flatten(self.avgpool(x), 1))

    def resnet18():
        return ResNet()


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    torch.manual_seed(0)
    data = DataLoader(TensorDataset(torch.randn(2 * steps, 3, size, size), torch.randint(0, 1000, (2 * steps,))),
                      batch_size=2)
    model = resnet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for images, labels in data:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    print("loss %.6f" % loss.item())


if __name__ == "__main__":
    main()
