"""The embedded corpus in specs of the command line: ``phrasebook:de,fr?size=8000&split=test&seed=0``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from st_xling.data.spec_options import SAMPLE_OPTIONS, SpecOption, one_of, read_options, whole_above

if TYPE_CHECKING:
    from datasets import Dataset

    from st_xling.data.phrasebook import PhrasePassages

_BOOK = re.compile(r"phrasebook(?::([^?]*))?(?:\?(.*))?", re.DOTALL)
_LANGUAGES_BEFORE = re.compile(r"^[A-Za-z_-]+=")

SENTENCES = {"train_size": 4000, "held_out_size": 1000}
"""How many of each language, unless ``?size=`` says otherwise."""

PASSAGES = {"train_size": 2000, "held_out_size": 300}
"""The same, of passages."""


@dataclass(frozen=True)
class PhrasebookSpec:
    """What a spec says of the phrasebook, and the text that it names.

    Attributes:
        languages: As after ``:``; empty where none are named.
        options: What follows ``?``; ``size``, ``gold`` and ``seed`` are whole numbers, ``queries`` a list of languages.
    """

    languages: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def paired_languages(self) -> tuple[str, ...]:
        """The languages that are each paired with English: those named, or all."""
        from st_xling.data.phrasebook import LANGUAGES

        return self.languages or tuple(code for code in LANGUAGES if code != "en")

    def sample(self, *, split: str, train_size: int, held_out_size: int, seed: int = 0) -> dict[str, Any]:
        """``split``, ``size`` and ``seed``, which stand in for what the spec does not say; a ``ValueError`` for a split
        that is none.
        """
        from st_xling.data.phrasebook import check_split

        check_split(split)
        chosen = self.options.get("split", split)
        sample = {"split": chosen, "size": train_size if chosen == "train" else held_out_size, "seed": seed}
        return sample | {name: value for name, value in self.options.items() if name in sample}

    def parallel(self, source: str, target: str, *, split: str) -> Dataset:
        """Parallel text of two languages, in the columns of :func:`~st_xling.data.phrasebook.parallel_phrases`."""
        from st_xling.data.phrasebook import parallel_phrases

        return parallel_phrases(source, target, **self.sample(split=split, **SENTENCES))

    def sentences(self, language: str, *, split: str, seed: int = 0) -> list[str]:
        """Sentences of one language."""
        from st_xling.data.phrasebook import phrase_sentences

        return phrase_sentences(language, **self.sample(split=split, seed=seed, **SENTENCES))

    def passages(self, languages: Iterable[str], *, split: str) -> PhrasePassages:
        """Passages and their questions, the same in every language."""
        from st_xling.data.phrasebook import phrase_passages

        return phrase_passages(languages, **self.sample(split=split, **PASSAGES))


def is_phrasebook(location: str) -> bool:
    """Whether a spec, without the languages before ``=``, names the phrasebook rather than a file."""
    return _BOOK.fullmatch(location) is not None


def parse_phrasebook(
    location: str,
    *,
    options: Iterable[str] = ("size", "split", "seed"),
    spec: str | None = None,
    several: bool = True,
) -> PhrasebookSpec:
    """Parses what :func:`is_phrasebook` says yes to.

    Args:
        location: ``phrasebook``, perhaps with ``:de,fr`` and ``?size=8000&split=test&seed=0``.
        options: Those that are allowed here, out of ``size``, ``split``, ``seed``, ``gold`` and ``queries``.
        spec: The whole spec, for messages.
        several: Whether languages may be listed, which a spec like ``de=phrasebook`` has named already.
    Raises:
        ValueError: Unknown languages, splits and options, a language or an option twice, sizes below 1.
    Example:
        >>> parse_phrasebook("phrasebook:de,fr?size=10").languages
        ('de', 'fr')
    """
    spec = location if spec is None else spec
    match = _BOOK.fullmatch(location)
    assert match is not None
    named = [] if match[1] is None else match[1].split(",")
    if match[1] is not None and not all(named):
        raise ValueError(f"expected phrasebook:de,fr or de-en=phrasebook, got {spec!r}; list languages by code")
    known = {name: _OPTIONS[name] for name in options}
    if named and not several:
        raise ValueError(
            f"expected xx=phrasebook or xx-yy=phrasebook, one language a spec, got {spec!r}; list no other"
        )
    try:
        languages = _languages(named)
    except ValueError as error:
        raise ValueError(f"{spec}: {error}") from error
    return PhrasebookSpec(languages, read_options(match[2] or "", known, spec=spec))


def phrasebook_name(specs: Iterable[str], *, split: str) -> str | None:
    """Name of the data, for a signature: ``phrasebook-test``; ``None`` unless all specs name the phrasebook.

    Args:
        specs: As typed, perhaps with languages before ``=``.
        split: Of specs that name none.
    """
    locations = [_LANGUAGES_BEFORE.sub("", spec) for spec in specs]
    if not locations or not all(map(is_phrasebook, locations)):
        return None
    splits = {parse_phrasebook(each, options=_OPTIONS).options.get("split", split) for each in locations}
    return "-".join(["phrasebook", *sorted(splits)])


def _languages(codes: Iterable[str]) -> tuple[str, ...]:
    from st_xling.data.phrasebook import check_language

    codes = tuple(codes)
    for code in codes:
        check_language(code)
    if len(set(codes)) < len(codes):
        raise ValueError(f"expected each language once: got {','.join(codes)}; leave the repeats out.")
    return codes


_OPTIONS = {
    **SAMPLE_OPTIONS,
    "split": one_of("train", "dev", "test"),
    "gold": SpecOption(whole_above(0), "100, a number above 0"),
    "queries": SpecOption(lambda value: list(_languages(value.split(","))), "de,en, out of en, de, fr, es, vi and zh"),
}
