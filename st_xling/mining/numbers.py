"""Numbers written with digits, whatever digits and separators, and whether those of two sentences contradict."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

#: Sentences that are remembered: a sentence is in several candidates, most of them near.
REMEMBERED = 1 << 14

# Digits joined by separators; a space joins only groups of exactly three digits after one to three. Then a scale. Not
# the number of an HTML character reference: &#8212; is a dash.
_SPACE = "[ \u00a0\u2009\u202f]"
_NUMBER = re.compile(
    rf"(?<!\d)(?<!&#)(\d{{1,3}}(?:{_SPACE}\d{{3}})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,'’٫٬]\d+)*)"
    r"(\s?(?:[百千천]?[万萬亿億만억]|लाख|करोड़))?"
)
# Between other digits this comma separates clauses.
_WIDE_COMMA = re.compile("(?<=[０-９])，(?=[０-９])")
_DIGIT, _NO_DIGIT = re.compile(r"\d"), re.compile(r"\D")
_POWERS = {"百": 2, "千": 3, "천": 3, "万": 4, "萬": 4, "만": 4, "亿": 8, "億": 8, "억": 8, "लाख": 5, "करोड़": 7}
_POWERS = {unicodedata.normalize("NFC", word): power for word, power in _POWERS.items()}
# On one side only, such a number is missing from the other.
_NOT_SPELLED_OUT = 1000
_RANGE = re.compile(r"\s?[-‐-―~～〜至到]\s?")


class Quantity(NamedTuple):
    """A number as ``digits * 10**power``, ``digits`` without zeros at its end (0 is ``(0, 0)``)."""

    digits: int
    power: int


class _AsciiDigits(dict[int, int]):
    """A table for ``str.translate``: every decimal digit of Unicode becomes its ASCII form, nothing else changes."""

    def __missing__(self, code: int) -> int:
        value = unicodedata.decimal(chr(code), None)
        self[code] = code if value is None else 48 + int(value)
        return self[code]


_ASCII_DIGITS = _AsciiDigits()


def quantities(text: str) -> list[Quantity]:
    """The numbers written with digits in a text, in order.

    Digits of any script count (１２, ١٢, १२). ``1,234.5``, ``1.234,5``, ``1 234,5`` and ``12,34,567`` are read as
    one number each; ``12.03.2004`` and ``1.2.3`` as three. ``1.234`` is a thousand or a fraction, there is no knowing:
    it is read as 1234, and :func:`agree` takes both. The scales 万, 亿, 만, 억, लाख and करोड़ multiply, ``1亿5千万``
    is a sum, and in ``2-3万`` both ends are scaled: they are no powers of a thousand, so :func:`agree` needs them read.
    Words, Roman numerals, superscripts and fractions such as ½ are not read.

    Example:
        >>> quantities("Им 3,5 и １２００")
        [Quantity(digits=35, power=-1), Quantity(digits=12, power=2)]
    """
    if not _DIGIT.search(text):
        return []
    if not text.isascii():
        text = _WIDE_COMMA.sub(",", unicodedata.normalize("NFC", text)).translate(_ASCII_DIGITS)
    numbers: list[Quantity] = []
    end, scale = 0, 0  # where the number before ends, and the power of ten that its scale has
    for match in _NUMBER.finditer(text):
        own = _scale(match[2]) if match[2] else 0
        *others, last = _read(match[1])
        last = _scaled(last, own)
        if numbers and not others:
            if scale > 0 and own < scale and match.start() == end and len(str(last.digits)) + last.power <= scale:
                last = _sum(numbers.pop(), last)
            elif own and not scale and _RANGE.fullmatch(text, end, match.start()):
                numbers[-1] = _scaled(numbers[-1], own)
        numbers += [*others, last]
        end, scale = match.end(), own
    return numbers


def agree(one: Quantity, other: Quantity) -> bool:
    """Whether two numbers may be the same.

    Equal, or apart by a factor of a thousand or a higher power of ten: a scale word ("1.2 million" and "1200000") or a
    thousands separator read as a decimal point. No list of scale words could cover every language.
    """
    return one.digits == other.digits and (one.power == other.power or abs(one.power - other.power) >= 3)


def split_clock(number: Quantity) -> list[Quantity]:
    """``16.30`` as 16 and 30: a time of day, or a day and month, that was read as a fraction; else the number alone."""
    if number.power not in (-1, -2):
        return [number]
    whole, rest = divmod(number.digits * 10 ** (number.power + 2), 100)
    return [_quantity(str(whole), 0), _quantity(str(rest), 0)] if whole <= 31 and rest < 60 else [number]


def _read(number: str) -> list[Quantity]:
    """One matched run as one number, or as several when its separators make no number."""
    if number.isdecimal():
        return [_quantity(number, 0)]
    groups, separators = _NO_DIGIT.split(number), _NO_DIGIT.findall(number)
    # The last separator is a decimal one if it differs from those before it, or is alone and not before three digits.
    last_differs = len(separators) > 1 and separators[-1] != separators[-2]
    fraction = groups[-1] if last_differs or (len(separators) == 1 and len(groups[1]) != 3) else ""
    whole = groups[:-1] if fraction else groups
    before = separators[: len(whole) - 1]
    # Thousands: one kind of separator; two or three digits between separators (12,34,567), three at the end.
    thousands = len(whole) == 1 or (
        len(set(before)) == 1
        and len(whole[0]) <= 3
        and len(whole[-1]) == 3
        and all(len(group) in (2, 3) for group in whole[1:])
    )
    if not thousands:
        return [_quantity(group, 0) for group in groups]
    return [_quantity("".join(whole) + fraction, -len(fraction))]


def _scale(words: str) -> int:
    words = words.strip()
    return _POWERS[words] if words in _POWERS else sum(_POWERS[character] for character in words)


def _scaled(number: Quantity, power: int) -> Quantity:
    return Quantity(number.digits, number.power + power) if number.digits else number


def _sum(large: Quantity, small: Quantity) -> Quantity:
    power = min(large.power, small.power)
    total = sum(number.digits * 10 ** (number.power - power) for number in (large, small))
    return _quantity(str(total), power)


def _quantity(digits: str, power: int) -> Quantity:
    significant = digits.lstrip("0").rstrip("0")
    if not significant:
        return Quantity(0, 0)
    # Numbers beyond 300 digits are no quantities; Python refuses to convert beyond 4300.
    return Quantity(int(significant[:300]), power + len(digits) - len(digits.rstrip("0")))


def contradiction(source: str, target: str) -> dict[str, list[str]] | None:
    """Return the numbers that contradict each other in a pair of sentences, by side; ``None`` if none do.

    Numbers of one side are matched with equal ones of the other, each once (:func:`agree`). A
    24-hour clock matches a 12-hour one (20 and 8), and a year its last two digits (1998 and 98). What is then left over
    decides:

    - on both sides: a contradiction ("3 books", "4 Bücher");
    - on one side only: nothing, since the other may have spelled it out ("12", "twelve"), named a month or left out a
      repetition, unless a number of four digits or more is missing, zeros at its end not counted: 1987 is hardly ever
      spelled out. That rejects three in a thousand true pairs, most of them for an error in the data, and twice as
      many wrong pairs as not to mind.

    A fraction that could be a time of day or a day and month (16.30) is read as such where that resolves a
    contradiction. Conversions (10 km, 6 miles) count as contradictions.
    """
    of_source, of_target = leftovers(known_quantities(source), known_quantities(target))
    if of_source and of_target and any(number.power in (-1, -2) for number in (*of_source, *of_target)):
        split = leftovers(_split(of_source), _split(of_target))
        if not all(split):
            of_source, of_target = split
    missing = any(number.digits >= _NOT_SPELLED_OUT for number in of_source or of_target)
    if (of_source and of_target) or missing:
        return {"source": [*map(_plain, of_source)], "target": [*map(_plain, of_target)]}
    return None


# A list that is shared, not to be changed.
known_quantities = lru_cache(maxsize=REMEMBERED)(quantities)


def leftovers(source: list[Quantity], target: list[Quantity]) -> tuple[list[Quantity], list[Quantity]]:
    """The numbers of either side that have no partner on the other.

    Equal numbers are matched before those that merely agree, and those before clocks and years, so that no lenient
    match takes the partner of a strict one. Swapping the sides swaps the result.
    """
    # Most pairs of sentences that are no translations share nothing: what can match at all is looked for first.
    target = list(target)
    if not set(source).isdisjoint(target):
        source, target = _unmatched(source, target, Quantity.__eq__)
    digits = {number.digits for number in target}
    if any(number.digits in digits for number in source):
        source, target = _unmatched(source, target, agree)
    wholes = set(map(_whole, target))
    if any(not wholes.isdisjoint(_hours_and_years(_whole(number))) for number in source):
        source, target = _unmatched(source, target, _same_hour_or_year)
    return source, target


def _unmatched(
    source: list[Quantity], target: list[Quantity], match: Callable[[Quantity, Quantity], bool]
) -> tuple[list[Quantity], list[Quantity]]:
    unmatched, target = [], list(target)
    for number in source:
        partner = next((row for row, other in enumerate(target) if match(number, other)), None)
        if partner is None:
            unmatched.append(number)
        else:
            del target[partner]
    return unmatched, target


def _split(numbers: list[Quantity]) -> list[Quantity]:
    return [part for number in numbers for part in split_clock(number)]


def _same_hour_or_year(one: Quantity, other: Quantity) -> bool:
    return _whole(other) in _hours_and_years(_whole(one))


@cache
def _hours_and_years(number: int) -> frozenset[int]:
    """What a whole number may be on another clock, or with other digits of the year."""
    same = {number + 12} if 0 <= number <= 12 else set()
    if 12 <= number <= 24:
        same.add(number - 12)
    if 10 <= number < 100:
        same.update(range(1000 + number, 2100, 100))
    if 1000 < number < 2100 and number % 100 >= 10:
        same.add(number % 100)
    return frozenset(same)


def _whole(number: Quantity) -> int:
    """The number if it is whole and below a million, else -1."""
    return number.digits * 10**number.power if 0 <= number.power <= 6 and number.digits < 10**6 else -1


def _plain(number: Quantity) -> str:
    return str(_whole(number)) if _whole(number) >= 0 else f"{number.digits}e{number.power}"
