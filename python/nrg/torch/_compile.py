"""Keeping out of the way of torch.compile.

Its front end looks at every Python frame that runs inside of a compiled program. Functions in PyTorch's own
files are passed over; ours must be too, or each module's call would become a compiled frame of one and the
same function, until the limit of recompilations ends compiling altogether.
"""
import sys
import types

import torch


def _never():
    return False


def _find_compiling():
    compiler = getattr(torch, "compiler", None)
    for name in ("is_dynamo_compiling", "is_compiling"):
        if hasattr(compiler, name):
            return getattr(compiler, name)
    if hasattr(torch, "_dynamo"):  # 2.0
        return torch._dynamo.is_compiling
    return _never


compiling = _find_compiling()


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
