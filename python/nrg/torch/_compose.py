"""Small random models of a model's own kinds of modules: more to hold out than the model itself.

A prediction's interval comes from models that were held out. One model has none to hold out, and five have few. So measure()
makes further ones: chains of stages, of modules that the model has, in other sizes and other company. Kinds with a few lines below
are made new in other widths; others, whole blocks too, are copied and take other batches. A chain goes on with what accepts the tensor
that is there: everything is tried by running it once.

The same seed gives the same compositions. Nothing of the model is changed, and random numbers go on as if nothing had happened.
"""
import copy
import random

import torch
from torch import nn

from ._capture import copied

STAGES = (1, 3)
LENGTH = (2, 4)  # of a stage
TRIES = 12  # for the next module of a chain
MOST_NUMBERS = 1 << 21  # of a tensor between modules
MOST_PARAMETERS = 1 << 22
SCALES = (0.5, 1, 2)


class Stage(nn.Module):
    """Modules one after the other; the input is added where the shape allows it and chance wants it."""

    def __init__(self, modules, residual):
        super().__init__()
        self.parts, self.residual = nn.ModuleList(modules), residual

    def forward(self, x):
        y = x
        for part in self.parts:
            y = _first(part(y))
        return x + y if self.residual else y


class Composition(nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.stages = nn.ModuleList(stages)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return x


def _first(value):
    """A recurrent layer gives its states, too."""
    return value[0] if isinstance(value, (tuple, list)) else value


def _width(rng, usual):
    return max(1, int(usual * rng.choice(SCALES)))


def _linear(module, x, rng):
    return nn.Linear(x.shape[-1], _width(rng, module.out_features), module.bias is not None)


def _embedding(module, x, rng):
    return nn.Embedding(module.num_embeddings, _width(rng, module.embedding_dim))


def _convolution(module, x, rng):
    return type(module)(x.shape[1], _width(rng, module.out_channels), module.kernel_size, module.stride, module.padding,
                        module.dilation, 1, module.bias is not None)


def _recurrent(module, x, rng):
    return type(module)(x.shape[-1], _width(rng, module.hidden_size), module.num_layers, module.bias, module.batch_first)


REMADE = (
    (nn.Linear, _linear),
    (nn.Embedding, _embedding),
    (nn.LayerNorm, lambda module, x, rng: nn.LayerNorm(x.shape[-1])),
    ((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d), lambda module, x, rng: type(module)(x.shape[1])),
    ((nn.Conv1d, nn.Conv2d, nn.Conv3d), _convolution),
    ((nn.LSTM, nn.GRU, nn.RNN), _recurrent),
)


def _remade(module, x, rng):
    """One of the same kind for this tensor, as the model has it where no other is known."""
    for kinds, make in REMADE:
        if isinstance(module, kinds):
            made = make(module, x, rng).to(x.device)
            return made.to(x.dtype) if x.is_floating_point() else made
    return copy.deepcopy(module)


def _is_small(module):
    return sum(p.numel() for p in module.parameters()) <= MOST_PARAMETERS


def _usable(node):
    """A small module that takes one tensor."""
    return node.kind == "module" and not node.kwargs and len(node.args) == 1 and isinstance(node.args[0], torch.Tensor) \
        and node.args[0].dim() > 0 and node.args[0].shape[0] > 0 and _is_small(node.function)


def _resized(x, rng):
    """Another batch, of the same rows."""
    n = max(1, int(x.shape[0] * rng.choice(SCALES)))
    times = -(-n // x.shape[0])
    return torch.cat([x.detach()] * times)[:n].contiguous()


def _fits(y):
    return isinstance(y, torch.Tensor) and y.dim() > 1 and y.is_floating_point() and 0 < y.numel() <= MOST_NUMBERS


def _next(kinds, x, rng, training):
    """(module, what it makes of x), or None when nothing that was tried accepts x."""
    for _ in range(TRIES):
        node = rng.choice(kinds)
        try:
            module = _remade(node.function, x, rng).train(training)
            y = _first(module(x))
        except Exception:  # shapes that do not go together have errors of all kinds
            continue
        if _fits(y) and _is_small(module):
            return module, y
    return None


def _stage(kinds, x, rng, training):
    modules, y = [], x
    for _ in range(rng.randint(*LENGTH)):
        found = _next(kinds, y, rng, training)
        if not found:
            break
        modules.append(found[0])
        y = found[1]
    residual = bool(modules) and x.shape == y.shape and x.dtype == y.dtype and rng.random() < 0.5
    return (Stage(modules, residual).train(training), y) if modules else (None, x)


def _compose(kinds, rng, training):
    x = start = _resized(copied(rng.choice(kinds).args[0]), rng)
    stages = []
    for _ in range(rng.randint(*STAGES)):
        stage, x = _stage(kinds, x, rng, training)
        if stage:
            stages.append(stage)
    return (Composition(stages).train(training), start) if stages else None


def compositions(nodes, n, seed, training):
    """Yields n times (number, model, its input), without those that came to nothing. `nodes` are what was captured of a model."""
    usable = [node for node in nodes if _usable(node)]
    kinds = [node for node in usable if node.name] or usable  # parts of the model, not the model
    for number in range(1, n + 1 if kinds else 1):
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(seed * 1000003 + number)
            made = _compose(kinds, random.Random("%d %d" % (seed, number)), training)
        if made:
            yield number, made[0], made[1]
