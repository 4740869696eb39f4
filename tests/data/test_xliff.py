"""XLIFF 1.2 and 2 as tools write it: which segments are finished, and what of their inline tags is text."""

from pathlib import Path

import pytest

from st_xling.data import load_pairs
from st_xling.data.check import FaultLog
from st_xling.data.xliff import xliff_rows
from st_xling.utils.text import ParallelTextError

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def xliff_1(body: str, target: str = ' target-language="de"') -> str:
    """XLIFF 1.2 of one file."""
    file = f'<file original="app" datatype="plaintext" source-language="en"{target}><body>{body}</body></file>'
    return f'{HEAD}<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">{file}</xliff>'


def xliff_2(body: str) -> str:
    namespace = "urn:oasis:names:tc:xliff:document:2.0"
    return (
        f'{HEAD}<xliff version="2.0" xmlns="{namespace}" srcLang="en" trgLang="de"><file id="f">{body}</file></xliff>'
    )


def trans_unit(source: str, target: str, unit: str = "", state: str = "") -> str:
    return f'<trans-unit id="1" {unit}><source>{source}</source><target {state}>{target}</target></trans-unit>'


def segment(source: str, target: str, state: str = "", unit: str = "") -> str:
    texts = f"<source>{source}</source><target>{target}</target>"
    return f'<unit id="1" {unit}><segment {state}>{texts}</segment></unit>'


def read(content: str, tmp_path: Path, *languages: str) -> tuple[list[tuple[str, ...]], FaultLog]:
    """Return the pairs of a file, with their languages, and what is noted."""
    path = tmp_path / "app.xlf"
    path.write_text(content, encoding="utf-8")
    faults = FaultLog()
    rows = xliff_rows(path, faults, languages or (None, None))
    return [tuple(row.values()) for _, row in rows], faults


# What is written → its pairs, and the number of segments that are left out, by reason.
SEGMENTS = {
    "final without approved": (xliff_1(trans_unit("Hi", "Hallo", "", 'state="final"')), [("Hi", "Hallo")], {}),
    "translated, not yet approved": (
        xliff_1(trans_unit("Hi", "Hallo", 'approved="no"', 'state="translated"')), [("Hi", "Hallo")], {}),
    "without a state": (xliff_1(trans_unit("Hi", "Hallo")), [("Hi", "Hallo")], {}),
    "refused": (xliff_1(trans_unit("Hi", "Ha", 'approved="no"')), [], {"an unfinished translation": 1}),
    "to be translated": (
        xliff_1(trans_unit("Hi", "Hi", "", 'state="needs-translation"')), [], {"an unfinished translation": 1}),
    "by a machine": (
        xliff_1(trans_unit("Hi", "He", "", 'state="translated" state-qualifier="mt-suggestion"')),
        [], {"an unfinished translation": 1}),
    "untranslated": (
        xliff_1('<trans-unit id="1"><source>Hi</source></trans-unit>' + trans_unit("Hi", " ")),
        [], {"no translation": 2}),
    "not for translation": (
        xliff_1('<group translate="no">' + trans_unit("A", "A") + trans_unit("B", "Be", 'translate="yes"')
                + "</group>"),
        [("B", "Be")], {"text that is not to be translated": 1}),
    "header of a converted PO file": (
        xliff_1(trans_unit("Language: de", "Language: de", 'restype="x-gettext-domain-header"')),
        [], {"text that is not to be translated": 1}),
    "suggestions of a memory": (
        xliff_1('<trans-unit id="1"><source>Hi</source><target>Hallo</target>'
                "<alt-trans><source>Ho</source><target>Heho</target></alt-trans></trans-unit>"),
        [("Hi", "Hallo")], {}),
    "marked segments": (
        xliff_1('<trans-unit id="1"><source>One. Two.</source>'
                '<seg-source><mrk mtype="seg" mid="1">One.</mrk> <g id="9"><mrk mtype="seg" mid="2">Two.</mrk></g>'
                '</seg-source><target><mrk mtype="seg" mid="1">Eins.</mrk> <mrk mtype="seg" mid="2">Zwei.</mrk>'
                "</target></trans-unit>"),
        [("One.", "Eins."), ("Two.", "Zwei.")], {}),
    "Trados": (
        xliff_1('<trans-unit id="1"><source>One. Two. Three.</source><seg-source>'
                '<mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk>'
                ' <mrk mtype="seg" mid="3">Three.</mrk></seg-source><target><mrk mtype="seg" mid="1">Ein'
                '<mrk mtype="x-sdl-deleted">e</mrk><mrk mtype="x-sdl-added">s</mrk>.</mrk>'
                ' <mrk mtype="seg" mid="2">Zwo.</mrk> <mrk mtype="seg" mid="3">Drei.</mrk></target>'
                '<seg-defs xmlns="http://sdl.com/FileTypes/SdlXliff/1.0"><seg id="1" conf="Translated"/>'
                '<seg id="2" conf="Draft" percent="80"/><seg id="3" conf="RejectedTranslation"/></seg-defs>'
                "</trans-unit>"),
        [("One.", "Eins.")], {"an unfinished translation": 2}),
    "Phrase": (
        xliff_1("".join(
            trans_unit(*texts, f'm:confirmed="{step}" xmlns:m="http://www.memsource.com/mxlf/2.0"')
            for step, texts in enumerate([("A", "Ah"), ("{1>Gain&lt;1} {2}3 {b>speed&lt;b}", "{1>Plus&lt;1} {2}3")]))),
        [("Gain 3 speed", "Plus 3")], {"an unfinished translation": 1}),
    "memoQ": (
        xliff_1("".join(
            trans_unit(status[0], status[0].lower(), f'mq:status="{status}" xmlns:mq="MQXliff"')
            for status in ("ManuallyConfirmed", "PartiallyEdited", "Rejected", "Confirmed", "NotStarted"))),
        [("M", "m"), ("C", "c")], {"an unfinished translation": 3}),
    "inline tags": (
        xliff_1(trans_unit(
            'A<x id="1" ctype="lb"/>line, <g id="2">bold</g><bpt id="3">&lt;i&gt;</bpt>it<ept id="3">&lt;/i&gt;</ept>'
            '<mrk mtype="term">s</mrk> {<x id="4" equiv-text="%s"/>}<x id="5" equiv-text="&lt;b&gt;"/>',
            'Ä<ph id="1">&lt;br/&gt;</ph>b\n  <x id="6" equiv-text="&lt;br&gt;"/>c')),
        [("A line, boldits {%s}", "Ä b c")], {}),
    "XLIFF 2": (
        xliff_2(segment("A", "Ä", 'state="final"') + segment("B", "Be") + segment("C", "Ce", 'state="initial"')
                + segment("D", "") + segment("E", "Eh", unit='translate="no"')),
        [("A", "Ä"), ("B", "Be")],
        {"an unfinished translation": 1, "no translation": 1, "text that is not to be translated": 1}),
    "XLIFF 2, inline tags": (
        xliff_2('<unit id="1"><originalData><data id="d1">&lt;br/&gt;</data></originalData><segment>'
                '<source>One<ph id="1" dataRef="d1"/>two <pc id="2">thr<mrk id="m">ee</mrk></pc></source>'
                '<target>Eins<ph id="1" type="fmt" subType="xlf:lb"/>zwei <ph id="3" equiv="%d"/></target></segment>'
                "<ignorable><source> </source></ignorable>"
                "<segment><source>Four</source><target>Vier</target></segment></unit>"),
        [("One two three", "Eins zwei %d"), ("Four", "Vier")], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SEGMENTS)
def test_finished_segments_and_their_text(name: str, tmp_path: Path) -> None:
    """A translation that was final was left out as fuzzy, and words on both sides of a line break became one."""
    content, expected, left_out = SEGMENTS[name]
    rows, faults = read(content, tmp_path)
    assert rows == [(*pair, "en", "de") for pair in expected]
    assert {reason: count for (_, reason), count in faults.skipped.items()} == left_out
    assert not faults.faults


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (("en", "de"), [("A", "Ä", "en", "de")]),
        (("de", "en"), [("Ä", "A", "de", "en")]),
        (("de-AT", "en-GB"), [("Ä", "A", "de-AT", "en-GB")]),
        (("fr", "de"), []),
    ],
)
def test_direction(languages: tuple[str, str], expected: list[tuple[str, ...]], tmp_path: Path) -> None:
    rows, faults = read(xliff_1(trans_unit("A", "Ä")), tmp_path, *languages)
    assert rows == expected
    assert bool(faults.notes) is not bool(expected)


