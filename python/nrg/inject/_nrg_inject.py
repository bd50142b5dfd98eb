"""Runs nrg.torch.install() right after the program has imported PyTorch; nrg itself never imports it.

A finder at the head of sys.meta_path waits for the name "torch" (and nrg.torch for one of transformers'), takes itself away,
and has the true finder answer. The loader found is the program's own; only its exec_module is ours for that one import, so nothing
is left in torch.__spec__ that was not there before.

The package nrg is the one beside this folder, loaded by its path. The name "nrg" is taken only when the
program has no module of that name; a package nrg of the program's environment that is ours too is used as it
is, so that the program's own spans and these share one state.
"""
import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PRIVATE = "_nrg_injected"


def debug(what):
    if os.environ.get("NRG_DEBUG"):
        import traceback
        sys.stderr.write("nrg: %s: %s" % (what, traceback.format_exc()))


class Waiting:
    """Finds nothing; sees what is looked for, and calls then() when the module `name` has been loaded."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def leave(self):
        """Waits no longer; False when it had ended already."""
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return False
        return True

    def find_spec(self, name, path=None, target=None):
        if name != self.name or not self.leave():
            return None
        spec = None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                break
        if spec is None:
            sys.meta_path.insert(0, self)  # it may be found later, on another path
            return None
        try:
            after(spec.loader, self.then)
        except Exception:
            debug("import of " + name)
        return spec


def after(loader, then):
    """Calls then() when the module that this loader loads has been executed."""
    execute = loader.exec_module

    def exec_module(module):
        try:
            del loader.exec_module
        except AttributeError:
            pass
        execute(module)
        then()

    loader.exec_module = exec_module


def is_ours(folder):
    return os.path.exists(os.path.join(folder, "torch", "_calls.py"))


def load(name):
    """Our package by its path, under a name."""
    import importlib.util
    spec = importlib.util.spec_from_file_location(name, os.path.join(PACKAGE, "__init__.py"),
                                                  submodule_search_locations=[PACKAGE])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return name


def package():
    """The name that our package can be imported by."""
    import importlib.util
    known = sys.modules.get("nrg")
    if known is not None:
        paths = list(getattr(known, "__path__", []))
        return "nrg" if any(is_ours(p) for p in paths) else load(PRIVATE)
    try:
        spec = importlib.util.find_spec("nrg")
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return load("nrg")
    if any(is_ours(p) for p in spec.submodule_search_locations or []):
        return "nrg"
    return load(PRIVATE)


def activate():
    try:
        import importlib
        torch = importlib.import_module(package() + ".torch")
        torch.install(operators=os.environ.get("NRG_TORCH") == "operators")
    except Exception:
        debug("torch")


def arm():
    if "torch" in sys.modules:
        activate()
    else:
        sys.meta_path.insert(0, Waiting("torch", activate))
