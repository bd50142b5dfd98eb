"""nrg.lightning.Callback: energy per step in Lightning's loggers.

    Trainer(callbacks=[nrg.lightning.Callback()])

Every `log_every_n_steps` steps, at the end, and when an exception ends the training, `nrg/energy_j` (of the machine, in all steps so far), `nrg/energy_per_step_j` and `nrg/power_w` (of the steps since the
last log) go to all of the trainer's loggers: TensorBoard, W&B, MLflow, CSV, whichever it has.

Works with `lightning` and `pytorch_lightning`, which have a Callback each: it is derived from those that are imported. The module imports without either; Callback needs one.
"""
import sys
import warnings

from ._steps import Meter


class _Hooks:
    """path: the recording; a new file in the trainer's folder. rate, sensors: as of nrg.record."""

    def __init__(self, path=None, rate=None, sensors=None):
        super().__init__()
        self._meter = Meter(path, rate, sensors)
        self._bad = set()

    @property
    def recording(self):
        """The recording (as of nrg.record), readable when training is over; None where there is none."""
        return self._meter.recording

    @property
    def energy_j(self):
        """Joules of the machine in all steps so far."""
        return self._meter.energy_j

    def on_train_start(self, trainer, pl_module):
        self._meter.begin(getattr(trainer, "log_dir", None) or trainer.default_root_dir, trainer.local_rank == 0)

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self._meter.begin_step(trainer.global_step)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self._meter.end_step()
        every = getattr(trainer, "log_every_n_steps", 0)
        if every and (batch_idx + 1) % every == 0:
            self._log(trainer)

    def on_train_epoch_end(self, trainer, pl_module):
        self._log(trainer)

    def on_train_end(self, trainer, pl_module):
        self._close(trainer)

    def on_exception(self, trainer, pl_module, exception):
        self._close(trainer)

    def _log(self, trainer):
        scalars = self._meter.take()
        if not scalars or not trainer.is_global_zero:
            return
        self._each_logger(trainer, lambda logger: logger.log_metrics(scalars, step=trainer.global_step))

    def _each_logger(self, trainer, do):
        for logger in trainer.loggers:
            if id(logger) in self._bad:
                continue
            try:
                do(logger)
            except Exception as error:  # whatever a tracker's client raises: a training does not end by it
                self._bad.add(id(logger))
                warnings.warn("nrg: %s does not take energy: %s: %s" % (type(logger).__name__, type(error).__name__, error))

    def _close(self, trainer):
        self._log(trainer)
        self._meter.close()
        if trainer.is_global_zero:
            self._each_logger(trainer, lambda logger: logger.save())


def _bases():
    """Callback of each Lightning that is imported; else of the one that can be."""
    names = ("lightning.pytorch", "pytorch_lightning")
    loaded = [sys.modules[name] for name in names if hasattr(sys.modules.get(name), "Callback")]
    if loaded:
        return tuple(module.Callback for module in loaded)
    import importlib
    try:
        return (importlib.import_module(names[0]).Callback,)
    except ImportError:
        return (importlib.import_module(names[1]).Callback,)


def __getattr__(name):
    if name != "Callback":
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    made = type("Callback", (_Hooks,) + _bases(), {"__doc__": _Hooks.__doc__, "__module__": __name__})
    globals()["Callback"] = made
    return made
