"""``st-xling train sf`` and ``evaluate precision``, from a phrasebook to a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from st_xling.cli import main

TINY = ["--tiny", "hidden_size=32", "--tiny", "layers=2", "--tiny", "vocabulary=300"]
DATA = ["--data", "zh-vi=phrasebook?size=80", "--dev", "zh-vi=phrasebook?size=30&split=test"]


def test_a_sweep_and_the_model_it_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, cache = tmp_path / "run", tmp_path / "cache"
    words = [
        "train",
        "sf",
        "--model",
        "tiny",
        *DATA,
        *TINY,
        "--sweep",
        "--max-steps",
        "4",
        "--cache",
        str(cache),
        "--out",
        str(out),
    ]
    assert main([*words, "--json", str(tmp_path / "figures.json")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown[:5]] == ["layer", "1", "2", "all", "cls"]
    assert shown[5].startswith("precision|at:1,5|pairs:zh-vi|") and "4 x 4 steps in" in shown[6]
    layers = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["training"]["layers"]
    assert [row["layer"] for row in layers] == ["1", "2", "all", "cls"]

    card = (out / "README.md").read_text(encoding="utf-8")
    assert 'task="zh")' in card and 'task="vi")' in card

    assert main([*words, "--overwrite"]) == 0
    assert "\n0 texts encoded in" in capsys.readouterr().out
    saved = json.loads((out / "results.json").read_text(encoding="utf-8"))["training"]
    data = ["--data", "zh-vi=phrasebook?size=30&split=test"]
    assert main(["evaluate", "precision", str(out), *data, "--json", str(tmp_path / "judged.json")]) == 0
    judged = json.loads((tmp_path / "judged.json").read_text(encoding="utf-8"))["precision"]
    assert judged["precision_mean_p@1"] == pytest.approx(saved["best_dev"])
    assert capsys.readouterr().out.startswith("pair   P@1 ->  P@1 <-  P@5 ->  P@5 <-\nzh-vi  ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sf", "--layer", "9"], "layer must be from 1 to 2: got 9; BertModel has 2 layers"),
        (["sf", "--stream", "--max-steps", "3"], "--stream is for encoders: got the recipe of an adapter sf"),
        (["sf", "--lora"], "training has no key 'lora'"),
        (["sf", "--xpi-steps", "3"], "--xpi-steps is for cross-encoders"),
        (["dap", "--layer", "3"], "--layer is for adapters: got the recipe of an encoder dap"),
        (["dap", "--sweep"], "--sweep is for adapters"),
        (["sff"], "no recipe is called 'sff'; did you mean 'sf'?"),
        (["sf", "--set", "adapter.network=linaer"], "network must be one of"),
    ],
)
def test_what_does_not_go_together(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--cache", str(tmp_path / "cache")] if words[0] == "sf" else []
    assert main(["train", *words, "--model", "tiny", *DATA, *TINY, *options, "--out", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_candidates_that_are_no_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "precision", "nowhere", "--data", "zh-vi=phrasebook?size=9", "--at", "1,x"]) == 2
    assert "--at takes whole numbers joined by commas, such as 1,5: got '1,x'" in capsys.readouterr().err
