"""Times of day that are said by minutes before or after an hour, such as ``10 vor 8``, written with digits: ``7:50``.

The words of many languages are in one table, since a sentence does not tell its language. A phrase may mean something
else ("they won 10 to 8"), so that the digits are one reading of a sentence, next to the sentence as it is.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial

_REMEMBERED = 1 << 12

_MINUTE_WORDS = {
    5: "five|fünf|vijf|cinq|cinco|cinque|fem|pięć|pięciu|пять|пяти|п'ять|п'яти|viisi|viittä|pět|öt|beş|cinci|πέντε|lima"
    "|năm|خمسة?|پنج|חמש|חמישה",
    10: "ten|zehn|tien|dix|diez|dez|dieci|tio|ti|dziesięć|десять|десяти|kymmenen|kymmentä|deset|tíz|on|zece|δέκα"
    "|sepuluh|mười|عشرة?|ده|עשר|עשרה",
    15: "quarter|viertel|kwart|quart|cuarto|quarto|kvart|kvarter|kwadrans|vartti|varttia|vartin|çeyrek|çeyreği|sfert"
    "|τέταρτο|четверть|четверти|чверть|чверті|seperempat|ربع|רבע",
    20: "twenty|zwanzig|twintig|vingt|veinte|vinte|venti|tjugo|tyve|dwadzieścia|двадцать|двадцати|двадцять|двадцяти"
    "|kaksikymmentä|dvacet|húsz|yirmi|douăzeci|είκοσι|dua puluh|hai mươi|بیست|عشرين|עשרים",
    25: "twenty[- ]five|fünfundzwanzig|vijfentwintig|vingt[- ]cinq|veinticinco|vinte e cinco|venticinque|tjugofem"
    "|femogtyve|dwadzieścia pięć|двадцать пять|двадцати пяти|húszonöt|huszonöt|yirmi beş|είκοσι πέντε",
}
_MINUTES_OF_WORD = [(re.compile(words, re.IGNORECASE), minutes) for minutes, words in _MINUTE_WORDS.items()]

# Longest words first: "twenty-five" begins with "twenty".
_ANY_MINUTE_WORD = "|".join(_MINUTE_WORDS[minutes] for minutes in sorted(_MINUTE_WORDS, reverse=True))
_UNIT = (
    r"(?:\s?(?:minutes?|minuten?|minuter|minutter|minutt|minutos?|minuti|minut|minuuttia|min\b\.?|минут[аы]?|хвилини?"
    r"|perc|dakika|dəqiqə|λεπτά|phút|menit|دقيقة|دقائق|دقیقه|דקות|分钟?|分鐘?|분))?"
)
_HOUR_UNIT = (
    r"(?:\s?(?:heures?|h\b|uhr|uur|horas?|ore|час(?:а|ов)?\b|години?|timer?|godz\.?|giờ|jam|óra|[点點時]|시|ساعة"
    r"|ساعت))?"
)
_MINUTES = rf"(?P<minutes>(?<!\d)[0-2]?\d(?!\d)|\b(?:{_ANY_MINUTE_WORD})\b){_UNIT}"
_BEFORE_HALF_HOUR = r"(?P<half>(?:halb|half|halv|fél|f[ée]l|puoli|půl|pół do|wpół do)\s)?"
_HOUR = r"(?P<hour>(?<!\d)[012]?\d(?![\d:]))"

_BEFORE = (
    r"(?:to|before|till?|of|vor|voor|para (?:as|às|a|o)|para|i|på|vaille|vailla|múlva|до|به|ל-?)\s?"  # then the hour
)
_AFTER = r"(?:past|after|nach|over|över|efter|po|yli|após|после|بعد)\s?"
_LESS = r"(?:moins(?: le)?|menos(?: un)?|meno(?: un)?|menys|fără(?: un)?|παρά|без|kém|kurang|إلا|差|minus)"
_MORE = r"(?:et(?: le)?|y|e(?: um| un)?|și(?: un)?|και|lewat|lebih|و)"
_TURKISH_CASE = r"'\s?[yn]?[aeıiuü]"

_PHRASES = (
    (rf"{_MINUTES}\s?\b{_BEFORE}{_BEFORE_HALF_HOUR}{_HOUR}", -1),
    (rf"\b(?:без|за|za|差)\s?{_MINUTES}\s?{_BEFORE_HALF_HOUR}{_HOUR}", -1),
    (rf"{_MINUTES}\s?\b{_AFTER}{_BEFORE_HALF_HOUR}{_HOUR}", 1),
    (rf"{_HOUR}{_HOUR_UNIT}\s?{_LESS}\s?{_MINUTES}", -1),
    (rf"{_HOUR}{_HOUR_UNIT}\s?{_MORE}\s{_MINUTES}", 1),
    (rf"{_HOUR}{_HOUR_UNIT}\s?{_MINUTES}\s?[前전]", -1),
    (rf"{_HOUR}{_TURKISH_CASE}\s{_MINUTES}\s(?:var|kala)\b", -1),
    (rf"{_HOUR}{_TURKISH_CASE}\s{_MINUTES}\sgeç\w*", 1),
)
_CLOCK = [(re.compile(pattern, re.IGNORECASE), sign) for pattern, sign in _PHRASES]
# A quarter of the hour that ends: "viertel 9" is 8:15 in much of the German-speaking area.
_QUARTER_OF = re.compile(rf"\b(?:viertel|negyed|čtvrt na|štvrť na|četrt na|un quart de)\s{_HOUR}", re.IGNORECASE)
_CHINESE_QUARTERS = re.compile(r"(?P<hour>(?<!\d)[012]?\d)\s?[点點時](?:过|過)?(?P<quarters>[一三])刻")

#: A minute and its preposition in words, as in "fünf vor acht".
IN_WORDS = re.compile(
    rf"\b(?:{_ANY_MINUTE_WORD})\b{_UNIT}\s?\b{_BEFORE}|\b(?:{_ANY_MINUTE_WORD})\b{_UNIT}\s?\b{_AFTER}"
    rf"|(?:{_LESS}|\bбез|\bза)\s(?:{_ANY_MINUTE_WORD})\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=_REMEMBERED)
def with_times(text: str) -> str:
    """Return a sentence in which times such as ``10 vor 8`` are written with digits, as ``7:50``.

    Minutes are digits up to 29, or words for 5, 10, 15, 20 and 25; hours are digits.

    Example:
        >>> with_times("Um 5 vor halb 9, las 8 menos diez, 8点差10分")
        'Um 8:25, las 7:50, 7:50'
    """
    for pattern, sign in _CLOCK:
        text = pattern.sub(partial(_by_minutes, sign=sign), text)
    text = _QUARTER_OF.sub(_quarter_of, text)
    return _CHINESE_QUARTERS.sub(_chinese_quarters, text)


def _by_minutes(match: re.Match[str], *, sign: int) -> str:
    written = match["minutes"]
    if written.isdecimal():
        minutes = int(written)
    else:
        minutes = next(number for words, number in _MINUTES_OF_WORD if words.fullmatch(written))
    half = 30 if match.groupdict().get("half") else 0
    if not 1 <= minutes <= 29:
        return match[0]
    return _digital(match, int(match["hour"]) * 60 - half + sign * minutes)


def _quarter_of(match: re.Match[str]) -> str:
    return _digital(match, int(match["hour"]) * 60 - 45)


def _chinese_quarters(match: re.Match[str]) -> str:
    minutes = 15 if match["quarters"] == "一" else 45
    return _digital(match, int(match["hour"]) * 60 + minutes)


def _digital(match: re.Match[str], minutes: int) -> str:
    """Return a number of minutes after midnight as digits; the phrase itself if its hour is none."""
    if not 1 <= int(match["hour"]) <= 24:
        return match[0]
    hour, minute = divmod(minutes, 60)
    return f"{hour or 12}:{minute:02}"
