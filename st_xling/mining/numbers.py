"""Numbers written with digits, whatever digits and separators, and whether those of two sentences contradict."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial

#: Sentences that are remembered: a sentence is in several candidates, most of them near.
REMEMBERED = 1 << 14

# Words of scale by their power of ten; * takes any ending. agree() ignores powers of a thousand, so these matter where
# a language has other powers (万, lakh, แสน) or writes sums ("2 million 500 thousand").
_SCALE_WORDS = """
1: 十 십 สิบ puluh chục
2: 百 백 ร้อย ຮ້ອຍ រយ hundred* hundert* honderd* सौ ratus trăm مئة مائة سو
3: 千 천 พัน ພັນ ពាន់ ထောင် thousand* tausend* tusen* tusind* duizend* mille mil mila mii tuhat* tuhan* tys tysi* tisíc*
3: tisuć* hiljad* tūkst* ezer* bin ribu nghìn ngàn elfu þúsund* тыс тысяч* тис тисяч* хиляд* хиљад* мың мянга χιλιάδ*
3: ألف ألفا ألفاً آلاف الاف هزار ہزار אלף אלפים हज़ार* हजार* হাজার* હજાર* ਹਜ਼ਾਰ* ஆயிர* వేల* ಸಾವಿರ* ആയിര* հազար* ათას* ሺህ
4: 万 萬 만 หมื่น ໝື່ນ ម៉ឺន သောင်း vạn
5: แสน ແສນ សែន သိန်း lakh* lac lacs लाख* লাখ* লক্ষ* લાખ* ਲੱਖ* லட்ச* இலட்ச* లక్ష* ಲಕ್ಷ* ലക്ഷ* لاکھ laki
6: ล้าน ລ້ານ លាន သန်း million* millió* millon* millón milió* milio* milho* milhões milhão miljo* milijon* milijun* milyon*
6: milljón* mio mln juta triệu млн миллион* мільйон* милион* εκατομμύρι* εκατ مليون* ملايين میلیون* ملین מיליון* сая
6: միլիոն* მილიონ* ሚሊዮን मिलियन* মিলিয়ন* மில்லியன்* దశలక్ష* മില്യൺ*
7: crore* करोड़* करोड* कोटी* कोटि* কোটি* કરોડ* ਕਰੋੜ* கோடி* కోట్ల* కోటి* ಕೋಟಿ* കോടി* کروڑ*
8: 亿 億 억
9: ຕື້ milliard* miljard* miliard* milijard* milyar* miliar mrd mld mia md bn billion* bilhão bilhões tỷ tỉ тэрбум
9: млрд миллиард* мільярд* милиард* милијард* δισεκατομμύρι* δισ مليار* میلیارد* ارب بليون* מיליארד* अरब* अर्ब* বিলিয়ন*
9: միլիարդ* მილიარდ* ቢሊዮን
11: खरब* کھرب
12: 兆 조 trillion* triliun* trilyun* billionen billón billones biljoen* biljon* bilion* трлн триллион* трильйон*
12: تريليون* تریلیون* ट्रिलियन*
"""
_POWERS = {
    unicodedata.normalize("NFC", word): int(line.split(":")[0])
    for line in _SCALE_WORDS.strip().splitlines()
    for word in line.split()[1:]
}
# Scripts without spaces between words: East Asian, Thai, Lao, Khmer and Burmese.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3400-\u9fff\uac00-\ud7ff]")
_UNSPACED_SCALE = "|".join(sorted(filter(_UNSPACED.match, _POWERS), key=len, reverse=True))
# A scale, or a word that may be one. Between a number and its scale may be "and some" (200多万, 200여만).
_SCALE = re.compile(
    rf"\s?[多余餘几幾数數여]?(?!百分)(?:({_UNSPACED_SCALE})|([^\W\d_][\w\u064b-\u0652\u0900-\u0dff]{{0,30}}))"
)

_SPACE = "[ \u00a0\u2007\u2009\u202f]"
# A date; digits in groups of three with spaces between; or digits joined by other separators. Each begins with a digit
# outside the alternatives, so that the search for it is fast.
_NUMBER = re.compile(
    r"\d(?:(?:\d{3}([./-])\d\d?\1\d\d?|\d?([./-])\d\d?\2(?:\d\d)?\d\d|\d?/\d\d?)(?![./-]?\d)(?P<date>)"
    rf"|\d{{0,2}}(?:{_SPACE}\d{{3}})+(?!\d)(?:[.,]\d+)?"
    r"|\d*(?:[.,'_·٫٬،]\d+)*)"
)
_DIGIT, _NO_DIGIT = re.compile(r"\d"), re.compile(r"\D")
# Between other digits this comma separates clauses.
_WIDE_COMMA = re.compile("(?<=[０-９])，(?=[０-９])")
# A character reference, with the spaces that tokenizers insert.
_REFERENCE = re.compile(r"&\s?(?:amp\s?;\s?)*#\s?([xX]?[0-9a-fA-F]+)\s?;")

# Between the parts of a sum ("2 million and 500 thousand"), and between the ends of a range.
_AND = re.compile(r"\.?\s?(?:(?:and|und|et|e|y|i|en|og|och|ja|ve|dan|và|и|і|й|και|और|এবং|اور|ו)\s|و\s?)?")
_RANGE = re.compile(r"\s?(?:[-‐-―~～〜－至到]|to|or|से|या|থেকে|سے|đến|hoặc|ถึง|หรือ|或|내지|에서)\s?")
_DASH = re.compile(r"\s?[-‐-―~～〜/]\s?")
# After 1700: what makes it a century in English, Finnish, Swedish, Danish, German, Russian, Hungarian, Malay, Japanese.
_CENTURY = re.compile(r"['-]?(?:s\b|lu[kv]u|tal|er\b|х\b|as\b|an\b)|\s?(?:年代|년대)")
_MONTH_AFTER, _MONTH_BEFORE = ("月", "월"), ("tháng ", "Tháng ")
# Years of an era, counted from the year after this one.
_ERAS = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018, "民國": 1911, "民国": 1911}
_ERAS |= {"메이지": 1867, "다이쇼": 1911, "쇼와": 1925, "헤이세이": 1988, "레이와": 2018, "단기": -2333}
_ERAS |= {"Meiji": 1867, "Taisho": 1911, "Showa": 1925, "Heisei": 1988, "Reiwa": 2018}

_ERA_ENDS = {era[-2:] for era in _ERAS}
_ZEROS, _ONE_TO_NINE, _UNITS = "〇零○◯", "一二三四五六七八九两兩", "十百千万萬亿億"
_HAN_DIGITS = str.maketrans(_ZEROS + _ONE_TO_NINE + "元", "0000" + "12345678922" + "1")
# Two characters or more, for 一 alone is part of many words; or one after an era. (The lookbehinds come after the first
# character, so that the search for it is fast.)
_HAN = re.compile(
    rf"[{_ONE_TO_NINE}十百千元](?:(?<![\d{_UNITS}].)(?<!元)[{_ZEROS}{_ONE_TO_NINE}{_UNITS}]+"
    f"|(?<={'|'.join(era + '.' for era in _ERAS if len(era) == 2)})(?=年))"
)
_IN_WORDS = "\ue000"  # marks a number that was not written with digits
_ROMAN = re.compile(r"[IVXL](?<!\w.)[IVXL]{1,6}\b")
_LETTERS = {"I": 1, "V": 5, "X": 10, "L": 50}

# On one side only, such a number is missing from the other.
_NOT_SPELLED_OUT = 1000


@dataclass(slots=True, unsafe_hash=True)
class Quantity:
    """A number as ``digits * 10**power``, ``digits`` without zeros at its end (0 is ``(0, 0)``).

    Two quantities are equal if ``digits`` and ``power`` are.

    Attributes:
        digits: Significant digits.
        power: Power of ten.
        also: Other values that the text around it allows: 2002 for the 02 of 2000-02.
        parts: The numbers that it is if its separator is no decimal one: 5 and 9 for 5.9.
        maybe_word: The other side may have a word for it, such as the name of a month.
    """

    digits: int
    power: int
    also: tuple[Quantity, ...] = field(default=(), compare=False, repr=False)
    parts: tuple[Quantity, ...] = field(default=(), compare=False, repr=False)
    maybe_word: str = field(default="", compare=False, repr=False)


class _AsciiDigits(dict[int, int]):
    """A table for ``str.translate``: every decimal digit of Unicode becomes its ASCII form, and separators one each."""

    def __missing__(self, code: int) -> int:
        value = unicodedata.decimal(chr(code), None)
        self[code] = code if value is None else 48 + int(value)
        return self[code]


_ASCII_DIGITS = _AsciiDigits(str.maketrans("．・･‧’‘ʼ′＇´", ".···" + 6 * "'"))


def quantities(text: str) -> list[Quantity]:
    """The numbers written with digits in a text, in order.

    Digits of any script count (１２, ١٢, १२). ``1,234.5``, ``1.234,5``, ``1 234,5`` and ``12,34,567`` are read as
    one number each; ``12.03.2004`` and ``1.2.3`` as three. ``1.234`` is a thousand or a fraction, there is no knowing:
    it is read as 1234, and :func:`agree` takes both. Words of scale multiply (5万, 5 lakh, 5 million), also several in
    a row (1 แสนล้าน); parts of falling scales are a sum (1亿5千万, 2 triệu 500 nghìn); in ``2-3万`` both ends are
    scaled. Chinese digits in a row are a number (二〇〇九). Words, superscripts and fractions such as ½ are not read.

    Example:
        >>> quantities("Им 3,5 и １２００")
        [Quantity(digits=35, power=-1), Quantity(digits=12, power=2)]
    """
    return [number for number in _numbers(text) if number.maybe_word != "numeral"]


def _numbers(text: str) -> list[Quantity]:
    """The quantities of a text, and Roman and Chinese numerals, each marked as perhaps a word on the other side."""
    if not _DIGIT.search(text) and (text.isascii() or not _HAN.search(text)):
        return []
    if "&" in text:
        text = html.unescape(html.unescape(_REFERENCE.sub(r"&#\1;", text)))
    if not text.isascii():
        text = _HAN.sub(_with_digits, unicodedata.normalize("NFC", text))
        text = (_WIDE_COMMA.sub(",", text) if "，" in text else text).translate(_ASCII_DIGITS)
    numbers: list[Quantity] = []
    parts: list[tuple[Quantity, int]] = []  # of a sum, each with its scale
    start, end = 0, 0  # of the sum, without the words of scale before and with those after
    for match in _NUMBER.finditer(text):
        written = match[0]
        if match["date"] is None:
            *others, last = _read(written, followed_by=text[match.end() : match.end() + 1])
        else:
            *others, last = _dated(_NO_DIGIT.split(written))
        powers, scaled_to = _scales(text, match.end())
        if not others and parts and _continues(parts[-1], last, powers, text, end, match.start()):
            parts.append((last, 0))
        else:
            numbers += _summed(parts, text, start, end)
            if numbers and not others:
                if powers and parts[-1][1] == 0 and _RANGE.fullmatch(text, end, match.start()):
                    numbers[-1] = _scaled(numbers[-1], sum(powers))
                last = _end_of_range(numbers[-1], last, written, text[end : match.start()])
            numbers += others
            parts, start = [(last, 0)], match.start()
        for power in powers:
            _multiply(parts, power)
        end = scaled_to
    numbers += _summed(parts, text, start, end)
    return numbers + [_roman(match[0]) for match in _ROMAN.finditer(text)]


def agree(one: Quantity, other: Quantity) -> bool:
    """Return whether two numbers may be the same.

    Equal, or apart by a factor of a thousand or a higher power of ten: a scale word ("1.2 million" and "1200000") or a
    thousands separator read as a decimal point. No list of scale words could cover every language.
    """
    return one.digits == other.digits and (one.power == other.power or abs(one.power - other.power) >= 3)


def split_clock(number: Quantity) -> list[Quantity]:
    """``16.30`` as 16 and 30: a time of day, or a day and month, that was read as a fraction; else the number alone."""
    return [*number.parts] or [number]


def _read(number: str, followed_by: str = "") -> list[Quantity]:
    """One matched run as one number, or as several when its separators make no number."""
    if number.isdecimal():
        return [_quantity(number, 0)]
    groups, separators = _NO_DIGIT.split(number), _NO_DIGIT.findall(number)
    # The last separator is a decimal one if it differs from those before it, or is alone and not before three digits.
    last_differs = len(separators) > 1 and separators[-1] != separators[-2]
    fraction = groups[-1] if last_differs or (len(separators) == 1 and len(groups[1]) != 3) else ""
    if separators[-1] in "'_":
        fraction = ""
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
    read = _quantity("".join(whole) + fraction, -len(fraction))
    if len(groups) == 2 and fraction and (_is_clock(*groups) or _is_month_of_year(*groups)):
        # A point after it, or a zero before the month, makes it a date: 5.9. or 5.09.
        is_date = followed_by == "." or fraction[0] == "0"
        read = replace(read, parts=tuple(_dated(groups) if is_date else [_quantity(group, 0) for group in groups]))
    return [read]


def _is_clock(hours: str, minutes: str) -> bool:
    return len(hours) <= 2 and len(minutes) <= 2 and int(hours) <= 31 and int(minutes) < 60


def _is_month_of_year(one: str, other: str) -> bool:
    return sorted(map(len, (one, other))) in ([1, 4], [2, 4]) and min(int(one), int(other)) <= 31


def _dated(groups: list[str]) -> list[Quantity]:
    """The numbers of a date, with its month marked: the one in the middle, or the second, if it can be one."""
    numbers = [_quantity(group, 0) for group in groups]
    month = next((row for row in (1, 0) if 1 <= _whole(numbers[row]) <= 12), None)
    return [replace(number, maybe_word="month") if row == month else number for row, number in enumerate(numbers)]


def _scales(text: str, start: int) -> tuple[list[int], int]:
    """The powers of ten of the words of scale at a place, and where they end."""
    powers: list[int] = []
    while match := _SCALE.match(text, start):
        power = _POWERS[match[1]] if match[1] else _power_of(match[2])
        if not power:
            break
        powers.append(power)
        start = match.end()
    return powers, start


@lru_cache(maxsize=REMEMBERED)
def _power_of(word: str) -> int:
    """The power of ten of a word of scale, by its longest stem; 0 for any other word."""
    word = word.lower()
    stems = (word[:length] + "*" for length in range(min(len(word), 15), 1, -1))
    return _POWERS.get(word) or next((_POWERS[stem] for stem in stems if stem in _POWERS), 0)


def _continues(
    part: tuple[Quantity, int], number: Quantity, powers: list[int], text: str, start: int, end: int
) -> bool:
    """Return whether a number adds to the part of a sum before it: 5千 to 1亿, 500 thousand to 2 million."""
    scale = part[1]
    if scale <= 0 or number.power < 0 or len(str(number.digits)) + number.power > scale:
        return False
    if start == end:
        return True
    if powers:
        return powers[0] < scale and _AND.fullmatch(text, start, end) is not None
    # Without a scale of its own it has as many digits as a thousand leaves: 5만 2000.
    return number.digits * 10**number.power >= 100 and text[start:end].isspace()


def _multiply(parts: list[tuple[Quantity, int]], power: int) -> None:
    """Multiply the last part of a sum, with those before it that have smaller scales: 万 in 2亿 5千3百万."""
    number, scale = parts.pop()
    while parts and parts[-1][1] < power:
        number, scale = _sum(parts.pop()[0], number), power
    parts.append((_scaled(number, power), max(scale, power)))


def _summed(parts: list[tuple[Quantity, int]], text: str, start: int, end: int) -> list[Quantity]:
    """The sum as a number, with what the text around it says of it."""
    if not parts:
        return []
    number = parts[0][0]
    for other, _ in parts[1:]:
        number = _sum(number, other)
    whole = _whole(number)
    if text[start - 1 : start] == _IN_WORDS:
        start -= 1
        large = number.digits >= 10 and whole >= _NOT_SPELLED_OUT
        number = replace(number, maybe_word="large numeral" if large else "numeral")
    if 1 <= whole <= 12 and (text.startswith(_MONTH_AFTER, end) or text.endswith(_MONTH_BEFORE, 0, start)):
        number = replace(number, maybe_word="month")
    elif whole > 0 and whole % 100 == 0 and _CENTURY.match(text, end):
        number = replace(number, also=(_quantity(str(whole // 100 + 1), 0),))
    elif 1 <= whole < 5000:
        before = text[max(0, start - 12) : start].rstrip()
        if before[-2:] in _ERA_ENDS and (era := next(filter(before.endswith, _ERAS), "")):
            number = replace(number, also=(_quantity(str(max(0, whole + _ERAS[era])), 0),))
    return [number]


def _end_of_range(first: Quantity, last: Quantity, written: str, between: str) -> Quantity:
    """The last number, which is 2002, too, if it is the 02 of 2000-02."""
    begin = str(_whole(first))
    if len(begin) != 4 or len(written) > 2 or not _DASH.fullmatch(between):
        return last
    end = begin[: -len(written)] + written
    return replace(last, also=(_quantity(end, 0),)) if end > begin else last


def _with_digits(match: re.Match[str]) -> str:
    """A Chinese numeral with digits: 2009 for 二〇〇九, 4万5千 for 四万五千; unchanged where it is ambiguous."""
    run = match[0]
    zero = any(character in _ZEROS for character in run)
    if not any(character in _UNITS for character in run):
        return run.translate(_HAN_DIGITS) if zero or len(run) >= 4 or len(run) == 1 else run
    digits = re.sub("0+", "", run.translate(_HAN_DIGITS))
    # Two digits in a row are "seven or eight"; 四万五 is 45,000 to some and 40,005 to others.
    if re.search(r"\d\d" if zero else r"\d\d|[百千万萬亿億]\d$", digits):
        return run
    return _IN_WORDS + re.sub("(?<!\\d)(?=[十百千])", "1", digits)


def _roman(numeral: str) -> Quantity:
    values = [_LETTERS[letter] for letter in numeral]
    value = sum(-one if one < other else one for one, other in zip(values, [*values[1:], 0]))
    return replace(_quantity(str(value), 0), maybe_word="numeral")


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
    24-hour clock matches a 12-hour one (20 and 8), a year its last two digits (1998 and 98), the same year of the
    Buddhist, Persian and Islamic calendars, and of a Japanese, Korean or Chinese era that is named, the end of a range
    its short form (2000-02), and a century its first year (1700s). What is then left over decides:

    - on both sides: a contradiction ("3 books", "4 Bücher");
    - on one side only: nothing, since the other may have spelled it out ("12", "twelve"), named a month or left out a
      repetition, unless a number of four digits or more is missing, zeros at its end not counted: 1987 is hardly ever
      spelled out. That rejects three in a thousand true pairs, most of them for an error in the data, and twice as
      many wrong pairs as not to mind.

    The month of a date, a Roman numeral and a small Chinese one (三十) are matched, but contradict nothing, since the
    other side may have a word for them; only two months contradict each other.
    A fraction that could be a time of day or a day and month (16.30) is read as such where that resolves a
    contradiction. Conversions (10 km, 6 miles) count as contradictions, and so do years of other calendars
    (Nepali, Hebrew, Ethiopian).
    """
    numbers = known_quantities(source), known_quantities(target)
    if numbers[0] == numbers[1]:
        return None
    left = leftovers(*numbers)
    if not _contradict(*left):
        return None
    ambiguous = any(number.parts for side in left for number in side)
    if ambiguous and not _contradict(*leftovers(*map(_split, left))):
        return None
    of_source, of_target = ([_plain(one) for one in side if one.maybe_word != "numeral"] for side in left)
    return {"source": of_source, "target": of_target}


