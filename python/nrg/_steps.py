"""Energy per step while a program trains: what the callbacks for Hugging Face's Trainer and for Lightning share.

A recorder is started inside the process and read before and after each step. Under `nrg run` the readings are the recorder's there, and can't be asked for here: steps
then become spans of that recording and nothing is logged, which is said once. Nothing here may end a training: what goes wrong is a warning, and the meter is off from then on.
"""
import os
import sys
import time
import warnings

from . import _nrg
from ._record import record


class Meter:
    """Begin, then begin_step and end_step for each step, then close; `take()` gives what to log and starts anew."""

    def __init__(self, path=None, rate=None, sensors=None):
        self._path, self._rate, self._sensors = path, rate, sensors
        self.recording = None  # the last one: nrg.record's, readable after close()
        self.provenance = None
        self._on = self._spans = False
        self._forget()

    def _forget(self):
        self._before = None  # joules and time at the step's begin
        self._depth = self._outer = None
        self.energy_j = self._new_j = self._new_s = 0.0
        self.steps = self._new_steps = 0

    def begin(self, folder=None, record_here=True):
        """Starts recording, to a new file in `folder` unless a path was given."""
        self.close()
        self._forget()
        elsewhere = _nrg.active()
        self._spans = not _is_watched()
        if elsewhere:
            _warn("this process is being recorded by nrg run: joules per step are in its recording (nrg attribute --by step), not in the logs")
        elif record_here:
            self._guard(self._start, folder)
        self._outer = _nrg.depth()

    def _start(self, folder):
        path = self._path
        if path is None:
            path = os.path.join(folder or ".", time.strftime("nrg-%Y%m%d-%H%M%S") + "-%d.nrg" % os.getpid())
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        self.recording = record(path, rate=self._rate, sensors=self._sensors, overwrite=self._path is not None)
        self.recording.start()
        self._on = True

    def _guard(self, do, *arguments):
        """Runs it; what goes wrong is a warning, and the meter is off."""
        try:
            return do(*arguments)
        except (_nrg.Error, OSError, ValueError) as error:  # ValueError: a folder whose name can't be one
            _warn("no energy per step: %s" % error)
            self._on = False
            return None

    def begin_step(self, number):
        if self._depth is not None:
            self._unwind()
        if self._spans:
            self._depth = _nrg.depth()
            _nrg.span("step", "step", number).begin()
        if self._on:
            self._before = self._guard(_nrg.read)

    def end_step(self):
        """Joules of the machine in the step; None where that is not known."""
        after = self._guard(_nrg.read) if self._on and self._before else None
        self._unwind()
        before, self._before = self._before, None
        if not after or not before:
            return None
        joules = after[0] - before[0]
        self.provenance = after[1]
        self.energy_j += joules
        self._new_j += joules
        self._new_s += (after[2] - before[2]) * 1e-9
        self.steps += 1
        self._new_steps += 1
        return joules

    def _unwind(self):
        if self._depth is not None:
            _nrg.unwind(self._depth)
            self._depth = None

    def take(self):
        """Scalars of the steps since the last call; empty where there are none."""
        if not self._new_steps:
            return {}
        scalars = {"nrg/energy_j": self.energy_j, "nrg/energy_per_step_j": self._new_j / self._new_steps}
        if self._new_s > 0:
            scalars["nrg/power_w"] = self._new_j / self._new_s
        self._new_j = self._new_s = 0.0
        self._new_steps = 0
        return scalars

    def close(self):
        """Ends spans that are open and completes the recording. Doing it twice does no harm."""
        if self._outer is not None:
            _nrg.unwind(self._outer)
            self._outer = self._depth = None
        if self._on:
            self._on = False
            self._guard(self.recording.stop)


def _is_watched():
    """True where nrg.torch marks steps itself."""
    torch = sys.modules.get("nrg.torch._state")
    return bool(torch and torch.state.on)


_said = set()


def _warn(text):
    if text not in _said:
        _said.add(text)
        warnings.warn("nrg: " + text, stacklevel=5)
