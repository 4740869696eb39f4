"""Filters that reject mined pairs which margin scores cannot distinguish from translations, each with a reason code.

To add a filter, write a function and name it in :data:`FILTERS`: its name is its reason code, in the options, the
signature, the reports and the file of rejected pairs. Filters run in that order, cheapest first, and a rejected pair
carries the code of the first that rejects it. A decision may depend on nothing but the pair itself and the languages,
so that neither the order nor the batches of candidates change it.

Where pairs are chosen among candidates, a pair is rejected before or after the choice, see :attr:`Filter.frees`.
"""

from __future__ import annotations

import json
import logging
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Indel

from st_xling.mining.mined_pairs import MinedPairs
from st_xling.mining.numbers import REMEMBERED, contradiction
from st_xling.utils.identifiable import (
    identifiable_part,
    identifiers,
    ordinary_part,
    without_identifiers,
    words_and_names,
)
from st_xling.utils.identify import NO_LANGUAGE, LanguageUnknown, expected_labels, expected_odds, main_language
from st_xling.utils.languages import UNKNOWN, check_language_code

logger = logging.getLogger(__name__)

#: Weighted characters below which a sentence is identified leniently.
SHORT_CHARS = 40

#: Latin letters that one character of a dense script counts as. Least squares over 1,000 pairs with English each, of
#: Tatoeba, the Bible, XNLI, news and documentation of Python, gives 3.7 for a Chinese character, 4.4 for a Japanese
#: one, 1.7 for kana and 2.7 for a Hangul syllable (``python -m tests.benchmarks.filter_constants``).
HAN = 3.5
KANA = 1.7
HANGUL = 2.5

# Added to either length, in weighted characters.
_SLACK_CHARS = 15.0

# Share of sentences in one language that makes it that of the text.
_MAIN_SHARE = 0.8

# Fewest sentences by which the language of a text is identified, and most that are looked at.
_FEWEST_SENTENCES = 20
_MOST_SAMPLED = 400

# Weighted characters from which on a sentence tells its language.
_TELLING_CHARS = 20.0

_TATWEEL = "\N{ARABIC TATWEEL}"
_HAN = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KANA = re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]+")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]+")
_FIRST_DENSE = re.compile("[\u1100-\u11ff\u2e80-\U0003ffff]")

_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"\w+")
_INNER_HYPHEN = re.compile(r"(?<=\w)[-\u2010\u2011](?=\w)")
_NOT_LATIN = re.compile(r"[^\W\d_a-zA-Z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")
# Thai, Lao, Burmese, Khmer, Chinese and Japanese.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff]")


def copy(sources: Sequence[str], targets: Sequence[str], limit: float) -> list[float | None]:
    r"""Reject pairs of which one side is a copy of the other, or nearly.

    A copy gets a cosine near 1 from any encoder and would lead every list of mined pairs. Both sides are compared by
    the normalized Indel similarity, that of insertions and deletions.

    .. math:: \mathrm{similarity}(x, y) = 1 - \frac{\mathrm{indel}(x, y)}{|x| + |y|}
        = \frac{2\,\mathrm{LCS}(x, y)}{|x| + |y|}

    over the :func:`letter_key` of both sides, so lines of names, numbers or addresses that differ in punctuation or a
    digit are rejected whatever the script. Exact copies have similarity 1, as have two sides without any letter or
    digit ("…" and "!!!"). Some similar texts are translations all the same, and pass:

    - Only one side has letters of another script than Latin: "execve() и EAGAIN", "execve() and EAGAIN".
    - What is left of both without the identifiers that they share, such as ``F_GETFL`` or ``wait(2)``, is not similar:
      "F_GETFL (seit Linux 2.6)", "F_GETFL (since Linux 2.6)".
    - Of the words of either side, three or a third are not on the other: "Portabilité", "Portability";
      "Hardware-Kompatibilität", "Hardware Compatibility".
    - They are the same words, but with hyphens on one side: "Version-2-Format", "Version 2 format".
    - They are equal numbers or identifiers, with other punctuation: "6.", "(6)"; "fwide() :", "fwide():".

    Args:
        sources: Source text of each pair.
        targets: Target text of each pair.
        limit: Lowest similarity that is rejected, in [0, 1]. At 0.85, 3 of 13,482 true pairs of fifteen languages with
            English are rejected, and 2 of 1,501 of technical documents (``python -m tests.benchmarks.filters``).
            Raise it for dialects.
    Source:
        rapidfuzz, ``Indel.normalized_similarity``.
    """
    # Below the cutoff rapidfuzz stops early and returns 0; workers=1 leaves the cores to the encoder.
    similarities = process.cpdist(
        [letter_key(text) for text in sources],
        [letter_key(text) for text in targets],
        scorer=Indel.normalized_similarity,
        score_cutoff=limit,
        dtype=np.float64,
        workers=1,
    ).tolist()
    values: list[float | None] = []
    for similarity, source, target in zip(similarities, sources, targets):
        is_copy = similarity >= limit and not _is_translated(source, target, limit)
        values.append(round(similarity, 4) if is_copy else None)
    return values


