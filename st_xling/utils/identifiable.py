"""Find the part of a text by which its language can be identified: not names, code, or scripts unknown to py3langid."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from st_xling.utils.identify import READ_CHARS, expected_labels, likeliest_language, plain_letters
from st_xling.utils.languages import canonical_language

# Characters that are looked at: what is left of them, less names and code, is read up to READ_CHARS.
_LOOKED_AT = 4 * READ_CHARS


def _scripts_by_language(languages_of_scripts: dict[str, str]) -> dict[str, list[str]]:
    """Turn a table of the languages that are written in some scripts around: the scripts of each language."""
    scripts_of_language: dict[str, list[str]] = {}
    for scripts, languages in languages_of_scripts.items():
        scripts_of_language |= dict.fromkeys(languages.split(), scripts.split())
    return scripts_of_language


# Scripts, by the first word of their characters' names, that py3langid's training texts are in; all others are in Latin
# letters, and so are Serbian's and Uzbek's as well.
_TRAINED = _scripts_by_language(
    {
        "ARABIC": "ar ary arz fa ps sdh ug ur uzs",
        "ARMENIAN": "hy",
        "BENGALI": "as bn",
        "CJK": "wuu yue zh",
        "CJK HIRAGANA KATAKANA": "ja",
        "CYRILLIC": "ba be bg kk ky mk mn ru tg tt uk",
        "CYRILLIC LATIN": "sr uz",
        "DEVANAGARI": "gom hi mr ne sa",
        "ETHIOPIC": "am",
        "GEORGIAN": "ka",
        "GREEK": "el grc",
        "GUJARATI": "gu",
        "GURMUKHI": "pa",
        "HANGUL": "ko",
        "HEBREW": "hbo he",
        "KANNADA": "kn",
        "KHMER": "km",
        "LAO": "lo",
        "MALAYALAM": "ml",
        "MYANMAR": "my",
        "ORIYA": "or",
        "SINHALA": "si",
        "TAMIL": "ta",
        "TELUGU": "te",
        "THAI": "th",
        "TIBETAN": "dz",
    }
)

# Other scripts in which a language is written today, by LASER's code: where py3langid takes such text for another one.
_ALSO_IN = _scripts_by_language(
    {
        "ADLAM ARABIC": "ful fuv",
        "ARABIC": "ace hau pan zsm",
        "ARABIC CYRILLIC": "aze crh tuk uzb",
        "ARABIC JAVANESE": "jav",
        "ARABIC LATIN": "bak bel kaz kir tat tgk",
        "CJK": "kor vie",
        "CYRILLIC": "bos kur ron",
        "CYRILLIC LATIN": "uig",
        "KANNADA LATIN MALAYALAM": "gom kok",
        "LATIN MONGOLIAN": "mon",
        "BENGALI GUJARATI KANNADA LATIN MALAYALAM ORIYA SINHALA TAMIL TELUGU": "san",
        "TIFINAGH": "kab",
    }
)

# Scripts that a code may name, "hi_Latn", by that name.
_NAMED = {
    "adlm": "ADLAM",
    "arab": "ARABIC",
    "armn": "ARMENIAN",
    "beng": "BENGALI",
    "cyrl": "CYRILLIC",
    "deva": "DEVANAGARI",
    "ethi": "ETHIOPIC",
    "geor": "GEORGIAN",
    "grek": "GREEK",
    "gujr": "GUJARATI",
    "guru": "GURMUKHI",
    "hani": "CJK",
    "hebr": "HEBREW",
    "java": "JAVANESE",
    "knda": "KANNADA",
    "latn": "LATIN",
    "mlym": "MALAYALAM",
    "mong": "MONGOLIAN",
    "nkoo": "NKO",
    "orya": "ORIYA",
    "sinh": "SINHALA",
    "sund": "SUNDANESE",
    "syrc": "SYRIAC",
    "taml": "TAMIL",
    "telu": "TELUGU",
    "tfng": "TIFINAGH",
    "thaa": "THAANA",
    "tibt": "TIBETAN",
}

# Languages that text in Latin letters is in nevertheless, by mistake.
_WIDESPREAD = {"de", "en", "es", "fr", "it", "pt"}

# Characters of the shortest text that is taken for one of them.
_SHORTEST = 20

# Most Chinese characters of a name or title in Korean or Vietnamese text.
_HAN_TITLE = 10

# Punctuation of Chinese sentences, which names and titles do not have.
_HAN_SENTENCE = re.compile("[，。！？；]")

_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W\d_]")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+")
_LATIN_LETTER = "A-Za-z\u00c0-\u024f"

# A word of ASCII that may be an identifier, with parentheses after it, as functions and manual pages have.
_IDENTIFIER = re.compile(
    rf"(?<![{_LATIN_LETTER}0-9_])[A-Za-z0-9_][A-Za-z0-9_./:@\\+-]*(?:\([A-Za-z0-9_]{{0,2}}\))?(?![{_LATIN_LETTER}0-9_])"
)

# What makes such a word an identifier: a digit, a sign, or a capital or a dot inside.
_CODE = re.compile(r"[0-9_/@\\:(]|[a-z][A-Z]|\.[A-Za-z]")
_LATIN_WORDS = re.compile(rf"[{_LATIN_LETTER}]+")

# Signs of program code; text that has one for two words is no language.
_SIGN = re.compile(r"[(){}\[\]*=;<>|&#_\\/$%^~]")
_WORDS_A_SIGN = 2

# Small words within names.
_PARTICLES = frozenset(
    ["al", "bin", "da", "das", "de", "dei", "del", "della", "den", "der", "di", "do", "dos", "du", "e", "el", "ibn"]
    + ["la", "las", "le", "los", "van", "von", "y", "zu"]
)

# Most words of a name.
_FEW_WORDS = 8


def identifiers(text: str) -> set[str]:
    """Return the identifiers of programs in a text, in small letters.

    An identifier is a word with a digit, an underscore, a slash, a dot or a capital inside, with parentheses after it,
    or in capitals in a text that is not.

    Example:
        >>> sorted(identifiers("Der Aufruf von open(2) setzt EINTR oder errno_t."))
        ['eintr', 'errno_t', 'open(2)']
    """
    words = {_normalize_identifier(match[0]): match[0] for match in _IDENTIFIER.finditer(text)}
    capitals_tell = not text.isupper()
    names = set[str]()
    for name, word in words.items():
        if _CODE.search(word.rstrip(".:-/")) or (capitals_tell and len(word) > 1 and word.isupper()):
            names.add(name)
    return names


def without_identifiers(text: str, names: set[str]) -> str:
    """Return a text without some identifiers, as :func:`identifiers` returns them."""
    return _IDENTIFIER.sub(lambda match: " " if _normalize_identifier(match[0]) in names else match[0], text)


def _normalize_identifier(word: str) -> str:
    """Return an identifier in small letters, without the punctuation of the sentence after it."""
    return word.rstrip(".:-/").lower()


@lru_cache(maxsize=1 << 15)
def identifiable_part(text: str, language: str) -> str:
    """Return the part of a text that shows whether it is in a language; empty if nothing does.

    Addresses and identifiers are left out, and in a language of another script words in Latin letters next to its own.
    Nothing is left of names alone, program code, and text in a script which the language is written in, but which
    py3langid's training texts of it are not: Kazakh in Latin letters, Punjabi in Arabic ones, a Korean title in
    Chinese characters.

    Args:
        text: The text, of which the first 400 characters are looked at.
        language: Its expected language, which py3langid knows.
    Example:
        >>> identifiable_part("NUD_PROBES は Linux 3.5 以降で使えます。", "ja").split()
        ['は', '以降で使えます。']
        >>> identifiable_part("Ludwig van Beethoven", "en"), identifiable_part("Bügın aua raiy jaqsy", "kk")
        ('', '')
    """
    text = ordinary_part(text)
    scripts = Counter(_script(letter) for letter in plain_letters(text) if letter.isalpha())
    if not scripts:
        return ""
    trained = set[str]()
    for label in expected_labels(language):
        trained.update(_TRAINED.get(label, ["LATIN"]))
    if "LATIN" not in trained and any(script in trained for script in scripts):
        trained_letters = sum(count for script, count in scripts.items() if script in trained)
        # Names and terms stay in Latin letters; a text in them with a word of the language is none in it.
        if trained_letters >= scripts["LATIN"] / 4:
            return _LATIN_WORDS.sub(" ", text)
    main_script = scripts.most_common(1)[0][0]
    if main_script in trained or main_script not in _other_scripts(language):
        return text
    if main_script == "CJK":
        is_title = scripts["CJK"] <= _HAN_TITLE and not _HAN_SENTENCE.search(text)
        return "" if is_title else text
    is_mistaken = main_script == "LATIN" and len(text) >= _SHORTEST and likeliest_language(text) in _WIDESPREAD
    return text if is_mistaken else ""


def ordinary_part(text: str) -> str:
    """Return a text without addresses and identifiers; empty if it is program code, or names alone.

    Example:
        >>> ordinary_part("See wait(2) and the rest."), ordinary_part("int close(int fd);")
        ('See   and the rest.', '')
    """
    text = text[:_LOOKED_AT]
    if _is_code(text) or _is_names(text):
        return ""
    text = _ADDRESS.sub(" ", text)
    return without_identifiers(text, identifiers(text))


def _other_scripts(language: str) -> list[str]:
    """Return the scripts that a language is written in, but not py3langid's training texts; and that the code names."""
    tags = re.split("[-_]", language.lower())[1:]
    named = [_NAMED[tag] for tag in tags if tag in _NAMED]
    return [*_ALSO_IN.get(canonical_language(language), []), *named]


def _is_code(text: str) -> bool:
    """Return whether a text has a sign of program code for two words."""
    signs = len(_SIGN.findall(text))
    return signs > 1 and signs * _WORDS_A_SIGN >= len(_WORD.findall(text))


def _is_names(text: str) -> bool:
    """Return whether all words are names: a few capitalized ones, or single words in a list."""
    words = [word for word in _WORD.findall(text) if _LETTER.search(word)]
    list_items = [item for item in text.split(",") if _LETTER.search(item)]
    if len(list_items) > 1 and len(list_items) == len(words):
        return True
    names = [word for word in words if word not in _PARTICLES]
    return 1 < len(names) <= _FEW_WORDS and not text.isupper() and all(word[0].isupper() for word in names)


@lru_cache(maxsize=1 << 14)
def _script(letter: str) -> str:
    """Return the first word of a letter's name, which is its script."""
    return unicodedata.name(letter, "").split(" ")[0]
