"""The metrics of a BUCC evaluator as a table for people."""

from __future__ import annotations

from collections.abc import Mapping

#: What is told of each language pair.
FIGURES = ("precision", "recall", "f1", "threshold", "n_mined", "n_gold", "n_correct")
_SUFFIX = "_n_correct"


def bucc_table(metrics: Mapping[str, float], *, name: str = "bucc") -> str:
    """One row a language pair, then the macro average; percent with one decimal.

    Args:
        metrics: What a :class:`~st_xling.evaluation.BuccEvaluator` returned.
        name: The evaluator's ``name``.
    Returns:
        Lines joined by newlines, without a final one.
    Raises:
        ValueError: When no key has this prefix.
    Example:
        >>> counts = {"de-en_n_mined": 4, "de-en_n_correct": 3, "de-en_n_gold": 6, "de-en_threshold": 1.06}
        >>> shares = {"de-en_precision": 0.75, "de-en_recall": 0.5, "de-en_f1": 0.6}
        >>> print(bucc_table({**counts, **shares, "precision": 0.75, "recall": 0.5, "f1": 0.6}, name=""))
        pair   threshold   mined  correct    gold  precision  recall     F1
        de-en     1.0600       4        3       6       75.0    50.0   60.0
        -------------------------------------------------------------------
        mean                                             75.0    50.0   60.0
    """
    prefix = f"{name}_" if name else ""
    pairs = [key[len(prefix) : -len(_SUFFIX)] for key in metrics if key.startswith(prefix) and key.endswith(_SUFFIX)]
    if not pairs or f"{prefix}f1" not in metrics:
        raise ValueError(
            f"metrics must hold {prefix}f1 and counts of pairs: got {', '.join(sorted(metrics)[:3]) or 'no metrics'}; "
            "pass the evaluator's own dict and its name."
        )
    width = max(len("pair"), *map(len, pairs))
    lines = [f"{'pair':<{width}}  threshold   mined  correct    gold  precision  recall     F1"]
    for pair in pairs:
        row = {
            figure: metrics[f"{prefix}{pair}_{figure}"] for figure in ("threshold", "n_mined", "n_correct", "n_gold")
        }
        counts = f"{row['n_mined']:6.0f}  {row['n_correct']:7.0f}  {row['n_gold']:6.0f}"
        lines.append(f"{pair:<{width}}  {row['threshold']:9.4f}  {counts}  {_percent(metrics, f'{prefix}{pair}_')}")
    lines.append("-" * len(lines[0]))
    lines.append(f"{'mean':<{width}}  {'':9}  {'':6}  {'':7}  {'':6}  {_percent(metrics, prefix)}")
    return "\n".join(lines)


def _percent(metrics: Mapping[str, float], stem: str) -> str:
    precision, recall, f1 = (100 * metrics[f"{stem}{figure}"] for figure in ("precision", "recall", "f1"))
    return f"{precision:9.1f}  {recall:6.1f}  {f1:5.1f}"
