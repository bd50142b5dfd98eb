"""Steps, epochs and samples, when the usual training loop is seen.

  training    a call of a model in training mode, with gradients, on a thread that has an optimizer.
  step        begins with the first call for training, ends with the end of the optimizer's step(). Of several
              optimizers the first whose step() is called decides. Numbered.
  epoch       one iteration over a DataLoader, from the first call of a model in it to its end; "evaluation"
              when that call is not for training. Numbered, each of its own.
  phases      "dataloader.next" and "optimizer.step".
  samples     counted at calls of the first model: the first dimension of its first tensor.

In a process of a distributed job these spans have the detail "rank 1 of 4": `nrg attribute` so has a row per rank,
and knows that their steps and epochs are those of one job.

These spans are opened by what the program does, not by a block of its code, so other code may have
closed them: settle() looks. A program that opens spans of its own in the body of its loop gets neither
epochs nor steps of that loop: opened inside of its spans they would be cut by their end.
"""
import functools
import gc
import itertools
import weakref

import torch
from torch.optim import Optimizer
from torch.utils.data import dataloader

from .. import _nrg
from . import _backward, _cached, _generate, _operators
from ._cuda import cuda
from ._state import listening, name_id, state, this_thread, weak

Tensor = torch.Tensor
grad_enabled = torch.is_grad_enabled
depth, unwind = _nrg.depth, _nrg.unwind


class Frame:
    """An open loop or step."""

    __slots__ = ("level", "loop", "over")

    def __init__(self, level, loop=None):
        self.level = level
        self.loop = loop  # weak: the iterator; None: a step
        self.over = False


class Numbers:
    def __init__(self):
        self.step = itertools.count(1).__next__
        self.epoch = itertools.count(1).__next__
        self.evaluation = itertools.count(1).__next__


numbers = Numbers()


