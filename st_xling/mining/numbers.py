"""Numbers in text, of any script and format, and whether those of two sentences contradict each other."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import lru_cache
from pathlib import Path

from st_xling.mining.clock import IN_WORDS, with_times

#: Sentences that are remembered: a sentence is in several candidates, most of them near.
REMEMBERED = 1 << 14


def _load_number_words() -> list[list[str]]:
    """Return the lines of both parts of ``number_words.txt``: words of scale, and parts of numbers in words."""
    parts = Path(__file__).with_name("number_words.txt").read_text(encoding="utf-8").split("\n\n")
    return [[line for line in part.splitlines() if not line.startswith("#")] for part in parts]


# Words of scale by their power of ten, and parts of numbers that are spelled out.
_SCALE_WORDS, _SPELLED_OUT = _load_number_words()

# Years of an era, counted from the year after this one.
_ERAS = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018, "民國": 1911, "民国": 1911}
_ERAS |= {"메이지": 1867, "다이쇼": 1911, "쇼와": 1925, "헤이세이": 1988, "레이와": 2018, "단기": -2333}
_ERAS |= {"Meiji": 1867, "Taisho": 1911, "Showa": 1925, "Heisei": 1988, "Reiwa": 2018}


class _PlainCharacters(dict[int, str]):
    """A table for ``str.translate``: NFKC, but without superscripts, and with a space before a fraction such as ½."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.decomposition(character).split(" ")[0]
        digit = unicodedata.decimal(character, None)
        if kind in ("<super>", "<sub>"):
            plain = ""
        elif digit is not None:
            plain = str(digit)
        else:
            plain = unicodedata.normalize("NFKC", character)
        self[code] = " " + plain if kind == "<fraction>" else plain
        return self[code]


# Separators of Arabic and East Asian numbers, and signs that stand for an apostrophe.
_PLAIN = _PlainCharacters({ord(sign): plain for sign, plain in zip("٫٬・･‧’‘ʼ′´", ".,···" + 5 * "'")})


def _to_plain_characters(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_PLAIN))


# Powers of ten of each word of scale, the likeliest first, and 0 if it may be another word; words of scale that come
# before their numbers.
_POWERS = defaultdict[str, list[int]](list)
_PRECEDING = set[str]()
for _line in map(_to_plain_characters, _SCALE_WORDS):
    _power, *_words = _line.split()
    for _word in _words:
        _powers = _POWERS[_word.strip("<?")]
        _powers.append(int(_power.rstrip(":")))
        if _word.endswith("?"):
            _powers.append(0)
        if _word.startswith("<"):
            _PRECEDING.add(_word[1:])
# Scripts without spaces between words: East Asian, Thai, Lao, Khmer and Burmese.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3400-\u9fff\uac00-\ud7ff]")
_UNSPACED_SCALE = "|".join(sorted(filter(_UNSPACED.match, _POWERS), key=len, reverse=True))
_UNSPACED_AT_END = re.compile(f"(?:{_UNSPACED_SCALE})$")
_SPELLED = re.compile("|".join([*_to_plain_characters(" ".join(_SPELLED_OUT)).split(), _UNSPACED_SCALE]))
_WORD = re.compile(r"[^\W\d_][\w\u064b-\u0652\u0900-\u0dff]{0,30}")
# A scale, or a word that may be one. Between a number and its scale may be "and some" (200多万, 200여만) or "of".
_SCALE = re.compile(rf"([\s-]?)(?:[多余餘几幾数數수여]|กว่า|de\s)?(?!百分)(?:({_UNSPACED_SCALE})|({_WORD.pattern}))")
# A half after a number, perhaps after a unit: 2 and a half, 5 años y medio, 2時間半.
_HALF = re.compile(
    r"(?P<unit>\s?(?:[^\W\d_]{1,12}\s|[\u0e00-\ud7ff]{1,10}?))??\s?"
    r"(?:(?:and\sa|y|e|et|și|en(?:\seen)?|ja|und|i|a|és|och\sen|og\se[nt]|и|і|с|з|και|و|ו)\s?)?"
    r"(?:medi[oa]|mei[oa]|mezz[oa]|demie?|jumătate|r[ưu][ỡở]i|half|halve?|pół|půl|fél|puoli|buçuk|setengah|половин\w*"
    r"|μισ\w|نصف|نیم|חצי|ครึ่ง|半|반)(?:\b|(?<=[半반]))"
)

