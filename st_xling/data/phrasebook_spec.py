"""The text that a spec of the phrasebook names, such as ``phrasebook:de,fr?size=8000&split=test&seed=0``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from st_xling.data.spec import PHRASEBOOK_OPTIONS, DataSpec, parse_spec, split_spec

if TYPE_CHECKING:
    from datasets import Dataset

    from st_xling.data.phrasebook import PhrasePassages

SENTENCES = {"train_size": 4000, "held_out_size": 1000}
"""Sentences of each language, unless ``?size=`` sets it."""

PASSAGES = {"train_size": 2000, "held_out_size": 300}
"""The same, of passages."""


def paired_languages(spec: DataSpec) -> tuple[str, ...]:
    """Return the languages that are each paired with English: those listed, or all."""
    from st_xling.data.phrasebook import LANGUAGES

    return spec.listed or tuple(code for code in LANGUAGES if code != "en")


def phrase_sample(spec: DataSpec, *, split: str, train_size: int, held_out_size: int, seed: int = 0) -> dict[str, Any]:
    """Return ``split``, ``size`` and ``seed`` of the spec; the arguments are used where it names none.

    Raises:
        ValueError: If ``split`` is unknown.
    """
    from st_xling.data.phrasebook import check_split

    check_split(split)
    chosen = spec.options.get("split", split)
    sample = {"split": chosen, "size": train_size if chosen == "train" else held_out_size, "seed": seed}
    return sample | {name: value for name, value in spec.options.items() if name in sample}


def read_phrase_pairs(spec: DataSpec, source: str, target: str, *, split: str) -> Dataset:
    """Read parallel text of two languages, see :func:`~st_xling.data.phrasebook.parallel_phrases`."""
    from st_xling.data.phrasebook import parallel_phrases

    return parallel_phrases(source, target, **phrase_sample(spec, split=split, **SENTENCES))


def read_phrase_sentences(spec: DataSpec, language: str, *, split: str, seed: int = 0) -> list[str]:
    """Read sentences of one language."""
    from st_xling.data.phrasebook import phrase_sentences

    return phrase_sentences(language, **phrase_sample(spec, split=split, seed=seed, **SENTENCES))


def read_phrase_passages(spec: DataSpec, languages: Iterable[str], *, split: str) -> PhrasePassages:
    """Read passages and their questions, the same in every language."""
    from st_xling.data.phrasebook import phrase_passages

    return phrase_passages(languages, **phrase_sample(spec, split=split, **PASSAGES))


def phrasebook_name(specs: Iterable[str], *, split: str) -> str | None:
    """Return the name of the data for a signature, such as ``phrasebook-test``.

    Args:
        specs: Data specs.
        split: Split of specs that name none.
    Returns:
        ``None`` unless all specs name the phrasebook.
    """
    specs = list(specs)
    if not specs or not all(split_spec(spec).is_phrasebook for spec in specs):
        return None
    splits = {parse_spec(spec, {}, phrasebook=PHRASEBOOK_OPTIONS).options.get("split", split) for spec in specs}
    return "-".join(["phrasebook", *sorted(splits)])
