"""Random PyTorch models with what PyTorch counts for them: make_nets.py FOLDER

Each is traced (NAME.txt), its modules are listed (NAME.json), every tenth is exported too (NAME.pt2).
truth.json has MACs by torch.utils.flop_counter, parameters, buffers, the shapes of all outputs, and
mult-adds by torchinfo where that is installed. The seed is fixed. As the counter only sees what is
dispatched, attention runs on the math backend and recurrent layers without mkldnn.
"""
import json
import os
import random
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

try:
    import torchinfo
except ImportError:
    torchinfo = None

SEED = 12
NETS = 160
EVERY = 10  # of them is exported

warnings.filterwarnings("ignore")
torch.manual_seed(SEED)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class First(nn.Module):
    """The first of a recurrent layer's results."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Both(nn.Module):
    """Two paths that are added or joined."""

    def __init__(self, one, two, join):
        super().__init__()
        self.one, self.two, self.join = one, two, join

    def forward(self, x):
        a, b = self.one(x), self.two(x)
        return torch.cat([a, b], 1) if self.join else a + b


def image_layer(r, channels):
    """A layer and its number of channels."""
    out = r.choice((4, 6, 8))
    groups = r.choice([g for g in (1, 2) if channels % g == 0 and out % g == 0])
    layers = [
        lambda: (nn.Conv2d(channels, out, r.choice((1, 3, (3, 1))), r.randint(1, 2), r.randint(0, 1), groups=groups,
                           bias=r.random() < 0.5), out),
        lambda: (nn.Conv2d(channels, out, 3, padding="same", dilation=r.randint(1, 2)), out),
        lambda: (nn.ConvTranspose2d(channels, out, r.randint(2, 3), 2, groups=groups), out),
        lambda: (nn.BatchNorm2d(channels), channels),
        lambda: (nn.GroupNorm(2, channels), channels),
        lambda: (nn.PReLU(channels), channels),
        lambda: (nn.MaxPool2d(2, ceil_mode=r.random() < 0.5), channels),
        lambda: (nn.AvgPool2d(3, 2, 1), channels),
        lambda: (nn.Upsample(scale_factor=2), channels),
        lambda: (nn.ReflectionPad2d(1), channels),
        lambda: (nn.Hardswish(), channels),
        lambda: (Both(nn.Conv2d(channels, out, 3, 1, 1), nn.Conv2d(channels, out, 1), False), out),
        lambda: (Both(nn.Conv2d(channels, out, 1), nn.Identity(), True), out + channels),
        lambda: (Function(lambda x: x.permute(0, 1, 3, 2)), channels),
    ]
    return r.choice(layers)()


def image_net(r):
    channels = r.choice((2, 4))
    x = torch.randn(r.randint(1, 3), channels, r.randint(8, 14), r.randint(8, 14))
    layers = []
    for _ in range(r.randint(2, 6)):
        layer, channels = image_layer(r, channels)
        layers.append(layer)
    if r.random() < 0.6:
        layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, 5)]
    return nn.Sequential(*layers), x


def sequence_net(r):
    width = r.choice((8, 12))
    x = torch.randint(0, 20, (r.randint(1, 3), r.randint(2, 7)))
    layers = [nn.Embedding(20, width)]
    for _ in range(r.randint(1, 4)):
        layers.append(r.choice([
            lambda: Attention(width, r.choice((2, 4))),
            lambda: nn.LayerNorm(width),
            lambda: nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)),
            lambda: First(nn.LSTM(width, width, r.randint(1, 2), batch_first=True)),
            lambda: First(nn.GRU(width, width // 2, bidirectional=True, batch_first=True)),
            lambda: nn.Dropout(0.1),
        ])())
    layers.append(r.choice((nn.Linear(width, 3), Function(lambda y: y.mean(1)), Function(lambda y: y.flatten(1)),
                            Function(lambda y: y[:, -1]), Function(lambda y: y.transpose(1, 2).reshape(-1, 2)))))
    return nn.Sequential(*layers), x


def describe(tensor):
    return [list(tensor.shape), str(tensor.dtype), {"trainable": tensor.requires_grad}]


def modules_of(net):
    return [{"name": name, "class": type(module).__name__,
             "params": {k: describe(p) for k, p in module.named_parameters(recurse=False)},
             "bufs": {k: describe(b) for k, b in module.named_buffers(recurse=False)}}
            for name, module in net.named_modules()]


def measure(net, x):
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        output = net(x)
    truth = {"macs": counter.get_total_flops() // 2, "params": sum(p.numel() for p in net.parameters()),
             "buffers": sum(b.numel() for b in net.buffers()), "output": list(output.shape)}
    if torchinfo:
        truth["torchinfo"] = torchinfo.summary(net, input_data=x, verbose=0).total_mult_adds
    return truth


def main(folder):
    r, truth = random.Random(SEED), {}
    torch.backends.mkldnn.enabled = False
    for number in range(NETS):
        net, x = r.choice((image_net, sequence_net))(r)
        net.eval()
        name = f"net{number}"
        path = os.path.join(folder, name)
        try:
            with torch.no_grad():
                truth[name] = measure(net, x)
        except RuntimeError:
            continue  # too small for its windows
        with open(path + ".txt", "w", encoding="utf-8") as file:
            file.write(str(torch.jit.trace(net, x, check_trace=False).inlined_graph))
        with open(path + ".json", "w", encoding="utf-8") as file:
            json.dump(modules_of(net), file)
        if number % EVERY == 0:
            torch.export.save(torch.export.export(net, (x,)), path + ".pt2")
    with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as file:
        json.dump(truth, file)


main(sys.argv[1])
