"""nrg.transformers.Callback: energy per step in the logs of Hugging Face's Trainer.

    trainer = Trainer(model, args, callbacks=[nrg.transformers.Callback()])

Whenever the Trainer logs, `nrg/energy_j` (of the machine, in all steps so far), `nrg/energy_per_step_j` and `nrg/power_w` (of the steps since the last log) are added to
`trainer.state.log_history`, and go to TensorBoard (where `report_to` has it), W&B and MLflow (where a run is open). The Trainer tells no callback of an exception, so its train() is
wrapped when it is made: what was measured is logged and the recording completed also then. A callback that is added later does that when train() is called again, at the program's end, or
with `with callback: trainer.train()`.

The module imports without transformers; Callback needs it.
"""
import functools
import sys

from ._scalars import Scalars
from ._steps import Meter


class _Hooks:
    """path: the recording; a new file in the Trainer's output folder. writer: where scalars go instead of TensorBoard's own folder.
    rate, sensors: as of nrg.record."""

    def __init__(self, path=None, rate=None, sensors=None, writer=None):
        self._meter = Meter(path, rate, sensors)
        self._scalars = Scalars(writer)
        self._is_main = True
        self._step = 0
        self._state = None

    @property
    def recording(self):
        """The recording (as of nrg.record), readable when training is over; None where there is none."""
        return self._meter.recording

    @property
    def energy_j(self):
        """Joules of the machine in all steps so far."""
        return self._meter.energy_j

    def on_init_end(self, args, state, control, **kwargs):
        trainer = _trainer(sys._getframe(1), self)
        if trainer is not None:
            trainer.train = _closing(trainer.train, self)

    def on_train_begin(self, args, state, control, **kwargs):
        self._is_main, self._state, self._step = state.is_world_process_zero, state, state.global_step
        self._meter.begin(args.output_dir, state.is_local_process_zero)
        if self._is_main and "tensorboard" in (getattr(args, "report_to", None) or []):
            self._scalars.use_tensorboard(getattr(args, "logging_dir", None) or args.output_dir)

    def on_step_begin(self, args, state, control, **kwargs):
        self._meter.begin_step(state.global_step)

    def on_step_end(self, args, state, control, **kwargs):
        self._step = state.global_step
        self._meter.end_step()

    def on_log(self, args, state, control, logs=None, **kwargs):
        self._log(logs)

    def on_train_end(self, args, state, control, **kwargs):
        self.close()

    def _log(self, logs=None):
        scalars = self._meter.take()
        if not scalars or not self._is_main:
            return
        history = self._state.log_history if self._state is not None else []
        if logs is not None:
            logs.update(scalars)
        if logs is not None and history and history[-1].get("step") == self._step:
            history[-1].update(scalars)
        else:
            history.append(dict(scalars, step=self._step))
        self._scalars.log(scalars, self._step)

    def close(self):
        """Logs what is left and completes the recording."""
        self._log()
        self._meter.close()
        self._scalars.close()
        self._state = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def _trainer(frame, callback):
    """The Trainer that is being made: whose constructor called us."""
    while frame is not None:
        found = frame.f_locals.get("self")
        handler = getattr(found, "callback_handler", None)
        if handler is not None and callback in getattr(handler, "callbacks", []) and callable(getattr(found, "train", None)):
            return found
        frame = frame.f_back
    return None


def _closing(train, callback):
    @functools.wraps(train)
    def closing(*args, **kwargs):
        try:
            return train(*args, **kwargs)
        finally:
            callback.close()
    return closing


def __getattr__(name):
    if name != "Callback":
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from transformers import TrainerCallback
    made = type("Callback", (_Hooks, TrainerCallback), {"__doc__": _Hooks.__doc__, "__module__": __name__})
    globals()["Callback"] = made
    return made
