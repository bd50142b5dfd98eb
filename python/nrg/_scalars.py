"""Where a training's scalars go when the framework does not pass them on: W&B and MLflow where the program has a run open in them, TensorBoard where it was asked for.

Only packages that the program has imported already are used; none is imported for it, but TensorBoard's writer, whose folder then was given. A logger that fails is a warning
and is not asked again: a training does not end because a tracking server is away.
"""
import sys
import warnings


def _wandb():
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    return (lambda scalars, step: run.log(dict(scalars, **{"nrg/step": step}))) if run is not None else None


def _mlflow():
    mlflow = sys.modules.get("mlflow")
    if mlflow is None or not hasattr(mlflow, "active_run") or mlflow.active_run() is None:
        return None
    return lambda scalars, step: mlflow.log_metrics(scalars, step=step)


class Scalars:
    """log() to all that are there. writer: an object with add_scalar(name, value, step), such as TensorBoard's SummaryWriter."""

    def __init__(self, writer=None):
        self._writer = writer
        self._own = None
        self._bad = set()

    def use_tensorboard(self, folder):
        """Writes to that folder, beside the events of the framework: TensorBoard shows them as one run."""
        if self._writer is None and self._own is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
                self._own = SummaryWriter(log_dir=folder)
            except Exception as error:  # not installed, a folder that can't be written
                self._say("tensorboard", error)

    def _tensorboard(self):
        writer = self._writer or self._own
        if writer is None:
            return None

        def log(scalars, step):
            for name, value in scalars.items():
                writer.add_scalar(name, value, step)
        return log

    def log(self, scalars, step):
        if not scalars:
            return
        for name, find in (("tensorboard", self._tensorboard), ("wandb", _wandb), ("mlflow", _mlflow)):
            if name in self._bad:
                continue
            try:
                log = find()
                if log:
                    log(scalars, step)
            except Exception as error:  # whatever a tracker's client raises
                self._say(name, error)

    def _say(self, name, error):
        self._bad.add(name)
        warnings.warn("nrg: %s does not take energy: %s: %s" % (name, type(error).__name__, error), stacklevel=4)

    def close(self):
        if self._own is not None:
            self._own.close()
            self._own = None
