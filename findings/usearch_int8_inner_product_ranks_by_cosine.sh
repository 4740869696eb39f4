#!/usr/bin/env bash
# usearch 2.26.6, numpy 2.2.6, Python 3.11: an index of dtype "i8" with metric "ip" ignores the length of vectors.
#
# Expected: metric "ip" ranks by inner product whatever the storage type; int8 costs a little accuracy.
# Seen: with "f32", "f16" and "bf16" the best of 500 stored rows is the row of the largest inner product for every
# query. With "i8" it is so for a quarter of the queries, and the row of the largest cosine for nine tenths: rows are
# divided by their norms before they become integers. Models that are trained with dot products (no Normalize module)
# lose their ranking in silence. Metric "l2sq" of "i8" is affected in the same way.
#
# Output (share of 100 queries whose best row is that of ...):
#   f32  inner product 1.00  cosine 0.29
#   f16  inner product 1.00  cosine 0.29
#   bf16 inner product 1.00  cosine 0.29
#   i8   inner product 0.27  cosine 0.91
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q usearch==2.26.6 numpy==2.2.6
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np
from usearch.index import Index

rows, dim, queries = 500, 64, 100
random = np.random.default_rng(0)
directions = random.standard_normal((rows, dim)).astype(np.float32)
directions /= np.linalg.norm(directions, axis=1, keepdims=True)
vectors = directions * random.uniform(0.2, 3, size=(rows, 1)).astype(np.float32)
query = random.standard_normal((queries, dim)).astype(np.float32)
best_product = (query @ vectors.T).argmax(axis=1)
best_cosine = (query @ directions.T).argmax(axis=1)

shares = {}
for dtype in ("f32", "f16", "bf16", "i8"):
    index = Index(ndim=dim, metric="ip", dtype=dtype)
    index.add(np.arange(rows), vectors)
    best = index.search(query, 4, exact=True).keys[:, 0]
    shares[dtype] = float((best == best_product).mean()), float((best == best_cosine).mean())
    print(f"{dtype:<4} inner product {shares[dtype][0]:.2f}  cosine {shares[dtype][1]:.2f}")
as_seen = all(shares[dtype][0] == 1 for dtype in ("f32", "f16", "bf16")) and shares["i8"][0] < 0.5 < shares["i8"][1]
sys.exit(0 if as_seen else 1)
PYTHON
