"""Test text with English, from folders, files and the phrasebook."""

from __future__ import annotations

from pathlib import Path

import pytest

from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation.english_pairs import load_english_pairs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"deu": "Hallo!", "fra": "Salut !"}.items():
        (tmp_path / f"tatoeba.{name}-eng.{name}").write_text(f"{text}\n", encoding="utf-8")
        (tmp_path / f"tatoeba.{name}-eng.eng").write_text("Hello!\n", encoding="utf-8")
    (tmp_path / "test.tsv").write_text("你好！\tHello!\n", encoding="utf-8")
    return tmp_path


def test_a_folder(folder: Path) -> None:
    found = load_english_pairs([folder])
    assert found.name == "tatoeba" and found.pairs["fra"] == (["Salut !"], ["Hello!"])
    assert list(load_english_pairs([folder], "fr").pairs) == ["fra"]
    with pytest.raises(ValueError, match="expected three-letter codes out of deu, fra, got spa"):
        load_english_pairs([folder], "es")


def test_the_phrasebooks_test_split() -> None:
    found = load_english_pairs(["phrasebook:de,fr?size=3"], "fr,de")
    test = parallel_phrases("fr", "en", split="test", size=3)
    assert list(found.pairs) == ["fra", "deu"] and found.name == "phrasebook-test"
    assert found.pairs["fra"] == (test["source"][:], test["target"][:])
    assert load_english_pairs(["phrasebook:de?size=3&split=dev"]).name == "phrasebook-dev"
    with pytest.raises(ValueError, match="expected languages out of deu, fra: got rus; leave these out"):
        load_english_pairs(["phrasebook:de,fr?size=3"], "de,ru")


def test_files_whichever_side_is_english(folder: Path) -> None:
    found = load_english_pairs([f"zh-en={folder}/test.tsv", folder])
    assert list(found.pairs) == ["cmn", "deu", "fra"] and found.name == f"test.tsv+{folder.name}"
    (folder / "back.tsv").write_text("Hello!\t¡Hola!\n", encoding="utf-8")
    assert load_english_pairs([f"en-es={folder}/back.tsv"]).pairs == {"spa": (["¡Hola!"], ["Hello!"])}


@pytest.mark.parametrize("label", ["", "zh-vi=", "en-eng="])
def test_text_without_english(folder: Path, label: str) -> None:
    with pytest.raises(ValueError, match="as in de-en=PATH"):
        load_english_pairs([f"{label}{folder}/test.tsv"])


def test_a_language_twice(folder: Path) -> None:
    with pytest.raises(ValueError, match="expected one test set a language: got another for deu in 'phrasebook:de'"):
        load_english_pairs([folder, "phrasebook:de"])
