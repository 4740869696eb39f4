"""Query-passage pairs to train a retriever on, from retrieval sets or tables of pairs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.pairs import COLUMNS
from st_xling.data.phrasebook_spec import PhrasebookSpec
from st_xling.data.readers import READERS, file_ending
from st_xling.data.records import read_jsonl, read_parquet
from st_xling.data.retrieval.phrase_set import phrase_set
from st_xling.data.retrieval.queries import read_judged_queries
from st_xling.data.retrieval.retrieval_set import RetrievalSet, read_retrieval_set
from st_xling.data.retrieval.specs import parse_retrieval_spec

if TYPE_CHECKING:
    from datasets import Dataset

FORM = (
    "queries=PATH or xx=PATH: a table of queries and passages, or a folder with queries, passages and qrels, "
    "or queries=phrasebook?size=2000"
)

_NAMED_COLUMNS = (".jsonl", ".jsonl.gz", ".parquet")
_LANGUAGE = "en"


def load_query_passage_specs(
    specs: Iterable[str], *, split: str = "train", skip_bad_lines: bool = False
) -> dict[str, Dataset]:
    """Name → pairs, ``source`` the query and ``target`` a relevant passage.

    Args:
        specs: ``xx=PATH`` (``queries=PATH`` stands for ``en=PATH``): a ``.jsonl`` or ``.parquet`` file with ``query``
            and ``passage``, a ``.tsv`` or ``.csv`` file of two columns, or a folder as :func:`read_retrieval_set`
            has it, with ``?split=…&corpus=…&queries=…`` behind it, or ``phrasebook``, with
            ``?size=…&split=…&seed=…&queries=…``.
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
        language, place, options = parse_retrieval_spec(plain)
        name, number = language, 1
        while name in pairs:
            number += 1
            name = f"{language}-{number}"
        if isinstance(place, PhrasebookSpec):
            pairs[name] = query_passages(phrase_set(place, language, split=split))
        elif Path(place).is_dir():
            options = {"split": split, **options}
            pairs[name] = _of_folder(place, language, skip_bad_lines=skip_bad_lines, **options)
        elif options:
            raise ValueError(f"{place} is a file, which has no {', '.join(options)}; leave these out of {spec!r}.")
        else:
            pairs[name] = _of_table(Path(place), language, skip_bad_lines=skip_bad_lines)
        if not len(pairs[name]):
            raise ValueError(f"expected query-passage pairs in {place}: got none.")
    if not pairs:
        raise ValueError(f"expected at least one set of queries, got none; pass {FORM}.")
    return pairs


def query_passages(found: RetrievalSet) -> Dataset:
    """Every query with each of its relevant passages, whose texts come from one pass over the corpus."""
    wanted = {name for asked in found.queries.values() for query in asked for name in found.relevant[query]}
    texts = {name: text for name, text in found.passages.records() if name in wanted}
    return _dataset(
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
) -> Dataset:
    judged = [path for path in (Path(folder) / f"{split}.jsonl{end}" for end in ("", ".gz")) if path.is_file()]
    if judged and corpus is None:  # the passages stand beside the queries: no corpus is needed
        queries, beside = read_judged_queries(judged[0], skip_bad_lines=skip_bad_lines)
        rows = ((query, text, language, language) for name, query in queries.items() for _, text in beside[name])
        return _dataset(rows)
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


def _of_table(path: Path, language: str, *, skip_bad_lines: bool) -> Dataset:
    ending = file_ending(path)
    if ending not in READERS:
        raise ValueError(f"expected {FORM}; got {path}, which ends in none of {', '.join(READERS)}.")
    if ending in _NAMED_COLUMNS:
        reader = read_parquet if ending == ".parquet" else read_jsonl
        return reader(
            path,
            source_language=language,
            target_language=language,
            columns=("query", "passage"),
            skip_bad_lines=skip_bad_lines,
        )
    return READERS[ending](path, source_language=language, target_language=language, skip_bad_lines=skip_bad_lines)


def _dataset(rows: Iterable[tuple[str, str, str, str]]) -> Dataset:
    from datasets import Dataset

    from st_xling.data.streams import text_features

    columns = list(zip(*rows)) or [()] * len(COLUMNS)
    return Dataset.from_dict(dict(zip(COLUMNS, map(list, columns))), features=text_features())
