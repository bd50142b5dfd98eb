"""Text generation of Hugging Face's transformers: prefill and decode as phases, with their tokens.

  generate     one call of model.generate(); counts `requests`, one per sequence that it returns, and `generated tokens`
  prefill      reading the prompt, and the first token of each sequence. Counts `input tokens`: positions that passes
               of the model have read, without padding; and `cached tokens`: those that a cache held already
  decode       from the first pass after a token was chosen. Counts `output tokens`: all but the first of each sequence

All is taken from the work, not from the arguments: positions from what each pass of the model (and of its encoder)
is given, the cache's length from the cache before the first of them, a chosen token from the call of the stopping
criteria, which every way of decoding makes with all tokens so far. So tokens are known when generate() raises, too.
The length of the prompt and the end-of-text tokens are those that generate() has worked out when it asks for
the logits processors.

generate() may be called inside of generate(). Before the outer one has prepared itself, the inner one does its work
(custom_generate) and is counted in its place; later it makes drafts (an assistant), which are work of the outer one.

The classes are wrapped when transformers' modules for them are loaded, which may be long after PyTorch's.
"""
import sys

import torch

from .. import _nrg
from ..inject._nrg_inject import Waiting
from . import _batching
from ._state import listening, name_id, note_once, this_thread, trouble

MODULE = "transformers.generation.utils"
MODELS = "transformers.modeling_utils"
Tensor = torch.Tensor


class Generation:
    """One call of generate(), on one thread."""

    __slots__ = ("level", "outer", "root", "owner", "model", "kwargs", "phase", "prompt", "config", "chosen", "ids",
                 "ends", "reads", "read", "cached", "counted")

    def __init__(self, outer, model, kwargs):
        self.outer = outer      # a generation that this one is inside of
        self.root = outer.root if outer else self  # has the spans
        self.owner = outer.owner if outer and outer.owner.prompt is not None else self  # whose tokens are counted
        self.level = _nrg.depth()  # of spans, before it
        self.model = model
        self.kwargs = kwargs
        self.phase = None       # that is open, of the root
        self.prompt = None      # its length for the decoder; None: generate() has not prepared itself
        self.config = None
        self.chosen = False     # a token of each sequence
        self.ids = None         # all tokens so far, as of the last one chosen
        self.ends = []          # of each choice: the length then, and which sequences are at their end
        self.reads = []         # of the prefill: masks of positions that were read, or their numbers
        self.read = 0           # positions of each sequence that passes have read
        self.cached = None      # a mask, or a number
        self.counted = False    # itself, or what was called inside


def length_of(value):
    return int(value.shape[1]) if isinstance(value, Tensor) and value.dim() > 1 else 0


def given(args, kwargs, *names):
    """The tokens or embeddings that a call is given; None: there are none."""
    found = next((kwargs[name] for name in names if length_of(kwargs.get(name))), None)
    return found if found is not None else next((value for value in args if length_of(value)), None)


def amount(read):
    """Of a mask: what is no padding. Waits for the GPU, if it is there."""
    return sum(int((r != 0).sum()) if isinstance(r, Tensor) else r for r in read)


def held(cache, wait):
    """How many positions of each sequence a cache holds; None: unknown, or on a GPU that must not be waited for."""
    if cache is None:
        return 0
    if isinstance(cache, (tuple, list)):
        first = cache[0][0] if cache and isinstance(cache[0], (tuple, list)) else None
        return int(first.shape[-2]) if isinstance(first, Tensor) else None
    try:
        length = cache.get_seq_length()
    except (AttributeError, ValueError):  # of states that have no length
        return None
    return int(length) if wait or not isinstance(length, Tensor) or length.device.type == "cpu" else None


def split_mask(mask, rows, new, past):
    """What of `past` and `new` positions is no padding: of each a mask, or a number."""
    if isinstance(mask, Tensor) and mask.dim() == 2 and mask.shape[0] == rows and mask.shape[1] >= new:
        end = int(mask.shape[1])
        return mask[:, max(end - new - past, 0):end - new], mask[:, end - new:]
    return rows * past, rows * new


def _set_phase(owner, name):
    root = owner.root
    if root.phase == name:
        return
    if root.phase == "prefill":
        _count_prompt(owner)
    _nrg.unwind(root.level + 1)
    _nrg.begin(name_id(name, "phase"))
    root.phase = name


def _count_prompt(owner):
    """The end of the prefill: generate() itself has just waited for the first token, so the GPU has nothing to do."""
    tokens, cached = amount(owner.reads), amount([] if owner.cached is None else [owner.cached])
    if tokens:
        _nrg.count(name_id("input tokens", "counter"), tokens)
    if cached:
        _nrg.count(name_id("cached tokens", "counter"), cached)
    owner.reads, owner.cached = [], 0


def _has_encoder(model):
    return bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))