# A date; a fraction, perhaps after a whole number; digits in groups of three with spaces between; or digits joined by
# other separators. Each begins with a digit outside the alternatives, so that the search for it is fast.
_NUMBER = re.compile(
    r"\d(?:(?:\d{3}([./-])\d\d?\1\d\d?|\d?([./-])\d\d?\2(?:\d\d)?\d\d)(?![./-]?\d)(?P<date>)"
    r"|(?:\d{0,2} \d)?\d{0,2}[/⁄]\d{1,3}(?![./⁄]?\d)(?P<fraction>)"
    r"|\d{0,2}(?: \d{3})+(?!\d)(?:[.,]\d+)?"
    r"|\d*(?:[.,'_·]\d+)*)"
)
_DIGIT = re.compile(r"\d")
_NO_DIGIT = re.compile(r"\D")
# What makes digits a decimal fraction: the point of "p < .05", the comma of "p < ,05".
_POINT_BEFORE = re.compile(r"(?:^|[\s<>=≤≥≈~±+(\[$€£/−–-])\.$|(?:^|\s|[<>=≤≥≈]\s?),$")
# A power of ten, perhaps after a factor; it is rewritten as an exponent: 1.5e6.
_POWER_OF_TEN = re.compile(
    r"(?:(?<=\d)\s?[×xX·⋅∙*]\s?|(?<![\d.,]))10(?:\s?\^\s?\{?([-−]?\d{1,2})|([⁻⁰¹²³⁴-⁹]{1,3}))(?!\d)"
)
_EXPONENT = re.compile(r"[eE]([+-]?\d{1,2})(?!\w)")
_WORDS_AFTER = re.compile(r"(?:[\s-][^\s\d.,;:!?()]{1,20}){1,3}")
# A fraction whose denominator comes first.
_PARTS_OF = re.compile(r"(?<!\d)(\d\d?)\s?(?:分[之の]|분의)\s?(\d\d?)(?!\d)")
_FRACTION_SIGN = re.compile("[/⁄]")
# A number of percent, before or after the sign or word.
_PERCENT_AFTER = re.compile(
    r"\s?(?:[%٪]|per\s?cent|prozent|pour ?cent|por ?cien\w*|por cento|per cento|procen|процент|відсот|prosent|százalék"
    r"|τοις εκατό|phần trăm|persen|peratus|パーセント|퍼센트|프로|เปอร์เซ็นต์|प्रतिशत|শতাংশ|فی\s?صد|فيصد|درصد"
    r"|(?:في|ب)\s?ال?م[ئا]\w*ة|אחוז)",
    re.IGNORECASE,
)
_PERCENT_BEFORE = re.compile(r"(?:%|百分之|\byüzde|ร้อยละ)\s?$", re.IGNORECASE)
# Hours, of which a fraction is often said in minutes: ¾ hour, 45 minutes.
_HOURS_AFTER = re.compile(
    r"\s?(?:(?:of )?an? |e(?:ine[rn]?|en) |d'|de )?(?:hour|hr\b|stunde|uur|heure|hora|or[ae]\b|oră|час|годин|timm|time"
    r"|godzin|hodin|ór[aá]|saat|小[时時]|時間|시간|giờ|tiếng|jam|ชั่วโมง|घंट|ساع|שעה|שעות|ώρα)",
    re.IGNORECASE,
)
# A character reference, with the spaces that tokenizers insert; digits that are no numbers of the sentence: addresses,
# and the verse that a line of a Bible begins with.
_REFERENCE = re.compile(r"&\s?(?:amp\s?;\s?)*#\s?([xX]?[0-9a-fA-F]+)\s?;")
_ADDRESS = re.compile(r"(?:https?://|www\.|@)\S+|^\([A-Z]?\s?\d+:\d+\)")
# Between the parts of a sum ("2 million and 500 thousand"), and between the ends of a range.
_AND = re.compile(r"[.,]?\s?(?:(?:and|und|et|e|y|i|en|og|och|ja|ve|dan|na|và|и|і|й|και|और|এবং|اور|و|ו|零)[\s-]?)?")
_RANGE = re.compile(r"\s?(?:[-‐-―~〜/至到或]|から|または|에서|내지)\s?|\s[^\s\d,.;:]{1,7}\s")
_DASH = re.compile(r"\s?[-‐-―~〜/]\s?")
# After 1700: what makes it a century in English, Finnish, Swedish, Danish, German, Russian, Hungarian, Malay, Japanese.
_CENTURY = re.compile(r"['-]?(?:s\b|lu[kv]u|tal|er\b|х\b|as\b|an\b)|\s?(?:年代|년대)")
_DECADE = re.compile(r"(\d\d)\s?(?:世[纪紀]|세기)的?\s?(\d0)(?=\s?(?:年代|년대))")
_NAME = re.compile(r"[A-Za-z]-?$")
_DAY_AFTER = ("日", "일", "号", "號")
_MONTH_AFTER = ("月", "월")
_MONTH_BEFORE = ("tháng ", "Tháng ")
_ERA_BEFORE = re.compile(f"({'|'.join(_ERAS)})\\s?$")
_HOUR_AFTER = re.compile(
    r"\s?(?::\d\d|h(?:\d\d)?\b|uhr|heures?|uur|o.?clock|[ap]\.?\s?m\b|час|годин|時|时|点|點|시|giờ|นาฬิกา|น\.|बजे|بجے)",
    re.IGNORECASE,
)
_HOUR_BEFORE = re.compile(
    r"(?:\b(?:at|um|kl|klo|kello|klockan|saat|ore|alle|las|às|jam|pukul)|午[前後]|[上下]午|오[전후]|ساعة|ساعت)\.?\s?$",
    re.IGNORECASE,
)

# Half and three quarters of the hour before, as in halb 9 (8:30), and a quarter before it (8:45).
_HALF_TO = re.compile(
    r"\b(?:halb|half|halv|puoli|pool|f[ée]l|(?:v )?půl|pol|pola|w?pół do|пів на|в половине|половина)\s?$", re.IGNORECASE
)
_QUARTER_TO = re.compile(
    r"\b(?:quarter (?:to|of|before)|viertel vor|drei ?viertel|kwart voor|kvart (?:i|på)|háromnegyed|za kwadrans"
    r"|без четверти|за чверть|quarto (?:para|alle|às))\s?$",
    re.IGNORECASE,
)
_LESS_A_QUARTER = re.compile(r"\s?(?:h|heures?)?\s?(?:moins le quart|menos (?:un )?(?:cuarto|quarto)|meno un quarto)\b")
# What multiplies a number otherwise than by a power of ten, perhaps after a space.
_DOZENS = re.compile(
    r"\s?(?:dozens?|dutzend|douzaines?|docenas?|dozzin[ae]|d[uú]zias?|dozijn|dussin|dusin|tusinaa|tosinat?|tucet|tuzin"
    r"|дюжин|düzine|lusin|tá\b|דוזן|תריסר|دستة|دزينة|दर्जन|ডজন|โหล|打(?!印|开|開)|ダース|다스)",
    re.IGNORECASE,
)
# Tenths that are paid, 7折 for 30 % off, and tenths, 3할 for 30 %.
_TENTHS_PAID = "折"
_TENTHS = ("할", "掛け", "掛")
_KOREAN_TENTHS = re.compile(r"(\d)\s?할\s?(\d)\s?푼")
# A numeral system, named by a word in other languages: 16進数, hexadecimal.
_BASE_AFTER = re.compile(r"\s?(?:進[数法制位數]?|进[制位]|진[수법]|-?(?:er-System|adisch|ричн|ічн|kov[áéý]|tkov[áéý]))")
_BASE_BEFORE = re.compile(r"(?:\b(?:base|basis|bas|baze|основани[еюяи]|cơ số|hệ)[\s-]?|ฐาน\s?)$", re.IGNORECASE)
# A standard, the year of which may be left out: ISO 9001:2015, ГОСТ 7.1-2003.
_STANDARD_BEFORE = re.compile(
    r"\b(?:ISO|IEC|IEEE|EN|DIN|ANSI|ASTM|ASME|BS|NF|UNE|UNI|JIS|KS|GB|SS|SFS|PN|TCVN|SNI|POSIX|ГОСТ|СТБ|ДСТУ)"
    r"[A-ZР/ .-]{0,12}[A-Z]?[\d.-]{1,12}\s?[:\-–]$"
)

