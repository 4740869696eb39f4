"""Retrieval sets in BEIR's layout, with queries in several languages, as test pools."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from st_xling.cross_encoder.pairs.aligned import known_languages
from st_xling.cross_encoder.pools.candidate_pool import CandidatePool, CandidatePools, pools_signature
from st_xling.cross_encoder.pools.candidate_pools import WithoutRelevant, candidate_pools
from st_xling.data.faults import FaultLog
from st_xling.data.lines import describe_missing, read_lines
from st_xling.data.records import json_objects
from st_xling.data.retrieval import read_qrels

_QUERIES = re.compile(r"queries\.([A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)\.jsonl(?:\.gz)?")


def read_retrieval(
    folder: str | Path,
    *,
    language: str,
    query_languages: Iterable[str] | None = None,
    max_candidates: int | None = None,
    without_relevant: WithoutRelevant = "exclude",
    seed: int = 0,
) -> CandidatePools:
    """Every passage a candidate for every query, in every language in which the queries are there.

    The folder holds ``corpus.jsonl`` (``_id``, ``text``), ``queries.xx.jsonl`` for each language (the same keys) and
    ``qrels.tsv`` (as :func:`~st_xling.data.retrieval.read_qrels` reads it), each perhaps gzipped. Nothing is tossed: a
    query that is there in three languages makes three pools.

    Args:
        folder: Where the files are.
        language: Of the passages, which the files do not say.
        query_languages: To read; by default all that are there, in the order of their names.
        max_candidates: Draw so many passages for each query where there are more; the relevant ones always stay. The
            signature says so: ``candidates:100+relevant``.
        without_relevant: What becomes of queries without a relevant passage: ``"exclude"``, ``"keep"`` or ``"error"``.
        seed: Of the draw.
    Raises:
        FileNotFoundError: The folder or one of its files is not there.
        ValueError: Faulty lines; an id that comes twice; a relevant passage that is not in the corpus.
    """
    folder = Path(folder)
    ids, passages = _texts(_find(folder, "corpus.jsonl"))
    found = {match[1]: path for path in sorted(folder.iterdir()) if (match := _QUERIES.fullmatch(path.name))}
    if not found:
        raise FileNotFoundError(f"expected queries.xx.jsonl files in {folder}, xx a language code; got none.")
    languages = known_languages(query_languages or found, list(found))
    rows = {name: row for row, name in enumerate(ids)}
    judged = read_qrels(_find(folder, "qrels.tsv"), passages=rows)
    relevant = {query: sorted(rows[name] for name in found) for query, found in judged.items()}
    pools: list[CandidatePool] = []
    empty = unanswered = 0
    for asked in languages:
        names, queries = _texts(found[asked])
        made = candidate_pools(
            {asked: queries},
            {language: passages},
            [relevant.get(name, []) for name in names],
            query_ids=names,
            passage_ids=ids,
            max_candidates=max_candidates,
            without_relevant=without_relevant,
            seed=seed,
        )
        pools += made
        empty, unanswered = empty + made.without_candidates, unanswered + made.without_relevant
    candidates = "all" if max_candidates is None else f"{max_candidates}+relevant"
    signature = pools_signature(languages, [language], candidates, seed, without_relevant, tossed=False)
    return CandidatePools(tuple(pools), empty, unanswered, signature)


def _find(folder: Path, name: str) -> Path:
    path = folder / name
    gzipped = folder / f"{name}.gz"
    if not path.is_file() and not gzipped.is_file():
        raise FileNotFoundError(describe_missing(path))
    return path if path.is_file() else gzipped


def _texts(path: Path) -> tuple[list[str], list[str]]:
    faults = FaultLog(can_skip=False)
    texts: dict[str, str] = {}
    for number, row in json_objects(path, read_lines(path, faults), faults, 1):
        identity, text = str(row.get("_id", "")), row.get("text")
        if not identity or not isinstance(text, str) or not text.strip():
            faults.add(path, number, "no id or text", "expected an _id and a text that is not blank")
        elif identity in texts:
            faults.add(path, number, "id twice", identity)
        else:
            texts[identity] = text
    faults.settle()
    return list(texts), list(texts.values())
