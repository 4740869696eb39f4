"""Text to train retrievers on: queries with their passages, of retrieval sets and of tables, and text alone."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.delimited import split_csv
from st_xling.data.faults import FaultLog, iter_lines, read_lines
from st_xling.data.pairs import SURROGATE, is_unescaped_pair, pair_dataset, read_pairs, require_rows
from st_xling.data.parallel import HUB_ID, READERS, read_hub
from st_xling.data.phrasebook_spec import PhrasebookSpec, is_phrasebook, parse_phrasebook
from st_xling.data.records import load_table
from st_xling.data.retrieval.files import read_queries_with_passages
from st_xling.data.retrieval.passages import Passages, iter_objects
from st_xling.data.retrieval.retrieval_set import (
    OF_SETS,
    RetrievalSet,
    parse_retrieval_spec,
    phrase_set,
    read_retrieval_set,
)
from st_xling.data.spec_options import SAMPLE_OPTIONS, Sample, free_name, read_options, sample_rows, split_options
from st_xling.data.squad_form import NO_ANSWER, read_squad
from st_xling.utils.text import describe_missing, file_ending, plain_or_packed, unpacked_name

if TYPE_CHECKING:
    from datasets import Dataset

FORM = (
    "queries=PATH or xx=PATH: a table of queries and passages, a .json file in SQuAD's form, or a folder with queries, "
    "passages and qrels; queries=HUB_ID?columns=query,answer,negative&split=train; or queries=phrasebook?size=2000"
)

COLUMNS = ("query", "passage")
"""Where columns have names, unless others are asked for."""

_OF_FOLDERS = (*OF_SETS, "negatives")
_OF_TABLES = ("columns", "name", "split")
_NEGATIVE = re.compile(r"negative(?:_(\d+))?")
_POSITIONS = ["query of a line", "passage of a line"]
_BY_NAME = (".jsonl", ".parquet")


def load_query_passage_specs(
    specs: Iterable[str], *, split: str = "train", skip_bad_lines: bool = False
) -> dict[str, Dataset]:
    """Name → pairs, ``source`` the query and ``target`` a relevant passage; ``negative_1``, … where there are any.

    Args:
        specs: ``xx=PLACE`` (``queries=PLACE`` stands for ``en=PLACE``): a table as :func:`read_question_table` reads
            it, with ``?columns=query,answer,negative&name=…&split=…`` behind it; a folder as
            :func:`read_retrieval_set` has it, with ``?split=…&corpus=…&queries=…``, and ``negatives=N`` for the first N
            of Mr.TyDi's ``negative_passages``; each also with ``?size=…&seed=…``, a sample of its pairs; or
            ``phrasebook``, with ``?size=…&split=…&seed=…&queries=…``.
        split: Of folders and phrasebooks whose spec names none.
        skip_bad_lines: Leave faulty lines out, with a warning.
    Raises:
        ValueError: A spec of another form, faults of a file, two specs of one name, a set without pairs.
    """
    pairs: dict[str, Dataset] = {}
    for spec in specs:
        plain = re.sub(r"^queries=", "en=", spec)
        if "=" not in plain.split("?")[0]:
            raise ValueError(f"expected {FORM}; got {spec!r}.")
        language, place, options = parse_retrieval_spec(plain, options=(*_OF_FOLDERS, *_OF_TABLES), form=FORM)
        name = free_name(language, pairs)
        sample = Sample.pop(options, spec)
        if isinstance(place, PhrasebookSpec):
            pairs[name] = query_passages(phrase_set(place, language, split=split))
        elif Path(place).is_dir():
            _refuse(place, options, _OF_FOLDERS)
            options = {"split": split, **options}
            pairs[name] = _of_folder(place, language, skip_bad_lines=skip_bad_lines, **options)
        else:
            _refuse(place, options, _OF_TABLES)
            pairs[name] = read_question_table(place, language, skip_bad_lines=skip_bad_lines, **options)
        if not len(pairs[name]):
            raise ValueError(f"expected query-passage pairs in {place}: got none.")
        pairs[name] = sample_rows(pairs[name], sample.size, seed=sample.seed, where=spec)
    if not pairs:
        raise ValueError(f"expected at least one set of queries, got none; pass {FORM}.")
    return pairs


def _refuse(place: str, options: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    other = [name for name in options if name.replace("query_languages", "queries") not in known]
    if other:
        raise ValueError(f"{place} is read with {', '.join(known)}: got {', '.join(other)}; leave it out.")


def query_passages(data: RetrievalSet) -> Dataset:
    """Every query with each of its relevant passages, whose texts come from one pass over the corpus."""
    relevant = {name for queries in data.queries.values() for query in queries for name in data.relevant[query]}
    texts = {name: text for name, text in data.passages.records() if name in relevant}
    return pair_dataset(
        (query, texts[name], code, data.language)
        for code, queries in data.queries.items()
        for identity, query in queries.items()
        for name in data.relevant[identity]
    )


def _of_folder(
    folder: str, language: str, *, split: str, skip_bad_lines: bool, negatives: str = "0", **options: Any
) -> Dataset:
    if not negatives.isdecimal():
        raise ValueError(f"negatives= takes how many of a query's negative passages to read: got {negatives!r}.")
    count = int(negatives)
    file = plain_or_packed(Path(folder) / f"{split}.jsonl")
    if not file.is_file() or options.get("corpus") is not None:
        if count:
            raise ValueError(
                f"negatives={negatives} reads Mr.TyDi's negative_passages: {folder} has no {split}.jsonl with passages "
                "beside the queries, or a corpus of its own was named; leave it out."
            )
        data = read_retrieval_set(folder, language=language, split=split, skip_bad_lines=skip_bad_lines, **options)
        return query_passages(data)
    # The passages stand beside the queries: no corpus is needed.
    queries, beside = read_queries_with_passages(file, skip_bad_lines=skip_bad_lines)
    negative: dict[str, list[str]] = {name: [] for name in queries}
    if count:
        negative = _negatives(file, count, skip_bad_lines=skip_bad_lines)
    rows = [
        (query, text, negative[name]) for name, query in queries.items() for _, text in beside[name] if name in negative
    ]
    pairs = pair_dataset((query, text, language, language) for query, text, _ in rows)
    return _add_negatives(pairs, [texts for *_, texts in rows])


def _negatives(path: Path, count: int, *, skip_bad_lines: bool) -> dict[str, list[str]]:
    """Query → the first ``count`` passages that are not relevant to it; faulty are queries that have fewer."""
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries")
    _, beside = read_queries_with_passages(path, key="negative_passages", skip_bad_lines=skip_bad_lines)
    for number, (name, passages) in enumerate(beside.items(), 1):
        if len(passages) < count:
            fact = f"query {name} has {len(passages)} negative_passages of {count}"
            faults.add(path, number, "too few negatives", fact)
    faults.finalize()
    return {name: [text for _, text in rows[:count]] for name, rows in beside.items() if len(rows) >= count}


def negative_columns(names: Iterable[str]) -> list[str]:
    """Those of the names that are hard negatives', in order: ``negative``, ``negative_1``, ``negative_2``, …

    Example:
        >>> negative_columns(["negative_10", "passage", "negative_2"])
        ['negative_2', 'negative_10']
    """
    matches = {name: match for name in names if (match := _NEGATIVE.fullmatch(name))}
    return sorted(matches, key=lambda name: int(matches[name][1] or 0))


def read_question_table(
    place: str,
    language: str,
    *,
    columns: Sequence[str] | None = None,
    name: str | None = None,
    split: str | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs, ``source`` the query and ``target`` a passage that answers it; perhaps with hard negatives.

    Args:
        place: A ``.jsonl`` or ``.parquet`` file; a ``.tsv`` or ``.csv`` file of two columns, or more: negatives; a
            ``.json`` file in SQuAD's form, of which the questions with an answer are read; or the id of a data set on
            the Hub.
        language: Of queries and passages.
        columns: Names of the query's column, the passage's, and those of negatives, where they have any; by default
            :data:`COLUMNS` and all that :func:`negative_columns` knows.
        name: Configuration of a data set on the Hub.
        split: Of a data set on the Hub.
        skip_bad_lines: Leave faulty lines out, with a warning.
    Returns:
        The columns of parallel text, and ``negative_1``, ``negative_2``, … where there are any.
    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file of another kind, options that it does not take, faults.
    """
    path, kind = Path(place).expanduser(), file_ending(unpacked_name(place))
    is_file = kind == ".json" or file_ending(place) in READERS
    if not is_file and (path.exists() or not HUB_ID.fullmatch(place)):
        raise ValueError(
            "expected a file that ends in .tsv, .csv, .jsonl, .json (each perhaps packed) or .parquet, or the id "
            f"of a data set on the Hub; got {place}."
        )
    options = {"name": name, "split": split, "columns": None if kind in _BY_NAME else columns}
    refused = [key for key, value in options.items() if value is not None] if is_file else []
    if refused:
        raise ValueError(f"{place} is a file, which has no {', '.join(refused)}; leave these out.")
    if columns is not None and len(set(columns)) != max(len(columns), 2):
        raise ValueError(
            f"expected the columns of queries, passages and perhaps negatives, each once: got {','.join(columns)}."
        )
    if kind == ".json":
        file, faults = read_squad(path), FaultLog(skip_bad_lines=skip_bad_lines)
        answered = [(row, each) for row, each in enumerate(file.questions, 1) if each.fault != NO_ANSWER]
        texts = [(row, each.text, file.paragraphs[each.paragraph]) for row, each in answered]
        rows = [
            (query, passage, language, language)
            for row, query, passage in texts
            if is_unescaped_pair(faults, str(path), row, query, passage)
        ]
        return read_pairs(rows, str(path), faults)
    # Negatives are looked for first: the readers of pairs would pass over their columns.
    pair = COLUMNS if columns is None else (columns[0], columns[1])
    if columns is None or len(columns) > 2:
        faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries")
        names, records = _table(place, kind if is_file else "", faults, name=name, split=split)
        if negatives := negative_columns(names) if columns is None else columns[2:]:
            first = names[:2] if names[:2] == _POSITIONS else pair
            return _with_negatives(place, [*first, *negatives], records, language, faults)
    languages = {"source_language": language, "target_language": language}
    if is_file:
        named = {"columns": pair} if kind in _BY_NAME else {}
        return READERS[file_ending(place)](path, **languages, **named, skip_bad_lines=skip_bad_lines)
    return read_hub(place, **languages, columns=pair, name=name, split=split, skip_bad_lines=skip_bad_lines)


