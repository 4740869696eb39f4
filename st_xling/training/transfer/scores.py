"""How right labels are: accuracy, and the F1 of tags that XTREME and AMBER report."""

from __future__ import annotations

from collections.abc import Sequence

from st_xling.utils.checks import require

Labels = Sequence[Sequence[str]]
"""Labels of each row: one of a pair of sentences, one for each word of a sentence."""


def label_scores(gold: Labels, predicted: Labels, *, f1: str = "runs") -> dict[str, float]:
    """``accuracy``, the share of labels that are right, and ``f1``, both in [0, 1].

    Args:
        gold: True labels.
        predicted: Labels of the same rows.
        f1: ``"runs"`` of equal tags, :func:`run_f1`; or ``"spans"`` of ``B-`` and ``I-``, :func:`span_f1`.
    Raises:
        ValueError: When rows or their labels do not match in number, or there are none.
    """
    if [len(row) for row in gold] != [len(row) for row in predicted]:
        raise ValueError(
            f"expected a prediction for each of {sum(map(len, gold))} labels in {len(gold)} rows: got "
            f"{sum(map(len, predicted))} in {len(predicted)} rows."
        )
    count = sum(len(row) for row in gold)
    if not count:
        raise ValueError("labels can only be scored where there are some: got none.")
    right = sum(true == guess for rows in zip(gold, predicted) for true, guess in zip(*rows))
    return {"accuracy": right / count, "f1": (span_f1 if f1 == "spans" else run_f1)(gold, predicted)}


def run_f1(gold: Labels, predicted: Labels) -> float:
    """F1 of runs of equal tags: a run counts if its ends and its tag are all right.

    This is what ``seqeval`` makes of tags without ``B-`` and ``I-``, by which XTREME evaluates part-of-speech tags and
    so AMBER's table 6: it falls below accuracy, since one wrong word breaks a run. A tag that begins with ``S``
    (``SCONJ``, ``SYM``) is a run of its own each time, because ``seqeval`` takes the letter for "single".

    Source:
        Hu et al. 2020 (XTREME), ``third_party/run_tag.py``; seqeval 0.0.12, ``get_entities``.
    Example:
        >>> run_f1([["DET", "NOUN", "NOUN", "VERB"]], [["DET", "NOUN", "VERB", "VERB"]])
        0.3333333333333333
    """
    true, guessed = _runs(gold), _runs(predicted)
    both = len(true & guessed)
    return 2 * both / (len(true) + len(guessed)) if both else 0.0


def span_f1(gold: Labels, predicted: Labels) -> float:
    """F1 of entities: one counts if its ends and its kind are all right, over all sentences together.

    By ``seqeval``, which reads tags as the CoNLL shared tasks' ``conlleval`` does: an ``I-`` that follows nothing of
    its kind begins an entity.

    Raises:
        ValueError: If seqeval is not installed.
    Source:
        Tjong Kim Sang and De Meulder 2003; Hu et al. 2020 (XTREME), PAN-X.
    Example:
        >>> span_f1([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "B-ORG"]])
        0.5
    """
    require("seqeval", "the F1 of entities", extra="transfer")
    from seqeval.metrics import f1_score

    return float(f1_score([list(row) for row in gold], [list(row) for row in predicted], zero_division=0))


def _runs(rows: Labels) -> set[tuple[int, int, int, str]]:
    """Row, first and last word, and tag of every run."""
    runs = set()
    for row, tags in enumerate(rows):
        start = 0
        for place, tag in enumerate(tags):
            if place + 1 == len(tags) or tags[place + 1] != tag or tag.startswith("S"):
                runs.add((row, start, place, tag))
                start = place + 1
    return runs
