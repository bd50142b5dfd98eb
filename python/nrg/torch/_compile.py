"""Keeping out of the way of torch.compile.

Its front end looks at every Python frame that runs inside of a compiled program. Functions in PyTorch's own
files are passed over; ours must be too, or each would become a compiled frame. What stands in the place of
PyTorch's functions (_wrapper.c) tells it to trace the original instead.
"""
import sys
import types

import torch


def short_cut(before, now):
    """Modules whose __call__ is the one that was there when it was imported, are traced by a shorter way."""
    for name in ("torch._dynamo.utils", "torch._dynamo.variables.nn_module"):
        module = sys.modules.get(name)
        if getattr(module, "unpatched_nn_module_call", None) is before:
            module.unpatched_nn_module_call = now


def _codes(code, found):
    found.append(code)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            _codes(inner, found)
    return found


def _functions(module):
    for thing in list(vars(module).values()):
        if isinstance(thing, types.FunctionType) and thing.__module__ == module.__name__:
            yield thing
        elif isinstance(thing, type) and thing.__module__ == module.__name__:
            for member in vars(thing).values():
                if isinstance(member, types.FunctionType):
                    yield member


def _find_skip():
    """PyTorch's own way to mark a function's code, which has had two names."""
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "skip_code"):
        return frames.skip_code
    if hasattr(frames, "set_code_exec_strategy"):
        action = frames._FrameAction
        strategy = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)
        return lambda code: frames.set_code_exec_strategy(code, strategy)
    return None


def skip_frames(package):
    """Frames of all our functions are run as they are; what they call is looked at as before."""
    skip = _find_skip()
    if skip is None:
        return
    for name, module in list(sys.modules.items()):
        if module is not None and (name == package or name.startswith(package + ".")):
            for function in _functions(module):
                for code in _codes(function.__code__, []):
                    skip(code)
