"""Which language a text is in, as py3langid says.

Why py3langid: its model is in its wheel of 5 MB, it needs numpy alone, and it tells short sentences better than lingua
(100 to 170 MB) at fifteen times the speed; fastText's models want a download or a second licence.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from st_xling.utils.languages import UNKNOWN, canonical_language

#: Characters of a sentence that are looked at: a whole long sentence takes twice the time and is told no better.
READ_CHARS = 100

#: What py3langid says of text that is no language: numbers, markup, identifiers.
NO_LANGUAGE = "zxx"

# Codes that stand for several of py3langid's labels, as labels; Norwegian and Serbo-Croatian are told apart by spelling
# alone, the rest are a language and those written almost like it.
_FAMILIES = {
    "cmn": ("zh", "wuu", "yue"),
    **dict.fromkeys(("ara", "arq", "arz", "ary", "apc", "ajp", "acm", "ars", "aeb"), ("ar", "ary", "arz")),
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
    **dict.fromkeys(("grn", "gn"), ("gug",)),
    **dict.fromkeys(("kok", "knn"), ("gom",)),
}

# Hebrew points, Arabic vowel signs and the tatweel: the same language is written with and without them.
_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670\u06d6-\u06dc]+")
# Letters with a usual form: ligatures and presentation forms, full and half width, mathematical alphabets.
_FORMS = re.compile(
    "[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufd3d\ufd50-\ufdff\ufe70-\ufefc\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
    "\U0001d400-\U0001d7ff]+"
)


# Sentences by which a text's language is known.
_ENOUGH = 200

# Texts that take a step together: some megabytes.
_TEXTS_AT_ONCE = 2048


class LanguageUnknown(ValueError):
    """Nothing here can tell this language: what asks has to do without."""


def likeliest_language(text: str) -> str:
    """py3langid's label for a text, such as ``de``; :data:`NO_LANGUAGE` for what is none."""
    return _identifier().classify(plain_letters(text[:READ_CHARS]))[0]


def plain_letters(text: str) -> str:
    """A text with its letters in their usual form, without vowel points: that is what py3langid has learned.

    Example:
        >>> plain_letters("שָׁלוֹם ＡＢＣ")
        'שלום ABC'
    """
    if text.isascii():
        return text
    text = _FORMS.sub(lambda match: unicodedata.normalize("NFKC", match[0]), unicodedata.normalize("NFC", text))
    return _POINTS.sub("", text)


