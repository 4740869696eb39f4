"""Lines of text files: plain or packed, split at line feeds and nowhere else."""

import bz2
import gzip
import lzma
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_xling.data import check
from st_xling.data.check import FaultLog, iter_lines
from st_xling.utils import text as text_files

#: No half surrogate pairs, which UTF-8 cannot hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
LINES = ["Straße", "", "كتاب\u2028جديد", "a\x85b\x0bc\rd", "tab\there", "🙂"]


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


PACKERS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstd}


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_lines(tmp_path: Path, ending: str, end: str, last: bool) -> None:
    """Keep what is in a line; packed parts may follow one another, under any name."""
    data = b"\xef\xbb\xbf" + end.join(LINES).encode() + end.rstrip("\ufeff").encode() * last
    path = tmp_path / "text"
    path.write_bytes(PACKERS[ending](data[:20]) + PACKERS[ending](data[20:]))
    assert [line.decode() for line in text_files.raw_lines(path)] == LINES
    assert text_files.read_bytes(path) == data
    assert text_files.estimate_lines(path) == len(LINES)


@pytest.mark.parametrize("ending", PACKERS)
def test_no_lines_and_one(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    for data, lines in ((b"", []), (b"\n", [b""]), (b"a\r", [b"a"]), (b"\xef\xbb\xbf", [b""])):
        path.write_bytes(PACKERS[ending](data))
        assert list(text_files.raw_lines(path)) == lines


@pytest.mark.parametrize("ending", list(PACKERS)[1:])
def test_packed_files_that_are_broken(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    path.write_bytes(PACKERS[ending](os.urandom(300_000))[:-900])
    with pytest.raises(
        text_files.ParallelTextError, match=r"x\.\w+: expected a whole packed file, got after [\d,]+ bytes"
    ):
        list(text_files.raw_lines(path))
    path.write_bytes(b"a\tb\n")
    with pytest.raises(
        text_files.ParallelTextError, match=rf"expected {ending[1:]}, got a file that begins with b'a.*drop the"
    ):
        list(text_files.raw_lines(path))


def test_what_is_no_text_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "corpus.de").write_bytes(gzip.compress("a".encode("utf-16")))
    with pytest.raises(text_files.ParallelTextError, match=r"corpus\.de: .*byte order mark of UTF-16.*iconv -f utf-16"):
        text_files.read_bytes(tmp_path / "corpus.de")
    with pytest.raises(FileNotFoundError, match=r"corpus\.fr, but .*nearest name there is corpus\.de"):
        list(text_files.raw_lines(tmp_path / "corpus.fr"))
    with pytest.raises(ValueError, match="is a folder"), text_files.open_bytes(tmp_path):
        pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a pipe or a device"), text_files.open_bytes(tmp_path / "pipe"):
        pass
    monkeypatch.setattr(text_files, "LONGEST_LINE_BYTES", 10)
    (tmp_path / "long").write_bytes(b"012345678\n" + b"0123456789")
    assert len(list(text_files.raw_lines(tmp_path / "long"))) == 2
    (tmp_path / "long").write_bytes(b"a\n0123456789a")
    with pytest.raises(text_files.ParallelTextError, match="long:2: .*more than 10 bytes"):
        list(text_files.raw_lines(tmp_path / "long"))
    monkeypatch.setattr(check, "LONGEST_LINE_BYTES", 10)
    monkeypatch.setattr(check, "_BLOCK_BYTES", 4)
    with pytest.raises(text_files.ParallelTextError, match="long:2: .*a line of more than"):
        list(iter_lines(tmp_path / "long", FaultLog()))
    (tmp_path / "long").write_bytes(b"0123456789\n0123456789\n" * 3)
    assert len(list(iter_lines(tmp_path / "long", FaultLog()))) == 6


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_archives_are_no_text(kind: str, packed: bool, tmp_path: Path) -> None:
    """Headers and names of an archive were read as text, by commands that take a file of any ending."""
    (tmp_path / "a.txt").write_text("Der Hund schläft.\tThe dog sleeps.\n", encoding="utf-8")
    archive = Path(shutil.make_archive(str(tmp_path / "corpus"), kind, tmp_path, "a.txt"))
    path = tmp_path / "corpus.tsv"
    content = archive.read_bytes()
    if packed:
        content = gzip.compress(content)
    path.write_bytes(content)
    with pytest.raises(text_files.ParallelTextError, match=f"corpus.tsv: expected text, got a {kind} archive; unpack"):
        list(text_files.raw_lines(path))


def test_bytes_that_are_not_utf8() -> None:
    assert text_files.decode_line("é".encode()) == ("é", "")
    assert text_files.decode_line(b"ab\xff") == (None, "byte 0xff at byte 3")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_lines_are_estimated_from_the_first_megabyte(tmp_path: Path, ending: str) -> None:
    lines = "".join(f"Satz Nummer {n} mit {n * n}\tsentence {n}\n" for n in range(80_000)).encode()
    (tmp_path / "x").write_bytes(PACKERS[ending](lines))
    assert len(lines) > 2**21
    assert text_files.estimate_lines(tmp_path / "x") == pytest.approx(80_000, rel=0.2)


@given(TEXT, TEXT)
def test_escape_is_one_to_one_and_per_character(first: str, second: str) -> None:
    assert text_files.escape_cell(first) + text_files.escape_cell(second) == text_files.escape_cell(first + second)
    assert (text_files.escape_cell(first) == text_files.escape_cell(second)) == (first == second)
    plain = first.replace("\\", "").replace("\t", "").replace("\n", "").replace("\r", "")
    assert text_files.escape_cell(plain) == plain and text_files.unescape_cell(text_files.escape_cell(first)) == first
    assert text_files.escape_cell("a\tb\nc\rd\\e") == r"a\tb\nc\rd\\e"


@pytest.mark.parametrize("cell", [r"a\x", "a\\", r"\N", "\\\u00e9"])
def test_a_cell_that_was_not_escaped(cell: str) -> None:
    with pytest.raises(ValueError, match=r"one of \\\\ \\t \\n \\r, got '\\.*at character"):
        text_files.unescape_cell(cell)
