"""Pairs of languages, under which thresholds are kept: ``de-en``."""

from __future__ import annotations

import re

from st_xling.utils.languages import canonical_language

_PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")


def languages_of(pair: str) -> tuple[str, str]:
    """Both codes of a pair such as ``de-en`` in one spelling, so that ``deu-eng`` is the same.

    Raises:
        ValueError: If it is no such pair.
    Example:
        >>> languages_of("de-en"), languages_of("deu-eng")
        (('deu', 'eng'), ('deu', 'eng'))
    """
    match = _PAIR.fullmatch(pair)
    if match is None:
        raise ValueError(f"a pair must be two language codes joined by a hyphen, such as de-en: got {pair!r}.")
    return one_spelling(match[1]), one_spelling(match[2])


def one_spelling(code: str) -> str:
    """A code as LASER spells it; English, Tatoeba's other side, is not among those that it is asked for."""
    return "eng" if code == "en" else canonical_language(code)


def pair_of(source_language: str, target_language: str) -> str:
    """The pair of two languages, without region or script: a pair of languages has but one threshold.

    Example:
        >>> pair_of("de_AT", "en-GB")
        'de-en'
    """
    codes = (code.strip().lower().replace("_", "-").split("-")[0] for code in (source_language, target_language))
    return "-".join(codes)
