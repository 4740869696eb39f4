"""A seeded sample of the rows of any data: what ``?size=N&seed=S`` asks for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from st_xling.data.spec_options import SpecOption, whole_above

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)

SAMPLE_OPTIONS = {
    "size": SpecOption(whole_above(0), "8000, a number above 0"),
    "seed": SpecOption(whole_above(-1), "0, a whole number from 0 up"),
}
"""What specs of files and data sets take for a sample."""


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

    def places(self, total: int, where: str) -> list[int]:
        """Numbers of the rows that stay, in order; all of them where there are no more than ``size``, which is said.

        One seed gives nested samples: the 1,000 rows are among the 2,000, so that curves over the amount of data add
        rows and exchange none.
        """
        import numpy as np

        if self.size is None or self.size >= total:
            if self.size is not None and self.size > total:
                logger.warning("%s: a sample of %s was asked for, all %s are taken", where, _n(self.size), _n(total))
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


def _n(rows: int) -> str:
    return f"{rows:,} row{'s'[: rows != 1]}"
