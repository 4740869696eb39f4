"""Small models of every kind that the recipes make, trained by the command on the phrasebook."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

_TINY = ["--model", "tiny", "--tiny", "vocabulary=300", "--tiny", "hidden_size=16", "--tiny", "layers=2"]
_TINY += ["--tiny", "heads=2", "--max-steps", "2", "--batch-size", "8"]
RUNS = {
    "encoder": ["dap", "--data", "phrasebook:de,fr?size=60", "--max-length", "24"],
    "lora": ["tr", "--data", "phrasebook:de?size=60", "--lora"],
    "adapter": ["sf", "--data", "zh-vi=phrasebook?size=60"],
    "shared": ["ir", "--data", "queries=phrasebook?size=60"],
    "separate": ["ir", "--data", "queries=phrasebook?size=60", "--encoders", "separate"],
    "cross-encoder": ["xpr-mixed", "--data", "en=phrasebook?size=30", "--data", "zh=phrasebook?size=30"],
}


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Kind, a key of :data:`RUNS` → folder of its run, trained once; to be read, not written."""
    from st_xling.cli import main

    folder, made = tmp_path_factory.mktemp("trained"), {}

    def train(kind: str) -> Path:
        if kind not in made:
            out = folder / kind
            cache = ["--cache", str(folder / "vectors")] if kind == "adapter" else []
            recipe, *words = RUNS[kind]
            assert main(["train", recipe, *_TINY, *words, *cache, "--out", str(out)]) == 0
            made[kind] = out
        return made[kind]

    return train


@pytest.fixture
def copy_of(trained: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """The same, copied without checkpoints into this test's own folder."""

    def copy(kind: str) -> Path:
        ignored = shutil.ignore_patterns("checkpoint-*", "eval")
        return Path(shutil.copytree(trained(kind), tmp_path / kind, ignore=ignored))

    return copy
