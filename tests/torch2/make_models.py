"""Exports and traces models with a current PyTorch; run by test_pt2.py: make_models.py FOLDER.

Writes NAME.pt2 (torch.export.save), NAME.txt (str(traced.inlined_graph)), NAME.pt (torch.jit.save)
and truth.json: MACs by torch.utils.flop_counter, parameters and buffers by the module itself. The
counter only sees what is dispatched, so attention runs on the math backend and RNNs without mkldnn:
the fused CPU kernels count as nothing there.
"""
import json
import os
import sys
import warnings

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

warnings.filterwarnings("ignore")
torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, groups=4, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.down = nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + self.down(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, 2, 3)
        self.layers = nn.Sequential(Residual(8, 16, 2), Residual(16, 32, 1))
        self.up = nn.ConvTranspose2d(32, 8, 2, 2)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        return self.fc(nn.functional.adaptive_avg_pool2d(self.up(self.layers(self.stem(x))), 1).flatten(1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 32)
        self.encoder = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, ids):
        return self.head(self.encoder(self.emb(ids)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(32, 12, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(x)[0])[0]


class Regions(nn.Module):
    """no_grad and autocast regions are subgraphs of an exported program."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 8)
        self.register_buffer("table", torch.arange(8.0), persistent=False)

    def forward(self, x):
        with torch.no_grad():
            y = self.a(x) + self.table
        return torch.einsum("bi,bj->ij", self.b(y), x) @ x.t()


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 4)
        self.b = nn.Linear(8, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: self.a(v), lambda v: self.b(v), (x,))


def models():
    image, ids, series = torch.randn(2, 3, 32, 32), torch.randint(0, 50, (2, 7)), torch.randn(3, 5, 8)
    mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    yield "mlp", mlp, (torch.randn(5, 8),), {}
    yield "resnet", ResNet(), (image,), {}
    yield "attention", Attention(), (ids,), {}
    yield "recurrent", Recurrent(), (series,), {}
    yield "regions", Regions(), (torch.randn(3, 8),), {}
    yield "branch", Branch(), (torch.randn(3, 8).abs(),), {}
    batch = torch.export.Dim("batch", min=2, max=64)
    yield "dynamic", nn.Sequential(nn.Linear(8, 4)), (torch.randn(2, 8),), {"dynamic_shapes": {"input": {0: batch}}}


class Only(nn.Module):
    """The first result of a Hugging Face model alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids, return_dict=False)[0]


def hugging_face():
    from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel
    ids = torch.randint(0, 100, (1, 16))
    bert = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                      intermediate_size=64, max_position_embeddings=32, attn_implementation="sdpa")
    gpt2 = GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=32, attn_implementation="sdpa",
                      use_cache=False)
    yield "bert", Only(BertModel(bert)), (ids,), {}
    yield "gpt2", Only(GPT2LMHeadModel(gpt2)), (ids,), {}


def write(folder, name, model, args, options):
    model = model.eval()
    path = os.path.join(folder, name)
    torch.export.save(torch.export.export(model, args, **options), path + ".pt2")
    with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False), \
            FlopCounterMode(display=False) as counter:
        model(*args)
    truth = {"macs": counter.get_total_flops() // 2, "params": sum(p.numel() for p in model.parameters()),
             "buffers": {k: list(v.shape) for k, v in model.named_buffers()},
             "shapes": {k: list(v.shape) for k, v in model.named_parameters()}}
    if name not in ("branch", "dynamic"):  # not to be traced
        traced = torch.jit.trace(model, args, check_trace=False)
        traced.save(path + ".pt")
        with open(path + ".txt", "w", encoding="utf-8") as text:
            text.write(str(traced.inlined_graph))
    return truth


def main(folder):
    truth = {name: write(folder, name, *rest) for name, *rest in models()}
    try:
        truth.update({name: write(folder, name, *rest) for name, *rest in hugging_face()})
    except ImportError as why:
        print("no Hugging Face models:", why)
    with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as text:
        json.dump(truth, text)


main(sys.argv[1])
