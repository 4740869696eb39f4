"""Translation memories (TMX 1.4): the texts of two languages, unit by unit, in bounded memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from st_xling.data.check import FaultLog
from st_xling.data.columns import LanguagePair, NumberedRow
from st_xling.data.pairs import COLUMNS
from st_xling.data.xml_units import NOT_XML, XML_LANG, is_line_break, local_name, normalize_spaces, unit_events
from st_xling.utils.languages import base_language, canonical_language, match_language, resolve_pair
from st_xling.utils.text import ParallelTextError


def tmx_rows(path: str | Path, faults: FaultLog, languages: LanguagePair = (None, None)) -> Iterator[NumberedRow]:
    """Read the translation units of a TMX file that have both languages, numbered from 1.

    Languages are compared without region: ``en`` finds ``EN-US``. Of two variants of a language in one unit the
    language that is chosen must name one, by its script or region: ``zh_Hant`` finds ``zh-TW`` next to ``zh-CN``.
    Inline tags and formatting codes are dropped; a code for a line break is a space.

    Args:
        path: ``.tmx``, plain or packed; UTF-8 or UTF-16.
        faults: Where units with control characters or without the text of a segment are noted.
        languages: Source and target. Otherwise those of the file's name, or the first two of the first unit, English as
            the target.

    Raises:
        ParallelTextError: For malformed XML, with its line; for a unit of more than 4 MiB; for a unit with two variants
            of a language of which none is chosen; for tags more than 100 deep.
    """
    memory = _TranslationMemory(path, faults, resolve_pair(path, *languages), is_chosen=None not in languages)
    number = 0
    for number, unit in translation_units(path):
        row = memory.read_unit(number, unit)
        if row is not None:
            yield row
    memory.finish(number)


def translation_units(path: str | Path) -> Iterator[tuple[int, ElementTree.Element]]:
    """Yield the translation units of a TMX file, numbered from 1; each is only there until the next one is read.

    Raises:
        ParallelTextError: For malformed XML, with its line; for a unit of more than 4 MiB; for tags more than 100 deep.
    """
    body = None
    for is_end, tag, element, number in unit_events(path, "TMX", "tu"):
        if not is_end:
            if tag == "body":
                body = element
        elif tag == "tu":
            yield number, element
            if body is not None:
                body.clear()  # units that were read would fill the memory


def header_property(path: str | Path, kind: str) -> str | None:
    """Return the text of a property in the header of a TMX file; ``None`` if there is none."""
    for is_end, tag, element, _ in unit_events(path, "TMX", "tu"):
        if is_end and tag == "header":
            properties = element.iterfind("{*}prop")
            return next((entry.text for entry in properties if entry.get("type") == kind), None)
        if tag == "body":
            break
    return None


def unit_texts(unit: ElementTree.Element) -> list[str | None]:
    """Return the texts of a translation unit in their order; ``None`` where a segment is missing."""
    return [_segment_text(variant) for variant in unit.iterfind("{*}tuv")]


@dataclass
class _TranslationMemory:
    """Languages of a translation memory, and which of them are read.

    Attributes:
        path: The file.
        faults: Where faults are noted.
        languages: Source and target; ``None`` until the first unit names it.
        is_chosen: Whether the caller chose both languages.
        units: Language → number of units that have it.
        codes_read: Language that is read → the codes in the file that were read for it.
        rows: Number of units that had both languages.
        repeated: Number of texts that are the second of their unit in one language.
        unnamed: Number of texts without a language.
    """

    path: str | Path
    faults: FaultLog
    languages: LanguagePair
    is_chosen: bool
    units: Counter[str] = field(default_factory=Counter)
    codes_read: dict[str, set[str]] = field(default_factory=dict)
    rows: int = 0
    repeated: int = 0
    unnamed: int = 0

    def read_unit(self, number: int, unit: ElementTree.Element) -> NumberedRow | None:
        """Return the row of a unit; ``None`` if it lacks a language, or has a fault, which is noted."""
        texts: dict[str, str | None] = {}
        for variant in unit.iterfind("{*}tuv"):
            code = spelled_code(variant.get(XML_LANG) or variant.get("lang") or "")
            if not code:
                self.unnamed += 1
            elif code in texts:
                self.repeated += 1
            else:
                texts[code] = _segment_text(variant)
        self.units.update(texts.keys())
        if None in self.languages and len(texts) > 1:
            self.languages = _choose_languages(self.languages, texts)

        source = self._find_code(number, self.languages[0], texts)
        target = self._find_code(number, self.languages[1], texts)
        if source is None or target is None or source == target:
            return None
        self.rows += 1
        for code in (source, target):
            text = texts[code]
            if text is None:
                self.faults.add(self.path, number, "no segment", f"the tuv of {code} has no seg")
                return None
            if NOT_XML in text:
                self.faults.add(self.path, number, "control character", f"in the text of {code}")
                return None
        return number, dict(zip(COLUMNS, (texts[source], texts[target], *self.languages)))

    def _find_code(self, number: int, language: str | None, texts: Mapping[str, str | None]) -> str | None:
        """Return the code of a language in a unit; ``None`` if the unit does not have the language."""
        if language is None:
            return None
        code = match_language(language, texts)
        if code is not None:
            self.codes_read.setdefault(language, set()).add(code)
            return code
        variants = [code for code in texts if base_language(code) == base_language(language)]
        if len(variants) > 1:
            raise ParallelTextError(
                f"{self.path}: expected one text in {language!r}, got {' and '.join(variants)} in unit {number}; name "
                f"the one to read, such as {variants[0]}, before the file: xx-yy={self.path}"
            )
        return None

    def finish(self, units: int) -> None:
        """Note what was not read, after the last unit."""
        if units and not self.rows:
            languages = " and ".join(filter(None, self.languages)) or "two languages"
            facts = [f"no unit has {languages}"]
            if self.units:
                facts.append(f"its languages are {', '.join(self.units)}")
            if self.unnamed:
                facts.append(f"{self.unnamed:,} texts have no xml:lang")
            self.faults.note(f"{self.path}: {'; '.join(facts)}")
            return

        for language, codes in self.codes_read.items():
            if len(codes) > 1:
                self.faults.note(
                    f"{self.path}: {' and '.join(sorted(codes))} are both read as {language}; name one to read it alone"
                )
        all_codes_read = set().union(*self.codes_read.values())
        others = [f"{code} ({count:,} units)" for code, count in self.units.items() if code not in all_codes_read]
        if others and not self.is_chosen:
            read_languages = " and ".join(map(str, self.languages))
            self.faults.note(
                f"{self.path}: {read_languages} are read, and not {', '.join(others)}; name two languages to read "
                f"others, as in xx-yy={self.path}"
            )
        if self.repeated:
            self.faults.note(
                f"{self.path}: {self.repeated:,} texts are the second of their unit in one language, and are not read"
            )


def _choose_languages(languages: LanguagePair, codes: Mapping[str, str | None]) -> LanguagePair:
    """Fill in the languages that are not known by those of a unit, English as the target."""
    source, target = languages
    candidates = []
    for code in codes:
        is_source = source is not None and match_language(source, [code])
        is_target = target is not None and match_language(target, [code])
        if not is_source and not is_target:
            candidates.append(code)
    candidates.sort(key=lambda code: canonical_language(code) == "eng")
    if not candidates:
        return languages
    return source or candidates[0], target or candidates[-1]


def spelled_code(text: str) -> str:
    """Return a language code with the usual capitals, divided as it is.

    Example:
        >>> [spelled_code(code) for code in ("EN-US", "zh_cn", "ZH-HANT-TW", "de")]
        ['en-US', 'zh_CN', 'zh-Hant-TW', 'de']
    """
    language, *subtags = re.split("([-_])", text.strip())
    spelled = [language.lower()]
    for subtag in subtags:
        if len(subtag) == 2:  # a region
            subtag = subtag.upper()
        elif len(subtag) == 4:  # a script
            subtag = subtag.capitalize()
        spelled.append(subtag)
    return "".join(spelled)


def _segment_text(variant: ElementTree.Element) -> str | None:
    """Return the text of a variant; ``None`` if it has no segment."""
    segment = variant.find("{*}seg")
    if segment is None:
        return None
    return normalize_spaces("".join(_inline_text(segment)))


def _inline_text(element: ElementTree.Element) -> Iterator[str]:
    """Yield the text of a segment: what ``hi`` highlights, but not the formatting codes inside ``bpt``, ``ph``, …"""
    yield element.text or ""
    for inline in element:
        if local_name(inline) == "hi":
            yield from _inline_text(inline)
        elif _is_line_break(inline):
            yield " "
        yield inline.tail or ""


def _is_line_break(inline: ElementTree.Element) -> bool:
    return is_line_break(inline.get("type") or inline.get("ctype") or "", inline.text)
