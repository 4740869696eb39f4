"""What follows ``?`` in a spec of the command line: ``size=8000&seed=0``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_QUERY = re.compile(r"(.*)\?(\w+=[^&?]*(?:&\w+=[^&?]*)*)", re.DOTALL)


class SpecOption(NamedTuple):
    """One option.

    Attributes:
        read: From the text behind ``=`` to the value; ``ValueError`` for what it does not take.
        example: What it does take, for messages.
    """

    read: Callable[[str], Any]
    example: str


def split_options(spec: str) -> tuple[str, str]:
    """What is before ``?`` and what follows it; a ``?`` behind which no ``key=value`` stands is part of the name.

    Example:
        >>> split_options("what?.tsv?size=8&seed=1")
        ('what?.tsv', 'size=8&seed=1')
    """
    match = _QUERY.fullmatch(spec)
    return (match[1], match[2]) if match else (spec, "")


def read_options(query: str, known: Mapping[str, SpecOption], *, spec: str) -> dict[str, Any]:
    """Name → value.

    Args:
        query: What follows ``?``, without it; may be empty.
        known: The options that are taken.
        spec: The whole spec, for messages.
    Raises:
        ValueError: An option that is not known, comes twice, has no value or a bad one.
    Example:
        >>> read_options("size=8", {"size": SpecOption(whole_above(0), "8000")}, spec="phrasebook?size=8")
        {'size': 8}
    """
    options: dict[str, Any] = {}
    for item in filter(None, query.split("&")):
        key, _, value = item.partition("=")
        if key not in known or key in options or not value:
            raise ValueError(f"expected the options {', '.join(known)}, once each, got {item!r} in {spec!r}")
        try:
            options[key] = known[key].read(value)
        except ValueError as error:
            raise ValueError(f"expected {key}={known[key].example}, got {item!r} in {spec!r}") from error
    return options


def whole_above(least: int) -> Callable[[str], int]:
    """A reader of whole numbers above ``least``."""

    def read(value: str) -> int:
        # int() alone would take "1_000", " 8" and digits of other scripts.
        if not re.fullmatch(r"-?[0-9]+", value) or int(value) <= least:
            raise ValueError(value)
        return int(value)

    return read