_ZEROS = "〇零○◯"
_ONE_TO_NINE = "一二三四五六七八九两兩"
_UNITS = "十百千万萬亿億"
_HAN_DIGITS = str.maketrans(_ZEROS + _ONE_TO_NINE + "元", "0000" + "12345678922" + "1")
# Two characters or more, for 一 alone is part of many words; or one after an era. (The lookbehinds come after the first
# character, so that the search for it is fast.)
_HAN_NUMERAL = re.compile(
    rf"[{_ONE_TO_NINE}十百千元](?:(?<![\d{_UNITS}].)(?<!元)[{_ZEROS}{_ONE_TO_NINE}{_UNITS}]+"
    f"|(?<={'|'.join(era + '.' for era in _ERAS if len(era) == 2)})(?=年))"
)
# A price in tenths, 八五折 for 8.5 of 10; not the third fold, 第三折, nor a page that folds, 三折页.
_HAN_DISCOUNT = re.compile(
    rf"(?<![第波{_ONE_TO_NINE}{_UNITS}])([{_ONE_TO_NINE}])[点點]?([{_ONE_TO_NINE}])?折(?![叠疊射返断斷页頁屏])"
)
_HAN_PARTS_OF = re.compile(
    rf"(?<![{_ONE_TO_NINE}{_UNITS}])([{_ONE_TO_NINE}十])分[之の]([{_ONE_TO_NINE}])(?![{_ONE_TO_NINE}{_UNITS}])"
)
_IN_WORDS = "\ue000"  # marks a number that was not written with digits
_ROMAN = re.compile(
    r"[IVXL](?<!\w.)[IVXL]{1,6}(?![A-Z])"
    # Years: three letters or more, as M and MD are no numbers.
    r"|M(?<!\w.)(?=[MDCLXVI]{2})M{0,2}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?!\w)"
)
_ROMAN_LETTERS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


@dataclass(slots=True)
class Number:
    """A number in a text. Two are equal if their values are.

    Attributes:
        value: The number as it is most likely meant.
        written: The text of it.
        also: Other values that the notation or the text around it allows: 1.234 for 1234, 20 for the 8 of 8 pm.
        parts: The numbers that it is if its separator is no decimal one: 5 and 9 for 5.9.
        role: ``"month"`` or ``"numeral"`` if the other side may have a word for it, ``"optional"`` if it may be missing
            there: in a name (COVID-19), in words, or a day of the month.
        above: The power of ten of a scale in words before it: 6 for the 200 thousand of "one million 200 thousand".
        below: That of its own scale if the rest of a sum is in words: 6 for "1 million two hundred thousand".
    """

    value: Decimal
    written: str = field(default="", compare=False)
    also: tuple[Decimal, ...] = field(default=(), compare=False)
    parts: tuple[Number, ...] = field(default=(), compare=False)
    role: str = field(default="", compare=False)
    above: int = field(default=0, compare=False)
    below: int = field(default=0, compare=False)

    def scaled(self, power: int) -> Number:
        """Return the number times a power of ten."""
        also = tuple(other.scaleb(power) for other in self.also)
        return replace(self, value=self.value.scaleb(power), also=also, parts=())


Numbers = list[Number]

# A term of a sum with its scale, a power of ten.
_Term = tuple[Number, int]


@lru_cache(maxsize=REMEMBERED)
def find_numbers(text: str) -> Numbers:
    """Return the numbers of a text in order, Roman numerals last; the list is shared, not to be changed.

    Digits of any script count (１２, ١٢, १२). ``1,234.5``, ``1.234,5``, ``1 234,5`` and ``12,34,567`` are one number
    each; ``1.2.3`` is three. Words of scale multiply (5万, 5 lakh, 5 million), also several in a row (1 แสนล้าน); parts
    of falling scales are a sum (1亿5千万, 2 triệu 500 nghìn). Chinese numerals, fractions and powers of ten are read
    (二〇〇九, 1½, 2·10⁶); other words and superscripts are not.

    Example:
        >>> [(number.written, int(number.value)) for number in find_numbers("Им 3,5 млн и １２００")]
        [('3,5 млн', 3500000), ('1200', 1200)]
    """
    text = _rewrite_notations(text)
    if not _DIGIT.search(text) and not _ROMAN.search(text):
        return []
    text = _ADDRESS.sub(" ", text)
    numbers: Numbers = []
    terms: list[_Term] = []  # of the sum that is being read
    start = end = 0  # of that sum
    for match in _NUMBER.finditer(text):
        if match.start() < end:  # an exponent
            continue
        *others, last = _read_digits(match)
        begin, powers = _scale_before(text, match.start(), end)
        last, stop = _with_exponent_and_half(last, text, match.end())
        if not powers:
            powers, stop = _scales_after(text, stop)
        between = text[end:begin]
        if not others and terms and _continues(terms[-1], last, powers, between):
            terms.append((last, 0))
        else:
            is_unscaled = bool(terms) and terms[-1][1] == 0
            numbers += _summed(terms, text, start, end)
            if numbers and not others:
                shared_powers = powers if is_unscaled else []
                last = _in_range(numbers[-1], last, shared_powers, between)
            numbers += others
            if words := between.strip():
                last.above = _scale_in_words(words)
            terms = [(last, 0)]
            start = begin
        if powers:
            stop = _scale_terms(terms, powers, text, stop)
        end = stop
    numbers += _summed(terms, text, start, end)
    return numbers + [_roman(match[0]) for match in _ROMAN.finditer(text)]


