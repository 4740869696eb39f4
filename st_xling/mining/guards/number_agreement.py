"""Guard ``numbers``: the two sides name different numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar

from st_xling.mining.guards.candidates import CandidateBatch, Verdict
from st_xling.mining.guards.letters import REMEMBERED
from st_xling.mining.guards.quantities import Quantity, agree, quantities, split_clock


@dataclass(frozen=True)
class NumbersGuard:
    """Turns down a pair in which numbers written with digits contradict each other.

    Numbers of one side are matched with equal ones of the other, each once (:func:`~st_xling.mining.guards.agree`). A
    24-hour clock matches a 12-hour one (20 and 8), and a year its last two digits (1998 and 98). What is then left over
    decides:

    - on both sides: a contradiction ("3 books", "4 Bücher");
    - on one side only: nothing, since the other may have spelled it out ("12", "twelve"), named a month or left out a
      repetition, unless a number of at least ``missing_digits`` digits is missing: 1987 is hardly ever spelled out.

    A fraction that could be a time of day or a day and month (16.30) is read as such where that resolves a
    contradiction. Conversions (10 km, 6 miles) count as contradictions.

    Args:
        missing_digits: Significant digits from which a number on one side must have a partner, 1 or more; trailing
            zeros do not count, as "3000" is spelled out readily. 0: never. At 4, three in a thousand true pairs are
            turned down, most of them for an error in the data, and twice as many wrong pairs as at 0.
    """

    missing_digits: int = 4
    reason: ClassVar[str] = "numbers"

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        return [self._verdict(source, target) for source, target in zip(batch.sources, batch.targets)]

    def _verdict(self, source: str, target: str) -> Verdict | None:
        of_source, of_target = known_quantities(source), known_quantities(target)
        if not of_source and not of_target:
            return None
        of_source, of_target = leftovers(of_source, of_target)
        if of_source and of_target and any(number.power in (-1, -2) for number in (*of_source, *of_target)):
            split = leftovers(_split(of_source), _split(of_target))
            if not all(split):
                of_source, of_target = split
        missing = self.missing_digits and any(
            number.digits >= 10 ** (self.missing_digits - 1) for number in of_source or of_target
        )
        if (of_source and of_target) or missing:
            return Verdict({"source": [*map(_plain, of_source)], "target": [*map(_plain, of_target)]}, None)
        return None


@lru_cache(maxsize=REMEMBERED)
def known_quantities(text: str) -> list[Quantity]:
    """As :func:`~st_xling.mining.guards.quantities.quantities`; a list that is shared, not to be changed."""
    return quantities(text)


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
    found = {number + 12} if 0 <= number <= 12 else set()
    if 12 <= number <= 24:
        found.add(number - 12)
    if 10 <= number < 100:
        found.update(range(1000 + number, 2100, 100))
    if 1000 < number < 2100 and number % 100 >= 10:
        found.add(number % 100)
    return frozenset(found)


def _whole(number: Quantity) -> int:
    """The number if it is whole and below a million, else -1."""
    return number.digits * 10**number.power if 0 <= number.power <= 6 and number.digits < 10**6 else -1


def _plain(number: Quantity) -> str:
    return str(_whole(number)) if _whole(number) >= 0 else f"{number.digits}e{number.power}"
