"""Text generation of Hugging Face's transformers: prefill and decode as phases, with their tokens.

  generate     one call of model.generate(); counts `requests`, one per sequence that it returns, and `generated tokens`
  prefill      from its begin to the first forward pass that reads what it made itself: reading the prompt, and
               the first token of each sequence. Counts `input tokens`, without padding
  decode       the rest: all tokens but the first. Counts `output tokens`, without these

Which pass reads what is told by lengths: passes belong to the prefill until together they have read as many
positions as the prompt has. So it holds with a cache and without, for chunks of a prompt and for encoders.
A sequence ends with its first end-of-text token, which counts; what pads it to the length of others does not.

The class is wrapped when transformers' module for it is loaded, which may be long after PyTorch's.
"""
import sys

import torch

from .. import _nrg
from ..inject._nrg_inject import Waiting
from ._state import listening, name_id, this_thread, trouble

MODULE = "transformers.generation.utils"
Tensor = torch.Tensor


class Generation:
    """One call of generate(), on one thread."""

    __slots__ = ("level", "outer", "length", "read", "decoding", "sequences")

    def __init__(self, level, outer, length):
        self.level = level      # of spans, before it
        self.outer = outer      # a generation that this one is inside of
        self.length = length    # of the prompt, with padding
        self.read = 0           # positions that passes have read
        self.decoding = False
        self.sequences = 0


def _length(value):
    return int(value.shape[1]) if isinstance(value, Tensor) and value.dim() > 1 else 0


def _positions(args, kwargs):
    """How many positions of each sequence a pass reads."""
    for name in ("input_ids", "inputs_embeds", "decoder_input_ids", "input_features"):
        if _length(kwargs.get(name)):
            return _length(kwargs[name])
    return next((_length(value) for value in args if _length(value)), 1)


def before_pass(generation, args, kwargs):
    """Before an outermost call of a module inside of generate()."""
    if not generation.decoding and generation.read and generation.read >= generation.length:
        generation.decoding = True
        _nrg.unwind(generation.level + 1)
        _nrg.begin(name_id("decode", "phase"))
    generation.read += _positions(args, kwargs)


def _prompt(args, kwargs):
    for value in (kwargs.get("inputs_embeds"), kwargs.get("inputs"), kwargs.get("input_ids"), *args[1:2],
                  kwargs.get("input_features")):
        if _length(value):
            return value
    return None


def _input_tokens(prompt, kwargs):
    mask = kwargs.get("attention_mask")
    if isinstance(mask, Tensor) and mask.dim() == 2 and mask.device.type == "cpu":  # elsewhere it would have to be waited for
        return int(mask.sum())
    return int(prompt.shape[0]) * int(prompt.shape[1])


def _before(args, kwargs):
    if not listening():
        return None
    thread = this_thread()
    if thread.cached is not None:  # a loop of the program itself, before
        thread.cached.leave(thread)
    prompt = _prompt(args, kwargs)
    generation = Generation(_nrg.depth(), thread.generation, _length(prompt))
    thread.generation = generation
    _nrg.begin(name_id("generate", "span", type(args[0]).__name__ if args else None))
    _nrg.begin(name_id("prefill", "phase"))
    if prompt is not None:
        _nrg.count(name_id("input tokens", "counter"), _input_tokens(prompt, kwargs))
    return thread, generation, args, kwargs


def _ends(model, kwargs):
    """The tokens that end a text."""
    config = kwargs.get("generation_config") or getattr(model, "generation_config", None)
    ends = kwargs.get("eos_token_id", getattr(config, "eos_token_id", None))
    if isinstance(ends, Tensor):
        ends = ends.flatten().tolist()
    return ends if isinstance(ends, (list, tuple)) else [] if ends is None else [ends]


def _new_tokens(model, prompt_length, kwargs, sequences):
    """How many tokens each sequence has that were made, up to its end."""
    decoder_only = not getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    has_prompt = decoder_only and kwargs.get("inputs_embeds") is None
    new = sequences[:, prompt_length if has_prompt else 0 if decoder_only else 1:]
    ended = torch.zeros_like(new, dtype=torch.bool)
    for end in _ends(model, kwargs):
        ended |= new == end
    after = ended.long().cumsum(1) - ended.long()
    return int((after == 0).sum()), int(sequences.shape[0])


def _after(token, result, error):
    thread, generation, args, kwargs = token
    thread.generation = generation.outer
    try:
        sequences = getattr(result, "sequences", result)
        if error is None and isinstance(sequences, Tensor) and sequences.dim() == 2:
            made, n = _new_tokens(args[0], generation.length, kwargs, sequences)
            if generation.decoding and made > n:
                _nrg.count(name_id("output tokens", "counter"), made - n)
            _nrg.unwind(generation.level + 1)
            _nrg.count(name_id("requests", "counter"), n)
            _nrg.count(name_id("generated tokens", "counter"), made)
    except Exception as problem:
        trouble("generate", problem)
    _nrg.unwind(generation.level)


def _wrap(patches):
    owner = getattr(sys.modules.get(MODULE), "GenerationMixin", None)
    generate = owner.__dict__.get("generate") if owner is not None else None
    if generate is not None and not hasattr(generate, "nrg_wraps"):
        patches.replace(owner, "generate", _nrg.around(generate, _before, _after))


def patch(patches):
    """Wraps generate() now, or when its module is loaded. What this returns takes the waiting back."""
    if MODULE in sys.modules:
        _wrap(patches)
        return lambda: None
    waiting = Waiting(MODULE, lambda: patches.done and _wrap(patches))
    sys.meta_path.insert(0, waiting)
    return waiting.leave
