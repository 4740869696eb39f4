"""Accuracy and the F1 of runs, by hand, by definition and by seqeval's own figures."""

from __future__ import annotations

import random

import pytest

from st_xling.data.tagged_words import UPOS
from st_xling.training.transfer import label_scores, run_f1, span_f1


def corpus(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    draw = random.Random(seed)
    short = [draw.choices(UPOS, k=draw.randint(1, 12)) for _ in range(40)]
    gold = [[tag for tag in row for _ in range(draw.randint(1, 3))] for row in short]
    return gold, [[tag if draw.random() < 0.8 else draw.choice(UPOS) for tag in row] for row in gold]


@pytest.mark.parametrize(
    ("seed", "expected"), [(0, 0.6686656671664168), (1, 0.5856164383561643), (2, 0.5763293310463122)]
)
def test_f1_is_seqevals(seed: int, expected: float) -> None:
    """seqeval 0.0.12 (XTREME's), ``f1_score(*corpus(seed))`` of ``seqeval/metrics/sequence_labeling.py``."""
    assert run_f1(*corpus(seed)) == pytest.approx(expected, rel=1e-9)


def test_runs_by_hand() -> None:
    gold = [["DET", "SCONJ", "SCONJ", "NOUN", "NOUN", "SYM"], ["X"]]
    guess = [["DET", "SCONJ", "SCONJ", "NOUN", "VERB", "SYM"], ["X"]]
    # gold: DET, SCONJ, SCONJ (S is single), NOUN NOUN, SYM, X; guessed: the NOUN run is cut in two wrong ones.
    assert label_scores(gold, guess) == pytest.approx({"accuracy": 6 / 7, "f1": 2 * 5 / (6 + 7)})
    assert label_scores(gold, gold) == {"accuracy": 1.0, "f1": 1.0}
    assert run_f1([["DET"]], [["X"]]) == 0.0
    assert run_f1([["NOUN"], ["NOUN"]], [["NOUN"], ["VERB"]]) == 0.5  # a run ends with its sentence


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="a prediction for each of 2 labels in 1 rows: got 1 in 1"):
        label_scores([["X", "X"]], [["X"]])
    with pytest.raises(ValueError, match="got none"):
        label_scores([], [])


def spans(rows: list[list[str]]) -> set[tuple[int, int, int, str]]:
    """Entities of well-formed tags: a ``B-`` and the ``I-`` that follow it."""
    found = set()
    for row, tags in enumerate(rows):
        for start, tag in enumerate(tags):
            if tag.startswith("B-"):
                end = start + 1
                while end < len(tags) and tags[end] == f"I-{tag[2:]}":
                    end += 1
                found.add((row, start, end, tag[2:]))
    return found


def test_f1_of_entities_is_the_formula() -> None:
    pytest.importorskip("seqeval")
    draw = random.Random(5)
    pieces = [["O"], ["B-PER"], ["B-PER", "I-PER"], ["B-LOC", "I-LOC", "I-LOC"], ["B-ORG"], ["O", "O"]]
    gold = [[tag for _ in range(6) for tag in draw.choice(pieces)] for _ in range(50)]
    guess = []
    for row in gold:  # well-formed as well: whole entities are dropped, or get another kind
        changed = list(row)
        for _, start, end, kind in spans([row]):
            other = draw.choice([None, kind, kind, "LOC"])
            for place in range(start, end):
                changed[place] = "O" if other is None else f"{row[place][:2]}{other}"
        guess.append(changed)
    true, found = spans(gold), spans(guess)
    both = len(true & found)
    assert 0 < both < len(true)
    assert span_f1(gold, guess) == pytest.approx(2 * both / (len(true) + len(found)), rel=1e-9)
    assert label_scores(gold, guess, f1="spans")["f1"] == span_f1(gold, guess) != run_f1(gold, guess)
    assert span_f1(gold, gold) == 1.0 and span_f1(gold, [["O"] * len(row) for row in gold]) == 0.0
