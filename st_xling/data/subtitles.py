"""Subtitles in SRT and WebVTT: what is said, with its time, without comments, styles and tags."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from st_xling.data.document_parts import decode_markup, join_lines
from st_xling.utils.text import ParallelTextError, is_blank, read_bytes, unpacked_ending

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_READING = re.compile(r"<rt\b[^>]*>.*?(?:</rt>|(?=</ruby>)|$)", re.DOTALL | re.IGNORECASE)
# Tags of SRT and WebVTT: <i>, <font color="…">, <c.yellow>, <v Mary>, <00:00:01.000>; and places of SRT: {\an8}.
_TAG = re.compile(r"</?(?:[a-z]|font|lang|ruby|rp)(?=[\s.>])[^<>]*>|<[\d:.]+>|\{\\[^{}]*\}", re.IGNORECASE)

# The end of a sentence, or the dash of one that is interrupted; what may follow it: quotation marks and brackets that
# close, notes of music. A semicolon after a Greek letter is a question mark.
_SENTENCE_END = re.compile(
    r"(?:[.!?。｡！？؟۔।॥։။።፧།។\u037e…—♪♫\])）]|(?<=[\u0370-\u03ff\u1f00-\u1fff]);|--)[\"'’”»›」』)\]\s♪♫]*$"
)
# What ends a sentence, or only interrupts it.
_ELLIPSIS_END = re.compile(r"(?:…|\.{2,})$")
_ELLIPSIS = re.compile(r"…|\.{2,}")
# A cue that does not continue a sentence: a speaker's dash or >>, a sound in brackets, a song.
_NEW_SPEECH = re.compile(r"[->‐-―•♪♫(\[（【*#]")

#: Share of the cues of a file that must end a sentence, so that the others can be taken for parts of one: many
#: subtitles, above all Chinese and Thai ones, have no full stops.
_MIN_SENTENCE_ENDS = 0.3
#: Maximum number of cues of a sentence, and seconds between two of them.
_MAX_CUES = 6
_MAX_PAUSE = 2.0


class Cue(NamedTuple):
    """What is shown at one time.

    Attributes:
        time: Its beginning and end, such as ``00:01:02.500-00:01:04.000``; of several with the same time the second has
            ``/2`` behind it.
        text: Its text, in one line.
    """

    time: str
    text: str


def read_cues(path: str | Path) -> list[Cue]:
    """Read the cues of a file that have text.

    Args:
        path: ``.srt`` or ``.vtt``, plain or packed.

    Raises:
        ParallelTextError: For a file without cues, or WebVTT without its head.
    """
    text = decode_markup(read_bytes(path, any_encoding=True), str(path)).removeprefix("\ufeff")
    lines = re.split(r"\r\n|\r|\n", text)
    is_vtt = unpacked_ending(path) == ".vtt"
    if is_vtt and not lines[0].startswith("WEBVTT"):
        raise ParallelTextError(f"{path}: expected WEBVTT in the first line, got {lines[0][:60]!r}; is this WebVTT?")
    cues: list[Cue] = []
    for time, cue_lines in _timed_lines(lines, goes_on=not is_vtt):
        cue_text = _plain_text("\n".join(cue_lines), is_vtt=is_vtt)
        if not is_blank(cue_text):
            cues.append(Cue(time, cue_text))
    if not cues:
        raise ParallelTextError(f"{path}: expected subtitles (00:00:01,000 --> 00:00:02,000 and text), got none")
    return _with_distinct_times(cues)


def join_sentences(cues: Sequence[Cue]) -> list[Cue]:
    """Join the cues of each sentence that runs across several ones; their time is from the first to the last.

    A cue without the end of a sentence is joined with the next one, unless there is a pause of two seconds, or that one
    begins with the dash of a speaker, a bracket or music. In a file in which few cues end a sentence, none is joined.

    Example:
        >>> cues = [Cue("00:00:01.000-00:00:02.000", "I told you"), Cue("00:00:02.000-00:00:03.500", "it would rain.")]
        >>> join_sentences(cues)
        [Cue(time='00:00:01.000-00:00:03.500', text='I told you it would rain.')]
    """
    ends = sum(_SENTENCE_END.search(cue.text) is not None for cue in cues)
    if ends < _MIN_SENTENCE_ENDS * len(cues):
        return list(cues)
    sentences: list[list[Cue]] = []
    for cue in cues:
        if sentences and len(sentences[-1]) < _MAX_CUES and _continues(sentences[-1][-1], cue):
            sentences[-1].append(cue)
        else:
            sentences.append([cue])
    joined = [_joined(parts) for parts in sentences]
    return _with_distinct_times(joined)


def _continues(cue: Cue, following: Cue) -> bool:
    """Return whether a cue goes on in the next one."""
    pause = _seconds(_beginning(following)) - _seconds(_end(cue))
    is_at_once = _beginning(following) <= _beginning(cue)
    if is_at_once or pause > _MAX_PAUSE or _NEW_SPEECH.match(following.text):
        return False
    if _ELLIPSIS_END.search(cue.text):
        return _ELLIPSIS.match(following.text) is not None or following.text[0].islower()
    return _SENTENCE_END.search(cue.text) is None


def _joined(cues: Sequence[Cue]) -> Cue:
    """Return cues as one."""
    if len(cues) == 1:
        return cues[0]
    return Cue(f"{_beginning(cues[0])}-{_end(cues[-1])}", join_lines("\n".join(cue.text for cue in cues)))


def _beginning(cue: Cue) -> str:
    return cue.time.split("-")[0]


def _end(cue: Cue) -> str:
    return cue.time.split("-")[1].split("/")[0]


def _seconds(time: str) -> float:
    hours, minutes, seconds = time.split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(seconds)


def _with_distinct_times(cues: Sequence[Cue]) -> list[Cue]:
    """Number the cues that have the time of an earlier one."""
    cues_by_time: Counter[str] = Counter()
    distinct: list[Cue] = []
    for cue in cues:
        time = cue.time.split("/")[0]
        cues_by_time[time] += 1
        number = cues_by_time[time]
        distinct.append(Cue(f"{time}/{number}" if number > 1 else time, cue.text))
    return distinct


def _timed_lines(lines: Sequence[str], *, goes_on: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the time of each cue, and its lines.

    Args:
        lines: Lines of the file.
        goes_on: Whether a block without a time belongs to the cue before it, as in SRT. In WebVTT it is a comment, a
            style or a region.
    """
    time = ""
    cue_lines: list[str] = []
    for block in _blocks(lines):
        # A line with a number or a name may come before the time.
        timing = next((number for number, line in enumerate(block[:2]) if _TIMING.fullmatch(line)), None)
        if timing is None:
            if time and goes_on:
                cue_lines += block
            continue
        if time:
            yield time, cue_lines
        time = _time_span(block[timing])
        cue_lines = block[timing + 1 :]
    if time:
        yield time, cue_lines


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the blocks of lines that blank lines divide; a time begins one, too, where the blank line is missing."""
    block: list[str] = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        is_number_of_next = line.strip().isdecimal() and _TIMING.fullmatch(following) is not None
        has_time = any(_TIMING.fullmatch(earlier) for earlier in block)
        begins_cue = is_number_of_next or (_TIMING.fullmatch(line) is not None and has_time)
        if block and (not line.strip() or begins_cue):
            yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def _time_span(timing: str) -> str:
    match = _TIMING.fullmatch(timing)
    assert match is not None
    parts = match.groups()
    return f"{_time(*parts[:4])}-{_time(*parts[4:])}"


def _time(hours: str | None, minutes: str, seconds: str, fraction: str | None) -> str:
    return f"{int(hours or 0):02}:{int(minutes):02}:{int(seconds):02}.{(fraction or '').ljust(3, '0')}"


def _plain_text(text: str, *, is_vtt: bool) -> str:
    """Return the text of a cue without tags and readings; in WebVTT ``&amp;`` is an escape."""
    plain = _TAG.sub("", _READING.sub("", text))
    if is_vtt:
        plain = html.unescape(plain)
    lines = [" ".join(line.split()) for line in plain.split("\n")]
    return join_lines("\n".join(filter(None, lines)))
