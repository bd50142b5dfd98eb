"""The graph of a model, made by running it once: nrg.torch.trace(model, *args, **kwargs).

TorchScript's tracer takes tensors by position only. So a shallow copy of the model is traced, of a class
whose forward() takes the tensors found in the arguments, puts them back where they were among the constants
and keywords, calls the model's own forward() and returns its tensors. The copy has the same submodules, so
the scopes in the graph are the qualified names that spans have. The text of a graph does not tell the
shapes of parameters: they are filled in.

torch.export (PyTorch 2) is the second way: its archive is kept without the weights. Each way stands in
for the other when that fails.

The model is left as it was: buffers, attributes, training flags and random numbers are put back.
"""
import contextlib
import copy
import io
import os
import re
import time
import warnings
import zipfile

import torch
from torch import nn

from .. import _nrg
from ._state import this_thread

Tensor = torch.Tensor


class Traced:
    """A graph: `format` as of `nrg graph --format`, `data` (bytes), `graph_text` (str)."""

    def __init__(self, name, format, data, graph_text):
        self.name, self.format, self.data, self.graph_text = name, format, data, graph_text
        self.stored = False  # in a recording

    def save(self, path):
        with open(path, "wb") as out:
            out.write(self.data)


class _Slot:
    """The place of a tensor among the arguments."""

    def __init__(self, index):
        self.index = index


def _take(value, tensors):
    """A copy of the arguments with slots in place of tensors."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _Slot(len(tensors) - 1)
    if isinstance(value, dict):
        return _like(value, {key: _take(v, tensors) for key, v in value.items()})
    if type(value) in (tuple, list):
        return type(value)(_take(v, tensors) for v in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_take(v, tensors) for v in value))
    return value


def _put(value, tensors):
    if isinstance(value, _Slot):
        return tensors[value.index]
    if isinstance(value, dict):
        return _like(value, {key: _put(v, tensors) for key, v in value.items()})
    if type(value) in (tuple, list):
        return type(value)(_put(v, tensors) for v in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_put(v, tensors) for v in value))
    return value


def _like(before, pairs):
    if type(before) is dict:
        return pairs
    made = copy.copy(before)
    for key, value in pairs.items():
        made[key] = value
    return made


def _tensors_of(result, found):
    if isinstance(result, Tensor):
        found.append(result)
    elif isinstance(result, dict):
        for value in result.values():
            _tensors_of(value, found)
    elif isinstance(result, (tuple, list)):
        for value in result:
            _tensors_of(value, found)
    elif hasattr(result, "__dataclass_fields__"):
        for name in result.__dataclass_fields__:
            _tensors_of(getattr(result, name, None), found)
    elif hasattr(result, "__dict__") and not isinstance(result, (nn.Module, type)):
        for value in vars(result).values():  # a cache, a distribution
            if isinstance(value, (Tensor, tuple, list, dict)):
                _tensors_of(value, found)
    return found


@contextlib.contextmanager
def _unchanged(model):
    """Puts back what running a model changes."""
    modules = [m for m in model.modules() if not isinstance(m, torch.jit.ScriptModule)]
    before = [(m, dict(m.__dict__), {k: dict(m.__dict__[k]) for k in ("_buffers", "_parameters", "_modules")})
              for m in modules]
    values = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    thread = this_thread()
    thread.quiet, was_quiet = True, thread.quiet
    try:
        with torch.random.fork_rng(devices=devices), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        thread.quiet = was_quiet
        for module, attributes, inner in before:
            module.__dict__.clear()
            module.__dict__.update(attributes)
            for key, items in inner.items():
                module.__dict__[key].clear()
                module.__dict__[key].update(items)
        with torch.no_grad():
            for buffer, value in values:
                buffer.data.copy_(value)  # by .data: a graph that is waiting for its backward pass may hold it


def _bound(model, args, kwargs, tensors):
    """A shallow copy of the model that takes tensors alone."""
    args, kwargs = _take(tuple(args), tensors), _take(dict(kwargs), tensors)
    cls = type(model)

    def forward(self, *given):
        result = cls.forward(self, *_put(args, given), **_put(kwargs, given))
        found = _tensors_of(result, [])
        return found[0] if len(found) == 1 else tuple(found)

    made = copy.copy(model)
    made.__dict__.pop("forward", None)
    made.__class__ = type(cls.__name__, (cls,), {"forward": forward, "__module__": cls.__module__,
                                                 "__qualname__": cls.__qualname__})
    return made


def _fill_in_shapes(graph, model):
    """Types of parameters and buffers, which the tracer does not write down."""
    known = dict(model.named_parameters())
    known.update(model.named_buffers())
    paths = {}
    for node in graph.findAllNodes("prim::GetAttr", True):
        base = paths.get(next(iter(node.inputs())).debugName(), "")
        path = base + "." + node.s("name") if base else node.s("name")
        paths[node.output().debugName()] = path
        tensor = known.get(path)
        if tensor is None:
            tensor = _attribute(model, path)
        if isinstance(tensor, Tensor):
            node.output().inferTypeFrom(tensor)


def _attribute(model, path):
    """Tied parameters are listed under one of their names only."""
    for part in path.split("."):
        model = getattr(model, part, None)
    return model


def _script(model, name, args, kwargs):
    tensors = []
    with _unchanged(model):
        bound = _bound(model, args, kwargs, tensors)
        traced = torch.jit.trace(bound, tuple(tensors), check_trace=False, strict=False)
        graph = traced.inlined_graph
        _fill_in_shapes(graph, model)
        text = str(graph)
    return Traced(name, "torchscript", text.encode("utf-8"), text)


def _without_weights(archive):
    """`nrg graph` reads shapes, not values; weights would make the recording gigabytes larger."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for item in old.infolist():
            base = item.filename.rsplit("/", 1)[-1]
            values = "/data/weights/" in item.filename and not base.endswith(".json")
            if not values and base not in ("serialized_state_dict.pt", "serialized_constants.pt"):
                new.writestr(item.filename, old.read(item))
    return out.getvalue()


