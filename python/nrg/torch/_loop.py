"""Steps, epochs and samples, when the usual training loop is seen.

  training    a call of a model in training mode, with gradients, on a thread that has an optimizer. Where a step() shows that a call
              before it was for training all the same (frozen batch norms, an optimizer of another thread), that model is remembered.
  step        begins with the first call for training, ends when its optimizers have made their step() (_optimizer.py). Numbered.
  epoch       one round over a DataLoader, from the first call of a model that belongs to it to the end of its last step;
              "evaluation" when that call is not for training. Numbered, each of its own.
  phases      "dataloader.next" and "optimizer.step".
  samples     each batch that a loader hands out is counted once, where it is used: in the step that it is for, or in the
              evaluation. Its size is the loader's (_batch.py). Without a loader a call of the first model counts, in a step again only
              after a backward pass, so that several calls for one loss are one batch.

Which loop a call belongs to: a loop waits until a model is called for it. Of the loops that have batches left, a call belongs
to the innermost open one of its kind, else to the last that was begun: of loops that give batches in turns, to the one that gave the last. Prefetchers take batches before they are used, so the
end of an iterator is not the end of its loop while batches are left: the iterator's death, the end of the last step or the
next loop is. A batch of an evaluation is counted when the next one is asked for: until then a call for training may show
that it was an epoch all the same (a teacher or a frozen encoder is called first).

In a process of a distributed job these spans have the detail "rank 1 of 4": `nrg attribute` so has a row per rank,
and knows that their steps and epochs are those of one job.

These spans are opened by what the program does, not by a block of its code, so other code may have
closed them: settle() looks. A program that opens spans of its own in the body of its loop gets neither
epochs nor steps of that loop: opened inside of its spans they would be cut by their end.
"""
import functools
import itertools
import weakref
from collections import deque

import torch
from torch.utils.data import dataloader

from .. import _nrg
from . import _backward, _batch, _cached, _generate
from ._cuda import cuda
from ._state import listening, name_id, note_once, state, this_thread, weak

grad_enabled = torch.is_grad_enabled
depth, unwind = _nrg.depth, _nrg.unwind
STEPPING = -1  # Thread.counted, of a count inside of step(): a closure may be called many times


class Step:
    """An open step."""

    __slots__ = ("level", "over", "stepped")

    def __init__(self, level):
        self.level = level
        self.over = False
        self.stepped = set()  # id() of optimizers that have made their step() in it


class Loop:
    """A round over a DataLoader; an open span once a model was called for it."""

    __slots__ = ("iterator", "loader", "level", "over", "training", "foreign", "beside", "batches", "chosen", "called", "waiting", "used",
                 "exhausted", "handed")

    def __init__(self, iterator, loader, foreign, beside, chosen):
        self.iterator, self.loader = iterator, loader  # weak
        self.level = None        # of spans, before it; None: not open
        self.over = False
        self.training = False
        self.foreign = foreign   # spans that are not ours and were open when it began
        self.beside = beside     # the loop that began just before, without a batch yet: zip(a, b)
        self.batches = deque()   # those handed out and not used yet
        self.chosen = chosen     # sizes that the batch sampler has chosen
        self.called = None       # samples of a call that was not for training, since the last batch
        self.waiting = 0         # batches that there were when a helper was called
        self.used = False        # a batch of it, though it could not be opened
        self.exhausted = False
        self.handed = 0          # number of its last batch among those of all loops


class Numbers:
    def __init__(self):
        self.step = itertools.count(1).__next__
        self.epoch = itertools.count(1).__next__
        self.evaluation = itertools.count(1).__next__
        self.batch = itertools.count(1).__next__


numbers = Numbers()


