#!/usr/bin/env bash
# usearch 2.26.6, numpy 2.2.6, Python 3.11: a batch search with more neighbors than rows fills the rest with key 0.
#
# Expected: missing neighbors are marked by a key that no row has, as FAISS does with -1, or the arrays are cut, as
# usearch itself does for a single query.
# Seen: in a batch the keys of missing neighbors are 0, a valid row, at distance NaN; only `counts` tells. Whoever reads
# `keys` for a k-nearest-neighbor margin in a small shard counts row 0 as a neighbor of every sentence, and the mean of
# the distances is NaN.
#
# Output:
#   single: keys [0 1 2] distances finite True
#   batch: keys [[0 1 2 0 0], [1 2 0 0 0]] counts [3 3] finite False
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

vectors = np.array([[1, 0, 0], [0, 1, 0], [0, 0.2, 1]], dtype=np.float32)
queries = np.array([[1, 0.3, 0.1], [0.1, 1, 0.3]], dtype=np.float32)
index = Index(ndim=3, metric="cos")
index.add(np.arange(3), vectors)
single = index.search(queries[0], 5)
batch = index.search(queries, 5)
print("single: keys", single.keys, "distances finite", bool(np.isfinite(single.distances).all()))
print("batch: keys", batch.keys.tolist(), "counts", batch.counts, "finite", bool(np.isfinite(batch.distances).all()))
as_seen = (
    len(single.keys) == 3
    and batch.keys.shape == (2, 5)
    and (batch.keys[:, 3:] == 0).all()
    and np.isnan(batch.distances[:, 3:]).all()
    and (batch.counts == 3).all()
)
sys.exit(0 if as_seen else 1)
PYTHON
