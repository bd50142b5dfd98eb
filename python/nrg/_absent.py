"""Stands in for the extension module where it could not be built or loaded: spans do nothing.

A program with spans in it must run on machines without nrg, so the same names are here; only
recording is refused, with the reason.
"""
why = "the extension module nrg._nrg is not there"  # set by the package with the import's error
built = ""  # no version: there is none
program_place = ""


class Error(RuntimeError):
    """nrg could not do it, and says why."""


class Span:
    """A named interval; nothing is recorded."""

    def __init__(self, name, kind=None, number=None, detail=None):
        self._name = name

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def __call__(self, function):
        from . import _decorate
        return _decorate.wrap(self, function)

    def __repr__(self):
        return "<nrg span %r>" % (self._name,)

    def begin(self):
        """Nothing."""

    end = begin


span = Span


class State:
    """What nrg.torch derives from; nothing is watched."""


class Thread:
    def clear(self):
        """Nothing."""


class Entry:
    forward = backward = 0


_threads = []


def connect(make_thread, **parts):
    _threads[:] = [make_thread()]


def thread():
    return _threads[0]


def name(text, kind=None, detail=None):
    return 0


def depth():
    return 0


def generation():
    return 0


def active():
    return False


def library():
    return None


def reason():
    return why


def version():
    return ""


def _nothing(*arguments):
    return None


drop_thread = begin = begin_numbered = end = unwind = past = mark = count = mark_named = count_named = _nothing


around = around_module = None  # nothing can be watched


def _refuse(*arguments):
    raise Error("cannot record: %s" % why)


start = note = model = read = idle = stop = _refuse