def _export(model, name, args, kwargs):
    if not hasattr(torch, "export") or not hasattr(torch.export, "export"):
        raise RuntimeError("this PyTorch has no torch.export")
    with _unchanged(model):
        program = torch.export.export(model, tuple(args), dict(kwargs))
        out = io.BytesIO()
        torch.export.save(program, out)
        text = str(program.graph)
    return Traced(name, "pt2", _without_weights(out.getvalue()), text)


WAYS = {"script": (_script,), "export": (_export,), "auto": (_script, _export),
        "auto-export": (_export, _script)}


def trace(model, args, kwargs, way_name, name):
    if way_name not in WAYS:
        raise ValueError("nrg_way must be one of " + ", ".join(sorted(WAYS)))
    name = name or type(model).__name__
    failures = []
    for way in WAYS[way_name]:
        try:
            traced = way(model, name, args, kwargs)
            break
        except Exception as error:
            failures.append(error)
    else:
        raise failures[0]
    if _nrg.active():
        traced.stored = _leave_for_nrg_run(traced) or _keep(traced)
    return traced


def _leave_for_nrg_run(traced):
    """`nrg run --torch` takes what lies in this folder when the program has ended."""
    folder = os.environ.get("NRG_TORCH_MODELS")
    if not folder or not os.path.isdir(folder):
        return False
    name = re.sub(r"[^A-Za-z0-9_.#]", "_", traced.name)[:100] or "model"
    base = "%d_%d-%s.%s" % (os.getpid(), time.monotonic_ns(), name, traced.format)
    hidden = os.path.join(folder, "." + base)
    traced.save(hidden)
    os.rename(hidden, os.path.join(folder, base))
    return True


def _keep(traced):
    try:
        _nrg.model(traced.name, traced.format, traced.data)
    except _nrg.Error:  # the recorder is nrg run's, without --torch
        return False
    return True
