"""Scores of the lines of a parallel file: those of ``score_pairs``, in the file's order, duplicates counted once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.data.phrasebook import parallel_phrases
from st_xling.mining import GuardOptions, score_pairs, score_texts, write_store
from st_xling.models.encode import encode
from tests.mining.pipeline.test_mine_texts import write

PAIRS = [(row["source"], row["target"]) for row in parallel_phrases("de", "en", size=150, split="test")]


def scores(path: Path) -> list[float]:
    return [float(line.split("\t")[0]) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def vectors(model: Any, side: int, pairs: list[tuple[str, str]]) -> np.ndarray:
    return encode(model, [pair[side] for pair in pairs], normalize_embeddings=True)


@pytest.mark.parametrize(("k", "margin"), [(4, "ratio"), (2, "distance")])
def test_equals_score_pairs(k: int, margin: str, model: Any, tmp_path: Path) -> None:
    path, out = write(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in PAIRS]), tmp_path / "deep" / "scored.tsv"
    report = score_texts(path, out, model=model, k=k, margin=margin)
    expected = score_pairs(vectors(model, 0, PAIRS), vectors(model, 1, PAIRS), k=k, margin=margin)
    assert scores(out) == expected.tolist()
    lines = out.read_text(encoding="utf-8").splitlines()
    assert [line.split("\t", 1)[1] for line in lines] == ["\t".join(pair) for pair in PAIRS]
    assert (report.pairs, report.kept, report.below, report.rejected) == (150, 150, 0, {})
    assert report.signature.startswith("score|model:") and f"|margin:{margin}|k:{k}|" in report.signature
    assert [path.name for path in out.parent.iterdir()] == ["scored.tsv"]


def test_a_line_that_is_there_often_scores_as_if_it_were_there_once(model: Any, tmp_path: Path) -> None:
    often = [*PAIRS[:60], *[PAIRS[7]] * 9, *PAIRS[60:], ("", "x"), ("y", " ")]
    path, out = write(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in often]), tmp_path / "o"
    score_texts(path, out, model=model)
    # "x" and "y" are neighbours too, though their own lines have no score.
    expected = score_pairs(
        np.concatenate([vectors(model, 0, PAIRS), vectors(model, 0, [("y", "")])]),
        np.concatenate([vectors(model, 1, PAIRS), vectors(model, 1, [("", "x")])]),
    )[:-1].tolist()
    expected = [*expected[:60], *[expected[7]] * 9, *expected[60:], -np.inf, -np.inf]
    assert scores(out) == pytest.approx(expected, rel=1e-6)


def test_columns_threshold_forms(model: Any, tmp_path: Path) -> None:
    """Other columns stay, a packed file is read, and the order too when lines are left out."""
    lines = [f"{row}\t{target}\tx y\t{source}" for row, (source, target) in enumerate(PAIRS)]
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\r\n" for line in [*lines, "a\t\tb\tc"]).encode()))
    score_texts(path, tmp_path / "all", model=model, columns=(3, 1))
    found = scores(tmp_path / "all")
    threshold = sorted(found)[50]
    report = score_texts(path, tmp_path / "some", model=model, columns=(3, 1), threshold=threshold)
    whole = (tmp_path / "all").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t", 1)[1] for line in whole] == [*lines, "a\t\tb\tc"]
    expected = [line for line, score in zip(whole, found) if score >= threshold]
    assert (tmp_path / "some").read_text(encoding="utf-8").splitlines() == expected
    assert report.below == 50 and report.kept == len(expected) == 101
    score_texts(path, tmp_path / "json", model=model, columns=(3, 1), format="jsonl")
    records = [json.loads(line) for line in (tmp_path / "json").read_text(encoding="utf-8").splitlines()]
    assert [(record["source"], record["target"]) for record in records] == [*PAIRS, ("c", "")]
    assert [record["score"] for record in records[:-1]] == found[:-1] and records[-1]["score"] is None


def test_guards_leave_lines_out_and_say_which(model: Any, tmp_path: Path) -> None:
    pairs = [*PAIRS[:50], ("Gleicher Satz hier.", "Gleicher Satz hier."), ("Es sind 5.", "There are 7."), *PAIRS[50:]]
    path = write(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in [*pairs, ("", "z")]])
    rejects = tmp_path / "rejects.jsonl"
    guards = GuardOptions(hub=None, near_copy=None, length_ratio=None)
    report = score_texts(path, tmp_path / "o", model=model, guards=guards, rejects=rejects)
    assert report.rejected == {"copy": 1, "numbers": 1} and report.kept == len(pairs) - 1
    found = [json.loads(line) for line in rejects.read_text(encoding="utf-8").splitlines()]
    assert [(line["reason"], line["source_ids"], line["target_ids"]) for line in found] == [
        ("copy", ["51"], ["51"]),
        ("numbers", ["52"], ["52"]),
    ]
    lines = [line.split("\t", 1)[1] for line in (tmp_path / "o").read_text(encoding="utf-8").splitlines()]
    assert lines == ["\t".join(pair) for pair in [*PAIRS, ("", "z")]]


def test_stores_with_a_row_a_line(tmp_path: Path) -> None:
    random_ = np.random.default_rng(0)
    sides = [random_.standard_normal((150, 8)).astype(np.float32) + 1 for _ in range(2)]
    for number, side in enumerate(sides):
        write_store(tmp_path / f"{number}.store", side, sentences=[pair[number] for pair in PAIRS])
    path = write(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in PAIRS])
    options = {"source_embeddings": tmp_path / "0.store", "target_embeddings": tmp_path / "1.store"}
    score_texts(path, tmp_path / "o", **options)
    assert scores(tmp_path / "o") == score_pairs(*sides).tolist()
    with pytest.raises(ValueError, match="the text is not the one that was encoded"):
        score_texts(path, tmp_path / "p", columns=(1, 0), **options)


def test_faults_come_together(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"a\tb\nonly one\n\xff\tx\nc\td\n")
    with pytest.raises(ValueError, match=r"2 faults:\n.*pairs\.tsv:2: wrong column count .*\n.*pairs\.tsv:3: invalid"):
        score_texts(path, tmp_path / "o", model=model)
    with pytest.raises(ValueError, match="expected at least one pair, got none"):
        score_texts(write(tmp_path / "empty", []), tmp_path / "o", model=model)
    with pytest.raises(ValueError, match="the source side of .*blank must hold a sentence"):
        score_texts(write(tmp_path / "blank", ["\tx"]), tmp_path / "o", model=model)
    for columns in ((0, 0), (-1, 0)):
        with pytest.raises(ValueError, match="columns must be two different positions"):
            score_texts(path, tmp_path / "o", model=model, columns=columns)
    assert not (tmp_path / "o").exists()