def _is_translated(source: str, target: str, limit: float) -> bool:
    """Return whether two similar texts differ as translations do, see :func:`copy`."""
    if letter_key(source) == letter_key(target):
        return source.strip() != target.strip() and _is_rewritten(source, target)
    if bool(_NOT_LATIN.search(source)) != bool(_NOT_LATIN.search(target)):
        return True
    source_text, target_text = _without_shared_identifiers(source, target)
    is_similar = Indel.normalized_similarity(letter_key(source_text), letter_key(target_text)) >= limit
    has_letters = _LETTER.search(source + target) is not None
    # Scripts without spaces have no words to compare.
    if not has_letters or _UNSPACED.search(source + target):
        return not is_similar
    source_words = set(map(letter_key, _WORD.findall(source_text)))
    target_words = set(map(letter_key, _WORD.findall(target_text)))
    # A translation replaces words on both sides; a copy may have some more.
    if source_words <= target_words or target_words <= source_words:
        return False
    return not is_similar or (_are_many(source_words, target_words) and _are_many(target_words, source_words))


def _is_rewritten(source: str, target: str) -> bool:
    """Return whether two texts of the same letters and digits, in that order, differ as translations do."""
    if not letter_key(source):
        return False
    names = identifiers(source)
    if not _LETTER.search(without_identifiers(source, names)):
        # Numbers and identifiers alone, with other punctuation.
        return True
    # A language that joins words by hyphens, and one that does not.
    return len(_INNER_HYPHEN.findall(source)) != len(_INNER_HYPHEN.findall(target))


def _are_many(words: set[str], other_words: set[str]) -> bool:
    """Return whether many words of a text are not in another one: three, or a third of its words."""
    replaced = sum(_LETTER.search(word) is not None for word in words - other_words)
    all_words = sum(_LETTER.search(word) is not None for word in words)
    return replaced > 0 and (replaced >= 3 or 3 * replaced >= all_words)


def _without_shared_identifiers(source: str, target: str) -> tuple[str, str]:
    """Return both texts without the identifiers that both have; unchanged if a side then has no letter.

    See :func:`~st_xling.utils.identifiable.identifiers`.
    """
    shared = identifiers(source) & identifiers(target)
    source_text = without_identifiers(source, shared)
    target_text = without_identifiers(target, shared)
    if _LETTER.search(source_text) and _LETTER.search(target_text):
        return source_text, target_text
    return source, target


