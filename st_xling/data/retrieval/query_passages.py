"""Query-passage pairs to train a retriever on, from retrieval sets or tables of pairs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.faults import FaultLog
from st_xling.data.pairs import pair_dataset
from st_xling.data.phrasebook_spec import PhrasebookSpec
from st_xling.data.retrieval.phrase_set import phrase_set
from st_xling.data.retrieval.queries import read_judged_queries
from st_xling.data.retrieval.question_tables import read_question_table
from st_xling.data.retrieval.retrieval_set import RetrievalSet, read_retrieval_set
from st_xling.data.retrieval.specs import OF_SETS, parse_retrieval_spec
from st_xling.data.spec_options import Sample, free_name, sample_rows

if TYPE_CHECKING:
    from datasets import Dataset

FORM = (
    "queries=PATH or xx=PATH: a table of queries and passages, a .json file in SQuAD's form, or a folder with queries, "
    "passages and qrels; queries=HUB_ID?columns=query,answer,negative&split=train; or queries=phrasebook?size=2000"
)

_OF_FOLDERS = OF_SETS | {"negatives": "negatives"}
_OF_TABLES = {"columns": "columns", "name": "name", "split": "split"}
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
        language, place, options = parse_retrieval_spec(plain, options=_OF_FOLDERS | _OF_TABLES, form=FORM)
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


def _refuse(place: str, options: Iterable[str], known: dict[str, str]) -> None:
    given = [name for name in options if name not in known.values()]
    if given:
        raise ValueError(f"{place} is read with {', '.join(known)}: got {', '.join(given)}; leave it out.")


def query_passages(found: RetrievalSet) -> Dataset:
    """Every query with each of its relevant passages, whose texts come from one pass over the corpus."""
    wanted = {name for asked in found.queries.values() for query in asked for name in found.relevant[query]}
    texts = {name: text for name, text in found.passages.records() if name in wanted}
    return pair_dataset(
        (query, texts[name], code, found.language)
        for code, asked in found.queries.items()
        for identity, query in asked.items()
        for name in found.relevant[identity]
    )


def _of_folder(
    folder: str,
    language: str,
    *,
    split: str,
    skip_bad_lines: bool,
    corpus: str | None = None,
    query_languages: list[str] | None = None,
    negatives: str = "0",
) -> Dataset:
    if not negatives.isdecimal():
        raise ValueError(f"negatives= takes how many of a query's negative passages to read: got {negatives!r}.")
    judged = [path for path in (Path(folder) / f"{split}.jsonl{end}" for end in ("", ".gz")) if path.is_file()]
    if judged and corpus is None:  # the passages stand beside the queries: no corpus is needed
        queries, beside = read_judged_queries(judged[0], skip_bad_lines=skip_bad_lines)
        wrong = _negatives(judged[0], int(negatives), skip_bad_lines=skip_bad_lines)
        rows = [
            (query, text, *wrong[name])
            for name, query in queries.items()
            for _, text in beside[name]
            if int(negatives) == 0 or name in wrong
        ]
        pairs = pair_dataset((query, text, language, language) for query, text, *_ in rows)
        for place in range(1, int(negatives) + 1):
            pairs = pairs.add_column(f"negative_{place}", [row[place + 1] for row in rows])
        return pairs
    if int(negatives):
        raise ValueError(
            f"negatives={negatives} reads Mr.TyDi's negative_passages: {folder} has no {split}.jsonl with passages "
            "beside the queries, or a corpus of its own was named; leave it out."
        )
    return query_passages(
        read_retrieval_set(
            folder,
            language=language,
            split=split,
            corpus=corpus,
            query_languages=query_languages,
            skip_bad_lines=skip_bad_lines,
        )
    )


def _negatives(path: Path, count: int, *, skip_bad_lines: bool) -> Mapping[str, list[str]]:
    """Query → the first ``count`` passages that are not relevant to it; faulty are queries that have fewer."""
    if not count:
        return defaultdict(list)
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries")
    _, beside = read_judged_queries(path, key="negative_passages", skip_bad_lines=skip_bad_lines)
    for number, (name, found) in enumerate(beside.items(), 1):
        if len(found) < count:
            faults.add(path, number, "too few negatives", f"query {name} has {len(found)} negative_passages of {count}")
    faults.settle()
    return {name: [text for _, text in found[:count]] for name, found in beside.items() if len(found) >= count}
