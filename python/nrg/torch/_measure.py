"""nrg.torch.measure: the energy of each distinct module and operator of a model, alone, warm, to a given error.

A folder holds one recording per session. Each has the model's graph, the plan (which nodes each measurement stands for, as the
note "measure") and per node a phase "measure N" with a span that holds the rounds of k calls, one after the other: the
longer a span, the better a slow sensor resolves it. Where arguments must be made new before each round, every round is a
span of its own. Nothing is computed here but when to
stop: energies come out of the recordings by `nrg dataset`, with the same rules as for any other.

progress.json beside them says what is done, so that the same call goes on after an interruption.

Compositions (_compose.py) are further models in the same folder, a recording each, measured in the same way but shorter: there they are many, and what
they tell is how far predictions are off, not what a part costs.
"""
import hashlib
import json
import math
import os
import re
import sys
import time

import torch

from .. import _nrg
from .._record import record
from . import _compose, _trace
from ._capture import TorchDispatchMode, capture, copied, tensors_in

LEVELS = {"module": False, "op": True}
LEAST_ROUNDS = 5
WARM_S = 0.05
SHORT_S = 0.3  # the least per node of a composition: shorter ones are not resolved
SHORT_IDLE_S = 0.25
POOL_BYTES = 64 << 20
SCHEMA = "nrg.measure/1"


