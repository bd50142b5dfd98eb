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


class State:
    """One per process."""

    def __init__(self):
        self.on = False          # a model is watched, and the patches are in place
        self.everything = False  # install(): every module, not only those of watched models
        self.backward = True     # for modules not named in watch()
        self.operators = False
        self.troubles = 0
        self.said = set()
        self.optimizers = {}     # thread: weak set of those made or used on it
        self.ids = {}            # numbers of names, valid while the process lives
        self.cost_said = False   # of this recording: what an operator's span costs
        self.generation = None


class Thread:
    """One per thread: what it has open."""

    __slots__ = ("call", "open", "hooked", "frames", "pending", "stepping", "owner", "steps_off",
                 "mode", "quiet", "ident")

    def __init__(self):
        self.ident = threading.get_ident()
        self.mode = None       # the dispatch mode of _operators.py, where it is entered
        self.quiet = False     # nrg itself calls the model
        self.reset()

    def reset(self):
        self.call = None       # the module call that is running (_backward.Call)
        self.open = []         # (Call, depth) of backward spans, outermost first
        self.hooked = {}       # autograd nodes that carry a hook of ours (_backward.py)
        self.frames = []       # open loops and steps (_loop.py), outermost first
        self.pending = []      # iterators of data loaders before the first call of a model
        self.stepping = False  # inside optimizer.step()
        self.owner = None      # weak: the optimizer whose step() ends a step
        self.steps_off = False


class Local(threading.local):
    def __init__(self):
        self.thread = Thread()


state = State()
local = Local()
lock = threading.RLock()
_generation = getattr(_nrg, "generation", None)


def after_fork():
    """The child has rings of its own and nothing open in them."""
    local.thread = Thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)


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
        state.cost_said = False
        local.thread.reset()
    return True


def weak(target, callback=None):
    try:
        return weakref.ref(target, callback)
    except TypeError:
        return lambda: target


def say_once(line):
    if line in state.said:
        return
    state.said.add(line)
    try:
        sys.stderr.write("nrg: " + line + "\n")
    except (OSError, ValueError, AttributeError):
        pass  # a closed stderr must not stop the program


def trouble(where):
    """An exception in our own code, called while it is handled."""
    state.troubles += 1
    if os.environ.get("NRG_DEBUG"):
        import traceback
        sys.stderr.write("nrg: %s: %s" % (where, traceback.format_exc()))
    if state.troubles >= MAX_TROUBLES:
        state.on = False
