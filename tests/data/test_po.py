"""PO files as gettext and its editors write them: which messages are finished, and which plural forms are pairs."""

import random
from pathlib import Path

import polib
import pytest

from st_xling.data import load_pairs
from st_xling.data.check import FaultLog
from st_xling.data.po import po_rows
from st_xling.utils.text import ParallelTextError

RUSSIAN = "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
ARABIC = "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);"

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: de\\n"\n\n'
MESSAGES = r"""#: a.c:1
msgid "Open"
msgstr "Öffnen"

msgctxt "menu|File"
msgid "Open"
msgstr "Datei öffnen"

#, fuzzy
#| msgid "Old"
msgid "New"
msgstr "Neu?"

msgid "Untranslated"
msgstr ""

msgid ""
"Two lines, \"quoted\" \\ \t"
"tab"
msgstr "Zwei\nZeilen"

msgid "one file"
msgid_plural "%d files"
msgstr[0] "eine Datei"
msgstr[1] "%d Dateien"

#~ msgid "Obsolete"
#~ msgstr "Veraltet"
"""


def read(content: str | bytes, tmp_path: Path, *languages: str) -> tuple[list[tuple[str, ...]], FaultLog]:
    """Return the pairs of a file, with their languages, and what is noted."""
    path = tmp_path / "app.po"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    faults = FaultLog()
    rows = po_rows(path, faults, languages or (None, None))
    return [tuple(row.values()) for _, row in rows], faults


def test_finished_messages(tmp_path: Path) -> None:
    rows, faults = read(HEADER + MESSAGES, tmp_path)
    expected = [
        ("Open", "Öffnen"),
        ("Open", "Datei öffnen"),
        ('Two lines, "quoted" \\ \ttab', "Zwei\nZeilen"),
        ("one file", "eine Datei"),
        ("%d files", "%d Dateien"),
    ]
    assert rows == [(*pair, "en", "de") for pair in expected]
    left_out = {reason: count for (_, reason), count in faults.skipped.items()}
    assert left_out == {"a fuzzy translation": 1, "no translation": 1, "an obsolete message": 1}


@pytest.mark.parametrize(
    ("rule", "forms", "expected"),
    [
        (RUSSIAN, ["файл", "файла", "файлов"], [("file", "файл"), ("files", "файлов")]),
        (ARABIC, ["0", "1", "2", "3-10", "11-99", "100"], [("file", "1"), ("files", "11-99")]),
        ("nplurals=1; plural=0;", ["ファイル"], [("files", "ファイル")]),
        ("nplurals=2; plural=n>1;", ["fichier", "fichiers"], [("file", "fichier"), ("files", "fichiers")]),
        ("nplurals=INTEGER; plural=EXPRESSION;", ["Datei", "Dateien"], [("file", "Datei"), ("files", "Dateien")]),
        ("", ["Datei", "Dateien"], [("file", "Datei"), ("files", "Dateien")]),
        ("", ["Datei", ""], [("file", "Datei")]),
    ],
)
def test_plural_forms(rule: str, forms: list[str], expected: list[tuple[str, str]], tmp_path: Path) -> None:
    """A form for two or three things is no translation of a plural that is right for all numbers."""
    lines = [f'msgstr[{number}] "{form}"' for number, form in enumerate(forms)]
    header = f'msgid ""\nmsgstr "Plural-Forms: {rule}\\n"\n\n' if rule else ""
    rows, _ = read(header + "\n".join(['msgid "file"', 'msgid_plural "files"', *lines, ""]), tmp_path)
    assert [row[:2] for row in rows] == expected


@pytest.mark.parametrize(
    ("header", "languages", "expected"),
    [
        ("Language: de", (), ("A", "Ä", "en", "de")),
        ("Language: pt_BR", (), ("A", "Ä", "en", "pt_BR")),
        ("Language: zh_TW.Big5", (), ("A", "Ä", "en", "zh_TW")),
        ("Language: de", ("de", "en"), ("Ä", "A", "de", "en")),
        ("Language: de", ("fr", "de"), ("A", "Ä", "fr", "de")),
        ("Language: de", ("fr", "es"), None),
        ("X-Source-Language: fr\\nLanguage: de", (), ("A", "Ä", "fr", "de")),
        ("X-Source-Language: fr\\nLanguage: de", ("en", "de"), None),
        ("X-Poedit: none", ("de", "en"), ("Ä", "A", "de", "en")),
        ("X-Poedit: none", (), ("A", "Ä", "en", "und")),
    ],
)
def test_languages(header: str, languages: tuple[str, ...], expected: tuple[str, ...] | None, tmp_path: Path) -> None:
    """Messages are in English, as gettext has it, unless the header or the caller says otherwise."""
    content = f'msgid ""\nmsgstr "{header}\\n"\n\nmsgid "A"\nmsgstr "Ä"\n'
    rows, faults = read(content, tmp_path, *languages)
    assert rows == ([] if expected is None else [expected])
    assert bool(faults.notes) is (expected is None)


def test_encodings_and_line_ends(tmp_path: Path) -> None:
    latin = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\nmsgid "a"\nmsgstr "ä"\n'
    for content in (latin.encode("latin-1"), latin.replace("ISO-8859-1", "CHARSET").encode()):
        assert read(content, tmp_path)[0] == [("a", "ä", "en", "und")]
    marked = b"\xef\xbb\xbf" + (HEADER + 'msgid "a"\nmsgstr "b"\n').replace("\n", "\r\n").encode()
    assert read(marked, tmp_path)[0] == [("a", "b", "en", "de")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("hello\nworld\n", "expected messages of gettext, got none"),
        ('msgid "a"\nmsgstr "b\n', "app.po:2: expected a string that ends in \", got 'msgstr \"b'"),
        ('msgid "a" b\nmsgstr "c"\n', r"app.po: expected PO, got: Syntax error in po file \(line 1\)"),
        ('msgid "a"\nmsgstr "\xe4"\n'.encode("latin-1"), "app.po:2: expected utf-8, .* got byte 0xe4"),
        (
            'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=klingon\\n"\n',
            "expected an encoding, got 'klingon'",
        ),
    ],
)
def test_other_files_get_one_line(content: str | bytes, message: str, tmp_path: Path) -> None:
    """polib reads a string without its closing quotation mark as an empty one."""
    with pytest.raises(ParallelTextError, match=message) as error:
        read(content, tmp_path)
    assert "\n" not in str(error.value)


def test_what_polib_writes_is_read_in_order(tmp_path: Path) -> None:
    rng = random.Random(3)
    catalog = polib.POFile(wrapwidth=30)
    catalog.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Language": "de"}
    expected = []
    for number in range(60):
        texts = [
            "".join(rng.choices(['"', "\\", "\\n", "\n", "\t", "größer ", "漢字", "🙂", "#~ ", "msgid "], k=6))
            for _ in "ab"
        ]
        left_out = rng.random() < 0.3
        entry = polib.POEntry(msgid=f"{number} {texts[0]}", msgstr=texts[1], flags=["fuzzy"] * left_out)
        catalog.append(entry)
        if not left_out:
            expected.append((entry.msgid, entry.msgstr, "en", "de"))
    catalog.save(str(tmp_path / "saved.po"))
    assert read((tmp_path / "saved.po").read_bytes(), tmp_path)[0] == expected


def test_is_read_like_other_pairs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "app.po"
    path.write_text(HEADER + MESSAGES, encoding="utf-8")
    pairs = load_pairs(f"de-en={path}?size=5")
    assert len(pairs) == 5
    assert pairs["source"][0] == "Öffnen"
    assert "1 row with a fuzzy translation left out" in caplog.text