class Measured:
    """What measure() did: `folder` for `nrg dataset`, `nodes` (a list of dicts), `complete`, `source`, and `compositions`,
    how many of them the folder has."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.nodes, self.complete, self.source, self.compositions = [], False, None, 0

    def __repr__(self):
        return "<nrg.torch.Measured %s: %d nodes%s>" % (self.folder, len(self.nodes), "" if self.complete else ", not complete")


class Progress:
    """A live line on a terminal; elsewhere only what matters."""

    def __init__(self, wanted):
        self.stream = sys.stderr if wanted else None
        self.live = wanted and hasattr(sys.stderr, "isatty") and sys.stderr.isatty()

    def line(self, text):
        if self.live:
            self.stream.write("\r\033[K" + text[:110])
            self.stream.flush()

    def say(self, text):
        if self.stream:
            self.stream.write(("\r\033[K" if self.live else "") + "nrg: " + text + "\n")

    def done(self):
        self.line("")


class Runner:
    """Calls a node k times. Arguments that a call changes come from a pool of copies, so that values do not run
    away to where arithmetic is slow; the copies are made new before every round."""

    def __init__(self, node):
        self.node = node
        self.pool = [(node.args, node.kwargs)]
        self.spoils = False

    def _versions(self):
        try:
            return [t._version for t in tensors_in((self.node.args, self.node.kwargs), [])]
        except RuntimeError:  # inference tensors do not count
            return None

    def once(self):
        before = self._versions()
        kept = (copied(self.node.args), copied(self.node.kwargs))
        self.node.function(*self.node.args, **self.node.kwargs)
        if before is None or before != self._versions():
            self.spoils = True
            self.node.args, self.node.kwargs = kept

    def prepare(self, k):
        if not self.spoils:
            return
        size = sum(t.numel() * t.element_size() for t in tensors_in((self.node.args, self.node.kwargs), []))
        n = max(1, min(k, POOL_BYTES // max(size, 1), 1024))
        self.pool = [(copied(self.node.args), copied(self.node.kwargs)) for _ in range(n)]

    def run(self, k):
        function, pool = self.node.function, self.pool
        if len(pool) == 1:
            args, kwargs = pool[0]
            for _ in range(k):
                function(*args, **kwargs)
        else:
            n = len(pool)
            for i in range(k):
                args, kwargs = pool[i % n]
                function(*args, **kwargs)
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()


def _calls_per_round(runner, round_s):
    """Warm, and how many calls take that long."""
    k, spent = 1, 0.0
    while True:
        runner.prepare(k)
        begin = time.perf_counter()
        runner.run(k)
        took = time.perf_counter() - begin
        spent += took
        if took >= round_s / 4 and spent >= WARM_S:
            return max(1, int(round(k * round_s / took)))
        k = max(k + 1, min(k * 8, int(k * round_s / max(took, 1e-9)) + 1))


def standard_error(values):
    """(mean, standard error of the mean)"""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, math.inf
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)


def _measure_node(node, how, progress, head):
    """Rounds until the error is small enough; what is kept of it in progress.json."""
    runner = Runner(node)
    phase, spans = _nrg.name("measure %d" % node.id, "phase", None), _nrg.name(node.name or node.detail, node.kind, node.detail)
    calls = _nrg.name("calls", "counter", None)
    energies, total_k, times, level = [], 0, 0.0, _nrg.depth()
    _nrg.begin(phase)
    try:
        runner.once()
        k = _calls_per_round(runner, how.round_s)
        begin = time.monotonic()
        while True:
            runner.prepare(k)
            before, _, t0 = _nrg.read()
            if runner.spoils or not energies:
                _nrg.begin(spans)
            runner.run(k)
            _nrg.count(calls, k)
            if runner.spoils:
                _nrg.end()
            after, source, t1 = _nrg.read()
            energies.append((after - before) / k)
            total_k += k
            times += (t1 - t0) * 1e-9
            mean, error = standard_error(energies)
            relative = error / mean if mean > 0 else math.inf
            known = len(energies) >= LEAST_ROUNDS and relative <= how.rel_error
            progress.line("%s %s  round %d, %.3g J ± %.1f %%" % (head, node.name or node.detail, len(energies), mean,
                                                                min(relative, 9.99) * 100))
            if known or time.monotonic() - begin >= how.limit_s:
                break
    except BaseException:
        _nrg.count(_nrg.name("interrupted", "counter", None), 1)  # its calls were not counted: not to be used
        raise
    finally:
        _nrg.unwind(level)
    return {"id": node.id, "kind": node.kind, "name": node.name, "class": node.detail, "places": len(node.places),
            "energy_with_idle_j": mean, "rel_error": relative if math.isfinite(relative) else None, "time_s": times / total_k,
            "repeats": total_k, "rounds": len(energies), "known": known, "source": source}


def _idle(seconds, progress, when):
    """Watts of the machine that does nothing; marked in the recording, unless it is an estimate, which knows its own."""
    if seconds <= 0:
        return None
    progress.line("idle power %s…" % when)
    before, source, t0 = _nrg.read()
    time.sleep(seconds)
    after, source, t1 = _nrg.read()
    if t1 <= t0:  # the sensor had no new reading
        return None
    if source != "estimated":
        _nrg.idle(t0, t1)
    return (after - before) / ((t1 - t0) * 1e-9)


def _scope_names(model, seen, traced):
    """A module that stands at several places has one name in the graph, which need not be its first."""
    used = set(re.findall(r"__module\.([\w.]+)", traced.graph_text))
    first = {id(m): name for name, m in model.named_modules()}
    other = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if first[id(module)] != name and name in used and first[id(module)] not in used:
            other[first[id(module)]] = name
    return other


def _plan(name, level, seen, renamed):
    def place(p):
        return [renamed.get(p[0], p[0])] + p[1:]
    return {"schema": SCHEMA, "model": name, "level": level,
            "calls": {renamed.get(path, path): n for path, n in seen.calls.items()},
            "nodes": [{"id": n.id, "kind": n.kind, "name": n.name, "places": [place(p) for p in n.places]}
                      for n in seen.nodes]}


class Folder:
    """The recordings of one measurement, and how far it is."""

    def __init__(self, path, fingerprint):
        self.path, self.file = path, os.path.join(path, "progress.json")
        os.makedirs(path, exist_ok=True)
        self.state = {"schema": SCHEMA, "fingerprint": fingerprint, "sessions": 0, "nodes": {}, "compositions": {}}
        if os.path.exists(self.file):
            with open(self.file, encoding="utf-8") as lines:
                old = json.load(lines)
            if old.get("fingerprint") != fingerprint:
                raise _nrg.Error("%s: holds measurements of another model, of other sizes or of another level: choose another "
                                 "folder, or remove it" % path)
            self.state.update(old)

    def next_recording(self):
        self.state["sessions"] += 1
        self.save()
        return os.path.join(self.path, "measure-%d.nrg" % self.state["sessions"])

    def composition(self, key):
        """An empty place for its recording: one that was interrupted is made anew."""
        path = os.path.join(self.path, "composition-%s.nrg" % key)
        if os.path.exists(path):
            os.remove(path)
        return path

    def save(self):
        with open(self.file + ".new", "w", encoding="utf-8") as out:
            json.dump(self.state, out, indent=1)
        os.replace(self.file + ".new", self.file)


def _check(model, level, rel_error):
    if level not in LEVELS:
        raise ValueError('level must be "module" or "op"')
    if LEVELS[level] and TorchDispatchMode is object:
        raise ValueError('level="op" needs PyTorch 1.13 or newer')
    if not 0 < rel_error < 1:
        raise ValueError("rel_error is a part, such as 0.03")
    if type(model).__name__ == "OptimizedModule" or "_compiled_call_impl" in model.__dict__ and model._compiled_call_impl:
        raise ValueError("measure the model before torch.compile: a compiled one has no parts any more")
    if _nrg.active():
        raise _nrg.Error("this process is being recorded already: measure() makes recordings of its own")


class How:
    """How each node is measured, and with what."""

    def __init__(self, rel_error, round_s, limit_s, idle_s, sensors, root, rate):
        self.rel_error, self.round_s, self.limit_s, self.idle_s = rel_error, round_s, limit_s, idle_s
        self.sensors, self.root, self.rate = sensors, root, rate

    def shorter(self, limit_s):
        """The same within a time per node that leaves room for the fewest rounds."""
        limit_s = min(self.limit_s, limit_s)
        return How(self.rel_error, min(self.round_s, limit_s / LEAST_ROUNDS), limit_s, min(self.idle_s, SHORT_IDLE_S),
                   self.sensors, self.root, self.rate)


class Task:
    """A model with what there is to measure in it."""

    def __init__(self, model, args, kwargs, level, name):
        self.model = model
        with _trace._unchanged(model):
            self.seen = capture(model, copied(args), copied(kwargs), LEVELS[level])
        self.traced = _trace.trace(model, copied(args), copied(kwargs), "auto", name)
        self.nodes = self.seen.nodes
        self.plan = json.dumps(_plan(name, level, self.seen, _scope_names(model, self.seen, self.traced)),
                               separators=(",", ":"))

    def fingerprint(self):
        return hashlib.sha256((self.plan + repr([n.key for n in self.nodes])).encode()).hexdigest()


def measure(model, args, kwargs, level, out, name, how, compositions, compositions_s, seed, show):
    _check(model, level, how.rel_error)
    if compositions < 0 or not compositions_s > 0:
        raise ValueError("compositions is a number of models, compositions_s a time for all of them")
    args, kwargs = tuple(args) if isinstance(args, (tuple, list)) else (args,), dict(kwargs or {})
    name = name or type(model).__name__
    progress = Progress(show)
    task = Task(model, args, kwargs, level, name)
    folder = Folder(out or name + ".measure", task.fingerprint())
    result = Measured(folder.path, name)
    done = folder.state["nodes"]
    if len(done) < len(task.nodes):
        _record(folder.next_recording(), task, done, folder.save, progress, how, "")
    result.nodes = [done[str(n.id)] for n in task.nodes if str(n.id) in done]
    result.complete = len(result.nodes) == len(task.nodes)
    result.source = result.nodes[0]["source"] if result.nodes else None
    _last_words(result, progress, how)
    if compositions:
        _measure_compositions(task, level, name, folder, progress, how, compositions, compositions_s, seed)
    result.compositions = len(folder.state["compositions"])
    return result


def _record(path, task, done, save, progress, how, head):
    """Measures the nodes that are not in `done`, in one recording."""
    with record(path, rate=how.rate, sensors=how.sensors, root=how.root):
        _nrg.model(task.traced.name, task.traced.format, task.traced.data)
        _nrg.note("measure", task.plan)
        with _trace._unchanged(task.model):
            _session(task.nodes, done, save, progress, how, head)


def _measure_compositions(task, level, name, folder, progress, how, n, limit_s, seed):
    """Each gets its part of the time that is left."""
    have = folder.state["compositions"]
    end = time.monotonic() + limit_s
    made = _compose.compositions(task.nodes, n, seed, task.model.training)
    skipped = late = 0
    for number, model, given in made:
        key, left = "%d-%d" % (seed, number), end - time.monotonic()
        if key in have:
            continue
        if left <= 0:
            late += 1
            continue
        try:
            one = Task(model, (given,), {}, level, "%s composition %s" % (name, key))
        except Exception:  # a model may refuse to be traced, or to run in other sizes, in many ways
            one = None
        if not one or not one.nodes:  # views alone compute nothing
            skipped += 1
            continue
        share_s = left / (n - number + 1) - 2 * SHORT_IDLE_S
        shorter = how.shorter(max(share_s / max(len(one.nodes), 1) - 2 * WARM_S, SHORT_S))
        _record(folder.composition(key), one, {}, lambda: None, progress, shorter, "composition %d/%d, " % (number, n))
        have[key] = len(one.nodes)
        folder.save()
    progress.say("%s: %d compositions of its kinds of modules%s%s" % (
        folder.path, len(have), "; %d compute nothing or could not be traced" % skipped if skipped else "",
        "; the time of %.3g s was up before %d of them" % (limit_s, late) if late else ""))


def _session(nodes, done, save, progress, how, head):
    try:
        before_w = _idle(how.idle_s, progress, "before")
        for node in nodes:
            if str(node.id) not in done:
                place = "%s%d/%d" % (head, len(done) + 1, len(nodes))
                done[str(node.id)] = _measure_node(node, how, progress, place)
                save()
        after_w = _idle(how.idle_s, progress, "after")
        progress.done()
        if before_w and after_w and abs(after_w / before_w - 1) > 0.1 and not head:
            progress.say("idle power was %.3g W before and %.3g W after: something else is at work here" % (before_w, after_w))
    except KeyboardInterrupt:
        progress.done()
        progress.say("interrupted: %d of %d nodes%s are measured; the same call goes on with the rest"
                     % (len(done), len(nodes), " of a composition" if head else ""))
        raise


def _last_words(result, progress, how):
    limited = [n for n in result.nodes if not n["known"]]
    progress.say("%s: %d nodes measured, energy %s" % (result.folder, len(result.nodes), result.source))
    if limited:
        worst = max((n["rel_error"] or math.inf) for n in limited)
        progress.say("%d of them are not known to %.3g %% after %.3g s each (worst %.1f %%)"
                     % (len(limited), how.rel_error * 100, how.limit_s, worst * 100))