def _rank():
    """Which part of a distributed job this process is; None: it is none."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() < 2:
        return None
    return "rank %d of %d" % (distributed.get_rank(), distributed.get_world_size())


def _count(samples):
    if samples:
        _nrg.count(name_id("samples", "counter"), samples)


def count_owed(thread):
    """What was used inside of step() is counted after it, in the step."""
    _count(thread.owed)
    thread.owed = 0


def _drop(thread, i):
    """Ends the frames from the i-th on, the innermost first."""
    while len(thread.frames) > i:
        frame = thread.frames[-1]
        level = frame.level
        if isinstance(frame, Loop):
            evaluated(frame)
            frame.level = None
        thread.frames.pop()
        unwind(level)


def settle(thread):
    """Forgets frames that other code has closed, and closes those that are over."""
    frames = thread.frames
    now = depth() if frames else 0
    while frames and frames[-1].level >= now:
        frame = frames.pop()
        thread.steps_off |= isinstance(frame, Step)
        if isinstance(frame, Loop):
            frame.level = None
    for i, frame in enumerate(frames):
        if frame.over:
            _drop(thread, i)
            break


def step_of(thread):
    return next((frame for frame in thread.frames if isinstance(frame, Step)), None)


def begin_step(thread):
    thread.frames.append(Step(depth()))
    _nrg.begin_numbered(name_id("step", "step", _rank()), numbers.step())


def end_step(thread, step):
    thread.counted = None
    thread.stepped_before = True
    if thread.in_call:
        step.over = True  # inside the forward of a module: when that has ended
        return
    _drop(thread, thread.frames.index(step))
    for loop in list(thread.loops):
        if loop.exhausted and loop.training and not loop.batches:
            end_loop(thread, loop)


def failed(thread):
    """An exception has left the outermost call: the step is not going to end as steps do. (Recomputing stops by one.)"""
    if _backward.inside(thread):
        return
    _cached.leave(thread)
    step = step_of(thread)
    if step is not None and not thread.stepping:
        thread.counted = None
        _drop(thread, thread.frames.index(step))


def evaluated(loop):
    """Counts the batch that an evaluation has used."""
    if loop.called is None or loop.training or loop.level is None:
        return
    if loop.batches:
        loop.batches.popleft()
    _count(loop.called)
    loop.called = None


def foreign(thread):
    return depth() - len(thread.frames)


def _is_beside(loop):
    """True of loops that are iterated over together with another one, which is taken for all of them."""
    other = loop.beside
    return other is not None and not other.over and (other.level is not None or bool(other.batches))


def find(thread, training):
    """The loop that a call belongs to, open or not; None."""
    waiting = used = None  # used: the innermost open one, where it has no batch left
    for loop in reversed(thread.loops):
        left = loop.batches and (used is None or loop.handed > used.handed)  # one around it may have given a batch since: they take turns
        if loop.level is None or (training and not loop.training):  # an evaluation holds no training
            if waiting is None and (left or (loop.used and used is None)) and not _is_beside(loop):
                waiting = loop
        elif loop.training != training:
            break
        elif left:
            return loop
        elif waiting is not None:
            break
        else:
            used = used or loop
    return waiting or used


def hand(loop, batch):
    """A batch for the loop's body. Of loops that are iterated over together it is one of several, in turns the only one."""
    if loop.beside is not None and not loop.beside.batches:
        loop.beside = None
    loop.batches.append(batch)
    loop.handed = numbers.batch()


def _end_evaluations(thread, found):
    """Before a call for training. That of `found` was none."""
    for i, frame in enumerate(thread.frames):
        if isinstance(frame, Loop) and not frame.training:
            if found is not None:
                found.called = None
            _drop(thread, i)
            return


