"""Specs, rows held out alike in every language, label sets."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from st_xling.data.classified_pairs import ClassifiedPairs
from st_xling.data.tagged_words import TaggedSentences
from st_xling.training.transfer import LIKE, TASKS, fine_tuning, load_transfer_data
from st_xling.training.transfer.data import check_labels
from tests.training.transfer.sets import write_set


def specs(paths: dict[str, Path]) -> list[str]:
    return [f"{language}={path}" for language, path in paths.items()]


@pytest.mark.parametrize("task", ["xnli", "pawsx", "pos", "panx"])
def test_the_same_rows_are_held_out_of_every_language(task: str, tmp_path: Path) -> None:
    paths = write_set(tmp_path, task)
    data = load_transfer_data(task, [f"en={paths['en']}"], specs(paths), hold_out=0.3, hold_out_seed=1)
    assert data.test["en"].rows == data.test["ar"].rows == data.test["th"].rows
    total = data.test["en"].total
    assert sorted([*data.train["en"].rows, *data.test["en"].rows]) == list(range(total))
    assert 0.3 * total <= len(data.test["en"]) < 0.3 * total + 3
    if isinstance(data.train["en"], ClassifiedPairs):  # rows that share a premise stay together
        assert set(data.train["en"].first).isdisjoint(data.test["en"].first)
    other = load_transfer_data(task, [f"en={paths['en']}"], specs(paths), hold_out=0.3, hold_out_seed=2)
    assert other.test["en"].rows != data.test["en"].rows
    assert data.in_training == {"en": 0, "ar": 0, "th": 0}
    whole = load_transfer_data(task, [f"en={paths['en']}"], specs(paths))
    assert whole.in_training == {"en": total, "ar": 0, "th": 0}


def test_a_row_left_out_in_one_language_shifts_no_other(tmp_path: Path) -> None:
    paths = write_set(tmp_path, "pawsx")
    lines = paths["ar"].read_text(encoding="utf-8").splitlines()
    paths["ar"].write_text("\n".join(["NS\tNS\t0", *lines[1:]]) + "\n", encoding="utf-8")
    data = load_transfer_data("pawsx", [f"en={paths['en']}"], specs(paths), hold_out=0.9, hold_out_seed=3)
    assert 0 in data.test["en"].rows
    assert data.test["ar"].rows == [row for row in data.test["en"].rows if row != 0]


def test_files_that_are_not_parallel(tmp_path: Path) -> None:
    paths = write_set(tmp_path, "pos")
    with paths["th"].open("a", encoding="utf-8") as file:
        file.write("1\tแมว\t_\tNOUN\t_\t_\t0\t_\t_\t_\n")
    with pytest.raises(ValueError, match="en 38, ar 38, th 39 rows"):
        load_transfer_data("pos", [f"en={paths['en']}"], specs(paths), hold_out=0.5)


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (["FILE"], ["en=FILE"], "--train xx=FILE"),
        (["en=FILE"], ["=FILE"], "--test xx=FILE"),
        (["en=FILE"], ["ar=FILE", "ar=FILE"], "--test takes each file of a language once: got .* twice for ar"),
        (["en=FILE"], [], "--test needs a file"),
    ],
)
def test_bad_specs(train: list[str], test: list[str], message: str, tmp_path: Path) -> None:
    path = str(write_set(tmp_path, "pawsx")["en"])
    with pytest.raises(ValueError, match=message):
        load_transfer_data("pawsx", *([spec.replace("FILE", path) for spec in side] for side in (train, test)))
    with pytest.raises(ValueError, match="above 0 and below 1"):
        load_transfer_data("pawsx", [f"en={path}"], [f"en={path}"], hold_out=1.0)
    with pytest.raises(ValueError, match="xnli, pawsx, pos, panx: got 'ner'"):
        load_transfer_data("ner", [f"en={path}"], [f"en={path}"])


def pairs(labels: str) -> ClassifiedPairs:
    names = labels.split()
    return ClassifiedPairs(["a"] * len(names), ["b"] * len(names), names, list(range(len(names))), len(names))


def test_classes_must_be_the_same_in_every_language() -> None:
    task, train = TASKS["xnli"], [pairs("entailment neutral")]
    assert check_labels(task, train, {"de": pairs("neutral entailment")}) == {}
    with pytest.raises(ValueError) as error:
        check_labels(task, train, {"de": pairs("entailment contradiction contradiction"), "zh": pairs("neutral")})
    assert "entailment, neutral: de has contradiction (2), which is never trained, no neutral" in str(error.value)
    assert "zh has no entailment" in str(error.value)


def test_a_rare_tag_may_be_missing_from_training() -> None:
    task, train = TASKS["pos"], [TaggedSentences([["a"]], [["NOUN"]], [0], 1)]
    rare = TaggedSentences([["a"] * 200], [["NOUN"] * 199 + ["INTJ"]], [0], 1)
    assert check_labels(task, train, {"fr": rare}) == {"fr": {"INTJ": 1}}
    other = TaggedSentences([["a"] * 20], [["NOUN"] * 19 + ["X"]], [0], 1)
    with pytest.raises(ValueError, match=r"fr has X \(1\), which is never trained"):
        check_labels(task, train, {"fr": other})


@pytest.mark.parametrize("task", ["pawsx", "pos"])
def test_files_of_a_language_are_joined(task: str, tmp_path: Path) -> None:
    one, two = (write_set(tmp_path / name, task)["en"] for name in "ab")
    single = load_transfer_data(task, [f"en={one}"], [f"en={one}"]).train["en"]
    joined = load_transfer_data(task, [f"en={one}", f"en={two}?size=5&seed=1"], [f"en={one}"]).train["en"]
    assert len(joined) == len(single) + 5 and joined.total == 2 * single.total
    assert joined.select(range(len(single))).rows == single.rows
    assert all(row >= single.total for row in joined.rows[len(single) :]) and len(set(joined.rows)) == len(joined)
    texts = list(zip(joined.first, joined.second)) if isinstance(joined, ClassifiedPairs) else joined.words
    known = list(zip(single.first, single.second)) if isinstance(single, ClassifiedPairs) else single.words
    places = [row - single.total for row in joined.rows[len(single) :]]
    assert texts[len(single) :] == [known[place] for place in places] and places == sorted(places)


def test_fused_forms_are_for_treebanks(tmp_path: Path) -> None:
    lines = ["2-3\taux\t_\t_\t_\t_\t_\t_\t_\t_", "2\tà\t_\tADP\t_\t_\t1\t_\t_\t_", "3\tles\t_\tDET\t_\t_\t1\t_\t_\t_"]
    path = tmp_path / "fr.conllu"
    path.write_text("\n".join(["1\tva\t_\tVERB\t_\t_\t0\t_\t_\t_", *lines, ""]), encoding="utf-8")
    for fused, words in ((False, ["va", "à", "les"]), (True, ["va", "aux"])):
        data = load_transfer_data("pos", [f"fr={path}"], [f"fr={path}"], fused=fused)
        rows = data.test["fr"]
        assert isinstance(rows, TaggedSentences) and rows.words == [words] and data.fused is fused
    assert rows.tags == [["VERB", "ADP"]]  # of equals the order of French tags
    with pytest.raises(ValueError, match="got the task pawsx"):
        load_transfer_data("pawsx", [f"fr={path}"], [f"fr={path}"], fused=True)


def test_fine_tuning_like_a_paper() -> None:
    """DAP's table 9; AMBER's appendix A.1."""
    dap, amber = fine_tuning("xnli", "dap"), fine_tuning("xnli", "amber")
    assert (dap.epochs, dap.batch_size, dap.learning_rate, dap.weight_decay) == (2, 256, 5e-5, 0.0)
    assert (amber.epochs, amber.batch_size, amber.learning_rate, amber.schedule) == (5, 32, 2e-5, "constant")
    assert fine_tuning("xnli") == dap and fine_tuning("pawsx") == fine_tuning("pawsx", "amber")
    assert LIKE["amber"]["pos"].epochs == 10
    for task, like in (("pos", "dap"), ("panx", "amber"), ("xnli", "bert")):
        with pytest.raises(ValueError, match=f"got {like} for {task}"):
            fine_tuning(task, like)


@pytest.mark.parametrize("warmup", [-0.1, 1.0, float("nan")])
def test_warm_up_is_a_share(warmup: float) -> None:
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        dataclasses.replace(fine_tuning("pawsx"), warmup=warmup)
