"""Hard near-translations: English sentences with one place changed, so that they mean something else (xsim++)."""

from __future__ import annotations

import itertools
import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple

#: What a change is about.
HARD_CATEGORIES = ("causality", "entity", "number")

# Kind of a change → category; all others are of entities.
_CATEGORIES = {
    "negation": "causality",
    "antonym": "causality",
    "cause": "causality",
    "number": "number",
    "date": "number",
}
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


class _Edit(NamedTuple):
    """Start and end of what is replaced, its replacement, and the kind of the change."""

    start: int
    end: int
    new: str
    kind: str


class _Swap(NamedTuple):
    """A word as it must be spelled, the word that replaces it, and the kind of the change."""

    word: str
    other: str
    kind: str


@dataclass
class _Lexicon:
    """The swaps of ``swaps/en.tsv``.

    Attributes:
        swaps: Lower-cased words → their swaps.
        lists: Words that tell where a swap may be, by the row's name.
        rewrites: Regular expressions, their replacements, their kinds.
        groups: Words of each kind that replace each other.
        pattern: Finds the keys of ``swaps`` and what is to be kept, longest first.
    """

    swaps: dict[str, list[_Swap]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    rewrites: list[tuple[re.Pattern[str], str, str]] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    pattern: re.Pattern[str] = re.compile("")

    def is_no_name(self, word: str) -> bool:
        """Return whether a word with a capital letter is in a list, or is no name."""
        return word in self._listed_words or self._not_names.fullmatch(word) is not None

    @cached_property
    def _listed_words(self) -> set[str]:
        words: set[str] = set()
        for kind in _EXACT:
            for name in self.groups.get(kind, ()):
                words.update(name.split())
        return words

    @cached_property
    def _not_names(self) -> re.Pattern[str]:
        return re.compile("|".join(self.lists["not_names"]))


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
        rng = random.Random(f"{seed} {text}")
        counts = dict.fromkeys(HARD_CATEGORIES, 0)
        edits = list(_possible_edits(text, lexicon, rng))
        rng.shuffle(edits)
        for edit in edits:
            category = _CATEGORIES.get(edit.kind, "entity")
            changed = _apply_edit(text, edit)
            if changed not in used and counts[category] < most:
                used.add(changed)
                counts[category] += 1
                result.append(HardTranslation(changed, index, category, edit.kind))
    return result


def check_hard_categories(categories: object, where: str = "categories") -> None:
    """Raise ``ValueError`` for what is no list, and for no category, an unknown one, or one that comes twice.

    Args:
        categories: A list of :data:`HARD_CATEGORIES`.
        where: Name of the option, for messages.
    """
    all_categories = ", ".join(HARD_CATEGORIES)
    if not isinstance(categories, (list, tuple)) or not categories:
        raise ValueError(f"{where} must name kinds of changes out of {all_categories}: got {categories!r}.")
    for category in categories:
        if category not in HARD_CATEGORIES:
            raise ValueError(f"{where} must be out of {all_categories}: got {category!r}.")
    if len(set(categories)) < len(categories):
        raise ValueError(f"{where} must name each kind once: got {', '.join(categories)}.")


@cache
def _lexicon() -> _Lexicon:
    lexicon = _Lexicon()
    table = (files(__package__) / "swaps" / "en.tsv").read_text(encoding="utf-8")
    for line in table.splitlines():
        kind, *cells = line.split("\t")
        if kind.startswith("#"):
            continue
        if kind.endswith(">"):
            pattern, replacement = cells
            if replacement == "-":
                replacement = ""
            lexicon.rewrites.append((_whole_words(pattern), replacement, kind[:-1]))
            continue
        columns = [cell.split("|") for cell in cells]
        if kind in _LISTS:
            lexicon.lists[kind] = columns[0]
            continue
        if len(columns) == 2:
            pairs = []
            for word, other in zip(*columns):
                pairs += [(word, other), (other, word)]
        else:
            lexicon.groups.setdefault(kind, []).extend(columns[0])
            pairs = [(word, other) for word, other in itertools.product(columns[0], repeat=2) if word != other]
        for word, other in pairs:
            lexicon.swaps.setdefault(word.lower(), []).append(_Swap(word, other, kind))
    words = sorted({*lexicon.swaps, *lexicon.lists["keep"]}, key=len, reverse=True)
    lexicon.pattern = _whole_words("|".join(map(re.escape, words)))
    return lexicon


def _whole_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches between ends of words; hyphens and apostrophes are of the word."""
    return re.compile(rf"(?<![\w'-])(?:{pattern})(?![\w'-])", re.IGNORECASE)


def _possible_edits(text: str, lexicon: _Lexicon, rng: random.Random) -> Iterator[_Edit]:
    straight = text.replace("’", "'")  # as the lexicon has it, and as long as the text
    for match in lexicon.pattern.finditer(straight):
        swaps = lexicon.swaps.get(match[0].lower(), ())
        choices = [swap for swap in swaps if _is_possible(straight, match, swap, lexicon)]
        for swap in rng.sample(choices, min(2, len(choices))):
            yield _Edit(match.start(), match.end(), swap.other, swap.kind)
    for pattern, template, kind in lexicon.rewrites:
        for match in pattern.finditer(straight):
            yield _Edit(match.start(), match.end(), match.expand(template), kind)
    for match in _NUMBER.finditer(text):
        numbers = [_other_number(match[0], rng) for _ in range(2)]
        for number in dict.fromkeys(numbers):
            yield _Edit(match.start(), match.end(), number, "number")
    yield from _name_edits(text, lexicon, rng)


def _is_possible(text: str, match: re.Match[str], swap: _Swap, lexicon: _Lexicon) -> bool:
    """Return whether a word may become another here."""
    before = text[: match.start()]
    after = text[match.end() :]
    if match[0] != swap.word:
        opens_sentence = match[0] == _capitalised(swap.word) and _OPENING.search(before) is not None
        if swap.kind in _EXACT or not opens_sentence:
            return False
    if swap.kind != "negation":
        return True
    negatives = set(lexicon.lists["negatives"])
    words = set(re.split(r"\W+", swap.word.lower()))
    other_words = set(re.split(r"\W+", swap.other.lower()))
    if not negatives & (other_words - words):
        return True
    # A negation is added: not next to another, nor where a question turns the words around, nor before a noun alone.
    previous = re.findall(r"\w+", before.lower())
    if negatives & set(re.findall(r"\w+", text.lower())):
        return False
    if previous and previous[-1] in lexicon.lists["not_after"]:
        return False
    if not swap.other.startswith(swap.word) and not words <= other_words:  # another word is in its place
        return True
    following = re.match(r" (\w+)", after)
    if match[0] != swap.word or following is None or following[1] in lexicon.lists["not_before"]:
        return False
    return following[1].islower() or following[1].isdigit()


def _apply_edit(text: str, edit: _Edit) -> str:
    """Return the text with a part replaced, and the article before it that fits."""
    before = text[: edit.start]
    old = text[edit.start : edit.end]
    after = text[edit.end :]
    new = edit.new
    if old[:1].isupper() and _OPENING.search(before):
        new = _capitalised(new)
        if not new:
            after = _capitalised(after)
    if previous := re.search(r"\b([Aa])n? $", before):
        article_end = "n " if _AN.match(new) else " "
        before = before[: previous.start()] + previous[1] + article_end
    return before + new + after


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _other_number(digits: str, rng: random.Random) -> str:
    """Draw a number of as many digits, written alike; years stay near, days and hours small, one is left alone."""
    value = int(digits) if digits.isdecimal() and len(digits) < 19 else None
    if value is not None and len(digits) == 4 and 1000 <= value < 2100:
        years = [year for year in range(value - 40, value + 16) if year != value]
        return str(rng.choice(years))
    if value is not None and 2 <= value <= 28 and digits[0] != "0":
        numbers = [number for number in range(2, 29) if len(str(number)) == len(digits) and number != value]
        return str(rng.choice(numbers))
    if value in (0, 1):
        return digits
    # One of the first two digits is changed; zeros only where they lead.
    positions = [index for index, digit in enumerate(digits) if digit.isdecimal() and (digit != "0" or index == 0)]
    position = rng.choice(positions[:2] if positions else [0])
    new_digit = rng.choice([digit for digit in "123456789" if digit != digits[position]])
    return digits[:position] + new_digit + digits[position + 1 :]


def _name_edits(text: str, lexicon: _Lexicon, rng: random.Random) -> Iterator[_Edit]:
    """Yield edits of names that no list has, by capital letters in a sentence, titles and given names before them."""
    words = list(_WORD.finditer(text))
    is_name = []
    for word in words:
        preceding = text[: word.start()][-1:]
        is_name.append(_looks_like_name(word[0]) and preceding in " \u00a0\"'“‘«(¿¡[")
    if len(words) > 3 and 2 * sum(is_name) > len(words):  # a headline
        return
    titles = lexicon.lists["titles"]
    for start, end in _name_runs(text, words, is_name):
        has_title = start > 0 and words[start - 1][0] in titles and _gap(text, words, start) in (" ", ". ")
        while start < end and words[start][0] in titles:
            start += 1
            has_title = True
        if start == end:
            continue
        names = [word[0] for word in words[start:end]]
        if len(names) > 1 and names[0] in lexicon.groups["given"]:
            start += 1  # the given name stays
            kind = "surname"
            choices = lexicon.lists["surname"]
        elif has_title and names[0] not in lexicon.groups["given"]:
            kind = "surname"
            choices = lexicon.lists["surname"]
        elif _OPENING.search(text[: words[start].start()]) or any(map(lexicon.is_no_name, names)):
            continue
        else:
            previous = words[start - 1][0].lower() if start else ""
            kind, choices = _other_names(names, previous, lexicon)
        name_start = words[start].start()
        name_end = words[end - 1].end()
        choices = [name for name in choices if name != text[name_start:name_end]]
        for name in rng.sample(choices, min(2, len(choices))):
            yield _Edit(name_start, name_end, name, kind)


def _other_names(names: Sequence[str], previous: str, lexicon: _Lexicon) -> tuple[str, list[str]]:
    """Return the kind of a name by the word before it and by its length, and names of this kind."""
    if previous in lexicon.lists["places"]:
        return "city", lexicon.groups["city"]
    if previous in lexicon.lists["articles"]:
        return "organisation", lexicon.groups["organisation"] if len(names) > 1 else []
    surnames = lexicon.lists["surname"]
    if len(names) == 1:
        return "surname", surnames
    persons = itertools.product(lexicon.groups["given"][:8], surnames)
    return "person", [f"{given_name} {surname}" for given_name, surname in persons]


def _name_runs(text: str, words: Sequence[re.Match[str]], is_name: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of words that look like names, with a space between them."""
    start = 0
    while start < len(words):
        end = start
        while end < len(words) and is_name[end] and (end == start or _gap(text, words, end) in " \u00a0"):
            end += 1
        if end > start:
            yield start, end
        start = max(end, start + 1)


def _looks_like_name(word: str) -> bool:
    without_initials = "".join(part[1:] for part in word.split("-"))
    return word[0].isupper() and without_initials.islower()


def _gap(text: str, words: Sequence[re.Match[str]], index: int) -> str:
    """Return the text between a word and the one before it."""
    return text[words[index - 1].end() : words[index].start()]
