"""Fixtures: small models of every kind with what a run leaves; a Hub on loopback, and a process that talks to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.conftest import PAIRS
from tests.hub.clients import Client
from tests.hub.hub_server import TOKEN, Hub, serve
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


@pytest.fixture(scope="session")
def loopback() -> Iterator[Hub]:
    with serve() as hub:
        yield hub


@pytest.fixture(scope="session")
def process(loopback: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    client = Client(loopback.url, tmp_path_factory.mktemp("hf-home"))
    yield client
    client.close()


@pytest.fixture
def hub(loopback: Hub) -> Iterator[Hub]:
    """The Hub, empty, in order."""
    loopback.clear()
    yield loopback
    assert loopback.broken == []


@pytest.fixture
def client(process: Client) -> Callable[..., object]:
    """Runs ``st-xling`` in the other process, logged in unless ``token`` says otherwise."""
    return lambda *words, token=TOKEN: process.st_xling(*words, HF_TOKEN=token)


@pytest.fixture
def my_encoder(copy_of: Callable[[str], Path]) -> Path:
    """An encoder with everything that can be published beside it, and things that are not."""
    folder = copy_of("encoder")
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    (folder / "results.json").write_text(json.dumps({**results, "evaluations": []}))  # whose pictures take time
    for picture in (folder / "pictures").iterdir():
        picture.unlink()
    shutil.copyfile(RECORDED / "encoder" / "mining.json", folder / "mining.json")
    Image.new("RGB", (8, 8), "teal").save(folder / "pictures" / "cosines.png")
    (folder / "training" / "checkpoint-1").mkdir()
    (folder / "training" / "checkpoint-1" / "optimizer.pt").write_bytes(b"not for others")
    (folder / "similarity_evaluation_results.csv").write_text("epoch,steps\n")
    return folder
