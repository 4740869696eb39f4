"""Hard near-translations: English sentences with one place changed, so that they mean something else (xsim++)."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

#: What a change is about.
HARD_CATEGORIES = ("causality", "entity", "number")

_CATEGORY = {kind: "causality" for kind in ("negation", "antonym", "cause")} | {"number": "number", "date": "number"}
# Rows of a lexicon that are no swaps, but tell where swaps may be.
_LISTS = ("keep", "negatives", "not_before", "not_after", "titles", "surname", "places", "articles", "not_names")
# Their words are spelled as they are in running text, at any place.
_EXACT = ("date", "country", "nationality", "city", "organisation", "given", "person")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_NUMBER = re.compile(r"(?<![\w.,:/+-])\d+(?:[.,]\d{3})*(?:[.,]\d+)?(?![\w/:]|[.,-]\d)", re.ASCII)
_OPENING = re.compile(r"(?:^|[.!?:…]\W*\s|[\"“„«‘¿¡])\W*$")
# English words before which "a" is "an", numbers of eight, eleven and eighteen among them.
_AN = re.compile(r"[aio]|e(?!u)|u(?!kr|ni[^m]|s[ae])|8|1[18]\b", re.IGNORECASE)


@dataclass(frozen=True)
class HardTranslation:
    """A sentence that is nearly another one.

    Attributes:
        text: The text; NFC.
        index: Of the sentence that it was made from.
        category: One of :data:`HARD_CATEGORIES`.
        kind: More closely: ``negation``, ``antonym``, ``cause``; ``number``, ``date``; ``country``, ``nationality``,
            ``city``, ``organisation``, ``given`` (name), ``surname``, ``person``.
    """

    text: str
    index: int
    category: str
    kind: str


_Edit = tuple[int, int, str, str]
"""Start and end of what is replaced, its replacement, and the kind of the change."""


@dataclass
class _Lexicon:
    """The swaps of ``swaps/en.tsv``.

    Attributes:
        swaps: Lower-cased words → what replaces them: (words as they must be spelled, replacement, kind).
        lists: Words that tell where a swap may be, by the row's name.
        rewrites: Regular expressions, their replacements, their kinds.
        groups: Words of each kind that replace each other.
        pattern: Finds the keys of ``swaps`` and what is to be kept, longest first.
    """

    swaps: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    rewrites: list[tuple[re.Pattern[str], str, str]] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    pattern: re.Pattern[str] = re.compile("")


def hard_translations(sentences: Sequence[str], *, seed: int = 0, most: int = 4) -> list[HardTranslation]:
    """English sentences that differ from the given ones in one place and mean something else.

    Negation is added or removed, a word becomes its opposite, a cause an obstacle; numbers in digits and in words,
    weekdays and months change; names give way to others of their kind. Names are known by small lists and by capital
    letters. No text comes twice, and none is one of ``sentences``.

    Args:
        sentences: English texts.
        seed: Of what is drawn; what a sentence gives depends on it and, but for repetitions, on that sentence alone.
        most: Of a sentence, in each category.
    Source:
        Chen et al. 2023, "xsim++: An Improved Proxy to Bitext Mining Performance for Low-Resource Languages",
        section 2.1; lexicon and rules are our own, without models.
    Example:
        >>> [(hard.text, hard.kind) for hard in hard_translations(["We are late because of rain."], most=1)]
        [('We are late despite rain.', 'cause')]
    """
    lexicon = _lexicon()
    used = {unicodedata.normalize("NFC", sentence) for sentence in sentences}
    result = []
    for index, sentence in enumerate(sentences):
        text = unicodedata.normalize("NFC", sentence)
        lot = random.Random(f"{seed} {text}")
        counts = dict.fromkeys(HARD_CATEGORIES, 0)
        edits = list(_edits(text, lexicon, lot))
        lot.shuffle(edits)
        for start, end, new, kind in edits:
            category = _CATEGORY.get(kind, "entity")
            changed = _changed(text, start, end, new)
            if changed not in used and counts[category] < most:
                used.add(changed)
                counts[category] += 1
                result.append(HardTranslation(changed, index, category, kind))
    return result


@cache
def _lexicon() -> _Lexicon:
    lexicon = _Lexicon()
    for line in (files(__package__) / "swaps" / "en.tsv").read_text(encoding="utf-8").splitlines():
        kind, *cells = line.split("\t")
        columns = [cell.split("|") for cell in cells]
        if kind.startswith("#"):
            continue
        if kind.endswith(">"):
            lexicon.rewrites.append((_whole(cells[0]), "" if cells[1] == "-" else cells[1], kind[:-1]))
            continue
        if kind in _LISTS:
            lexicon.lists[kind] = columns[0]
            continue
        if len(columns) == 2:
            pairs = [pair for one, other in zip(*columns) for pair in ((one, other), (other, one))]
        else:
            lexicon.groups.setdefault(kind, []).extend(columns[0])
            pairs = [(one, other) for one in columns[0] for other in columns[0] if one != other]
        for word, other in pairs:
            lexicon.swaps.setdefault(word.lower(), []).append((word, other, kind))
    words = sorted({*lexicon.swaps, *lexicon.lists["keep"]}, key=len, reverse=True)
    lexicon.pattern = _whole("|".join(map(re.escape, words)))
    return lexicon


def _whole(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches between ends of words; hyphens and apostrophes are of the word."""
    return re.compile(rf"(?<![\w'-])(?:{pattern})(?![\w'-])", re.IGNORECASE)


