"""Operator spans: every operator that PyTorch dispatches, by a dispatch mode ("aten::addmm").

A mode belongs to a thread and must be left in the order in which it was entered, so it is entered around the
outermost call of a module, around backward() (the engine takes it along to its own threads) and around
step() of an optimizer. What a program computes outside of these has no operator spans.

A call of Python per operator costs several µs: the cost is measured once and kept in the recording as a
mark. Compiled modules run without it: torch.compile refuses to compile under a foreign mode.
"""
import functools
import time

import torch

from .. import _nrg
from ._state import local, name_id, say_once, state, trouble

begin, depth, unwind = _nrg.begin, _nrg.depth, _nrg.unwind
CALIBRATION_CALLS = 200

try:
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:  # PyTorch before 1.13
    TorchDispatchMode = None
else:
    class OperatorMode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            level = depth()
            begin(state.ids.get(func) or _number(func))
            try:
                return func(*args, **(kwargs or {}))
            finally:
                unwind(level)


def _number(func):
    schema = getattr(func, "_schema", None)
    found = state.ids[func] = name_id(schema.name if schema is not None else str(func), "operator")
    return found


def _time_per_call_ns(tensor):
    best = None
    for _ in range(3):
        before = time.perf_counter_ns()
        for _ in range(CALIBRATION_CALLS):
            torch.detach(tensor)
        took = (time.perf_counter_ns() - before) / CALIBRATION_CALLS
        best = took if best is None else min(best, took)
    return best


def calibrate():
    """ns that the mode adds to an operator: one that does nothing, with it and without."""
    tensor = torch.zeros(1)
    alone = _time_per_call_ns(tensor)
    with OperatorMode():
        seen = _time_per_call_ns(tensor)
    return max(0, int(seen - alone))


def available():
    if TorchDispatchMode is None:
        say_once("this PyTorch has no dispatch mode: no operator spans")
    return TorchDispatchMode is not None


def _state_cost():
    if not state.cost_said:
        state.cost_said = True
        text = "operator spans cost about %.1f us each" % (calibrate() / 1e3)
        _nrg.mark(_nrg.name(text, "mark", None))


def run(function, *args, **kwargs):
    """A call with its operators seen."""
    thread = local.thread
    if thread.mode is not None or not state.operators:
        return function(*args, **kwargs)
    try:
        _state_cost()
        mode = OperatorMode()
        mode.__enter__()
    except Exception:
        state.operators = False
        trouble("dispatch mode")
        return function(*args, **kwargs)
    thread.mode = mode
    try:
        return function(*args, **kwargs)
    finally:
        thread.mode = None
        mode.__exit__(None, None, None)


def _is_innermost(mode):
    dispatch = torch.utils._python_dispatch
    for name in ("_get_current_dispatch_mode", "_get_torch_dispatch_mode"):
        current = getattr(dispatch, name, None) or getattr(torch._C, name, None)
        if current is not None:
            return current() is mode
    return False


def run_without(function, *args, **kwargs):
    """A call of a compiled module: not seen, so that it stays compiled."""
    thread = local.thread
    mode = thread.mode
    if mode is None or not _is_innermost(mode):
        return function(*args, **kwargs)
    mode.__exit__(None, None, None)
    try:
        return function(*args, **kwargs)
    finally:
        mode.__enter__()


def wrap_backward(original):
    @functools.wraps(original)
    def backward(*args, **kwargs):
        if not state.on or not state.operators or not _nrg.active():
            return original(*args, **kwargs)
        return run(original, *args, **kwargs)
    return backward


def patch(patches):
    if TorchDispatchMode is not None:
        patches.replace(torch.autograd, "backward", wrap_backward(torch.autograd.backward))
