"""Fixtures: a Hub on loopback, a process that talks to it, and an encoder to publish."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.hub.clients import Client
from tests.hub.hub_server import TOKEN, Hub, serve
from tests.hub_cards.golden import RECORDED


@pytest.fixture(scope="session")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with serve(tmp_path_factory.mktemp("hub") / "blobs") as hub:
        yield hub


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the client keeps its cache, and would keep a login."""
    return tmp_path_factory.mktemp("hf-home")


@pytest.fixture(scope="session")
def process(loopback: Hub, home: Path) -> Iterator[Client]:
    client = Client(loopback.url, home)
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
    Image.new("RGB", (8, 8), "teal").save(folder / "pictures" / "token_states.png")
    (folder / "training" / "checkpoint-1").mkdir()
    (folder / "training" / "checkpoint-1" / "optimizer.pt").write_bytes(b"not for others")
    (folder / "similarity_evaluation_results.csv").write_text("epoch,steps\n")
    return folder