def length_ratio(sources: Sequence[str], targets: Sequence[str], limit: float) -> list[float | None]:
    r"""Reject pairs of very different lengths.

    .. math:: \mathrm{ratio}(x, y) = \frac{\max(|x|, |y|) + c}{\min(|x|, |y|) + c}

    with lengths by :func:`weighted_length`. The constant :math:`c`, 15 characters, makes short sentences lenient: "Да."
    and "Yes, of course." pass, the same ratio over a hundred characters does not.

    Args:
        sources: Source text of each pair.
        targets: Target text of each pair.
        limit: Highest ratio that passes, at least 1.
    Source:
        Gale and Church 1993 for characters as the measure of length; the additive constant replaces their variance,
        which grows with length.
    """
    source_lengths = np.array([weighted_length(text) for text in sources]) + _SLACK_CHARS
    target_lengths = np.array([weighted_length(text) for text in targets]) + _SLACK_CHARS
    ratios = np.maximum(source_lengths, target_lengths) / np.minimum(source_lengths, target_lengths)
    return [round(ratio, 3) if ratio > limit else None for ratio in ratios.tolist()]


def numbers(sources: Sequence[str], targets: Sequence[str]) -> list[dict[str, list[str]] | None]:
    """Reject pairs in which numbers written with digits contradict each other.

    See :func:`~st_xling.mining.numbers.contradiction` for what counts as one.
    """
    return list(map(contradiction, sources, targets))


def language(
    sources: Sequence[str], targets: Sequence[str], limit: float, languages: tuple[str | None, str | None]
) -> list[dict[str, Any] | None]:
    """Reject pairs of which a side is surely not in its expected language.

    For each side whose language is given, py3langid ranks its 139 languages; the side is wrong when the expected one is
    less than ``limit`` times as probable as the best. Below 40 characters (as :func:`weighted_length` counts them) the
    limit shrinks in proportion, and py3langid's probabilities flatten too, so that names and interjections ("Taxi!")
    pass. So does text that does not show its language: names, code, and scripts that py3langid has not learned for the
    language (see :func:`~st_xling.utils.identifiable.identifiable_part`). Expected languages may be spelled ``de``,
    ``deu`` or ``de-AT``; ``zh`` accepts Wu and Cantonese as well, ``no`` both standards, and Indonesian and Malay, or
    Bosnian, Croatian and Serbian, count as one.

    Args:
        sources: Source text of each pair.
        targets: Target text of each pair.
        limit: Lowest odds of the expected language against the likeliest one that pass, in [0, 1]. At 0.1, one sentence
            in 2,600 of 36 languages (LASER's tatoeba/v1, about 35 characters) is rejected by mistake, and 99.3 % of
            those in another of these languages (``python -m tests.benchmarks.filter_constants``).
        languages: Expected languages of source and target, which py3langid knows; ``None`` where the language is not
            checked.
    """
    values: list[dict[str, Any] | None] = [None] * len(sources)
    for side, expected, texts in zip(("source", "target"), languages, (sources, targets)):
        if expected is None:
            continue
        for row, text in enumerate(texts):
            part = identifiable_part(text, expected)
            if not part:
                continue
            likeliest, odds = expected_odds(part, expected)
            lenient_limit = limit * min(1.0, weighted_length(part) / SHORT_CHARS)
            # The source is named where both sides are in a wrong language.
            if odds < lenient_limit and likeliest != NO_LANGUAGE and values[row] is None:
                values[row] = {"side": side, "expected": expected, "found": likeliest, "odds": round(odds, 4)}
    return values


class Filter(NamedTuple):
    """A filter with its limit.

    Attributes:
        check: Returns for each pair the measured value by which it is rejected, as JSON can write it, or ``None`` for a
            pair that passes. Called with the source and target texts, the limit if the filter has one, and, for
            ``language``, the expected languages.
        limit: The default limit; ``None`` for a filter without a limit.
        least: The lowest possible limit.
        most: The highest possible limit.
        frees: Returns for a rejected pair, given its source and target text, whether its sentences remain free for
            other partners, where pairs are chosen among candidates; ``None``: never. A sentence in a wrong language is
            nobody's partner (see :meth:`PairFilters.spent`), and its best match, perhaps its copy, needs another one.
            Otherwise a sentence whose best match is rejected has found its partner, and gets no wrong one.
    """

    check: Callable[..., list[Any]]
    limit: float | None = None
    least: float = 0.0
    most: float = math.inf
    frees: Callable[[str, str], bool] | None = None


