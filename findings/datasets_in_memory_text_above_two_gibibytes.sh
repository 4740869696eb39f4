#!/usr/bin/env bash
# datasets 5.2.0 (pyarrow 26): a table in memory with a text column of more than 2 GiB becomes no Dataset.
#
# Expected: Dataset(table) and Dataset.from_dict work for any table that Arrow holds. Arrow keeps a large string column
#   in chunks of less than 2 GiB each, and Parquet files, select, filter by a mask and sorting read it so.
# Seen: for its fingerprint datasets pickles the table, joins the chunks of each column, and ends in
#   "ArrowInvalid: offset overflow while concatenating arrays". With a fingerprint given, the same table works.
# Who meets it: whoever adds mined negatives or a translation, as a column in memory, to tens of millions of rows; the
#   message names neither the column nor the way out.
# The column is one chunk of 64 MiB, 33 times, so that little memory is needed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q datasets==5.2.0 pyarrow==26.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import pyarrow as pa
from datasets import Dataset

chunk = pa.array(["a" * 2**26])
table = pa.table({"text": pa.chunked_array([chunk] * 33)})
print(f"{table.nbytes / 2**30:.2f} GiB in {table['text'].num_chunks} chunks")
named = Dataset(table, fingerprint="named")
print("with a fingerprint:", len(named), "rows, the last of", len(named[32]["text"]), "characters")
try:
    Dataset(table)
except pa.ArrowInvalid as error:
    print("without:", error)
else:
    raise SystemExit("it has changed: a table above 2 GiB is a Dataset")
PYTHON
# Output:
# 2.06 GiB in 33 chunks
# with a fingerprint: 33 rows, the last of 67108864 characters
# without: offset overflow while concatenating arrays, consider casting input from `string` to `large_string` first.
