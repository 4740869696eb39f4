"""Transfer runs on small sets: what is learned, what is saved, and what a stopped run goes on with."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import AutoModelForTokenClassification, Trainer

import st_xling.training.transfer.run as run_module
from st_xling.training import NotFiniteError, TrainingInterrupted
from st_xling.training.transfer import TASKS, TransferData, load_transfer_data, transfer
from st_xling.training.transfer.classifiers import PairClassifier, WordTagger
from tests.training.transfer.sets import write_encoder, write_set


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TransferData]:
    folder = tmp_path_factory.mktemp("sets")
    found = {}
    for task in TASKS:
        paths = write_set(folder / task, task)
        specs = [f"{language}={path}" for language, path in paths.items()]
        found[task] = load_transfer_data(task, specs[:1], specs, hold_out=0.4)
    return found


def options(task: str, **changes: Any) -> Any:
    small = {"max_steps": 8, "save_steps": 2, "batch_size": 16, "learning_rate": 3e-3}
    return dataclasses.replace(TASKS[task].options, **{**small, **changes})


def test_tags_are_learned_from_english(encoder: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    out = tmp_path / "run"
    report = transfer(encoder, sets["pos"], out, options=options("pos", max_steps=40), command="st-xling transfer …")
    # Three tags, one for each place in the sentence: English is learned wholly, others at least by position.
    assert report.languages["en"]["accuracy"] > 0.95 and report.languages["en"]["f1"] > 0.95
    words = 3 * len(sets["pos"].test["en"])
    assert {language: figures["labels"] for language, figures in report.languages.items()} == dict.fromkeys(
        ("en", "ar", "th"), words
    )
    lines = (out / "predictions" / "th.tsv").read_text(encoding="utf-8").split("\n")
    right = [gold == guess for _, gold, guess in (line.split("\t") for line in lines if line)]
    assert sum(right) / len(right) == pytest.approx(report.languages["th"]["accuracy"])
    saved = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert saved == {"transfer": json.loads(json.dumps(report.as_dict()))}
    model = AutoModelForTokenClassification.from_pretrained(str(out))  # a stock model
    assert model.config.id2label[model.config.label2id["VERB"]] == "VERB"
    assert not list(out.rglob("*.tmp")) and not (out / ".saving").exists()


def test_table_average_and_signature(encoder: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    report = transfer(encoder, sets["xnli"], tmp_path / "run", options=options("xnli", max_steps=2))
    head, row = report.table().splitlines()
    assert head.split() == ["XNLI", "en", "ar", "th", "avg", "zero-shot"]
    values = [figures["accuracy"] for figures in report.languages.values()]
    means = [sum(values) / 3, sum(values[1:]) / 2]
    assert row.split() == ["accuracy", *(f"{100 * value:.1f}" for value in values + means)]
    assert report.signature.startswith("transfer|task:xnli|train:en@")
    assert "|steps:2|batch:16|lr:0.003/linear|max_length:" in report.signature
    assert "|languages:en,ar,th|hold_out:0.4/0|" in report.signature
    model = CrossEncoder(str(tmp_path / "run"), device="cpu")  # a stock model, whose outputs have names
    assert model.num_labels == 3 and model[0].auto_model.config.id2label[0] == "entailment"
    pairs = sets["xnli"].test["ar"]
    logits = model.predict(list(zip(pairs.first, pairs.second)), activation_fn=torch.nn.Identity())  # type: ignore[union-attr]
    labels = [TASKS["xnli"].labels[number] for number in logits.argmax(axis=1)]
    right = sum(a == b for a, b in zip(labels, pairs.labels)) / len(labels)  # type: ignore[union-attr]
    assert right == pytest.approx(report.languages["ar"]["accuracy"])


def test_the_encoder_is_the_start(encoder: str) -> None:
    start = SentenceTransformer(encoder, device="cpu")[0].auto_model.state_dict()
    for model in (
        PairClassifier.build(encoder, ("0", "1"), seed=1).model[0].auto_model,
        WordTagger.build(encoder, ("A", "B"), seed=1).model,
    ):
        inner = model.base_model.state_dict()
        common = [name for name in start if name in inner]
        assert len(common) > 10 and all(torch.equal(start[name], inner[name]) for name in common)
    heads = [WordTagger.build(encoder, ("A", "B"), seed=seed).model.classifier.weight for seed in (1, 1, 2)]
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    whole, seen = Trainer.training_step, 0

    def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == step:
            raise KeyboardInterrupt
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(Trainer, "training_step", training_step)


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "model.safetensors")


@pytest.mark.parametrize("task", ["pawsx", "pos"])
def test_stopped_in_training_and_resumed(
    task: str, encoder: str, sets: dict[str, TransferData], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = transfer(encoder, sets[task], tmp_path / "whole", options=options(task))
    with monkeypatch.context() as patch:
        stop_at(patch, 6)
        with pytest.raises(TrainingInterrupted) as stop:
            transfer(encoder, sets[task], tmp_path / "torn", options=options(task))
    assert stop.value.checkpoint == tmp_path / "torn" / "training" / "checkpoint-4"
    assert not (tmp_path / "torn" / "model.safetensors").exists()
    torn = transfer(encoder, sets[task], tmp_path / "torn", options=options(task), resume=True)
    assert torn.languages == whole.languages and torn.signature == whole.signature
    assert torn.training["steps"] == 8
    left, right = weights(tmp_path / "torn"), weights(tmp_path / "whole")
    assert left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("task", ["pawsx", "pos"])
def test_stopped_among_the_languages(
    task: str, encoder: str, sets: dict[str, TransferData], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out, judge = tmp_path / "run", run_module._evaluate

    def judged(model: Any, data: TransferData, language: str, folder: Path) -> Any:
        if language == "th":
            raise KeyboardInterrupt
        return judge(model, data, language, folder)

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "_evaluate", judged)
        with pytest.raises(TrainingInterrupted):
            transfer(encoder, sets[task], out, options=options(task, max_steps=2))
    assert sorted(path.name for path in (out / "predictions").iterdir()) == ["ar.tsv", "en.tsv"]
    before = (out / "predictions" / "ar.tsv").stat().st_mtime_ns
    with monkeypatch.context() as patch:
        stop_at(patch, 1)  # no step of training is made again
        report = transfer(encoder, sets[task], out, options=options(task, max_steps=2), resume=True)
    assert (out / "predictions" / "ar.tsv").stat().st_mtime_ns == before
    assert (
        report.languages == transfer(encoder, sets[task], tmp_path / "w", options=options(task, max_steps=2)).languages
    )


def test_killed_after_the_last_checkpoint(encoder: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    out = tmp_path / "run"
    transfer(encoder, sets["pos"], out, options=options("pos", max_steps=4))
    kept = weights(out)
    manifest = json.loads((out / "training" / "run.json").read_text(encoding="utf-8"))
    del manifest["trained"]
    (out / "training" / "run.json").write_text(json.dumps({**manifest, "finished": False}), encoding="utf-8")
    (out / "model.safetensors").unlink()
    report = transfer(encoder, sets["pos"], out, options=options("pos", max_steps=4), resume=True)
    assert report.training["steps"] == 4
    assert all(torch.equal(tensor, weights(out)[name]) for name, tensor in kept.items())


def test_a_damaged_checkpoint_is_passed_over(
    encoder: str, sets: dict[str, TransferData], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    transfer(encoder, sets["pos"], whole, options=options("pos"))
    with monkeypatch.context() as patch:
        stop_at(patch, 6)
        with pytest.raises(TrainingInterrupted):
            transfer(encoder, sets["pos"], torn, options=options("pos"))
    (torn / "training" / "checkpoint-4" / "optimizer.pt").unlink()  # the host would go on without it
    seconds = torn / "training" / "checkpoint-2" / "files.json"
    seconds.write_text(json.dumps({**json.loads(seconds.read_text()), "seconds": 1000}))
    report = transfer(encoder, sets["pos"], torn, options=options("pos"), resume=True)
    assert 1000 < report.training["seconds"] < 1100
    assert all(torch.equal(tensor, weights(whole)[name]) for name, tensor in weights(torn).items())


def test_another_run_is_not_resumed_nor_replaced(encoder: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    out = tmp_path / "run"
    few = options("pawsx", max_steps=1)
    transfer(encoder, sets["pawsx"], out, options=few)
    with pytest.raises(ValueError, match="options.seed differ"):
        transfer(encoder, sets["pawsx"], out, options=dataclasses.replace(few, seed=1), resume=True)
    with pytest.raises(ValueError, match="it is complete"):
        transfer(encoder, sets["pawsx"], out, options=few)
    replaced = transfer(encoder, sets["pawsx"], out, options=dataclasses.replace(few, seed=1), overwrite=True)
    assert "|seed:1|" in replaced.signature
    fresh = transfer(encoder, sets["pawsx"], tmp_path / "fresh", options=dataclasses.replace(few, seed=1))
    assert replaced.languages == fresh.languages  # not those of the earlier run's predictions
    (out / "predictions" / "ar.tsv").write_text("0\t1\t1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="must hold a prediction for each label"):
        transfer(encoder, sets["pawsx"], out, options=dataclasses.replace(few, seed=1), resume=True)


@pytest.mark.parametrize("task", ["pawsx", "pos"])
def test_a_loss_that_is_no_number_stops(task: str, encoder: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    with pytest.raises(NotFiniteError, match="expected finite numbers in training step"):
        transfer(encoder, sets[task], tmp_path / "run", options=options(task, learning_rate=1e30))
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize("task", ["pawsx", "pos"])
def test_a_bare_xlm_roberta(task: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    """A transformer without modules of sentence-transformers, whose position ids begin after the padding's."""
    model = SentenceTransformer(write_encoder(tmp_path / "st", architecture="xlm-roberta"), device="cpu")
    model[0].auto_model.save_pretrained(str(tmp_path / "bare"))
    model.tokenizer.save_pretrained(str(tmp_path / "bare"))
    report = transfer(str(tmp_path / "bare"), sets[task], tmp_path / "run", options=options(task, max_steps=2))
    reach = model[0].auto_model.config.max_position_embeddings - model.tokenizer.pad_token_id - 1
    assert f"|max_length:{reach}|" in report.signature
    assert all(0 < figures["accuracy"] <= 1 for figures in report.languages.values())