def _read_encoder(owner, module, args, kwargs):
    if not _has_encoder(owner.model) or module is not owner.model.get_encoder():
        return
    value = given((), kwargs, "input_ids", "inputs_embeds")
    if value is None:
        names = ", ".join(name for name, thing in kwargs.items() if isinstance(thing, Tensor)) or "positional"
        note_once(("features", type(owner.model)), lambda: "%s.generate(): what its encoder reads (%s) is not tokens, and "
                  "not counted" % (type(owner.model).__name__, names))
        return
    rows, new = int(value.shape[0]), length_of(value)
    owner.reads.append(split_mask(kwargs.get("attention_mask"), rows, new, 0)[1])


def _assisted(owner):
    """The first pass reads drafts, too."""
    config = owner.config
    return any((owner.kwargs.get("assistant_model"), getattr(config, "prompt_lookup_num_tokens", None),
                getattr(config, "assistant_early_exit", None), getattr(config, "use_mtp", None)))


def _mask_of(owner, kwargs, name, rows, end):
    """The pass's, or what generate() was given, where passes get none or one of attention."""
    mask = kwargs.get(name)
    if isinstance(mask, Tensor) and mask.dim() == 2:
        return mask
    mask = owner.kwargs.get(name)
    if not isinstance(mask, Tensor) or mask.dim() != 2 or mask.shape[1] < end or rows % mask.shape[0]:
        return None
    return mask[:, :end].repeat_interleave(rows // int(mask.shape[0]), 0)


def _read(owner, args, kwargs):
    encoder = _has_encoder(owner.model)
    names = ("decoder_input_ids", "decoder_inputs_embeds") if encoder else ("input_ids", "inputs_embeds")
    value = given(() if encoder else args, kwargs, *names)
    if value is None:
        return
    rows, new = int(value.shape[0]), length_of(value)
    before = owner.cached is None
    past = held(kwargs.get("past_key_values"), wait=True) or 0 if before else owner.read
    mask = _mask_of(owner, kwargs, "decoder_attention_mask" if encoder else "attention_mask", rows, past + new)
    cached, read = split_mask(mask, rows, new, past)
    skip = 1 if encoder and before and not past else 0  # the token that starts every text of a decoder
    last = min(new, max(owner.prompt - owner.read, 0)) if _assisted(owner) and value.dim() == 2 else new
    owner.reads.append(read[:, skip:last] if isinstance(read, Tensor) else rows * max(last - skip, 0))
    if before:
        owner.cached = cached
        owner.read = past
    owner.read += new


def _is_read(owner):
    """Of loops that are not transformers' own and may not ask the stopping criteria: the prompt was read before."""
    return owner.kwargs.get("custom_generate") is not None and owner.read >= max(owner.prompt, 1)


def before_pass(generation, module, args, kwargs):
    """Before an outermost call of a module inside of generate()."""
    if isinstance(generation, _batching.Batching):
        return
    owner = generation.owner
    try:
        if owner.prompt is not None and module is owner.model and _is_read(owner):
            owner.chosen = True
        _set_phase(owner, "decode" if owner.chosen else "prefill")
        if owner.chosen or generation is not owner:
            return
        if module is not owner.model:
            _read_encoder(owner, module, args, kwargs)
        elif owner.prompt is not None:
            _read(owner, args, kwargs)
    except Exception as problem:
        trouble("generate", problem)


def _before(args, kwargs):
    if not listening() or not args:
        return None
    thread = this_thread()
    if isinstance(thread.generation, _batching.Batching):
        return None
    if thread.cached is not None:  # a loop of the program itself, before
        thread.cached.leave(thread)
    thread.generations += 1
    generation = Generation(thread.generation, args[0], kwargs or {})
    thread.generation = generation
    if generation.root is generation:
        _nrg.begin(name_id("generate", "span", type(args[0]).__name__))
        _set_phase(generation, "prefill")
    return thread, generation


def _prepared(args, kwargs):
    """Before generate() asks for its logits processors."""
    kwargs = kwargs or {}
    generation = this_thread().generation
    length = kwargs.get("input_ids_seq_length", args[2] if len(args) > 2 else None)
    if isinstance(generation, Generation) and generation.prompt is None and length is not None:
        generation.prompt = int(length)
        generation.config = kwargs.get("generation_config", args[1] if len(args) > 1 else None)
        if generation.owner is generation and generation.outer is not None:
            _set_phase(generation, "prefill")
    return None


def _chosen(args, kwargs):
    """Before the stopping criteria see a new token of each sequence."""
    generation = this_thread().generation
    ids = (kwargs or {}).get("input_ids", args[1] if len(args) > 1 else None)
    if isinstance(generation, Generation) and length_of(ids):
        generation.ids = ids
        generation.chosen = True
        return generation, length_of(ids)
    return None


def _ended(token, done, error):
    """What the stopping criteria say is kept as it is, on the GPU perhaps, and looked at in the end."""
    generation, length = token
    if isinstance(done, Tensor) and done.dim() == 1 and len(done) > 1 and generation.owner is generation:
        generation.ends.append((length, done))


def _ends(config):
    """The tokens that end a text: none, one, several, or a tensor."""
    value = getattr(config, "eos_token_id", None)
    if isinstance(value, Tensor):
        value = value.flatten().tolist()
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]


