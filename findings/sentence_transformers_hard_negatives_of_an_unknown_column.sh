#!/usr/bin/env bash
# sentence-transformers 6.2.0, Python 3.11: mine_hard_negatives() takes the first column where the one it is told to
# search for is missing.
#
# Expected: anchor_column_name="source" of a data set without that column is an error that names the columns.
# Seen: a name that the data set lacks counts as none. The first column becomes the anchor, here the row's number, and
# the negatives are those of the numbers: they look right, since they are targets of other rows.
#
# Output:
#   columns ['id', 'target', 'negative'] anchors ['7', '8', '9']
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0
"$folder/venv/bin/pip" install -q sentence-transformers==6.2.0 datasets==5.2.0
cd "$folder"
cat >script.py <<'PYTHON'
import sys

import datasets
import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import BoW
from sentence_transformers.util import mine_hard_negatives

datasets.disable_progress_bars()
words = ["alt", "Haus", "rot", "old", "house", "red", "7", "8", "9"]
model = SentenceTransformer(modules=[BoW(vocab=words)], device="cpu")
targets = ["old house", "red house", "red"]
pairs = datasets.Dataset.from_dict({"id": ["7", "8", "9"], "quelle": ["alt Haus", "rot Haus", "rot"], "target": targets})
mined = mine_hard_negatives(
    pairs,
    model,
    anchor_column_name="source",
    positive_column_name="target",
    num_negatives=1,
    output_format="triplet",
    verbose=False,
)
print("columns", mined.column_names, "anchors", sorted(mined["id"][:]))
sys.exit(0 if mined.column_names[0] == "id" and np.array_equal(sorted(mined["id"][:]), ["7", "8", "9"]) else 1)
PYTHON
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore script.py
