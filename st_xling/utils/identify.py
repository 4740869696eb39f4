"""Which language a text is in, as py3langid says.

Why py3langid: its model is in its wheel of 5 MB, it needs numpy alone, and it tells short sentences better than lingua
(100 to 170 MB) at fifteen times the speed; fastText's models want a download or a second licence.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from st_xling.utils.languages import canonical_language

#: Characters of a sentence that are looked at: a whole long sentence takes twice the time and is told no better.
READ_CHARS = 100

#: What py3langid says of text that is no language: numbers, markup, identifiers.
NO_LANGUAGE = "zxx"

# Codes that stand for several of py3langid's labels, as labels; Norwegian and Serbo-Croatian are told apart by spelling
# alone, the rest are a language and those written almost like it.
_FAMILIES = {
    "cmn": ("zh", "wuu", "yue"),
    "ara": ("ar", "ary", "arz"),
    "nob": ("no", "nn"),
    "nno": ("nn", "no"),
    "hrv": ("hr", "bs", "sr"),
    "bos": ("bs", "hr", "sr"),
    "srp": ("sr", "bs", "hr"),
    "ind": ("id", "ms"),
    "zsm": ("ms", "id"),
    "kur": ("ku", "sdh"),
}


class LanguageUnknown(ValueError):
    """Nothing here can tell this language: what asks has to do without."""


def likeliest_language(text: str) -> str:
    """py3langid's label for a text, such as ``de``; :data:`NO_LANGUAGE` for what is none."""
    return _identifier().classify(text[:READ_CHARS])[0]


def expected_odds(text: str, language: str) -> tuple[str, float]:
    """The likeliest language of a text, and how probable the expected one is in comparison, in [0, 1]."""
    expected = expected_labels(language)
    best, probability = _identifier().classify(text[:READ_CHARS])
    if best in expected:
        return best, 1.0
    # Only now, for a ranking sorts 139 languages.
    ranking = _identifier().rank(text[:READ_CHARS])
    return best, min(1.0, sum(value for label, value in ranking if label in expected) / probability)


@cache
def expected_labels(language: str) -> tuple[str, ...]:
    """py3langid's labels for a language code.

    Raises:
        LanguageUnknown: If it has none.
    """
    known: dict[str, str] = {}
    for label in _identifier().labels:
        known[label] = label
        known.setdefault(canonical_language(label), label)
    code = language.strip().lower().replace("_", "-").split("-")[0]
    three = canonical_language(code)
    labels = _FAMILIES.get(three) or tuple(filter(None, [known.get(three) or known.get(code)]))
    labels = tuple(label for label in labels if label in _identifier().labels)
    if not labels or NO_LANGUAGE in labels:
        raise LanguageUnknown(f"expected a language that py3langid knows, got {language!r}; leave its side unguarded.")
    return labels


@cache
def _identifier() -> Any:
    # Imported late: the model takes a second to unpack.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
