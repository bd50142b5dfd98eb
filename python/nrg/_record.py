"""nrg.record: a recorder inside this process, for programs and notebooks that `nrg run` did not start.

Sampling happens on threads of libnrg that never take the interpreter's lock. Under `nrg run` the
process is being recorded already: the same lines then mark a span instead, so that a program
need not be changed to be run either way.
"""
import atexit
import errno
import os
import threading
import warnings

from . import _nrg
from ._results import Run

Error = _nrg.Error


class Recording(Run):
    """A run that is being recorded, and after stop() one that can be read."""

    def __init__(self, path, rate, sensors, root, overwrite, note, model, input_size):
        super().__init__(path)
        self._rate = float(rate or 0)
        self._sensors = ",".join(sensors) if isinstance(sensors, (list, tuple)) else sensors
        self._root = root if root is None else os.fspath(root)
        self._overwrite = bool(overwrite)
        self._note = dict(note or {})
        self._model, self._input_size = model, input_size
        self._state = "new"  # then "recording" or "span", then "done"
        self._owner = None  # (process, thread) of start()
        self._depth = 0

    def start(self):
        """Starts recording; returns itself. Raises nrg.Error with what is wrong."""
        if self._state != "new":
            raise Error("%s: this recording was started before: make another" % self.path)
        self._owner = (os.getpid(), threading.get_ident())
        if _nrg.active() and not _running:
            self._start_span()
            return self
        if _running:
            raise Error("%s: a recording of this process is running: %s" % (self.path, _running[0].path))
        self._start_recorder()
        self._state = "recording"
        _running.append(self)
        try:
            for key, value in self._note.items():
                _nrg.note(_storable(key), _storable(value))
            self._log_model()
        except BaseException:
            self.stop()
            raise
        return self

    def _start_recorder(self):
        try:
            _nrg.start(os.path.abspath(self.path), self._rate, self._sensors, self._root, self._overwrite)
        except ValueError as error:  # a zero character in the path, or one that is no text
            raise Error("%r can't be the name of a recording: %s" % (self.path, error)) from None
        except Error as error:
            if getattr(error, "errno", None) != errno.EEXIST:
                raise
            better = Error("%s: exists already (overwrite=True replaces it)" % self.path)
            better.errno = errno.EEXIST
            raise better from None

    def _log_model(self):
        if self._model is not None:
            from . import _model
            _model.log(self._model, self._input_size)

    def _start_span(self):
        self._state = "span"
        if not _said:
            _said.append(True)
            warnings.warn("this process is being recorded already, by nrg run or by its parent: nrg.record(%r) is a span "
                          "in that recording, and makes no file" % self.path, stacklevel=4)
        self._depth = _nrg.depth()
        _nrg.span(_storable(os.path.basename(self.path) or self.path), "phase").begin()

    def stop(self):
        """Takes the last readings and completes the file. Doing it twice does no harm."""
        state, self._state = self._state, "done" if self._state != "new" else "new"
        if self._owner and self._owner[0] != os.getpid():
            return  # a child after fork: the recorder is the parent's
        if state == "span":
            self._recorder_is_elsewhere = True
            if self._owner[1] == threading.get_ident():
                _nrg.unwind(self._depth)
        elif state == "recording":
            del _running[:]
            for finish in before_stop:
                finish()
            _nrg.stop()

    _recorder_is_elsewhere = False

    def _readable(self):
        if self._recorder_is_elsewhere or self._state == "span":
            raise Error("%s: no file was made, because another recorder was at work: open its recording when that has ended" % self.path)
        if self._state == "new":
            raise Error("%s: not recorded yet" % self.path)
        if self._state == "recording":
            raise Error("%s: still being recorded: read it after stop()" % self.path)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, traceback):
        try:
            self.stop()
        except Error as error:
            if kind is None:
                raise
            # The program's own exception is the one that matters.
            warnings.warn("%s: %s" % (self.path, error), stacklevel=2)


def _storable(value):
    """As text that a recording can hold: what is no character is written as its number."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


_running = []  # the one recording of this process
_said = []
before_stop = []  # called while there is a recorder yet, by those that hold spans back


def record(path, rate=None, sensors=None, root=None, overwrite=False, note=None, model=None,
           input_size=None) -> Recording:
    """Records this process and its children into `path`; a context manager.

        with nrg.record("run.nrg") as run:
            work()
        print(run.energy())

    rate: readings per second (10, with spans 100). sensors: names as for `nrg run --sensor`, a list or a text with
    commas. root: another place for /sys and /proc. overwrite: replace an existing file. note: a
    dict that is kept with the recording. model, input_size: logs the model's parameters, and with
    the size (or a tuple of sizes) of its input its MACs. Without `with`: record(path).start(), and .stop() at the end.
    """
    return Recording(path, rate, sensors, root, overwrite, note, model, input_size)


@atexit.register
def _stop_at_exit():
    for recording in list(_running):
        try:
            recording.stop()
        except Error as error:
            warnings.warn("%s: %s" % (recording.path, error))


def _after_fork():
    del _running[:]


os.register_at_fork(after_in_child=_after_fork)
