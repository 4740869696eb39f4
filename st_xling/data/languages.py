"""Language codes, as file names and columns spell them."""

from __future__ import annotations

import re
from pathlib import Path

UNKNOWN = "und"
"""ISO 639-2 for "undetermined": the language of a side that neither caller nor file names."""

# Two letters only: three would take "dev-de.tsv" for a pair. A hyphen before it would take "built-in-to.tsv" for one.
_PAIR_IN_NAME = re.compile(r"(?:^|[._])([a-z]{2})-([a-z]{2})(?=[._]|$)")
_CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")
_TWO_LETTER_CODE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?")


def pair_in_name(path: str | Path) -> tuple[str | None, str | None]:
    """The two languages of a file name such as ``de-en.dev.tsv.gz``; ``(None, None)`` if it names none."""
    match = _PAIR_IN_NAME.search(Path(path).name)
    return (match[1], match[2]) if match else (None, None)


def is_code(text: str) -> bool:
    """Whether ``text`` is spelled like a language code: ``de``, ``deu``, ``zh-CN``, ``sr_Latn``."""
    return _CODE.fullmatch(text) is not None


def is_two_letter_code(text: str) -> bool:
    """Whether ``text`` is spelled like a language code of two letters: ``de``, ``zh-CN``."""
    return _TWO_LETTER_CODE.fullmatch(text) is not None


def resolve_pair(
    path: str | Path, source_language: str | None, target_language: str | None, *, swapped_on_purpose: bool = False
) -> tuple[str | None, str | None]:
    """The languages asked for, else those of the file name, side by side.

    Raises:
        ValueError: If the file name has the asked languages the other way round, unless ``swapped_on_purpose``: the
            labels would be wrong on every row.
    """
    named = pair_in_name(path)
    source, target = source_language or named[0], target_language or named[1]
    asked_for = source_language is not None or target_language is not None
    reversed_name = named[0] is not None and named[0] != named[1] and (source == named[1] or target == named[0])
    if asked_for and reversed_name and not swapped_on_purpose:
        raise ValueError(
            f"expected {named[0]}-{named[1]}, as the name of {path} says, got {source}-{target}; "
            "swap the languages, or pass columns=(1, 0) to swap the sides"
        )
    return source, target
