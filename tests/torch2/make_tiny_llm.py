"""A language model of 100,000 random weights with a tokenizer, one token per character: make_tiny_llm.py FOLDER."""
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

folder = sys.argv[1]
names = ["<s>", "</s>", *map(chr, range(33, 127)), "\u0120", "\u010a"]  # the last two: space and new line, as bytes are written
tokenizer = Tokenizer(models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")
fast.chat_template = "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
fast.save_pretrained(folder)

torch.manual_seed(1)
# Large weights, so that an answer depends on the whole prompt.
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=len(names), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=4096, initializer_range=0.3, bos_token_id=0, eos_token_id=1,
    pad_token_id=1))
model.generation_config.do_sample = False
# Answers end by their length alone, so that it is known beforehand.
model.generation_config.suppress_tokens = [0, 1]
model.save_pretrained(folder)
