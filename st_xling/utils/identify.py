"""Which language a text is in, as py3langid says.

Why py3langid: its model is in its wheel of 5 MB, it needs numpy alone, and it tells short sentences better than lingua
(100 to 170 MB) at fifteen times the speed; fastText's models want a download or a second licence.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

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


# Texts that take a step together: some megabytes.
_TEXTS_AT_ONCE = 2048


class LanguageUnknown(ValueError):
    """Nothing here can tell this language: what asks has to do without."""


def likeliest_language(text: str) -> str:
    """py3langid's label for a text, such as ``de``; :data:`NO_LANGUAGE` for what is none."""
    return _identifier().classify(text[:READ_CHARS])[0]


def expected_odds(texts: Sequence[str], language: str) -> list[tuple[str, float]]:
    """Of each text the likeliest language, and how probable the expected one is in comparison, in [0, 1]."""
    labels = _identifier().nb_classes
    expected = [column for column, label in enumerate(labels) if label in expected_labels(language)]
    found: list[tuple[str, float]] = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        shares = _shares([text[:READ_CHARS] for text in texts[start : start + _TEXTS_AT_ONCE]])
        best = shares.argmax(axis=1)
        odds = shares[:, expected].sum(axis=1) / shares.max(axis=1)
        found += [(labels[one], min(1.0, ratio)) for one, ratio in zip(best.tolist(), odds.tolist())]
    return found


def _shares(texts: Sequence[str]) -> np.ndarray:
    """What py3langid's ``rank`` makes of each text: probabilities of its classes, those of one label added up.

    It walks an automaton over the bytes of a text, in a loop of Python's; here all texts take their next step at once,
    at a sixth of the time. Features are the states that it comes through; a class scores the sum of the features'
    weights for it, by the logarithm of their counts. *Shape:* ``(texts, classes)``
    """
    from scipy.sparse import csr_array

    identifier = _identifier()
    step, row_of, feature_of = _automaton()
    lowered = (text.lower() if text.isupper() else text for text in texts)
    data = [unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass") for text in lowered]
    lengths = np.array([len(one) for one in data])
    longest = int(lengths.max())
    # Longest first, so that those that still go on are the first ones at every step. *Shape:* ``(bytes, texts)``
    order = np.argsort(-lengths, kind="stable")
    columns = b"".join(data[row].ljust(longest, b"\0") for row in order.tolist())
    letters = np.frombuffer(columns, dtype=np.uint8).reshape(len(data), longest).T.astype(np.int64)
    going = len(data) - np.searchsorted(np.sort(lengths), np.arange(longest), side="right")
    features = np.full(letters.shape, -1, dtype=np.int64)
    states = np.zeros(len(data), dtype=np.int64)
    for place, count in enumerate(going.tolist()):
        states[:count] = step[(row_of[states[:count]] << 8) + letters[place, :count]]
        features[place, :count] = feature_of[states[:count]]
    places, rows = np.nonzero(features >= 0)
    # How often each text has each feature; of the weights (57 MB in float32) only the rows that occur are unpacked.
    used, column = np.unique(features[places, rows], return_inverse=True)
    cells, counts = np.unique(order[rows] * len(used) + column, return_counts=True)
    starts = np.searchsorted(cells, np.arange(len(data) + 1) * len(used))
    found = csr_array((np.log1p(counts, dtype=np.float32), cells % len(used), starts), shape=(len(data), len(used)))
    scores = found @ identifier.nb_ptc[used].astype(np.float32) + identifier.nb_pc
    scores[starts[:-1] == starts[1:]] = 0  # nothing to go by: all classes are as likely
    # Divided by the root of the length, as py3langid does, so that long texts are not all too sure.
    scores /= np.sqrt(np.maximum(lengths, 1))[:, None]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
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
        raise LanguageUnknown(f"expected a language that py3langid knows, got {language!r}; leave its side unguarded.")
    return labels


@cache
def _identifier() -> Any:
    # Imported late: the model takes a second to unpack.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _automaton() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States after each byte, by row; each state's row; its feature, or -1."""
    identifier = _identifier()
    rows, features = (np.array(table, dtype=np.int64) for table in (identifier.tk_row, identifier.tk_output))
    return np.asarray(identifier.tk_nextmove), rows, features
