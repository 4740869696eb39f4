"""``st-xling train --list`` and ``--print``, what it prints given back to ``train``, and the help of one recipe."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from st_xling.cli import main
from st_xling.training import load_recipe
from st_xling.training.recipe_files import read_recipe, recipe_kind, recipe_names


def shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    if words[-1] == "--help":
        with pytest.raises(SystemExit, match="0"):
            main(words)
    else:
        assert main(words) == 0
    return capsys.readouterr().out


def test_each_recipe_has_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = shown(["train", "--list", "--json", str(tmp_path / "r.json")], capsys).splitlines()
    assert sorted(line.split()[0] for line in lines) == recipe_names(None)
    for line in lines:
        assert line.split()[1] == recipe_kind(line.split()[0]) and re.search(r" (et al\.|and \w+) 20\d\d", line)
    assert [entry["name"] for entry in json.loads((tmp_path / "r.json").read_text())["recipes"]] == [
        line.split()[0] for line in lines
    ]


@pytest.mark.parametrize("name", recipe_names(None))
def test_what_is_printed_is_the_recipe(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "my-recipe.yaml"
    path.write_text(shown(["train", name, "--print"], capsys), encoding="utf-8")
    assert read_recipe(str(path)) == read_recipe(name) and recipe_kind(str(path)) == recipe_kind(name)
    if recipe_kind(name) == "encoder":
        assert load_recipe(str(path), tiny=True) == load_recipe(name, tiny=True)


def test_an_edited_recipe_trains(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, out = tmp_path / "mine.yaml", tmp_path / "out"
    content = yaml.safe_load(shown(["train", "--print", "tr"], capsys))
    content["training"] |= {"max_steps": 1, "per_device_train_batch_size": 4}
    path.write_text(yaml.safe_dump({**content, "name": "mine"}), encoding="utf-8")
    words = f"train {path} --model tiny --data phrasebook:de?size=16 --dev none --out {out} --json -".split()
    assert main([*words, "--tiny", "layers=1", "--tiny", "hidden_size=16"]) == 0
    results, err = capsys.readouterr()
    assert json.loads(results)["training"]["steps"] == 1 and f"the model is in {out}" in err
    assert json.loads((out / "training" / "run.json").read_text())["recipe"]["name"] == "mine"


def test_print_needs_a_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--print"]) == 2
    assert "--print needs the name of a recipe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "there", "absent"),
    [
        ("", ["RECIPE", "--epochs", "st-xling train --list"], ["--xpi-data", "--layer", "--lora", "of retrievers:"]),
        ("dap", ["train dap --model", "--lora", "(default: 5e-05)", "mask_ratio: 1.0"], ["--layer", "--xpi-data"]),
        ("dap --model tiny", ["(default: 0.002)", "a bare one mean"], ["(default: 5e-05)"]),
        ("--out tr dap --model=tiny --data x", ["train dap --model", "(default: 0.002)"], ["train tr --model MODEL"]),
        ("--data tiny.yaml sf", ["train sf --model", "(default: 7)"], ["train dap"]),
        ("sf", ["--layer", "--sweep", "(default: 7)", "negatives: worst", "train sf"], ["--mono", "train dap"]),
        ("ir-langcl", ["--parallel", "queries=PATH", "--mono", "gradients: one_by_one"], ["--lora", "--pivot"]),
        ("xpr-mixed", ["--xpi-data", "SQuAD", "strategy: mixed"], ["--parallel", "--prompt", "of cross-encoders (xpi"]),
    ],
)
def test_the_help_of_a_recipe_is_of_it_alone(
    words: str,
    there: list[str],
    absent: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = shown(["train", *words.split(), "--help"], capsys)
    assert [word for word in there if word not in text] == [] and [word for word in absent if word in text] == []


def test_a_recipe_of_ones_own_has_a_help(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("losses: {tlm: {}}\ntraining: {learning_rate: 0.25}\n", encoding="utf-8")
    text = shown(["train", str(path), "--help"], capsys)
    assert "(default: 0.25)" in text and "--xpi-data" not in text and "losses: {tlm: {}}" in text
