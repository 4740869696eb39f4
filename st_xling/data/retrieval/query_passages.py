"""Query-passage pairs to train a retriever on, from retrieval sets or tables of pairs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.faults import FaultLog
from st_xling.data.pairs import pair_dataset
from st_xling.data.phrasebook_spec import PhrasebookSpec
from st_xling.data.retrieval.files import read_queries_with_passages
from st_xling.data.retrieval.question_tables import read_question_table
from st_xling.data.retrieval.retrieval_set import RetrievalSet, phrase_set, read_retrieval_set
from st_xling.data.retrieval.specs import OF_SETS, parse_retrieval_spec
from st_xling.data.spec_options import Sample, free_name, sample_rows

if TYPE_CHECKING:
    from datasets import Dataset

FORM = (
    "queries=PATH or xx=PATH: a table of queries and passages, a .json file in SQuAD's form, or a folder with queries, "
    "passages and qrels; queries=HUB_ID?columns=query,answer,negative&split=train; or queries=phrasebook?size=2000"
)

_OF_FOLDERS = (*OF_SETS, "negatives")
_OF_TABLES = ("columns", "name", "split")
_LANGUAGE = "en"


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
        plain = re.sub(r"^queries=", f"{_LANGUAGE}=", spec)
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
    relevant = {name for asked in data.queries.values() for query in asked for name in data.relevant[query]}
    texts = {name: text for name, text in data.passages.records() if name in relevant}
    return pair_dataset(
        (query, texts[name], code, data.language)
        for code, asked in data.queries.items()
        for identity, query in asked.items()
        for name in data.relevant[identity]
    )


def _of_folder(
    folder: str, language: str, *, split: str, skip_bad_lines: bool, negatives: str = "0", **options: Any
) -> Dataset:
    if not negatives.isdecimal():
        raise ValueError(f"negatives= takes how many of a query's negative passages to read: got {negatives!r}.")
    count = int(negatives)
    files = [path for path in (Path(folder) / f"{split}.jsonl{end}" for end in ("", ".gz")) if path.is_file()]
    if not files or options.get("corpus") is not None:
        if count:
            raise ValueError(
                f"negatives={negatives} reads Mr.TyDi's negative_passages: {folder} has no {split}.jsonl with passages "
                "beside the queries, or a corpus of its own was named; leave it out."
            )
        data = read_retrieval_set(folder, language=language, split=split, skip_bad_lines=skip_bad_lines, **options)
        return query_passages(data)
    # The passages stand beside the queries: no corpus is needed.
    queries, beside = read_queries_with_passages(files[0], skip_bad_lines=skip_bad_lines)
    negative = _negatives(files[0], count, skip_bad_lines=skip_bad_lines) if count else {name: [] for name in queries}
    rows = [
        (query, text, negative[name]) for name, query in queries.items() for _, text in beside[name] if name in negative
    ]
    pairs = pair_dataset((query, text, language, language) for query, text, _ in rows)
    for place in range(count):
        pairs = pairs.add_column(f"negative_{place + 1}", [texts[place] for *_, texts in rows])
    return pairs


def _negatives(path: Path, count: int, *, skip_bad_lines: bool) -> dict[str, list[str]]:
    """Query → the first ``count`` passages that are not relevant to it; faulty are queries that have fewer."""
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries")
    _, beside = read_queries_with_passages(path, key="negative_passages", skip_bad_lines=skip_bad_lines)
    for number, (name, passages) in enumerate(beside.items(), 1):
        if len(passages) < count:
            fact = f"query {name} has {len(passages)} negative_passages of {count}"
            faults.add(path, number, "too few negatives", fact)
    faults.settle()
    return {name: [text for _, text in rows[:count]] for name, rows in beside.items() if len(rows) >= count}
