"""Text that a program generates itself: a loop of calls with a KV cache, without generate().

The spans and counters are those of generate() (_generate.py), so that the report is the same. What calls of a model
say by `past_key_values` and `use_cache` tells what they are:

  prefill      a call without a cache, or with an empty one, begins a loop; one that reads more than FEW new positions
               of each sequence goes on reading the prompt, or reads the next turn's
  decode       a call with what the loop has cached and few new positions: as many tokens, of each sequence

A loop ends with its cache, which most programs drop with the function that has the loop; with a call of a model that is
not part of it, an exception, or the next batch of a DataLoader. Spans are opened by what the program does, not by
a block of its code: where the depth shows that others have closed them, or opened some inside, they are left alone.
"""
import functools

from .. import _nrg
from ._generate import Tensor, _input_tokens, _length, _positions, _prompt
from ._state import name_id, state, this_thread, trouble, weak

FEW = 8
SPANS = 2  # that a loop has open: generate, and the phase in it


class Loop:
    __slots__ = ("level", "model", "cache", "decoding", "sequences", "made", "over")

    def __init__(self, level, model):
        self.level = level      # of spans, before it
        self.model = weak(model)
        self.cache = None       # weak; None: not seen yet, or a tuple
        self.decoding = False
        self.sequences = 0
        self.made = 0           # tokens that are not counted yet
        self.over = False

    def leave(self, thread):
        thread.cached = None
        if _is_ours(self):
            _end_phase(self)
            _nrg.unwind(self.level)


def _is_static(cache):
    """Its length is on the GPU: asking for it would mean waiting."""
    return getattr(cache, "is_compileable", False) or "Static" in type(cache).__name__


def _cached_positions(cache):
    """How many positions a cache holds; 0 of one whose length must not be asked for."""
    if cache is None or _is_static(cache):
        return 0
    if isinstance(cache, (tuple, list)):
        return int(cache[0][0].shape[-2]) if cache and isinstance(cache[0], (tuple, list)) and isinstance(cache[0][0], Tensor) else 0
    return int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0


def _gone(thread, reference):
    """The cache was dropped."""
    loop = thread.cached
    if loop is not None and loop.cache is reference:
        loop.over = True
        if state.on and thread is this_thread() and not thread.in_call and not thread.in_backward:
            leave(thread)


def _is_ours(loop):
    return _nrg.depth() == loop.level + SPANS


def _end_phase(loop):
    """Ends the phase, and counts to the whole what came out of it."""
    _nrg.unwind(loop.level + 1)
    if loop.made:
        _nrg.count(name_id("generated tokens", "counter"), loop.made)
        loop.made = 0


def leave(thread):
    """The loop is over, if there is one."""
    if thread.cached is not None:
        thread.cached.leave(thread)


def _begin(thread, module):
    loop = thread.cached = Loop(_nrg.depth(), module)
    _nrg.begin(name_id("generate", "span", type(module).__name__))
    return loop


def _read_prompt(loop, tokens):
    if loop.decoding or _nrg.depth() == loop.level + 1:
        if loop.decoding:
            _end_phase(loop)
        _nrg.begin(name_id("prefill", "phase"))
        loop.decoding = False
    _nrg.count(name_id("input tokens", "counter"), tokens)


def _decode(loop, sequences, new):
    """The pass before it has made the first token of each sequence, if it was the prompt's."""
    if not loop.decoding:
        if _is_ours(loop):
            loop.made = sequences
            _end_phase(loop)
        _nrg.count(name_id("requests", "counter"), sequences)
        _nrg.begin(name_id("decode", "phase"))
        loop.decoding = True
    _nrg.count(name_id("output tokens", "counter"), sequences * new)
    loop.made += sequences * new


def _remember(thread, loop, cache):
    if loop.cache is None and cache is not None and not isinstance(cache, (tuple, list)):
        loop.cache = weak(cache, functools.partial(_gone, thread))


def _pass(thread, module, args, kwargs):
    loop, cache = thread.cached, kwargs.get("past_key_values")
    prompt = _prompt((None, *args), kwargs)
    new = _length(kwargs.get("decoder_input_ids")) or _positions(args, kwargs)
    sequences = int(prompt.shape[0]) if prompt is not None else 1
    known = loop is not None and loop.cache is not None and loop.cache() is cache
    filled = _cached_positions(cache) > 0 or (known and _is_static(cache))
    if loop is not None and not (filled and (known or loop.cache is None)):
        leave(thread)
        loop = None
    if loop is None:
        loop = _begin(thread, module)
    elif not _is_ours(loop):
        return  # the program has spans of its own in there
    if filled and new <= FEW:
        _decode(loop, sequences, new)
    else:
        _read_prompt(loop, sequences * new if filled or prompt is None else _input_tokens(prompt, kwargs))
    _remember(thread, loop, cache)


def before_call(thread, module, args, kwargs):
    """Before an outermost call of a model that is not for training. True: it is part of such a loop."""
    loop = thread.cached
    if loop is not None and _nrg.depth() < loop.level + SPANS:
        loop = thread.cached = None  # closed by others
    uses = "past_key_values" in kwargs or kwargs.get("use_cache")
    if loop is not None and (loop.over or not uses or loop.model() is not module):
        leave(thread)
    if not uses or not hasattr(module, "config"):
        return False
    try:
        _pass(thread, module, args, kwargs)
    except Exception as problem:
        trouble("KV cache", problem)
        leave(thread)
    return True
