"""Hard negatives that look like the translation: the English side with another number, a negation, or another name."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from datasets import Dataset, IterableDataset

from st_xling.data.hard_translation_sets import check_hard_categories, hard_translations
from st_xling.data.pairs import append_columns, dataset_in_memory
from st_xling.data.text_cells import column_texts
from st_xling.utils.languages import canonical_language

logger = logging.getLogger(__name__)

#: Column of the negatives, which losses read after the pair.
NEGATIVE = "negative_1"

_TARGET = "target"
_TARGET_LANGUAGE = "target_language"


def add_swap_negatives(
    dataset: Dataset | IterableDataset, *, categories: Sequence[str] = ("number", "causality"), seed: int = 0
) -> Any:
    """Add a near-translation to every pair: its English target, changed in one place so that it means something else.

    The changes are those of xsim++, see :func:`~st_xling.data.hard_translations`. A target without such a change, and
    one that is not English, is repeated as its own negative: losses that mask duplicates, as
    :class:`~st_xling.losses.TranslationRankingLoss` does, ignore it for its own row, and to the others it is one of the
    targets of the batch that they have already. How many pairs that are is logged, but for streams.

    Each negative depends on its text and the seed alone. A stream is changed row by row as it is read.

    Args:
        dataset: Pairs with a column ``target``; where there is a column ``target_language``, it tells which are
            English.
        categories: Kinds of changes to draw from, of :data:`~st_xling.data.hard_translation_sets.HARD_CATEGORIES`.
        seed: Seed of the draw.

    Returns:
        ``dataset`` with the column ``negative_1``.

    Raises:
        ValueError: An unknown category, no column ``target``, or negatives that are there already.

    Source:
        The changes: Chen et al. 2023, "xsim++". Their use as negatives is ours.

    Example:
        >>> pairs = Dataset.from_dict({"source": ["Es sind 7."], "target": ["There are 7."]})
        >>> add_swap_negatives(pairs, categories=["number"])["negative_1"][0] != "There are 7."
        True
    """
    check_hard_categories(categories)
    names = dataset.column_names or []
    if _TARGET not in names:
        raise ValueError(f"near-translations are made of the column target: got {', '.join(names) or 'no columns'}.")
    if NEGATIVE in names:
        raise ValueError(
            f"the data set has hard negatives already ({NEGATIVE}); to replace them, remove them first: "
            f'dataset.remove_columns("{NEGATIVE}").'
        )

    def negative(text: str, language: str) -> str:
        is_english = canonical_language(language) == "eng"
        changed = near_translation(text, categories, seed=seed) if is_english else None
        return text if changed is None else changed

    if not isinstance(dataset, Dataset):

        def with_negative(row: dict[str, Any]) -> dict[str, Any]:
            return {**row, NEGATIVE: negative(row[_TARGET], row.get(_TARGET_LANGUAGE, "en"))}

        return dataset.map(with_negative)

    targets = list(column_texts(dataset, _TARGET))
    languages = dataset[_TARGET_LANGUAGE][:] if _TARGET_LANGUAGE in names else ["en"] * len(targets)
    negatives = [negative(text, language) for text, language in zip(targets, languages)]
    changed_count = sum(text != target for text, target in zip(negatives, targets))
    message = "hard negatives by a swap (%s): %s of %s pairs; the others have none"
    log = logger.info if changed_count else logger.warning
    log(message, ", ".join(categories), f"{changed_count:,}", f"{len(targets):,}")
    return append_columns(dataset, dataset_in_memory(pa.table({NEGATIVE: negatives})))


def near_translation(text: str, categories: Sequence[str], *, seed: int = 0) -> str | None:
    """Return the English text with one change of these categories, drawn by the text; ``None``: it has none."""
    changes = [hard for hard in hard_translations([text], seed=seed) if hard.category in categories]
    if not changes:
        return None
    # A category first: sentences have more words with an opposite than numbers.
    rng = random.Random(f"swap {seed} {text}")
    category = rng.choice(sorted({hard.category for hard in changes}))
    return rng.choice([hard.text for hard in changes if hard.category == category])
