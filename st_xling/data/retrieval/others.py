"""Text without translations, for the language contrastive loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.faults import FaultLog
from st_xling.data.lines import read_lines
from st_xling.data.pairs import require_rows
from st_xling.data.readers import file_ending
from st_xling.data.retrieval.passages import Passages

if TYPE_CHECKING:
    from datasets import Dataset


def read_others(path: str | Path, *, language: str, skip_bad_lines: bool = False) -> Dataset:
    """Texts as a data set with the columns of parallel text, whose two sides are alike.

    Args:
        path: Passages in JSON lines (``.jsonl``, ``.jsonl.gz``), or any other file with a text a line; blank lines are
            left out.
        language: Of the text.
        skip_bad_lines: Leave faulty lines out, with a warning.
    Raises:
        FileNotFoundError, ParallelTextError: As :class:`Passages`; lines that are not UTF-8.
        ValueError: A file without text.
    """
    from datasets import Dataset

    if file_ending(path) in (".jsonl", ".jsonl.gz"):
        texts = list(Passages(path, skip_bad_lines=skip_bad_lines))
    else:
        faults = FaultLog(skip_bad_lines=skip_bad_lines, what="text")
        texts = [line for line in read_lines(path, faults) if line is not None and line.strip()]
        faults.settle()
    codes = [language] * len(texts)
    columns = {"source": texts, "target": texts, "source_language": codes, "target_language": codes}
    return require_rows(Dataset.from_dict(columns), str(path))
