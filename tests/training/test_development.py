"""Development scores: never without the number of pairs and an interval, never from a handful of held-out pairs."""

import json
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from st_xling.cli import main
from st_xling.evaluation import PrecisionEvaluator, TatoebaEvaluator
from st_xling.training.development import DevelopmentScore, development_score, steps_and_time
from tests.training.ranking_run import sentences

TINY = ["--model", "tiny", "--tiny", "hidden_size=16", "--tiny", "layers=1", "--tiny", "vocabulary=300"]
NONE = "no development set: fewer than 50"


@pytest.mark.parametrize(("right", "rows"), [(0, 1), (3, 5), (5, 5), (97, 100), (250, 500), (1, 3)])
def test_the_interval_is_wilsons(right: int, rows: int) -> None:
    expected = binomtest(right, rows).proportion_ci(method="wilson")
    assert DevelopmentScore(right / rows, rows).interval() == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_words() -> None:
    assert str(DevelopmentScore(1.0, 6)) == "100.0 % of 6 pairs (95 % interval 61.0 to 100.0)"
    assert str(DevelopmentScore(0.0, 1, "queries")) == "0.0 % of 1 query (95 % interval 0.0 to 79.3)"
    assert steps_and_time(1, 2.6) == "1 step in 3 s, too short to judge"
    assert steps_and_time(19, 8.0) == "19 steps in 8 s, too short to judge"
    assert steps_and_time(20, 8.0) == "20 steps in 8 s"


def test_rows_of_every_evaluator() -> None:
    pairs = {"de": (["Hund", "Katze"], ["dog", "cat"]), "fr": (["chien"], ["dog"])}
    for evaluator in (TatoebaEvaluator(pairs), PrecisionEvaluator(pairs)):
        assert development_score(0.5, evaluator) == DevelopmentScore(0.5, 3, "pairs")
    assert development_score(None, TatoebaEvaluator(pairs)) is None
    assert development_score(0.5, object()) is None and development_score(float("nan"), evaluator) is None


def run(out: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    status = main([*words, *TINY, "--out", str(out), "--json", str(out.parent / f"{out.name}.json")])
    figures = json.loads((out.parent / f"{out.name}.json").read_text())["training"]
    return status, figures, (out / "README.md").read_text(encoding="utf-8")


def test_few_pairs_are_not_held_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """252 pairs gave 5 for development, whose 60.0 % chose the checkpoint and stood in the card."""
    words = ["--data", "phrasebook:de?size=400", "--max-steps", "1", "--batch-size", "8"]
    status, figures, card = run(tmp_path / "run", "train", "tr", *words)
    printed = capsys.readouterr()
    assert status == 0 and printed.err.count(NONE) == 1 and "the last model is saved" in printed.err
    assert "400 pairs, 0 for development" in printed.err
    assert printed.out.startswith("1 step in ") and "s, too short to judge; the" in printed.out
    assert "best development" not in printed.out
    assert figures["best_dev"] is None and "dev_rows" not in figures
    assert "| steps | 1, too few to judge the model by |" in card and "development score" not in card


def test_scores_say_of_how_many_pairs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A "best development accuracy 100.0 %" was of six pairs, on the console and in the card."""
    words = ["--data", "phrasebook:de?size=100", "--dev", "phrasebook:de?size=12", "--batch-size", "8"]
    _, figures, card = run(tmp_path / "run", "train", "tr", *words, "--max-steps", "2")
    printed = capfd.readouterr()
    low = figures["dev_low"]
    high = figures["dev_high"]
    assert (figures["dev_rows"], figures["dev_unit"]) == (12, "pairs") and low <= figures["best_dev"] <= high
    score = str(DevelopmentScore(figures["best_dev"], 12))
    assert f"best development accuracy {score};" in printed.out
    assert " % of 12 pairs (95 % interval " in printed.err  # each time that it is evaluated
    assert f"| best development score | {score} |" in card
    words[1] = "de-en=phrasebook?size=60"
    _, figures, card = run(tmp_path / "sf", "train", "sf", *words, "--max-steps", "2", "--layer", "1")
    assert " % of 12 pairs (95 % interval " in capfd.readouterr().out and figures["dev_rows"] == 12
    assert " % of 12 pairs (95 % interval " in card


def test_few_queries_are_not_held_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Cross-encoders hold out a tenth of the queries, of XPI 2 % of the parallel text."""
    files = []
    for language, texts in zip(("de", "en"), sentences(30)):
        path = tmp_path / f"pairs.{language}.tsv"
        rows = [f"{a}\t{a}\t1\n{a}\t{b}\t0\n" for a, b in zip(texts, texts[1:] + texts[:1])]
        path.write_text("query\tpassage\tlabel\n" + "".join(rows), encoding="utf-8")
        files += ["--data", f"{language}={path}"]
    words = [*files, "--max-length", "64", "--max-steps", "2", "--batch-size", "8"]
    _, figures, _ = run(tmp_path / "all", "train", "xpr-mixed", *words)
    printed = capfd.readouterr().err
    assert printed.count(f"{NONE} queries") == 1 and "0 queries for development" in printed
    assert figures["best_dev"] is None
    _, figures, _ = run(tmp_path / "asked", "train", "xpr-mixed", *words, "--dev-share", "0.2")
    printed = capfd.readouterr()
    assert NONE not in printed.err and figures["dev_unit"] == "queries" and figures["dev_rows"] == 6
    assert " % of 6 queries (95 % interval " in printed.out
    _, figures, _ = run(tmp_path / "xpi", "train", "xpi", "--data", "de-en=phrasebook?size=60", *words[4:])
    assert NONE in capfd.readouterr().err and figures["best_dev"] is None
