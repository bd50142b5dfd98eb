"""nrg.tensorrt.Profiler: layer times of TensorRT as spans, while it runs.

    context.profiler = nrg.tensorrt.Profiler()

TensorRT reports the layers of an inference in a burst when all of them have ended, so the time of
a report says nothing about when its layer ran. What is known is each layer's duration, their order,
and that all had ended when the burst began: the layers are laid out one after the other so
that the last one ends there. Copies, waiting and gaps between layers are not reported by TensorRT;
where there are such, layers are placed too late by as much. Sums over cycles are not concerned.

A cycle ends when a layer's name comes again. `tensorrt` is imported when the class is first used.
"""
import atexit
import datetime
import json
import time
import weakref

from . import _nrg, _record

_all = weakref.WeakSet()
_ends_ns = {}  # track: where its last span ended; several profilers may share one


class _Cycles:
    """What the profiler does, without TensorRT."""

    def _set_up(self, track, domain):
        self.times_ms = {}  # layer: its durations, one per cycle
        self.moved = 0  # cycles that did not fit between the last one and their burst
        self._track, self._domain = track, domain
        self._stamps = {}
        self._cycle = {}  # of the cycle that is being reported: layer: ms
        self._burst_ns = 0
        _all.add(self)

    def _report(self, layer, ms):
        now_ns = time.monotonic_ns()
        if layer in self._cycle:
            self.flush()
        if not self._cycle:
            self._burst_ns = now_ns
        self._cycle[layer] = ms
        self.times_ms.setdefault(layer, []).append(ms)
        self._stamps.setdefault(layer, []).append(datetime.datetime.now())

    def flush(self):
        """Ends the cycle that is being reported. Happens by itself before a recording ends."""
        cycle, self._cycle = self._cycle, {}
        if not cycle or not _nrg.active():
            return
        durations_ns = [max(0, round(ms * 1e6)) for ms in cycle.values()]
        begin_ns = self._burst_ns - sum(durations_ns)
        if begin_ns < _ends_ns.get(self._track, 0):
            self.moved += 1
            begin_ns = _ends_ns[self._track]
        for layer, duration_ns in zip(cycle, durations_ns):
            _nrg.past(_nrg.name(layer, "layer"), self._track, self._domain, begin_ns,
                      begin_ns + duration_ns)
            begin_ns += duration_ns
        _ends_ns[self._track] = begin_ns

    def save(self, path):
        """Writes {layer: [[ms, "YYYYmmdd-HH:MM:SS.ffffff"], ...]}, which `nrg import` reads.

        The time stamps are local, and those of the reports.
        """
        self.flush()
        document = {layer: [[ms, stamp.strftime("%Y%m%d-%H:%M:%S.%f")]
                            for ms, stamp in zip(times, self._stamps[layer])]
                    for layer, times in self.times_ms.items()}
        with open(path, "w", encoding="utf-8") as out:
            json.dump(document, out)


def _make_profiler():
    import tensorrt

    class Profiler(_Cycles, tensorrt.IProfiler):
        """An IProfiler that marks spans. track: where they are shown; domain: whose energy it is."""

        def __init__(self, track="gpu-0", domain="gpu-0"):
            tensorrt.IProfiler.__init__(self)  # TensorRT asks for it to be called by name
            self._set_up(track, domain)

        def report_layer_time(self, layer_name, ms):
            self._report(layer_name, ms)

    Profiler.__module__, Profiler.__qualname__ = __name__, "Profiler"
    return Profiler


def __getattr__(name):
    if name != "Profiler":
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    globals()["Profiler"] = _make_profiler()
    return globals()["Profiler"]


@atexit.register
def _flush_all():
    for profiler in list(_all):
        profiler.flush()


_record.before_stop.append(_flush_all)
