"""What the training loops here share. Each is a program that knows nothing of nrg, in a process of its own (__main__.py)."""
import atexit
import os
import sys
import traceback
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

LOOPS = {}


def loop(*needs):
    def keep(function):
        if all(needs):
            LOOPS[function.__name__] = function
        return function
    return keep


def truth(training=0, evaluation=0, steps=0, epochs=0, evaluations=0, other=0, inside=None):
    """other: samples that are neither: predictions without a loader. inside: steps in an epoch, if not all."""
    return dict(training=training, evaluation=evaluation, steps=steps, epochs=epochs, evaluations=evaluations, other=other,
                inside=inside if inside is not None else steps if epochs else 0)


def data(n, **options):
    options.setdefault("batch_size", 16)
    return DataLoader(TensorDataset(torch.randn(n, 4), torch.randn(n, 1)), **options)


def net():
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))


def loss_of(model, x, y):
    return (model(x) - y).square().mean()


def sgd(*models):
    return torch.optim.SGD([p for model in models for p in model.parameters()], 1e-3)


def train(model, optimizer, batches):
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()


def evaluate(model, batches):
    model.eval()
    with torch.no_grad():
        for x, _ in batches:
            model(x)
    model.train()


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return ((torch.randn(4), torch.randn(1)) for _ in range(self.n))


def fork(function):
    """Runs it in a child. Taking the interpreter apart would be most of its time, so only what is to be done at the end is."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        function()
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(code)
