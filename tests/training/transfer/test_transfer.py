"""Transfer runs on small sets: what is learned, what is saved, and what a stopped run resumes."""

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

from st_xling.data.transfer_sets import UPOS, TaggedSentences
from st_xling.training import TrainingInterrupted
from st_xling.training.transfer import NO_LABEL, TASKS, Classifier, TransferData, load_transfer_data, transfer
from tests.conftest import PAIRS
from tests.training.children import stop_at
from tests.training.transfer.sets import write_encoder, write_set


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TransferData]:
    folder, loaded = tmp_path_factory.mktemp("sets"), {}
    for task in ("xnli", "pawsx", "pos"):
        specs = [f"{language}={path}" for language, path in write_set(folder / task, task).items()]
        loaded[task] = load_transfer_data(task, specs[:1], specs, hold_out=0.4)
    return loaded


def options(task: str, **changes: Any) -> Any:
    small = {"max_steps": 8, "save_steps": 2, "batch_size": 16, "learning_rate": 3e-3}
    return dataclasses.replace(TASKS[task].options, **{**small, **changes})


def test_tags_are_learned_from_english(encoder: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    out = tmp_path / "run"
    report = transfer(encoder, sets["pos"], out, options=options("pos", max_steps=40), command="st-xling transfer …")
    # Three tags, one for each place in the sentence: English is learned wholly, others at least by position.
    assert report.languages["en"]["accuracy"] > 0.95 and report.languages["en"]["f1"] > 0.95
    words = 3 * len(sets["pos"].test["en"])
    assert {code: found["labels"] for code, found in report.languages.items()} == dict.fromkeys(
        ("en", "ar", "th"), words
    )
    lines = (out / "predictions" / "th.tsv").read_text(encoding="utf-8").split("\n")
    right = [gold == guess for _, gold, guess in (line.split("\t") for line in lines if line)]
    assert sum(right) / len(right) == pytest.approx(report.languages["th"]["accuracy"])
    saved = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert saved == {"transfer": json.loads(json.dumps(report.as_dict()))}
    model = AutoModelForTokenClassification.from_pretrained(str(out))  # a stock model
    assert model.config.id2label[model.config.label2id["VERB"]] == "VERB"
    assert not list(out.rglob("*.tmp"))


def test_table_average_and_signature(encoder: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    report = transfer(encoder, sets["xnli"], tmp_path / "run", options=options("xnli", max_steps=2))
    head, row = report.table().splitlines()
    assert head.split() == ["XNLI", "en", "ar", "th", "avg", "zero-shot"]
    values = [metrics["accuracy"] for metrics in report.languages.values()]
    means = [sum(values) / 3, sum(values[1:]) / 2]
    assert row.split() == ["accuracy", *(f"{100 * value:.1f}" for value in values + means)]
    for part in ("transfer|task:xnli|train:en@", "|steps:2|batch:16|lr:0.003/linear|max_length:", "|hold_out:0.4/0|"):
        assert part in report.signature
    model = CrossEncoder(str(tmp_path / "run"), device="cpu")  # a stock model, whose outputs have names
    assert model.num_labels == 3 and model[0].auto_model.config.id2label[0] == "entailment"
    pairs: Any = sets["xnli"].test["ar"]
    logits = model.predict(list(zip(pairs.first, pairs.second)), activation_fn=torch.nn.Identity())
    labels = [TASKS["xnli"].labels[number] for number in logits.argmax(axis=1)]
    right = sum(a == b for a, b in zip(labels, pairs.labels)) / len(labels)
    assert right == pytest.approx(report.languages["ar"]["accuracy"])


def test_the_encoder_is_the_start(encoder: str) -> None:
    start = SentenceTransformer(encoder, device="cpu")[0].auto_model.state_dict()
    for words in (False, True):
        inner = Classifier.build(encoder, "01", words=words).model.base_model.state_dict()
        common = [name for name in start if name in inner]
        assert len(common) > 10 and all(torch.equal(start[name], inner[name]) for name in common)
    built = [Classifier.build(encoder, "AB", words=True, seed=seed) for seed in (1, 1, 2)]
    heads = [classifier.model.classifier.weight for classifier in built]
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])


