"""Locations of parallel text: each is opened by the function of its kind, and by no other."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from st_xling.data.columns import ColumnChoice
from st_xling.data.locations import LOCATIONS, PairRequest, find_source

TSV = "Der Hund schläft.\tThe dog sleeps.\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a location of each kind."""
    monkeypatch.chdir(tmp_path)
    for name in ("pairs.tsv", "pairs", "several/a.tsv", "several/b.tsv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(TSV, encoding="utf-8")
    (tmp_path / "bars.txt").write_text("Der Hund schläft. ||| The dog sleeps.\n", encoding="utf-8")
    (tmp_path / "flores").mkdir()
    for name in ("corpus.de", "corpus.en", "pairs.de", "flores/deu_Latn.dev", "flores/eng_Latn.dev"):
        (tmp_path / name).write_text("Satz\n", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "de-en.txt.zip", "w") as archive:
        archive.writestr("x.de", "Hund\n")
        archive.writestr("x.en", "dog\n")
    Dataset.from_dict({"de": ["Hund"], "en": ["dog"]}).save_to_disk(str(tmp_path / "saved"))
    return tmp_path


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        (("corpus.de", "corpus.en"), "two files"),
        ("flores", "folder of FLORES"),
        ("several", "folder"),
        ("saved", "folder"),
        ("de-en.txt.zip", "zip archive"),
        ("corpus", "beginning of file names"),
        ("pairs.tsv", "file"),
        ("bars.txt", "file"),
    ],
)
def test_a_location_is_of_the_first_kind_that_fits(location: Any, kind: str, folder: Path) -> None:
    opened = {}
    request = PairRequest(location, ColumnChoice())
    for name, open_location in LOCATIONS.items():
        source = open_location(request)
        if source is not None:
            opened[name] = source
            break
    assert list(opened) == [kind]
    assert opened[kind].where == find_source(location).where


def test_two_files_of_a_name_come_before_a_file_of_it(folder: Path) -> None:
    """``pairs`` is a file, and the beginning of pairs.de and pairs.en once there are two of them."""
    assert find_source("pairs", default_ending=".tsv").where == "pairs"
    (folder / "pairs.en").write_text("sentence\n", encoding="utf-8")
    assert find_source("pairs", default_ending=".tsv").where == "pairs.de and pairs.en"
    with pytest.raises(FileNotFoundError, match="expected a file missing.tsv"):
        find_source("missing.tsv")
