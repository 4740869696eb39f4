#!/usr/bin/env bash
# model2vec 0.10.0, sentence-transformers 6.2.0, torch 2.13.0, Python 3.11: a static encoder with a default prompt and
# truncated dimensions has other vectors in model2vec, of another size.
#
# Expected: StaticModel.from_pretrained(folder), which reads folders of sentence-transformers, gives the vectors that
# SentenceTransformer(folder).encode gives, or says which settings it does not know.
# Seen: config_sentence_transformers.json is not read: the prompt is left out, and all dimensions come. Queries that are
# encoded by the one do not fit an index that the other filled; with equal sizes (prompt alone) nothing tells.
#
# Output:
#   sentence-transformers (1, 16), model2vec (1, 32); cosine of 16 dimensions 0.39
#   without prompt: cosine 1.00
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q model2vec==0.10.0 sentence-transformers==6.2.0 transformers==5.23.0 torch==2.13.0
cd "$folder"
cat >script.py <<'PYTHON'
import sys

import numpy as np
import torch
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

words = ["[UNK]", "query", ":", "das", "Buch"]
core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
core.pre_tokenizer = pre_tokenizers.Whitespace()
torch.manual_seed(0)
options = {"prompts": {"default": "query: "}, "default_prompt_name": "default", "truncate_dim": 16, "device": "cpu"}
model = SentenceTransformer(modules=[StaticEmbedding(core, embedding_dim=32)], **options)
model.save("encoder")

texts = ["das Buch"]
ours = SentenceTransformer("encoder", device="cpu")
vectors = ours.encode(texts)
theirs = StaticModel.from_pretrained("encoder").encode(texts)


def cosine(first, second):
    return float((first * second).sum() / np.linalg.norm(first) / np.linalg.norm(second))


with_prompt = cosine(vectors[0], theirs[0, :16])
without = cosine(ours.encode(texts, prompt="")[0], theirs[0, :16])
print(f"sentence-transformers {vectors.shape}, model2vec {theirs.shape}; cosine of 16 dimensions {with_prompt:.2f}")
print(f"without prompt: cosine {without:.2f}")
sys.exit(0 if vectors.shape == (1, 16) and theirs.shape == (1, 32) and with_prompt < 0.9 and without > 0.999 else 1)
PYTHON
HF_HUB_OFFLINE=1 venv/bin/python -W ignore script.py 2>errors || { cat errors; exit 1; }
