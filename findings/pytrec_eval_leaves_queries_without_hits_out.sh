#!/usr/bin/env bash
# pytrec-eval-terrier 0.5.11, ir-measures 0.4.3: the mean of a run depends on who counts queries without a hit.
#
# Expected: a judged query for which a system finds nothing counts as 0, by whichever of the two the run is measured;
# ir_measures calls pytrec_eval.
# Seen: pytrec_eval returns no row for a judged query that is not in the run, so that the mean over its rows is that of
# the queries with hits; ir_measures adds the query with 0. Sparse retrieval across languages often finds nothing: BM25
# for a Thai query over English passages has no line in a TREC run, and its mean goes up with each such query.
#
# Output:
#   pytrec_eval: {'q1': 1.0} mean 1.0
#   ir_measures: {'q1': 1.0, 'q2': 0.0} mean 0.5
# Exits with 1 when this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pytrec-eval-terrier==0.5.11 ir-measures==0.4.3
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import ir_measures
import pytrec_eval

qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
run = {"q1": {"d1": 2.0, "d3": 1.0}}  # nothing was found for q2

rows = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
direct = {query: row["recip_rank"] for query, row in rows.items()}
direct_mean = sum(direct.values()) / len(direct)
print("pytrec_eval:", direct, "mean", direct_mean)

through = {row.query_id: row.value for row in ir_measures.iter_calc([ir_measures.RR], qrels, run)}
mean = ir_measures.calc_aggregate([ir_measures.RR], qrels, run)[ir_measures.RR]
print("ir_measures:", through, "mean", mean)
as_seen = direct == {"q1": 1.0} and through == {"q1": 1.0, "q2": 0.0} and (direct_mean, mean) == (1.0, 0.5)
sys.exit(0 if as_seen else 1)
PYTHON