def _rank():
    """Which part of a distributed job this process is; None: it is none."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() < 2:
        return None
    return "rank %d of %d" % (distributed.get_rank(), distributed.get_world_size())


def _drop(thread, i):
    """Ends the frames from the i-th on."""
    level = thread.frames[i].level
    del thread.frames[i:]
    unwind(level)


def settle(thread):
    """Forgets frames that other code has closed, and closes those that are over."""
    frames = thread.frames
    now = depth() if frames else 0
    while frames and frames[-1].level >= now:
        thread.steps_off |= frames.pop().loop is None
    for i, frame in enumerate(frames):
        if frame.over:
            _drop(thread, i)
            break


def _in_step(thread):
    return any(frame.loop is None for frame in thread.frames)


def _begin_step(thread):
    thread.frames.append(Frame(depth()))
    _nrg.begin_numbered(name_id("step", "step", _rank()), numbers.step())


def _end_step(thread):
    for i, frame in enumerate(thread.frames):
        if frame.loop is None:
            if not thread.in_call:
                _drop(thread, i)
            else:
                frame.over = True  # inside the forward of a module: when that has ended
            break
    if state.cuda:
        cuda.step()


def failed(thread):
    """An exception has left the outermost call: the step is not going to end as steps do."""
    _cached.leave(thread)
    if not thread.stepping:
        for i, frame in enumerate(thread.frames):
            if frame.loop is None:
                _drop(thread, i)
                break


def _begin_loop(thread, training):
    waiting = [(loop, level) for loop, level in thread.pending if loop() is not None]
    del thread.pending[:]
    if not waiting:
        return
    loop, level = waiting[0]
    if depth() != level:  # spans of the program itself, opened in the body of the loop
        thread.steps_off = True
        return
    thread.frames.append(Frame(level, loop))
    if training:
        _nrg.begin_numbered(name_id("epoch", "epoch", _rank()), numbers.epoch())
    else:
        _nrg.begin_numbered(name_id("evaluation", "phase", _rank()), numbers.evaluation())


def outermost(thread, entry, module, args, kwargs):
    """Before a call of a module that no other module makes."""
    if _backward.inside(thread):
        return
    if thread.frames:
        settle(thread)
    cuda.look()
    if thread.generation is not None:
        _generate.before_pass(thread.generation, module, args, kwargs)
    if not entry.params or module.__dict__.get("_is_replica"):
        return
    training = module.training and grad_enabled() and bool(state.optimizers.get(thread.ident))
    if training:
        _cached.leave(thread)
    if thread.pending:
        _begin_loop(thread, training)
    cached = not training and thread.generation is None and _cached.before_call(thread, module, args, kwargs)
    if training and not thread.stepping and not thread.steps_off and not _in_step(thread):
        _begin_step(thread)
    if entry.main and thread.generation is None and not cached:
        samples = batch_size(args, kwargs)
        if samples:
            _nrg.count(name_id("samples", "counter"), samples)


def batch_size(args, kwargs):
    """The first dimension of the first tensor; the length of a list of images; 0: unknown."""
    for values in (args, kwargs.values()):
        for value in values:
            n = _batch_of(value)
            if n:
                return n
    return 0


def _batch_of(value):
    if isinstance(value, Tensor):
        return int(value.shape[0]) if value.dim() else 0
    if hasattr(value, "batch_sizes"):  # a PackedSequence
        return int(value.batch_sizes[0])
    if isinstance(value, dict):
        value = tuple(value.values())
    if not isinstance(value, (tuple, list)) or not value:
        return 0
    if isinstance(value, list) and all(isinstance(v, Tensor) and v.dim() == 3 for v in value):
        return len(value)
    return next((int(v.shape[0]) for v in value if isinstance(v, Tensor) and v.dim()), 0)


def loop_started(thread, loop):
    for i, frame in enumerate(thread.frames):
        if frame.loop is not None and frame.loop() is loop:  # workers persist: a new round of the same
            _drop(thread, i)
            break
    if not thread.in_call:
        if not thread.frames:
            thread.steps_off = False
        thread.pending.append((weak(loop, functools.partial(_loop_gone, thread)), depth()))


def _loop_gone(thread, reference):
    """The iterator was dropped, by a break perhaps. At the end of the interpreter there is nothing to be done."""
    for frame in thread.frames:
        if frame.loop is reference:
            frame.over = True
            if state.on and thread is this_thread() and not thread.in_call and not thread.in_backward:
                settle(thread)
            return


def loop_ended(thread, loop):
    thread.pending[:] = [p for p in thread.pending if p[0]() is not loop]
    for frame in thread.frames:
        if frame.loop is not None and frame.loop() is loop:
            frame.over = True
            if not thread.in_call:
                settle(thread)
            return


def close_all(thread):
    thread.close_all()
    _cached.leave(thread)
    settle(thread)
    if thread.frames:
        _drop(thread, 0)
    del thread.pending[:]


# What is done before and after the methods of DataLoader, its iterators and optimizers (_wrapper.c). A function that
# is called before returns what the one after it needs; None: that one is not called.

def _before_iter(args, kwargs):
    return True if listening() else None


def _after_iter(_, loop, error):
    if error is None:
        thread = this_thread()
        _cached.leave(thread)
        settle(thread)
        loop_started(thread, loop)


def _before_next(args, kwargs):
    if not listening():
        return None
    _cached.leave(this_thread())
    level = depth()
    _nrg.begin(name_id("dataloader.next", "phase"))
    return args[0], level


def _after_next(token, batch, error):
    loop, level = token
    unwind(level)
    if isinstance(error, StopIteration):
        loop_ended(this_thread(), loop)


def _note(optimizer):
    """Steps are looked for on threads that have an optimizer."""
    state.optimizers.setdefault(this_thread().ident, weakref.WeakSet()).add(optimizer)


def _may_step(thread, optimizer):
    """True when the end of this optimizer's step() is the end of a step."""
    _note(optimizer)
    if thread.owner is None or thread.owner() is None:
        thread.owner = weak(optimizer)
    return thread.owner() is optimizer


def _before_step(args, kwargs):
    thread = this_thread()
    if not listening() or thread.stepping:  # super().step()
        return None
    optimizer = args[0]
    _backward.inside(thread)
    settle(thread)
    owner = _may_step(thread, optimizer)
    if owner and not thread.in_call and not thread.steps_off and not _in_step(thread):
        _begin_step(thread)
    level = depth()
    _nrg.begin(name_id("optimizer.step", "phase", type(optimizer).__name__))
    thread.stepping = True
    return thread, owner, level, _operators.enter(thread)


def _after_step(token, result, error):
    thread, owner, level, seen = token
    if seen:
        _operators.leave(thread)
    thread.stepping = False
    unwind(level)
    if owner:
        _end_step(thread)


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
    base = dataloader._BaseDataLoaderIter
    patches.replace(dataloader.DataLoader, "__iter__",
                    _nrg.around(dataloader.DataLoader.__iter__, _before_iter, _after_iter))
    patches.replace(base, "__next__", _nrg.around(base.__next__, _before_next, _after_next))
    Optimizers(patches)
