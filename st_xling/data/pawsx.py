"""PAWS and PAWS-X: does the second sentence say the same as the first?"""

from __future__ import annotations

from pathlib import Path

from st_xling.data.classified_pairs import ClassifiedPairs, PairFormat, read_classified

PAWSX_LABELS = ("0", "1")

_FORM = PairFormat("PAWS-X", {label: label for label in PAWSX_LABELS}, left_out="NS")


def read_pawsx(path: str | Path, *, language: str | None = None) -> ClassifiedPairs:
    """Pairs of sentences of one language.

    Reads what is published (``test_2k.tsv``, ``translated_train.tsv``: columns ``id``, ``sentence1``, ``sentence2``,
    ``label``), the same as JSON lines, and lines of ``sentence TAB sentence TAB label``, as XTREME has them; plain or
    gzipped. A quote is text. A sentence ``NS`` was never translated: its row is left out.

    Args:
        path: The file.
        language: Rows to take where a column ``language`` tells them apart; ``None``: all.
    Returns:
        Labels ``1``, a paraphrase, and ``0``, none.
    Raises:
        ParallelTextError: For faulty rows, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
    """
    return read_classified(path, _FORM, language)
