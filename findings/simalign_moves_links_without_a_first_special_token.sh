#!/usr/bin/env bash
# simalign 0.4, transformers 5.23.0, torch 2.13.0, Python 3.11: with an encoder whose tokenizer puts no token before the
# text, all links are moved by one word, and the ends have none.
#
# Expected: SentenceAligner(model), which loads any model of transformers by its auto classes, compares words by vectors
# of their own tokens, so that equal words have equal vectors at layer 0 and are linked.
# Seen: the first and the last vector are cut off as if they were [CLS] and [SEP]. The tokenizers of Llama, Qwen and T5
# have no first one: each word is compared by the vector of the next. Nothing says so; links look plausible.
#
# Output (a b c d e / b a d c e):
#   no special tokens    [(0, 0), (1, 2), (2, 1)]
#   <s> and </s> around  [(0, 1), (1, 0), (2, 3), (3, 2), (4, 4)]
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q simalign==0.4 networkx==3.6.1 transformers==5.23.0 torch==2.13.0
cd "$folder"
cat >script.py <<'PYTHON'
import sys

import torch
from simalign import SentenceAligner
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaModel, PreTrainedTokenizerFast

words = ["<unk>", "<pad>", "<s>", "</s>", "a", "b", "c", "d", "e"]
config = LlamaConfig(vocab_size=9, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4)
torch.manual_seed(0)
model = LlamaModel(config)
links = {}
for name in ("no special tokens", "<s> and </s> around"):
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if name.startswith("<s>"):
        special = [("<s>", 2), ("</s>", 3)]
        tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=special)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>").save_pretrained("model")
    model.save_pretrained("model")
    aligner = SentenceAligner("model", token_type="bpe", matching_methods="a", layer=0)
    links[name] = aligner.get_word_aligns("a b c d e", "b a d c e")["inter"]
    print(f"{name:<20} {links[name]}")
right = [(0, 1), (1, 0), (2, 3), (3, 2), (4, 4)]
sys.exit(0 if list(links.values()) == [[(0, 0), (1, 2), (2, 1)], right] else 1)
PYTHON
HF_HUB_OFFLINE=1 venv/bin/python -W ignore script.py 2>errors || { cat errors; exit 1; }
