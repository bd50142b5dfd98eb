"""Operator spans: every operator that PyTorch dispatches, by a dispatch mode ("aten::addmm").

A mode belongs to a thread and must be left in the order in which it was entered, so it is entered around the
outermost call of a module, around backward() (the engine takes it along to its own threads) and around
step() of an optimizer. What a program computes outside of these has no operator spans.

A call of Python per operator costs several µs: the cost is measured once and kept in the recording as a
mark. Compiled modules run without it: torch.compile refuses to compile under a foreign mode.
"""
import time

import torch

from .. import _nrg
from ._state import name_id, note_once, state, this_thread, trouble

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
        note_once("mode", lambda: "this PyTorch has no dispatch mode: no operator spans")
    return TorchDispatchMode is not None


def _cost():
    return "operator spans cost about %.1f us each" % (calibrate() / 1e3)


def enter(thread):
    """From here on the thread's operators are seen. False: they are already, or are not wanted."""
    if thread.mode is not None or not state.operators:
        return False
    try:
        note_once("operators", _cost)
        mode = OperatorMode()
        mode.__enter__()
    except Exception as error:
        state.operators = False
        trouble("dispatch mode", error)
        return False
    thread.mode = mode
    return True


def leave(thread):
    mode, thread.mode = thread.mode, None
    if mode is not None:
        mode.__exit__(None, None, None)


def _is_innermost(mode):
    dispatch = torch.utils._python_dispatch
    for name in ("_get_current_dispatch_mode", "_get_torch_dispatch_mode"):
        current = getattr(dispatch, name, None) or getattr(torch._C, name, None)
        if current is not None:
            return current() is mode
    return False


def pause(thread):
    """Before a call of a compiled module: not seen, so that it stays compiled."""
    if thread.mode is not None and not thread.paused and _is_innermost(thread.mode):
        thread.mode.__exit__(None, None, None)
        thread.paused = True


def resume(thread):
    if thread.paused:
        thread.paused = False
        thread.mode.__enter__()


def _before_backward(args, kwargs):
    thread = this_thread()
    return thread if state.operators and _nrg.active() and enter(thread) else None


def _after_backward(thread, result, error):
    leave(thread)


def patch(patches):
    """Only where operators are asked for: nothing else needs it."""
    if state.operators and not hasattr(torch.autograd.backward, "nrg_wraps"):
        patches.replace(torch.autograd, "backward",
                        _nrg.around(torch.autograd.backward, _before_backward, _after_backward))
