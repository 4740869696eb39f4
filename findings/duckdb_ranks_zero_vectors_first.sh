#!/usr/bin/env bash
# duckdb 2.0.0, Python 3.11: an empty sentence is the nearest neighbor of every query.
#
# Expected: a vector of zeros (the embedding of an empty text, or of one without known words, by a static encoder) has
# no similarity to anything: it comes last, or as NULL, which `nulls last` puts there.
# Seen: array_cosine_similarity gives NaN, and DuckDB orders NaN above all numbers: with `order by … desc limit k`, as
# its documentation searches, rows of zeros come first for every query, and push neighbors out. array_inner_product of
# normalized vectors gives 0.
#
# Output:
#   cosine        [('', nan), ('Es regnet.', 1.0), ('Das Buch', 0.0)]
#   inner product [('Es regnet.', 1.0), ('', 0.0), ('Das Buch', 0.0)]
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q duckdb==2.0.0
"$folder/venv/bin/python" - <<'PYTHON'
import math
import sys

import duckdb

duckdb.sql("create table texts (number integer, text varchar, vector float[2])")
duckdb.sql("insert into texts values (1, '', [0, 0]), (2, 'Das Buch', [0, 1]), (3, 'Es regnet.', [1, 0])")


def search(similarity):
    query = f"select text, {similarity}(vector, [1, 0]::float[2]) as score from texts order by score desc, number"
    return duckdb.sql(query).fetchall()


by_cosine = search("array_cosine_similarity")
by_product = search("array_inner_product")
print("cosine       ", by_cosine)
print("inner product", by_product)
(text, score), (second, _), _ = by_cosine
as_seen = text == "" and math.isnan(score) and second == "Es regnet." and by_product[0] == ("Es regnet.", 1.0)
sys.exit(0 if as_seen else 1)
PYTHON
