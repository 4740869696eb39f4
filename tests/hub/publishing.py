"""Fixtures: small models of every kind with what a run leaves, and a Hub on this machine for the real client."""

import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pytest
from huggingface_hub import constants, set_client_factory
from huggingface_hub.utils._http import default_client_factory
from PIL import Image

from st_xling.cli import main
from tests.conftest import PAIRS
from tests.hub.hub_server import TOKEN, Hub, Loopback, httpx, serving
from tests.hub_cards.golden import RECORDED


@dataclass(frozen=True)
class Outcome:
    """What a command returned and printed."""

    status: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The one line that says what went wrong."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("st-xling: error: ")]
        assert self.status == 2 and len(lines) == 1, self.stderr
        return lines[0].removeprefix("st-xling: error: ")


def change(path: Path, **content: Any) -> None:
    """Set keys of a JSON file, which may not be there yet."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**before, **content}), encoding="utf-8")


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, make_model: Callable[..., Any]) -> Path:
    """Folders ``encoder``, ``separate`` and ``cross-encoder``: untrained, with the files of recorded runs, carded."""
    from st_xling.hub import write_card
    from st_xling.training.retriever import separate_encoders
    from tests.models.tiny_cross_encoder import tiny_cross_encoder

    folder = tmp_path_factory.mktemp("models")
    encoder = make_model()
    texts = list(itertools.chain.from_iterable(PAIRS))
    untrained = {
        "encoder": (encoder, "encoder"),
        "separate": (separate_encoders(encoder), "retriever"),
        "cross-encoder": (tiny_cross_encoder(texts), "reranker"),
    }
    for name, (model, kind) in untrained.items():
        model.save_pretrained(str(folder / name))
        (folder / name / "training").mkdir()
        for path in ("results.json", "training/run.json"):
            shutil.copyfile(RECORDED / kind / path, folder / name / path)
        (folder / name / "training" / "log.jsonl").write_text("{}\n", encoding="utf-8")
        write_card(folder / name)
    return folder


@pytest.fixture
def my_encoder(models: Path, tmp_path: Path) -> Path:
    """An encoder with everything that can be published beside it, and things that are not."""
    folder = Path(shutil.copytree(models / "encoder", tmp_path / "encoder"))
    change(folder / "results.json", evaluations=[])  # whose pictures take time
    for picture in (folder / "pictures").iterdir():
        picture.unlink()
    shutil.copyfile(RECORDED / "encoder" / "mining.json", folder / "mining.json")
    Image.new("RGB", (8, 8), "teal").save(folder / "pictures" / "cosines.png")
    (folder / "training" / "checkpoint-1").mkdir()
    (folder / "training" / "checkpoint-1" / "optimizer.pt").write_bytes(b"not for others")
    (folder / "similarity_evaluation_results.csv").write_text("epoch,steps\n")
    return folder


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """An empty Hub, whose user is logged in and has no other traces of a Hub."""
    hub = Hub()
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "home" / "token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    for module in (constants, datasets.config):
        monkeypatch.setattr(module, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # of its waiting before a retry
    with serving(hub) as port:
        set_client_factory(lambda: httpx.Client(transport=Loopback(port), follow_redirects=True, timeout=None))
        yield hub
        set_client_factory(default_client_factory)


@pytest.fixture
def client(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs ``st-xling`` with some words."""

    def run(*words: Any) -> Outcome:
        capsys.readouterr()
        return Outcome(main([str(word) for word in words]), *capsys.readouterr())

    return run
