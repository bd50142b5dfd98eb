"""Spans for PyTorch: every call of every module, forward and backward, steps, epochs and samples.

    import nrg.torch

    with nrg.torch.watch(model):        # or watch(model) ... .remove()
        train(model)

    nrg.torch.install()                 # every model; what `nrg run --torch` does to an unchanged program

    nrg.torch.trace(model, batch, mask=mask)   # the graph, kept in the recording

    nrg.torch.measure(model, (batch,), out="net")   # each distinct part alone, until it is known to 3 %

Without a recorder nothing is recorded and calls cost next to nothing. docs/torch.md says what is marked and
by which rules.
"""
from . import _calls, _names, _operators
from ._state import lock, state

__all__ = ["Watch", "install", "measure", "trace", "uninstall", "watch"]

_watches = set()


class Watch:
    """A watched model; ends with remove(), or as a context manager."""

    def __init__(self, model, operators, backward, name):
        self.backward = backward
        self.operators = operators
        with lock:
            _watches.add(self)
            _refresh()
            _names.learn_root(model, name, self)

    def remove(self):
        with lock:
            if self not in _watches:
                return
            _watches.discard(self)
            _names.forget(self)
            _refresh()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class _Everything:
    """Stands for install() among the watches."""

    backward = True
    operators = False


_everything = _Everything()


def _refresh():
    state.everything = _everything in _watches
    state.backward = _everything.backward
    state.operators = any(watch.operators for watch in _watches) and _operators.available()
    if _watches:
        _calls.switch_on()
        if _calls.patches.done:
            _operators.patch(_calls.patches)
    else:
        _calls.switch_off()


def watch(model, operators=False, backward=True, name=None):
    """Marks the calls of `model` and of its parts. `name`: instead of the name of its class."""
    return Watch(model, operators, backward, name)


def install(operators=False, backward=True):
    """Marks the calls of all modules of this process until uninstall() or its end."""
    with lock:
        _everything.operators, _everything.backward = operators, backward
        _watches.add(_everything)
        _refresh()


def uninstall():
    """Takes back install(); watched models stay so."""
    with lock:
        _watches.discard(_everything)
        _names.forget(None)
        _refresh()


def trace(model, *args, nrg_way="auto", nrg_name=None, **kwargs):
    """Runs `model(*args, **kwargs)` once and returns its graph, and keeps it in the recording when there is
    one. The result has graph_text, format (as of `nrg graph --format`), data, save(path) and stored. nrg_way:
    "script", "export", "auto" (the first, else the second), "auto-export". nrg_name: instead of the class."""
    from . import _trace  # not needed by programs that are only watched
    return _trace.trace(model, args, kwargs, nrg_way, nrg_name)


def measure(model, args=(), kwargs=None, level="module", rel_error=0.03, out=None, name=None, round_s=0.2, limit_s=10.0,
            idle_s=2.0, sensors=None, root=None, rate=50, progress=True, compositions=0, compositions_s=300.0, seed=0):
    """Measures the energy of every distinct module of `model` (and with level="op" of every distinct operator) in
    `model(*args, **kwargs)`, each alone and warm, in rounds of about `round_s` until the standard error of the
    rounds' energy is at most `rel_error` of their mean, or for `limit_s`.

    compositions: so many small random models of the model's own kinds of modules are measured, too, within about
    `compositions_s`: without models to hold out, `nrg train` can't tell how wrong it is. The same seed, the same compositions.

    out: a folder of recordings, made if need be; "NAME.measure" by default. The same call goes on where an
    interrupted one has stopped. `nrg dataset FOLDER` makes a data set of it. The model is run as it is: in its mode, with
    gradients or without. Returns a Measured. docs/torch.md says more."""
    from . import _measure
    how = _measure.How(rel_error, round_s, limit_s, idle_s, sensors, root, rate)
    return _measure.measure(model, args, kwargs, level, out, name, how, compositions, compositions_s, seed, progress)
