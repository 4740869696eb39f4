"""Identify the language of a text, by py3langid.

py3langid's model is in its wheel of 5 MB, it needs numpy alone, and it identifies short sentences better than lingua
(100 to 170 MB) at fifteen times the speed; fastText's models need a download or a second license.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from st_xling.utils.languages import UNKNOWN, canonical_language

#: Characters of a sentence that are read: a whole long sentence takes twice the time and is identified no better.
READ_CHARS = 100

#: py3langid's label for text that is no language: numbers, markup, identifiers.
NO_LANGUAGE = "zxx"

# Sentences by which the language of a text is identified.
_ENOUGH = 200

# Texts that are remembered: a sentence is in several candidates, most of them near.
_REMEMBERED = 1 << 15

# Codes that stand for other or for several of py3langid's labels; Norwegian and Serbo-Croatian differ by spelling
# alone, the others are languages with those that are written almost like them, such as a macrolanguage's members.
_FAMILIES = {
    "cmn": ("zh", "wuu", "yue"),
    **dict.fromkeys(("ara", "arq", "arz", "ary", "apc", "ajp", "acm", "acq", "ars", "aeb"), ("ar", "ary", "arz")),
    "heb": ("he", "hbo"),
    "hbo": ("hbo", "he"),
    "ell": ("el", "grc"),
    "grc": ("grc", "el"),
    "nob": ("no", "nn"),
    "nno": ("nn", "no"),
    "hrv": ("hr", "bs", "sr"),
    "bos": ("bs", "hr", "sr"),
    "srp": ("sr", "bs", "hr"),
    **dict.fromkeys(("hbs", "cnr"), ("sr", "hr", "bs")),
    "ind": ("id", "ms"),
    "zsm": ("ms", "id"),
    **dict.fromkeys(("kur", "ckb"), ("ku", "sdh")),
    "uzb": ("uz", "uzs"),
    "lvs": ("lv", "ltg"),
    **dict.fromkeys(("quy", "quz", "quh", "qul"), ("qu",)),
    "ful": ("fuv",),
    "prs": ("fa",),
    "hyw": ("hy",),
    "swc": ("sw",),
    "bik": ("bcl",),
    **dict.fromkeys(("kok", "knn"), ("gom",)),
}

# Hebrew points, Arabic vowel signs and the tatweel: the same language is written with and without them.
_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670\u06d6-\u06dc]+")
# Letters with a usual form: ligatures and presentation forms, full and half width, mathematical alphabets.
_FORMS = re.compile(
    "[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufd3d\ufd50-\ufdff\ufe70-\ufefc\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
    "\U0001d400-\U0001d7ff]+"
)


class LanguageUnknown(ValueError):
    """py3langid cannot identify this language."""


def likeliest_language(text: str) -> str:
    """Return py3langid's label for a text, such as ``de``; :data:`NO_LANGUAGE` for text that is no language."""
    return str(_identifier().classify(plain_letters(text[:READ_CHARS]))[0])


def plain_letters(text: str) -> str:
    """Return a text with its letters in their usual form, without vowel points, as py3langid has learned it.

    Example:
        >>> plain_letters("שָׁלוֹם ＡＢＣ")
        'שלום ABC'
    """
    if text.isascii():
        return text
    text = _FORMS.sub(lambda match: unicodedata.normalize("NFKC", match[0]), unicodedata.normalize("NFC", text))
    return _POINTS.sub("", text)


def main_language(texts: Sequence[str], *, share: float = 0.5) -> str:
    """Return the label of more than a share of some sentences, spread over all; ``und`` if there is none.

    Languages of one family (:func:`expected_labels`) count together.

    Example:
        >>> main_language(["Das Buch ist alt.", "Wir haben keine Zeit.", "Sie kauft heute ein Brot."])
        'de'
    """
    step = 1 + len(texts) // _ENOUGH
    labels = [likeliest_language(texts[row]) for row in range(0, len(texts), step)]
    counts = Counter(label for label in labels if label != NO_LANGUAGE)
    # Not only the most frequent label: Chinese in traditional characters may be taken for Cantonese every other time.
    for label, _ in counts.most_common():
        if sum(counts[member] for member in expected_labels(label)) > share * len(labels):
            return label
    return UNKNOWN


@lru_cache(maxsize=_REMEMBERED)
def expected_odds(text: str, language: str) -> tuple[str, float]:
    """Return the likeliest language of a text, and how probable the expected one is in comparison, in [0, 1].

    Raises:
        LanguageUnknown: If py3langid does not know the expected language.
    """
    labels = expected_labels(language)
    likeliest = likeliest_language(text)
    if likeliest in labels:
        return likeliest, 1.0
    probabilities = dict(_identifier().rank(plain_letters(text[:READ_CHARS])))
    expected = sum(probabilities[label] for label in labels)
    return likeliest, min(1.0, expected / probabilities[likeliest])


@cache
def expected_labels(language: str) -> tuple[str, ...]:
    """Return py3langid's labels for a language code.

    Raises:
        LanguageUnknown: If it has none.
    """
    label_of_code: dict[str, str] = {}
    for label in _identifier().labels:
        label_of_code[label] = label
        label_of_code.setdefault(canonical_language(label), label)
    code = language.strip().lower().replace("_", "-").split("-")[0]
    canonical_code = canonical_language(code)
    labels = _FAMILIES.get(canonical_code, ())
    if not labels:
        own_label = label_of_code.get(canonical_code) or label_of_code.get(code)
        labels = (own_label,) if own_label else ()
    labels = tuple(label for label in labels if label in _identifier().labels)
    if not labels or NO_LANGUAGE in labels:
        raise LanguageUnknown(f"expected a language that py3langid knows, got {language!r}; do not name it.")
    return labels


@cache
def _identifier() -> Any:
    # Imported late: the model takes a second to unpack.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
