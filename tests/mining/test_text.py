"""Mining text: tabs and line ends stay, faults come together, rows are read without the text in memory."""

import gzip
import hashlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.data.check import ParallelTextError
from st_xling.mining import MiningText, tsv_cells, tsv_line
from tests.document_files import plain, write_epub

#: No half surrogate pairs, which UTF-8 cannot hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SENTENCES = [
    "Der Hund\tschläft.",
    "cafe\u0301 🙂",
    "แมวดำ\u2028x",
    r"C:\new\table",
    "لا أعرف",
    " a\rb \x0b\x85",
    '"quoted',
]


def sha256_of(sentences: list[str]) -> str:
    """By definition: 8 bytes of length, little-endian, then the bytes."""
    joined = b"".join(len(s.encode()).to_bytes(8, "little") + s.encode() for s in sentences)
    return hashlib.sha256(joined).hexdigest()


@given(st.lists(TEXT, min_size=1))
def test_cells_come_back_from_a_line(cells: list[str]) -> None:
    line = tsv_line(cells)
    assert not {"\n", "\r"} & set(line) and line.count("\t") == len(cells) - 1
    assert tsv_cells(line) == cells


@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r\r\n\ufeff"])
def test_lines_as_they_are(packed: str, ends: str, tmp_path: Path) -> None:
    """Tabs and all that Unicode calls a line break are text; with and without a last line end and a byte order mark."""
    data = b"\xef\xbb\xbf" + ends.join(SENTENCES).encode()
    path = tmp_path / f"text.txt{packed}"
    path.write_bytes({"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[packed](data))
    text = MiningText(path)
    survey = text.validate()
    assert (survey.rows, survey.sha256) == (len(SENTENCES), sha256_of(SENTENCES))
    assert list(text) == SENTENCES and text[-1] == SENTENCES[-1] and text[2:4] == SENTENCES[2:4]
    assert [text.id(row) for row in (0, 6)] == ["1", "7"]
    text.close()


def test_documents_are_read_as_sentences(tmp_path: Path) -> None:
    """A book was mined only after another tool had made lines of it."""
    text = MiningText(write_epub(tmp_path / "book.epub", plain("Eins. Zwei!", "Drei, vier.")))
    assert (list(text), text.validate().rows, text[1], text.id(1)) == (
        ["Eins.", "Zwei!", "Drei, vier."],
        3,
        "Zwei!",
        "2",
    )
    assert text.place(1) == f"{tmp_path}/book.epub:2"
    text.close()
    subtitles = tmp_path / "film.srt"
    subtitles.write_text("00:00:01,000 --> 00:00:02,000\nEins.\nZwei.\n", encoding="utf-8")
    cues = MiningText(subtitles)
    assert (cues.validate().rows, cues[0], cues.id(0)) == (1, "Eins. Zwei.", "00:00:01.000-00:00:02.000")
    with pytest.raises(ValueError, match="a document has no format of lines"):
        MiningText(subtitles, format="lines")


@pytest.mark.parametrize("name", ["app.po", "app.sdlxliff.gz", "memory.tmx"])
def test_pairs_are_not_mined(name: str, tmp_path: Path) -> None:
    """A PO file was mined as lines, with its msgid; XLIFF got the advice to name it .tmx."""
    with pytest.raises(ParallelTextError, match=f"{name}: expected a text, got .*: nothing to align or mine"):
        MiningText(tmp_path / name)


LINES = st.lists(TEXT.map(lambda text: text.replace("\n", "").rstrip("\r").removeprefix("\ufeff")), max_size=8)


@settings(max_examples=60, deadline=None)
@given(LINES, st.booleans(), st.booleans())
def test_rows_by_number_and_in_turn_agree(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], last_end: bool, packed: bool
) -> None:
    """The lines are what a split at line feeds gives."""
    data = "\n".join(lines).encode() + b"\n" * (last_end and bool(lines))
    expected = data.decode().removesuffix("\n").split("\n") if data else []
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_bytes(gzip.compress(data) if packed else data)
    text = MiningText(path)
    assert list(text) == expected and len(text) == len(expected)
    assert [text[row] for row in range(len(text))] == expected
    with pytest.raises(IndexError):
        text[len(expected)]
    text.close()


def test_bucc_and_jsonl_hold_the_same_sentences(tmp_path: Path) -> None:
    r"""A tab is kept by both; a line feed only fits JSON."""
    bucc = tmp_path / "de"
    jsonl = tmp_path / "de.jsonl"
    bucc.write_bytes("".join(f"de-{row}\t{text}\n" for row, text in enumerate(SENTENCES)).encode())
    jsonl.write_text("\n".join(json.dumps({"id": f"de-{row}", "text": text}) for row, text in enumerate(SENTENCES)))
    text = MiningText(jsonl, format="jsonl")
    assert MiningText(bucc, format="bucc").validate().sha256 == text.validate().sha256 == sha256_of(SENTENCES)
    assert [text.id(row) for row in range(len(text))] == [f"de-{row}" for row in range(len(SENTENCES))]
    jsonl.write_text('{"text": "one\\ntwo"}\n{"text": "three", "id": 17}\n')
    text = MiningText(jsonl, format="jsonl")
    assert [(text.id(row), text[row]) for row in range(2)] == [("1", "one\ntwo"), ("17", "three")]


FAULTS: dict[str, tuple[bytes, dict[str, Any], list[str]]] = {
    "not UTF-8": (b"gut\n\xff\xfe\nja\nca\xe9\n", {}, [":2: invalid UTF-8 (byte 0xff at byte 1)", ":4: invalid UTF-8"]),
    "no tab": (b"a\tb\nc\n", {"format": "bucc"}, [":2: no tab (expected id TAB sentence)", "--text-format lines"]),
    "no id": (b" \tb\n", {"format": "bucc"}, [":1: empty id"]),
    "id twice": (b"a\tx\nb\ty\na\tz\n", {"format": "bucc"}, [":3: duplicate id (a)"]),
    "id and row": (b'{"text": "x", "id": "2"}\n{"text": "y"}', {"format": "jsonl"}, [":2: duplicate id (2)"]),
    "no JSON": (
        b'{"text": "x"\n\n[1]',
        {"format": "jsonl"},
        ["3 faults", ":2: bad JSON (expected JSON, got an empty line)"],
    ),
    "a key twice": (
        b'{"text": "x"}\n{"text": "y", "text": "z"}',
        {"format": "jsonl"},
        [":2: bad JSON", "has the key 'text' twice"],
    ),
    "id no name": (b'{"text": "x", "id": [1]}', {"format": "jsonl"}, ['"id" must be a string or a whole number']),
    "half a pair": (b'{"text": "\\ud83d"}', {"format": "jsonl"}, [":1: invalid UTF-8 (half of a surrogate pair)"]),
    "XML": (b"\xef\xbb\xbf<srcset>\n<seg>a</seg>\n", {}, ["looks like XML"]),
    "scored pairs": (b"score\tsource_id\ttarget_id\tsource\ttarget\n", {}, ["got a file of scored pairs"]),
    "JSON": (b'{"id": 1, "text": "a"}\n', {}, ["expected a sentence a line, got JSON", "--text-format jsonl"]),
    "CR alone": (b"a\rb\rc", {}, ["lines that end in CR alone"]),
    "a header": (b"id\tsentence\nde-1\tgut\n", {"format": "bucc"}, ["got the header id, sentence", "tail -n +2"]),
    "nothing": (b"", {}, ["at least one sentence, got none"]),
}


@pytest.mark.parametrize(("text", "warns"), [("de-1\ta\nde-2\tb\n", True), ("de-1\ta\nb\n", False)])
def test_tabs_in_every_line_warn(text: str, warns: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "c.txt").write_text(text, encoding="utf-8")
    assert MiningText(tmp_path / "c.txt").validate().rows == 2
    assert ("--text-format bucc" in caplog.text) == warns


@pytest.mark.parametrize("case", FAULTS)
def test_faults_come_with_file_and_line(case: str, tmp_path: Path) -> None:
    data, options, messages = FAULTS[case]
    path = tmp_path / "text.txt"
    path.write_bytes(data)
    with pytest.raises(ValueError) as caught:
        MiningText(path, **options).validate()
    for message in messages:
        assert message in str(caught.value)
    assert isinstance(caught.value, ParallelTextError)


def test_many_faults_are_counted_not_gathered_without_end(tmp_path: Path) -> None:
    """A file of another kind, of a hundred million lines, each of which is a fault."""
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xff\n" * 5000)
    with pytest.raises(ParallelTextError, match=r"got 1000 or more faults:(.|\n)*\.\.\. and 980 more") as caught:
        MiningText(path).validate()
    assert [fault.line for fault in caught.value.faults] == list(range(1, 1001))


def test_a_large_file_is_read_in_little_memory(tmp_path: Path, peak_growth: Callable[[Callable[[], Any]], int]) -> None:
    """32 MB of text; lines that straddle the blocks they are found in."""
    path = tmp_path / "text.txt.gz"
    rows = 20_000
    lines = [f"{row} " + "wort " * (row % 640) for row in range(rows)]
    path.write_bytes(gzip.compress("\n".join(lines).encode(), 1))

    def read() -> None:
        text = MiningText(path)
        assert len(text) == rows and all(text[row] == lines[row] for row in range(0, rows, 97))
        text.close()

    assert peak_growth(read) < 8 << 20
