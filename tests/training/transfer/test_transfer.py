"""Transfer runs on small sets: rows, what is learned, what is saved, what a stopped run resumes; the F1 of runs."""

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import AutoModelForTokenClassification, Trainer

from st_xling.cli import main
from st_xling.data.transfer_sets import UPOS, Example
from st_xling.training import NotFiniteError, TrainingInterrupted
from st_xling.training.cross_lingual_transfer import (
    NO_LABEL,
    TASKS,
    Classifier,
    FineTuning,
    check_labels,
    load_rows,
    result_rows,
    run_f1,
    transfer,
)
from tests.conftest import PAIRS
from tests.training.children import stop_at
from tests.training.transfer.sets import write_encoder, write_set


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("sets")
    return {task: [f"{code}={path}" for code, path in write_set(folder / task, task).items()] for task in TASKS}


def run(
    task: str, encoder: str, files: list[str], out: Path, *, steps: int = 8, hold_out: float | None = 0.4, **more: Any
) -> dict[str, Any]:
    options = dataclasses.replace(TASKS[task].options, max_steps=steps, batch_size=16, learning_rate=3e-3)
    return transfer(task, encoder, files[:1], files, out, hold_out=hold_out, options=options, **more)


@pytest.mark.parametrize("task", TASKS)
def test_the_same_rows_are_held_out_of_every_language(task: str, tmp_path: Path) -> None:
    """Also where a row is skipped in one of them."""
    paths = write_set(tmp_path, task)
    if task == "pawsx":
        rows = paths["ar"].read_text(encoding="utf-8").splitlines()
        paths["ar"].write_text("\n".join(["NS\tNS\t0", *rows[1:]]) + "\n", encoding="utf-8")
    specs = [f"{language}={path}" for language, path in paths.items()]
    all_rows, _ = load_rows(TASKS[task], specs, specs)
    train, test = load_rows(TASKS[task], specs[:1], specs, 0.3)
    total = len(all_rows["en"])
    used = {
        name: {all_rows[name].index(row) + total - len(all_rows[name]) for row in rows} for name, rows in test.items()
    }
    assert used["en"] - {0} == used["ar"] - {0} and used["en"] == used["th"]
    assert train["en"] == [row for row in all_rows["en"] if row not in test["en"]]
    assert 0.3 * total <= len(test["en"]) < 0.3 * total + 3
    if task != "pos":  # rows that share a premise stay together
        premises = [{row.texts[0] for row in part["en"]} for part in (train, test)]
        assert premises[0].isdisjoint(premises[1])


@pytest.mark.parametrize(
    ("train", "test", "hold_out", "message"),
    [
        (["FILE"], ["en=FILE"], None, "--train xx=FILE"),
        (["en=FILE"], ["=FILE"], None, "--test xx=FILE"),
        (["en=FILE"], ["ar=FILE", "ar=FILE"], None, "--test takes each file .* once: got .* twice for ar"),
        (["en=FILE"], [], None, "--test needs a file"),
        (["en=FILE"], ["en=FILE"], 1.0, "above 0 and below 1: got 1.0"),
        (["en=FILE"], ["en=FILE", "th=LONGER"], 0.5, "'th': 77"),
        (["en=FILE"], ["en=FILE"], 0.999, "none are left of en"),
    ],
)
def test_bad_input(train: list[str], test: list[str], hold_out: float | None, message: str, tmp_path: Path) -> None:
    files = {"FILE": write_set(tmp_path, "pawsx")["en"], "LONGER": tmp_path / "longer.tsv"}
    files["LONGER"].write_text(files["FILE"].read_text(encoding="utf-8") + "a\tb\t1\n", encoding="utf-8")
    for name, path in files.items():
        train, test = ([spec.replace(name, str(path)) for spec in side] for side in (train, test))
    with pytest.raises(ValueError, match=message):
        load_rows(TASKS["pawsx"], train, test, hold_out)