def _is_trained(module, optimizers):
    trained = {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
    return any(id(p) in trained for p in module.parameters())


def _may_be_helper(thread, entry, module):
    """True where a model that nobody trains is called beside one that is: a teacher, a frozen encoder, a copy."""
    optimizers = state.optimizers.get(thread.ident)
    return bool(optimizers) and not entry.has_loops and not _is_trained(module, optimizers)


def _open(thread, loop, training):
    if foreign(thread) != loop.foreign:  # spans of the program itself, opened in the body of the loop
        thread.steps_off = True
        return
    loop.level, loop.training = depth(), training
    loop.used, loop.waiting = False, 0
    thread.frames.append(loop)
    if training:
        _nrg.begin_numbered(name_id("epoch", "epoch", _rank()), numbers.epoch())
    else:
        _nrg.begin_numbered(name_id("evaluation", "phase", _rank()), numbers.evaluation())


def enter_training(thread, loop):
    """Opens the loop and a step of it, where they are not."""
    _end_evaluations(thread, loop)
    if thread.stepping or thread.steps_off or step_of(thread) is not None:
        return
    if loop is not None and loop.level is None:
        _open(thread, loop, True)
    if not thread.steps_off:
        begin_step(thread)


def _peek(loop, entry, module, args, kwargs):
    """Samples of the batch that a call is for, the first that is left; 0: there is none."""
    if loop is not None:
        _batch.drop_skipped(loop.batches, args, kwargs)
        samples = loop.batches[0].samples if loop.batches else 0
        if samples is not None:
            return samples
    return _batch.of_arguments(entry, module, args, kwargs)


def _take(loop, entry, module, args, kwargs):
    """The same, and the batch is used."""
    samples = _peek(loop, entry, module, args, kwargs)
    if loop is not None and loop.batches:
        loop.batches.popleft()
        loop.used = loop.level is None
    return samples


def reveal(thread, optimizer):
    """Before step(), which may show that a call was for training."""
    if thread.unsure is None or step_of(thread) is not None:
        return
    loop, entry, samples = thread.unsure
    module = entry.ref()
    if module is None or not _is_trained(module, [optimizer]):
        return
    thread.unsure = None
    _is_for_training(thread, entry, module)
    loop = loop if loop is not None and not loop.over else None
    enter_training(thread, loop)
    if loop is not None and loop.batches:
        loop.batches.popleft()
    _count(samples)


def _is_for_training(thread, entry, module):
    entry.has_loops = True
    entry.trained = not module.training
    doubt(thread, None)
    thread.since = ()


def _train(thread, entry, module, args, kwargs):
    """Before a call for training."""
    _is_for_training(thread, entry, module)
    loop = find(thread, True)
    enter_training(thread, loop)
    step = step_of(thread)
    if step is not None and step.stepped:
        return
    if entry.wants_backward and thread.counted in (thread.backwards, STEPPING):
        return
    thread.owed += _take(loop, entry, module, args, kwargs)
    thread.counted = STEPPING if thread.stepping else thread.backwards
    if not thread.stepping:
        count_owed(thread)


def _use(thread, entry, module, args, kwargs):
    """Before a call that is not for training."""
    loop = find(thread, False)
    if loop is None:
        _use_without_loop(thread, entry, module, args, kwargs)
        return
    if loop.level is None and _waits(thread, loop, entry, module):
        return
    if loop.level is None and not thread.steps_off:
        _open_evaluation(thread, loop, entry)
    if loop.level is None:  # inside of a span of the program's own
        _count(_take(loop, entry, module, args, kwargs))
    elif loop.called is None:
        loop.called = _peek(loop, entry, module, args, kwargs)
        doubt(thread, (loop, entry, loop.called))


def doubt(thread, call):
    """Remembers a call that may be for training after all, or None. The one before was not."""
    if thread.unsure is not None and thread.unsure[0] is None:
        _note_unfiled()
    thread.unsure = call if grad_enabled() else None


def _waits(thread, loop, entry, module):
    """True at the first batch of a model that may be a helper: a call for training may follow."""
    if loop.waiting:
        return len(loop.batches) == loop.waiting
    loop.waiting = len(loop.batches) if _may_be_helper(thread, entry, module) else 0
    return loop.waiting > 0


def _open_evaluation(thread, loop, entry):
    waited = loop.waiting
    _open(thread, loop, False)
    entry.has_loops = True
    if waited and loop.level is not None:  # the first batch was for it, too
        _count(loop.batches.popleft().samples)


def _note_unfiled():
    note_once("unfiled", lambda: "a model was called beside a training, neither for it nor for an evaluation over a DataLoader of several "
              "batches: samples of such calls are not counted")


def _use_without_loop(thread, entry, module, args, kwargs):
    if thread.frames or thread.stepped_before or state.optimizers.get(thread.ident):  # the program's energy is not that of these calls
        if (entry.main or entry.has_loops) and grad_enabled():
            doubt(thread, (None, entry, _batch.of_arguments(entry, module, args, kwargs)))
        elif entry.main or entry.has_loops:
            _note_unfiled()
    elif entry.main:
        _count(_take(None, entry, module, args, kwargs))


def outermost(thread, entry, module, args, kwargs):
    """Before a call of a module that no other module makes."""
    if _backward.inside(thread):
        return
    if thread.frames:
        settle(thread)
    cuda.look()
    if thread.generation is not None:
        _generate.before_pass(thread.generation, module, args, kwargs)
    if not entry.params or thread.fetching or module.__dict__.get("_is_replica"):
        return
    if (module.training or entry.trained) and grad_enabled() and state.optimizers.get(thread.ident):
        _cached.leave(thread)
        _train(thread, entry, module, args, kwargs)
    elif thread.generation is None and not _cached.before_call(thread, module, args, kwargs):
        _use(thread, entry, module, args, kwargs)


def end_exhausted(thread, going_on=None):
    """Another loop begins or goes on: what a prefetcher had left is used, or is not going to be."""
    if step_of(thread) is not None:
        return
    beside = going_on.beside if going_on is not None else None
    for loop in list(thread.loops):
        if loop.exhausted and loop is not going_on and loop is not beside:
            end_loop(thread, loop)


def end_loop(thread, loop):
    loop.over = True
    if loop in thread.loops:
        thread.loops.remove(loop)
    if loop.waiting:
        _note_unfiled()
    if loop.level is not None and not thread.in_call:
        settle(thread)


def close_all(thread):
    thread.close_all()
    _cached.leave(thread)
    settle(thread)
    if thread.frames:
        _drop(thread, 0)
    del thread.loops[:]
