"""Two heaps of phrasebook sentences for each language pair, as a BUCC evaluator is given them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from st_xling.data.phrasebook_spec import parse_phrasebook
from st_xling.evaluation.bucc_corpora import Corpora

SENTENCES, GOLD = 600, 100
"""Sentences a side, and how many of them have their translation on the other, unless the spec says otherwise."""

_OPTIONS = ("size", "gold", "seed")


@dataclass(frozen=True)
class MiningPhrases:
    """Heaps with a known answer.

    Attributes:
        test: Language pair → source and target sentences and gold pairs, to be judged by.
        train: The same, for the threshold; ``None`` where none is to be found.
        name: Of the data, for the signature: sentences a side, gold pairs, seed.
    """

    test: Corpora
    train: Corpora | None
    name: str


def mining_sets(
    spec: str, pairs: Iterable[str] | None = None, *, split: str = "test", train_split: str | None = "dev"
) -> MiningPhrases:
    """Heaps of sentences of two splits; see :func:`~st_xling.data.phrasebook.mining_phrases`.

    Args:
        spec: ``phrasebook``, perhaps with languages, each then paired with English, and ``?size=600&gold=100&seed=0``.
        pairs: Language pairs such as ``"de-en"``; by default as the spec says, or all languages with English.
        split: Judged.
        train_split: Gives the thresholds; ``None`` for no such heaps.
    Raises:
        ValueError: No pairs, or both of both kinds; unknown languages, splits and options; equal splits.
    """
    from st_xling.data.phrasebook import LANGUAGES, mining_phrases
    from st_xling.data.phrasebook.sampler import check_split

    book = parse_phrasebook(spec, options=_OPTIONS)
    for each in (split, *([] if train_split is None else [train_split])):
        check_split(each)
    if train_split == split:
        raise ValueError(f"a threshold must come from text that is not judged by it: got split {split!r} for both.")
    if book.languages and pairs is not None:
        raise ValueError(f"expected language pairs once: got {', '.join(pairs)} and {spec}; leave one out.")
    languages = book.languages or tuple(code for code in LANGUAGES if code != "en")
    chosen = [f"{code}-en" for code in languages] if pairs is None else list(dict.fromkeys(pairs))
    size, gold, seed = ({"size": SENTENCES, "gold": GOLD, "seed": 0, **book.options}[name] for name in _OPTIONS)

    def heaps(part: str) -> Corpora:
        drawn = {pair: mining_phrases(*_two(pair), split=part, size=size, gold=gold, seed=seed) for pair in chosen}
        return {pair: (found.source, found.target, found.gold) for pair, found in drawn.items()}

    return MiningPhrases(
        heaps(split), None if train_split is None else heaps(train_split), f"phrasebook-{size}x{gold}-seed{seed}"
    )


def _two(pair: str) -> tuple[str, str]:
    source, hyphen, target = pair.partition("-")
    if not (source and hyphen and target):
        raise ValueError(f"expected language pairs such as de-en: got {pair!r}.")
    return source, target