SENTENCES = [
    *(text.split() for pair in PAIRS for text in pair),
    ["猫", "睡觉", "。"],
    ["\u200b", "Él", "cree", "\u00ad"],  # a tokenizer may read such words as nothing
    ["unverzichtbarkeitsbescheinigungsverfahrensordnung", "x"],
    [],
]


def test_the_first_sub_word_has_the_tag_and_no_word_is_lost(encoder: str) -> None:
    classifier = Classifier.build(encoder, UPOS, words=True, max_length=9)
    tags = [[UPOS[(number + word) % 17] for word in range(len(words))] for number, words in enumerate(SENTENCES)]
    rows = classifier.encode(TaggedSentences(SENTENCES, tags), UPOS, "xx")
    tokenizer = classifier.tokenizer
    assert len(rows) > len(SENTENCES) and max(map(len, rows["input_ids"])) <= 9
    pieces = [zip(row["input_ids"], row["labels"]) for row in rows]
    found = [(token, label) for piece in pieces for token, label in piece if label != NO_LABEL]
    words = [tokenizer([word], is_split_into_words=True, add_special_tokens=False) for row in SENTENCES for word in row]
    first = [(word["input_ids"] or [tokenizer.unk_token_id])[0] for word in words]
    assert found == list(zip(first, (UPOS.index(tag) for row in tags for tag in row)))


def test_stopped_in_training_and_resumed(
    encoder: str, sets: dict[str, TransferData], monkeypatch: Any, tmp_path: Path
) -> None:
    """From the checkpoint before the last, which is incomplete; its seconds count."""
    task, whole, torn = "pos", tmp_path / "whole", tmp_path / "torn"
    expected = transfer(encoder, sets[task], whole, options=options(task))
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted) as stop:
        stop_at(patch, Trainer, 6)
        transfer(encoder, sets[task], torn, options=options(task))
    assert stop.value.checkpoint == torn / "training" / "checkpoint-4" and not (torn / "model.safetensors").exists()
    (torn / "training" / "checkpoint-4" / "done.json").unlink()
    (torn / "training" / "checkpoint-2" / "done.json").write_text(json.dumps({"seconds": 1000}))
    report = transfer(encoder, sets[task], torn, options=options(task), resume=True)
    assert report.languages == expected.languages and report.signature == expected.signature
    assert report.training["steps"] == 8 and 1000 < report.training["seconds"] < 1100
    left, right = (load_file(out / "model.safetensors") for out in (torn, whole))
    torch.testing.assert_close(left, right, rtol=0, atol=0)
    again = transfer(encoder, sets[task], torn, options=options(task), resume=True)  # nothing is left to train
    assert again.languages == report.languages and again.training["steps"] == 8


def test_the_rate_rises_to_its_peak(encoder: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    """Half of 8 steps: 0, 1/4, 2/4, 3/4 of the peak, where it stays."""
    chosen = options("pawsx", save_steps=1, learning_rate=1e-3, warmup=0.5)
    report = transfer(encoder, sets["pawsx"], tmp_path, options=chosen)
    log = (tmp_path / "training" / "log.jsonl").read_text(encoding="utf-8")
    rates = [entry["learning_rate"] for entry in map(json.loads, log.splitlines()) if "loss" in entry]
    assert rates == pytest.approx([0.0, 2.5e-4, 5e-4, 7.5e-4, *[1e-3] * 4])
    assert "|lr:0.001/constant|warmup:0.5|" in report.signature


@pytest.mark.parametrize("task", ["pawsx", "pos"])
def test_a_bare_xlm_roberta(task: str, sets: dict[str, TransferData], tmp_path: Path) -> None:
    """A transformer without modules of sentence-transformers, whose position ids begin after the padding's."""
    model = SentenceTransformer(write_encoder(tmp_path / "st", architecture="xlm-roberta"), device="cpu")
    model[0].auto_model.save_pretrained(str(tmp_path / "bare"))
    model.tokenizer.save_pretrained(str(tmp_path / "bare"))
    report = transfer(str(tmp_path / "bare"), sets[task], tmp_path / "run", options=options(task, max_steps=2))
    reach = model[0].auto_model.config.max_position_embeddings - model.tokenizer.pad_token_id - 1
    assert f"|max_length:{reach}|" in report.signature
    assert all(0 < metrics["accuracy"] <= 1 for metrics in report.languages.values())
