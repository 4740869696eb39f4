#!/usr/bin/env bash
# datasets 5.2.0, Python 3.11: map() of a data set whose Arrow file was replaced returns the results of the old rows.
#
# Expected: the fingerprint of load_from_disk() depends on the rows that it loads, so that map() computes anew.
# Seen: the fingerprint is read from state.json. Where an .arrow shard was replaced by another one (a corrected shard
# copied over the first), the new rows are loaded under the old fingerprint, and map() takes the cached column of the
# old rows: text and its translation, embedding or label no longer belong together.
#
# Output:
#   rows ['neuer Text'] mapped ['ALTER TEXT']
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q datasets==5.2.0
cd "$folder"
cat >script.py <<'PYTHON'
import shutil
import sys

import datasets


def upper(row):
    return {"upper": row["source"].upper()}


datasets.disable_progress_bars()
datasets.Dataset.from_dict({"source": ["alter Text"]}).save_to_disk("saved")
assert datasets.load_from_disk("saved").map(upper)["upper"][:] == ["ALTER TEXT"]
datasets.Dataset.from_dict({"source": ["neuer Text"]}).save_to_disk("corrected")
shutil.copyfile("corrected/data-00000-of-00001.arrow", "saved/data-00000-of-00001.arrow")
saved = datasets.load_from_disk("saved")
mapped = saved.map(upper)["upper"][:]
print("rows", saved["source"][:], "mapped", mapped)
sys.exit(0 if saved["source"][:] == ["neuer Text"] and mapped == ["ALTER TEXT"] else 1)
PYTHON
HF_HOME="$folder/hf" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore script.py
