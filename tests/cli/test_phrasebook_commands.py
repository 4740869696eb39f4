"""Every kind of training and evaluation on the phrasebook, as a stranger without files would type it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from st_xling.cli import main

SMALL = ["--model", "tiny", "--tiny", "hidden_size=16", "--tiny", "layers=1", "--tiny", "vocabulary=300"]
SHORT = [*SMALL, "--max-steps", "3", "--batch-size", "8", "--max-length", "40"]


def evaluate(*words: str, folder: Path) -> dict[str, Any]:
    figures = folder / "figures.json"
    assert main(["evaluate", *words, "--json", str(figures)]) == 0
    return json.loads(figures.read_text(encoding="utf-8"))


def test_a_retriever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "retriever"
    data = ["--data", "queries=phrasebook?size=24", "--parallel", "phrasebook:de?size=30"]
    more = ["--others", "fr=phrasebook?size=30", "--dev", "de=phrasebook?size=8&queries=en"]
    assert main(["train", "ir-semacl-langcl", *SHORT, *data, *more, "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert "queries en: 24 pairs" in told.err and "30 sentences" in told.err and "best development MRR@100" in told.out
    sets = ["--data", "de=phrasebook?size=12&queries=de,en", "--data", "en=phrasebook?size=12&queries=de,en"]
    found = evaluate("retrieval", str(out), *sets, "--pool", "mixed", "--bm25", "--device", "cpu", folder=tmp_path)
    assert "|data:phrasebook-test@" in str(found["signature"])
    assert found["retrieval"]["BM25"]["language_bias"]["expected"] == 0.5


def test_a_reranker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "reranker"
    data = [word for code in ("en", "zh") for word in ("--data", f"{code}=phrasebook?size=20")]
    xpi = ["--xpi-data", "zh-en=phrasebook?size=30", "--xpi-steps", "2", "--xpi-dev", "none"]
    leak = ["--check-leak", "en=phrasebook?size=5", "--fail-on-leak"]
    assert main(["train", "xpr-mixed", *SHORT, *data, *xpi, *leak, "--dev-share", "0.25", "--out", str(out)]) == 0
    assert "best development acc@1" in capsys.readouterr().out
    found = evaluate("reranking", str(out), *data, "--split", "test", "--device", "cpu", folder=tmp_path)
    assert str(found["signature"]).startswith("reranking|n:20|") and "|data:phrasebook-test@" in str(found["signature"])
