"""Models loaded as stock ones, and saved with their card, results, thresholds and pictures."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentence_transformers
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

from st_xling.hub import load, published_files, save, write_card
from tests.hub.clients import Client
from tests.hub.hub_server import Hub

pytest_plugins = ["tests.hub.publishing"]
Run = Callable[..., Any]

SIDECARS = {
    "README.md",
    "card.json",
    "mining.json",
    "pictures/token_states.png",
    "results.json",
    "training/log.jsonl",
    "training/run.json",
}
SENTENCES = ["Der Hund schläft.", "我买了三本旧书。"]


def paths(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def carded(my_encoder: Path) -> Path:
    write_card(my_encoder)
    return my_encoder


def test_saving_takes_everything_along(carded: Path, tmp_path: Path) -> None:
    (carded / "secret.txt").write_text("mine")
    model = load(carded, device="cpu")
    save(pickle.loads(pickle.dumps(copy.deepcopy(model))), tmp_path / "copy", source=carded)
    saved = paths(tmp_path / "copy")
    assert saved == {file.path for file in published_files(carded)} and saved >= SIDECARS
    for path in SIDECARS:
        assert (tmp_path / "copy" / path).read_bytes() == (carded / path).read_bytes(), path
    save(load(tmp_path / "copy", device="cpu"), tmp_path / "again", source=tmp_path / "copy")
    assert paths(tmp_path / "again") == saved


@pytest.mark.parametrize("kind", ["encoder", "separate", "cross-encoder"])
def test_what_is_saved_is_stock(kind: str, copy_of: Callable[[str], Path], tmp_path: Path) -> None:
    """File by file what sentence-transformers itself saves."""
    folder, stock = copy_of(kind), CrossEncoder if kind == "cross-encoder" else SentenceTransformer
    model = load(folder, device="cpu")
    assert type(model) is stock
    assert str(model) == str(stock(str(folder), device="cpu"))
    save(model, tmp_path / "ours", source=folder)
    stock(str(folder), device="cpu").save_pretrained(str(tmp_path / "theirs"))
    theirs = paths(tmp_path / "theirs")
    assert {"card.json", "results.json", "training/run.json"} <= paths(tmp_path / "ours") - theirs
    for path in theirs:
        assert (tmp_path / "ours" / path).read_bytes() == (tmp_path / "theirs" / path).read_bytes(), path
    texts = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "ours").rglob("*config*.json"))
    assert "companions" not in texts + (tmp_path / "ours" / "modules.json").read_text(encoding="utf-8")


def test_another_model_leaves_the_figures_behind(
    carded: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are true of the weights that were evaluated, and of no others."""
    changes: dict[str, Callable[[Any], Any]] = {
        "weights": _nudge,
        "modules": _normalize,
        "precision": lambda model: model.half(),
        "length": lambda model: setattr(model, "max_seq_length", 4),
        "prompt": lambda model: model.prompts.update(query="query: "),
    }
    for name, change in changes.items():
        model = load(carded, device="cpu")
        change(model)
        with caplog.at_level(logging.WARNING):
            save(model, tmp_path / name, source=carded)
        assert not (SIDECARS - {"README.md"}) & paths(tmp_path / name)
        assert "the model is another than that of" in caplog.text
        caplog.clear()


def _nudge(model: Any) -> None:
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] += 1e-6


def _normalize(model: Any) -> None:
    model.append(sentence_transformers.sentence_transformer.modules.Normalize())


def test_what_is_not_loaded(carded: Path) -> None:
    with pytest.raises(ValueError, match="revision 'main'"):
        load(carded, revision="main")
    with pytest.raises(ValueError, match="tester/nowhere"):
        load("tester/nowhere")


PULL = """
from st_xling.hub import load, save
model = load(words[0], revision=words[1] or None, device="cpu")
save(model, words[2], source=words[0], revision=words[1] or None)
"""


def test_pulled_with_everything_and_pushed_on(
    carded: Path, hub: Hub, client: Run, process: Client, tmp_path: Path
) -> None:
    assert client("push", carded, "tester/mine", "--revision", "tried").status == 0
    hub.put("tester/mine", {"pytorch_model.bin": b"not fetched"})
    pulled = process.python(PULL, "tester/mine", "tried", tmp_path / "pulled")
    assert pulled.status == 0, pulled.stderr
    files = hub.files("tester/mine", "tried")
    assert paths(tmp_path / "pulled") == files.keys() - {".gitattributes"}
    for path in SIDECARS:
        assert (tmp_path / "pulled" / path).read_bytes() == files[path], path
    vectors = [SentenceTransformer(str(at), device="cpu").encode(SENTENCES) for at in (carded, tmp_path / "pulled")]
    assert np.allclose(*vectors, atol=1e-6, rtol=0)
    assert client("push", tmp_path / "pulled", "tester/other").status == 0
    assert hub.files("tester/other").keys() == files.keys()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tester/absent", ""], "HubError: the Hub refused while fetching 'tester/absent' (404"),
        (
            ["tester/mine", "absent"],
            "HubError: the Hub refused while fetching 'tester/mine' (404 Invalid rev id: absent)",
        ),
        (["a/b/c", ""], "ValueError: expected a folder or a name on the Hub, user/name: 'a/b/c' is neither"),
    ],
)
def test_nothing_there(words: list[str], said: str, hub: Hub, process: Client, tmp_path: Path) -> None:
    hub.create("tester/mine", "model")
    done = process.python(PULL, *words, tmp_path / "out")
    assert done.status == 1 and said in done.stderr


LOCAL = """
import os
from pathlib import Path
from sentence_transformers import CrossEncoder
from st_xling.models.cross_encoder import cross_encoder
from st_xling.hub import load
from st_xling.models import load_encoder, tiny_encoder
from st_xling.models.view import cut_to_layer
from st_xling.training.retriever import separate_encoders
parent, name, out = words
os.chdir(parent)
encoder = load_encoder(name)
made = [encoder, cut_to_layer(encoder, 1), cross_encoder(name), separate_encoders(encoder), load(name)]
made += [tiny_encoder(["ab cd"] * 3, vocabulary=20, layers=1, hidden_size=8), load_encoder(f"{name}-bare")]
for number, model in enumerate(made):
    model.save_pretrained(f"{out}/{number}/model")
cross_encoder(f"{out}/2/model", head="keep").save_pretrained(f"{out}/again")
"""


def test_nobody_is_asked_about_a_folder(my_encoder: Path, hub: Hub, process: Client, tmp_path: Path) -> None:
    """For its card, ST asks for a model of the folder's name, with the token, when it loads and when it saves."""
    bare = my_encoder.with_name(f"{my_encoder.name}-bare")
    bare.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (bare / name).write_bytes((my_encoder / name).read_bytes())
    done = process.python(LOCAL, my_encoder.parent, my_encoder.name, tmp_path / "out")
    assert done.status == 0, done.stderr
    assert hub.paths == [] and len(list((tmp_path / "out").rglob("modules.json"))) == 8
