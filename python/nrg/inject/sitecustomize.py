"""Found by Python at start because `nrg run --torch` puts this folder first in PYTHONPATH.

It hides the folder again, lets the sitecustomize run that would have been found without it, and waits
for PyTorch to be imported (_nrg_inject.py). Any Python may read this file, also very old ones, so it
has no syntax that they lack. Nothing here may fail: the program is not ours.
"""
import os
import sys


def _hide():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here or not p]
    return here


def _arm():
    if sys.version_info < (3, 8) or not os.environ.get("NRG_TORCH") or not os.environ.get("NRG_SPANS"):
        return
    try:
        import _nrg_inject
        _nrg_inject.arm()
    except Exception:
        if os.environ.get("NRG_DEBUG"):
            import traceback
            sys.stderr.write("nrg: sitecustomize: " + traceback.format_exc())


def _other_exists():
    if sys.version_info[0] < 3:
        import imp
        try:
            imp.find_module("sitecustomize")
        except ImportError:
            return False
        return True
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if find is not None and find("sitecustomize", None) is not None:
            return True
    return False


def _chain():
    """The program's or the distribution's own; what it raises is handled as it would have been."""
    if not _other_exists():
        return
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    finally:
        if "sitecustomize" not in sys.modules and ours is not None:
            sys.modules["sitecustomize"] = ours


_arm()
_hide()
_chain()
