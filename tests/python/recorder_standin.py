"""A recorder in plain Python in place of libnrg (by span_hooks.c): every event is there to be looked at.

Import it before nrg. `log` holds the spans of all threads; Log.check() checks the rules: an end
closes the last begin of its thread, so what was emitted must be a forest.
"""
import ctypes
import os
import sys
import threading
import time
import unittest

from support import BUILD, PACKAGE, TOP as SOURCE, built

LIBRARY = os.path.join(BUILD, "tests", "libspan-hooks.so")


class Span:
    def __init__(self, name, parent, number, thread):
        self.text, self.kind, self.detail = name
        self.parent, self.number, self.thread = parent, number, thread
        self.begin_ns, self.end_ns = time.monotonic_ns(), None
        self.children = []
        (parent.children if parent else log.roots).append(self)

    def path(self):
        return (self.parent.path() if self.parent else []) + [self.text]

    def __repr__(self):
        return "%s %s" % (self.kind, "/".join(self.path()))


class Log:
    def __init__(self):
        self.names = [None]  # their numbers stay valid, as libnrg's do
        self.reset()

    def reset(self):
        self.roots, self.spans, self.stacks = [], [], {}
        self.counts, self.marks, self.pasts, self.models = [], [], [], []
        self.unmatched = 0

    def stack(self):
        return self.stacks.setdefault(threading.get_ident(), [])

    def of(self, kind):
        return [s for s in self.spans if s.kind == kind]

    def texts(self, kind):
        return [s.text for s in self.of(kind)]

    def open(self):
        return [s for s in self.spans if s.end_ns is None]


log = Log()


def begin_numbered(number, n):
    if not api.listening:
        return
    stack = log.stack()
    span = Span(log.names[number], stack[-1] if stack else None, n, threading.get_ident())
    stack.append(span)
    log.spans.append(span)


def begin(number):
    begin_numbered(number, None)


def end():
    stack = log.stack()
    if not api.listening:
        return
    if not stack:
        log.unmatched += 1
        return
    stack.pop().end_ns = time.monotonic_ns()


def unwind(depth):
    while len(log.stack()) > depth:
        end()


def name(text, kind, detail):
    key = (text.decode(), kind.decode() if kind else "span", detail.decode() if detail else None)
    if key not in log.names:
        log.names.append(key)
    return log.names.index(key)


def past(number, track, domain, begin_ns, end_ns):
    log.pasts.append((log.names[number], track and track.decode(), domain and domain.decode(), begin_ns, end_ns))


def model(model_name, format, content, size):
    log.models.append((model_name.decode(), format and format.decode(), ctypes.string_at(content, size)))
    return 0


U32, I64, TEXT = ctypes.c_uint32, ctypes.c_int64, ctypes.c_char_p
# The functions of span_hooks.c in their order: result, arguments, what is called.
HOOKS = [
    (ctypes.c_int, (), lambda: api.listening),
    (U32, (TEXT, TEXT, TEXT), name),
    (None, (U32,), begin),
    (None, (U32, I64), begin_numbered),
    (None, (), end),
    (ctypes.c_uint, (), lambda: len(log.stack()) if api.listening else 0),
    (None, (ctypes.c_uint,), unwind),
    (None, (U32, TEXT, TEXT, I64, I64), past),
    (None, (U32,), lambda number: log.marks.append(log.names[number])),
    (None, (U32, I64), lambda number, n: log.counts.append((log.names[number][0], n))),
    (ctypes.c_int, (TEXT, TEXT, ctypes.c_void_p, ctypes.c_uint64), model),
]


def fork():
    log.stacks.clear()


class Api:
    """The recorder as tests see it, with the extension's functions; raising `current` starts another one."""

    def __init__(self):
        self.listening = True
        self._current = 1

    @property
    def current(self):
        return self._current

    @current.setter
    def current(self, value):
        self._current = value
        _nrg.start("another", 0.0, None, None, False)

    def __getattr__(self, name):
        return getattr(_nrg, name)


def connect():
    """Sets the library's functions, and keeps them alive."""
    table = ctypes.c_void_p * len(HOOKS)
    made = [ctypes.PYFUNCTYPE(result, *arguments)(function) for result, arguments, function in HOOKS]
    table.in_dll(ctypes.PyDLL(LIBRARY), "span_hooks")[:] = [ctypes.cast(f, ctypes.c_void_p).value for f in made]
    return made


if not built():
    raise unittest.SkipTest("the extension is not built (Debian: python3-dev)")
api = Api()
os.register_at_fork(after_in_child=fork)
os.environ["NRG_LIBRARY"] = LIBRARY
sys.path.insert(0, PACKAGE)
kept = connect()
from nrg import _nrg  # noqa: E402