# A list that is shared, not to be changed.
known_quantities = lru_cache(maxsize=REMEMBERED)(_numbers)


def _contradict(source: list[Quantity], target: list[Quantity]) -> bool:
    """Return whether numbers without a partner, on both sides or on one, make it a wrong pair."""
    certain, months = (
        [any(number.maybe_word in kinds for number in side) for side in (source, target)]
        for kinds in (("", "large numeral"), ("month",))
    )
    missing = any(number.digits >= _NOT_SPELLED_OUT and not number.maybe_word for number in (*source, *target))
    return all(certain) or missing or all(months)


def leftovers(source: list[Quantity], target: list[Quantity]) -> tuple[list[Quantity], list[Quantity]]:
    """The numbers of either side that have no partner on the other.

    Equal numbers are matched before those that merely agree, and those before clocks and years, so that no lenient
    match takes the partner of a strict one. Swapping the sides swaps the result.
    """
    if not source or not target:
        return source, target
    # Most pairs of sentences that are no translations share nothing: what can match at all is looked for first.
    source, target = (sorted(side, key=lambda number: bool(number.maybe_word)) for side in (source, target))
    if not set(source).isdisjoint(target):
        source, target = _unmatched(source, target, lambda number: (number,))
    powers: dict[int, set[int]] = defaultdict(set)
    for number in target:
        powers[number.digits].add(number.power)
    if any(number.digits in powers for number in source):
        source, target = _unmatched(
            source,
            target,
            lambda one: filter(partial(agree, one), (Quantity(one.digits, power) for power in powers[one.digits])),
        )
    return _unmatched(source, target, _other_readings(target)) if source and target else (source, target)


