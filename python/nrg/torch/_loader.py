"""DataLoaders: the phase "dataloader.next", and which batches a loop has handed out (_loop.py, _batch.py).

What a data set, a sampler or a collator does while a batch is fetched, calls of models and other loaders included, is part of
fetching it: no loop of the program's.
"""
import functools
import weakref
from collections import deque

from torch.utils.data import dataloader

from .. import _nrg
from . import _batch, _cached, _loop
from ._state import listening, name_id, state, this_thread, weak

chosen = weakref.WeakKeyDictionary()  # iterator of a DataLoader: sizes of the batches to come


# What is done before and after the methods of DataLoader and its iterators (_wrapper.c). A function that
# is called before returns what the one after it needs; None: that one is not called.

def _before_iter(args, kwargs):
    if not listening():
        return None
    thread, loader = this_thread(), args[0]
    kept = getattr(loader, "_iterator", None)  # workers persist: a new round of the same
    if kept is not None:
        chosen.pop(kept, None)
    outer, thread.fetching = thread.fetching, True
    return thread, outer, weak(loader)


def _after_iter(token, iterator, error):
    thread, thread.fetching, loader = token
    if error is not None or thread.fetching or thread.in_call:
        return
    _cached.leave(thread)
    _loop.settle(thread)
    for loop in list(thread.loops):  # a new round ends the one before
        if loop.iterator() is iterator or loop.loader() is loader():
            _loop.end_loop(thread, loop)
    _loop.end_exhausted(thread)
    if not thread.frames:
        thread.steps_off = False
    last = thread.loops[-1] if thread.loops else None
    beside = last if last is not None and last.level is None and not last.batches else None
    gone = functools.partial(_gone, thread)
    thread.loops.append(_loop.Loop(weak(iterator, gone), loader, _loop.foreign(thread), beside, _chosen_of(iterator)))


def _gone(thread, reference):
    """The iterator was dropped, by a break perhaps. At the end of the interpreter there is nothing to be done."""
    loop = next((loop for loop in thread.loops if loop.iterator is reference), None)
    if loop is None or _is_ahead(loop):
        return
    if state.on and thread is this_thread() and not thread.in_backward:
        _loop.end_loop(thread, loop)
    else:
        loop.over = True
        thread.loops.remove(loop)


def _is_ahead(loop):
    """True where a prefetcher has batches that are not used yet. The last of an evaluation is, when a model was called for it. Before
    any call all batches were kept, list(loader): what is done with them is no round over the loader."""
    used = 1 if loop.called is not None else 0
    return loop.exhausted and loop.level is not None and len(loop.batches) > used and any(batch.is_alive() for batch in loop.batches)


def _loop_of(thread, iterator):
    return next((loop for loop in thread.loops if loop.iterator() is iterator), None)


def _before_next(args, kwargs):
    if not listening():
        return None
    thread = this_thread()
    outer, loop = thread.fetching, None
    if not outer:
        _cached.leave(thread)
        loop = _loop_of(thread, args[0])
    if thread.frames and not outer:
        _before_batch(thread, loop)
    level = _nrg.depth()
    _nrg.begin(name_id("dataloader.next", "phase"))
    thread.fetching = True
    return thread, outer, args[0], loop, level


def _before_batch(thread, loop):
    _loop.settle(thread)
    if loop is not None:
        _loop.evaluated(loop)
    step = _loop.step_of(thread)
    if step is not None and step.stepped and not thread.in_call and not thread.stepping:
        _loop.end_step(thread, step)
    _loop.end_exhausted(thread, loop)
    thread.counted = None
    _loop.doubt(thread, None)


def _after_next(token, batch, error):
    thread, thread.fetching, iterator, loop, level = token
    _nrg.unwind(level)
    if loop is None:
        return
    if error is None:
        _loop.hand(loop, _batch.Handed(iterator, loop.chosen.popleft() if loop.chosen else None, batch))
    elif isinstance(error, StopIteration):
        loop.exhausted = True
        if not loop.batches:
            _loop.end_loop(thread, loop)


def _chosen_of(iterator):
    return chosen.setdefault(iterator, deque())


def _before_index(args, kwargs):
    """A batch sampler is asked for a batch, which is handed out in its turn; with workers long before."""
    return args[0] if listening() else None


def _after_index(iterator, indices, error):
    if error is None:
        _chosen_of(iterator).append(_batch.of_indices(iterator, indices))


def patch(patches):
    base = dataloader._BaseDataLoaderIter
    for owner, name, before, after in ((dataloader.DataLoader, "__iter__", _before_iter, _after_iter),
                                       (base, "__next__", _before_next, _after_next),
                                       (base, "_next_index", _before_index, _after_index)):
        if name in owner.__dict__:
            patches.replace(owner, name, _nrg.around(owner.__dict__[name], before, after))
