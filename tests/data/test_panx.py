"""PAN-X: words and entities; the language before every word; faults by line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from st_xling.data import ParallelTextError
from st_xling.data.tagged_words import read_panx

RELEASED = "de:Anna\tB-PER\nde:Lüdemann\tI-PER\nde:in\tO\n\nde:10:30\tO\nde:Köln\tB-LOC\n"


def test_both_spellings_of_words(tmp_path: Path) -> None:
    (tmp_path / "train.gz").write_bytes(gzip.compress(RELEASED.encode()))
    (tmp_path / "train.tsv").write_text(RELEASED.replace("de:", ""), encoding="utf-8")
    (tmp_path / "wide").write_text(RELEASED.replace("\t", "\tx\ty\t") + "\n\n", encoding="utf-8")
    for name in ("train.gz", "train.tsv", "wide"):
        found = read_panx(tmp_path / name)
        assert found.words == [["Anna", "Lüdemann", "in"], ["10:30", "Köln"]]
        assert found.tags == [["B-PER", "I-PER", "O"], ["O", "B-LOC"]]
        assert (found.rows, found.total) == ([0, 1], 2)


def test_a_word_with_a_colon_is_no_language(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("re:publica\tB-ORG\nin\tO\nzh:你好\tO\n", encoding="utf-8")
    assert read_panx(tmp_path / "a.tsv").words == [["re:publica", "in", "zh:你好"]]


def test_faults_come_together(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("Anna B-PER\nKöln\tB-GPE\nin\tO\n", encoding="utf-8")
    with pytest.raises(ParallelTextError, match=r"a.tsv:1: .*'one column'.*\n.*a.tsv:2: .*got 'B-GPE'"):
        read_panx(path)
    path.write_text("\n\n")
    with pytest.raises(ParallelTextError, match="expected sentences"):
        read_panx(path)
