"""Models exported to ONNX in every way that this PyTorch has, with the MACs of each module: make_exports.py FOLDER

truth.json has for each file the multiply-accumulates of every module that has some of its own, counted by forward hooks
on the model itself: an exporter's names of nodes, its metadata and what its optimiser fused are then compared with that.
"""
import json
import os
import sys
import warnings

import onnx
import torch
from torch import nn

warnings.filterwarnings("ignore")


class Block(nn.Module):
    """A residual block, as torchvision's: one ReLU module that is called twice."""

    def __init__(self, inner, out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.down = nn.Sequential(nn.Conv2d(inner, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.down(x))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.layers = nn.ModuleList([Block(8, 12), Block(12, 16, 2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(16, 10), "b": nn.Sequential(nn.Linear(16, 5), nn.BatchNorm1d(5))})

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        x = x.mean((2, 3))
        return self.heads["a"](x), self.heads["b"](x)


class Mobile(nn.Module):
    """Depthwise and transposed convolutions, each before a norm; a norm before a convolution; a shared layer."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(3, 12, 1), nn.BatchNorm2d(12), nn.ReLU6(),
                                  nn.Conv2d(12, 12, 3, 1, 1, groups=12), nn.BatchNorm2d(12), nn.Conv2d(12, 6, 1))
        self.pre = nn.BatchNorm2d(6)
        self.up = nn.ConvTranspose2d(6, 4, 2, 2)
        self.up_norm = nn.BatchNorm2d(4)
        self.shared = nn.Conv2d(4, 4, 3, 1, 1)

    def forward(self, x):
        x = self.up_norm(self.up(self.pre(self.wide(x))))
        return self.shared(self.shared(x))


class Text(nn.Module):
    """Two layers of a transformer that is written out, an embedding, a tied output."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.blocks = nn.Sequential(*[nn.ModuleDict({"norm": nn.LayerNorm(16), "q": nn.Linear(16, 16),
                                                     "k": nn.Linear(16, 16), "v": nn.Linear(16, 16, bias=False),
                                                     "up": nn.Linear(16, 24), "down": nn.Linear(24, 16)})
                                      for _ in range(2)])
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            y = block["norm"](x)
            q, k, v = (block[part](y).unflatten(-1, (2, 8)).transpose(1, 2) for part in "qkv")
            x = x + nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            x = x + block["down"](nn.functional.gelu(block["up"](x)))
        return self.head(x)


def module_macs(model, given):
    """MACs of each convolution and linear layer over all its calls."""
    found = {}

    def hook(name):
        def count(module, inputs, output):
            if isinstance(module, nn.ConvTranspose2d):
                macs = inputs[0].numel() * module.weight[0].numel()
            elif isinstance(module, nn.Conv2d):
                macs = output.numel() * module.weight[0].numel()
            else:
                macs = output.numel() * module.in_features
            found[name] = found.get(name, 0) + macs
        return count

    for name, module in model.named_modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            module.register_forward_hook(hook(name))
    with torch.no_grad():
        model(given)
    for module in model.modules():
        module._forward_hooks.clear()
    return found


def export_all(folder, name, model, given):
    """Each exporter's file; yields those that it could make."""
    def old(path, **options):
        torch.onnx.export(model, (given,), path, dynamo=False, **options)

    def new(path, **options):
        torch.onnx.export(model, (given,), dynamo=True, verbose=False, **options).save(path)

    def exported(path):
        torch.onnx.export(torch.export.export(model, (given,)), dynamo=True, verbose=False).save(path)

    def inferred(path):
        new(path, optimize=True)
        onnx.save(onnx.shape_inference.infer_shapes(onnx.load(path)), path)

    ways = {"script": old, "script-unfolded": lambda p: old(p, training=torch.onnx.TrainingMode.PRESERVE,
                                                            do_constant_folding=False),
            "script-params": lambda p: old(p, keep_initializers_as_inputs=True),
            "dynamo": lambda p: new(p, optimize=True), "dynamo-plain": lambda p: new(p, optimize=False),
            "exported": exported, "inferred": inferred}
    for way, make in ways.items():
        path = os.path.join(folder, f"{name}-{way}.onnx")
        make(path)
        yield f"{name}-{way}"


def main(folder):
    truth = {}
    torch.manual_seed(3)
    for name, model, given in (("residual", Residual(), torch.rand(2, 3, 32, 32)),
                               ("mobile", Mobile(), torch.rand(1, 3, 10, 12)),
                               ("text", Text(), torch.randint(0, 50, (2, 7)))):
        model.eval()
        for module in model.modules():  # norms that do something: what they fold into gets a bias
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                nn.init.uniform_(module.running_mean)
                nn.init.uniform_(module.running_var, 0.5, 2)
                nn.init.uniform_(module.bias)
        macs = module_macs(model, given)
        for made in export_all(folder, name, model, given):
            truth[made] = macs
    with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as out:
        json.dump(truth, out, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
