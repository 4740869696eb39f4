"""Tatoeba metrics as rows, and as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TatoebaResult:
    """Accuracy of one language, group or of all languages together.

    Attributes:
        label: Language code, group name, or ``"all"`` for the macro average.
        to_en: Fraction of sentences that retrieve their English translation, in [0, 1].
        from_en: Fraction of English sentences that retrieve their translation, in [0, 1].
        is_average: Whether this is a macro average over languages.
    """

    label: str
    to_en: float
    from_en: float
    is_average: bool = False

    @property
    def mean(self) -> float:
        """Mean of the two directions, in [0, 1]."""
        return (self.to_en + self.from_en) / 2


def tatoeba_results(metrics: Mapping[str, float], *, name: str = "tatoeba") -> list[TatoebaResult]:
    """Rows behind the metrics of a :class:`~st_xling.evaluation.TatoebaEvaluator`: languages, groups, then ``"all"``.

    Args:
        metrics: What the evaluator returned; other keys are ignored.
        name: The evaluator's ``name``, the prefix of its keys.
    Raises:
        ValueError: When no key has this prefix.
    """
    prefix = f"{name}_" if name else ""
    languages: list[TatoebaResult] = []
    averages: list[TatoebaResult] = []
    overall: list[TatoebaResult] = []
    for key, to_en in metrics.items():
        if not (key.startswith(prefix) and key.endswith("to_en_accuracy")):
            continue
        label = key[len(prefix) : -len("to_en_accuracy")].rstrip("_")
        stem = f"{prefix}{label}_" if label else prefix
        from_en = metrics[f"{stem}from_en_accuracy"]
        # Only averages have a mean key of their own.
        is_average = f"{stem}mean_accuracy" in metrics
        row = TatoebaResult(label or "all", to_en, from_en, is_average)
        (overall if not label else averages if is_average else languages).append(row)
    if not overall:
        raise ValueError(
            f"metrics must hold {prefix}to_en_accuracy: got {', '.join(sorted(metrics)[:3]) or 'no metrics'}; "
            "pass the evaluator's own dict and its name."
        )
    return languages + averages + overall


def tatoeba_table(metrics: Mapping[str, float], *, name: str = "tatoeba") -> str:
    """The metrics as plain text: one row a language, a rule, one row an average; percent with one decimal.

    Args:
        metrics: What the evaluator returned, fractions.
        name: The evaluator's ``name``.
    Returns:
        Lines joined by newlines, without a final one.
    Example:
        >>> one = {"deu_to_en_accuracy": 0.99, "deu_from_en_accuracy": 0.98}
        >>> print(tatoeba_table({**one, "to_en_accuracy": 0.99, "from_en_accuracy": 0.98}, name=""))
        language  to en  from en   mean
        deu        99.0     98.0   98.5
        -------------------------------
        all        99.0     98.0   98.5
    """
    results = tatoeba_results(metrics, name=name)
    width = max(len("language"), *(len(row.label) for row in results))
    lines = [f"{'language':<{width}}  to en  from en   mean"]
    ruled = False
    for row in results:
        if not ruled and (row.is_average or row.label == "all"):
            lines.append("-" * len(lines[0]))
            ruled = True
        percent = f"{100 * row.to_en:5.1f}  {100 * row.from_en:7.1f}  {100 * row.mean:5.1f}"
        lines.append(f"{row.label:<{width}}  {percent}")
    return "\n".join(lines)
