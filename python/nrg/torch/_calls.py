"""Watching calls: what is put in place of functions of PyTorch, and what the extension calls back.

Every call of a module goes through nn.Module.__call__, which is replaced while a model is watched
(_torch_call.c). The extension does the usual itself, and calls the functions here for a module that it does
not know and around the outermost calls. While torch.jit.trace works, calls are passed on.
"""
import atexit

import torch
from torch import nn

from .. import _nrg
from .._record import before_stop
from . import _backward, _generate, _loader, _loop, _names, _operators, _optimizer
from ._compile import short_cut, skip_frames
from ._cuda import cuda
from ._state import Thread, listening, note_once, state, this_thread, trouble

tracing = torch._C._get_tracing_state


def _unknown(module, thread):
    """The Entry of a module that has none yet; None when it is not watched."""
    if module.__dict__.get("_is_replica"):
        return _names.original_of(module)
    if thread.entry is not None:
        return _names.learn_inner(module, thread.entry)
    return _names.learn_root(module) if state.everything else None


def _enter(module, entry, thread, args, kwargs):
    """Before a call that no other module makes: what belongs to the loop. False: not to be marked."""
    if thread.quiet or tracing() is not None or not listening():
        return False
    _loop.outermost(thread, entry, module, args[1:], kwargs or {})
    if state.operators and not entry.compiled:
        _operators.enter(thread)
    return True


def _compiled(entry):
    entry.compiled = True
    note_once("compile", lambda: "torch.compile: a compiled module is one span, without those of its parts")
    _operators.pause(this_thread())


def _leave(thread, failed):
    """After an outermost call, and after that of a compiled module."""
    _operators.resume(thread)
    if thread.in_call:
        return
    _operators.leave(thread)
    if thread.frames:
        _loop.settle(thread)
    if state.cuda:
        cuda.crowded()
    if failed:
        _loop.failed(thread)


class Patches:
    """Attributes of classes that were replaced, and what they were."""

    def __init__(self):
        self.done = []
        self.stop_waiting = lambda: None  # for what is to be replaced once it is loaded

    def replace(self, owner, name, new):
        self.done.append((owner, name, owner.__dict__.get(name), new))
        setattr(owner, name, new)

    def restore(self):
        """Leaves functions that other code replaced since: ours, inside of theirs, passes calls on."""
        self.stop_waiting()
        for owner, name, before, new in reversed(self.done):
            if owner.__dict__.get(name) is not new:
                continue
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        del self.done[:]


patches = Patches()
_nrg.connect(state=state, table=_names.table, tensor=torch.Tensor, carrier=torch.empty(0),
             grad_enabled=torch.is_grad_enabled, make_thread=Thread, unknown=_unknown, compiled=_compiled,
             enter=_enter, leave=_leave, begin_engine=_backward.begin_engine, cuda_mark=cuda.mark, trouble=trouble)


def switch_on():
    if patches.done or _nrg.around is None:  # without the extension nothing can be marked
        return
    skip_frames(__package__)
    before = nn.Module.__call__
    patches.replace(nn.Module, "__call__", _nrg.around_module(before))
    short_cut(before, nn.Module.__call__)
    _loader.patch(patches)
    _optimizer.patch(patches)
    patches.stop_waiting = _generate.patch(patches)
    state.troubles = 0
    state.on = True
    atexit.register(switch_off)  # what the interpreter takes apart at its end must not call us


def finish():
    """Closes what this thread has open and places what the GPUs have done."""
    if state.on:
        _loop.close_all(this_thread())
    if state.cuda:
        cuda.finish()


before_stop.append(finish)  # of a recorder in this process


def switch_off():
    if not patches.done:
        return
    atexit.unregister(switch_off)
    finish()
    state.on = False
    call = nn.Module.__call__
    patches.restore()
    short_cut(call, nn.Module.__call__)
