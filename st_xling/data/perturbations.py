"""Text as people also write it: typing errors, other case, punctuation, numerals or script."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Sequence

from st_xling.data.hard_translations import number_words
from st_xling.utils.languages import canonical_language

# Cyrillic as most passports have it, Greek by ISO 843's simple form, Latin letters that marks do not explain.
_TABLE = """
аa бb вv гg дd еe ёe жzh зz иi йi кk лl мm нn оo пp рr сs тt уu фf хkh цts чch шsh щshch ъ ыy ь эe юiu яia іi їi єie ґg
ўu јj ђdj љlj њnj ћc џdz αa βv γg δd εe ζz ηi θth ιi κk λl μm νn ξx οo πp ρr σs ςs τt υy φf χch ψps ωo đd ßss øo łl æae
œoe ıi ðd þth
"""
_LETTERS = {part[0]: part[1:] for part in _TABLE.split()}
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK")

# Digits of a language's own script, and what groups its thousands.
_NUMERALS = {"ara": "٠١٢٣٤٥٦٧٨٩", "pes": "۰۱۲۳۴۵۶۷۸۹", "urd": "۰۱۲۳۴۵۶۷۸۹", "hin": "०१२३४५६७८९", "mar": "०१२३४५६७८९"}
_NUMERALS |= {"ben": "০১২৩৪৫৬৭৮৯", "tha": "๐๑๒๓๔๕๖๗๘๙", "cmn": "０１２３４５６７８９", "jpn": "０１２３４５６７８９"}
_POINTS = ("deu", "spa", "por", "ita", "nld", "ind", "vie", "tur", "dan", "ell", "hrv", "slv")
_SPACES = ("fra", "rus", "ukr", "pol", "ces", "swe", "nob", "fin", "bul", "slk", "hun")
_DIGITS = r"(?<![\w.,:/-])(?:\d{{1,3}}(?:(?:{0}\d{{3}})+|(?:[ \u202f]\d{{3}})+)|\d+)(?![\w:/%]|[.,-]\d)"


def perturb(sentences: Sequence[str], kind: str, *, seed: int = 0, language: str = "en") -> list[str]:
    """The same sentences written otherwise; what they say stays. An encoder should hardly notice.

    ===================  ====================================================================================
    ``typos``            a letter in about ten, at least one: two swapped, one doubled or left out; never the first
                         of a word
    ``casing``           all small or all capital letters; text of scripts without case stays
    ``punctuation``      none; a sentence without any gets a full stop
    ``digits``           thousands grouped or no longer (``5000``, ``5,000``; years stay), numbers up to twelve in words
                         where there is a lexicon (``2``, ``two``); Arabic, Persian, Urdu, Hindi, Marathi, Bengali and
                         Thai in their own numerals, Chinese and Japanese in wide ones; text without such stays
    ``transliteration``  Latin letters without marks; Cyrillic and Greek in Latin letters
    ===================  ====================================================================================

    Args:
        sentences: Texts of one language.
        kind: One of :data:`PERTURBATIONS`.
        seed: Of what is drawn; what becomes of a sentence depends on it and on that sentence alone.
        language: Two or three letters; only ``digits`` depend on it.
    Returns:
        A text for each, NFC.
    Raises:
        ValueError: An unknown kind; transliteration of text that is mostly in another script than those three, which
            takes a dictionary.
    Example:
        >>> perturb(["Well, we paid 12500 euros."], "digits"), perturb(["Дважды два"], "transliteration")
        (['Well, we paid 12,500 euros.'], ['Dvazhdy dva'])
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(PERTURBATIONS)}: got {kind!r}.")
    texts = [unicodedata.normalize("NFC", sentence) for sentence in sentences]
    if kind == "transliteration":
        _check_scripts(texts)
    return [_KINDS[kind](text, random.Random(f"{seed} {text}"), language) for text in texts]


