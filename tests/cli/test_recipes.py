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
