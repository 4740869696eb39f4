"""Predicted labels on disk: ``predictions/xx.tsv``, of which an interrupted evaluation needs no second one.

A line for each pair, ``row TAB gold TAB predicted``; or for each word, ``word TAB gold TAB predicted``, and an empty
line after each sentence.
"""

from __future__ import annotations

from pathlib import Path

from st_xling.data.conllu import TaggedSentences
from st_xling.training.transfer.label_sets import label_rows
from st_xling.training.transfer.tasks import Rows
from st_xling.utils.io import atomic_writer

Lines = list[list[str]]


def write_predictions(path: Path, rows: Rows, predicted: list[list[str]]) -> None:
    """Write the whole file, or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_writer(path) as file:
        for place, (names, true, guessed) in enumerate(zip(_names(rows), label_rows(rows), predicted)):
            assert len(true) == len(guessed), f"row {place} has {len(true)} labels, {len(guessed)} predicted"
            lines = [f"{name}\t{gold}\t{guess}\n" for name, gold, guess in zip(names, true, guessed)]
            lines += ["\n"] if isinstance(rows, TaggedSentences) else []
            file.write("".join(lines).encode("utf-8"))


def read_predictions(path: Path, rows: Rows) -> list[list[str]]:
    """Predicted labels of ``rows``, from the file that :func:`write_predictions` wrote of them.

    Raises:
        ValueError: When the file is of other rows.
    """
    cells = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    gold = label_rows(rows)
    if [cell[1:2] for cell in cells] != [[label] for row in gold for label in row]:
        raise ValueError(f"{path} must hold a prediction for each label: it was changed; remove it and --resume.")
    found = iter(cells)
    return [[next(found)[2] for _ in row] for row in gold]


def _names(rows: Rows) -> list[list[str]]:
    return rows.words if isinstance(rows, TaggedSentences) else [[str(row)] for row in rows.rows]