def test_numbers_count_the_segments_that_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "app.xlf"
    path.write_text(xliff_2(segment("A", "") + segment("B", "Be") + segment("C", "Ce")), encoding="utf-8")
    assert [number for number, _ in xliff_rows(path, FaultLog())] == [2, 3]


def test_what_is_left_out_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "app.xliff"
    path.write_text(xliff_1(trans_unit("A", "Ä") + trans_unit("B", "")), encoding="utf-8")
    pairs = load_pairs(path)
    assert (pairs["source"][:], pairs["target"][:], pairs["target_language"][:]) == (["A"], ["Ä"], ["de"])
    assert "1 row with no translation left out" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<tmx/>", "app.xlf: expected XLIFF, got XML of another kind: <tmx>"),
        (xliff_1(trans_unit("A", "<b>"))[:-80], r"app.xlf:2: expected XLIFF, got malformed XML"),
        ("<xliff>" + "<g>" * 200, "at most 100 deep"),
        ("", "malformed XML"),
    ],
)
def test_other_files_get_one_line(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ParallelTextError, match=message) as error:
        read(content, tmp_path)
    assert "\n" not in str(error.value)


def test_entities_of_other_files_are_not_read(tmp_path: Path) -> None:
    """A file from elsewhere could name one of this machine, whose text a data set would then publish."""
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    doctype = f'<!DOCTYPE xliff [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    content = xliff_1(trans_unit("A", "&e;B")).replace("<xliff", f"{doctype}<xliff", 1)
    try:
        rows, _ = read(content, tmp_path)
    except ParallelTextError:
        return
    assert "secret" not in str(rows)


@pytest.mark.parametrize("status", ["Reviewer1Confirmed", "Reviewer2Confirmed", "Proofread", "ConfirmedTranslator"])
def test_what_memoq_reviewers_confirmed_is_finished(status: str, tmp_path: Path) -> None:
    """The translations that a reviewer had confirmed, the best of a memoQ file, were left out as unfinished."""
    unit = trans_unit("Hi", "Hallo", f'mq:status="{status}" xmlns:mq="MQXliff"')
    assert read(xliff_1(unit), tmp_path)[0] == [("Hi", "Hallo", "en", "de")]


@pytest.mark.parametrize("ending", ["sdlxliff", "mxliff", "mqxliff"])
def test_files_of_other_programs_are_pairs(ending: str, tmp_path: Path) -> None:
    """They were refused, or mined as lines of XML; to rename them was no use, for their states were ignored."""
    path = tmp_path / f"app.{ending}"
    path.write_text(xliff_1(trans_unit("Hi", "Hallo")), encoding="utf-8")
    assert load_pairs(path)[0] == {"source": "Hi", "target": "Hallo", "source_language": "en", "target_language": "de"}
