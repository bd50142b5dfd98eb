"""Kinds of generation, each with the truth that the program finds out by itself: run by test_generate.py under nrg.

    generations.py KIND...

Each kind is a function; it runs in a span of its name and returns what is to be counted: `input` positions that passes
of the model have read before its first token, `cached` ones, `output` tokens, `made` tokens, and `requests`. Positions
are seen by forward() itself, tokens in what is returned. Models are made of small configurations, nothing is downloaded.
"""
import json
import sys
import threading
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import transformers as hf  # noqa: E402
from transformers import ContinuousBatchingConfig, DynamicCache, GenerationConfig, StaticCache, StoppingCriteria, StoppingCriteriaList  # noqa: E402

import nrg  # noqa: E402

hf.logging.set_verbosity_error()
torch.manual_seed(0)
SMALL = dict(vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=2, bos_token_id=1, pad_token_id=0)
T5 = dict(d_model=32, d_kv=16, d_ff=32, num_layers=1, num_heads=2, vocab_size=50, decoder_start_token_id=0, pad_token_id=0)


class Seen(list):
    """The passes of a model: positions of each, of how many sequences."""

    def __init__(self, model, names=("input_ids", "inputs_embeds")):
        super().__init__()
        forward = model.forward

        def counted(*args, **kwargs):
            tensors = [kwargs.get(name) for name in names] + list(args)
            value = next(v for v in tensors if v is not None)
            self.append(tuple(value.shape[:2]))
            return forward(*args, **kwargs)
        model.forward = counted


def llama(eos=None):
    return hf.LlamaForCausalLM(hf.LlamaConfig(eos_token_id=eos, **SMALL)).eval()


def ids(*shape):
    return torch.randint(3, 50, shape)


def size(shape):
    return shape[0] * shape[1]


def truth(input, made, requests, cached=0, output=None):
    return dict(input=input, cached=cached, output=made - requests if output is None else output, made=made, requests=requests)


def plain():
    model = llama()
    seen = Seen(model)
    out = model.generate(ids(2, 7), max_new_tokens=6)
    return truth(size(seen[0]), out[:, 7:].numel(), 2)


def one_token():
    model = llama()
    out = model.generate(ids(3, 5), max_new_tokens=1)
    return truth(15, out.shape[0], 3)


def ends_in_a_batch():
    """The first row ends early; left padding; no mask of zeros is read."""
    model = llama(eos=2)
    batch, mask = ids(3, 9), torch.ones(3, 9, dtype=torch.long)
    mask[1, :4] = 0
    batch[1, :4] = 0
    def force(i, row):
        return [2] if row[-1] == 7 or (i == 0 and len(row) >= 12) else list(range(3, 50))
    out = model.generate(batch, attention_mask=mask, max_new_tokens=8, prefix_allowed_tokens_fn=force)
    made = sum(r.index(2) + 1 if 2 in r else len(r) for r in out[:, 9:].tolist())
    assert made < 24
    return truth(23, made, 3)


def stop_strings_of_one_row():
    """A criterion ends the first row; what pads it is not made."""
    class Row(StoppingCriteria):
        def __call__(self, all_ids, scores, **_):
            return torch.tensor([all_ids.shape[1] >= 8, False])
    model = llama(eos=2)
    out = model.generate(ids(2, 5), max_new_tokens=7, min_new_tokens=7, stopping_criteria=StoppingCriteriaList([Row()]))
    assert out[0, 8:].eq(0).all(), out
    return truth(10, 3 + 7, 2)


def turns(cache, only_new=False, model=None):
    """A chat: the cache is carried over."""
    model = model or llama()
    seen, total = Seen(model), truth(0, 0, 0)
    text = ids(1, 11)
    for turn in range(4):
        before = int(cache.get_seq_length())  # a static one has a tensor that grows
        given, mask = (text[:, before:], torch.ones_like(text)) if only_new else (text, torch.ones_like(text))
        del seen[:]
        out = model.generate(given, attention_mask=mask, past_key_values=cache, max_new_tokens=9)
        made = out.shape[1] - given.shape[1]
        assert seen[0][1] == text.shape[1] - before
        for key, n in truth(size(seen[0]), made, 1, before).items():
            total[key] += n
        text = torch.cat([text, out[:, given.shape[1]:], ids(1, 6)], 1)
    return total


