"""Replay: next to each pair, texts that keep the vectors that the model had for them before training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from st_xling.data.phrasebook import phrase_sentences
from st_xling.data.text_cells import row_keys
from st_xling.training import add_replay, load_kept_texts, load_recipe, replay, train
from st_xling.training.run_folder import RunFolder
from st_xling.training.trainer import CrossLingualTrainer
from tests.training.children import stop_at

OLD = phrase_sentences("de", size=40)


@pytest.fixture(scope="module")
def start(make_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = make_model(seed=3)
    model.prompts = {"query": "query: ", "document": "passage: "}
    model.save_pretrained(str(folder := tmp_path_factory.mktemp("models") / "start"))
    return folder


def recipe(**changes: Any) -> Any:
    steps = {"arguments.max_steps": 6, "arguments.per_device_train_batch_size": 8, "arguments.learning_rate": 2e-3}
    return load_recipe("labse", overrides={**steps, **{key.replace("__", "."): v for key, v in changes.items()}})


def distance_from_start(folder: Path, start: Path) -> float:
    before, after = (SentenceTransformer(str(path)).encode(OLD, normalize_embeddings=True) for path in (start, folder))
    return float(np.mean(1 - (before * after).sum(axis=1)))


def test_what_is_replayed_stays_where_it_was(
    start: Path, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For whoever adds a language: without replay, training moves the old ones. A second run encodes nothing."""
    train(recipe(), data, tmp_path / "without", model=str(start))
    made = recipe(data__replay__weight=50)
    asked = {"evaluation": {"later": ["Wer ist das?"]}, "on_leak": "drop"}
    kept_and_asked = [*OLD, "wer ist das"]
    train(made, data, tmp_path / "with", model=str(start), keep_like=kept_and_asked, cache=tmp_path / "cache", **asked)
    moved, kept = (distance_from_start(tmp_path / name, start) for name in ("without", "with"))
    assert kept < moved / 2
    # A text that the model will be evaluated on is dropped from those that are kept, too.
    leak = json.loads((tmp_path / "with" / "results.json").read_text(encoding="utf-8"))["leak"]
    assert leak["train"]["kept texts"] == {"rows": 41, "leaked": 1} and leak["dropped"]

    monkeypatch.setattr(replay, "encode", None)  # whatever would encode now, fails
    seen: list[dict[str, Any]] = []
    original = CrossLingualTrainer.compute_loss

    def compute_loss(self: Any, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(inputs)
        return original(self, model, inputs, *args, **kwargs)

    monkeypatch.setattr(CrossLingualTrainer, "compute_loss", compute_loss)
    result = train(made, data, tmp_path / "again", model=str(start), keep_like=OLD, cache=tmp_path / "cache")
    assert seen[0]["label"].shape == (8, 2, 16)
    assert {"translation_ranking", "replay"} <= result.history[0].keys()
    manifest = RunFolder(tmp_path / "again").read_manifest()
    assert manifest["recipe"]["losses"]["translation_ranking"]["columns"] == [0, 1]
    assert manifest["replay"] == {"texts": 40, "sha8": manifest["replay"]["sha8"], "per_pair": 2, "weight": 50.0}


def test_a_stopped_run_resumes_with_the_vectors_of_its_start(
    start: Path, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the cache is gone: never with those of its checkpoint, which has moved already."""
    made = recipe(arguments__eval_steps=2)
    train(made, data, tmp_path / "whole", model=str(start), keep_like=OLD, cache=tmp_path / "one")
    with monkeypatch.context() as patch:
        stop_at(patch, CrossLingualTrainer, 5)
        with pytest.raises(KeyboardInterrupt):
            train(made, data, tmp_path / "run", model=str(start), keep_like=OLD, cache=tmp_path / "two")
    with pytest.raises(ValueError, match=r"--resume must repeat .*replay"):
        train(made, data, tmp_path / "run", model=str(start), keep_like=OLD[1:], cache=tmp_path / "three", resume=True)
    train(made, data, tmp_path / "run", model=str(start), keep_like=OLD, cache=tmp_path / "three", resume=True)
    whole, resumed = (SentenceTransformer(str(tmp_path / name)).state_dict() for name in ("whole", "run"))
    torch.testing.assert_close(resumed, whole)


def test_each_text_is_read_with_its_prompt(make_model: Any, tmp_path: Path) -> None:
    """Queries and passages of a retriever have different ones; batches are the same with and without replay. A model
    that keeps some dimensions when it encodes is trained in all of them."""
    (tmp_path / "queries.txt").write_text("Wie alt ist das Buch?\nWo ist der Hund?\n", encoding="utf-8")
    specs = [f"de={tmp_path}/queries.txt?prompt_name=query", "de=phrasebook?size=3&seed=2"]
    texts = load_kept_texts(specs)
    assert {name: len(texts_of_prompt) for name, texts_of_prompt in texts.items()} == {"query": 2, "": 3}
    model = make_model(seed=3)
    model.prompts = {"query": "query: "}
    model.truncate_dim = 8
    pairs = Dataset.from_dict({"source": list("abcdefg"), "target": list("hijklmn")})
    replayed = add_replay(pairs, texts, model, per_pair=1, cache=tmp_path / "cache")
    with_prompt = [text for text in replayed["kept_text_1"] if text.startswith("query: ")]
    assert len(set(replayed["kept_text_1"])) == 5 and len(set(with_prompt)) == 2
    model.truncate_dim = None
    expected = model.encode(replayed["kept_text_1"][:], prompt="")
    np.testing.assert_allclose(replayed["label"][:][:, 0].numpy(), expected, atol=1e-5)
    np.testing.assert_array_equal(row_keys(replayed), row_keys(pairs))


def test_what_cannot_be_replayed(start: Path, data: Any, make_model: Any, tmp_path: Path) -> None:
    """Before anything slow, with the remedy."""
    for model, name, match in (("tiny", "labse", "random weights"), (str(start), "distill", "take one of the two")):
        with pytest.raises(ValueError, match=match):
            train(name, data, tmp_path / "run", model=model, keep_like=OLD)
    with pytest.raises(ValueError, match="got a stream"):
        streams = {name: dataset.to_iterable_dataset() for name, dataset in data.items()}
        train(recipe(), streams, tmp_path / "run", model=str(start), keep_like=OLD)
    model = make_model(seed=3)
    with pytest.raises(ValueError, match="no prompt 'passages'"):
        add_replay(data["vi-en"], {"passages": OLD}, model)
    with pytest.raises(ValueError, match="needs text"):
        add_replay(data["vi-en"], [], model)
    with pytest.raises(ValueError, match="labels already"):
        add_replay(data["vi-en"].add_column("label", [0] * 24), OLD, model)
    with pytest.raises(ValueError, match="prompt_name=query"):
        load_kept_texts(["de=phrasebook?prompt_name=a&prompt_name=b"])


def test_the_command_keeps_text(start: Path, tmp_path: Path) -> None:
    line = f"train labse --model {start} --dev none --data phrasebook:vi?size=30 --max-steps 2 --batch-size 8"
    line += (
        f" --keep-like de=phrasebook?size=20&prompt_name=query --cache {tmp_path / 'cache'} --out {tmp_path / 'run'}"
    )
    assert main([*line.split(), "--set", "data.replay.per_pair=1", "--set", "arguments.lora.rank=2"]) == 0
    manifest = RunFolder(tmp_path / "run").read_manifest()
    assert manifest["recipe"]["data"]["replay"] == {"per_pair": 1, "weight": 20.0}
    assert any(entry["option"] == "keep_like" for entry in manifest["sources"])
    assert any(path.suffix == ".arrow" for path in (tmp_path / "cache").iterdir())