def _edits(text: str, lexicon: _Lexicon, lot: random.Random) -> Iterator[_Edit]:
    shadow = text.replace("’", "'")
    for match in lexicon.pattern.finditer(shadow):
        choices = [each for each in lexicon.swaps.get(match[0].lower(), ()) if _fits(shadow, match, *each, lexicon)]
        for _, new, kind in lot.sample(choices, min(2, len(choices))):
            yield match.start(), match.end(), new, kind
    for pattern, template, kind in lexicon.rewrites:
        for match in pattern.finditer(shadow):
            yield match.start(), match.end(), match.expand(template), kind
    for match in _NUMBER.finditer(text):
        for new in dict.fromkeys(_other_number(match[0], lot) for _ in range(2)):
            yield match.start(), match.end(), new, "number"
    yield from _names(text, lexicon, lot)


def _fits(text: str, match: re.Match[str], word: str, other: str, kind: str, lexicon: _Lexicon) -> bool:
    """Return whether a word may become another here."""
    before, after = text[: match.start()], text[match.end() :]
    if match[0] != word and (kind in _EXACT or match[0] != _capitalised(word) or not _OPENING.search(before)):
        return False
    if kind != "negation":
        return True
    negatives = set(lexicon.lists["negatives"])
    parts, others = (set(re.split(r"\W+", each.lower())) for each in (word, other))
    if not negatives & (others - parts):
        return True
    # A negation is added: not next to another, nor where a question turns the words around, nor before a noun alone.
    words = re.findall(r"\w+", before.lower())
    if negatives & set(re.findall(r"\w+", text.lower())) or (words and words[-1] in lexicon.lists["not_after"]):
        return False
    if not other.startswith(word) and not parts <= others:  # another word is in its place
        return True
    following = re.match(r" (\w+)", after)
    if match[0] != word or following is None or following[1] in lexicon.lists["not_before"]:
        return False
    return following[1].islower() or following[1].isdigit()


def _changed(text: str, start: int, end: int, new: str) -> str:
    """Return the text with a place replaced, and the article before it that fits."""
    before, old, after = text[:start], text[start:end], text[end:]
    if old[:1].isupper() and _OPENING.search(before):
        new = _capitalised(new)
        after = after if new else _capitalised(after)
    if previous := re.search(r"\b([Aa])n? $", before):
        before = before[: previous.start()] + previous[1] + ("n " if _AN.match(new) else " ")
    return before + new + after


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _other_number(digits: str, lot: random.Random) -> str:
    """Draw a number of as many digits, written alike; years stay near, days and hours small, one is left alone."""
    value = int(digits) if digits.isdecimal() and len(digits) < 19 else None
    if value is not None and len(digits) == 4 and 1000 <= value < 2100:
        return str(lot.choice([year for year in range(value - 40, value + 16) if year != value]))
    if value is not None and 2 <= value <= 28 and digits[0] != "0":
        return str(lot.choice([other for other in range(2, 29) if len(str(other)) == len(digits) and other != value]))
    if value in (0, 1):
        return digits
    places = [place for place, digit in enumerate(digits) if digit.isdecimal() and (digit != "0" or not place)]
    place = lot.choice(places[:2] if places else [0])
    other = lot.choice([digit for digit in "123456789" if digit != digits[place]])
    return digits[:place] + other + digits[place + 1 :]


def _names(text: str, lexicon: _Lexicon, lot: random.Random) -> Iterator[_Edit]:
    """Names that no list has, by capital letters within a sentence, titles and given names before them."""
    words = list(_WORD.finditer(text))
    capital = [_looks_like_name(word[0]) and text[: word.start()][-1:] in " \u00a0\"'“‘«(¿¡[" for word in words]
    if len(words) > 3 and 2 * sum(capital) > len(words):  # a headline
        return
    known = {part for name in _EXACT for each in lexicon.groups.get(name, ()) for part in each.split()}
    no_name = re.compile("|".join(lexicon.lists["not_names"]))
    given, surnames = lexicon.groups["given"], lexicon.lists["surname"]
    row = 0
    while row < len(words):
        end = row
        while end < len(words) and capital[end] and (end == row or _gap(text, words, end) in " \u00a0"):
            end += 1
        run, start, row = words[row:end], row, max(end, row + 1)
        if not run:
            continue
        titles = lexicon.lists["titles"]
        titled = start > 0 and words[start - 1][0] in titles and _gap(text, words, start) in (" ", ". ")
        while run and run[0][0] in titles:
            run, start, titled = run[1:], start + 1, True
        if not run:
            continue
        previous = words[start - 1][0].lower() if start else ""
        opening = bool(_OPENING.search(text[: run[0].start()]))
        if len(run) > 1 and run[0][0] in given:
            run, kind, choices = run[1:], "surname", surnames
        elif titled and run[0][0] not in given:
            kind, choices = "surname", surnames
        elif opening or any(word[0] in known or no_name.fullmatch(word[0]) for word in run):
            continue
        elif previous in lexicon.lists["places"]:
            kind, choices = "city", lexicon.groups["city"]
        elif previous in lexicon.lists["articles"]:
            kind, choices = "organisation", lexicon.groups["organisation"] if len(run) > 1 else []
        elif len(run) == 1:
            kind, choices = "surname", surnames
        else:
            kind, choices = "person", [f"{one} {other}" for one in given[:8] for other in surnames]
        old = text[run[0].start() : run[-1].end()]
        choices = [name for name in choices if name != old]
        for new in lot.sample(choices, min(2, len(choices))):
            yield run[0].start(), run[-1].end(), new, kind


def _looks_like_name(word: str) -> bool:
    inner = "".join(part[1:] for part in word.split("-"))
    return word[0].isupper() and inner.islower()


def _gap(text: str, words: list[re.Match[str]], row: int) -> str:
    return text[words[row - 1].end() : words[row].start()]