def turns_with_a_cache():
    return turns(DynamicCache())


def turns_of_new_tokens_alone():
    return turns(DynamicCache(), only_new=True)


def turns_with_a_static_cache():
    model = llama()
    return turns(StaticCache(config=model.config, max_cache_len=128), model=model)


def a_prefix_for_many():
    """A prefix is read once, and copied for each prompt."""
    import copy
    model, prefix = llama(), DynamicCache()
    with torch.no_grad():
        head = ids(1, 20)
        model(head, past_key_values=prefix, use_cache=True)
    total = truth(20, 0, 0)
    for n in (4, 7):
        prompt = torch.cat([head, ids(1, n)], 1)
        model.generate(prompt, past_key_values=copy.deepcopy(prefix), max_new_tokens=5)
        for key, more in truth(n, 5, 1, 20).items():
            total[key] += more
    return total


def assisted():
    model, draft = llama(), llama()
    out = model.generate(ids(1, 20), assistant_model=draft, max_new_tokens=12)
    return truth(20, out.shape[1] - 20, 1)


def assisted_by_itself():
    """Every draft is taken."""
    model = llama()
    out = model.generate(ids(1, 20), assistant_model=model, max_new_tokens=30)
    return truth(20, out.shape[1] - 20, 1)


def prompt_lookup():
    model = llama()
    out = model.generate(torch.tensor([[5, 6, 7, 8] * 4]), prompt_lookup_num_tokens=3, max_new_tokens=14)
    return truth(16, out.shape[1] - 16, 1)


def beams():
    model = llama()
    seen = Seen(model)
    out = model.generate(ids(2, 6), num_beams=3, max_new_tokens=5)
    assert seen[0] == (6, 6)
    return truth(36, out[:, 6:].numel(), 2)


def several_of_each():
    model = llama()
    out = model.generate(ids(2, 6), num_return_sequences=3, do_sample=True, max_new_tokens=5)
    return truth(36, out[:, 6:].numel(), 6)


def encoder():
    model = hf.T5ForConditionalGeneration(hf.T5Config(eos_token_id=None, **T5)).eval()
    out = model.generate(ids(2, 7), max_new_tokens=5)
    return truth(14, out[:, 1:].numel(), 2)


def encoder_with_a_decoder_prompt():
    model = hf.T5ForConditionalGeneration(hf.T5Config(eos_token_id=None, **T5)).eval()
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[0, 5:] = 0
    prompt = torch.cat([torch.zeros(2, 1, dtype=torch.long), ids(2, 3)], 1)
    out = model.generate(ids(2, 7), attention_mask=mask, decoder_input_ids=prompt, max_new_tokens=5)
    return truth(12 + 6, out[:, 4:].numel(), 2)


def embeddings():
    model = llama()
    given = model.get_input_embeddings().weight[ids(2, 8)].detach()  # a call of a model might count samples
    out = model.generate(inputs_embeds=given, max_new_tokens=5)
    return truth(16, out.numel(), 2)


def chunks():
    model = llama()
    seen = Seen(model)
    out = model.generate(ids(2, 20), prefill_chunk_size=8, max_new_tokens=5)
    assert [n for _, n in seen[:3]] == [8, 8, 4]
    return truth(40, out[:, 20:].numel(), 2)


def static_with_padding():
    model = llama()
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, :3] = 0
    out = model.generate(ids(2, 9), attention_mask=mask, cache_implementation="static", max_new_tokens=5)
    return truth(15, out[:, 9:].numel(), 2)


