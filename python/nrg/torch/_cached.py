"""Text that a program generates itself: a loop of calls with a KV cache, without generate().

The spans and counters are those of generate() (_generate.py), so that the report is the same. What calls of a model
say by `past_key_values` and `use_cache`, and how long the cache is before each, tells what they are:

  prefill      a call without a cache, with an empty one, or with one that the loop does not know and more than one new
               position begins a loop; what that one holds are `cached tokens`. In a loop that has read its own tokens one
               by one, a call with several new positions reads the next turn's prompt
  decode       a call with one new position of each sequence; or with at most FEW where drafts are checked: the calls
               right after the prompt have several, or the cache was made shorter between calls. Tokens are what the
               cache has grown by until the next call, so that drafts which the program drops are none

A loop ends with its cache, which most programs drop with the function that has the loop; with a call of a model that is
not part of it, an exception, or the next batch of a DataLoader. Spans are opened by what the program does, not by
a block of its code: where the depth shows that others have closed them, or opened some inside, they are left alone.
"""
import functools

from .. import _nrg
from ._generate import amount, given, held, length_of, split_mask
from ._state import name_id, state, this_thread, trouble, weak

FEW = 8
SPANS = 2  # that a loop has open: generate, and the phase in it


class Loop:
    __slots__ = ("level", "model", "cache", "decoding", "drafts", "single", "last", "layer", "made", "over")

    def __init__(self, level, model):
        self.level = level      # of spans, before it
        self.model = weak(model)
        self.cache = None       # weak; None: not seen yet, or a tuple
        self.decoding = False
        self.drafts = False     # several positions of a call are drafts
        self.single = False     # the loop has read its tokens one by one
        self.last = None        # call of the decode: sequences, new positions, and what the cache held before
        self.layer = None       # the cache's first, where drafts are checked: says what was kept when the cache is gone
        self.made = 0           # tokens that are not counted yet
        self.over = False

    def leave(self, thread):
        thread.cached = None
        if _is_ours(self):
            cache = self.layer or (self.cache() if self.cache is not None else None)
            _end_phase(self, held(cache, wait=False) if cache is not None else None)
            _nrg.unwind(self.level)


def _gone(thread, reference):
    """The cache was dropped."""
    loop = thread.cached
    if loop is not None and loop.cache is reference:
        loop.over = True
        if state.on and thread is this_thread() and not thread.in_call and not thread.in_backward:
            leave(thread)


def _is_ours(loop):
    return _nrg.depth() == loop.level + SPANS


def _settle_tokens(loop, now):
    """Counts the tokens of the last call. `now`: what the cache holds; None: unknown."""
    if loop.last is None:
        return
    sequences, new, before = loop.last
    loop.last = None
    kept = new if now is None or before is None else min(max(now - before, 0), new)
    loop.drafts |= kept < new
    if kept:
        _nrg.count(name_id("output tokens", "counter"), sequences * kept)
        loop.made += sequences * kept


def _end_phase(loop, now):
    """Ends the phase, and counts to the whole what came out of it."""
    _settle_tokens(loop, now)
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


def _read_prompt(loop, past, tokens, cached):
    if loop.decoding or _nrg.depth() == loop.level + 1:
        if loop.decoding:
            _end_phase(loop, past)
        _nrg.begin(name_id("prefill", "phase"))
        loop.decoding = loop.single = False
    for what, n in (("input tokens", tokens), ("cached tokens", cached)):
        if n:
            _nrg.count(name_id(what, "counter"), n)


def _decode(loop, sequences, new, past):
    """The pass before it has made the first token of each sequence, if it was the prompt's."""
    if loop.decoding:
        _settle_tokens(loop, past)
    else:
        if _is_ours(loop):
            loop.made = sequences
            _end_phase(loop, past)
        _nrg.count(name_id("requests", "counter"), sequences)
        _nrg.begin(name_id("decode", "phase"))
        loop.decoding = True
        loop.drafts |= new > 1
    loop.single |= new == 1
    loop.last = sequences, new, past


def _remember(thread, loop, cache):
    if loop.cache is None and cache is not None and not isinstance(cache, (tuple, list)):
        loop.cache = weak(cache, functools.partial(_gone, thread))


def _is_decode(loop, new, past):
    """`loop`: None when this call begins one. Draft tokens that were dropped show in the cache."""
    if loop is None or new == 1:
        return new == 1
    if loop.last is not None and past is not None and loop.last[2] is not None:
        loop.drafts |= past < loop.last[2] + loop.last[1]
    return new <= FEW and (loop.drafts or not loop.single)


def _tokens(value, kwargs, new, past):
    """Read and cached tokens of a prompt; masks on a GPU would have to be waited for."""
    rows = int(value.shape[0]) if value is not None else 1
    mask = kwargs.get("attention_mask") if length_of(kwargs.get("decoder_input_ids")) == 0 else None
    if not hasattr(mask, "device") or mask.device.type != "cpu":
        mask = None
    cached, read = split_mask(mask, rows, new, past)
    return amount([read]), amount([cached])


def _pass(thread, module, args, kwargs):
    loop, cache = thread.cached, kwargs.get("past_key_values")
    value = given(args, kwargs, "decoder_input_ids", "input_ids", "inputs_embeds")
    new = length_of(value) or 1
    past = held(cache, wait=False)
    known = loop is not None and loop.cache is not None and loop.cache() is cache
    filled = bool(past) or (past is None and known)
    if loop is not None and not (filled and (known or loop.cache is None)):
        leave(thread)
        loop = None
    begun = loop is None
    decode = filled and _is_decode(loop, new, past)
    if begun:
        loop = _begin(thread, module)
    elif not _is_ours(loop):
        return  # the program has spans of its own in there
    if decode:
        _decode(loop, int(value.shape[0]) if value is not None else 1, new, past)
    else:
        _read_prompt(loop, past, *_tokens(value, kwargs, new, (past or 0) if begun else 0))
    _remember(thread, loop, cache)
    if loop.drafts and loop.layer is None:
        loop.layer = next(iter(getattr(cache, "layers", ())), None)


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