def test_tags_are_learned_from_english(encoder: str, sets: dict[str, list[str]], tmp_path: Path) -> None:
    out = tmp_path / "run"
    report = run("pos", encoder, sets["pos"], out, steps=40)
    # Three tags, one for each place in the sentence: English is learned wholly, others at least by position.
    assert report["languages"]["en"]["accuracy"] > 0.95 and report["languages"]["en"]["f1"] > 0.95
    assert [*report["languages"]] == ["en", "ar", "th"]
    assert all(
        metrics["labels"] == 3 * metrics["rows"] and metrics["in_training"] == 0
        for metrics in report["languages"].values()
    )
    saved = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert saved == {"transfer": report}
    model = AutoModelForTokenClassification.from_pretrained(str(out))  # a stock model
    assert model.config.id2label[model.config.label2id["VERB"]] == "VERB"
    assert not list(out.rglob("*.tmp"))


def test_rows_averages_and_signature(encoder: str, sets: dict[str, list[str]], tmp_path: Path) -> None:
    report = run("xnli", encoder, sets["xnli"], tmp_path / "run", steps=2)
    values = [metrics["accuracy"] for metrics in report["languages"].values()]
    [column], rows = result_rows(report)
    assert column.name == "accuracy" and [row.label for row in rows[:3]] == ["en", "ar", "th"]
    means = [sum(values) / 3, sum(values[1:]) / 2]
    assert [row.values for row in rows] == [[pytest.approx(value)] for value in values + means]
    for part in ("transfer|task:xnli|train:en@", "|steps:2|batch:16|lr:0.003/linear|max_length:", "|hold_out:0.4/0|"):
        assert part in report["signature"]
    model = CrossEncoder(str(tmp_path / "run"), device="cpu")  # a stock model, whose outputs have names
    assert model.num_labels == 3 and model[0].auto_model.config.id2label[0] == "entailment"
    pairs = load_rows(TASKS["xnli"], sets["xnli"][:1], sets["xnli"], 0.4)[1]["ar"]
    logits = model.predict([tuple(row.texts) for row in pairs], activation_fn=torch.nn.Identity())
    labels = [TASKS["xnli"].labels[number] for number in logits.argmax(axis=1)]
    right = sum([label] == row.labels for label, row in zip(labels, pairs)) / len(labels)
    assert right == pytest.approx(report["languages"]["ar"]["accuracy"])


SENTENCES = [
    *(text.split() for pair in PAIRS for text in pair),
    ["猫", "睡觉", "。"],
    ["\u200b", "Él", "cree", "\u00ad"],  # a tokenizer may read such words as nothing
    ["unverzichtbarkeitsbescheinigungsverfahrensordnung", "x"],
    [],
]


def test_the_first_sub_word_has_the_tag_and_no_word_is_lost(encoder: str) -> None:
    classifier = Classifier.build(encoder, TASKS["pos"], max_length=9)
    tags = [[UPOS[(number + word) % 17] for word in range(len(words))] for number, words in enumerate(SENTENCES)]
    rows = classifier.encode(list(map(Example, SENTENCES, tags)), TASKS["pos"], "xx")
    tokenizer = classifier.tokenizer
    assert len(rows) > len(SENTENCES) and max(map(len, rows["input_ids"])) <= 9
    pieces = [zip(row["input_ids"], row["labels"]) for row in rows]
    labeled = [(token, label) for piece in pieces for token, label in piece if label != NO_LABEL]
    words = [tokenizer([word], is_split_into_words=True, add_special_tokens=False) for row in SENTENCES for word in row]
    first = [(word["input_ids"] or [tokenizer.unk_token_id])[0] for word in words]
    assert labeled == list(zip(first, (UPOS.index(tag) for row in tags for tag in row)))


