#!/usr/bin/env bash
# sentence-transformers 6.2.0, transformers 5.23.0, torch 2.13.0, Python 3.11: a saved copy no longer reads lower case.
#
# Expected: a model whose sentence_bert_config.json says "do_lower_case": true embeds "Hund" as "hund", and so does what
# save_pretrained() writes.
# Seen: the module puts Lowercase before the tokenizer's normalizer and does not write the key (it is not among
# Transformer.config_keys). tokenizer.json has the normalizer, but BertTokenizer, DistilBertTokenizer and
# XLMRobertaTokenizer build their own when they are loaded. A copy, and whatever was trained from the model, reads
# capitals, for which a vocabulary in lower case has no pieces.
#
# Output (tokens of "Der Hund"):
#   published ['der', 'hund']
#   its copy  ['[UNK]', '[UNK]']
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q sentence-transformers==6.2.0 transformers==5.23.0 torch==2.13.0
cd "$folder"
cat >script.py <<'PYTHON'
import json
import sys
from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import BertConfig, BertModel, BertTokenizer

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "der", "hund"]
vocabulary = {word: number for number, word in enumerate(words)}
shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
BertModel(BertConfig(vocab_size=len(words), **shape)).save_pretrained("bert")
BertTokenizer(vocab=vocabulary, do_lower_case=False).save_pretrained("bert")
model = SentenceTransformer(modules=[Transformer("bert"), Pooling(8)], device="cpu")
model.save_pretrained("published")
settings = Path("published/sentence_bert_config.json")
settings.write_text(json.dumps({**json.loads(settings.read_text()), "do_lower_case": True}))

published = SentenceTransformer("published", device="cpu")
published.save_pretrained("copy")
copy = SentenceTransformer("copy", device="cpu")
tokens = [model.tokenizer.tokenize("Der Hund") for model in (published, copy)]
print("published", tokens[0])
print("its copy ", tokens[1])
sys.exit(0 if tokens == [["der", "hund"], ["[UNK]", "[UNK]"]] else 1)
PYTHON
HF_HOME="$folder/hf" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore script.py 2>errors || { cat errors; exit 1; }
