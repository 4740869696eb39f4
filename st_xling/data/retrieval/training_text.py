"""Text to train retrievers on: queries with their passages, of retrieval sets and of tables, and text alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.check import FaultLog
from st_xling.data.columns import QUERY_NAMES, Layout, Row
from st_xling.data.formats import FORMATS
from st_xling.data.language_texts import load_texts
from st_xling.data.pairs import pair_dataset, require_rows
from st_xling.data.read import HUB_ID, Part, Source, find_source
from st_xling.data.retrieval.files import read_queries_with_passages
from st_xling.data.retrieval.retrieval_set import (
    OF_SETS,
    RetrievalSet,
    folder_options,
    parse_retrieval_spec,
    phrase_set,
    read_retrieval_set,
)
from st_xling.data.sample import sample_rows
from st_xling.data.spec import DataSpec, split_spec, unique_name
from st_xling.data.squad_form import NO_ANSWER, read_squad
from st_xling.utils.text import file_ending, home_path, plain_or_packed, unpacked_name

if TYPE_CHECKING:
    from datasets import Dataset

FORM = (
    "queries=PATH or xx=PATH: a table of queries and passages, a .json file in SQuAD's form, or a folder with queries, "
    "passages and qrels; queries=HUB_ID?columns=query,answer,negative&split=train; or queries=phrasebook?size=2000"
)

_OF_FOLDERS = (*OF_SETS, "negatives")
_OF_TABLES = ("columns", "name", "split")


def load_query_passage_specs(
    specs: Iterable[str], *, split: str = "train", skip_bad_lines: bool = False
) -> dict[str, Dataset]:
    """Name → pairs, ``source`` the query and ``target`` a relevant passage; ``negative_1``, … where there are any.

    Args:
        specs: ``xx=PLACE`` (``queries=PLACE`` means ``en=PLACE``): a table as :func:`read_question_table` reads
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
        parsed = parse_retrieval_spec(spec, options=(*_OF_FOLDERS, *_OF_TABLES), forms=FORM)
        (language,), place = parsed.languages, parsed.location
        name = unique_name(language, pairs)
        if parsed.is_phrasebook:
            pairs[name] = query_passages(phrase_set(parsed, language, split=split))
        elif Path(place).is_dir():
            _check_options(parsed, _OF_FOLDERS)
            options = {"split": split, **folder_options(parsed)}
            pairs[name] = _of_folder(place, language, skip_bad_lines=skip_bad_lines, **options)
        else:
            _check_options(parsed, _OF_TABLES)
            pairs[name] = read_question_table(place, language, skip_bad_lines=skip_bad_lines, **parsed.reader_options)
        if not len(pairs[name]):
            raise ValueError(f"expected query-passage pairs in {place}: got none.")
        if not parsed.is_phrasebook:
            pairs[name] = sample_rows(pairs[name], parsed.sample.size, seed=parsed.sample.seed, where=spec)
    if not pairs:
        raise ValueError(f"expected at least one set of queries, got none; pass {FORM}.")
    return pairs


