"""Subtitles: what is said, with its time, without comments, styles, tags and readings."""

from pathlib import Path

import pytest

from st_xling.data.subtitles import Cue, join_sentences, read_cues
from st_xling.utils.text import ParallelTextError

SRT = """1
00:00:01,000 --> 00:00:02,500
<i>Guten Tag!</i>
- Wie geht's?

2
00:00:03,000 --> 00:00:04,000 X1:100 Y1:200
{\\an8}<font color="#fff">Gut.</font> 2 < 3 & 4

Noch eine Zeile.
3
01:00:05,5 --> 01:00:06,000
3
4
01:00:07,000 --> 01:00:08,000


5
01:00:09,000 --> 01:00:10,000
今天
很冷。
"""

SRT_CUES = [
    ("00:00:01.000-00:00:02.500", "Guten Tag! - Wie geht's?"),
    ("00:00:03.000-00:00:04.000", "Gut. 2 < 3 & 4 Noch eine Zeile."),
    ("01:00:05.500-01:00:06.000", "3"),
    ("01:00:09.000-01:00:10.000", "今天很冷。"),
]

VTT = """WEBVTT - a title
Kind: captions

STYLE
::cue { color: red }

NOTE a comment
on two lines

intro
00:01.000 --> 00:02.500 align:start position:0%
<v.loud Mary>Hello <c.yellow>there</c> &amp; <00:00:01.500>you

NOTE
another comment

00:03.000 --> 00:04.000
<ruby>漢字<rt>かんじ</rt></ruby>

00:03.000 --> 00:04.000
At the same time.
"""

VTT_CUES = [
    ("00:00:01.000-00:00:02.500", "Hello there & you"),
    ("00:00:03.000-00:00:04.000", "漢字"),
    ("00:00:03.000-00:00:04.000/2", "At the same time."),
]


@pytest.mark.parametrize(("name", "text", "cues"), [("a.srt", SRT, SRT_CUES), ("a.vtt", VTT, VTT_CUES)])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_cues(name: str, text: str, cues: list[tuple[str, str]], line_end: str, tmp_path: Path) -> None:
    """Comments of WebVTT became subtitles, and lines after a blank line of SRT were lost."""
    path = tmp_path / name
    path.write_bytes(("\ufeff" + text.replace("\n", line_end)).encode())
    assert read_cues(path) == cues


def test_subtitles_of_western_europe_without_an_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_bytes("1\n00:00:01,000 --> 00:00:02,000\nSchön – ja\n".encode("cp1252"))
    assert [cue.text for cue in read_cues(path)] == ["Schön – ja"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.vtt", SRT, "a.vtt: expected WEBVTT in the first line, got '1'"),
        ("a.vtt", "WEBVTT\n\nNOTE nothing\n", "expected subtitles .* got none"),
        ("a.srt", "Just a text.\n", "expected subtitles .* got none"),
        ("a.srt", "", "expected subtitles .* got none"),
    ],
)
def test_other_files_get_one_line(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ParallelTextError, match=message):
        read_cues(path)


# Texts of cues of a second each, with an empty one for a pause of three seconds → texts of the sentences.
SENTENCES = [
    (["Ich habe dir gesagt,", "dass es regnet.", "Komm!"], ["Ich habe dir gesagt, dass es regnet.", "Komm!"]),
    (["Who is there", "- Me.", "[knocking]", "Come in."], ["Who is there", "- Me.", "[knocking]", "Come in."]),
    (["I was going to—", "No!", "Why?"], ["I was going to—", "No!", "Why?"]),
    (["I thought…", "…you knew.", "No…", "Yes."], ["I thought… …you knew.", "No…", "Yes."]),
    (["Warte", "", "", "", "hier.", "Gut."], ["Warte", "hier.", "Gut."]),
    (["他说明天", "会下雨。", "好。"], ["他说明天会下雨。", "好。"]),
    (["今天很冷", "我们走吧", "好", "等等", "来了。"], ["今天很冷", "我们走吧", "好", "等等", "来了。"]),
    (["a"] * 7 + ["b."] * 4, ["a a a a a a", "a b.", "b.", "b.", "b."]),
]


@pytest.mark.parametrize(("texts", "sentences"), SENTENCES)
def test_sentences_across_cues(texts: list[str], sentences: list[str]) -> None:
    """Halves of a sentence were aligned, and mined, one by one; in subtitles without full stops nothing is joined."""
    cues = [Cue(f"00:00:{row:02}.000-00:00:{row + 1:02}.000", text) for row, text in enumerate(texts) if text]
    joined = join_sentences(cues)
    assert [cue.text for cue in joined] == sentences
    assert joined[0].time.startswith("00:00:00.000-") and joined[-1].time.endswith(f"-00:00:{len(texts):02}.000")
    assert len({cue.time for cue in joined}) == len(joined)


@pytest.mark.parametrize(
    "texts",
    [
        ["Τι κάνεις;", "Καλά.", "Ποῦ εἶ;", "Ἐδῶ\u037e"],
        ["یہ گھر ہے۔", "اچھا۔", "کیوں؟"],
        ["本です｡", "そうです｡", "何ですか?"],
        ["သူလာတယ်။", "ကောင်းတယ်။"],
        ["ደህና ነኝ።", "ስምህ ማን ነው፧", "አበበ።"],
        ["Where to", ">> Home.", "Fine."],
    ],
)
def test_sentences_end_in_any_script(texts: list[str]) -> None:
    """A Greek question was joined with its answer, and six sentences of Urdu, Burmese or Amharic with each other.

    So were the speakers of captions, whom >> tells apart.
    """
    cues = [Cue(f"00:00:{row:02}.000-00:00:{row + 1:02}.000", text) for row, text in enumerate(texts)]
    assert join_sentences(cues) == cues


def test_cues_shown_at_once_are_not_one_sentence() -> None:
    cues = [Cue("00:00:01.000-00:00:02.000", "PARIS"), Cue("00:00:01.000-00:00:02.000/2", "Wie geht es dir?")]
    assert join_sentences(cues) == cues
