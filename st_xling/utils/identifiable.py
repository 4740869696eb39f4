"""Find the part of a text by which its language can be identified: not names, code, or scripts unknown to py3langid."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from st_xling.utils.identify import READ_CHARS, expected_labels, likeliest_language, plain_letters
from st_xling.utils.languages import canonical_language

# Number of characters of a text that are looked at: enough to leave READ_CHARS without addresses and identifiers.
_MAX_CHARS = 4 * READ_CHARS


def _scripts_by_language(languages_of_scripts: dict[str, str]) -> dict[str, list[str]]:
    """Invert a table of scripts → languages that are written in them; return language → its scripts."""
    scripts_of_language: dict[str, list[str]] = {}
    for scripts, languages in languages_of_scripts.items():
        scripts_of_language |= dict.fromkeys(languages.split(), scripts.split())
    return scripts_of_language


# Scripts of py3langid's training texts, by label; labels that are not here were trained on Latin letters alone. A
# script is named by the first word of its characters' Unicode names.
_TRAINED_SCRIPTS = _scripts_by_language(
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

# Scripts in which a language is written today besides those that py3langid was trained on, by LASER's code. py3langid
# takes such text for another language.
_UNTRAINED_SCRIPTS = _scripts_by_language(
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

# Scripts by the subtag that names them in a language code, such as "hi_Latn".
_SCRIPT_SUBTAGS = {
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

# Languages that are often found by mistake where a language in Latin letters is expected, and the number of characters
# from which a text is taken for one of them.
_WIDESPREAD = {"de", "en", "es", "fr", "it", "pt"}
_MIN_WIDESPREAD_CHARS = 20

# Maximum number of Chinese characters of a name or title in Korean or Vietnamese text.
_MAX_HAN_TITLE = 10

# Punctuation of Chinese sentences, which names and titles do not have.
_HAN_SENTENCE = re.compile("[，。！？；]")

_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W\d_]")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+")
_LATIN_LETTER = "A-Za-z\u00c0-\u024f"

# A word of ASCII characters, which may be an identifier, with parentheses such as those of ``main()`` or ``open(2)``.
_ASCII_WORD = re.compile(
    rf"(?<![{_LATIN_LETTER}0-9_])[A-Za-z0-9_][A-Za-z0-9_./:@\\+-]*(?:\([A-Za-z0-9_]{{0,2}}\))?(?![{_LATIN_LETTER}0-9_])"
)

# What makes such a word an identifier: a digit or one of some signs, a capital after a small letter, a dot inside.
_IDENTIFIER_MARK = re.compile(r"[0-9_/@\\:(]|[a-z][A-Z]|\.[A-Za-z]")
# Names of functions before their description: "tan, tanf, tanl - tangent function".
_NAMES_BEFORE_DASH = re.compile(r"\s*[a-z0-9_.]+(?:, [a-z0-9_.]+)+(?= [-\u2013\u2014] )")
_LATIN_WORDS = re.compile(rf"[{_LATIN_LETTER}]+")

# Characters of program code, and the number of words per character up to which a text is program code.
_CODE_SIGN = re.compile(r"[(){}\[\]*=;<>|&#_\\/$%^~]")
_WORDS_PER_SIGN = 2

# Words in small letters within the names of persons.
_PARTICLES = frozenset(
    ["al", "bin", "da", "das", "de", "dei", "del", "della", "den", "der", "di", "do", "dos", "du", "e", "el", "ibn"]
    + ["la", "las", "le", "los", "van", "von", "y", "zu"]
)

# Maximum number of capitalized words of a text that is names alone.
_MAX_NAME_WORDS = 8


def identifiers(text: str) -> set[str]:
    """Return the identifiers of program code in a text, in lower case.

    An identifier is an ASCII word with a digit, an underscore or a slash, with a dot or a capital inside, or with
    parentheses after it; or a word in capitals, unless the whole text is; or one of a list of words in small letters
    that a text begins with, before a dash.

    Example:
        >>> sorted(identifiers("Der Aufruf von open(2) setzt EINTR oder errno_t."))
        ['eintr', 'errno_t', 'open(2)']
        >>> sorted(identifiers("tan, tanf - Tangensfunktion"))
        ['tan', 'tanf']
    """
    words = {_normalize_identifier(match[0]): match[0] for match in _ASCII_WORD.finditer(text)}
    capitals_mark_identifiers = not text.isupper()
    names = set[str]()
    if listed := _NAMES_BEFORE_DASH.match(text):
        names.update(listed[0].strip().split(", "))
    for name, word in words.items():
        if _IDENTIFIER_MARK.search(word.rstrip(".:-/")) or (
            capitals_mark_identifiers and len(word) > 1 and word.isupper()
        ):
            names.add(name)
    return names


def without_identifiers(text: str, names: set[str]) -> str:
    """Return a text with a space in place of each of some identifiers, which are given as by :func:`identifiers`."""
    return _ASCII_WORD.sub(lambda match: " " if _normalize_identifier(match[0]) in names else match[0], text)


def _normalize_identifier(word: str) -> str:
    """Return an identifier in lower case, without punctuation at its end."""
    return word.rstrip(".:-/").lower()


@lru_cache(maxsize=1 << 15)
def identifiable_part(text: str, language: str) -> str:
    """Return the part of a text by which py3langid can tell whether it is in a language; empty if it cannot.

    Addresses and identifiers are left out, and so are words in Latin letters if the language has another script and the
    text has enough of it. The result is empty for:

    - names alone, and program code;
    - text in a script in which the language is written, but not by py3langid's training texts: Kazakh in Latin letters,
      Punjabi in Arabic letters, a Korean title in Chinese characters.

    Args:
        text: The text; its first 400 characters are looked at.
        language: The expected language, one that py3langid knows.

    Example:
        >>> identifiable_part("NUD_PROBES は Linux 3.5 以降で使えます。", "ja").split()
        ['は', '以降で使えます。']
        >>> identifiable_part("Ludwig van Beethoven", "en"), identifiable_part("Bügın aua raiy jaqsy", "kk")
        ('', '')
    """
    text = ordinary_part(text)
    letter_counts = Counter(_script(letter) for letter in plain_letters(text) if letter.isalpha())
    if not letter_counts:
        return ""
    trained = set[str]()
    for label in expected_labels(language):
        trained.update(_TRAINED_SCRIPTS.get(label, ["LATIN"]))
    n_trained = sum(count for script, count in letter_counts.items() if script in trained)
    # Names and terms may be in Latin letters; but a text mostly in them is not in a language of another script.
    if "LATIN" not in trained and n_trained > 0 and n_trained >= letter_counts["LATIN"] / 4:
        return _LATIN_WORDS.sub(" ", text)

    main_script = letter_counts.most_common(1)[0][0]
    if main_script in trained or main_script not in _untrained_scripts(language):
        return text
    # The language may be written in this script, and py3langid cannot know: only a text that clearly is in Chinese, or
    # in a widespread language, shows that it is not.
    if main_script == "CJK":
        is_title = letter_counts["CJK"] <= _MAX_HAN_TITLE and not _HAN_SENTENCE.search(text)
        return "" if is_title else text
    is_long_latin = main_script == "LATIN" and len(text) >= _MIN_WIDESPREAD_CHARS
    return text if is_long_latin and likeliest_language(text) in _WIDESPREAD else ""


def ordinary_part(text: str) -> str:
    """Return the start of a text without addresses and identifiers; empty if it is program code or names alone.

    Example:
        >>> ordinary_part("See wait(2) and the rest."), ordinary_part("int close(int fd);")
        ('See   and the rest.', '')
    """
    return "" if _is_names(text[:_MAX_CHARS]) else words_and_names(text)


def words_and_names(text: str) -> str:
    """Return the start of a text without addresses and identifiers; empty if it is program code.

    Example:
        >>> words_and_names("Ludwig van Beethoven"), words_and_names("int close(int fd);")
        ('Ludwig van Beethoven', '')
    """
    text = text[:_MAX_CHARS]
    if _is_code(text):
        return ""
    text = _ADDRESS.sub(" ", text)
    return without_identifiers(text, identifiers(text))


def _untrained_scripts(language: str) -> list[str]:
    """Return the scripts of a language besides those that py3langid was trained on, and those that its code names."""
    subtags = re.split("[-_]", language.lower())[1:]
    named = [_SCRIPT_SUBTAGS[subtag] for subtag in subtags if subtag in _SCRIPT_SUBTAGS]
    return [*_UNTRAINED_SCRIPTS.get(canonical_language(language), []), *named]


def _is_code(text: str) -> bool:
    """Return whether a text has at least one character of program code per two words."""
    n_signs = len(_CODE_SIGN.findall(text))
    return n_signs > 1 and n_signs * _WORDS_PER_SIGN >= len(_WORD.findall(text))


def _is_names(text: str) -> bool:
    """Return whether a text is names alone: single words between commas, or a few words that are all capitalized."""
    words = [word for word in _WORD.findall(text) if _LETTER.search(word)]
    list_items = [item for item in text.split(",") if _LETTER.search(item)]
    if len(list_items) > 1 and len(list_items) == len(words):
        return True
    names = [word for word in words if word not in _PARTICLES]
    are_few = 1 < len(names) <= _MAX_NAME_WORDS
    return are_few and not text.isupper() and all(name[0].isupper() for name in names)


@lru_cache(maxsize=1 << 14)
def _script(letter: str) -> str:
    """Return the script of a letter: the first word of its Unicode name."""
    return unicodedata.name(letter, "").split(" ")[0]
