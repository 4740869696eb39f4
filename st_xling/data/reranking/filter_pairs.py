"""Training data of a filter of translations: pairs that are translations, and pairs that only look like it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from st_xling.data.hard_translation_sets import HARD_CATEGORIES, hard_translations
from st_xling.data.reranking.pairs import draw_apart, labeled_dataset, same_text_classes
from st_xling.data.reranking.strategies import by_language_pair
from st_xling.utils.languages import canonical_language
from st_xling.utils.options import nearest_name

if TYPE_CHECKING:
    from datasets import Dataset

HARD_KINDS = (*HARD_CATEGORIES, "cut", "added", "copy")
"""Kinds of pairs that look like translations. Those of :data:`HARD_CATEGORIES` change an English side in one place;
``cut`` drops the last third or two thirds of a side, ``added`` adds the first half of another sentence, and ``copy``
puts the source, without its last character, in place of the target."""

_FEWEST_WORDS = 6  # of a text that is cut


def check_hard_kinds(kinds: object, where: str) -> None:
    """Raise ``ValueError`` for what is no list, and for an unknown kind; ``where`` names the option, for messages."""
    if not isinstance(kinds, (list, tuple)):
        raise ValueError(f"{where} must be a list, such as [number, cut]: got {kinds!r}.")
    for kind in kinds:
        if kind not in HARD_KINDS:
            raise ValueError(
                f"{where} must be out of {', '.join(HARD_KINDS)}: got {kind!r}{nearest_name(kind, HARD_KINDS)}"
            )


def filter_pairs_from_parallel(
    data: Mapping[str, Dataset],
    *,
    size: int | None = None,
    negatives_per_positive: int = 1,
    hard: Sequence[str] = HARD_KINDS,
    seed: int = 0,
) -> Dataset:
    """Make labeled pairs of two languages from parallel text.

    Each row gives its translation with label 1, pairs with sentences of other rows with label 0, and, where it can
    have one, a hard pair with label 0: one kind of ``hard`` is drawn out of those that its texts allow. A coin decides
    for each row which language comes first.

    Args:
        data: Name → parallel text with ``source``, ``target`` and their languages.
        size: Rows of parallel text to draw from all; by default all.
        negatives_per_positive: Sentences of other rows for each row, never of one that shares a text with it.
        hard: Kinds of :data:`HARD_KINDS`; empty: none.
        seed: Seed of all draws.

    Returns:
        Rows of ``query``, ``passage``, ``label``, ``query_language`` and ``passage_language``, shuffled.

    Raises:
        ValueError: An unknown kind; as :func:`~st_xling.data.reranking.strategies.xpi_pairs_from_parallel`.

    Example:
        >>> from st_xling.data.phrasebook import parallel_phrases
        >>> pairs = filter_pairs_from_parallel({"de-en": parallel_phrases("de", "en", size=20)}, hard=["added"])
        >>> len(pairs), sum(pairs["label"])
        (60, 20.0)
    """
    import datasets

    check_hard_kinds(hard, "hard")
    parts = []
    for number, (codes, columns) in enumerate(by_language_pair(data, size=size, seed=seed).items()):
        classes = same_text_classes(columns)
        first_rows = np.unique(classes, return_index=True)[1]
        same_class = np.stack([classes, classes], axis=1)
        drawn = draw_apart(classes, same_class, len(first_rows), count=negatives_per_positive, seed=seed + number)
        rng = random.Random(f"filter {seed} {number}")
        rows: list[tuple[str, str, float, str, str]] = []
        for row, (source, target) in enumerate(zip(*columns)):
            others = [columns[1][first_rows[other]] for other in drawn[row].tolist()]
            passages = [(target, 1.0), *((other, 0.0) for other in others)]
            neighbor = columns[1][(row + 1) % len(classes)]
            is_reversed = rng.random() < 0.5
            pairs = [(source, passage, label) for passage, label in passages]
            changed = hard_pair((source, target), codes, hard, neighbor=neighbor, rng=rng, seed=seed)
            if changed is not None:
                pairs.append((*changed, 0.0))
            for first, second, label in pairs:
                if is_reversed:
                    rows.append((second, first, label, codes[1], codes[0]))
                else:
                    rows.append((first, second, label, codes[0], codes[1]))
        parts.append(labeled_dataset(*map(list, zip(*rows))))
    joined = datasets.concatenate_datasets(parts)
    return joined.select(np.random.default_rng([seed, 3]).permutation(len(joined)))


def hard_pair(
    texts: tuple[str, str],
    codes: tuple[str, str],
    kinds: Sequence[str],
    *,
    neighbor: str,
    rng: random.Random,
    seed: int = 0,
) -> tuple[str, str] | None:
    """Return a pair that looks like a translation and is none, of a kind that is drawn; ``None``: no kind is possible.

    Args:
        texts: A sentence and its translation.
        codes: Their languages.
        kinds: Of :data:`HARD_KINDS`.
        neighbor: Another sentence in the second language.
        rng: Draws.
        seed: Seed of the changes of English text.
    """
    possible: dict[str, list[tuple[str, str]]] = {}
    english = [side for side in (0, 1) if canonical_language(codes[side]) == "eng"]
    if english and set(kinds) & set(HARD_CATEGORIES):
        for change in hard_translations([texts[english[0]]], seed=seed):
            changed = (texts[0], change.text) if english[0] == 1 else (change.text, texts[1])
            possible.setdefault(change.category, []).append(changed)
    words = texts[1].split()
    if len(words) >= _FEWEST_WORDS:
        third = len(words) // 3
        for kept in (words[:third], words[:-third]):
            possible.setdefault("cut", []).append((texts[0], " ".join(kept)))
    other_words = neighbor.split()
    half = -(-len(other_words) // 2)
    possible["added"] = [(texts[0], " ".join([*words, *other_words[:half]]))]
    possible["copy"] = [(texts[0], texts[0][:-1] or texts[0])]
    choices = [kind for kind in kinds if kind in possible]
    if not choices:
        return None
    return rng.choice(possible[rng.choice(choices)])
