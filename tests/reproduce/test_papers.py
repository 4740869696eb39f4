"""The five papers' tables: every command is one that st-xling takes, at every scale, and every name is there."""

import re
from typing import Any

import pytest
import torch

import st_xling.reproduce.paper
from st_xling.reproduce import load_paper, paper_names
from st_xling.reproduce.paper import SCALES, Paper
from tests.commands import parse

#: As the papers number them, without pictures of states; AMBER's figure 2 is in its figures 3 and 4.
TABLES = {
    "amber": {"2", "5", "6", "7", "8", "figure 3", "figure 4"},
    "dap": {"1", "2", "3", "4", "5", "6", "7", "8", "figure 3", "figure 4"},
    "ir": {"2", "3", "4", "5", "6", "7", "8", "9", "10", "figure 3", "figure 4"},
    "sf": {*map(str, range(5, 14)), "figure 6"},
    "xpr": {"3", "4", "5"},
}


@pytest.fixture(scope="module", params=[(name, scale) for name in paper_names() for scale in SCALES], ids="-".join)
def paper(request: pytest.FixtureRequest) -> Paper:
    name, scale = request.param
    return load_paper(name, scale=scale, seeds=(0, 1))


def test_every_command_parses(paper: Paper) -> None:
    words = set()
    for step in paper.steps():
        if not step.is_python:
            parse(step.command())
        words.update(step.words)
    assert len({step.id for step in paper.steps()}) == len(paper.steps())
    # The smallest scale needs no files of anybody.
    assert paper.scale != "tiny" or not any("{data}" in word for word in words)
    assert not [word for word in words if re.search(r"\{[\w-]+\}", word.replace("{data}", ""))]


@pytest.mark.parametrize("name", paper_names())
def test_float32_where_bfloat16_is_slow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def words(**options: Any) -> set[str]:
        return {word for step in load_paper(name, scale="small", **options).steps() for word in step.words}

    half, single = words(precision="bf16"), words(precision="fp32")
    differ = {word for word in half ^ single if "models/" not in word}
    assert differ and differ <= {"training.bf16=true", "bfloat16", "float32", "--autocast"}
    assert not {"training.bf16=true", "bfloat16"} & single
    for processor, gpu, chosen in (
        (True, False, half),
        (None, False, half),
        (False, False, single),
        (False, True, half),
    ):
        monkeypatch.setattr(torch.accelerator, "is_available", lambda found=gpu: found)
        monkeypatch.setattr(st_xling.reproduce.paper, "cpu_has_bfloat16", lambda found=processor: found)
        assert words() == chosen


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_those_of_the_paper(name: str) -> None:
    assert set(load_paper(name, scale="paper").tables) >= TABLES[name]


def test_models_are_shared() -> None:
    """By rows, tables and papers: a step is its command."""
    dap = load_paper("dap", scale="small", seeds=(0,))
    trained = [step for step in dap.steps() if step.trains]
    assert sum(step.name == "tr, seed 0" for step in trained) == 1
    bases = {
        step.id for name in paper_names() for step in load_paper(name, scale="small").steps() if step.name == "mlm"
    }
    assert len(bases) == 1
