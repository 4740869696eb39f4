"""``st-xling mine`` looks for the threshold of its model, and ``--keep-threshold`` puts one there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from st_xling.cli import main
from st_xling.data.phrasebook import mining_phrases
from st_xling.mining import PublishedThreshold, publish_thresholds, published_thresholds, tsv_cells


@pytest.fixture
def words(encoder: Path, tmp_path: Path) -> list[str]:
    texts = mining_phrases("de", "en", split="dev", size=150, gold=60)
    for name, lines in (("de", texts.source), ("en", texts.target)):
        (tmp_path / f"news.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sides = [str(tmp_path / "news.de"), str(tmp_path / "news.en")]
    languages = ["--source-language", "de", "--target-language", "en"]
    more = [*languages, "--overwrite", "--disable-filter", "all"]
    return ["mine", *sides, "--model", str(encoder), *more, "--out", str(tmp_path / "pairs.tsv")]


def scores(words: list[str]) -> list[float]:
    return [float(tsv_cells(line)[0]) for line in Path(words[-1]).read_text(encoding="utf-8").splitlines()]


def publish(encoder: Path, threshold: float) -> None:
    figures: Any = {"precision": None, "recall": None, "f1": None, "margin": "ratio", "k": 4, "retrieval": "max"}
    publish_thresholds(encoder, {"de-en": PublishedThreshold(threshold=threshold, signature="x", **figures)})


def test_it_looks_unless_told_not_to(
    words: list[str], encoder: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert main(words) == 0
    everything = scores(words)
    middle = everything[len(everything) // 2]
    publish(encoder, middle)
    capsys.readouterr()
    for more in ([], ["--threshold", "published"]):
        assert main([*words[:-2], *more, *words[-2:]]) == 0
        captured = capsys.readouterr()
        assert min(scores(words)) == middle and len(scores(words)) < len(everything)
        assert f"threshold {middle:.4f} of {encoder} for de-en" in captured.err
        assert f"|threshold:{middle:.6g} published|" in captured.out.splitlines()[-1]
    assert main([*words[:-2], "--threshold", "none", *words[-2:]]) == 0
    captured = capsys.readouterr()
    assert scores(words) == everything and "|threshold:none|" in captured.out
    assert str(encoder) not in captured.err
    assert main([*words[:-2], "--margin", "distance", *words[-2:]]) == 0
    assert "|threshold:none|" in capsys.readouterr().out
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning.startswith(f"no threshold of {encoder} is taken: ") and "margin ratio, not distance" in warning


def test_an_estimated_threshold_is_published(
    words: list[str], encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next run takes it: the same pairs."""
    # "Translations" that even an untrained encoder finds: the same words with another mark at the end.
    lines = (tmp_path / "news.de").read_text(encoding="utf-8").splitlines()
    (tmp_path / "news.en").write_text("".join(f"{line} !\n" for line in [*lines[:80], "x", "y"]), encoding="utf-8")
    known = mining_phrases("de", "en", split="test", size=60, gold=0).source
    (tmp_path / "known.tsv").write_text("".join(f"{line}\t{line} !\n" for line in known), encoding="utf-8")
    calibrate = ["--calibrate", str(tmp_path / "known.tsv"), "--k", "3", "--prompt", "query: "]
    assert main([*words[:-2], *calibrate, "--keep-threshold", *words[-2:]]) == 0
    captured = capsys.readouterr()
    assert f"thresholds for de-en: {encoder / 'mining.json'}" in captured.err and f"card: {encoder}" in captured.err
    found = published_thresholds(encoder)["de-en"]
    assert (found.margin, found.k, found.retrieval, found.options) == ("ratio", 3, "max", {"prompt": "query: "})
    assert found.signature == captured.out.splitlines()[-1] and " calibrated|" in found.signature
    assert found.precision and found.recall and found.f1
    assert found.f1 == pytest.approx(2 * found.precision * found.recall / (found.precision + found.recall))
    pairs = Path(words[-1]).read_bytes()
    assert main([*words[:-2], *calibrate[2:], *words[-2:]]) == 0
    assert Path(words[-1]).read_bytes() == pairs != b""


def test_languages_that_are_not_named_are_those_of_the_text(
    words: list[str], encoder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line says which threshold, whose and for what, and so does the last before pairs and signature."""
    bare = [*words[:5], *words[-5:]]
    assert main(bare) == 0
    middle = (everything := scores(words))[len(everything) // 2]
    publish(encoder, middle)
    capsys.readouterr()
    assert main(bare) == 0
    captured = capsys.readouterr()
    told = f"threshold {middle:.4f} of {encoder} for de-en; published with x"
    assert f"{told} (languages by the text: --source-language and --target-language name others)" in captured.err
    *_, line, count, signature = captured.out.splitlines()
    assert line == told and count.startswith(f"{len(scores(words))} pairs: ")
    assert f"|threshold:{middle:.6g} published|" in signature and min(scores(words)) == middle
    assert main([*bare[:1], bare[2], bare[2], *bare[3:]]) == 0  # English twice
    captured = capsys.readouterr()
    assert "it has one for de-en, none for en-en (languages by" in captured.err and "|threshold:none|" in captured.out


def test_languages_are_needed(words: list[str], encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = [*words[:5], *words[-5:]]
    assert main([*bare, "--keep-threshold", "--calibrate", "c.tsv"]) == 2
    assert "give --source-language, --target-language as well" in capsys.readouterr().err
    publish(encoder, 1.0)
    mixed = Path(words[1]).with_name("mixed")
    sentences = ("Das Haus ist sehr alt.", "La maison est très vieille.", "La casa es muy vieja.")
    mixed.write_text("".join(f"{sentences[row % 3]} {row}\n" for row in range(21)), encoding="utf-8")
    assert main([*bare[:2], str(mixed), *bare[3:]]) == 0
    captured = capsys.readouterr()
    assert "it has one for de-en, none for de-und (languages by the text: --source-language" in captured.err
    assert "|threshold:none|" in captured.out
    (encoder / "mining.json").write_text("{", encoding="utf-8")
    assert main(words) == 2
    assert "mining.json: expected JSON" in capsys.readouterr().err
    assert main([*words[:-2], "--threshold", "none", *words[-2:]]) == 0