def _typos(text: str, lot: random.Random, language: str) -> str:
    letters: list[str] = []  # with their marks
    for sign in text:
        if letters and unicodedata.category(sign)[0] == "M":
            letters[-1] += sign
        else:
            letters.append(sign)
    is_letter = [letter[0].isalpha() for letter in letters]
    places = [place for place in range(1, len(letters)) if is_letter[place - 1] and is_letter[place]]
    chosen: list[int] = []
    for place in lot.sample(places, len(places)):
        if len(chosen) < max(1, round(len(places) / 10)) and all(abs(place - other) > 2 for other in chosen):
            chosen.append(place)
    for place in sorted(chosen, reverse=True):
        own, following = letters[place], letters[place + 1 : place + 2]
        ways = [[own, own, *following], following]
        if following and following[0][0].isalpha() and following[0] != own:
            ways.append([*following, own])
        letters[place : place + 2] = lot.choice(ways)
    return "".join(letters)


def _casing(text: str, lot: random.Random, language: str) -> str:
    changed = [other for other in (text.lower(), text.upper()) if other != text]
    return unicodedata.normalize("NFC", lot.choice(changed)) if changed else text


def _punctuation(text: str, lot: random.Random, language: str) -> str:
    # Between letters and between digits a mark is of the word, or of the number.
    bare = "".join(
        sign
        for place, sign in enumerate(text)
        if unicodedata.category(sign)[0] != "P"
        or sign in "%‰٪&@#§"  # words of their own
        or (sign == "-" and text[place + 1 : place + 2].isdigit())  # less than nothing
        or (text[place - 1 : place].isalnum() and text[place + 1 : place + 2].isalnum() and sign in "'’-.,:/_·")
    )
    bare = " ".join(bare.split())
    if not text.strip():
        return text
    stop = "。" if re.search("[\u3040-\u30ff\u4e00-\u9fff]", text) else "."
    return bare if bare and bare != text else text + stop


def _digits(text: str, lot: random.Random, language: str) -> str:
    code = canonical_language(language)
    if code in _NUMERALS:
        there = text.translate(str.maketrans("0123456789", _NUMERALS[code]))
        return there if there != text else text.translate(str.maketrans(_NUMERALS[code], "0123456789"))
    words = number_words(language)
    separator = "." if code in _POINTS else "\u202f" if code in _SPACES else ","

    numbers = re.compile(_DIGITS.format(re.escape(separator)), re.ASCII)  # the other sign begins a fraction

    def other(match: re.Match[str]) -> str:
        number = match[0]
        if not number.isdecimal():
            return re.sub(r"\D", "", number)
        if len(number) > 4 or (len(number) == 4 and not 1100 <= int(number) < 2100):
            return f"{int(number):,}".replace(",", separator) if number[0] != "0" else number
        return words.get(int(number), number) if number[0] != "0" else number

    return numbers.sub(other, text)


def _transliteration(text: str, lot: random.Random, language: str) -> str:
    result = []
    for sign in text:
        if unicodedata.name(sign, "").startswith("COMBINING"):  # no letter has it built in
            continue
        bare = "".join(part for part in unicodedata.normalize("NFD", sign) if not unicodedata.combining(part)) or sign
        letters = _LETTERS.get(sign.lower(), _LETTERS.get(bare.lower()))
        if letters is not None and sign.isupper():
            letters = letters[:1].upper() + letters[1:]
        is_known = unicodedata.name(sign, "").startswith(_SCRIPTS)
        result.append(letters if letters is not None else bare if is_known else sign)
    return "".join(result)


def _check_scripts(texts: Sequence[str]) -> None:
    letters = [unicodedata.name(sign, "") for text in texts for sign in text if sign.isalpha()]
    others = [name.split()[0] for name in letters if not name.startswith(_SCRIPTS)]
    if 2 * len(others) > len(letters):
        raise ValueError(
            f"transliteration is for text in Latin, Cyrillic and Greek letters: got mostly "
            f"{max(set(others), key=others.count).title()} ones; leave it out for this language."
        )


_KINDS: dict[str, Callable[[str, random.Random, str], str]] = {
    "typos": _typos,
    "casing": _casing,
    "punctuation": _punctuation,
    "digits": _digits,
    "transliteration": _transliteration,
}

#: What ``kind`` of :func:`perturb` may be.
PERTURBATIONS = tuple(_KINDS)
