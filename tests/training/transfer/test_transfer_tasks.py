"""Specs, rows held out alike in every language, labels, the papers' fine-tuning, and the F1 of runs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from st_xling.data.transfer_sets import UPOS, ClassifiedPairs, TaggedSentences
from st_xling.training.transfer import LIKE, fine_tuning, load_transfer_data, run_f1
from st_xling.training.transfer_tasks import find_untrained
from tests.training.transfer.sets import write_set


def specs(paths: dict[str, Path]) -> list[str]:
    return [f"{language}={path}" for language, path in paths.items()]


@pytest.mark.parametrize("task", ["xnli", "pawsx", "pos"])
def test_the_same_rows_are_held_out_of_every_language(task: str, tmp_path: Path) -> None:
    paths = write_set(tmp_path, task)
    data = load_transfer_data(task, [f"en={paths['en']}"], specs(paths), hold_out=0.3)
    assert data.test["en"].rows == data.test["ar"].rows == data.test["th"].rows
    total = data.test["en"].total
    assert sorted([*data.train["en"].rows, *data.test["en"].rows]) == list(range(total))
    assert 0.3 * total <= len(data.test["en"]) < 0.3 * total + 3
    if isinstance(data.train["en"], ClassifiedPairs):  # rows that share a premise stay together
        assert set(data.train["en"].first).isdisjoint(data.test["en"].first)
    assert data.in_training == {"en": 0, "ar": 0, "th": 0}
    whole = load_transfer_data(task, [f"en={paths['en']}"], specs(paths))
    assert whole.in_training == {"en": total, "ar": 0, "th": 0}


def test_a_row_skipped_in_one_language_shifts_no_other(tmp_path: Path) -> None:
    paths = write_set(tmp_path, "pawsx")
    lines = paths["ar"].read_text(encoding="utf-8").splitlines()
    paths["ar"].write_text("\n".join(["NS\tNS\t0", *lines[1:]]) + "\n", encoding="utf-8")
    data = load_transfer_data("pawsx", [f"en={paths['en']}"], specs(paths), hold_out=0.9)
    assert data.test["ar"].rows == [row for row in data.test["en"].rows if row != 0]


@pytest.mark.parametrize(
    ("train", "test", "options", "message"),
    [
        (["FILE"], ["en=FILE"], {}, "--train xx=FILE"),
        (["en=FILE"], [], {}, "--test needs a file"),
        (["en=FILE"], ["en=FILE"], {"hold_out": 1.0}, "above 0 and below 1: got 1.0"),
        (["en=FILE"], ["en=FILE", "th=LONGER"], {"hold_out": 0.5}, "'th': 77"),
        (["en=FILE"], ["en=FILE"], {"fused": True}, "got the task pawsx"),
        (["en=ONES"], ["en=FILE"], {}, "'0': 38"),
    ],
)
def test_bad_input(train: list[str], test: list[str], options: dict[str, object], message: str, tmp_path: Path) -> None:
    files = {"FILE": write_set(tmp_path, "pawsx")["en"], "LONGER": tmp_path / "longer.tsv", "ONES": tmp_path / "1.tsv"}
    text = files["FILE"].read_text(encoding="utf-8")
    files["LONGER"].write_text(text + "a\tb\t1\n", encoding="utf-8")
    files["ONES"].write_text("".join(row for row in text.splitlines(True) if row.endswith("1\n")), encoding="utf-8")
    for name, path in files.items():
        train, test = ([spec.replace(name, str(path)) for spec in side] for side in (train, test))
    with pytest.raises(ValueError, match=message):
        load_transfer_data("pawsx", train, test, **options)  # type: ignore[arg-type]


def test_tags_that_are_never_trained_are_counted() -> None:
    train = [TaggedSentences([["a"]], [["NOUN"]], [0], 1)]
    rare = TaggedSentences([["a"] * 200], [["NOUN"] * 199 + ["INTJ"]], [0], 1)
    assert find_untrained(train, {"fr": rare, "en": train[0]}) == {"fr": {"INTJ": 1}}


def test_fused_forms_of_treebanks(tmp_path: Path) -> None:
    lines = ["2-3\taux\t_\t_\t_\t_\t_\t_\t_\t_", "2\tà\t_\tADP\t_\t_\t1\t_\t_\t_", "3\tles\t_\tDET\t_\t_\t1\t_\t_\t_"]
    path = tmp_path / "fr.conllu"
    path.write_text("\n".join(["1\tva\t_\tVERB\t_\t_\t0\t_\t_\t_", *lines, ""]), encoding="utf-8")
    for fused, words in ((False, ["va", "à", "les"]), (True, ["va", "aux"])):
        rows = load_transfer_data("pos", [f"fr={path}"], [f"fr={path}"], fused=fused).test["fr"]
        assert isinstance(rows, TaggedSentences) and rows.words == [words]
    assert rows.tags == [["VERB", "ADP"]]  # of equals the order of French tags


def test_fine_tuning_like_a_paper() -> None:
    """DAP's table 9; AMBER's appendix A.1."""
    dap, amber = fine_tuning("xnli", "dap"), fine_tuning("xnli", "amber")
    assert (dap.epochs, dap.batch_size, dap.learning_rate, dap.weight_decay) == (2, 256, 5e-5, 0.0)
    assert (amber.epochs, amber.batch_size, amber.learning_rate, amber.schedule) == (5, 32, 2e-5, "constant")
    assert fine_tuning("xnli") == dap and fine_tuning("pawsx") == fine_tuning("pawsx", "amber")
    assert LIKE["amber"]["pos"].epochs == 10
    with pytest.raises(ValueError, match="got dap for pos"):
        fine_tuning("pos", "dap")


@pytest.mark.parametrize(
    ("seed", "expected"), [(0, 0.6686656671664168), (1, 0.5856164383561643), (2, 0.5763293310463122)]
)
def test_f1_is_seqevals(seed: int, expected: float) -> None:
    """seqeval 0.0.12 (XTREME's), ``f1_score(gold, guess)`` of ``seqeval/metrics/sequence_labeling.py``."""
    draw = random.Random(seed)
    short = [draw.choices(UPOS, k=draw.randint(1, 12)) for _ in range(40)]
    gold = [[tag for tag in row for _ in range(draw.randint(1, 3))] for row in short]
    guess = [[tag if draw.random() < 0.8 else draw.choice(UPOS) for tag in row] for row in gold]
    assert run_f1(gold, guess) == pytest.approx(expected, rel=1e-9)


def test_runs_by_hand() -> None:
    gold = [["DET", "SCONJ", "SCONJ", "NOUN", "NOUN", "SYM"], ["X"]]
    guess = [["DET", "SCONJ", "SCONJ", "NOUN", "VERB", "SYM"], ["X"]]
    # gold: DET, SCONJ, SCONJ (S is single), NOUN NOUN, SYM, X; guessed: the NOUN run is cut in two wrong ones.
    assert run_f1(gold, guess) == pytest.approx(2 * 5 / (6 + 7)) and run_f1(gold, gold) == 1.0
    assert run_f1([["DET"]], [["X"]]) == 0.0
    assert run_f1([["NOUN"], ["NOUN"]], [["NOUN"], ["VERB"]]) == 0.5  # a run ends with its sentence