def without_a_cache():
    model = llama()
    out = model.generate(ids(2, 7), max_new_tokens=5, use_cache=False)
    return truth(14, out[:, 7:].numel(), 2)


def raises():
    """After the fifth token of each sequence: four are made and read, the fifth is chosen."""
    class Stop(StoppingCriteria):
        def __call__(self, all_ids, scores, **_):
            if all_ids.shape[1] == 7 + 5:
                raise RuntimeError("the client has gone")
            return torch.zeros(all_ids.shape[0], dtype=torch.bool)
    try:
        llama().generate(ids(2, 7), max_new_tokens=20, stopping_criteria=StoppingCriteriaList([Stop()]))
    except RuntimeError:
        pass
    return truth(14, 10, 2)


def custom_loop():
    """A callable that does without the stopping criteria."""
    def loop(model, input_ids, generation_config=None, **kwargs):
        for i in range(6):
            inputs = model.prepare_inputs_for_generation(input_ids, next_sequence_length=1 if i else None, **kwargs)
            out = model(**inputs, return_dict=True)
            kwargs = model._update_model_kwargs_for_generation(out, kwargs)
            input_ids = torch.cat([input_ids, out.logits[:, -1:].argmax(-1)], 1)
        return input_ids
    out = llama().generate(ids(2, 7), custom_generate=loop, max_new_tokens=6)
    return truth(14, out[:, 7:].numel(), 2)


def in_a_thread():
    model, done = llama(), []
    thread = threading.Thread(target=lambda: done.append(model.generate(ids(1, 9), max_new_tokens=6)))
    thread.start()
    thread.join()
    return truth(9, done[0].shape[1] - 9, 1)


def room():
    """For little: by default a cache takes most of the memory."""
    return ContinuousBatchingConfig(num_blocks=16, max_batch_tokens=64)


def batches():
    """Continuous batching: requests of different lengths."""
    made = 0
    for prompts in ([[3, 4, 5, 6, 7], [8, 9, 10], [11] * 12], [[5, 6]]):
        out = llama().generate_batch(prompts, GenerationConfig(max_new_tokens=6, eos_token_id=-1, do_sample=False), room())
        made += sum(len(o.generated_tokens) for o in out.values())
    return truth(20 + 2, made, 4)


def requests_that_come_later():
    """A manager, which has prompts to read while others are decoded."""
    model = llama()
    config = GenerationConfig(max_new_tokens=40, eos_token_id=-1, do_sample=False)
    made = 0
    with model.continuous_batching_context_manager(generation_config=config, continuous_batching_config=room()) as manager:
        manager.add_request([3, 4, 5, 6], streaming=True)
        for i, result in enumerate(manager):
            if i == 3:
                manager.add_request([7] * 9, max_new_tokens=3)
            if result.is_finished():
                made += len(result.generated_tokens)
            if made == 43:
                break
    return truth(13, made, 2)


def speech():
    """What Whisper hears are no tokens. Its decoder's prompt is the token that starts every text."""
    config = hf.WhisperConfig(vocab_size=60, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                              decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, num_mel_bins=8,
                              max_source_positions=30, max_target_positions=40, decoder_start_token_id=3, bos_token_id=3,
                              eos_token_id=2, pad_token_id=0, suppress_tokens=None, begin_suppress_tokens=None)
    model = hf.WhisperForConditionalGeneration(config).eval()
    out = model.generate(torch.randn(2, 8, 60), max_new_tokens=7, min_new_tokens=7, return_dict_in_generate=True).sequences
    return truth(0, out[:, 1:].numel() if out[0, 0] == 3 else out.numel(), 2)


@torch.no_grad()
def answer(model, cache, prompt, n):
    new = prompt
    for _ in range(n):
        new = model(new, past_key_values=cache, use_cache=True).logits[:, -1:].argmax(-1)
    return n


def own_turns():
    """A loop of the program; the second turn's prompt is short, and the last token of the first is never read."""
    model, cache = llama(), DynamicCache()
    answer(model, cache, ids(1, 12), 6)
    answer(model, cache, ids(1, 5), 4)
    return truth(17, 10, 2)


