"""Translations in XLIFF 1.2 and 2: the finished pairs of segments, in bounded memory.

Trados, Phrase and memoQ write XLIFF 1.2 under other endings, with states of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from st_xling.data.check import FaultLog
from st_xling.data.columns import LanguagePair, NumberedRow
from st_xling.data.pairs import COLUMNS
from st_xling.data.tmx import spelled_code
from st_xling.data.xml_units import NOT_XML, XML_LANG, is_line_break, local_name, normalize_spaces, unit_events
from st_xling.utils.languages import UNKNOWN, may_be_language, resolve_pair
from st_xling.utils.text import ParallelTextError

LONGEST_UNIT_BYTES = 1 << 26
"""More than in TMX: a file may begin with the document that is translated, in an ``internal-file``."""

_UNITS = ("trans-unit", "unit")  # of XLIFF 1.2, and of XLIFF 2
_UNFINISHED_STATES = frozenset(
    [
        # XLIFF 1.2
        "new",
        "needs-adaptation",
        "needs-l10n",
        "needs-review-adaptation",
        "needs-review-l10n",
        "needs-review-translation",
        "needs-translation",
        # XLIFF 2. Where a segment has no state, it is "initial" by the standard, but tools that know no states write
        # finished translations so.
        "initial",
    ]
)
_UNFINISHED_QUALIFIERS = frozenset(["fuzzy-match", "mt-suggestion"])
_HEADER = "x-gettext-domain-header"  # of a PO file that was converted
# What tells that a translation is finished: levels of Trados for each segment, steps of Phrase, states of memoQ.
_TRADOS_FINISHED = frozenset(["Translated", "ApprovedTranslation", "ApprovedSignOff"])
_PHRASE_CONFIRMED = "{http://www.memsource.com/mxlf/2.0}confirmed"
_MEMOQ_STATUS = "{MQXliff}status"
_MEMOQ_FINISHED = ("Confirmed", "ManuallyConfirmed", "Reviewer1Confirmed", "Reviewer2Confirmed", "Proofread")
# Inline tags of Phrase, which are part of the text: {b>bold<b}, {1>…<1}, {1}.
_PHRASE_TAG = re.compile(r"\{[\w^]{1,3}>|<[\w^]{1,3}\}|\{\d{1,3}\}")
# Text that a reviewer has deleted in Trados.
_DELETED = "x-sdl-deleted"
# Inline tags whose content is text of the segment; the content of others is a code of another format.
_TAGS_OF_TEXT = frozenset(["g", "mrk", "pc"])


def xliff_rows(path: str | Path, faults: FaultLog, languages: LanguagePair = (None, None)) -> Iterator[NumberedRow]:
    """Read the translated segments of an XLIFF file, numbered from 1 with those that are left out.

    Left out, and counted, are segments without a translation, those that are not to be translated, and unfinished
    translations: those with a state such as ``needs-translation`` or ``initial``, from a fuzzy match or a machine, or
    ``approved="no"`` without a state. A state ``translated`` or ``final`` counts without ``approved="yes"``, too. In
    files of Trados, Phrase and memoQ a translation is finished if it is confirmed there.

    Of inline tags the equivalent text is read, if they have one that is no markup; a line break is a space.

    Args:
        path: ``.xlf`` or ``.xliff``, or ``.sdlxliff``, ``.mxliff`` or ``.mqxliff``; plain or packed; UTF-8 or UTF-16.
        faults: Where segments with control characters or without a source are noted.
        languages: Source and target, which may be those of the file in reverse. Otherwise those of the file's name, or
            those that the file names.

    Raises:
        ParallelTextError: For malformed XML, with its line; for a unit that is too long; for tags more than 100 deep.
    """
    document = _Translations(path, faults, resolve_pair(path, *languages))
    ancestors: list[ElementTree.Element] = []
    units_open = 0
    for is_end, tag, element, _ in unit_events(path, "XLIFF", *_UNITS, longest_unit=LONGEST_UNIT_BYTES):
        if not is_end:
            document.begin(tag, element)
            ancestors.append(element)
            units_open += tag in _UNITS
            continue
        ancestors.pop()
        if tag in _UNITS:
            units_open -= 1
            yield from document.read_unit(tag, element)
        document.end()
        if ancestors and not units_open:
            ancestors[-1].remove(element)  # what was read would fill the memory
    document.finish()


class _Segment(NamedTuple):
    """Segment of a unit.

    Attributes:
        source: Its source; ``None`` if there is none.
        target: Its translation; ``None`` if there is none.
        state: Element whose attributes tell the state of the translation.
        number: Number of a segment that is marked in the texts of its unit; ``None`` for one that is not.
    """

    source: ElementTree.Element | None
    target: ElementTree.Element | None
    state: ElementTree.Element
    number: str | None = None


@dataclass
class _Translations:
    """Languages of an XLIFF file, and what of it is read.

    Attributes:
        path: The file.
        faults: Where faults are noted.
        languages: Source and target that are chosen; ``None`` for those of the file.
        file_languages: Source and target that the part that is read names.
        languages_found: All pairs of languages that the file names.
        translates: Whether the text is to be translated, of each element that is open.
        segments: Number of segments so far.
        rows: Number of segments in the chosen languages.
    """

    path: str | Path
    faults: FaultLog
    languages: LanguagePair
    file_languages: tuple[str | None, str | None] = (None, None)
    languages_found: dict[tuple[str | None, str | None], None] = field(default_factory=dict)
    translates: list[bool] = field(default_factory=list)
    segments: int = 0
    rows: int = 0

    def begin(self, tag: str, element: ElementTree.Element) -> None:
        """Note the attributes of an element that hold for what is in it."""
        if not self.translates and tag != "xliff":
            raise ParallelTextError(f"{self.path}: expected XLIFF, got XML of another kind: <{tag}>; is this XLIFF?")
        inherited = self.translates[-1] if self.translates else True
        own = element.get("translate")
        self.translates.append(inherited if own is None else own != "no")
        source = element.get("srcLang") or element.get("source-language")
        target = element.get("trgLang") or element.get("target-language")
        if tag in ("xliff", "file") and (source or target):
            self.file_languages = (source and spelled_code(source), target and spelled_code(target))

    def end(self) -> None:
        """Forget what holds in an element that ends."""
        self.translates.pop()

    def read_unit(self, tag: str, unit: ElementTree.Element) -> Iterator[NumberedRow]:
        """Yield the rows of the segments of a unit that are translated."""
        codes = {entry.get("id", ""): entry.text or "" for entry in unit.iterfind("{*}originalData/{*}data")}
        segments = _segments_of_unit(unit) if tag == "unit" else _segments_of_trans_unit(unit)
        for segment in segments:
            self.segments += 1
            row = self._read_segment(unit, segment, codes)
            if row is not None:
                yield self.segments, row

    def _read_segment(
        self, unit: ElementTree.Element, segment: _Segment, codes: Mapping[str, str]
    ) -> dict[str, str] | None:
        """Return the row of a segment; ``None`` if it is left out, or has a fault, which is noted."""
        if segment.source is None:
            self.faults.add(self.path, self.segments, "no source", "the segment has no source")
            return None
        if not self.translates[-1] or unit.get("restype") == _HEADER:
            self.faults.skip(self.path, "text that is not to be translated")
            return None
        source = segment_text(segment.source, codes)
        target = "" if segment.target is None else segment_text(segment.target, codes)
        if _PHRASE_CONFIRMED in unit.attrib:
            source = normalize_spaces(_PHRASE_TAG.sub("", source))
            target = normalize_spaces(_PHRASE_TAG.sub("", target))
        if not target:
            if source:
                self.faults.skip(self.path, "no translation")
            return None
        if _is_unfinished(segment, unit):
            self.faults.skip(self.path, "an unfinished translation")
            return None
        for text in (source, target):
            if NOT_XML in text:
                self.faults.add(self.path, self.segments, "control character", "in the text of a segment")
                return None

        assert segment.target is not None
        texts = ((self._language(segment.source, 0), source), (self._language(segment.target, 1), target))
        return self._directed(*texts)

    def _language(self, text: ElementTree.Element, side: int) -> str | None:
        """Return the language of a source or target: its own, or that of the file."""
        own = text.get(XML_LANG)
        return spelled_code(own) if own else self.file_languages[side]

    def _directed(self, source: tuple[str | None, str], target: tuple[str | None, str]) -> dict[str, str] | None:
        """Return a row in the direction of the chosen languages; ``None`` if they are others than those of the file.

        Args:
            source: Language and text of the source.
            target: Language and text of the target.
        """
        self.languages_found[source[0], target[0]] = None
        for first, second in ((source, target), (target, source)):
            if may_be_language(first[0], self.languages[0]) and may_be_language(second[0], self.languages[1]):
                self.rows += 1
                codes = (self.languages[0] or first[0] or UNKNOWN, self.languages[1] or second[0] or UNKNOWN)
                return dict(zip(COLUMNS, (first[1], second[1], *codes)))
        return None

    def finish(self) -> None:
        """Note that no segment has the chosen languages, after the last one."""
        if self.languages_found and not self.rows:
            chosen = " and ".join(filter(None, self.languages))
            found = ", ".join("-".join(code or "?" for code in pair) for pair in self.languages_found)
            self.faults.note(f"{self.path}: no segment has {chosen}; its languages are {found}")


def _segments_of_unit(unit: ElementTree.Element) -> Iterator[_Segment]:
    """Yield the segments of a unit of XLIFF 2."""
    for segment in unit.iterfind("{*}segment"):
        yield _Segment(segment.find("{*}source"), segment.find("{*}target"), segment)


def _segments_of_trans_unit(unit: ElementTree.Element) -> Iterator[_Segment]:
    """Yield the segments of a unit of XLIFF 1.2: those that both texts mark, or the texts as a whole."""
    source = unit.find("{*}source")
    target = unit.find("{*}target")
    state = unit if target is None else target
    segmented = unit.find("{*}seg-source")
    if segmented is not None and target is not None:
        sources = _marked_segments(segmented)
        targets = _marked_segments(target)
        if sources and sources.keys() == targets.keys():
            for number, marked in sources.items():
                yield _Segment(marked, targets[number], state, number)
            return
    yield _Segment(source, target, state)


def _marked_segments(text: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """Return the marked segments of a text, by their numbers."""
    marks = text.iterfind(".//{*}mrk")
    return {mark.get("mid", ""): mark for mark in marks if mark.get("mtype") == "seg"}


def _is_unfinished(segment: _Segment, unit: ElementTree.Element) -> bool:
    """Return whether a translation still has to be done or checked, by its state or else that of its unit."""
    is_confirmed = _is_confirmed(unit, segment.number)
    if is_confirmed is not None:
        return not is_confirmed
    state = segment.state.get("state")
    if state is None:
        is_refused = unit.get("approved") == "no"
    else:
        is_refused = state in _UNFINISHED_STATES
    return is_refused or segment.state.get("state-qualifier") in _UNFINISHED_QUALIFIERS


def _is_confirmed(unit: ElementTree.Element, number: str | None) -> bool | None:
    """Return whether Trados, Phrase or memoQ has a translation as finished; ``None`` in files of other programs.

    Args:
        unit: The unit.
        number: Number of the segment; ``None`` for the whole unit.
    """
    levels = {segment.get("id"): segment.get("conf") for segment in unit.iterfind("{*}seg-defs/{*}seg")}
    if levels:
        if number is not None:
            return levels.get(number) in _TRADOS_FINISHED
        return all(level in _TRADOS_FINISHED for level in levels.values())
    if _PHRASE_CONFIRMED in unit.attrib:
        return unit.get(_PHRASE_CONFIRMED) != "0"
    if _MEMOQ_STATUS in unit.attrib:
        return unit.get(_MEMOQ_STATUS, "").startswith(_MEMOQ_FINISHED)
    return None


def segment_text(segment: ElementTree.Element, codes: Mapping[str, str]) -> str:
    """Return the text of a segment, with one space in place of white space.

    Args:
        segment: A source, a target or a marked segment.
        codes: Codes of the original format that inline tags of XLIFF 2 refer to, by id.
    """
    return normalize_spaces("".join(_inline_text(segment, codes)))


def _inline_text(element: ElementTree.Element, codes: Mapping[str, str]) -> Iterator[str]:
    yield element.text or ""
    for inline in element:
        if local_name(inline) in _TAGS_OF_TEXT:
            if inline.get("mtype") != _DELETED:
                yield from _inline_text(inline, codes)
        else:
            yield _equivalent_text(inline, codes)
        yield inline.tail or ""


def _equivalent_text(inline: ElementTree.Element, codes: Mapping[str, str]) -> str:
    """Return the text in place of an inline tag: a space for a line break, nothing for markup such as bold."""
    equivalent = inline.get("equiv-text") or inline.get("equiv") or ""
    code = inline.text or codes.get(inline.get("dataRef", "")) or equivalent
    kinds = (inline.get(name) or "" for name in ("ctype", "type", "subType"))
    if any(is_line_break(kind, code) for kind in kinds):
        return " "
    return "" if equivalent.lstrip().startswith("<") else equivalent
