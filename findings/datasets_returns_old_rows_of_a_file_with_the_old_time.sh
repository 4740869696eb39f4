#!/usr/bin/env bash
# datasets 5.2.0, Python 3.11: a corrected file of parallel text is not read if it keeps its time of modification.
#
# Expected: load_dataset() of a local file notices another content, at least another size.
# Seen: the cache of a local file is keyed by its path and time of modification alone. A corrected file that keeps the
# time, as after "cp -p", "rsync -t" or unpacking an archive, gives the rows of the file before, without a word: a model
# is trained and evaluated on text that is no longer there.
#
# Output:
#   jsonl ['falsch']    (the file has 2 other rows)
#   parquet ['falsch']  (the file has 2 other rows)
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q datasets==5.2.0
cd "$folder"
HF_HOME="$folder/hf" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import os
import sys
from pathlib import Path

import datasets

datasets.disable_progress_bars()
first, second = ["falsch"], ["richtig", "und vollständig"]
seen = {}
for kind, write in (("jsonl", "to_json"), ("parquet", "to_parquet")):
    path = Path(f"pairs.{kind}")
    getattr(datasets.Dataset.from_dict({"source": first}), write)(path)
    name = "json" if kind == "jsonl" else kind
    assert datasets.load_dataset(name, data_files=str(path), split="train")["source"][:] == first
    times = path.stat()
    getattr(datasets.Dataset.from_dict({"source": second}), write)(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    seen[kind] = datasets.load_dataset(name, data_files=str(path), split="train")["source"][:]
    print(kind, seen[kind])
sys.exit(0 if list(seen.values()) == [first, first] else 1)
PYTHON
