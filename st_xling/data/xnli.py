"""XNLI, MultiNLI: does the premise entail the hypothesis, contradict it, or neither?"""

from __future__ import annotations

from pathlib import Path

from st_xling.data.classified_pairs import ClassifiedPairs, PairFormat, read_classified

XNLI_LABELS = ("entailment", "neutral", "contradiction")

_FORM = PairFormat(
    "XNLI",
    {
        **{label: label for label in XNLI_LABELS},
        # The machine-translated training sets of XNLI 1.0 spell it so.
        "contradictory": "contradiction",
        # Annotators without a majority: left out of every published figure.
        "-": None,
    },
)


def read_xnli(path: str | Path, *, language: str | None = None) -> ClassifiedPairs:
    """Pairs of premise and hypothesis of one language.

    Reads what is published as ``xnli.test.tsv``, ``xnli.test.jsonl``, ``multinli_1.0_train.txt`` or ``.jsonl`` and
    ``multinli.train.en.tsv`` (a header or keys name the columns ``gold_label`` or ``label``, ``sentence1`` and
    ``sentence2`` or ``premise`` and ``hypo``), and lines of ``premise TAB hypothesis TAB label``, as XTREME has them;
    plain or gzipped. A quote is text. Rows labelled ``-`` are left out.

    Args:
        path: The file.
        language: Rows to take where a column ``language`` tells them apart; ``None``: all.
    Returns:
        Labels ``entailment``, ``neutral`` and ``contradiction``.
    Raises:
        ParallelTextError: For faulty rows, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
    """
    return read_classified(path, _FORM, language)
