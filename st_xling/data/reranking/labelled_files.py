"""Labelled query-passage pairs in files, one language a file, aligned by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from st_xling.data.faults import FaultLog, read_lines
from st_xling.data.records import json_objects
from st_xling.data.reranking.aligned import AlignedPairs, numbered
from st_xling.utils.text import file_ending

ENDINGS = (".jsonl", ".jsonl.gz", ".tsv", ".tsv.gz")
KEYS = ("query", "passage", "label")
_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "False": 0, "True": 1}


def read_labelled(paths: Mapping[str, str | Path]) -> AlignedPairs:
    """The same pairs from one file a language; line ``i`` of each says the same.

    JSON lines have the keys ``query``, ``passage`` and ``label``; tab-separated lines these three columns, under a
    header of these names or none, and quotes are text. A label is 0 or 1.

    Args:
        paths: Language → file.
    Raises:
        FileNotFoundError: A file is not there.
        ValueError: Faulty lines, those of all files together; files that differ in length (the message names languages
            and lengths) or in labels; another file ending. No line is skipped: the rest would not be aligned.
    """
    faults = FaultLog(can_skip=False)
    read = {language: list(_rows(Path(path), faults)) for language, path in paths.items()}
    faults.settle()
    lengths = {language: len(rows) for language, rows in read.items()}
    if len(set(lengths.values())) > 1 or not all(lengths.values()):
        got = ", ".join(f"{count} in {language} ({paths[language]})" for language, count in lengths.items())
        raise ValueError(f"expected the same pairs in every language, row by row: got {got}; align the files first.")
    columns = {language: list(zip(*rows)) for language, rows in read.items()}
    first, *others = columns
    labels = columns[first][2]
    for language in others:
        apart = [row for row, (one, two) in enumerate(zip(labels, columns[language][2])) if one != two]
        if apart:
            raise ValueError(
                f"{paths[first]} and {paths[language]} differ in the labels of rows {numbered(apart)}, counted from 0: "
                "a pair and its translation have one label; are the rows aligned?"
            )
    queries, passages = ({language: column[side] for language, column in columns.items()} for side in (0, 1))
    return AlignedPairs(queries, passages, labels)


def _rows(path: Path, faults: FaultLog) -> Iterator[tuple[str, str, int]]:
    if file_ending(path) not in ENDINGS:
        raise ValueError(f"expected a file ending in {', '.join(ENDINGS)}, got {path}; rename it.")
    lines = read_lines(path, faults)
    cells: Iterable[tuple[int, Sequence[object]]]
    if file_ending(path).startswith(".jsonl"):
        cells = ((number, [row.get(key) for key in KEYS]) for number, row in json_objects(path, lines, faults, 1))
    else:
        cells = ((number, line.split("\t")) for number, line in enumerate(lines, 1) if line is not None)
    for number, row in cells:
        if number == 1 and tuple(row) == KEYS:
            continue
        if len(row) != 3:
            faults.add(path, number, "wrong column count", f"expected {', '.join(KEYS)}, got {len(row)} columns")
            continue
        query, passage, label = row
        bad = [key for key, text in zip(KEYS, row[:2]) if not isinstance(text, str) or not text.strip()]
        for key in bad:
            faults.add(path, number, "empty side", f"{key} is no text, or blank")
        if str(label) not in _LABELS:
            faults.add(path, number, "label outside {0, 1}", f"got {label!r}")
        elif not bad:
            yield str(query), str(passage), _LABELS[str(label)]
