"""Optimizers: the phase "optimizer.step", and where steps end.

A step ends with the step() of its optimizer. Of several all must have made theirs, or the next batch is asked for: adversarial
training steps one after the other, and some models have one optimizer for matrices and one for the rest. Which ones take part is
seen in the first step over a DataLoader. Without a loader each step() ends a step, but for optimizers that are seen to follow
each other without a call of a model between. A GradScaler that found infinities does not call step(): the step ends all the same.
"""
import gc
import weakref

import torch
from torch.optim import Optimizer

from .. import _nrg
from . import _backward, _loop, _operators
from ._cuda import cuda
from ._state import listening, name_id, state, this_thread


def _note(optimizer):
    """Steps are looked for on threads that have an optimizer."""
    state.optimizers.setdefault(this_thread().ident, weakref.WeakSet()).add(optimizer)


def _with(optimizers, *more):
    """Made when there is one: a set made while a model is called would be a frame for torch.compile to look at."""
    return weakref.WeakSet((*optimizers, *more))


def _before_step(args, kwargs):
    thread = this_thread()
    if not listening() or thread.stepping:  # super().step()
        return None
    optimizer = args[0]
    _note(optimizer)
    _backward.inside(thread)
    _loop.settle(thread)
    _loop.reveal(thread, optimizer)
    if _loop.step_of(thread) is None and len(thread.since) and optimizer not in thread.since:
        thread.coupled = _with(thread.coupled, optimizer, *thread.since)
    elif not thread.in_call:
        _loop.enter_training(thread, _loop.find(thread, True))
    level = _nrg.depth()
    _nrg.begin(name_id("optimizer.step", "phase", type(optimizer).__name__))
    thread.stepping = True
    return thread, optimizer, level, _operators.enter(thread)


def _after_step(token, result, error):
    thread, optimizer, level, seen = token
    if seen:
        _operators.leave(thread)
    thread.stepping = False
    _nrg.unwind(level)
    _loop.count_owed(thread)
    _stepped(thread, optimizer)
    if state.cuda:
        cuda.step()


def _others(thread, optimizer):
    """The optimizers, this one or not, that the step waits for."""
    if any(isinstance(frame, _loop.Loop) for frame in thread.frames):
        return thread.steppers if thread.stepped_before else state.optimizers[thread.ident]
    return thread.coupled if optimizer in thread.coupled else ()


def _stepped(thread, optimizer):
    step = _loop.step_of(thread)
    thread.steppers = _with(thread.steppers, optimizer)
    thread.since = _with(thread.since, optimizer)
    if step is None:
        return
    again = id(optimizer) in step.stepped
    step.stepped.add(id(optimizer))
    if again:  # the others are not going to
        thread.steppers = thread.coupled = ()
    if again or all(id(other) in step.stepped for other in _others(thread, optimizer)):
        _loop.end_step(thread, step)


def _before_scaler(args, kwargs):
    return (args[1] if len(args) > 1 else (kwargs or {}).get("optimizer")) if listening() else None


def _after_scaler(optimizer, result, error):
    thread = this_thread()
    step = _loop.step_of(thread)
    if step is not None and not thread.stepping and id(optimizer) not in step.stepped:
        _stepped(thread, optimizer)


def _patch_scalers(patches):
    found = [getattr(torch, "amp", None), getattr(torch.cuda, "amp", None)]
    for scaler in {getattr(place, "GradScaler", None) for place in found} - {None}:
        if "step" in scaler.__dict__:
            patches.replace(scaler, "step", _nrg.around(scaler.__dict__["step"], _before_scaler, _after_scaler))


class Optimizers:
    """Wraps step() of optimizer classes when the first of a class is made. PyTorch does so too, for its
    profiler, and leaves the mark `hooked`: such a class is in use already."""

    def __init__(self, patches):
        self.patches = patches
        used = [cls for cls in _subclasses(Optimizer)
                if getattr(cls.__dict__.get("step"), "hooked", False)]
        for cls in used:
            self.wrap(cls)
        for thing in gc.get_objects() if used else ():
            if issubclass(type(thing), Optimizer):
                _note(thing)
        patches.replace(Optimizer, "__init__", _nrg.around(Optimizer.__init__, self.before_init, self.after_init))

    def wrap(self, cls):
        step = cls.__dict__.get("step")
        if callable(step) and not hasattr(step, "nrg_wraps") and cls is not Optimizer:
            self.patches.replace(cls, "step", _nrg.around(step, _before_step, _after_step))

    def before_init(self, args, kwargs):
        return args[0]

    def after_init(self, optimizer, result, error):
        if error is None:
            for cls in type(optimizer).__mro__:
                if issubclass(cls, Optimizer):
                    self.wrap(cls)
            _note(optimizer)


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def patch(patches):
    _patch_scalers(patches)
    Optimizers(patches)