def main_language(texts: Sequence[str], *, share: float = 0.5) -> str:
    """The label of more than a share of some sentences, spread over all; ``und`` if there is none.

    Languages that stand in for each other (:func:`expected_labels`) count together.

    Example:
        >>> main_language(["Das Buch ist alt.", "Wir haben keine Zeit.", "Sie kauft heute ein Brot."])
        'de'
    """
    labels = [likeliest_language(texts[row]) for row in range(0, len(texts), 1 + len(texts) // _ENOUGH)]
    counts = Counter(label for label in labels if label != NO_LANGUAGE)
    if not counts:
        return UNKNOWN
    label = counts.most_common(1)[0][0]
    return label if sum(counts[one] for one in expected_labels(label)) > share * len(labels) else UNKNOWN


def expected_odds(texts: Sequence[str], languages: Sequence[str]) -> list[tuple[str, float]]:
    """Of each text the likeliest language, and how probable the expected one is in comparison, in [0, 1].

    Args:
        texts: Any number; those of several languages are best passed together.
        languages: What each text should be in.
    Raises:
        LanguageUnknown: If py3langid does not know a language.
    """
    labels, found = _identifier().nb_classes, []
    columns = {
        language: [column for column, label in enumerate(labels) if label in expected_labels(language)]
        for language in dict.fromkeys(languages)
    }
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        shares = _shares([plain_letters(text[:READ_CHARS]) for text in texts[start : start + _TEXTS_AT_ONCE]])
        highest, best = shares.max(dim=1)
        some = languages[start : start + _TEXTS_AT_ONCE]
        odds = {code: (shares[:, places].sum(dim=1) / highest).tolist() for code, places in columns.items()}
        found += [(labels[one], min(1.0, odds[code][row])) for row, (one, code) in enumerate(zip(best.tolist(), some))]
    return found


def _shares(texts: Sequence[str]) -> Tensor:
    """What py3langid's ``rank`` makes of each text: probabilities of its classes, those of one label added up.

    It walks an automaton over the bytes of a text, in a loop of Python's; here all texts take their next step at once,
    at a tenth of the time. Features are the states that it comes through; a class scores the sum of the features'
    weights for it, by the logarithm of their counts. *Shape:* ``(texts, classes)``
    """
    identifier = _identifier()
    step, row_of, feature_of, weights = _automaton()
    lowered = (text.lower() if text.isupper() else text for text in texts)
    data = [unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass") for text in lowered]
    lengths = np.array([len(one) for one in data])
    longest = int(lengths.max())
    # Longest first, so that those that still go on are the first ones at every step. *Shape:* ``(bytes, texts)``
    order = np.argsort(-lengths, kind="stable")
    columns = b"".join(data[row].ljust(longest, b"\0") for row in order.tolist())
    letters = np.frombuffer(columns, dtype=np.uint8).reshape(len(data), longest).T.astype(np.int32)
    going = len(data) - np.searchsorted(np.sort(lengths), np.arange(longest), side="right")
    features = np.full(letters.shape, -1, dtype=np.int32)
    states = np.zeros(len(data), dtype=np.intp)
    for place, count in enumerate(going.tolist()):
        states[:count] = step[row_of[states[:count]] + letters[place, :count]]
        features[place, :count] = feature_of[states[:count]]
    places = np.flatnonzero(features >= 0)
    occurring = features.ravel()[places]
    # Of the weights (57 MB in float32) only the rows that occur are unpacked; each feature's place among these.
    place_of = np.zeros(len(weights), dtype=np.int32)
    place_of[occurring] = 1
    used = np.flatnonzero(place_of)
    place_of[used] = np.arange(len(used), dtype=np.int32)
    # How often each text has each feature.
    cells, counts = np.unique(order[places % len(data)] * len(used) + place_of[occurring], return_counts=True)
    starts = np.searchsorted(cells, np.arange(len(data)) * len(used))
    scores = embedding_bag(
        torch.from_numpy(cells % max(len(used), 1)),
        weights[torch.from_numpy(used)].float(),
        torch.from_numpy(starts),
        mode="sum",
        per_sample_weights=torch.from_numpy(np.log1p(counts, dtype=np.float32)),
    )
    # Without a feature there is nothing to go by: all classes are as likely.
    has_any = np.diff(starts, append=len(cells)) > 0
    scores += torch.from_numpy(np.where(has_any[:, None], identifier.nb_pc, np.float32(0)))
    # Divided by the root of the length, as py3langid does, so that long texts are not all too sure.
    scores /= torch.from_numpy(np.sqrt(np.maximum(lengths, 1)).astype(np.float32))[:, None]
    shares = scores.softmax(dim=1)
    # Two classes may be one label in two scripts: the first takes what both have.
    first: dict[str, int] = {}
    for place, label in enumerate(identifier.nb_classes):
        if (home := first.setdefault(label, place)) != place:
            shares[:, home] += shares[:, place]
            shares[:, place] = 0
    return shares


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
        raise LanguageUnknown(f"expected a language that py3langid knows, got {language!r}; do not name it.")
    return labels


@cache
def _identifier() -> Any:
    # Imported late: the model takes a second to unpack.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _automaton() -> tuple[np.ndarray, np.ndarray, np.ndarray, Tensor]:
    """States after each byte, by row; where each state's row begins; its feature, or -1; the features' weights."""
    identifier = _identifier()
    rows, features = (np.array(table, dtype=np.int32) for table in (identifier.tk_row, identifier.tk_output))
    return np.asarray(identifier.tk_nextmove), rows << 8, features, torch.from_numpy(identifier.nb_ptc)