def _check_options(spec: DataSpec, known: Iterable[str]) -> None:
    known = list(known)
    if other := [name for name in spec.reader_options if name not in known]:
        raise ValueError(f"{spec.location} is read with {', '.join(known)}: got {', '.join(other)}; leave it out.")


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
    folder: str, language: str, *, split: str, skip_bad_lines: bool, negatives: int = 0, **options: Any
) -> Dataset:
    file = plain_or_packed(Path(folder) / f"{split}.jsonl")
    if not file.is_file() or options.get("corpus") is not None:
        if negatives:
            raise ValueError(
                f"negatives={negatives} reads Mr.TyDi's negative_passages: {folder} has no {split}.jsonl with passages "
                "next to the queries, or a corpus was named; omit it."
            )
        data = read_retrieval_set(folder, language=language, split=split, skip_bad_lines=skip_bad_lines, **options)
        return query_passages(data)
    # The passages are next to the queries: no corpus is needed.
    queries, passages_of = read_queries_with_passages(file, skip_bad_lines=skip_bad_lines)
    hard: dict[str, list[str]] = {name: [] for name in queries}
    if negatives:  # faulty are queries that have fewer passages which are not relevant
        faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries")
        _, others = read_queries_with_passages(file, key="negative_passages", skip_bad_lines=skip_bad_lines)
        for number, (name, passages) in enumerate(others.items(), 1):
            if len(passages) < negatives:
                fact = f"query {name} has {len(passages)} negative_passages of {negatives}"
                faults.add(file, number, "too few negatives", fact)
        faults.finalize()
        hard = {name: [text for _, text in rows[:negatives]] for name, rows in others.items() if len(rows) >= negatives}
    rows = (
        (query, text, language, language, *hard[name])
        for name, query in queries.items()
        if name in hard
        for _, text in passages_of[name]
    )
    return pair_dataset(rows, negatives)


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
        place: A ``.jsonl`` or ``.parquet`` file; a ``.tsv`` or ``.csv`` file, with a header or of two columns or more,
            the others negatives; a ``.json`` file in SQuAD's form, of which the questions with an answer are read; or
            the id of a data set on the Hub.
        language: Of queries and passages.
        columns: Names of the query's column, the passage's, and those of negatives, where they have any; by default
            ``query`` (``question``, ``anchor``) and ``passage`` (``positive``, ``answer``), else as
            :func:`~st_xling.data.load_pairs` finds them, and all that are called ``negative``, ``negative_1``, …
        name: Configuration of a data set on the Hub.
        split: Of a data set on the Hub.
        skip_bad_lines: Leave faulty lines out, with a warning.
    Returns:
        The columns of parallel text, and ``negative_1``, ``negative_2``, … where there are any.
    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A file of another kind, options that it does not take, faults.
    """
    path, kind = home_path(place), file_ending(unpacked_name(place))
    if kind != ".json":
        if kind not in FORMATS and (path.exists() or not HUB_ID.fullmatch(place)):
            raise ValueError(
                "expected a file that ends in .tsv, .csv, .jsonl, .json (each perhaps packed) or .parquet, or the id "
                f"of a data set on the Hub; got {place}."
            )
        options: dict[str, Any] = {"columns": columns, "name": name, "split": split, "known": QUERY_NAMES}
        return find_source(place, (language, language), **options).read(skip_bad_lines)
    given = {"name": name, "split": split, "columns": columns}
    if refused := [key for key, value in given.items() if value is not None]:
        raise ValueError(f"{place} is a file, which has no {', '.join(refused)}; leave these out.")
    layout = Layout((0, 1), (language, language), width=2)
    part = Part(partial(_answered_questions, path), layout, (str(path), str(path)))
    return Source((part,), str(path), (path,)).read(skip_bad_lines)


def _answered_questions(path: Path, faults: FaultLog) -> Iterator[Row]:
    """Read the questions of a file in SQuAD's form that have an answer, and their paragraphs."""
    file = read_squad(path)
    for row, question in enumerate(file.questions, 1):
        if question.fault != NO_ANSWER:
            yield row, [question.text, file.paragraphs[question.paragraph]]


def read_others(spec: str, *, skip_bad_lines: bool = False) -> Dataset:
    """Read ``LANGUAGE=LOCATION`` as a data set with the columns of parallel text, whose source and target are alike.

    Args:
        spec: JSON lines (``.jsonl``, perhaps packed) with ``text``, or any other file with a text a line; blank lines
            are skipped; either with ``?size=…&seed=…`` for a sample of its texts. Or the phrasebook, with
            ``?size=…&split=…&seed=…``, whose seed is 1 where it names none: other meanings than parallel text.
        skip_bad_lines: Skip faulty lines, with a warning.
    Raises:
        FileNotFoundError, ParallelTextError: If there is no such file, or it has faulty lines or no text.
        ValueError: For an unknown language or option.
    """
    return require_rows(load_texts(spec, skip_bad_lines=skip_bad_lines), spec)


def read_all_others(
    specs: Iterable[str], *, option: str = "--mono", skip_bad_lines: bool = False
) -> dict[str, Dataset]:
    """Read each of several ``XX=PATH``, under a name of its own; see :func:`read_others`.

    Raises:
        ValueError: For a spec of another form, which is said to be of ``option``; as :func:`read_others`.
    """
    datasets: dict[str, Dataset] = {}
    for spec in specs:
        parts = split_spec(spec)
        if len(parts.languages) != 1 or not parts.location:
            raise ValueError(f"{option} takes XX=PATH: got {spec!r}.")
        name = unique_name(f"{parts.languages[0]}:{Path(parts.location).name}", datasets)
        datasets[name] = read_others(spec, skip_bad_lines=skip_bad_lines)
    return datasets
