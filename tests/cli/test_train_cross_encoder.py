"""``st-xling train`` with the recipes of cross-encoders, from files to a model that sentence-transformers loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentence_transformers import CrossEncoder

from st_xling.cli import main
from tests.training.ranking_run import sentences

TINY = ["--tiny", "hidden_size=32", "--tiny", "layers=1", "--tiny", "vocabulary=300", "--max-length", "64"]
STEPS = ["--max-steps", "4", "--eval-steps", "2", "--batch-size", "8"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """``--data`` of a labeled file in each of two languages, row by row translations of each other."""
    folder = tmp_path_factory.mktemp("pairs")
    words = []
    for language, texts in zip(("de", "en"), sentences(30)):
        path = folder / f"pairs.{language}.tsv"
        others = texts[1:] + texts[:1]
        rows = [f"{text}\t{text}\t1\n{text}\t{other}\t0\n" for text, other in zip(texts, others)]
        path.write_text("query\tpassage\tlabel\n" + "".join(rows), encoding="utf-8")
        words += ["--data", f"{language}={path}"]
    return words


def test_mixed(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    words = ["train", "xpr-mixed", "--model", "tiny", *files, *TINY, *STEPS, "--out", str(out)]
    assert main([*words, "--json", str(tmp_path / "figures.json")]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("4 steps in ") and "best development acc@1" in told.out
    assert "queries for development" in told.err
    stages = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["training"]["stages"]
    assert [(stage["name"], stage["steps"]) for stage in stages] == [("xpr-mixed", 4)]
    assert 0 <= stages[0]["best_dev"] <= 1
    ranking = CrossEncoder(str(out), device="cpu").rank("Der Hund schläft.", ["The dog sleeps.", "Drei Bücher."])
    assert {entry["corpus_id"] for entry in ranking} == {0, 1}
    assert main(words) == 2
    assert "holds an earlier run (it is complete)" in capsys.readouterr().err


def test_text_of_later_tests(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a labeled file its queries and relevant passages, of plain text every line; dev pools always."""
    _, english = sentences(30)
    later, plain = tmp_path / "later.en.tsv", tmp_path / "plain.txt"
    rows = [f"{text.upper()}\tNo such text.\t1\nNew {text}?\t{text}\t0\n" for text in english]
    later.write_text("".join(rows), encoding="utf-8")
    plain.write_text("Nothing of the kind.\n", encoding="utf-8")
    words = ["train", "xpr-mixed", "--model", "tiny", *files, *TINY, "--batch-size", "8", "--max-steps", "1"]
    words += ["--check-leak", f"en={later}", "--check-leak", str(plain), "--dev-share", "0.2"]
    out = tmp_path / "run"
    assert main([*words, "--out", str(out)]) == 0
    assert "text in both training and evaluation data" in capsys.readouterr().err
    sets = json.loads((out / "results.json").read_text(encoding="utf-8"))["leak"]["sets"]
    assert list(sets) == [
        "dev queries",
        "dev relevant passages",
        "plain",
        "en=later.en.tsv queries",
        "en=later.en.tsv relevant passages",
    ]
    assert sets["dev queries"]["text"]["rows"] == 6
    figures = {name: (side["text"]["leaked"], side["text"]["rows"]) for name, side in sets.items()}
    leaked, asked = figures["en=later.en.tsv queries"]
    assert 20 <= leaked <= 30 and asked == 60, "each but some of those held out"
    assert figures["plain"] == (0, 1) == figures["en=later.en.tsv relevant passages"]
    assert main([*words, "--out", str(tmp_path / "other"), "--fail-on-leak"]) == 2
    assert "training data must not hold evaluation text" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
