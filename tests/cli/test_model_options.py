"""``--layer``, ``--pooling``, ``--prompt`` and ``--centre`` of the evaluations, from command line to signature."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import precision_at

DATA = "phrasebook:de?size=12"
TASKS = {
    "tatoeba": ["--data", DATA],
    "xsim": ["--data", DATA],
    "precision": ["--data", DATA],
    "bucc": ["--data", "phrasebook:de?size=30&gold=10", "--threshold", "1.0"],
    "retrieval": ["--data", "de=phrasebook?size=12", "--device", "cpu"],
}


@pytest.mark.parametrize("task", TASKS)
def test_the_signature_says_what_was_judged(task: str, saved_encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", task, str(saved_encoder), *TASKS[task]]
    assert main([*words, "--layer", "1", "--pooling", "cls", "--prompt", "query: "]) == 0
    signature = capsys.readouterr().out.splitlines()[-1]
    assert "|layer:1|pooling:cls|prompt:query: |data:phrasebook-" in signature and signature.startswith(f"{task}|")


def test_an_encoder_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "retrieval", "bm25", *TASKS["retrieval"][:2], "--layer", "1"]) == 2
    assert "--layer is for encoders: got bm25" in capsys.readouterr().err


@pytest.mark.parametrize("task", TASKS)
def test_any_evaluation_can_be_centred(task: str, saved_encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", task, str(saved_encoder), *TASKS[task], "--centre"]
    means = ["--centre-text", "de-en=phrasebook?size=60"]
    for how in ("language", "joint"):
        assert main([*words, how, *means]) == 0
        signature = capsys.readouterr().out.splitlines()[-1]
        assert f"|centre:{how}@de-en@" in signature and "|centre:joint|" not in signature
    assert main([*words, "language", "--centre-text", "fr-en=phrasebook?size=9"]) == 2
    assert "has none for de" in capsys.readouterr().err
    assert main([*words, "language"]) == (2 if task == "retrieval" else 0)
    shown = capsys.readouterr()
    assert ("--centre-text" in shown.err) if task == "retrieval" else ("centre:language@evaluated text" in shown.out)


def test_centring(saved_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "precision", str(saved_encoder), "--data", "de-en=phrasebook?size=40&split=test"]
    figures, signatures = [], []
    means = ["--centre-text", "de-en=phrasebook?size=60"]
    for more in ([], ["--centre", "language"], ["--centre", "language", *means], ["--centre", "joint", *means]):
        assert main([*words, *more, "--json", str(tmp_path / "f.json")]) == 0
        found = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))
        figures.append(found["precision"]["precision_mean_p@5"])
        signatures.append([part for part in found["signature"].split("|") if part.startswith("centre:")])
    assert signatures[:2] == [[], ["centre:language@evaluated text"]]
    assert signatures[2][0].startswith("centre:language@de-en@") and signatures[3][0].startswith("centre:joint@de-en@")
    model = SentenceTransformer(str(saved_encoder), device="cpu")
    text, judged = parallel_phrases("de", "en", size=60), parallel_phrases("de", "en", size=40, split="test")
    unit = {side: model.encode(text[side][:], normalize_embeddings=True) for side in ("source", "target")}
    sides = ("source", "target")
    found = [model.encode(judged[side][:], normalize_embeddings=True) - unit[side].mean(axis=0) for side in sides]
    forward, backward = precision_at(*found)
    assert figures[2] == pytest.approx((forward[5] + backward[5]) / 2)
    assert len(set(figures)) > 2
    capsys.readouterr()
    assert main([*words, "--centre", "language", "--centre-text", "fr-en=phrasebook?size=9"]) == 2
    assert "has none for de" in capsys.readouterr().err
    assert main([*words, *means]) == 2
    assert "--centre language or --centre joint" in capsys.readouterr().err
