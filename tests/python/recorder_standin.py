"""A recorder in plain Python in place of nrg's extension module: nrg.torch can be tested without
libnrg, and every event is there to be looked at.

Import it before nrg. `log` holds the spans of all threads; Log.check() checks the rules: an end
closes the last begin of its thread, so what was emitted must be a forest.
"""
import os
import sys
import threading
import time
import types

SOURCE = os.environ.get("NRG_SOURCE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


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
api = types.ModuleType("nrg._nrg")
api.listening = True
api.current = 1


def name(text, kind=None, detail=None):
    key = (text, kind or "span", detail)
    if key not in log.names:
        log.names.append(key)
    return log.names.index(key)


def begin_numbered(number, n):
    if not api.listening:
        return
    stack = log.stack()
    span = Span(log.names[number], stack[-1] if stack else None, n, threading.get_ident())
    stack.append(span)
    log.spans.append(span)


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


def fork():
    log.stacks.clear()


os.register_at_fork(after_in_child=fork)
api.name = name
api.begin = lambda number: begin_numbered(number, None)
api.begin_numbered = begin_numbered
api.end = end
api.depth = lambda: len(log.stack()) if api.listening else 0
api.unwind = unwind
api.mark = lambda number: log.marks.append(log.names[number])
api.count = lambda number, n: log.counts.append((log.names[number][0], n))
api.past = lambda number, track, domain, t0, t1: log.pasts.append((log.names[number], track, domain, t0, t1))
api.active = lambda: api.listening
api.generation = lambda: api.current
api.Error = type("Error", (RuntimeError,), {})
api.model = lambda *args: log.models.append(args)

package = types.ModuleType("nrg")
package.__path__ = [os.path.join(SOURCE, "python", "nrg")]
package._nrg = api
sys.modules["nrg"] = package
sys.modules["nrg._nrg"] = api
