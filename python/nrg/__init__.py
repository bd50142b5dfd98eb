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
try:
    from . import _nrg
except ImportError as _error:
    from . import _absent as _nrg
    _nrg.why = str(_error)

from ._record import Recording, record
from ._results import Energy, Run, Table, open

Error = _nrg.Error
Span = _nrg.Span
span = _nrg.span
__version__ = "0.1.0"
# Not `open`: a star import must not hide Python's own.
__all__ = ["Energy", "Error", "Recording", "Run", "Span", "Table", "active", "count", "mark", "record", "span"]

_names = {}  # (text, kind): number of the name, in the generation under None


def _name(text, kind):
    if _names.get(None) != _nrg.generation():
        _names.clear()
        _names[None] = _nrg.generation()
    number = _names.get((text, kind))
    if not number:
        number = _nrg.name(text, kind)
        if number and len(_names) < 4096:
            _names[text, kind] = number
    return number


def active() -> bool:
    """True while a recorder listens to this process."""
    return _nrg.active()


def mark(name: str) -> None:
    """Something that happened now."""
    if _nrg.active():
        _nrg.mark(_name(name, "mark"))


def count(name: str, amount: int = 1) -> None:
    """Work done: tokens, samples, requests. Adds up; reports give joules per unit."""
    if _nrg.active():
        _nrg.count(_name(name, "counter"), int(amount))
