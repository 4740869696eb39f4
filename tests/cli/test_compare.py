"""``st-xling compare``: table, JSON, page and cards; bad input is refused before any model runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from st_xling.cli import main
from st_xling.evaluation import read_saved_results
from st_xling.evaluation.compare.tasks import TASKS

DATA = ["--data", "phrasebook:de?size=20", "--samples", "20", "--tasks", "tatoeba,mining,size"]


def test_table_page_and_cards(encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Path(shutil.copytree(encoder, tmp_path / "other"))
    words = ["compare", f"{encoder}?prompt=query: ", str(other), *DATA, "--out", str(tmp_path / "out")]
    assert main([*words, "--json", str(tmp_path / "comparison.json"), "--keep"]) == 0
    printed = capsys.readouterr()
    written = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert printed.out.splitlines()[-1] == written["signature"] == written["compare"]["signature"]
    assert f"my-encoder: {encoder}, prompt 'query: '" in printed.out and "compare.html" in printed.err
    assert "st-xling compare" not in printed.out
    for folder in (encoder, other):
        (kept,) = read_saved_results(folder)
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert kept.task == "compare" and kept.signature in card and "## Results" in card
        assert [row.label for row in kept.rows or ()][:1] == ["Tatoeba: accuracy"]
        assert ("prompt:query: " in kept.signature) == (folder == encoder)
    assert kept.command.startswith("st-xling compare 'my-encoder?prompt=query: ' other --data")


def test_an_interrupted_comparison_says_how_to_resume(
    encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(TASKS, "tatoeba", TASKS["tatoeba"]._replace(run=stopped))
    assert main(["compare", str(encoder), *DATA, "--out", str(tmp_path / "out")]) == 130
    assert "Run the same command again to resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["{0}", "--tasks", "xsimm"], "xsimm"),
        (["{0}", "--data", "{0}/nothing"], "nothing"),
        (["{0}", "--seed", "-1"], "got -1"),
        (["{0}?layers=2"], "layers=2"),
        (["no/model"], "no/model"),
        (["no/model", "--keep"], "no/model"),
        (["{0}", "--languages", "klingon"], "klingon"),
        (["{0}", "--out", "{0}"], "{0}"),
    ],
)
def test_bad_input_is_refused(words: list[str], fact: str, encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *(word.format(encoder) for word in words), *([] if "--data" in words else DATA[:2])]) == 2
    printed = capsys.readouterr()
    assert fact.format(encoder) in printed.err and not printed.out
