"""Small retrieval sets on disk, in the layouts that are published."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.conftest import PAIRS

OTHERS, ENGLISH = [other for other, _ in PAIRS], [english for _, english in PAIRS]


def json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write one object a line, gzipped where the name says so."""
    data = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()
    return raw(path, data)


def lines(path: Path, rows: Iterable[str]) -> Path:
    return raw(path, "".join(f"{row}\n" for row in rows).encode())


def raw(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def beir(
    folder: Path,
    passages: Mapping[str, str],
    queries: Mapping[str, Mapping[str, str]],
    qrels: Iterable[tuple[str, str, int]],
) -> Path:
    """A folder in BEIR's layout, with queries by language."""
    json_lines(
        folder / "corpus.jsonl.gz", [{"_id": name, "title": "", "text": text} for name, text in passages.items()]
    )
    for language, asked in queries.items():
        json_lines(folder / f"queries.{language}.jsonl", [{"_id": name, "text": text} for name, text in asked.items()])
    lines(folder / "qrels.tsv", ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in qrels)])
    return folder


def translated(folder: Path, language: str = "xx", texts: list[str] | None = None) -> Path:
    """The shared sentences of one side as passages p0…, asked for by those of both sides as queries q0…."""
    own = OTHERS if texts is None else texts
    return beir(
        folder,
        {f"p{row}": text for row, text in enumerate(own)},
        {code: {f"q{row}": text for row, text in enumerate(side)} for code, side in (("en", ENGLISH), ("xx", OTHERS))},
        [(f"q{row}", f"p{row}", 1) for row in range(len(own))],
    )