def _other_readings(target: list[Quantity]) -> Callable[[Quantity], Iterable[Quantity]]:
    """Return a function that lists the other values of a number: hours, years, and readings that its context allows."""
    sources_of: dict[Quantity, set[Quantity]] = defaultdict(set)
    for number in target:
        for value in number.also:
            sources_of[value].add(number)
    return lambda number: (*number.also, *_hours_and_years(_whole(number)), *sources_of.get(number, ()))


def _unmatched(
    source: list[Quantity], target: list[Quantity], partners: Callable[[Quantity], Iterable[Quantity]]
) -> tuple[list[Quantity], list[Quantity]]:
    """The numbers without a partner; ``partners`` gives the values that a source matches, in order of preference."""
    available = Counter(target)
    unmatched = []
    for number in source:
        partner = next((value for value in partners(number) if available[value]), None)
        if partner is None:
            unmatched.append(number)
        else:
            available[partner] -= 1
    rest = []
    for number in reversed(target):
        if available[number]:
            available[number] -= 1
            rest.append(number)
    return unmatched, rest[::-1]


def _split(numbers: list[Quantity]) -> list[Quantity]:
    return [part for number in numbers for part in split_clock(number)]


@cache
def _hours_and_years(number: int) -> tuple[Quantity, ...]:
    """Return the values of a whole number on another clock, in another calendar, or with other digits of the year."""
    same = {number + 12} if 0 <= number <= 12 else set()
    if 12 <= number <= 24:
        same.add(number - 12)
    if 10 <= number < 100:
        same.update(range(1000 + number, 2100, 100))
    if 1000 < number < 2100 and number % 100 >= 10:
        same.add(number % 100)
    for years in _CALENDARS:
        same.update(years.get(number, ()))
    return tuple(_quantity(str(value), 0) for value in sorted(same))


def _calendar(first: int, last: int, gregorian: Callable[[int], Iterable[int]]) -> dict[int, set[int]]:
    """Years of a calendar with those of ours, both ways."""
    years: dict[int, set[int]] = defaultdict(set)
    for year in range(first, last):
        for ours in gregorian(year):
            years[year].add(ours)
            years[ours].add(year)
    return dict(years)


# Buddhist (Thai), Solar Hijri (Persian) and, as 33 of its years are 32 of ours, lunar Hijri.
_CALENDARS = (
    _calendar(2300, 2620, lambda year: (year - 543,)),
    _calendar(1250, 1440, lambda year: (year + 621, year + 622)),
    _calendar(1250, 1480, lambda year: (int(year * 0.970224 + 621.577), int(year * 0.970224 + 622.577))),
)


def _whole(number: Quantity) -> int:
    """The number if it is whole and below a million, else -1."""
    return number.digits * 10**number.power if 0 <= number.power <= 6 and number.digits < 10**6 else -1


def _plain(number: Quantity) -> str:
    return str(_whole(number)) if _whole(number) >= 0 else f"{number.digits}e{number.power}"
