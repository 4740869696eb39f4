"""Guard ``language``: a side is not in the language it should be in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from st_xling.mining.guards.predicates import CandidateBatch, Verdict, weighted_length
from st_xling.utils.languages import canonical_language

#: Characters of a sentence that are looked at: a whole long sentence takes twice the time and is told no better.
READ_CHARS = 100

#: Weighted characters below which a sentence is judged leniently.
SHORT_CHARS = 40

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
    """Nothing here can tell this language: the guard has to stay off on that side."""


@dataclass(frozen=True)
class LanguageGuard:
    """Turns down a pair of which a side is surely not in the language it should be in.

    For each side whose language is given, py3langid ranks its 139 languages; the side is wrong when the expected one is
    less than ``limit`` times as probable as the best. Below 40 characters (as :func:`weighted_length` counts them) the
    limit shrinks in proportion, and py3langid's probabilities flatten too, so that names and interjections ("Taxi!")
    pass. Text that it takes for no language at all (numbers, code) is left to the
    other guards. Expected languages may be spelled ``de``, ``deu`` or ``de-AT``; ``zh`` takes Wu and Cantonese as well,
    ``no`` both standards, and Indonesian and Malay, or Bosnian, Croatian and Serbian, stand in for each other.

    Why py3langid: its model is in its wheel of 5 MB, it needs numpy alone, and it tells short sentences better than
    lingua (100 to 170 MB) at fifteen times the speed; fastText's models want a download or a second licence.

    Args:
        source_language: What the source side should be in; ``None`` does not look at it.
        target_language: The same of the target side.
        limit: Least odds of the expected language against the likeliest one, in (0, 1). At 0.1, one sentence in 6900
            of 23 languages (Tatoeba, about 35 characters) is turned down by mistake and 98.9 % of those in another of
            these languages are recognised.
    Raises:
        LanguageUnknown: If py3langid does not know a language.
    """

    source_language: str | None = None
    target_language: str | None = None
    limit: float = 0.1
    reason: ClassVar[str] = "language"

    def __post_init__(self) -> None:
        if not 0 < self.limit < 1:
            raise ValueError(f"language must lie in (0, 1): got {self.limit}; 0.1 is the usual choice.")
        for language in (self.source_language, self.target_language):
            if language is not None:
                expected_labels(language)

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        verdicts: list[Verdict | None] = [None] * len(batch)
        sides = (("source", self.source_language, batch.sources), ("target", self.target_language, batch.targets))
        for side, language, texts in sides:
            if language is None:
                continue
            # A sentence is often in several candidates.
            rows = [row for row, verdict in enumerate(verdicts) if verdict is None]
            odds = {text: expected_odds(text, language) for text in {texts[row]: None for row in rows}}
            for row in rows:
                found, ratio = odds[texts[row]]
                limit = self.limit * min(1.0, weighted_length(texts[row]) / SHORT_CHARS)
                if ratio < limit and found != NO_LANGUAGE:
                    value = {"side": side, "expected": language, "found": found, "odds": round(ratio, 4)}
                    verdicts[row] = Verdict(value, round(limit, 4))
        return verdicts


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