def test_stopped_in_training_and_resumed(
    encoder: str, sets: dict[str, list[str]], monkeypatch: Any, tmp_path: Path
) -> None:
    """From the checkpoint before the last, which is incomplete; its seconds count."""
    task = "pos"
    undisturbed = tmp_path / "whole"
    torn = tmp_path / "torn"
    expected = run(task, encoder, sets[task], undisturbed)
    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted) as stop:
        stop_at(patch, Trainer, 6)
        run(task, encoder, sets[task], torn)
    last = stop.value.checkpoint
    assert last is not None and last.parent == torn / "training" and not (torn / "model.safetensors").exists()
    (last / "done.json").unlink()
    before = torn / "training" / f"checkpoint-{int(last.name.rpartition('-')[2]) - 1}"
    (before / "done.json").write_text(json.dumps({"seconds": 1000}))
    report = run(task, encoder, sets[task], torn, resume=True)
    assert report["languages"] == expected["languages"] and report["signature"] == expected["signature"]
    assert report["training"]["steps"] == 8 and 1000 < report["training"]["seconds"] < 1100
    resumed_weights, weights = (load_file(out / "model.safetensors") for out in (torn, undisturbed))
    torch.testing.assert_close(resumed_weights, weights, rtol=0, atol=0)
    again = run(task, encoder, sets[task], torn, resume=True)  # nothing is left to train
    assert again["languages"] == report["languages"] and again["training"]["steps"] == 8


@pytest.mark.parametrize("task", ["pawsx", "pos"])
def test_a_bare_xlm_roberta(task: str, sets: dict[str, list[str]], tmp_path: Path) -> None:
    """A transformer without modules of sentence-transformers, whose position ids begin after the padding's."""
    model = SentenceTransformer(write_encoder(tmp_path / "st", architecture="xlm-roberta"), device="cpu")
    model[0].auto_model.save_pretrained(str(tmp_path / "bare"))
    model.tokenizer.save_pretrained(str(tmp_path / "bare"))
    report = run(task, str(tmp_path / "bare"), sets[task], tmp_path / "run", steps=2, hold_out=None)
    reach = model[0].auto_model.config.max_position_embeddings - model.tokenizer.pad_token_id - 1
    assert f"|max_length:{reach}|" in report["signature"]
    assert all(0 < metrics["accuracy"] <= 1 for metrics in report["languages"].values())
    assert [metrics["in_training"] == metrics["rows"] for metrics in report["languages"].values()] == [
        True,
        False,
        False,
    ]


def test_f1_is_seqevals() -> None:
    """seqeval 0.0.12 (XTREME's), ``f1_score(gold, guess)`` of ``seqeval/metrics/sequence_labeling.py``."""
    draw = random.Random(0)
    short = [draw.choices(UPOS, k=draw.randint(1, 12)) for _ in range(40)]
    gold = [[tag for tag in row for _ in range(draw.randint(1, 3))] for row in short]
    guess = [[tag if draw.random() < 0.8 else draw.choice(UPOS) for tag in row] for row in gold]
    assert run_f1(gold, guess) == pytest.approx(0.6686656671664168, rel=1e-9)
    assert run_f1(gold, gold) == 1.0 and run_f1([["DET"]], [["X"]]) == 0.0


def test_runs_by_hand() -> None:
    """A tag that begins with S is a run of its own; a run ends with its sentence."""
    gold = [["DET", "SCONJ", "SCONJ", "NOUN", "NOUN", "SYM"], ["X"]]
    guess = [["DET", "SCONJ", "SCONJ", "NOUN", "VERB", "SYM"], ["X"]]
    # Gold: DET, SCONJ, SCONJ, NOUN NOUN, SYM, X. Of the guess, the run of nouns is cut into two wrong ones.
    assert run_f1(gold, guess) == pytest.approx(2 * 5 / (6 + 7), rel=1e-9)
    assert run_f1([["NOUN"], ["NOUN"]], [["NOUN"], ["VERB"]]) == 0.5


def test_fine_tuning_is_the_papers() -> None:
    """DAP, table 9; AMBER, appendix A.1."""
    xnli, pawsx, pos = (TASKS[name].options for name in ("xnli", "pawsx", "pos"))
    assert (xnli.epochs, xnli.batch_size, xnli.learning_rate, xnli.schedule) == (2, 256, 5e-5, "linear")
    assert (pawsx.epochs, pawsx.batch_size, pawsx.learning_rate, pawsx.schedule) == (5, 32, 2e-5, "constant")
    assert pos == dataclasses.replace(pawsx, epochs=10)


