"""Queries, passages and judgements together, checked against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from st_xling.data.retrieval.held_passages import HeldPassages
from st_xling.data.retrieval.layouts import find_retrieval_files
from st_xling.data.retrieval.passages import Passages
from st_xling.data.retrieval.qrels import Qrels, read_qrels
from st_xling.data.retrieval.queries import read_judged_queries, read_queries
from st_xling.data.spec_options import Sample


@dataclass(frozen=True)
class RetrievalSet:
    """Passages of one language, queries of one or several, and which passages are relevant.

    Attributes:
        language: Of the passages.
        passages: The corpus, which is in memory only where it was generated.
        queries: Language → query id → text, of queries with a relevant passage alone.
        relevant: Query id → passage id → grade above 0; an id means the same query in every language.
        n_without_relevant: Language → queries that were left out, as no passage is relevant to them.
        n_absent: Queries with relevant passages that are in none of the languages read.
    """

    language: str
    passages: Passages | HeldPassages
    queries: dict[str, dict[str, str]]
    relevant: Qrels = field(repr=False)
    n_without_relevant: dict[str, int] = field(default_factory=dict)
    n_absent: int = 0

    @property
    def sha256(self) -> str:
        """Changes with any passage, query or judgement, and with the order of the passages."""
        digest = hashlib.sha256(f"{self.language}\n{self.passages.sha256}\n".encode())
        for language, queries in sorted(self.queries.items()):
            for name, text in sorted(queries.items()):
                digest.update(f"{language}\t{name}\t{text}\t{sorted(self.relevant[name].items())}\n".encode())
        return digest.hexdigest()


def read_retrieval_set(
    folder: str | Path,
    *,
    language: str,
    split: str = "test",
    corpus: str | Path | None = None,
    query_languages: Iterable[str] | None = None,
    skip_bad_lines: bool = False,
    keep_unanswered: bool = False,
) -> RetrievalSet:
    """A folder in the layout of BEIR, Mr.TyDi or MIRACL; see :func:`find_retrieval_files` for the files.

    Args:
        folder: Where they are.
        language: Of the passages, which the files do not say.
        split: Of queries and qrels.
        corpus: Another folder or file with the passages.
        query_languages: To read, where queries are there in several languages; by default all of them.
        skip_bad_lines: Leave faulty lines out, with a warning; qrels of passages that are not in the corpus too.
        keep_unanswered: Keep queries without a relevant passage, which ``relevant`` then lacks.
    Raises:
        FileNotFoundError: A file is missing.
        ParallelTextError: Faulty lines, a file's together; qrels that name unknown passages are counted and listed.
        ValueError: A query language that is not there, or whose queries have no relevant passage.
    """
    files = find_retrieval_files(folder, language=language, split=split, corpus=corpus)
    wanted = list(files.queries) if query_languages is None else list(dict.fromkeys(query_languages))
    absent = [code for code in wanted if code not in files.queries]
    if absent:
        raise ValueError(f"{folder} has queries in {', '.join(files.queries)}: asked for {', '.join(absent)}.")
    passages = Passages(files.corpus, skip_bad_lines=skip_bad_lines)
    if files.judged is not None:
        asked, beside = read_judged_queries(files.judged, skip_bad_lines=skip_bad_lines)
        queries = {language: asked}
        relevant = {name: {found: 1 for found, _ in rows} for name, rows in beside.items()}
        _check_known(relevant, passages, files.judged, skip=skip_bad_lines)
    else:
        assert files.qrels is not None
        queries = {code: read_queries(files.queries[code], skip_bad_lines=skip_bad_lines) for code in wanted}
        relevant = read_qrels(files.qrels, passages=passages.ids, skip_bad_lines=skip_bad_lines)
    where = f"{folder}, split {split!r}"
    return checked_set(language, passages, queries, relevant, where=where, keep_unanswered=keep_unanswered)


def checked_set(
    language: str,
    passages: Passages | HeldPassages,
    queries: dict[str, dict[str, str]],
    relevant: Qrels,
    *,
    where: str,
    keep_unanswered: bool = False,
) -> RetrievalSet:
    """A set of its parts, queries without a relevant passage left out and counted unless they are to be kept.

    Raises:
        ValueError: Languages whose queries have no relevant passage at all, named together.
    """
    answered = {name for name, found in relevant.items() if found}
    kept = {code: {name: text for name, text in asked.items() if name in answered} for code, asked in queries.items()}
    if keep_unanswered:
        kept = queries
    empty = [f"{code} ({len(queries[code]):,} queries)" for code, asked in kept.items() if not asked]
    if empty:
        raise ValueError(
            f"queries need relevant passages: {where} has none for {', '.join(empty)}; check that the ids of queries "
            "and qrels agree and that the split is right, or leave these languages out."
        )
    read = set().union(*queries.values())
    return RetrievalSet(
        language=language,
        passages=passages,
        queries=kept,
        relevant={name: found for name, found in relevant.items() if found},
        n_without_relevant={code: len(queries[code]) - len(asked) for code, asked in kept.items()},
        n_absent=len(answered - read),
    )


def sample_queries(found: RetrievalSet, sample: Sample, where: str) -> RetrievalSet:
    """A seeded sample of a set's queries, each in every language that it is there in; all passages stay.

    Args:
        found: The set.
        sample: Its ``size`` counts queries by id: one that is there in three languages is one.
        where: What is sampled, for messages.
    """
    if sample.size is None:
        return found
    names = list(dict.fromkeys(name for asked in found.queries.values() for name in asked))
    kept = {names[place] for place in sample.places(len(names), where)}
    return replace(
        found,
        queries={
            code: {name: text for name, text in asked.items() if name in kept} for code, asked in found.queries.items()
        },
        relevant={name: grades for name, grades in found.relevant.items() if name in kept},
    )


def _check_known(relevant: Qrels, passages: Passages, path: Path, *, skip: bool) -> None:
    """As :func:`read_qrels` treats passages that are not in the corpus."""
    from st_xling.data.faults import FaultLog

    faults = FaultLog(skip_bad_lines=skip, what="qrels")
    for number, (query, found) in enumerate(relevant.items(), 1):
        for name in [name for name in found if name not in passages.ids]:
            faults.add(path, number, "unknown passage", f"{name}, of query {query}, is not in the corpus")
            del found[name]
    faults.settle()
