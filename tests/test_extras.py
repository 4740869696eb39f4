"""What works without the extras ``faiss``, ``lora`` and ``plots``, and what is said where something does not."""

import configparser
import logging
import sys
from pathlib import Path

import numpy as np
import pytest

from st_xling.cli import main
from st_xling.data import load_pairs
from st_xling.data.documents import read_document
from st_xling.evaluation import pictures
from st_xling.hub.dataset import push_dataset
from st_xling.mining import find_neighbors
from st_xling.training import LoraOptions

OPTIONAL = ("faiss", "peft", "matplotlib")


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that has the required packages only: the others cannot be found, nor imported."""
    for package in OPTIONAL:
        monkeypatch.setitem(sys.modules, package, None)
    pictures.has_matplotlib.cache_clear()
    yield
    pictures.has_matplotlib.cache_clear()


def test_they_are_not_required() -> None:
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
    required = setup["options"]["install_requires"]
    assert not [package for package in (*OPTIONAL, "psutil") if package in required]
    assert "<" not in required, "LoRA's limit on transformers is one of the extra lora"


def test_a_model_is_trained_without_pictures(core: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """matplotlib had to be installed for a training, whose end only draws a picture for the card."""
    out = tmp_path / "model"
    words = ["train", "tr", "--model", "tiny", "--data", "phrasebook:de?size=40", "--max-steps", "2", "--out", str(out)]
    assert main(words) == 0
    assert 'pip install "st-xling[plots]"' in capsys.readouterr().err
    assert not (out / "pictures").exists()
    assert "pictures/" not in (out / "README.md").read_text(encoding="utf-8")


def test_a_data_set_has_a_card_without_a_picture(core: None, tmp_path: Path) -> None:
    pairs = tmp_path / "mined.tsv"
    pairs.write_text("score\tsource\ttarget\n1.2\tDas Buch ist alt.\tThe book is old.\n", encoding="utf-8")
    languages = {"source_language": "de", "target_language": "en"}
    report = push_dataset(pairs, "user/pairs", license="cc0-1.0", dry_run=True, **languages)
    assert "![" not in report.card


def test_lora_names_its_extra_before_anything_starts(core: None, tmp_path: Path) -> None:
    """It ended with a ModuleNotFoundError after data and model had been loaded."""
    with pytest.raises(ValueError, match=r'LoRA needs peft, .* pip install "st-xling\[lora\]"'):
        LoraOptions()
    out = tmp_path / "model"
    assert main(["train", "tr", "--model", "tiny", "--data", "phrasebook:de", "--lora", "--out", str(out)]) != 0
    assert not out.exists()


@pytest.mark.parametrize(("file", "package"), [("a.po", "polib"), ("a.html", "lxml.etree")])
def test_documents_name_their_extra(file: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / file
    path.write_text("<p>a</p>", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"needs {package}, .*st-xling\[documents\]"):
        load_pairs(path) if file == "a.po" else read_document(path)


@pytest.mark.parametrize("method", ["approximate", "faiss:Flat"])
def test_approximate_search_names_its_extra(core: None, method: str) -> None:
    with pytest.raises(ValueError, match=rf"method='{method}' needs faiss, .*st-xling\[faiss\]"):
        find_neighbors(np.eye(3), np.eye(3), k=1, method=method)


def test_auto_searches_exactly_without_faiss(
    core: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("st_xling.mining.search.find.MOST_EXACT", 1)
    with caplog.at_level(logging.INFO, "st_xling"):
        forward, _ = find_neighbors(np.eye(3), np.eye(3)[[1, 2, 0]], k=1, method="auto")
    assert forward.indices.ravel().tolist() == [2, 0, 1]
    assert "st-xling[faiss]" in caplog.text
