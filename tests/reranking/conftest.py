"""Queries, passages and a first stage's result on disk, and small models."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PAIRS

LANGUAGES = ["de", "fr", "ar", "th", "zh", "vi", "es", "es"]


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """English questions q0 to q7."""
    lines = [json.dumps({"id": f"q{row}", "text": english}) for row, (_, english) in enumerate(PAIRS)]
    return write(tmp_path / "queries.jsonl", lines)


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    """p0 to p7 in seven languages, the last of which does not say which."""
    rows = [
        {"id": f"p{row}", "text": other, "language": language}
        for row, ((other, _), language) in enumerate(zip(PAIRS, LANGUAGES))
    ]
    del rows[-1]["language"]
    return write(tmp_path / "passages.jsonl", [json.dumps(row, ensure_ascii=False) for row in rows])


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