def _with_negatives(
    where: str, columns: list[str], records: Iterable[tuple[int, Mapping[str, Any]]], language: str, faults: FaultLog
) -> Dataset:
    """The rows with a text in each of the columns: query, passage, negatives."""
    rows: list[Any] = []
    negatives: list[Any] = []
    for number, record in records:
        query, passage, *others = (record.get(name) for name in columns)
        if not all(isinstance(text, str) and text.strip() and not SURROGATE.search(text) for text in others):
            faults.add(where, number, "no negative", f"expected text in {', '.join(columns[2:])}")
        elif is_unescaped_pair(faults, where, number, query, passage):
            rows.append((query, passage, language, language))
            negatives.append(others)
    return _add_negatives(read_pairs(rows, where, faults), negatives)


def _add_negatives(pairs: Dataset, negatives: Sequence[Sequence[str]]) -> Dataset:
    for number, column in enumerate(zip(*negatives), 1):
        pairs = pairs.add_column(f"negative_{number}", list(column))
    return pairs


def _table(
    place: str, kind: str, faults: FaultLog, *, name: str | None, split: str | None
) -> tuple[list[str], Iterator[tuple[int, Mapping[str, object]]]]:
    """Names of a table's columns, and its rows with their numbers, read as they are asked for.

    Columns without a name are called by their place, the third and those after it as negatives.
    """
    if not kind:
        table = load_table(place, name, split, place)
        return list(table.column_names), enumerate(iter(table), 1)
    if kind == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not Path(place).is_file():
            raise FileNotFoundError(describe_missing(place))
        try:
            file = pq.ParquetFile(place)
        except pa.ArrowInvalid:
            return [], iter(())  # read_parquet says what is wrong
        rows = (row for batch in file.iter_batches() for row in batch.to_pylist())
        return list(file.schema_arrow.names), enumerate(rows, 1)
    lines = iter_objects(place, faults) if kind == ".jsonl" else _cut_lines(place, kind, faults)
    # The first row has the names; it is put back.
    first = next(lines, (0, {}))
    return list(first[1]), itertools.chain([first] if first[0] else [], lines)