@pytest.mark.parametrize("task", ["pawsx", "pos"])
def test_files_of_a_language_are_joined(task: str, tmp_path: Path) -> None:
    """Each with its own sample, whose rows keep their order."""
    first, second = (write_set(tmp_path / name, task)["en"] for name in "ab")
    [alone] = load_rows(TASKS[task], [f"en={first}"], [f"en={first}"])[0].values()
    [joined] = load_rows(TASKS[task], [f"en={first}", f"en={second}?size=5&seed=1"], [f"en={first}"])[0].values()
    assert joined[: len(alone)] == alone
    positions = [alone.index(row) for row in joined[len(alone) :]]
    assert len(positions) == 5 and positions == sorted(set(positions))


def test_of_fused_forms_the_words_count(tmp_path: Path) -> None:
    """French treebanks have "aux", and below it "à" and "les", which have the tags."""
    lines = ["1\tva\t_\tVERB\t_\t_\t0\t_\t_\t_", "2-3\taux\t_\t_\t_\t_\t_\t_\t_\t_"]
    lines += ["2\tà\t_\tADP\t_\t_\t1\t_\t_\t_", "3\tles\t_\tDET\t_\t_\t1\t_\t_\t_", ""]
    path = tmp_path / "fr.conllu"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _, test = load_rows(TASKS["pos"], [f"fr={path}"], [f"fr={path}"])
    assert test["fr"] == [Example(["va", "à", "les"], ["VERB", "ADP", "DET"])]


def tagged(tags: str) -> list[Example]:
    """A sentence with these tags."""
    return [Example(["mot"] * len(tags.split()), tags.split())]


def classes(labels: str) -> list[Example]:
    """Pairs of these classes."""
    return [Example(["a", "b"], [label]) for label in labels.split()]


@pytest.mark.parametrize(
    ("task", "train", "test", "error"),
    [
        ("pos", tagged("NOUN"), {"fr": tagged("NOUN " * 199 + "INTJ")}, None),
        ("pos", tagged("NOUN"), {"fr": tagged("NOUN " * 19 + "X")}, r"which have NOUN: fr has X \(1\)"),
        ("xnli", classes("entailment neutral"), {"de": classes("neutral entailment")}, None),
        (
            "xnli",
            classes("entailment neutral"),
            {"de": classes("neutral contradiction contradiction"), "zh": classes("contradiction")},
            r"which have entailment, neutral: de has contradiction \(2\); zh has contradiction \(1\)\. Check",
        ),
    ],
)
def test_labels_that_are_never_trained(
    task: str, train: list[Example], test: dict[str, list[Example]], error: str | None, caplog: Any
) -> None:
    """A file of two classes was fine-tuned on for hours, and all rows of the third counted as wrong, without a word."""
    if error is not None:
        with pytest.raises(ValueError, match=error):
            check_labels(TASKS[task], {"en": train}, test)
        return
    check_labels(TASKS[task], {"en": train}, test)
    assert ("INTJ (1)" in caplog.text) == (task == "pos")