def _rewrite_notations(text: str) -> str:
    """Rewrite references, powers of ten, Chinese numerals and fractions in words of a text with digits."""
    if "&" in text:
        text = html.unescape(html.unescape(_REFERENCE.sub(r"&#\1;", text)))
    if "10" in text:
        text = _POWER_OF_TEN.sub(_with_exponent, text)
    text = _to_plain_characters(text)
    if not text.isascii():
        text = _HAN_DISCOUNT.sub(_discount_with_digits, text)
        text = _HAN_PARTS_OF.sub(_fraction_with_digits, text)
        text = _HAN_NUMERAL.sub(_with_digits, text)
        text = _DECADE.sub(lambda match: f"{int(match[1]) - 1}{match[2]}", text)
        text = _PARTS_OF.sub(r"\2/\1", text)
        text = _KOREAN_TENTHS.sub(r"\1.\2할", text)
    return text


def _with_exponent_and_half(number: Number, text: str, stop: int) -> tuple[Number, int]:
    """Return a number with the exponent and the half that may follow it, and where these end; not after a unit."""
    if exponent := _EXPONENT.match(text, stop):
        number = number.scaled(int(exponent[1]))
        stop = exponent.end()
    if half := _HALF.match(text, stop):
        number = replace(number, also=(*number.also, number.value + Decimal("0.5")))
        stop = stop if half["unit"] else half.end()
    return number, stop


def _scale_terms(terms: list[_Term], powers: list[list[int]], text: str, stop: int) -> int:
    """Multiply the last terms of a sum by scales, add a half of the scale that may follow, and return where it ends."""
    for choices in powers:
        # Only the last word may be meant otherwise.
        likely = choices if choices is powers[-1] else choices[:1]
        _multiply(terms, likely)
    half = _HALF.match(text, stop)
    if half is None or half["unit"]:
        return stop
    scale = sum(choices[0] for choices in powers)
    terms.append((Number(Decimal("0.5")).scaled(scale), 0))
    return half.end()


def _read_digits(match: re.Match[str]) -> Numbers:
    """Return one written form as one number, or as several where its separators make no number."""
    written = match[0]
    if written.isdecimal():
        is_fraction = _POINT_BEFORE.search(match.string, max(0, match.start() - 3), match.start())
        return [_decimal_fraction(match) if is_fraction else _integer(written)]
    groups = _NO_DIGIT.split(written)
    separators = _NO_DIGIT.findall(written)
    parts = tuple(map(_integer, groups))
    if match["fraction"] is not None:
        return [_fraction(written, parts)]
    if match["date"] is not None:
        return [_date(written, groups, parts)]
    decimals = _decimals(groups, separators)
    thousands = groups[:-1] if decimals else groups
    if len(thousands) > 1 and not _are_thousands(thousands, separators):
        return list(parts)
    value = Decimal(f"{''.join(thousands)}.{decimals or 0}"[:300])
    also: tuple[Decimal, ...] = ()
    if len(groups) == 2 and not decimals and separators[0] in ".,":
        also = (value.scaleb(-3),)
    if len(parts) == 2 and decimals and parts[0].value <= 31:
        return [_date_or_time(match, value, groups, parts)]
    return [Number(value, written, also, parts)]


def _decimal_fraction(match: re.Match[str]) -> Number:
    """Return the digits after a point or comma that has none before it, as in "p < .05"."""
    written = match[0]
    also: tuple[Decimal, ...] = ()
    if match.string[match.start() - 1] == ",":
        also = (Decimal(written[:300]),)  # the comma may be misplaced: "eins ,5" for "eins, 5"
    return Number(Decimal(f"0.{written}"[:300]), written, also)


def _fraction(written: str, parts: tuple[Number, ...]) -> Number:
    """Return a fraction, perhaps after a whole number, which may be day and month in either order."""
    *whole_number, over, under = [part.value for part in parts]
    value = sum(whole_number, over / (under or 1))
    if len(parts) > 2 or over > 31 or under > 31:
        return Number(value, written, (), parts)
    swapped = (under / over,) if over and under % over else ()
    return Number(value, written, swapped, _days(parts, 0, 1))


def _date(written: str, groups: list[str], parts: tuple[Number, ...]) -> Number:
    """Return a date as one number, whatever the order of day and month: 20040312 for 2004-03-12."""
    year, first, second = (0, 1, 2) if len(groups[0]) == 4 else (2, 0, 1)
    low, high = sorted((parts[first].value, parts[second].value))
    day_and_month = high * 100 + low
    also = tuple(other * 10000 + day_and_month for other in _years(parts[year]))
    return Number(parts[year].value * 10000 + day_and_month, written, also, _days(parts, first, second))


def _decimals(groups: list[str], separators: list[str]) -> str:
    """Return the last group of digits if it is a decimal fraction, else an empty text.

    The last separator is a decimal one if it differs from those before it, or is the only one and not before three
    digits.
    """
    if separators[-1] in "'_":
        return ""
    if len(separators) > 1:
        return groups[-1] if separators[-1] != separators[-2] else ""
    is_decimal = separators[0] != " " and (len(groups[1]) != 3 or not groups[0].strip("0"))
    return groups[-1] if is_decimal else ""


