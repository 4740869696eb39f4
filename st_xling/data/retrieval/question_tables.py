"""Queries with their passages beside them: tables, question-answering files, data sets of the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.faults import FaultLog
from st_xling.data.hub import read_hub
from st_xling.data.pairs import PairCollector
from st_xling.data.readers import HUB_ID, READERS, file_ending
from st_xling.data.squad_form import NO_ANSWER, read_squad

if TYPE_CHECKING:
    from datasets import Dataset

COLUMNS = ("query", "passage")
"""Where columns have names, unless others are asked for."""

_SQUAD = (".json", ".json.gz")
_BY_NAME = (".jsonl", ".jsonl.gz", ".parquet")


def read_question_table(
    place: str,
    language: str,
    *,
    columns: Sequence[str] | None = None,
    name: str | None = None,
    split: str | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs, ``source`` the query and ``target`` a passage that answers it.

    Args:
        place: A ``.jsonl`` or ``.parquet`` file; a ``.tsv`` or ``.csv`` file of two columns; a ``.json`` file in
            SQuAD's form, of which the questions with an answer are read; or the id of a data set on the Hub.
        language: Of both sides.
        columns: Names of the two columns, where they have any; by default :data:`COLUMNS`.
        name: Configuration of a data set on the Hub.
        split: Of a data set on the Hub.
        skip_bad_lines: Leave faulty lines out, with a warning.
    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file of another kind, options that it does not take, faults.
    """
    languages = {"source_language": language, "target_language": language}
    path, ending = Path(place).expanduser(), file_ending(place)
    is_file = ending in (*_SQUAD, *READERS)
    if not is_file and (path.exists() or not HUB_ID.fullmatch(place)):
        endings = ", ".join([*READERS, *_SQUAD])
        raise ValueError(f"expected a file that ends in {endings}, or the id of a data set on the Hub; got {place}.")
    given = {"name": name, "split": split, "columns": None if ending in _BY_NAME else columns}
    refused = [key for key, value in given.items() if value is not None] if is_file else []
    if refused:
        raise ValueError(f"{place} is a file, which has no {', '.join(refused)}; leave these out.")
    chosen = COLUMNS if columns is None else tuple(columns)
    if len(chosen) != 2:
        raise ValueError(f"expected two columns, the query's and the passage's: got {','.join(chosen)}.")
    if ending in _SQUAD:
        return _of_squad(path, language, skip_bad_lines=skip_bad_lines)
    if is_file:
        named = {"columns": chosen} if ending in _BY_NAME else {}
        return READERS[ending](path, **languages, **named, skip_bad_lines=skip_bad_lines)  # type: ignore[arg-type]
    return read_hub(place, **languages, columns=chosen, name=name, split=split, skip_bad_lines=skip_bad_lines)


def _of_squad(path: Path, language: str, *, skip_bad_lines: bool) -> Dataset:
    found = read_squad(path)
    pairs = PairCollector(str(path), FaultLog(skip_bad_lines=skip_bad_lines), language, language)
    for number, question in enumerate(found.questions, 1):
        if question.fault != NO_ANSWER:
            pairs.add_unescaped(number, question.text, found.paragraphs[question.paragraph])
    return pairs.dataset()
