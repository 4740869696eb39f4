"""Two heaps of sentences with translations hidden in them, for bitext mining."""

from dataclasses import dataclass
from random import Random

from st_xling.data.phrasebook.corpus import check_pair
from st_xling.data.phrasebook.render import render
from st_xling.data.phrasebook.splits import check_size, draw_meanings


@dataclass(frozen=True)
class MiningSet:
    """Comparable text with a known answer.

    Args:
        source: Sentences in one language, all different.
        target: Sentences in the other, all different.
        gold: Index pairs ``(source, target)`` of the translations, by source index; no other pair is one.
    """

    source: list[str]
    target: list[str]
    gold: list[tuple[int, int]]


def mining_phrases(
    source: str = "de",
    target: str = "en",
    *,
    split: str = "test",
    size: int = 1000,
    gold: int = 100,
    seed: int = 0,
) -> MiningSet:
    """Generate two heaps of sentences of which some are translations of each other.

    Args:
        source: Language of the source side, one of :data:`LANGUAGES`.
        target: Language of the target side.
        split: ``train``, ``dev`` or ``test``; its meanings are the ones :func:`parallel_phrases` draws with this seed.
        size: Sentences a side.
        gold: How many of them have their translation on the other side.
        seed: Which sample to draw.
    Returns:
        The heaps, each shuffled, and the pairs.
    Raises:
        ValueError: If a language or split is unknown, the languages are equal, ``size`` is below 1, or ``gold`` is
            negative or above ``size``.
    Example:
        >>> found = mining_phrases("de", "en", size=50, gold=5)
        >>> len(found.source), len(found.target), len(found.gold)
        (50, 50, 5)
    """
    check_pair(source, target)
    check_size(size)
    if not 0 <= gold <= size:
        raise ValueError(
            f"gold must lie between 0 and size: got gold={gold} for size={size}; lower gold or raise size."
        )
    # The first meanings are shared; the rest are dealt to one side or the other.
    meanings = draw_meanings(split, 2 * size - gold, seed)
    rng = Random(f"mining:{split}:{size}:{gold}:{seed}")
    left = list(range(size))
    right = [*range(gold), *range(size, 2 * size - gold)]
    rng.shuffle(left)
    rng.shuffle(right)
    where = {meaning: index for index, meaning in enumerate(right)}
    return MiningSet(
        source=[render(meanings[meaning], source).text for meaning in left],
        target=[render(meanings[meaning], target).text for meaning in right],
        gold=[(index, where[meaning]) for index, meaning in enumerate(left) if meaning < gold],
    )
