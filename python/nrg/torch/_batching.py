"""Continuous batching of Hugging Face's transformers: generate_batch(), and managers that requests are added to.

A thread of transformers' own makes batches of all requests that are there, and passes of the model for them. The spans
are on that thread, and are those of generate() (_generate.py):

  generate     while there are requests; counts `requests`, when the first token of each is made, and `generated tokens`
  prefill      passes that read prompts alone. Counts `input tokens`: positions that were read
  decode       passes that read tokens made before alone. Counts `output tokens`: all but the first of each request
  prefill and decode    passes that do both: their energy can't be told apart, so they count both in a phase of its own

The processor of batches says when it has prepared one and when it has got its tokens; requests keep what was made. Where
a version of transformers has other ones, that is said in a note.
"""
import sys

from .. import _nrg
from ._state import listening, name_id, note_once, this_thread, trouble

BOTH = "prefill and decode"


class Batching:
    """What is open on the thread of a manager, between the first batch and the time when there is none."""

    __slots__ = ("level", "phase", "seen", "requests", "made")

    def __init__(self):
        self.level = _nrg.depth()
        self.phase = None
        self.seen = {}      # state of a request, by its number: itself, and its tokens that are counted
        self.requests = 0   # that are not counted yet
        self.made = 0

    def set_phase(self, name):
        if self.phase == name:
            return
        _nrg.unwind(self.level + 1)
        for what, n in (("requests", self.requests), ("generated tokens", self.made)):
            if n:
                _nrg.count(name_id(what, "counter"), n)
        self.requests = self.made = 0
        if name:
            _nrg.begin(name_id(name, "phase"))
        self.phase = name

    def leave(self, thread):
        thread.generation = None
        self.set_phase(None)
        _nrg.unwind(self.level)


def _open(thread, processor):
    if thread.generation is None:
        thread.generation = Batching()
        _nrg.begin(name_id("generate", "span", type(processor).__name__))
    return thread.generation


def _states(processor):
    """The requests of the batch that is prepared, and how many positions of each it reads."""
    place = processor.inputs_and_outputs
    pairs = getattr(place, "io_pairs", None)  # of batches that overlap
    place = pairs[place.current_pair].host_io if pairs else place
    return [(each.state, int(each.query_length)) for each in place.requests_in_batch]


def _prepared(processor, thread):
    states = _states(processor)
    prompt = 0
    for state, new in states:
        begin = state.position_offset - new
        prompt += max(min(state.position_offset, len(state.initial_tokens)) - begin, 0)
    batching = _open(thread, processor)
    for state, _ in states:
        batching.seen.setdefault(id(state), [state, 0])
    rest = sum(new for _, new in states) - prompt
    batching.set_phase(BOTH if prompt and rest else "prefill" if prompt else "decode")
    if prompt:
        _nrg.count(name_id("input tokens", "counter"), prompt)


def _made(processor, thread):
    batching = _open(thread, processor)
    if batching.phase is None:
        batching.set_phase("decode")
    output = 0
    for key, entry in list(batching.seen.items()):
        state, counted = entry
        entry[1] = len(state.generated_tokens)
        new, first = entry[1] - counted, not counted and entry[1] > 0
        batching.made += new
        batching.requests += first
        output += new - first
        if state.status.name in ("FINISHED", "FAILED"):
            del batching.seen[key]
    if output:
        _nrg.count(name_id("output tokens", "counter"), output)


def _guarded(work, processor):
    """One that is not as expected is left alone."""
    thread = this_thread()
    if not listening() or not isinstance(thread.generation, (Batching, type(None))):
        return
    try:
        work(processor, thread)
    except (AttributeError, TypeError, ValueError, IndexError) as problem:
        _unknown()
        trouble("continuous batching", problem)


def _unknown():
    note_once("continuous batching", lambda: "continuous batching of this version of transformers is not understood: "
              "its tokens are not counted")


def _keep(args, kwargs):
    return args[0] if args else None


def _after_prepare(processor, result, error):
    if result:
        _guarded(_prepared, processor)
    elif not processor.has_pending_requests():
        _after_loop(processor, None, error)


def _after_update(processor, result, error):
    _guarded(_made, processor)


def _after_loop(token, result, error):
    thread = this_thread()
    if isinstance(thread.generation, Batching):
        thread.generation.leave(thread)


def _before_batch(args, kwargs):
    if listening():
        _unknown()
    return None


def wrap(patches, owner):
    """Of the mixin's module, if this version of transformers has continuous batching."""
    mixin = next((cls for cls in owner.__mro__ if "generate_batch" in cls.__dict__), None)
    if mixin is None:
        return
    module = sys.modules.get(mixin.__module__)
    processor = getattr(module, "ContinuousBatchProcessor", None)
    manager = getattr(module, "ContinuousBatchingManager", None)
    hooks = ((processor, "prepare_next_batch", _after_prepare), (processor, "update_batch", _after_update),
             (manager, "_run_generation_loop", _after_loop))
    if any(cls is None or name not in cls.__dict__ for cls, name, _ in hooks):
        patches.replace(mixin, "generate_batch", _nrg.around(mixin.__dict__["generate_batch"], _before_batch, None))
        return
    for cls, name, after in hooks:
        patches.replace(cls, name, _nrg.around(cls.__dict__[name], _keep, after))
