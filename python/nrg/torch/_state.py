"""What the parts of nrg.torch share: whether they are at work, the recorder's numbers of names, and
one small state per thread.

Spans nest per thread, so everything that is open is known per thread. The parts never end "the last
span": they keep the depth that they began at and unwind to it, so that a span which other code left
open or has closed already can't shift the others.

Nothing here may harm the program that is measured: trouble() swallows what goes wrong in our own code
(NRG_DEBUG=1 shows it) and switches everything off when it goes wrong often.
"""
import os
import sys
import threading
import weakref

from .. import _nrg

MAX_TROUBLES = 10


class State(_nrg.State):
    """One per process. `on`: a model is watched, and the wrappers are in place; `cuda`: a GPU is at work."""

    def __init__(self):
        self.on = self.cuda = False
        self.everything = False  # install(): every module, not only those of watched models
        self.backward = True     # for modules not named in watch()
        self.operators = False
        self.troubles = 0
        self.noted = set()       # of this recording: what nrg has to say about it
        self.optimizers = {}     # thread: weak set of those made or used on it
        self.ids = {}            # numbers of names, valid while the process lives
        self.generation = None


class Thread(_nrg.Thread):
    """One per thread: what it has open. The calls of modules are the extension's (in_call, in_backward, entry)."""

    __slots__ = ("frames", "loops", "fetching", "stepping", "steppers", "coupled", "since", "stepped_before", "counted", "owed", "backwards",
                 "unsure", "steps_off", "mode", "paused", "quiet", "ident", "generation", "generations", "cached")

    def __init__(self):
        self.ident = threading.get_ident()
        self.mode = None       # the dispatch mode of _operators.py, where it is entered
        self.paused = False    # a compiled module runs without that mode
        self.quiet = False     # nrg itself calls the model
        self.generations = 0   # calls of generate() that have begun
        self.reset()

    def reset(self):
        self.clear()
        self.frames = []       # open loops and steps (_loop.py), outermost first
        self.loops = []        # rounds over data loaders, in the order of their begin, open or not yet
        self.fetching = False  # inside of a data loader
        self.stepping = False  # inside optimizer.step()
        self.steppers = ()     # optimizers that have made a step(), weak (_optimizer.py)
        self.coupled = ()      # those of them that follow each other
        self.since = ()        # those that have, since a model was called for training
        self.stepped_before = False  # a step has ended
        self.backwards = 0     # passes that have begun
        self.counted = None    # `backwards` when samples were counted in this step, for this batch
        self.owed = 0          # samples used inside of optimizer.step()
        self.unsure = None     # a call with gradients that was not taken for training: its loop, entry and samples
        self.steps_off = False
        self.generation = None  # a call of generate() that the thread is in (_generate.py)
        self.cached = None      # a loop with a KV cache (_cached.py)


state = State()
this_thread = _nrg.thread
lock = threading.RLock()
_generation = getattr(_nrg, "generation", None)


if hasattr(os, "register_at_fork"):  # the child has rings of its own and nothing open in them
    os.register_at_fork(after_in_child=_nrg.drop_thread)


def name_id(text, kind, detail=None):
    """The number of a name; asked for once."""
    key = (text, kind, detail)
    found = state.ids.get(key)
    if found is None:
        found = state.ids[key] = _nrg.name(text, kind, detail)
    return found


def listening():
    """True when a recorder listens. What the thread had open belongs to the recorder before."""
    if not _nrg.active():
        state.generation = None
        return False
    now = _generation() if _generation else 0
    if now != state.generation:
        state.generation = now
        state.noted.clear()
        this_thread().reset()
    return True


def weak(target, callback=None):
    try:
        return weakref.ref(target, callback)
    except TypeError:
        return lambda: target


def note_once(key, text):
    """A mark in the recording, which `nrg attribute` shows as a note: what is printed here would be taken for the
    program's own. `text` is called once."""
    if key not in state.noted:
        state.noted.add(key)
        _nrg.mark(_nrg.name(text(), "mark", "nrg"))


def trouble(where, error):
    """An exception in our own code."""
    state.troubles += 1
    if os.environ.get("NRG_DEBUG"):
        import traceback
        sys.stderr.write("nrg: %s: %s" % (where, "".join(traceback.format_exception(type(error), error,
                                                                                    error.__traceback__))))
    if state.troubles >= MAX_TROUBLES:
        state.on = False