def _are_thousands(groups: list[str], separators: list[str]) -> bool:
    """Return whether groups make one number: one kind of separator; 2 or 3 digits (12,34,567), 3 in the last one."""
    return (
        len(set(separators[: len(groups) - 1])) == 1
        and len(groups[0]) <= 3
        and len(groups[-1]) == 3
        and all(len(group) in (2, 3) for group in groups[1:])
    )


def _date_or_time(match: re.Match[str], value: Decimal, groups: list[str], parts: tuple[Number, ...]) -> Number:
    """Return a decimal number that may be day and month as well, month and year, or hours and minutes."""
    decimals = groups[1]
    # A point after it, or zeros, makes it a date: 5.9. or 05.09.
    if match.string.startswith(".", match.end()) or groups[0][0] == decimals[0] == "0":
        parts = _days(parts, 1)
    elif len(decimals) == 4:
        parts = _days(parts, 0)
    # A point may also separate hours and minutes.
    hour, minutes = parts
    other_hours = _other_hour(hour.value)
    also = tuple(other + value % 1 for other in other_hours) if len(decimals) == 2 else ()
    return Number(value, match[0], also, (replace(hour, also=other_hours), minutes))


def _days(parts: tuple[Number, ...], *rows: int) -> tuple[Number, ...]:
    """Return the parts of a date; those at ``rows`` are months if they can be."""
    return tuple(
        replace(part, role="month") if row in rows and 1 <= part.value <= 12 else part for row, part in enumerate(parts)
    )


