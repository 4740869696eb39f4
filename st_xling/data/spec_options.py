"""What follows ``?`` in a spec of the command line, such as ``size=8000&seed=0``, a seeded sample of any data."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)

_QUERY = re.compile(r"(.*)\?(\w+=[^&?]*(?:&\w+=[^&?]*)*)", re.DOTALL)


class SpecOption(NamedTuple):
    """One option.

    Attributes:
        read: From the text behind ``=`` to the value; ``ValueError`` for what it does not take.
        example: What it does take, for messages.
    """

    read: Callable[[str], Any]
    example: str


def whole_above(least: int) -> Callable[[str], int]:
    """A reader of whole numbers above ``least``."""

    def read(value: str) -> int:
        # int() alone would take "1_000", " 8" and digits of other scripts.
        if not re.fullmatch(r"-?[0-9]+", value) or int(value) <= least:
            raise ValueError(value)
        return int(value)

    return read


def one_of(*words: str) -> SpecOption:
    """An option that takes one of some words."""

    def read(value: str) -> str:
        if value not in words:
            raise ValueError(value)
        return value

    return SpecOption(read, f"{', '.join(words[:-1])} or {words[-1]}")


SAMPLE_OPTIONS = {
    "size": SpecOption(whole_above(0), "8000, a number above 0"),
    "seed": SpecOption(whole_above(-1), "0, a whole number from 0 up"),
}
"""What specs of files and data sets take for a sample."""


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


class Sample(NamedTuple):
    """How many rows, and which.

    Attributes:
        size: Rows; ``None`` for all.
        seed: Of the draw.
    """

    size: int | None = None
    seed: int = 0

    @classmethod
    def pop(cls, options: dict[str, Any], spec: str) -> Sample:
        """Take ``size`` and ``seed`` out of the options of a spec; a ``ValueError`` for a seed without a size."""
        size, seed = options.pop("size", None), options.pop("seed", None)
        if size is None and seed is not None:
            raise ValueError(f"expected size=N beside seed={seed}, which chooses so many rows: got {spec!r}")
        return cls(size, seed or 0)

    @classmethod
    def split(cls, place: str, spec: str | None = None) -> tuple[str, Sample]:
        """What is before ``?``, and the sample behind it; ``spec`` is the whole for messages."""
        path, query = split_options(place)
        return path, cls.pop(read_options(query, SAMPLE_OPTIONS, spec=spec or place), spec or place)

    def places(self, total: int, where: str) -> list[int]:
        """Numbers of the rows that stay, in order; where there are fewer than ``size``, all of them, and a warning.

        One seed gives nested samples: the 1,000 rows are among the 2,000, so that curves over the amount of data add
        rows and exchange none.
        """
        import numpy as np

        if self.size is None or self.size >= total:
            if self.size is not None and self.size > total:
                sizes = (f"{rows:,} row{'s'[: rows != 1]}" for rows in (self.size, total))
                logger.warning("%s: a sample of %s was asked for, all %s are taken", where, *sizes)
            return list(range(total))
        return np.sort(np.random.default_rng(self.seed).permutation(total)[: self.size]).tolist()


def sample_rows(dataset: Dataset, size: int | None, *, seed: int = 0, where: str = "data") -> Dataset:
    """A seeded sample of a data set's rows, in their order.

    Args:
        dataset: In memory or on disk. Streams of files are sampled where they are read, with ``?size=N`` in their spec:
            see :func:`~st_xling.data.stream_parallel`.
        size: Rows to take; ``None`` for all. Where there are fewer, all are taken, and a warning says so.
        seed: Of the draw; samples of one seed are nested, see :meth:`Sample.places`.
        where: What is sampled, for messages.
    Raises:
        ValueError: A ``size`` below 1, a ``seed`` below 0; a stream.
    Example:
        >>> from datasets import Dataset
        >>> sample_rows(Dataset.from_dict({"source": list("abcdef")}), 3)["source"][:]
        ['c', 'd', 'f']
    """
    if (size is not None and size < 1) or seed < 0:
        raise ValueError(f"{where}: expected a size above 0 and a seed from 0 up, got size={size} and seed={seed}")
    if size is None:
        return dataset
    if not hasattr(dataset, "__len__"):
        raise no_length(where, size)
    places = Sample(size, seed).places(len(dataset), where)
    return dataset if len(places) == len(dataset) else dataset.select(places)


def no_length(where: str, size: int) -> ValueError:
    """The error for a stream that may never end: a reservoir would have to wait for its end, and the first rows behind
    a shuffle buffer are no sample of a sorted corpus."""
    return ValueError(
        f"{where}: a sample of size={size} needs the number of rows, which a stream of the Hub does not tell; read it "
        "whole (without --stream), or leave out ?size and bound the run by --max-steps"
    )


def free_name(name: str, taken: Container[str]) -> str:
    """``name``, or the first of ``name-2``, ``name-3``, … that is not taken: a name for each of several data sets.

    Example:
        >>> free_name("de-en", {"de-en", "de-en-2"})
        'de-en-3'
    """
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
