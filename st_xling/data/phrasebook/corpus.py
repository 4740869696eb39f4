"""Parallel sentences as a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.data.phrasebook.render import check_language, render
from st_xling.data.phrasebook.splits import draw_meanings
from st_xling.data.phrasebook.surface import align

if TYPE_CHECKING:
    from datasets import Dataset


def check_pair(source: str, target: str) -> None:
    """Raise a ``ValueError`` unless source and target are two different known languages."""
    check_language(source)
    check_language(target)
    if source == target:
        raise ValueError(f"source and target must differ: got {source!r} for both; choose two languages.")


def parallel_phrases(
    source: str = "de",
    target: str = "en",
    *,
    split: str = "train",
    size: int = 1000,
    seed: int = 0,
    distinct: bool = True,
) -> Dataset:
    """Generate parallel sentences with their word alignment.

    The same split, size and seed give the same meanings, row by row, for every pair of languages; a smaller size gives
    the first rows of a larger one. No meaning belongs to two splits, whatever the seed, so no test sentence is seen in
    training, in any language.

    Args:
        source: Language of the source side, one of :data:`LANGUAGES`.
        target: Language of the target side.
        split: ``train``, ``dev`` or ``test``.
        size: Number of pairs.
        seed: Which sample to draw.
        distinct: Whether every sentence comes once.
    Returns:
        A dataset with columns ``source``, ``target``, ``source_language``, ``target_language``, ``alignment`` (pairs
        of token indices), ``source_tokens`` and ``target_tokens``. Tokens are what spaces separate; in Chinese, words.
    Raises:
        ValueError: If a language or split is unknown, the languages are equal, or ``size`` is below 1.
    Example:
        >>> row = parallel_phrases("zh", "en", size=10)[0]
        >>> sorted(row)[:3]
        ['alignment', 'source', 'source_language']
    """
    import pyarrow
    from datasets import Dataset, Features, Sequence, Value

    check_pair(source, target)
    meanings = draw_meanings(split, size, seed, distinct=distinct)
    sources = [render(meaning, source) for meaning in meanings]
    targets = [render(meaning, target) for meaning in meanings]
    text, words = Value("string"), Sequence(Value("string"))
    features = Features({
        "source": text,
        "target": text,
        "source_language": text,
        "target_language": text,
        "alignment": Sequence(Sequence(Value("int64"))),
        "source_tokens": words,
        "target_tokens": words,
    })  # fmt: skip
    columns = {
        "source": [phrase.text for phrase in sources],
        "target": [phrase.text for phrase in targets],
        "source_language": [source] * size,
        "target_language": [target] * size,
        "alignment": [align(left, right) for left, right in zip(sources, targets)],
        "source_tokens": [list(phrase.tokens) for phrase in sources],
        "target_tokens": [list(phrase.tokens) for phrase in targets],
    }
    # Straight to Arrow: from_dict would look at every value again, and take as long as the rendering.
    return Dataset(pyarrow.Table.from_pydict(columns, schema=features.arrow_schema))
