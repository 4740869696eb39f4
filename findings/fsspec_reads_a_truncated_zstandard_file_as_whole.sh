#!/usr/bin/env bash
# fsspec 2026.9.0 with zstandard 0.25.0, Python 3.11: a .zst file that was cut off is read without an error.
#
# Expected: an error, as for .gz, .bz2 and .xz that were cut off, and as pyarrow raises for the same file.
# Seen: fsspec.open(..., compression="zstd") returns the bytes up to the cut, and then the end of the file: the last lines
# of a corpus whose download broke off are missing without a word.
#
# Output:
#   .gz EOFError, .zst 524288 of 538890 bytes
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q fsspec==2026.9.0 zstandard==0.25.0
cd "$folder"
cat >script.py <<'PYTHON'
import gzip
import sys

import fsspec
import zstandard


def read(name, compression):
    try:
        with fsspec.open(name, "rb", compression=compression) as stream:
            return f"{len(stream.read())} of {len(text)} bytes"
    except EOFError as error:
        return type(error).__name__


text = b"".join(b"Satz %d\n" % number for number in range(50_000))
with open("text.gz", "wb") as file:
    file.write(gzip.compress(text)[:-20])
with open("text.zst", "wb") as file:
    file.write(zstandard.compress(text)[:-20])
packed, truncated = read("text.gz", "gzip"), read("text.zst", "zstd")
print(f".gz {packed}, .zst {truncated}")
sys.exit(0 if packed == "EOFError" and truncated.endswith(" bytes") else 1)
PYTHON
"$folder/venv/bin/python" script.py