def own_loop_after_a_prefix():
    model, cache = llama(), DynamicCache()
    answer(model, cache, ids(1, 12), 1)
    import copy
    answer(model, copy.deepcopy(cache), ids(1, 5), 4)
    return truth(17, 4, 1, cached=12)


@torch.no_grad()
def own_drafts():
    """Speculative decoding of the program: three drafts, the last of which is wrong, and dropped."""
    model, cache = llama(), DynamicCache()
    model(ids(1, 12), past_key_values=cache, use_cache=True)
    for _ in range(5):
        model(ids(1, 4), past_key_values=cache, use_cache=True)
        cache.crop(-1)
    return truth(12, 1 + 15, 1)


def a_pipeline():
    model = llama()
    words = hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer(), unk_token="t0", pad_token="t0", padding_side="left")
    pipe = hf.pipeline("text-generation", model=model, tokenizer=words)
    pipe(["t5 t6 t7", "t8 t9 t10 t11 t12"], batch_size=2, max_new_tokens=6, min_new_tokens=6, do_sample=False)
    return truth(8, 12, 2)


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    made = Tokenizer(models.WordLevel({"t%d" % i: i for i in range(50)}, unk_token="t0"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def pictures():
    """The places of a picture's parts among the tokens are read by the language model."""
    text = hf.LlamaConfig(**SMALL)
    vision = hf.CLIPVisionConfig(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
                                 image_size=8, patch_size=4, projection_dim=16)
    config = hf.LlavaConfig(text_config=text, vision_config=vision, image_token_index=49, vision_feature_layer=-1,
                            vision_feature_select_strategy="default")
    model = hf.LlavaForConditionalGeneration(config).eval()
    model.generation_config.eos_token_id = None
    prompt = torch.cat([torch.full((1, 4), 49), torch.randint(3, 48, (1, 5))], 1)
    out = model.generate(input_ids=prompt, pixel_values=torch.randn(1, 3, 8, 8), max_new_tokens=5)
    return truth(9, out.shape[1] - 9, 1)


def guided():
    """Another prompt is read before the first token, by the processor that guides."""
    model = llama()
    out = model.generate(ids(1, 7), guidance_scale=1.5, negative_prompt_ids=ids(1, 4), max_new_tokens=5)
    return truth(7 + 4, out.shape[1] - 7, 1)


def custom_of_a_folder():
    """generate() is called again by what stands in its place."""
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "custom_generate"))
        with open(os.path.join(folder, "custom_generate", "generate.py"), "w") as out:
            out.write("def generate(model, **kwargs):\n    kwargs.pop('custom_generate', None)\n"
                      "    return type(model).generate(model, **kwargs)\n")
        made = llama().generate(ids(2, 7), custom_generate=folder, trust_remote_code=True, max_new_tokens=5)
    return truth(14, made[:, 7:].numel(), 2)


def raises_in_the_model():
    """The fourth pass fails: three tokens were made."""
    model = llama()
    forward, calls = model.forward, []
    def fails(*args, **kwargs):
        calls.append(1)
        if len(calls) == 4:
            raise RuntimeError("out of memory")
        return forward(*args, **kwargs)
    model.forward = fails
    try:
        model.generate(ids(2, 7), max_new_tokens=9)
    except RuntimeError:
        pass
    return truth(14, 6, 2)


def own_generate():
    """A class whose generate() does not use transformers': that is said."""
    class Own(hf.LlamaForCausalLM):
        def generate(self, prompt):
            with torch.no_grad():
                return self(prompt).logits[:, -1].argmax(-1)
    Own(hf.LlamaConfig(**SMALL)).eval().generate(ids(1, 4))
    return truth(0, 0, 0)


for kind in sys.argv[1:]:
    with nrg.span(kind):
        found = globals()[kind]()
    print(json.dumps([kind, found]), flush=True)
