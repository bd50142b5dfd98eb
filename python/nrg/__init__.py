"""nrg: where did the joules go?

    import nrg

    with nrg.record("run.nrg") as run:
        with nrg.span("load"):
            data = load()
        for i, batch in enumerate(data):
            with nrg.span("step", kind="step", number=i):
                train(batch)
                nrg.count("samples", len(batch))
    print(run.energy(), run.table("path"))

Under `nrg run` only the spans are needed. Without a recorder they cost next to nothing, and
without libnrg the package still imports: spans then do nothing. docs/python.md is the tour.
"""
__version__ = "0.2.0"
try:
    from . import _nrg
    if _nrg.built != __version__:
        raise ImportError("%s is of nrg %s, this package of %s: install nrg again" % (_nrg.__file__, _nrg.built, __version__))
except ImportError as _error:
    from . import _absent as _nrg
    _nrg.why = str(_error)

from ._compare import Comparison, Effect, compare
from ._record import Recording, record
from ._results import Energy, Run, Table, open

Error = _nrg.Error
Span = _nrg.Span
span = _nrg.span
mark = _nrg.mark_named
count = _nrg.count_named
active = _nrg.active
_PARTS = ("gpu_load", "keras", "lightning", "tensorrt", "torch", "transformers")


def __getattr__(name):
    """`import nrg; nrg.torch.watch(model)`: parts that need other packages are imported when they are used."""
    if name in _PARTS:
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def load_ipython_extension(shell):
    """`%load_ext nrg` in a notebook: the cell magic %%nrg."""
    from . import _magic
    _magic.load(shell)


def __dir__():
    return sorted([*globals(), *_PARTS])


# Not `open`: a star import must not hide Python's own.
__all__ = ["Comparison", "Effect", "Energy", "Error", "Recording", "Run", "Span", "Table", "active", "compare", "count", "mark", "record", "span"]
