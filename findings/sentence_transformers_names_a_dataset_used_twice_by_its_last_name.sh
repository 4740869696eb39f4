#!/usr/bin/env bash
# sentence-transformers 6.2.0, datasets 5.2.0, torch 2.13.0, Python 3.11: one data set under two names has one name.
#
# Expected: train_dataset={"ranking": pairs, "distance": pairs} with a loss, a prompt or a router task for each name
# trains both losses, on half of the batches each.
# Seen: the trainer adds the name by a transform of the Dataset object itself, and both names are of one object. All
# batches come with the last name: its loss gets all of them, and the other one is never called. Nothing says so.
# Two objects with the same rows work.
#
# Output (name of each batch):
#   one object  ['distance', 'distance', 'distance', 'distance']
#   two objects ['distance', 'distance', 'ranking', 'ranking']
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "sentence-transformers[train]==6.2.0" transformers==5.23.0 datasets==5.2.0 torch==2.13.0
cd "$folder"
cat >script.py <<'PYTHON'
import sys

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

core = Tokenizer(models.WordLevel({word: number for number, word in enumerate("?abcd")}, unk_token="?"))
core.pre_tokenizer = pre_tokenizers.Whitespace()
model = SentenceTransformer(modules=[StaticEmbedding(core, embedding_dim=4)], device="cpu")
names = {}
for case, objects in (("one object ", 1), ("two objects", 2)):
    pairs = [Dataset.from_dict({"source": ["a", "b"] * 4, "target": ["c", "d"] * 4}) for _ in range(objects)]
    data = {"ranking": pairs[0], "distance": pairs[-1]}
    losses = {name: MultipleNegativesRankingLoss(model) for name in data}
    options = {"per_device_train_batch_size": 4, "report_to": "none", "use_cpu": True}
    arguments = SentenceTransformerTrainingArguments("run", **options)
    trainer = SentenceTransformerTrainer(model=model, args=arguments, train_dataset=data, loss=losses)
    names[case] = sorted(batch["dataset_name"] for batch in trainer.get_train_dataloader())
    print(case, names[case])
expected = [["distance"] * 4, ["distance"] * 2 + ["ranking"] * 2]
sys.exit(0 if list(names.values()) == expected else 1)
PYTHON
HF_HOME="$folder/hf" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore script.py 2>errors || { cat errors; exit 1; }