def _is_sentence(source: str, target: str) -> bool:
    """Return whether a copied text has three words, so that one side is a sentence left untranslated."""
    words = 0.0
    for word in _WORD.findall(words_and_names(source)):
        if _LETTER.search(word):
            # A word has three characters or so in a script without spaces.
            words += len(word) / 3 if _UNSPACED.search(word) else 1.0
    return words >= 3


#: All filters by reason code, in the order in which they run.
FILTERS = {
    "copy": Filter(copy, 0.85, most=1.0, frees=_is_sentence),
    "length_ratio": Filter(length_ratio, 2.5, least=1.0),
    "numbers": Filter(numbers),
    "language": Filter(language, 0.1, most=1.0, frees=lambda source, target: True),
}


class _EssentialCharacters(dict[int, int | None]):
    """A table for ``str.translate`` that keeps letters, marks and digits, filled as characters occur."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        essential = unicodedata.category(character)[0] in "LMN" and character != _TATWEEL
        self[code] = code if essential else None
        return self[code]


_ESSENTIAL = _EssentialCharacters()


@lru_cache(maxsize=REMEMBERED)
def letter_key(text: str) -> str:
    """Return the letters, marks and digits of a text after NFKC and case folding; copies have equal keys.

    White space, punctuation, symbols, emoji, invisible characters and the Arabic tatweel are removed. Marks are kept:
    in many scripts they are vowels. Case folding can undo NFKC, hence NFKC on both sides of it.

    Source:
        Unicode Standard, section 3.13, "toNFKC_Casefold".

    Example:
        >>> letter_key("Ｃａｆe\u0301 — Nº 5!")
        'caféno5'
    """
    if text.isascii():
        return text.lower().translate(_ESSENTIAL)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # A removed character may have separated a letter from its mark.
    return unicodedata.normalize("NFC", folded.translate(_ESSENTIAL))


@lru_cache(maxsize=REMEMBERED)
def weighted_length(text: str) -> float:
    """Return the length of a text in Latin letters: characters of its NFC form, those of dense scripts weighted.

    The scale follows the characters, not a named language, so that mixed lines ("我用 Python 写") need no special case.
    Other scripts need none: their translations into English are between 0.9 and 1.2 times as long.
    """
    if text.isascii():
        return float(len(text))
    text = unicodedata.normalize("NFC", text)
    length = float(len(text))
    if _FIRST_DENSE.search(text):
        for pattern, weight in ((_HAN, HAN), (_KANA, KANA), (_HANGUL, HANGUL)):
            length += (weight - 1) * sum(map(len, pattern.findall(text)))
    return length


@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """Selection of filters and their limits. All filters are enabled by default.

    Attributes:
        disable: Reason codes of the filters to disable; ``"all"`` for every one.
        limits: Limits other than the defaults, by reason code.
        source_language: Expected language of the source side; without it, that of most of the text
            (:func:`identify_languages`), and if there is none, that side's language is not checked.
        target_language: Expected language of the target side.

    Raises:
        ValueError: For an unknown filter, a limit out of range, or a limit of a filter that has none.

    Example:
        >>> FilterOptions(disable=["numbers", "language"], limits={"length_ratio": 3.0}).enabled
        {'copy': 0.85, 'length_ratio': 3.0}
    """

    disable: Sequence[str] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    source_language: str | None = None
    target_language: str | None = None

    def __post_init__(self) -> None:
        for side, code in (("source", self.source_language), ("target", self.target_language)):
            if code is not None:
                check_language_code(code, f"{side}_language")
        named = {*self.disable} - {"all"} | {*self.limits}
        if unknown := sorted(named - {*FILTERS}):
            raise ValueError(f"filters must be {', '.join(FILTERS)}: got {', '.join(unknown)}.")
        for name, limit in self.limits.items():
            pair_filter = FILTERS[name]
            if pair_filter.limit is None:
                raise ValueError(f"{name} has no limit: got {limit}; leave it enabled, or disable it.")
            if not pair_filter.least <= limit <= pair_filter.most:
                raise ValueError(f"{name} must be from {pair_filter.least:g} to {pair_filter.most:g}: got {limit}.")

    @property
    def enabled(self) -> dict[str, float | None]:
        """Limits of the enabled filters by reason code, in the order in which they run."""
        if "all" in self.disable:
            return {}
        limits: dict[str, float | None] = {}
        for name, pair_filter in FILTERS.items():
            if name not in self.disable:
                limits[name] = self.limits.get(name, pair_filter.limit)
        return limits


def identify_languages(options: FilterOptions, sources: Sequence[str], targets: Sequence[str]) -> FilterOptions:
    """Set the expected languages that are not given to that of each text, if four of five sentences are in one.

    Code, names and short sentences do not count if there are 20 others. Nothing is set for a text of fewer than 20
    sentences.
    """
    if "language" not in options.enabled:
        return options
    identified = dict[str, str]()
    for side, texts in (("source", sources), ("target", targets)):
        if getattr(options, f"{side}_language") is None and len(texts) >= _FEWEST_SENTENCES:
            language = main_language(_telling_parts(texts), share=_MAIN_SHARE)
            if language != UNKNOWN:
                identified[f"{side}_language"] = language
                logger.info("the %s text seems to be in %s; if not, set --%s-language", side, language, side)
    return replace(
        options,
        source_language=identified.get("source_language", options.source_language),
        target_language=identified.get("target_language", options.target_language),
    )


def _telling_parts(texts: Sequence[str]) -> list[str]:
    """Return what is no code, name or short text of sentences spread over a text; all of these if that is too little.

    Half of a technical text is commands, names of options and headings, which are in no language.
    """
    step = 1 + len(texts) // _MOST_SAMPLED
    sample = [texts[row] for row in range(0, len(texts), step)]
    ordinary_parts = [ordinary_part(text) for text in sample]
    telling = [part for part in ordinary_parts if weighted_length(part) >= _TELLING_CHARS]
    return telling if len(telling) >= _FEWEST_SENTENCES else sample


class RejectedPair(NamedTuple):
    """A rejected pair, the reason code of the first filter that rejects it, and the value which that filter measured.

    A line of a file that is no pair has a reason, but no rows and no texts.

    Attributes:
        reason: Reason code.
        value: The measured value.
        score: Score of the pair.
        source_index: Its row in the source corpus.
        target_index: Its row in the target corpus.
        source: Text of the source.
        target: Text of the target.
    """

    reason: str
    value: Any
    score: float
    source_index: int
    target_index: int
    source: str | None
    target: str | None

    def as_json(self, source_ids: Sequence[Any] = (), target_ids: Sequence[Any] = ()) -> bytes:
        """Return one line of JSON.

        Scripts remain readable. A score that is not finite is ``null``.

        Args:
            source_ids: All ids of the source text, where duplicates were merged; by default its row.
            target_ids: All ids of the target text.
        """
        record = {
            "reason": self.reason,
            "value": self.value,
            "score": self.score if math.isfinite(self.score) else None,
            "source_ids": list(source_ids) or [self.source_index],
            "target_ids": list(target_ids) or [self.target_index],
            "source": self.source,
            "target": self.target,
        }
        return json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"


def _is_rather_in(language: str, other: str, text: str) -> bool:
    """Return whether a text is more likely in a language than in another one."""
    part = words_and_names(text)
    return part.strip() != "" and expected_odds(part, language)[1] > expected_odds(part, other)[1]


def _checked_language(code: str | None) -> str | None:
    """Return the code of a language; ``None``, with a warning, if py3langid does not know it."""
    if code is None:
        return None
    try:
        expected_labels(code)
    except LanguageUnknown:
        logger.warning("py3langid does not know %r: the language of that side is not checked", code)
        return None
    return code


class PairFilters:
    """Apply the enabled filters, cheapest first; a rejected pair is not passed to the next filter.

    The language filter runs on sides whose language is known.

    Args:
        options: The enabled filters and their limits.

    Attributes:
        limits: Limits of the filters that run, by reason code.
        rejected: Number of rejected pairs per reason code, for the codes that occurred.
        signature: The filters that run, with their limits.
    """

    def __init__(self, options: FilterOptions | None = None) -> None:
        options = options or FilterOptions()
        self.limits = options.enabled
        self.rejected = Counter[str]()
        self._languages: tuple[str | None, str | None] = (None, None)
        if "language" in self.limits:
            source_language = _checked_language(options.source_language)
            target_language = _checked_language(options.target_language)
            self._languages = source_language, target_language
        if self._languages == (None, None):
            self.limits.pop("language", None)
        words = [reason if limit is None else f"{reason}={limit:g}" for reason, limit in self.limits.items()]
        self.signature = ",".join(words) or "none"

    def allowed(
        self,
        pairs: MinedPairs,
        sources: Sequence[str],
        targets: Sequence[str],
        on_reject: Callable[[RejectedPair], object] | None = None,
        *,
        freeing: bool = False,
    ) -> np.ndarray:
        """Return which mined pairs pass, bool, *shape* ``(pairs,)``; ``pairs.select`` takes it.

        Args:
            pairs: Some thousands at a time; their texts are in memory meanwhile.
            sources: Source sentences by row.
            targets: Target sentences by row.
            on_reject: Called with each rejected pair, in order.
            freeing: Reject only pairs whose sentences remain free for other partners: those that the first filter that
                rejects them frees, see :attr:`Filter.frees`.
        """
        allowed = np.ones(len(pairs), dtype=bool)
        limits = self.limits
        if freeing:
            limits = {reason: limit for reason, limit in limits.items() if FILTERS[reason].frees}
        if not limits:
            return allowed
        texts = [(sources[source], targets[target]) for _, source, target in pairs]
        rejected = dict[int, RejectedPair]()
        undecided = list(range(len(pairs)))
        for reason, limit in limits.items():
            if not undecided:
                break
            values = self._measured_values(reason, limit, [texts[row] for row in undecided])
            frees = FILTERS[reason].frees if freeing else None
            for row, value in zip(undecided, values):
                if value is not None and (frees is None or frees(*texts[row])):
                    score, source_index, target_index = pairs[row]
                    rejected[row] = RejectedPair(reason, value, score, source_index, target_index, *texts[row])
                    self.rejected[reason] += 1
                    allowed[row] = False
            undecided = [row for row, value in zip(undecided, values) if value is None]
        if on_reject is not None:
            for row in sorted(rejected):
                on_reject(rejected[row])
        return allowed

    def spent(self, pairs: MinedPairs, sources: Sequence[str], targets: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return of which pairs the source, and of which the target, was left untranslated: it is nobody's partner.

        Such a sentence is more likely in the language of the other side. Without the language filter, or if a language
        is unknown, none is found.

        Args:
            pairs: Rejected pairs that free their sentences, see :attr:`Filter.frees`.
            sources: Source sentences by row.
            targets: Target sentences by row.

        Returns:
            bool, *shapes* ``(pairs,)``
        """
        source_is_spent = np.zeros(len(pairs), dtype=bool)
        target_is_spent = np.zeros(len(pairs), dtype=bool)
        source_language, target_language = self._languages
        if source_language is not None and target_language is not None:
            for number, (_, source, target) in enumerate(pairs):
                source_is_spent[number] = _is_rather_in(target_language, source_language, sources[source])
                target_is_spent[number] = _is_rather_in(source_language, target_language, targets[target])
        return source_is_spent, target_is_spent

    def _measured_values(self, reason: str, limit: float | None, texts: Sequence[tuple[str, str]]) -> list[Any]:
        """Return for each pair of texts the value by which a filter rejects it, or ``None``."""
        check = FILTERS[reason].check
        sources, targets = zip(*texts)
        if reason == "language":
            return check(sources, targets, limit=limit, languages=self._languages)
        if limit is None:
            return check(sources, targets)
        return check(sources, targets, limit=limit)