def _beams(generation):
    return getattr(generation.config, "num_beams", 1) or 1


def _new_tokens(generation, sequences):
    """How many tokens were made, up to the end of each sequence, and of how many sequences."""
    rows, prompt = int(sequences.shape[0]), generation.prompt
    if generation.ends and len(generation.ends[0][1]) == rows and _beams(generation) == 1:
        done = torch.stack([done for _, done in generation.ends]).long()
        lengths = torch.tensor([length for length, _ in generation.ends], device=done.device)
        length = torch.where(done.any(0), lengths[done.argmax(0)], int(sequences.shape[1]))
        return int((length - prompt).sum()), rows
    new = sequences[:, prompt:]
    ended = torch.zeros_like(new, dtype=torch.bool)
    for end in _ends(generation.config):
        ended |= new == end
    after = ended.long().cumsum(1) - ended.long()
    return int((after == 0).sum()), rows


def _sequences(generation, result, error):
    """All tokens of what was made: returned, or chosen until an exception."""
    found = getattr(result, "sequences", result) if error is None else None
    if isinstance(found, Tensor) and found.dim() == 2 and found.shape[1] >= generation.prompt:
        return found
    return generation.ids[::_beams(generation)] if generation.ids is not None else None


def _count(generation, result, error):
    sequences = _sequences(generation, result, error) if generation.prompt is not None else None
    if generation.root.phase == "prefill":
        _count_prompt(generation)
    if sequences is None:
        if error is None and not generation.counted:
            note_once(("result", type(generation.model)), lambda: "%s.generate(): what it returned (%s) is not understood, "
                      "its tokens are not counted" % (type(generation.model).__name__, type(result).__name__))
        return
    made, n = _new_tokens(generation, sequences)
    if generation.root.phase == "decode" and made > n:
        _nrg.count(name_id("output tokens", "counter"), made - n)
    _nrg.unwind(generation.root.level + 1)
    generation.root.phase = None
    _nrg.count(name_id("requests", "counter"), n)
    _nrg.count(name_id("generated tokens", "counter"), made)
    generation.root.counted = True


def _after(token, result, error):
    thread, generation = token
    thread.generation = generation.outer
    try:
        if generation.owner is generation:
            _count(generation, result, error)
    except Exception as problem:
        trouble("generate", problem)
    if generation.root is generation:
        _nrg.unwind(generation.level)


class Overrides:
    """generate() of classes that have their own: said to be not counted when it does not use transformers'."""

    def __init__(self, patches, base):
        self.patches, self.base = patches, base

    def before_init(self, args, kwargs):
        for cls in type(args[0]).__mro__:
            own = cls.__dict__.get("generate")
            if callable(own) and cls is not self.base and issubclass(cls, self.base) and not hasattr(own, "nrg_wraps"):
                self.patches.replace(cls, "generate", _nrg.around(own, _before_own, _after_own))
        return None


def _before_own(args, kwargs):
    thread = this_thread()
    return (thread, thread.generations, type(args[0])) if args and listening() and thread.generation is None else None


def _after_own(token, result, error):
    thread, generations, cls = token
    if thread.generations == generations and error is None:
        note_once(("own", cls), lambda: "%s.generate() is not transformers' own: its tokens are not counted" % cls.__name__)


def _wrap(patches):
    module = sys.modules.get(MODULE)
    owner = getattr(module, "GenerationMixin", None)
    criteria = getattr(module, "StoppingCriteriaList", None)
    for cls, name, before, after in ((owner, "generate", _before, _after), (owner, "_get_logits_processor", _prepared, None),
                                     (criteria, "__call__", _chosen, _ended)):
        old = cls.__dict__.get(name) if cls is not None else None
        if old is not None and not hasattr(old, "nrg_wraps"):
            patches.replace(cls, name, _nrg.around(old, before, after))
    if owner is not None:
        _batching.wrap(patches, owner)


def _wrap_models(patches):
    base = getattr(sys.modules.get(MODULE), "GenerationMixin", None)
    model = getattr(sys.modules.get(MODELS), "PreTrainedModel", None)
    init = model.__dict__.get("__init__") if model is not None else None
    if base is not None and init is not None and not hasattr(init, "nrg_wraps"):
        own = Overrides(patches, base)
        patches.replace(model, "__init__", _nrg.around(init, own.before_init, None))


def patch(patches):
    """Wraps generate() now, or when its module is loaded. What this returns takes the waiting back."""
    waiting = []
    for name, wrap in ((MODULE, _wrap), (MODELS, _wrap_models)):
        if name in sys.modules:
            wrap(patches)
        else:
            waiting.append(Waiting(name, lambda wrap=wrap: patches.done and wrap(patches)))
            sys.meta_path.insert(0, waiting[-1])
    return lambda: [each.leave() for each in waiting]
