"""What there is to measure in a model: every distinct module call, and operator call, of one real forward pass.

Calls are distinct by what decides their work: class, configuration, shapes and dtypes of parameters and arguments,
training or not. Of equal ones the first is kept with copies of its arguments (in-place operators must not spoil them
for the next call), of all the place: qualified name, which call of that module, and for operators where in the order of that
call. These places are what `nrg dataset` looks up in the graph.
"""
import collections

import torch
from torch import nn

try:
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:  # PyTorch before 1.13
    TorchDispatchMode = object

Tensor = torch.Tensor
PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


class Node:
    """A distinct call. `run` makes it again, `places` are where the model has equal ones."""

    def __init__(self, id, kind, name, detail, function, args, kwargs):
        self.id, self.kind, self.name, self.detail = id, kind, name, detail
        self.function, self.args, self.kwargs = function, args, kwargs
        self.places = []
        self.key = None
        self.idle = True  # nothing is computed in it


def copied(value, keep=()):
    """Arguments with tensors of their own. `keep`: ids of tensors that are not changed."""
    if isinstance(value, Tensor):
        return value if id(value) in keep else _copy(value)
    if isinstance(value, dict):
        return type(value)((k, copied(v, keep)) for k, v in value.items()) if type(value) is dict else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(copied(v, keep) for v in value))
    if type(value) in (tuple, list):
        return type(value)(copied(v, keep) for v in value)
    return value


def _copy(tensor):
    """Of the same strides: an expanded tensor stays one."""
    data = tensor.detach()
    flat = [0 if stride == 0 and size > 1 else None for size, stride in zip(data.shape, data.stride())] \
        if data.layout is torch.strided else []
    if 0 in flat:
        for dim, cut in enumerate(flat):
            if cut == 0:
                data = data.narrow(dim, 0, 1)
        made = data.clone().expand(tensor.shape)
    else:
        made = data.clone()
    return made.requires_grad_() if tensor.requires_grad and torch.is_grad_enabled() else made


def tensors_in(value, found):
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, dict):
        for v in value.values():
            tensors_in(v, found)
    elif isinstance(value, (tuple, list)):
        for v in value:
            tensors_in(v, found)
    return found


def signature(value):
    """What of an argument decides the work."""
    if isinstance(value, Tensor):
        strides = tuple(value.stride()) if value.layout is torch.strided else None
        return ("tensor", str(value.dtype), tuple(value.shape), strides, str(value.device), value.requires_grad)
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, dict):
        return tuple((str(k), signature(v)) for k, v in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(signature(v) for v in value)
    name = getattr(value, "__qualname__", None)
    return (type(value).__qualname__, name) if name else type(value).__qualname__


def configuration(module):
    """Class, plain attributes and parameters' shapes, of a module and all below it."""
    parts = [type(module).__module__, type(module).__qualname__, module.training]
    for key, value in sorted(module.__dict__.items()):
        if not key.startswith("_") and key != "training":
            parts.append((key, signature(value)))
    for key, tensor in list(module._parameters.items()) + list(module._buffers.items()):
        parts.append((key, None if tensor is None else signature(tensor)))
    for key, child in module._modules.items():
        parts.append((key, None if child is None else configuration(child)))
    return tuple(parts)


# Views by another name, and copies that graphs do not tell apart from views: these are a module's rest.
NOT_MEASURED = {"aten::_unsafe_view", "aten::_reshape_alias", "aten::detach", "aten::lift_fresh", "aten::clone", "aten::copy_"}


def is_view(func):
    """It makes no new memory."""
    returns = func._schema.returns
    return func._schema.name in NOT_MEASURED or bool(returns) and returns[0].alias_info is not None and not returns[0].alias_info.is_write


class Frame:
    """A module call that is running."""

    def __init__(self, path, call, node, module):
        self.path, self.call, self.node, self.module = path, call, node, module
        self.order = 0


class Capture:
    def __init__(self, model, operators):
        self.names = {}
        for name, module in model.named_modules():
            self.names[id(module)] = name
        self.operators = operators
        self.nodes, self.by_key = [], {}
        self.calls = collections.Counter()
        self.stack = []
        self.quiet = False
        self.kept = {id(p) for p in model.parameters()}

    def node(self, key, kind, name, detail, function, args, kwargs, keep=()):
        found = self.by_key.get(key)
        if found is None:
            self.quiet = True  # copying is not work of the model
            try:
                found = Node(len(self.nodes), kind, name, detail, function, copied(args, keep), copied(kwargs, keep))
            finally:
                self.quiet = False
            found.key = key
            self.by_key[key] = found
            self.nodes.append(found)
        return found

    def module_call(self, original, module, args, kwargs):
        path = self.names.get(id(module))
        if path is None:
            return original(module, *args, **kwargs)
        number = self.calls[path]
        self.calls[path] += 1
        key = ("module", configuration(module), signature(args), signature(kwargs))
        node = self.node(key, "module", path, type(module).__name__, module, args, kwargs)
        node.places.append([path, number])
        self.stack.append(Frame(path, number, node, module))
        try:
            return original(module, *args, **kwargs)
        finally:
            self.stack.pop()

    def operator_call(self, func, args, kwargs):
        if self.quiet or is_view(func) or not self.stack:
            return
        for frame in self.stack:
            frame.node.idle = False
        frame = self.stack[-1]
        if not self.operators or isinstance(frame.module, nn.RNNBase):  # graphs have it as one operator
            return
        key = ("operator", str(func), signature(args), signature(kwargs))
        keep = () if func._schema.is_mutable else self.kept
        node = self.node(key, "operator", func._schema.name, "", func, args, kwargs, keep)
        node.idle = False
        node.places.append([frame.path, frame.call, frame.order])
        frame.order += 1


class Mode(TorchDispatchMode):
    def __init__(self, capture):
        super().__init__()
        self.capture = capture

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.capture.operator_call(func, args, kwargs)
        return func(*args, **kwargs)


def capture(model, args, kwargs, operators):
    """One forward pass; a Capture with its nodes."""
    seen = Capture(model, operators)
    original = nn.Module.__call__

    def __call__(self, *given, **named):
        return seen.module_call(original, self, given, named)

    nn.Module.__call__ = __call__
    try:
        if TorchDispatchMode is object:
            model(*args, **kwargs)
            for node in seen.nodes:
                node.idle = False
        else:
            with Mode(seen):
                model(*args, **kwargs)
    finally:
        nn.Module.__call__ = original
    seen.nodes = [node for node in seen.nodes if not node.idle]
    for i, node in enumerate(seen.nodes):
        node.id = i
    return seen