def _cut_lines(place: str, kind: str, faults: FaultLog) -> Iterator[tuple[int, Mapping[str, object]]]:
    width = 0
    for number, line in enumerate(iter_lines(place, faults), 1):
        cells = None if line is None else split_csv(line) if kind == ".csv" else line.split("\t")
        width = width or len(cells or ())
        if cells is not None and len(cells) == width:
            yield number, dict(zip([*_POSITIONS, *(f"negative_{column}" for column in range(1, width - 1))], cells))
        elif cells is not None:
            faults.add(place, number, "wrong columns", f"expected {width}, as in the first line, got {len(cells)}")
        elif line is not None:
            faults.add(place, number, "unclosed quote", "a field begins with a quote that this line does not close")


def read_others(path: str | Path, *, language: str, skip_bad_lines: bool = False) -> Dataset:
    """Texts as a data set with the columns of parallel text, whose source and target are alike.

    Args:
        path: Passages in JSON lines (``.jsonl``, perhaps packed), or any other file with a text a line; blank lines are
            left out; either with ``?size=…&seed=…`` for a sample of its texts. Or ``phrasebook?size=…&split=…&seed=…``,
            whose seed is 1 where it names none: other meanings than parallel text, whose seed is 0.
        language: Of the text.
        skip_bad_lines: Leave faulty lines out, with a warning.
    Raises:
        FileNotFoundError, ParallelTextError: As :class:`Passages`; lines that are not UTF-8.
        ValueError: A file without text; an unknown language or option of the phrasebook.
    """
    if is_phrasebook(str(path)):
        book = parse_phrasebook(str(path))
        if book.languages:
            raise ValueError(f"expected {language}=phrasebook, one language a spec; got {language}={path}.")
        texts = book.sentences(language, split="train", seed=1)
        return pair_dataset((text, text, language, language) for text in texts)
    place, query = split_options(str(path))
    sample = Sample.pop(read_options(query, SAMPLE_OPTIONS, spec=f"{language}={path}"), str(path))
    if file_ending(unpacked_name(place)) == ".jsonl":
        texts = list(Passages(place, skip_bad_lines=skip_bad_lines))
    else:
        faults = FaultLog(skip_bad_lines=skip_bad_lines, what="text")
        texts = [line for line in read_lines(place, faults) if line is not None and line.strip()]
        faults.finalize()
    chosen = (texts[row] for row in sample.places(len(texts), str(path)))
    return require_rows(pair_dataset((text, text, language, language) for text in chosen), str(path))


def read_all_others(
    specs: Iterable[str], *, option: str = "--others", skip_bad_lines: bool = False
) -> dict[str, Dataset]:
    """Each of several ``XX=PATH``, by a name of its own; see :func:`read_others`.

    Raises:
        ValueError: A spec of another form, which is said to be of ``option``; as :func:`read_others`.
    """
    datasets: dict[str, Dataset] = {}
    for spec in specs:
        language, _, path = spec.partition("=")
        if not language or not path:
            raise ValueError(f"{option} takes XX=PATH: got {spec!r}.")
        name = free_name(f"{language}:{Path(path).name}", datasets)
        datasets[name] = read_others(path, language=language, skip_bad_lines=skip_bad_lines)
    return datasets
