"""Which of a model's published thresholds holds for what is to be mined, if any does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from st_xling.mining.thresholds.language_pairs import languages_of, one_spelling, pair_of
from st_xling.mining.thresholds.published import PublishedThreshold

# A pair's margin is the same from both sides; what a retrieval starts from is not.
_MIRRORED = {"forward": "backward", "backward": "forward"}


@dataclass(frozen=True, kw_only=True)
class Sought:
    """What is to be mined.

    Attributes:
        source_language: Such as ``"de"``, ``"deu"`` or ``"de-AT"``.
        target_language: Likewise.
        margin: As for :func:`~st_xling.mining.mine`.
        k: As for :func:`~st_xling.mining.mine`.
        retrieval: As for :func:`~st_xling.mining.mine`.
        prompt: Put before every sentence that is embedded.
    """

    source_language: str
    target_language: str
    margin: str
    k: int
    retrieval: str
    prompt: str | None = None

    @property
    def languages(self) -> tuple[str, str]:
        """Both codes in one spelling, without region or script."""
        source, target = pair_of(self.source_language, self.target_language).split("-")
        return one_spelling(source), one_spelling(target)


@dataclass(frozen=True)
class Fit:
    """The threshold that was found, and under which pair; or neither, and why.

    Attributes:
        pair: As in the file, possibly the other way round.
        threshold: What holds.
        why_not: Words on what is missing, or differs.
        differs: Whether there is one of these languages, for another way to mine.
    """

    pair: str = ""
    threshold: PublishedThreshold | None = None
    why_not: str = ""
    differs: bool = False


def fitting_threshold(published: Mapping[str, PublishedThreshold], sought: Sought) -> Fit:
    """The threshold of these languages, if it was found by mining in the same way.

    One of the pair the other way round holds as well, since a margin has no direction: as it is for the retrievals
    ``max`` and ``intersect``, that of ``forward`` for ``backward`` and the reverse. Whatever else differs (margin,
    ``k``, retrieval, prompt), the scores are others, and the threshold does not hold.

    Args:
        published: By pair, from :func:`~st_xling.mining.thresholds.published.published_thresholds`.
        sought: What is to be mined.
    """
    wanted = sought.languages
    either_way = [(pair, languages_of(pair)) for pair in published]
    same = [pair for pair, languages in either_way if languages == wanted]
    reverse = [pair for pair, languages in either_way if languages == wanted[::-1] and pair not in same]
    mirrored = replace(sought, retrieval=_MIRRORED.get(sought.retrieval, sought.retrieval))
    unlike = []
    for pair, asked in [*((pair, sought) for pair in same), *((pair, mirrored) for pair in reverse)]:
        differences = _differences(published[pair], asked)
        if not differences:
            return Fit(pair, published[pair])
        unlike.append(f"that of {pair} is for {', '.join(differences)}")
    if unlike:
        return Fit(why_not="; ".join(unlike), differs=True)
    if not published:
        return Fit(why_not="it has none")
    asked_for = f"{sought.source_language}-{sought.target_language}"
    return Fit(why_not=f"it has one for {', '.join(published)}, none for {asked_for}")


def _differences(threshold: PublishedThreshold, asked: Sought) -> list[str]:
    names = ("margin", "k", "retrieval", "prompt")
    pairs = [(name, getattr(threshold, name), getattr(asked, name)) for name in names]
    return [f"{name} {there}, not {here}" for name, there, here in pairs if there != here]
