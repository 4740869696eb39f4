"""Any encoder from a folder, and what is wrong when there is none."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from st_xling.models import load_encoder, tiny_encoder
from st_xling.models.view import model_options
from st_xling.training.run_folder import save_folder
from tests.models.test_tiny import ARCHITECTURES, TEXTS

LENGTH = 20


@pytest.fixture(scope="module", params=ARCHITECTURES)
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_encoder(
        TEXTS, vocabulary=200, layers=1, hidden_size=16, max_length=LENGTH, pooling="cls", architecture=request.param
    )


@pytest.fixture(scope="module")
def saved(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def bare(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The transformer without modules.json, as transformers saves it."""
    folder = tmp_path_factory.mktemp("bare") / "model"
    model[0].auto_model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def tokens(folder: Path, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token states and mask by transformers alone."""
    encoder, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(texts, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
    with torch.no_grad():
        return encoder(**batch).last_hidden_state, batch["attention_mask"]


def test_a_saved_model_comes_back(model: Any, saved: Path) -> None:
    loaded = load_encoder(str(saved))
    np.testing.assert_allclose(loaded.encode(TEXTS[:9]), model.encode(TEXTS[:9]), rtol=0, atol=1e-6)
    assert loaded.max_seq_length == LENGTH
    assert loaded.tokenizer.get_vocab() == model.tokenizer.get_vocab()


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", None])
def test_pooling_by_definition(pooling: Any, saved: Path, bare: Path) -> None:
    """Over a saved model (which has cls) and a bare transformer (where the default is mean)."""
    states, mask = tokens(bare, TEXTS[:5])
    rows = {
        "mean": torch.stack([row[keep.bool()].mean(0) for row, keep in zip(states, mask)]),
        "cls": states[:, 0],
        "max": torch.stack([row[keep.bool()].max(0).values for row, keep in zip(states, mask)]),
    }
    for folder, default in ((saved, "cls"), (bare, "mean")):
        embeddings = load_encoder(str(folder), pooling=pooling).encode(TEXTS[:5], convert_to_tensor=True)
        torch.testing.assert_close(embeddings.cpu(), rows[pooling or default], rtol=0, atol=1e-5)


def test_length(model: Any, saved: Path, bare: Path) -> None:
    for folder in (saved, bare):
        shorter = load_encoder(str(folder), max_length=5)
        assert shorter.preprocess(["ein sehr langer Satz " * 9])["input_ids"].shape == (1, 5)
    config = model[0].auto_model.config
    reach = config.max_position_embeddings - (config.pad_token_id + 1 if config.model_type == "xlm-roberta" else 0)
    longest = load_encoder(str(saved), max_length=reach)
    assert np.isfinite(longest.encode(["ein sehr langer Satz " * 50])).all()
    for length, limit in ((reach + 1, f"at most {reach}"), (2, "CLS, SEP and a word"), (-1, "CLS, SEP and a word")):
        with pytest.raises(ValueError, match=f"max_length .*{limit}.* got {length}"):
            load_encoder(str(saved), max_length=length)
    with pytest.raises(ValueError, match="pooling must be one of .* got 'last'"):
        load_encoder(str(saved), pooling="last")  # type: ignore[arg-type]


def test_nothing_to_load(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "modules.json").write_text("[{")
    for name, kind in (
        (tmp_path, "folder"),
        (tmp_path / "broken", "folder"),
        (tmp_path / "absent", "Hub id or folder"),
        ("nobody/no-such-encoder", "Hub id or folder"),
    ):
        with pytest.raises(ValueError, match=f"no encoder could be loaded from the {kind} '.*Check the name") as error:
            load_encoder(str(name))
        assert "\n" not in str(error.value)


class Code:
    """What a pickle can do when it is read."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("executed",)


@pytest.mark.parametrize(
    ("name", "content"),
    [("model.safetensors", b"\x90\x01\x00\x00\x00\x00\x00\x00{"), ("pytorch_model.bin", pickle.dumps(Code()))],
    ids=["weights cut short", "weights that run code"],
)
def test_damaged_folders(
    name: str, content: bytes, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    if name == "pytorch_model.bin":
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"no encoder could be loaded from the folder '{folder}': .+ Check the name"):
        load_encoder(str(folder))
    assert not (tmp_path / "executed").exists()


def test_tokens_without_embeddings(saved: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = AutoModel.from_pretrained(folder).get_input_embeddings().num_embeddings
    tokenizer.add_tokens([f"<{number}>" for number in range(rows)])
    tokenizer.save_pretrained(folder)
    with pytest.raises(ValueError, match=f"tokenizer has {len(tokenizer)} tokens, its embeddings {rows} rows"):
        load_encoder(str(folder))


def test_pooling_of_a_model_without_any(tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    static = StaticEmbedding(tiny_encoder(TEXTS, vocabulary=100, layers=1, hidden_size=16).tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[static], device="cpu").save_pretrained(str(tmp_path / "static"))
    with pytest.raises(ValueError, match="it has no pooling module to set to 'mean'"):
        load_encoder(str(tmp_path / "static"), pooling="mean")
    assert load_encoder(str(tmp_path / "static")).encode(["Hund"]).shape == (1, 8)


OWN_MODULE = """
from sentence_transformers.sentence_transformer.modules import Normalize
class Ours(Normalize):
    pass
"""


def test_code_of_its_own(saved: Path, tmp_path: Path) -> None:
    """A module of ST in the model's folder, and a transformer whose configuration names a class."""
    module, transformer = (shutil.copytree(saved, tmp_path / name) for name in ("module", "transformer"))
    modules = json.loads((module / "modules.json").read_text())
    modules.append({"idx": 2, "name": "2", "path": "", "type": "our_modules.Ours"})
    (module / "modules.json").write_text(json.dumps(modules))
    (module / "our_modules.py").write_text(OWN_MODULE)
    config = json.loads((transformer / "config.json").read_text())
    config |= {"model_type": "ours", "auto_map": {"AutoConfig": "ours.OurConfig"}}
    (transformer / "config.json").write_text(json.dumps(config))
    for folder, name in ((module, "our_modules.Ours"), (transformer, "ours.OurConfig")):
        with pytest.raises(ValueError, match=f"{name}.*all your rights.*--trust-remote-code"):
            load_encoder(str(folder))
    loaded = load_encoder(str(module), trust_remote_code=True)
    assert type(loaded[-1]).__name__ == "Ours" and model_options(loaded) == {"trust_remote_code": "yes"}
    save_folder(loaded, tmp_path / "again")  # as a training does, with the code
    assert model_options(load_encoder(str(tmp_path / "again"), trust_remote_code=True)) == model_options(loaded)
