"""Parameters and MACs of the model that a run is about: nrg.record(..., model=net, input_size=...).

The parameters are counted here and noted. With the size of the input the model is also traced
(nrg.torch.trace) and its graph kept in the recording: nrg then counts from the graph, as `nrg graph` does,
and the note is only used for what the graph leaves open.
"""
import warnings

from . import _nrg


def parameters(model):
    """How many numbers a model learns or keeps as parameters; None when it can't be told."""
    if hasattr(model, "count_params"):  # Keras; not built yet: ValueError
        try:
            return int(model.count_params())
        except ValueError:
            return None
    if hasattr(model, "parameters"):  # PyTorch; shared ones are listed once
        return sum(int(p.numel()) for p in model.parameters())
    return None


def log(model, input_size):
    """Keeps what can be told about the model with the recording that runs."""
    count = parameters(model)
    if count is not None:
        _nrg.note("model_params", str(count))
    traced = input_size is not None and _trace(model, input_size)
    if count is None and not traced:
        warnings.warn("nrg.record: the parameters of %s can't be counted" % type(model).__name__, stacklevel=5)


def _trace(model, input_size):
    """True when the graph is in the recording."""
    try:
        import torch
        from . import torch as nrg_torch
    except ImportError:
        torch = None
    if torch is None or not isinstance(model, torch.nn.Module):
        warnings.warn("nrg.record: only PyTorch models can be traced: MACs of %s are not known" % type(model).__name__,
                      stacklevel=6)
        return False
    sizes = input_size if isinstance(input_size[0], (tuple, list)) else [input_size]
    first = next(iter(model.parameters()), torch.empty(0))
    # Numbers of words where the model does not take what its parameters are made of.
    for kind in (first.dtype, torch.long):
        try:
            traced = nrg_torch.trace(model, *[torch.zeros(*size, dtype=kind, device=first.device) for size in sizes])
            return bool(getattr(traced, "stored", True))
        except Exception as error:  # whatever a model's own code raises
            reason = error
    warnings.warn("nrg.record: the model could not be traced, so that its MACs are not known: %s" % reason,
                  stacklevel=6)
    return False
