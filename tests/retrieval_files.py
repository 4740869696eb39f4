"""Small retrieval sets on disk, in the layouts that are published."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.conftest import PAIRS

OTHERS = [other for other, _ in PAIRS]
ENGLISH = [english for _, english in PAIRS]


def json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write one object a line, gzipped where the name says so."""
    data = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()
    return raw(path, data)


def lines(path: Path, rows: Iterable[str]) -> Path:
    return raw(path, "".join(f"{row}\n" for row in rows).encode())


def raw(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        data = gzip.compress(data)
    path.write_bytes(data)
    return path


def beir(
    folder: Path,
    passages: Mapping[str, str],
    queries: Mapping[str, Mapping[str, str]],
    qrels: Iterable[tuple[str, str, int]],
) -> Path:
    """A folder in BEIR's layout, with queries by language."""
    corpus = [{"_id": name, "title": "", "text": text} for name, text in passages.items()]
    json_lines(folder / "corpus.jsonl.gz", corpus)
    for language, texts in queries.items():
        rows = [{"_id": name, "text": text} for name, text in texts.items()]
        json_lines(folder / f"queries.{language}.jsonl", rows)
    judgments = [f"{query}\t{passage}\t{relevance}" for query, passage, relevance in qrels]
    lines(folder / "qrels.tsv", ["query-id\tcorpus-id\tscore", *judgments])
    return folder


def translated(folder: Path, language: str = "xx", texts: list[str] | None = None) -> Path:
    """The shared sentences of one side as passages p0…, those of both sides as queries q0… in two languages."""
    if texts is None:
        texts = OTHERS
    passages = {f"p{row}": text for row, text in enumerate(texts)}
    queries = {
        "en": {f"q{row}": text for row, text in enumerate(ENGLISH)},
        "xx": {f"q{row}": text for row, text in enumerate(OTHERS)},
    }
    qrels = [(f"q{row}", f"p{row}", 1) for row in range(len(texts))]
    return beir(folder, passages, queries, qrels)