def _integer(digits: str) -> Number:
    """Return a number without separators: 0140 may be a time of day."""
    value = Decimal(digits[:300])
    parts: tuple[Number, ...] = ()
    if len(digits) == 4 and digits[0] == "0":
        parts = (Number(value // 100), Number(value % 100))
    role = "numeral" if digits == "00" else ""
    return Number(value, digits, (), parts, role)


def _scale_before(text: str, start: int, end: int) -> tuple[int, list[list[int]]]:
    """Return where a number begins with the word of scale before it, after ``end``, and that scale ("milioni 5")."""
    before = text[max(end, start - 12) : start]
    if before.endswith(" "):
        word = before[:-1].rpartition(" ")[2].lower()
        if word in _PRECEDING:
            return start - 1 - len(word), [_POWERS[word]]
    return start, []


def _scales_after(text: str, start: int) -> tuple[list[list[int]], int]:
    """Return the powers of ten of the words of scale at a place, each with other choices, and where they end."""
    powers: list[list[int]] = []
    while match := _SCALE.match(text, start):
        space, unspaced, word = match.groups()
        choices = _POWERS[unspaced] if unspaced else _powers_of(word)
        if not choices or (word and _is_other_word(word, bool(space), text, start, match.end())):
            break
        powers.append(choices)
        start = match.end()
    return powers, start


def _is_other_word(word: str, is_spaced: bool, text: str, start: int, end: int) -> bool:
    """Return whether a word of scale after a number, from ``start`` to ``end``, is no scale of that number."""
    # A letter is a scale only right after the digits or before a currency.
    if len(word) == 1 and is_spaced and not text.startswith(("€", "$", "£"), end):
        return True
    # After a year, a word that precedes its number belongs to the next one.
    is_before_number = word in _PRECEDING and _DIGIT.match(text, end + 1) is not None
    return is_before_number and text[start - 4 : start].isdecimal()


@lru_cache(maxsize=REMEMBERED)
def _powers_of(word: str) -> list[int]:
    """Return the powers of ten of a word of scale, by its longest stem; none for any other word."""
    lower = word.lower()
    stems = [lower[:length] + "*" for length in range(min(len(word), 15), 1, -1)]
    return next((_POWERS[form] for form in (word, lower, *stems) if form in _POWERS), [])


def _scale_in_words(between: str) -> int:
    """Return the power of ten that a scale among the last words before a number has: 6 for "one million and"."""
    words = between[-40:].replace(",", " ").split()[-3:]
    powers = [0]
    for word in words:
        unspaced = _UNSPACED_AT_END.search(word)
        stem = unspaced[0] if unspaced else word
        powers += _powers_of(stem)
    highest = max(powers)
    return highest if highest >= 3 else 0


def _adds(words: str, scale: int) -> bool:
    """Return whether words after a number may be the rest of its sum: "two hundred thousand" after a million."""
    powers = (_powers_of(word) for word in _WORD.findall(words) if len(word) > 1)
    return any(choices and choices[0] < scale for choices in powers) or _SPELLED.search(words.lower()) is not None


def _continues(term: _Term, number: Number, powers: list[list[int]], between: str) -> bool:
    """Return whether a number adds to the term of a sum before it: 5千 to 1亿, 500 thousand to 2 million."""
    scale = term[1]
    if scale <= 0 or number.value >= 10**scale or number.value % 1:
        return False
    if powers and powers[0][0] < scale:
        return _AND.fullmatch(between) is not None
    # Without a smaller scale of its own it has as many digits as a thousand leaves: 5만 2000, 4 mil 200 millones; with
    # "and" only after thousands: 5 mil e 300.
    if not between or number.value * 10 < min(10**scale, 1000):
        return not between
    is_joined = not powers and scale <= 3 and between[0] != "," and _AND.fullmatch(between) is not None
    return is_joined or between.removeprefix(".").isspace()


def _multiply(terms: list[_Term], powers: list[int]) -> None:
    """Multiply the last term of a sum, with those before it that have smaller scales: 万 in 2亿 5千3百万."""
    number, scale = terms.pop()
    while terms and terms[-1][1] < powers[0]:
        smaller_term, _ = terms.pop()
        number = Number(number.value + smaller_term.value)
        scale = 0
    first, *others = [number.scaled(power) for power in powers]
    also = (*first.also, *(other.value for other in others))
    terms.append((replace(first, also=also), min(scale + powers[0], 24)))


def _summed(terms: list[_Term], text: str, start: int, end: int) -> Numbers:
    """Return the sum of the terms as a number, with what the text around it adds."""
    if not terms:
        return []
    number = terms[0][0]
    if len(terms) > 1:
        parts = tuple(term for term, _ in terms)
        number = Number(sum((part.value for part in parts), Decimal(0)), parts=parts, above=number.above)
    number.written = text[start:end]
    scale = terms[-1][1]
    if scale >= 3 and (words := _WORDS_AFTER.match(text, end)) and _adds(words[0], scale):
        number.below = scale
    value = number.value
    if text[start - 1 : start] == _IN_WORDS:
        start -= 1
        is_certain = value >= 13 and (_digits(value) > 1 or text.endswith("分之", 0, start))
        number.role = "optional" if is_certain else "numeral"
    elif _NAME.search(text, max(0, start - 2), start):
        number.role = "optional"
    number.also = (*number.also, *_multiplied(value, text, end), *_as_share(number, text, start, end))
    if 1 <= value < 5000 and not value % 1:
        _read_as_date_or_time(number, text, start, end)
    return [number]


def _read_as_date_or_time(number: Number, text: str, start: int, end: int) -> None:
    """Set role, parts and other values of a small whole number that may be part of a date or time, or of a name."""
    value = number.value
    also: list[Decimal] = []
    if value <= 12 and (text.startswith(_MONTH_AFTER, end) or text.endswith(_MONTH_BEFORE, 0, start)):
        number.role = "month"
    elif value <= 31 and text.startswith(_DAY_AFTER, end):
        number.role = "optional"
    elif value % 100 == 0 and _CENTURY.match(text, end):
        also.append(value // 100 + 1)
    if value <= 24 and (_HOUR_AFTER.match(text, end) or _HOUR_BEFORE.search(text, max(0, start - 9), start)):
        also += _other_hour(value)
    if era := _ERA_BEFORE.search(text, max(0, start - 9), start):
        also.append(value + _ERAS[era[1]])
    if value <= 24 and (minutes := _minutes_of_the_hour_before(text, start, end)):
        hours = (value - 1, *_other_hour(value - 1))
        number.parts = (Number(value - 1, also=hours[1:]), Number(Decimal(minutes)))
        also += [hour + Decimal(minutes) / 100 for hour in hours]
        if minutes == 30:  # "half past 8"
            also += hours
    number.also += tuple(also)
    is_base = value <= 64 and (_BASE_AFTER.match(text, end) or _BASE_BEFORE.search(text, max(0, start - 12), start))
    if is_base or (value >= 1900 and _STANDARD_BEFORE.search(text, max(0, start - 32), start)):
        number.role = "optional"


def _multiplied(value: Decimal, text: str, end: int) -> list[Decimal]:
    """Return the other values of a number before a word: dozens, tenths, or tenths that are paid with the discount."""
    if _DOZENS.match(text, end):
        return [value * 12]
    if text.startswith(_TENTHS, end):
        return [value * 10]
    if text.startswith(_TENTHS_PAID, end) and 0 < value < 100:
        percent = value * 10 if value < 10 else value
        return [percent, 100 - percent]
    return []


def _as_share(number: Number, text: str, start: int, end: int) -> list[Decimal]:
    """Return the other values of percent, 0.5 for 50 %, and of a fraction: 0.67 for ⅔, 45 minutes for ¾ hour."""
    value = number.value
    is_fraction = _FRACTION_SIGN.search(number.written) is not None
    if is_fraction and _HOURS_AFTER.match(text, end):
        return [value * 60]
    if is_fraction and 0 < value < 1:
        rounded: list[Decimal] = []
        for last_digit in (Decimal("0.01"), Decimal("0.001"), Decimal("0.0001")):
            rounded += _rounded_both_ways(value, last_digit)
        return rounded
    if _PERCENT_AFTER.match(text, end) or _PERCENT_BEFORE.search(text, max(0, start - 6), start):
        return [value / 100, *_rounded_fractions(value)]
    return []


def _rounded_both_ways(value: Decimal, last_digit: Decimal) -> list[Decimal]:
    """Return a number rounded to the nearest, and cut off, with its last digit in this place."""
    return [value.quantize(last_digit, ROUND_HALF_UP), value.quantize(last_digit, ROUND_DOWN)]


def _rounded_fractions(percent: Decimal) -> list[Decimal]:
    """Return the fractions that a number of percent may be rounded from: ⅔ for 66, 67 or 66.7 %."""
    if not 0 < percent < 100:
        return []
    last_digit = Decimal(1).scaleb(int(percent.as_tuple().exponent))
    fractions = []
    for denominator in (3, 6, 7, 9):
        fraction = (percent * denominator / 100).to_integral_value() / denominator
        if percent in _rounded_both_ways(fraction * 100, last_digit):
            fractions.append(fraction)
    return fractions


def _minutes_of_the_hour_before(text: str, start: int, end: int) -> int:
    """Return the minutes if words around an hour mean the one before it: 30 for "halb 9"; 0 if they do not."""
    before = max(0, start - 20)
    if _HALF_TO.search(text, before, start):
        return 30
    if _QUARTER_TO.search(text, before, start) or _LESS_A_QUARTER.match(text, end):
        return 45
    return 0


def _in_range(first: Number, last: Number, powers: list[list[int]], between: str) -> Number:
    """Return the last number of a range, 2002 for the 02 of 2000-02; the first shares its scale, as in 2-3万."""
    if powers and _RANGE.fullmatch(between):
        scaled = first.scaled(sum(choices[0] for choices in powers))
        first.also = (*scaled.also, first.value)
        first.value = scaled.value
    missing = len(first.written) - len(last.written)
    is_short = (first.written + last.written).isdecimal() and len(first.written) == 4 and 0 < missing < 4
    if is_short and _DASH.fullmatch(between):
        return replace(last, also=(*last.also, Decimal(first.written[:missing] + last.written)))
    return last


def _with_digits(match: re.Match[str]) -> str:
    """Return a Chinese numeral with digits: 2009 for 二〇〇九, 4万5千 for 四万五千; unchanged where it is ambiguous."""
    run = match[0]
    has_zero = any(character in _ZEROS for character in run)
    if not any(character in _UNITS for character in run):
        is_number = has_zero or len(run) >= 4 or len(run) == 1
        return run.translate(_HAN_DIGITS) if is_number else run
    digits = re.sub("0+", "", run.translate(_HAN_DIGITS))
    # Two digits in a row are "seven or eight"; 四万五 is 45,000 to some and 40,005 to others.
    ambiguous = r"\d\d" if has_zero else r"\d\d|[百千万萬亿億]\d$"
    if re.search(ambiguous, digits):
        return run
    return _IN_WORDS + re.sub("(?<!\\d)(?=[十百千])", "1", digits)


def _discount_with_digits(match: re.Match[str]) -> str:
    """Return a price in tenths with digits: 85折 for 八五折."""
    numerals = match[1] + (match[2] or "")
    return f"{_IN_WORDS}{numerals.translate(_HAN_DIGITS)}折"


def _fraction_with_digits(match: re.Match[str]) -> str:
    """Return a fraction in Chinese numerals with digits: 3/4 for 四分之三."""
    denominator = "10" if match[1] == "十" else match[1].translate(_HAN_DIGITS)
    numerator = match[2].translate(_HAN_DIGITS)
    return f"{_IN_WORDS}{numerator}/{denominator}"


def _with_exponent(match: re.Match[str]) -> str:
    """Return a power of ten as an exponent: e6 for ×10⁶ or ×10^6, 1e6 where it has no factor."""
    exponent = unicodedata.normalize("NFKC", match[1] or match[2]).replace("−", "-")
    factor = "1" if match[0].startswith("10") else ""
    return f"{factor}e{exponent}"


def _roman(numeral: str) -> Number:
    """Return a Roman numeral, in which a letter before one of more value is subtracted: 9 for IX."""
    letters = [_ROMAN_LETTERS[letter] for letter in numeral]
    value = 0
    for letter, following in zip(letters, [*letters[1:], 0]):
        value += -letter if letter < following else letter
    return Number(Decimal(value), numeral, role="numeral")


def contradiction(source: str, target: str) -> dict[str, list[str]] | None:
    """Return the numbers that contradict each other in a pair of sentences, by side; ``None`` if none do.

    Numbers of one side are matched with equal ones of the other, each once, and then with other readings: the hour on
    another clock, a year by its last two digits (1998 and 98), of another calendar (Buddhist, Persian, Islamic, Hebrew)
    or of an era that is named, the end of a range by its short form (2000-02), a century by its first year (1700s),
    both sides of a separator as numbers (16.30), the terms of a sum one by one or the part that has digits ("one
    million 200 thousand"), the digits of a phone number in other groups, dozens (3 Dutzend, 36), the half hour before
    an hour (halb 9, 8:30), minutes before or after an hour (10 vor 8, 7:50), a price in tenths (7折, 30 % off), a
    fraction or percent as a decimal (⅔, 0.67, 67 %). What is then left over decides:

    - on both sides: a contradiction ("3 books", "4 Bücher");
    - on one side only: nothing, if the other may have spelled it out ("12", "twelve") or omitted a repetition. From 13
      on a number is missing if the other side has no word of a number; one of four digits always is.

    The month of a date, a Roman numeral and a small Chinese one (三十) are matched, but contradict nothing, since the
    other side may have a word for them; the base of a numeral system (16進数, hexadecimal) and the year of a standard
    (ISO 9001:2015) may be missing; only two months contradict each other. Conversions (10 km, 6 miles) count as
    contradictions, and so do years of other calendars (Nepali, Ethiopian) and scales of languages without words in the
    table of this file.
    """
    as_written = _contradiction(source, target)
    if as_written is None:
        return None
    source_times = with_times(source)
    target_times = with_times(target)
    has_times = (source_times, target_times) != (source, target)
    if has_times and _contradiction(source_times, target_times) is None:
        return None
    return as_written


def _contradiction(source: str, target: str) -> dict[str, list[str]] | None:
    """Return the numbers that contradict each other in two sentences as they are written."""
    numbers = find_numbers(source), find_numbers(target)
    if numbers[0] == numbers[1]:
        return None
    texts = source, target
    unmatched = leftovers(*numbers)
    if not _contradict(unmatched, numbers, texts) or _same_digits(*unmatched):
        return None
    # Other readings: the parts of numbers of either side, and sums of which one side has a part in words.
    source_in_parts = _match_parts(*unmatched)
    target_parts, source_parts = _match_parts(*source_in_parts[::-1])
    for reading in ((source_parts, target_parts), _without_words(unmatched)):
        if not _contradict(reading, numbers, texts):
            return None
    source_unmatched, target_unmatched = unmatched
    return {"source": _written(source_unmatched), "target": _written(target_unmatched)}


def _written(numbers: Numbers) -> list[str]:
    return [number.written for number in numbers if number.role != "numeral"]


def _contradict(unmatched: tuple[Numbers, Numbers], numbers: tuple[Numbers, Numbers], texts: tuple[str, str]) -> bool:
    """Return whether numbers without a partner, on both sides or on one, make it a wrong pair."""
    source_numbers, target_numbers = numbers
    source_values = {number.value for number in source_numbers}
    target_values = {number.value for number in target_numbers}
    source = _without_repetitions(unmatched[0], target_values)
    target = _without_repetitions(unmatched[1], source_values)
    for roles in (("", "optional"), ("month",)):
        if _has_role(source, roles) and _has_role(target, roles):
            return True
    if any(_is_missing(number, target_values, texts[1]) for number in source):
        return True
    return any(_is_missing(number, source_values, texts[0]) for number in target)


def _without_repetitions(numbers: Numbers, other_values: set[Decimal]) -> Numbers:
    """Return numbers but for years that the other side has, too: "from May 2019 to June 2019" repeats one."""
    return [number for number in numbers if number.value < 1000 or number.value not in other_values]


def _has_role(numbers: Numbers, roles: tuple[str, ...]) -> bool:
    return any(number.role in roles for number in numbers)


def leftovers(source: Numbers, target: Numbers) -> tuple[Numbers, Numbers]:
    """Return the numbers of either side that have no partner on the other.

    Equal numbers are matched before those with another reading in common, so that no lenient match takes the partner
    of a strict one.
    """
    if not source or not target:
        return source, target
    # Those that contradict nothing match last.
    source = sorted(source, key=_contradicts_nothing)
    target = sorted(target, key=_contradicts_nothing)
    # Rows of the target by value and by other reading, from the last to the first: the first is taken first.
    rows_of_value = defaultdict[Decimal, list[int]](list)
    rows_of_reading = defaultdict[Decimal, list[int]](list)
    for row in range(len(target) - 1, -1, -1):
        rows_of_value[target[row].value].append(row)
        for value in _readings(target[row]):
            rows_of_reading[value].append(row)
    taken = set[int]()

    def take(rows: list[int]) -> bool:
        while rows:
            row = rows.pop()
            if row not in taken:
                taken.add(row)
                return True
        return False

    def take_reading(number: Number) -> bool:
        if take(rows_of_reading[number.value]):
            return True
        return any(take(rows_of_value[value]) for value in _readings(number))

    source = [number for number in source if not take(rows_of_value[number.value])]
    source = [number for number in source if not take_reading(number)]
    return source, [number for row, number in enumerate(target) if row not in taken]


def _contradicts_nothing(number: Number) -> bool:
    return bool(number.role)


def _match_parts(numbers: Numbers, others: Numbers) -> tuple[Numbers, Numbers]:
    """Return what is left over if numbers are their parts: unchanged if only some have a partner, but for a month."""
    if not any(number.parts for number in numbers):
        return numbers, others
    all_parts: Numbers = []
    for number in numbers:
        all_parts += number.parts or (number,)
    unmatched_parts, unmatched_others = leftovers(all_parts, others)
    without_partner = {id(part) for part in unmatched_parts}
    unmatched: Numbers = []
    for number in numbers:
        parts = [part for part in number.parts if id(part) in without_partner]
        some_match = 1 < len(parts) < len(number.parts)
        if some_match or (len(parts) == 1 and parts[0].role != "month"):
            return numbers, others
        unmatched += parts if len(parts) < len(number.parts) else [number]
    return unmatched, unmatched_others


def _without_words(unmatched: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers]:
    """Return what is left over without the part of a sum that a side has in words: one million of 1,200,000."""
    source, target = unmatched
    numbers = [*source, *target]
    above = max((number.above for number in numbers), default=0)
    below = max((number.below for number in numbers), default=0)

    def without(number: Number) -> Number:
        value = number.value
        if above and 10**above < value < 10 ** (above + 3):
            return replace(number, value=value % 10**above)
        if below and not number.below and 10**below < value < 10 ** (below + 3):
            return replace(number, value=value - value % 10**below)
        return number

    if not above and not below:
        return unmatched
    return leftovers([without(number) for number in source], [without(number) for number in target])


def _same_digits(source: Numbers, target: Numbers) -> bool:
    """Return whether two sides have the same digits in other groups, as phone numbers have."""
    if len(source) + len(target) <= 2:
        return False
    source_digits = _NO_DIGIT.sub("", "".join(number.written for number in source))
    target_digits = _NO_DIGIT.sub("", "".join(number.written for number in target))
    return len(source_digits) >= 7 and source_digits == target_digits


def _is_missing(number: Number, values: set[Decimal], text: str) -> bool:
    """Return whether a number without a partner is neither spelled out nor a repetition on the other side."""
    # A thousand is hardly ever a fraction: 4.500 is no 4.5.
    whole_values = [value for value in number.also if value == value.to_integral_value()]
    least = min([number.value, *whole_values])
    if number.role or least < 13 or least in _ROUND or not values.isdisjoint((number.value, *_readings(number))):
        return False
    return _digits(least) >= 4 or not _has_number_word(text)


# Numbers that are often said in other words: a score, a day, a month, all.
_ROUND = {20, 24, 30, 40, 50, 60, 70, 80, 90, 100}


@lru_cache(maxsize=REMEMBERED)
def _has_number_word(text: str) -> bool:
    text = _to_plain_characters(text).lower()
    if _SPELLED.search(text) is not None or IN_WORDS.search(text) is not None:
        return True
    return any(map(_powers_of, _WORD.findall(text)))


def _digits(value: Decimal) -> int:
    """Return how many significant digits a number has."""
    return len(value.normalize().as_tuple().digits)


def _readings(number: Number) -> tuple[Decimal, ...]:
    """Return the other values of a number: those that its notation and context allow, and years."""
    if not 0 <= number.value < 6000 or number.value % 1:
        return number.also
    return (*number.also, *_years(number))


def _other_hour(hour: Decimal) -> tuple[Decimal, ...]:
    return tuple(other for other in (hour - 12, hour + 12) if 0 <= other <= 24)


def _years(number: Number) -> tuple[Decimal, ...]:
    """Return a year with other digits, or in another calendar: Buddhist, Persian, Islamic or Hebrew."""
    year = int(number.value)
    years: list[int] = []
    if len(number.written) == 2:
        years += [century + year for century in range(1000, 2100, 100)]
    if 2300 <= year < 2620:  # Buddhist
        years.append(year - 543)
    if 1250 <= year < 1480:  # Persian; Islamic, whose years have 354 days
        islamic_year = int(year * 0.970224 + 621.577)
        years += [year + 621, year + 622, islamic_year, islamic_year + 1]
    if 5500 <= year < 5900:  # Hebrew
        years += [year - 3761, year - 3760]
    return tuple(map(Decimal, years))
