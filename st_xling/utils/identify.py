"""Identify the language of a text, by py3langid.

py3langid has its model in a wheel of 5 MB and depends on numpy alone. It identifies short sentences better than lingua
(100 to 170 MB), and fifteen times as fast; fastText's models need a download or have another license.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from st_xling.utils.languages import UNKNOWN, canonical_language

#: Number of characters of a text that py3langid reads: long sentences take twice the time and are identified no better.
READ_CHARS = 100

#: py3langid's label for text that is no language: numbers, markup, identifiers.
NO_LANGUAGE = "zxx"

# Maximum number of texts by which their main language is identified.
_MAX_SAMPLE = 200

# Number of texts whose result is cached: a sentence is in several candidate pairs, most of them close together.
_CACHE_SIZE = 1 << 15

# Languages that py3langid knows by another label, or takes for languages that are written almost alike, such as members
# of the same macrolanguage: all labels that their texts may get.
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

# Hebrew points, Arabic vowel signs and the tatweel, with and without which a language is written.
_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670\u06d6-\u06dc]+")
# Letters that NFKC replaces: ligatures, presentation forms, full and half width forms, mathematical alphabets.
_FORMS = re.compile(
    "[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufd3d\ufd50-\ufdff\ufe70-\ufefc\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
    "\U0001d400-\U0001d7ff]+"
)


class LanguageUnknown(ValueError):
    """The language is not one that py3langid can identify."""


def likeliest_language(text: str) -> str:
    """Return py3langid's label for a text, such as ``de``; :data:`NO_LANGUAGE` for text that is no language."""
    return str(_identifier().classify(plain_letters(text[:READ_CHARS]))[0])


def plain_letters(text: str) -> str:
    """Return a text with letters in their usual form and without vowel points, as in py3langid's training texts.

    Example:
        >>> plain_letters("שָׁלוֹם ＡＢＣ")
        'שלום ABC'
    """
    if text.isascii():
        return text
    text = _FORMS.sub(lambda match: unicodedata.normalize("NFKC", match[0]), unicodedata.normalize("NFC", text))
    return _POINTS.sub("", text)


def main_language(texts: Sequence[str], *, share: float = 0.5) -> str:
    """Return py3langid's label for most of some texts; ``und`` if no language has more than ``share`` of them.

    Up to 200 texts, at regular intervals, are read. Languages of one family (:func:`expected_labels`) count together.

    Example:
        >>> main_language(["Das Buch ist alt.", "Wir haben keine Zeit.", "Sie kauft heute ein Brot."])
        'de'
    """
    step = 1 + len(texts) // _MAX_SAMPLE
    labels = [likeliest_language(texts[row]) for row in range(0, len(texts), step)]
    counts = Counter(label for label in labels if label != NO_LANGUAGE)
    # The most frequent label may not be of the largest family: half of traditional Chinese may be taken for Cantonese.
    for label, _ in counts.most_common():
        family_count = sum(counts[member] for member in expected_labels(label))
        if family_count > share * len(labels):
            return label
    return UNKNOWN


@lru_cache(maxsize=_CACHE_SIZE)
def expected_odds(text: str, language: str) -> tuple[str, float]:
    """Return the likeliest language of a text, and the probability of the expected one relative to it, at most 1.

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
    """Return the labels of py3langid that texts of a language may get, from any code of the language.

    Raises:
        LanguageUnknown: If there are none.
    """
    label_of_code: dict[str, str] = {}
    for label in _identifier().labels:
        label_of_code[label] = label
        label_of_code.setdefault(canonical_language(label), label)
    # Without script or region: "zh-Hant" is "zh".
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
