"""The table of file endings, and what reads and writes each of them."""

from pathlib import Path
from typing import get_args

import pytest

from st_xling.data.formats import FORMATS
from st_xling.utils.file_endings import COMPRESSIONS, FILE_FORMATS, PARALLEL_ENDINGS, endings_of
from st_xling.utils.options import PairFormat
from st_xling.utils.text import unpacked_ending


def test_every_format_of_parallel_text_has_a_reader() -> None:
    """A row of the table without a reader would be promised by messages, and then not be read."""
    assert [*PARALLEL_ENDINGS, "|||"] == list(FORMATS)


def test_every_format_that_pairs_are_written_in_has_an_ending() -> None:
    for name in get_args(PairFormat):
        assert endings_of(name)[0] == f".{name}"


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressions_read_what_they_write(ending: str, tmp_path: Path) -> None:
    text = "Der Hund schläft.\n".encode() * 100
    compression = COMPRESSIONS[ending]
    path = tmp_path / "packed"
    with path.open("wb") as file, compression.open(file, "wb") as stream:
        stream.write(text)
    assert compression.first_bytes.match(path.read_bytes())
    with path.open("rb") as file:
        assert compression.open(file, "rb").read() == text


@pytest.mark.parametrize("file_format", FILE_FORMATS)
@pytest.mark.parametrize("compression", ["", *COMPRESSIONS])
def test_endings_in_any_case(file_format: str, compression: str) -> None:
    assert unpacked_ending(Path(f"corpus.de{file_format.upper()}{compression.upper()}")) == file_format
