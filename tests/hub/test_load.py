"""Models that keep their card, results, thresholds and pictures, by sentence-transformers' own saving and pushing."""

from __future__ import annotations

import copy
import json
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

from st_xling.data.phrasebook import parallel_phrases
from st_xling.hub import CardOptions, load, published_files, write_card
from st_xling.models.sidecar import keep_sidecar_files
from st_xling.training import load_recipe, train
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
    pickle.loads(pickle.dumps(copy.deepcopy(model))).save_pretrained(str(tmp_path / "copy"))
    saved = paths(tmp_path / "copy")
    assert saved == {file.path for file in published_files(carded)} and saved >= SIDECARS
    for path in SIDECARS:
        assert (tmp_path / "copy" / path).read_bytes() == (carded / path).read_bytes(), path
    again = load(tmp_path / "copy", device="cpu")
    again.save_pretrained(str(tmp_path / "again"), create_model_card=False)
    assert paths(tmp_path / "again") == saved


def test_a_copy_by_sentence_transformers_alone_shows_the_pictures(carded: Path, tmp_path: Path) -> None:
    """ST writes the text of the card, and no picture: of a model that is on the Hub, those there are shown."""
    write_card(carded, options=CardOptions(repo_id="tester/mine"))
    SentenceTransformer(str(carded), device="cpu").save_pretrained(str(tmp_path / "copy"))
    card = (tmp_path / "copy" / "README.md").read_text(encoding="utf-8")
    assert card == (carded / "README.md").read_text(encoding="utf-8") and not (tmp_path / "copy" / "pictures").exists()
    assert "](https://huggingface.co/tester/mine/resolve/main/pictures/token_states.png)" in card
    load(carded, device="cpu").save_pretrained(str(tmp_path / "whole"))
    assert (tmp_path / "whole" / "pictures" / "token_states.png").is_file()


@pytest.mark.parametrize("kind", ["encoder", "separate", "cross-encoder"])
def test_what_is_saved_is_stock(kind: str, copy_of: Callable[[str], Path], tmp_path: Path) -> None:
    """File by file what sentence-transformers itself saves; the class is its own in all but the sidecar files."""
    folder, stock = copy_of(kind), CrossEncoder if kind == "cross-encoder" else SentenceTransformer
    model = load(folder, device="cpu")
    assert isinstance(model, stock) and type(model).__name__ == stock.__name__
    assert str(model) == str(stock(str(folder), device="cpu"))
    model.save_pretrained(str(tmp_path / "ours"))
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
            model.save_pretrained(str(tmp_path / name))
        assert not (SIDECARS - {"README.md"}) & paths(tmp_path / name)
        assert "the model is another than that of" in caplog.text
        caplog.clear()


def _nudge(model: Any) -> None:
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] += 1e-6


def _normalize(model: Any) -> None:
    model.append(sentence_transformers.sentence_transformer.modules.Normalize())


def test_saving_over_itself_loses_nothing(carded: Path) -> None:
    before = {path: (carded / path).read_bytes() for path in paths(carded)}
    load(carded, device="cpu").save_pretrained(str(carded))
    after = {path: (carded / path).read_bytes() for path in paths(carded)}
    assert after.keys() == before.keys()
    # ST notes how the tokenizer was used last.
    assert {path for path in after if after[path] != before[path]} <= {"tokenizer_config.json"}


def test_what_training_returns(tmp_path: Path) -> None:
    """The very model, once it has a card; until then it is sentence-transformers' own."""
    recipe = load_recipe(
        "tr", tiny=True, overrides={"training.max_steps": 1, "training.per_device_train_batch_size": 8}
    )
    tiny = {"hidden_size": 16, "layers": 1, "vocabulary": 200}
    result = train(recipe, {"de": parallel_phrases("de", "en", size=24)}, tmp_path / "run", model="tiny", tiny=tiny)
    result.model.save_pretrained(str(tmp_path / "before"))
    assert "results.json" not in paths(tmp_path / "before")
    write_card(result.folder)
    result.model.save_pretrained(str(tmp_path / "after"))
    assert {"results.json", "card.json", "training/run.json"} <= paths(tmp_path / "after")
    assert not any("checkpoint" in path for path in paths(tmp_path / "after"))
    assert (tmp_path / "after" / "README.md").read_bytes() == (result.folder / "README.md").read_bytes()


def test_what_is_not_loaded(carded: Path) -> None:
    with pytest.raises(ValueError, match="revision 'main'"):
        load(carded, revision="main")
    with pytest.raises(ValueError, match="tester/nowhere"):
        load("tester/nowhere")


def test_a_model_of_another_class_is_left_alone(carded: Path) -> None:
    class Mine(SentenceTransformer):
        pass

    model = Mine(str(carded), device="cpu")
    assert type(keep_sidecar_files(model, carded)) is Mine


PUSH = """
from st_xling.hub import load
model = load(words[0], device="cpu")
print(model.push_to_hub(words[1], **({"exist_ok": True} if len(words) > 2 else {})))
"""


def test_push_to_hub(carded: Path, hub: Hub, process: Client) -> None:
    """One commit with everything, whether or not a card is there already."""
    pushed = process.python(PUSH, carded, "tester/mine")
    assert pushed.status == 0, pushed.stderr
    repo = hub.model("tester/mine")
    assert len(repo.commits) == 2 and repo.commits[repo.refs["main"]].title == "Add new SentenceTransformer model"
    files = hub.files("tester/mine")
    assert files.keys() - {".gitattributes"} == {file.path for file in published_files(carded)}
    for path in (SIDECARS | {"model.safetensors"}) - {"README.md"}:
        assert files[path] == (carded / path).read_bytes(), path
    named = (carded / "README.md").read_bytes().replace(b"sentence_transformers_model_id", b"tester/mine")
    assert files["README.md"] == named  # the lines of the card run, as of cards that ST writes

    results = json.loads((carded / "results.json").read_text())
    (carded / "results.json").write_text(json.dumps({**results, "note": 1}))
    (carded / "README.md").write_text((carded / "README.md").read_text() + "\nAnd more.\n")
    assert process.python(PUSH, carded, "tester/mine", "again").status == 0
    assert len(repo.commits) == 3
    assert hub.files("tester/mine")["README.md"].endswith(b"And more.\n")
    assert b'"note": 1' in hub.files("tester/mine")["results.json"]


PULL = """
import sys
from st_xling.hub import load
model = load(words[0], revision=words[1] or None, device="cpu")
model.save_pretrained(words[2])
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
from st_xling.models.layers import cut_to_layer
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
