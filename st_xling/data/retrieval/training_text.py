"""Text to train retrievers on: queries with their passages, of retrieval sets and of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.columns import QUERY_NAMES
from st_xling.data.locations import find_source
from st_xling.data.pairs import pair_dataset, sample_rows
from st_xling.data.retrieval.files import read_queries_with_passages
from st_xling.data.retrieval.listed import find_lists, is_table, open_lists
from st_xling.data.retrieval.retrieval_set import (
    OF_SETS,
    RetrievalSet,
    is_squad,
    parse_retrieval_spec,
    phrase_set,
    read_retrieval_set,
)
from st_xling.data.spec import DataSpec, unique_name
from st_xling.data.squad_form import NO_ANSWER, read_squad
from st_xling.utils.text import home_path, plain_or_packed

if TYPE_CHECKING:
    from datasets import Dataset

FORM = (
    "queries=PATH or xx=PATH: a table of queries and passages, a .json file in SQuAD's form, or a folder with queries, "
    "passages and qrels; queries=HUB_ID?columns=query,answer,negative&split=train; or queries=phrasebook?size=2000"
)


def load_query_passage_specs(
    specs: Iterable[str], *, split: str = "train", skip_bad_lines: bool = False
) -> dict[str, Dataset]:
    """Load pairs of a query, ``source``, and a relevant passage, ``target``; ``negative_1``, … where there are any.

    Args:
        specs: ``xx=PLACE`` (``queries=PLACE`` means ``en=PLACE``). A place is a table: a ``.jsonl`` or ``.parquet``
            file; a ``.tsv`` or ``.csv`` file, with a header or of two columns or more, the others negatives; or the id
            of a data set on the Hub; with ``?columns=query,answer,negative&name=…&split=…`` behind it. Without
            ``columns`` these are ``query`` (``question``, ``anchor``) and ``passage`` (``positive``, ``answer``), else
            as :func:`~st_xling.data.load_pairs` finds them, and all that are called ``negative``, ``negative_1``, …
            Columns may have lists of passages (``pos`` and ``neg`` of FlagEmbedding, ``positive_ctxs`` and
            ``hard_negative_ctxs`` of DPR): each relevant passage makes a pair.
            Or it is a ``.json`` file in SQuAD's form, of which the questions with an answer are read; or a folder as
            :func:`read_retrieval_set` has it, with ``?split=…&queries=…``; each also with ``?size=…&seed=…``, a sample
            of its pairs; or ``phrasebook``, with ``?size=…&split=…&seed=…&queries=…``.
        split: Of folders and phrasebooks whose spec names none.
        skip_bad_lines: Skip faulty lines, with a warning.

    Returns:
        Name → pairs.

    Raises:
        ValueError: If a spec has another form, or for faults of a file, or a set without pairs.
    """
    pairs: dict[str, Dataset] = {}
    for spec in specs:
        parsed = parse_retrieval_spec(spec, options=(*OF_SETS, "columns"), forms=FORM)
        (language,) = parsed.languages
        dataset = _read_pairs(parsed, language, split=split, skip_bad_lines=skip_bad_lines)
        if not parsed.is_phrasebook:
            dataset = sample_rows(dataset, parsed.sample.size, seed=parsed.sample.seed, where=spec)
        if not len(dataset):
            raise ValueError(f"expected query-passage pairs in {parsed.location}: got none.")
        pairs[unique_name(language, pairs)] = dataset
    if not pairs:
        raise ValueError(f"expected at least one set of queries, got none; pass {FORM}.")
    return pairs


def _read_pairs(spec: DataSpec, language: str, *, split: str, skip_bad_lines: bool) -> Dataset:
    """Read the pairs of what a spec names: the phrasebook, a folder, lists, a file in SQuAD's form, or a table."""
    if spec.is_phrasebook:
        return query_passages(phrase_set(spec, language, split=split))
    if Path(spec.location).is_dir():
        _check_options(spec, OF_SETS)
        return _read_folder(spec, language, split=split, skip_bad_lines=skip_bad_lines)
    path = home_path(spec.location)
    if lists := find_lists(path, spec.options.get("columns")):
        _check_options(spec, ("columns",))
        return open_lists(path, lists, language).read(skip_bad_lines)
    if is_squad(spec.location) and not is_table(path):
        _check_options(spec, ())
        file = read_squad(path)
        answered = [question for question in file.questions if question.fault != NO_ANSWER]
        return pair_dataset(
            (question.text, file.paragraphs[question.paragraph], language, language) for question in answered
        )
    if is_squad(spec.location):
        _check_options(spec, ("columns",))
    else:
        _check_options(spec, ("columns", "name", "split"))
    source = find_source(spec.location, (language, language), paired_names=QUERY_NAMES, **spec.reader_options)
    return source.read(skip_bad_lines)


def _check_options(spec: DataSpec, known: Sequence[str]) -> None:
    """Raise ``ValueError`` for options that are not of the kind of file that a spec names."""
    if other := [name for name in spec.reader_options if name not in known]:
        raise ValueError(f"{spec.location} takes no {', '.join(other)}, but {', '.join(('size', 'seed', *known))}.")


def query_passages(data: RetrievalSet) -> Dataset:
    """Pair every query with each of its relevant passages."""
    rows = []
    for code, queries in data.queries.items():
        for identity, query in queries.items():
            for passage in data.relevant[identity]:
                rows.append((query, data.passages[data.passages.ids[passage]], code, data.language))
    return pair_dataset(rows)


def _read_folder(spec: DataSpec, language: str, *, split: str, skip_bad_lines: bool) -> Dataset:
    split = spec.options.get("split", split)
    file = plain_or_packed(Path(spec.location) / f"{split}.jsonl")
    if not file.is_file():
        data = read_retrieval_set(
            spec.location,
            language=language,
            split=split,
            query_languages=spec.options.get("queries"),
            name=spec.options.get("name"),
            skip_bad_lines=skip_bad_lines,
        )
        return query_passages(data)
    # The passages are next to the queries: no corpus is needed.
    queries, passages = read_queries_with_passages(file, skip_bad_lines=skip_bad_lines)
    rows = []
    for identity, query in queries.items():
        rows += [(query, passage, language, language) for passage in passages[identity].values()]
    return pair_dataset(rows)
