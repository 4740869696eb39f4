"""Which thresholds of a BUCC evaluation may be published with the model, and why others may not."""

from __future__ import annotations

import math
from collections.abc import Mapping

from st_xling.evaluation.bucc import BuccEvaluator
from st_xling.mining.published import PublishedThreshold, languages_of


def publishable_thresholds(
    evaluator: BuccEvaluator, metrics: Mapping[str, float]
) -> tuple[dict[str, PublishedThreshold], dict[str, str]]:
    """Thresholds to publish, with the figures that they yielded on the split that was judged.

    Args:
        evaluator: Which was called.
        metrics: What it returned.
    Returns:
        Thresholds by pair; and for each other pair why its threshold is not to be published: it was tuned on the gold
        that it was judged by, it keeps nothing, or the pair is not two language codes.
    """
    found, left_out = {}, {}
    prefix = f"{evaluator.name}_" if evaluator.name else ""
    for pair in evaluator.corpora:
        threshold, precision, recall, f1 = (
            metrics[f"{prefix}{pair}_{figure}"] for figure in ("threshold", "precision", "recall", "f1")
        )
        why = _why_not(evaluator, pair, threshold)
        if why is not None:
            left_out[pair] = why
            continue
        found[pair] = PublishedThreshold(
            threshold=threshold,
            precision=precision,
            recall=recall,
            f1=f1,
            margin=evaluator.margin,
            k=evaluator.k,
            retrieval=evaluator.retrieval,
            signature=evaluator.signature,
        )
    return found, left_out


def _why_not(evaluator: BuccEvaluator, pair: str, threshold: float) -> str | None:
    if evaluator.truncate_dim is not None:
        return f"embeddings were cut to {evaluator.truncate_dim} dimensions, which mining does not do"
    if (
        evaluator.threshold_source == "tuned on this gold"
        or (evaluator.train or {}).get(pair) == evaluator.corpora[pair]
    ):
        return "it was tuned on the gold that it was judged by"
    if not math.isfinite(threshold):
        return f"it is {threshold}"
    try:
        languages_of(pair)
    except ValueError as error:
        return str(error).rstrip(".")
    return None
