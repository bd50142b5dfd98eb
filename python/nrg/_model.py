"""Parameters and MACs of the model that a run is about: nrg.record(..., model=net, input_size=...).

With the size of the input the model is traced (nrg.torch.trace), and its graph kept in the
recording: parameters and MACs are then counted by nrg from the graph, as `nrg graph` does. Without,
or where tracing fails, parameters are counted here.
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
    if input_size is not None and _trace(model, input_size):
        return
    count = parameters(model)
    if count is None:
        warnings.warn("nrg.record: the parameters of %s can't be counted" % type(model).__name__, stacklevel=5)
    else:
        _nrg.note("model_params", str(count))


def _trace(model, input_size):
    import importlib
    try:
        torch = importlib.import_module("torch")
        if not isinstance(model, torch.nn.Module):
            return False
        tracing = importlib.import_module("nrg.torch")
    except ImportError:
        return False
    sizes = input_size if isinstance(input_size[0], (tuple, list)) else [input_size]
    where = next(iter(model.parameters()), torch.empty(0))
    try:
        tracing.trace(model, *[torch.zeros(*size, dtype=where.dtype, device=where.device) for size in sizes])
    except Exception as error:  # whatever a model's own code raises
        warnings.warn("nrg.record: the model could not be traced, so that its MACs are not known: %s" % error,
                      stacklevel=6)
        return False
    return True
