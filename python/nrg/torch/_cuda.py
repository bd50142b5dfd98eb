"""Work of the GPU. A kernel runs after the call that launched it has returned, so spans of the host
are not GPU time. At every edge of a module call (forward and backward) an event is put into the current
stream; what lies between two of them on the GPU belongs to the innermost module between them. Waiting for
the host in between is part of it.

No synchronisation in a step: at its end those events are placed that are over, the rest later. Event times are
relative to a reference event that is tied to CLOCK_MONOTONIC by one synchronisation, renewed every ANCHOR_S
because the clocks drift and elapsed_time() is a 32-bit float of milliseconds.
"""
import ctypes
import os
import threading
import time

import torch

from .. import _nrg
from ._state import state, trouble

ANCHOR_S = 30.0
FLUSH_AT = 512  # events, for programs without steps


def gpu_of(device):
    """The number that the driver gives to a device of this process, which may see only some."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    parts = [part.strip() for part in seen.split(",") if part.strip()]
    if device < len(parts) and parts[device].isdigit():
        return int(parts[device])
    return device


def kernels_are_traced():
    """True when `nrg run --gpu-trace` has every kernel as a span already: events would tell less, and twice."""
    library = os.environ.get("CUDA_INJECTION64_PATH", "")
    if os.path.basename(library) != "libnrg-inject.so":
        return False
    try:
        loaded = ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        return bool(ctypes.c_int.in_dll(loaded, "nrg_inject_tracing").value)
    except (OSError, ValueError):
        return False


class Device:
    """The events of one device, in the order of its stream."""

    def __init__(self, number):
        self.number = number
        self.track = "cuda:%d" % number
        self.domain = "gpu-%d" % gpu_of(number)
        self.marks = []  # (event, number of a name or None)
        self.pool = []
        self.last_ns = 0
        self.anchor = None
        self.anchor_ns = 0
        self.tie()

    def event(self):
        return self.pool.pop() if self.pool else torch.cuda.Event(enable_timing=True)

    def tie(self):
        """A reference event of known time."""
        event = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize(self.number)
        before_ns = time.monotonic_ns()
        event.record()
        event.synchronize()
        self.anchor, self.anchor_ns = event, (before_ns + time.monotonic_ns()) // 2

    def time_ns(self, event):
        return self.anchor_ns + int(self.anchor.elapsed_time(event) * 1e6)

    def place(self):
        """Hands what is over to the recorder."""
        marks = self.marks
        n = 0
        while n < len(marks) and marks[n][0].query():
            n += 1
        if n < 2:
            return
        times = [self.time_ns(event) for event, _ in marks[:n]]
        for i in range(n - 1):
            number = marks[i][1]
            start_ns, end_ns = max(times[i], self.last_ns), times[i + 1]
            if number is not None and end_ns > start_ns:
                _nrg.past(number, self.track, self.domain, start_ns, end_ns)
                self.last_ns = end_ns
        self.pool.extend(event for event, _ in marks[:n - 1])
        del marks[:n - 1]  # the last one begins what is to come


class Cuda:
    def __init__(self):
        self.devices = {}
        self.lock = threading.Lock()

    def look(self):
        """Before an outermost call: is there a GPU at work by now, whose kernels nobody else watches?"""
        if not state.cuda and getattr(torch.cuda, "is_initialized", bool)():
            state.cuda = bool(torch.cuda.is_available()) and not kernels_are_traced()

    def mark(self, number):
        """From here on the current stream works for the module of this number; None: for no module."""
        try:
            if torch.cuda.is_current_stream_capturing():
                return  # a timing event in a captured graph would break it
            where = torch.cuda.current_device()
            with self.lock:
                device = self.devices.get(where)
                if device is None:
                    device = self.devices[where] = Device(where)
                event = device.event()
                event.record()
                device.marks.append((event, number))
        except Exception as error:
            state.cuda = False
            trouble("cuda", error)

    def step(self):
        """The end of a step."""
        self._place(False)

    def crowded(self):
        """At the end of an outermost call: too much to keep?"""
        if any(len(device.marks) >= FLUSH_AT for device in self.devices.values()):
            self._place(False)

    def finish(self):
        """Places all that is left; look() begins anew."""
        if state.cuda:
            self._place(True)
        state.cuda = False
        self.devices.clear()

    def _place(self, wait):
        try:
            with self.lock:
                for device in self.devices.values():
                    if wait:
                        torch.cuda.synchronize(device.number)
                    device.place()
                    if not wait and time.monotonic_ns() - device.anchor_ns > ANCHOR_S * 1e9:
                        torch.cuda.synchronize(device.number)
                        device.place()
                        device.tie()
        except Exception as error:
            state.cuda = False
            trouble("cuda", error)


cuda = Cuda()
