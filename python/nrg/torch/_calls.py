"""The one place that sees every call of a module: nn.Module.__call__, replaced while a model is watched.

Not PyTorch's own hooks, on any version: before 2.0 they see no keyword arguments; global hooks turn the
fast paths of nn.TransformerEncoder off, make torch.compile warn and trace them, send every call through the
slow way of _call_impl, and are not called when KeyboardInterrupt passes. One replaced method has none of
this and costs less (docs/torch.md has the figures). It is the same code for all versions.

torch.compile may inline this function: its first line is a constant for the compiler, which so sees nothing
but the original. As a frame of its own it is skipped, as nn.Module.__call__ is (_compile.py). While torch.jit.trace
works, calls are passed on.
"""
import functools

import torch
from torch import nn

from .. import _nrg
from .._record import before_stop
from . import _loop, _names, _operators
from ._backward import Call, watch_inputs, watch_outputs
from ._compile import compiling, skip_frames
from ._cuda import cuda
from ._state import listening, local, say_once, state, trouble

begin, depth, unwind = _nrg.begin, _nrg.depth, _nrg.unwind
table = _names.table
grad_enabled = torch.is_grad_enabled
tracing = torch._C._get_tracing_state


def _unknown(module, thread):
    """The Entry of a module that has none yet; None when it is not watched."""
    if module.__dict__.get("_is_replica"):
        return _names.original_of(module)
    if thread.call is not None:
        return _names.learn_inner(module, thread.call.entry)
    return _names.learn_root(module) if state.everything else None


def _enter(module, entry, thread, args, kwargs):
    """Before a call that no other module makes: what belongs to the loop. False: not to be marked."""
    if thread.quiet or tracing() is not None or not listening():
        return False
    _loop.outermost(thread, entry, module, args, kwargs)
    return True


def _compiled(entry):
    entry.compiled = True
    say_once("torch.compile: a compiled module is one span, without those of its parts")


def _leave(thread, call, level):
    thread.call = parent = call.caller
    unwind(level)
    if cuda.on:
        cuda.mark(parent.entry.forward if parent is not None else None)
    if parent is None:
        thread.hooked.clear()
        if thread.frames:
            _loop.settle(thread)
        if cuda.on:
            cuda.crowded()


def make_call(original):
    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        if compiling() or not state.on:
            return original(self, *args, **kwargs)
        try:
            thread = local.thread
            parent = thread.call
            # Without a caller, but with a backward pass open, it is recomputed in that one.
            outer = parent or (thread.open[-1][0] if thread.open else None)
            if outer is not None and outer.entry.compiled:
                return original(self, *args, **kwargs)
            entry = table.get(id(self)) or _unknown(self, thread)
            if entry is None or (parent is None and not _enter(self, entry, thread, args, kwargs)):
                return original(self, *args, **kwargs)
            if entry.compiled or "_compiled_call_impl" in self.__dict__:
                _compiled(entry)
            call = Call(entry, parent, outer)
            nodes = None
            if entry.wants_backward and grad_enabled():
                nodes = []
                watch_inputs(thread, call, args, nodes)
                if kwargs:
                    watch_inputs(thread, call, kwargs.values(), nodes)
            number = entry.forward
            if number is None:
                number = entry.number()
        except Exception:
            trouble("call of " + type(self).__name__)
            return original(self, *args, **kwargs)
        level = depth()
        begin(number)
        thread.call = call
        if cuda.on:
            cuda.mark(number)
        try:
            if state.operators:
                run = _operators.run_without if entry.compiled else _operators.run
                result = run(original, self, *args, **kwargs)
            else:
                result = original(self, *args, **kwargs)
        except BaseException:
            _leave(thread, call, level)
            if parent is None:
                _loop.failed(thread)
            raise
        _leave(thread, call, level)
        if nodes is not None:
            try:
                watch_outputs(thread, call, result, nodes)
            except Exception:
                trouble("output of " + type(self).__name__)
            if parent is None:
                thread.hooked.clear()  # a node holds its whole graph
        return result
    __call__.nrg_wraps = original
    return __call__


class Patches:
    """Attributes of classes that were replaced, and what they were."""

    def __init__(self):
        self.done = []

    def replace(self, owner, name, new):
        self.done.append((owner, name, owner.__dict__.get(name), new))
        setattr(owner, name, new)

    def restore(self):
        """Leaves functions that other code replaced since: ours, inside of theirs, passes calls on."""
        for owner, name, before, new in reversed(self.done):
            if owner.__dict__.get(name) is not new:
                continue
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        del self.done[:]


patches = Patches()


def switch_on():
    if patches.done:
        return
    skip_frames(__package__)
    patches.replace(nn.Module, "__call__", make_call(nn.Module.__call__))
    _loop.patch(patches, compiling)
    _operators.patch(patches)
    state.troubles = 0
    state.on = True


def finish():
    """Closes what this thread has open and places what the GPUs have done."""
    if state.on:
        _loop.close_all(local.thread)
    if cuda.on:
        cuda.finish()


before_stop.append(finish)  # of a recorder in this process


def switch_off():
    if not patches.done:
        return
    finish()
    state.on = False
    patches.restore()
