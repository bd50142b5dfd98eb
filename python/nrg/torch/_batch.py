"""How many samples a batch has.

What a DataLoader says is better evidence than the shape of a tensor, whose first dimension may be a sequence's length:

  1. the list of indices that its batch sampler chose, for data sets with an index;
  2. where the data set is an iterable, the loader's batch_size if a tensor of the batch has such a dimension, else what the
     batch shows (the last one may be shorter);
  3. where the loader does not make batches (batch_size=None), or nobody iterates over one: the arguments of the model.

Of arguments it is the first dimension of the first tensor; of a packed sequence its batch; of a list of images its length. A model with
parts that have batch_first=False may get its batch second: then the arguments say nothing, unless the model is such a part.
"""
import dataclasses

import torch

from ._state import note_once, weak

Tensor = torch.Tensor
DEPTH = 4  # of containers in containers that are looked into


def _parts(value):
    """What a container or an object of the program's own holds."""
    if hasattr(value, "keys") and hasattr(value, "values"):  # asking for a Mapping runs Python that torch.compile looks at
        return list(value.values())
    if isinstance(value, (tuple, list)):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return list(getattr(value, "__dict__", {}).values())


def _is_images(value):
    return isinstance(value, list) and bool(value) and all(isinstance(v, Tensor) and v.dim() == 3 for v in value)


def _first(value, depth=DEPTH):
    """The first thing in it that shows the size of a batch: a tensor, a packed sequence, a list of images; None."""
    if isinstance(value, Tensor):
        return value if value.dim() else None
    if value is None or isinstance(value, (str, bytes, int, float, type)):
        return None
    if hasattr(value, "batch_sizes") or _is_images(value):
        return value
    found = (_first(part, depth - 1) for part in _parts(value)) if depth else ()
    return next((part for part in found if part is not None), None)


def _shape(first):
    """Its dimensions, batch first; () of nothing."""
    if first is None or isinstance(first, Tensor):
        return () if first is None else tuple(first.shape)
    return (int(first.batch_sizes[0]) if hasattr(first, "batch_sizes") else len(first),)


class Handed:
    """A batch that a loader has handed out: its samples (None: the loader does not know), and whether it is still in memory."""

    __slots__ = ("samples", "tensor")

    def __init__(self, iterator, chosen, batch):
        first = _first(batch)
        self.samples = _of_loader(iterator, chosen, _shape(first))
        self.tensor = weak(first) if isinstance(first, Tensor) else None

    def is_alive(self):
        return self.tensor is not None and self.tensor() is not None


def drop_skipped(batches, args, kwargs):
    """Batches that the program has dropped are not going to be used, where a later one is still there. Where all were copied
    (to a GPU), only the size of the arguments can show that some were skipped."""
    if len(batches) < 2 or batches[0].is_alive():
        return
    if any(batch.is_alive() for batch in batches):
        while not batches[0].is_alive():
            batches.popleft()
        return
    shown = (_shape(_first((*args, *kwargs.values()))) or (None,))[0]
    while any(batch.samples == shown for batch in batches) and batches[0].samples != shown:
        batches.popleft()


def of_indices(iterator, indices):
    """How many samples a batch sampler has chosen; None where its data set has no index, or it is asked for one at a time."""
    collates = getattr(iterator, "_auto_collation", False)
    if not isinstance(indices, list) and not (collates and hasattr(indices, "__len__")):
        return None
    return len(indices) if len(indices) and indices[0] is not None else None


def _of_loader(iterator, chosen, shape):
    if chosen is not None or not getattr(iterator, "_auto_collation", False):
        return chosen
    nominal = getattr(getattr(iterator, "_index_sampler", None), "batch_size", None)
    if not shape or nominal in shape[:2]:
        return nominal if shape else None
    return next((n for n in shape[:2] if nominal is None or n < nominal), None)


def _is_transposed(module):
    """True where the module or a part of it takes the batch as its second dimension."""
    return any(getattr(part, "batch_first", True) is False for part in module.modules())


def of_arguments(entry, module, args, kwargs):
    """Samples of a call; 0: unknown."""
    shape = _shape(_first((*args, *kwargs.values())))
    if not shape:
        return 0
    if entry.transposed is None:
        entry.transposed = _is_transposed(module)
    packed = len(shape) == 1
    if not entry.transposed or packed:
        return int(shape[0])
    if getattr(module, "batch_first", True) is False:
        return int(shape[1]) if len(shape) > 2 else 1
    note_once("batch_first", lambda: "samples are not counted where no DataLoader says the size of a batch: parts of %s have batch_first=False, so its "
              "first dimension may be a sequence's length (nrg.count(\"samples\", n) counts them)" % type(module).__name__)
    return 0
