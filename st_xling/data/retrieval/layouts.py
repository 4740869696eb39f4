"""Where a folder keeps passages, queries and qrels: the layouts of BEIR, Mr.TyDi and MIRACL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: What is looked for, first come first served; ``{split}`` and ``{language}`` are filled in, each also as ``.gz``.
CORPORA = (
    "corpus.jsonl",
    "collection/docs*.jsonl",
    "docs*.jsonl",
    "corpus/*.jsonl",
    "miracl-corpus-v*-{language}/docs*.jsonl",
)
QUERIES = (
    "queries.jsonl",
    "topic.{split}.tsv",
    "topics/topics.*-{language}-{split}.tsv",
    "miracl-v*-{language}/topics/topics.*-{language}-{split}.tsv",
)
QRELS = (
    "qrels/{split}.tsv",
    "qrels.tsv",
    "qrels.{split}.tsv",
    "qrels.{split}.txt",
    "qrels/qrels.*-{language}-{split}.tsv",
    "miracl-v*-{language}/qrels/qrels.*-{language}-{split}.tsv",
)
JUDGED = ("{split}.jsonl",)

_BY_LANGUAGE = re.compile(r"queries\.([A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)\.jsonl(?:\.gz)?")
_NUMBERS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class RetrievalFiles:
    """The files of one retrieval set.

    Attributes:
        corpus: Passages, in one file or several.
        queries: Language → queries.
        qrels: Judgements; ``None`` where ``judged`` has them.
        judged: Queries with their passages beside them, in Mr.TyDi's form.
    """

    corpus: list[Path]
    queries: dict[str, Path]
    qrels: Path | None
    judged: Path | None = None


def find_retrieval_files(
    folder: str | Path, *, language: str, split: str = "test", corpus: str | Path | None = None
) -> RetrievalFiles:
    """The files of a folder.

    Args:
        folder: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv`` (BEIR); the same with ``queries.xx.jsonl``
            for each language of the queries; ``collection/docs.jsonl``, ``topic.test.tsv`` and ``qrels.test.txt``, or
            ``corpus.jsonl`` and ``test.jsonl`` (Mr.TyDi); ``topics/`` and ``qrels/`` (MIRACL), its corpus beside it.
            Any file may be gzipped.
        language: Of the passages, and of queries whose file names none.
        split: Of queries and qrels.
        corpus: Another folder, or the file itself, that holds the passages.
    Raises:
        FileNotFoundError: The folder, or one of the three, is not there; the message says what was looked for.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder with passages, queries and qrels: {folder} is none.")
    place = folder if corpus is None else Path(corpus)
    names = {"split": split, "language": language}
    passages = [place] if place.is_file() else _first(place, CORPORA, names)
    if not passages:
        raise _missing("passages", place, CORPORA, names)
    by_language = {match[1]: path for path in sorted(folder.iterdir()) if (match := _BY_LANGUAGE.fullmatch(path.name))}
    queries = _first(folder, QUERIES, names)
    qrels = _first(folder, QRELS, names)
    judged = [] if by_language or queries else _first(folder, JUDGED, names)
    if not by_language and not queries and not judged:
        raise _missing(f"queries of split {split!r}", folder, ("queries.xx.jsonl", *QUERIES, *JUDGED), names)
    if not qrels and not judged:
        raise _missing(f"qrels of split {split!r}", folder, QRELS, names)
    return RetrievalFiles(
        corpus=passages,
        queries=by_language or {language: (queries or judged)[0]},
        qrels=qrels[0] if qrels else None,
        judged=judged[0] if judged else None,
    )


def _first(folder: Path, patterns: Iterable[str], names: dict[str, str]) -> list[Path]:
    """The files of the first pattern that has any, in the order of the numbers in their names."""
    for pattern in patterns:
        filled = pattern.format(**names)
        plain = sorted(folder.glob(filled), key=_in_order)
        gzipped = sorted(folder.glob(f"{filled}.gz"), key=_in_order)
        if plain or gzipped:
            return plain or gzipped
    return []


def _in_order(path: Path) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in _NUMBERS.split(path.name)]


def _missing(what: str, folder: Path, patterns: Iterable[str], names: dict[str, str]) -> FileNotFoundError:
    looked = ", ".join(pattern.format(**names) for pattern in patterns)
    return FileNotFoundError(f"expected {what} in {folder}; looked for {looked} (each also .gz) and found none.")
