"""Makes the small model files of this folder. Run it here, once with each PyTorch, from
stdin so that no path of a machine gets into the files:

    /usr/bin/python3 - < make_fixtures.py     Debian's 1.13: TorchScript archive, checkpoints
    VENV/bin/python - < make_fixtures.py      2.13: torch.export programs

The .pt2 files are packed again without stack traces and example inputs (they would be the larger
part), with the JSON deflated, which PyTorch's own files are not; tests/torch2 reads untouched ones.
"""
import io
import json
import zipfile

import torch
from torch import nn

torch.manual_seed(0)


class Tied(nn.Module):
    """Tied weights, buffers, and a parameter that is not trained."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(7, 4)
        self.bn = nn.BatchNorm1d(4)
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.emb.weight
        self.fixed = nn.Linear(4, 4)
        self.fixed.weight.requires_grad_(False)

    def forward(self, i):
        return self.out(self.bn(self.fixed(self.emb(i))))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24, bias=False)
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = self.qkv(self.ln(x)).chunk(3, -1)
        with torch.no_grad():
            scale = torch.ones(()).cos()
        y = nn.functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        return x + self.out(y) * scale


class Net(nn.Module):
    """A convolution, attention with a no_grad region (a wrapped subgraph), and a head."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.block = Block()
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.bn(self.conv(x)).relu().flatten(2).transpose(1, 2)
        return self.head(self.block(x).mean(1))


def make_113():
    model = Tied().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.jit.trace(model, torch.tensor([1, 2])).save("tied.pt")
    torch.save(model.state_dict(), "state.pt")
    torch.save(model.state_dict(), "state_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "checkpoint.pt")
    torch.save(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), "module.pt")


def strip(value):
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k != "stack_trace"}
    return [strip(v) for v in value] if isinstance(value, list) else value


def save(name, model, args, **options):
    from torch.utils.flop_counter import FlopCounterMode
    model = model.eval()
    data = io.BytesIO()
    torch.export.save(torch.export.export(model, args, **options), data)
    with zipfile.ZipFile(data) as old, zipfile.ZipFile(name + ".pt2", "w") as new:
        for entry in old.namelist():
            inside = entry.partition("/")[2]
            if inside.startswith("data/sample_inputs/"):
                continue
            text = old.read(entry)
            if inside.startswith("models/"):
                text = json.dumps(strip(json.loads(text)))
            kind = zipfile.ZIP_DEFLATED if inside.startswith("models/") else zipfile.ZIP_STORED
            new.writestr(zipfile.ZipInfo(name + "/" + inside), text, kind)
    with FlopCounterMode(display=False) as counter:
        model(*args)
    print(name, "MACs", counter.get_total_flops() // 2, "params", sum(p.numel() for p in model.parameters()))


def make_2():
    save("net", Net(), (torch.randn(2, 3, 8, 8),))
    save("dynamic", nn.Sequential(nn.Linear(4, 3)), (torch.randn(2, 4),),
         dynamic_shapes={"input": {0: torch.export.Dim("batch", min=2, max=64)}})


make_2() if torch.__version__.startswith("2.") else make_113()