def test_labels_are_looked_at_before_the_model(encoder: str, sets: dict[str, list[str]], tmp_path: Path) -> None:
    _, _, path = sets["xnli"][0].partition("=")
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    two = tmp_path / "two.tsv"
    two.write_text("".join(f"{line}\n" for line in lines if not line.endswith("contradiction")), encoding="utf-8")
    with pytest.raises(ValueError, match="ar has contradiction"):
        transfer("xnli", "no/such-model", [f"en={two}"], sets["xnli"][1:], tmp_path / "run")
    with pytest.raises(ValueError, match="task must be one of xnli, pawsx, pos: got 'ner'"):
        transfer("ner", encoder, sets["pos"][:1], sets["pos"], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_files_are_read_before_the_model_is_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of another form was named after the encoder had been loaded, or downloaded."""
    (tmp_path / "m").mkdir()  # no model can be loaded from it
    (tmp_path / "p.tsv").write_text("Guten Morgen.\tGood morning.\n", encoding="utf-8")
    words = ["transfer", "xnli", str(tmp_path / "m"), "--out", str(tmp_path / "o")]
    assert main([*words, "--train", f"en={tmp_path / 'p.tsv'}", "--test", f"de={tmp_path / 'p.tsv'}"]) == 2
    assert "expected XNLI without faults, got" in capsys.readouterr().err


def test_a_model_that_predicts_one_label_alone_is_named(
    encoder: str, sets: dict[str, list[str]], tmp_path: Path, caplog: Any
) -> None:
    """Its accuracy is the share of that class; here all pairs but one that it is trained on are of it."""
    _, _, path = sets["pawsx"][0].partition("=")
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    ones, [zero, *_] = ([line for line in lines if line.endswith(f"\t{label}")] for label in "10")
    uneven = tmp_path / "uneven.tsv"
    uneven.write_text("".join(f"{line}\n" for line in [*ones, zero]), encoding="utf-8")
    options = dataclasses.replace(TASKS["pawsx"].options, max_steps=10, batch_size=16, learning_rate=3e-3)
    transfer("pawsx", encoder, [f"en={uneven}"], sets["pawsx"][1:2], tmp_path / "run", options=options)
    assert "ar: only the label 1 is predicted" in caplog.text


def test_the_encoder_is_the_start(encoder: str) -> None:
    """With a head of the seed."""
    start = SentenceTransformer(encoder, device="cpu")[0].auto_model.state_dict()
    for task in ("pawsx", "pos"):
        inner = Classifier.build(encoder, TASKS[task]).model.base_model.state_dict()
        common = [name for name in start if name in inner]
        assert len(common) > 10 and all(torch.equal(start[name], inner[name]) for name in common)
    heads = [Classifier.build(encoder, TASKS["pos"], seed=seed).model.classifier.weight for seed in (1, 1, 2)]
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])


def test_a_loss_that_is_no_number_stops(encoder: str, sets: dict[str, list[str]], tmp_path: Path) -> None:
    options = dataclasses.replace(TASKS["pos"].options, max_steps=4, batch_size=16, learning_rate=1e30)
    with pytest.raises(NotFiniteError, match="expected finite numbers by training step"):
        transfer("pos", encoder, sets["pos"][:1], sets["pos"], tmp_path / "run", options=options)
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.slow
def test_another_run_is_not_resumed_nor_replaced(
    encoder: str, sets: dict[str, list[str]], monkeypatch: Any, tmp_path: Path
) -> None:
    first = dataclasses.replace(TASKS["pawsx"].options, max_steps=1, batch_size=16, learning_rate=3e-3)
    second = dataclasses.replace(first, seed=1)

    def fine_tune(name: str, options: FineTuning, **more: Any) -> dict[str, Any]:
        files = sets["pawsx"]
        return transfer("pawsx", encoder, files[:1], files, tmp_path / name, hold_out=0.4, options=options, **more)

    fine_tune("run", first)
    with pytest.raises(ValueError, match=r"options\.seed differ"):
        fine_tune("run", second, resume=True)
    with pytest.raises(ValueError, match="it is complete"):
        fine_tune("run", first)
    replaced = fine_tune("run", second, overwrite=True)
    fresh = fine_tune("fresh", second)
    assert "|seed:1|" in replaced["signature"] and replaced["languages"] == fresh["languages"]
    with monkeypatch.context() as patch:
        stop_at(patch, Trainer, 1)  # a finished run makes no step
        assert fine_tune("run", second, resume=True)["languages"] == fresh["languages"]


@pytest.mark.slow
def test_stopped_among_the_languages(
    encoder: str, sets: dict[str, list[str]], monkeypatch: Any, tmp_path: Path
) -> None:
    """The trained model is kept: no step is made again."""
    predict = Trainer.predict
    calls = 0

    def stop_at_the_third(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return predict(*arguments, **options)

    with monkeypatch.context() as patch, pytest.raises(TrainingInterrupted):
        patch.setattr(Trainer, "predict", stop_at_the_third)
        run("pawsx", encoder, sets["pawsx"], tmp_path / "run", steps=2)
    with monkeypatch.context() as patch:
        stop_at(patch, Trainer, 1)
        report = run("pawsx", encoder, sets["pawsx"], tmp_path / "run", steps=2, resume=True)
    assert report["languages"] == run("pawsx", encoder, sets["pawsx"], tmp_path / "whole", steps=2)["languages"]
