"""Small models of every kind with what a run leaves beside them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PAIRS
from tests.hub_cards.golden import RECORDED


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, make_model: Callable[..., Any]) -> Path:
    """Folders ``encoder``, ``separate`` and ``cross-encoder``: untrained, with the files of recorded runs, carded."""
    from st_xling.hub import write_card
    from st_xling.training.retriever import separate_encoders
    from tests.models.tiny_cross_encoder import tiny_cross_encoder

    folder, encoder = tmp_path_factory.mktemp("models"), make_model()
    made = {
        "encoder": (encoder, "encoder"),
        "separate": (separate_encoders(encoder), "retriever"),
        "cross-encoder": (tiny_cross_encoder([text for pair in PAIRS for text in pair]), "reranker"),
    }
    for name, (model, kind) in made.items():
        model.save_pretrained(str(folder / name))
        (folder / name / "training").mkdir()
        for path in ("results.json", "training/run.json"):
            shutil.copyfile(RECORDED / kind / path, folder / name / path)
        (folder / name / "training" / "log.jsonl").write_text("{}\n", encoding="utf-8")
        write_card(folder / name)
    return folder


@pytest.fixture
def copy_of(models: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Such a folder, copied into this test's own."""
    return lambda name: Path(shutil.copytree(models / name, tmp_path / name))
