"""Any encoder from a folder, and what is wrong when there is none."""

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from st_xling.models import load_encoder, tiny_encoder
from st_xling.models.view import model_options
from st_xling.training.run_folder import save_folder
from tests.models.slim_encoders import encoder
from tests.models.test_tiny import ARCHITECTURES, SHAPE, TEXTS


@pytest.fixture(scope="module", params=ARCHITECTURES)
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_encoder(TEXTS, **SHAPE, max_length=20, pooling="cls", architecture=request.param)


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


def test_pooling_and_length(model: Any, saved: Path, bare: Path) -> None:
    for folder, pooling in ((saved, "cls"), (bare, "mean")):  # a bare transformer's default
        shorter = load_encoder(str(folder), max_length=5)
        assert shorter[1].pooling_mode == pooling and load_encoder(str(folder), pooling="max")[1].pooling_mode == "max"
        assert shorter.preprocess(["ein sehr langer Satz " * 9])["input_ids"].shape == (1, 5)
    config = model[0].auto_model.config
    reach = config.max_position_embeddings - (config.pad_token_id + 1 if config.model_type == "xlm-roberta" else 0)
    longest = load_encoder(str(saved), max_length=reach)
    assert np.isfinite(longest.encode(["ein sehr langer Satz " * 50])).all()
    with pytest.raises(ValueError, match=f"max_length must be at most {reach}.* got {reach + 1}"):
        load_encoder(str(saved), max_length=reach + 1)


def test_nothing_to_load(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "modules.json").write_text("[{")
    absent = "Hub id or folder"
    for name, kind in (("", "folder"), ("broken", "folder"), ("absent", absent), ("nobody/no-such-encoder", absent)):
        name = name if "/" in name else str(tmp_path / name)
        with pytest.raises(ValueError, match=f"no encoder could be loaded from the {kind} '.*Check the name") as error:
            load_encoder(name)
        assert "\n" not in str(error.value)


def test_code_of_its_own(saved: Path, tmp_path: Path) -> None:
    """A module of ST in the model's folder, and a transformer whose configuration names a class."""
    module, transformer = (shutil.copytree(saved, tmp_path / name) for name in ("module", "transformer"))
    modules = json.loads((module / "modules.json").read_text())
    modules.append({"idx": 2, "name": "2", "path": "", "type": "our_modules.Ours"})
    (module / "modules.json").write_text(json.dumps(modules))
    code = "from sentence_transformers.base.modules import Normalize\nclass Ours(Normalize): ...\n"
    (module / "our_modules.py").write_text(code)
    config = json.loads((transformer / "config.json").read_text())
    config |= {"model_type": "ours", "auto_map": {"AutoConfig": "ours.OurConfig"}}
    (transformer / "config.json").write_text(json.dumps(config))
    for folder in (module, transformer):
        with pytest.raises(ValueError, match="all your rights.*--trust-remote-code"):
            load_encoder(str(folder))
    loaded = load_encoder(str(module), trust_remote_code=True)
    assert type(loaded[-1]).__name__ == "Ours" and model_options(loaded) == {"trust_remote_code": "yes"}
    save_folder(loaded, tmp_path / "again")  # as a training does, with the code
    assert model_options(load_encoder(str(tmp_path / "again"), trust_remote_code=True)) == model_options(loaded)


class MakesFolder:
    """Unpickled, it makes a folder: as code in a checkpoint would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"\x90\x01\x00\x00\x00\x00\x00\x00{"),
        ("pytorch_model.bin", pickle.dumps(MakesFolder(), protocol=2)),
    ],
    ids=["weights cut short", "weights that run code"],
)
def test_damaged_weights(
    name: str, content: bytes, saved_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that names the folder; a checkpoint that would run code does not."""
    monkeypatch.chdir(tmp_path)
    folder = Path(shutil.copytree(saved_encoder, tmp_path / "model"))
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"the folder '{folder}': .+ Check the name") as error:
        load_encoder(str(folder))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "executed").exists()


def test_text_read_in_lower_case_stays_so(tmp_path: Path) -> None:
    """Sentence-transformers reads ``do_lower_case`` and does not save it: what was trained or slimmed from such a model
    read capitals, of which it knew none."""
    start = tmp_path / "start"
    copy = tmp_path / "copy"
    encoder("wordpiece").save_pretrained(str(start))
    settings = json.loads((start / "sentence_bert_config.json").read_text())
    (start / "sentence_bert_config.json").write_text(json.dumps({**settings, "do_lower_case": True}))
    loaded = load_encoder(str(start))
    loaded.save_pretrained(str(copy))
    text = "Der Hund SCHLÄFT"
    again = SentenceTransformer(str(copy), device="cpu")
    assert again.tokenizer.tokenize(text) == loaded.tokenizer.tokenize(text) == loaded.tokenizer.tokenize(text.lower())
    assert again.tokenizer.unk_token not in again.tokenizer.tokenize(text)
