"""Numbers of many scripts and habits of writing, and when two sides contradict each other."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining.numbers import Quantity, agree, contradiction, leftovers, quantities


def values(text):
    return [number.digits * 10.0**number.power for number in quantities(text)]


READING: list[tuple[str, list[float]]] = [
    ("no number, ½, m², Ⅳ, ③, 二十", []),
    ("1,234.5", [1234.5]),
    ("1.234,5", [1234.5]),
    ("1 234 567", [1234567]),
    ("1\u202f234,5", [1234.5]),
    ("1'234'567", [1234567]),
    ("12,34,567", [1234567]),
    ("3,5 %", [3.5]),
    ("0,75", [0.75]),
    ("007", [7]),
    ("12.03.2004", [12, 3, 2004]),
    ("2004-03-12", [2004, 3, 12]),
    ("20:15", [20, 15]),
    ("v1.2.3", [1, 2, 3]),
    ("３，５００ 円", [3500]),
    ("１２", [12]),
    ("١٢٬٣٤٥٫٦", [12345.6]),
    ("۱۲", [12]),
    ("१२ मार्च २०२०", [12, 2020]),
    ("๑๒", [12]),
    ("3.5万", [35000]),
    ("1亿5千万", [1.5e8]),
    ("3千亿美元", [3e11]),
    ("9만4000원", [94000]),
    ("2-3万人", [20000, 30000]),
    ("230—260亿", [2.3e10, 2.6e10]),
    ("5 लाख और 2 करोड़", [500000, 2e7]),
    ("in 1984 300 people", [1984, 300]),
    ("COVID-19, A380", [19, 380]),
    ("a &#8212; b", []),
    ("0", [0]),
    ("0.0", [0]),
]


def test_reading():
    for text, expected in READING:
        assert values(text) == pytest.approx(expected), text


def test_very_long_digits_are_read_in_time():
    """Python refuses to turn more than 4300 digits into an int; nor may separators cost quadratic time."""
    assert len(quantities("9" * 10_000)) == 1
    assert len(quantities("1.2" * 20_000)) > 1000


@given(st.integers(0, 10**9))
def test_written_forms_of_one_number_agree(number):
    forms = [str(number), f"{number:,}", f"{number:,}".replace(",", "."), f"{number:,}".replace(",", "\u00a0")]
    forms.append(str(number).translate({48 + digit: 0x660 + digit for digit in range(10)}))
    first = quantities(forms[0])
    for form in forms[1:]:
        read = quantities(form)
        assert len(read) == 1
        assert agree(first[0], read[0])


AGREEING = [
    ("Ich habe 3 Bücher.", "I have three books."),
    ("2,5 Millionen Euro", "2,500,000 euros"),
    ("12亿", "1.2 billion"),
    ("在2006年，约1亿5千万移民汇去3千亿美元", "In 2006, 150 million migrants sent $300 billion"),
    ("Um 20.15 Uhr", "At 8:15 pm"),
    ("um 19.30 Uhr", "at 19:30"),
    ("Ende der 98er Saison", "at the end of the 1998 season"),
    ("12.03.2004", "March 12, 2004"),
    ("في عام ٢٠٠٤", "in 2004"),
    ("५० %", "50 %"),
    ("Am 5. Mai", "on May 5th"),
    ("no digits", "gar keine"),
    ("3000 Leute", "three thousand people"),
    ("198 Leute", "many people"),
    ("12", "12000"),
]
CONTRADICTING = [
    ("Ich habe 3 Bücher.", "I have 4 books."),
    ("1998年", "in 1988"),
    ("50 %", "15 %"),
    ("Er wog ٩٠ kg", "He weighed 80 kg"),
    ("10 oder 20", "10 or 30"),
    ("10 und 10 und 12", "10 and 12 and 12"),
    ("12", "120"),
    ("Im Jahr 1987 starb er.", "Then he died."),
]


def test_agreement_and_contradiction():
    for way in (1, -1):
        assert [pair for pair in AGREEING if contradiction(*pair[::way]) is not None] == []
        assert [pair for pair in CONTRADICTING if contradiction(*pair[::way]) is None] == []
    found = contradiction("10 oder 20 im Jahr 1990", "10 or 2.5 in 1990")
    assert found == {"source": ["20"], "target": ["25e-1"]}


NUMBERS = st.lists(st.builds(Quantity, st.integers(1, 9), st.integers(0, 1)), max_size=6)


@given(NUMBERS, NUMBERS)
def test_leftovers_of_small_numbers_are_multiset_differences(source, target):
    """Digits 1 to 9, times 1 or 10: nothing agrees but equals, except for a clock's 8 and 20 (10 hours apart: none)."""
    left, right = leftovers(source, target)
    clock = {(Quantity(small, 0), Quantity(2, 1)) for small in (8,)}
    clock |= {(two, one) for one, two in clock}
    possible = any((one, two) in clock for one in source for two in target)
    if not possible:
        assert Counter(left) == Counter(source) - Counter(target)
        assert Counter(right) == Counter(target) - Counter(source)
    mirrored = leftovers(target, source)
    assert (len(mirrored[1]), len(mirrored[0])) == (len(left), len(right))
