"""Seeded samples of rows: what ``?size=8000&seed=0`` in a data spec takes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)


class Sample(NamedTuple):
    """Number of rows to draw, and the seed of the draw.

    Attributes:
        size: Rows; ``None`` for all.
        seed: Seed of the draw.
    """

    size: int | None = None
    seed: int = 0

    def places(self, total: int, where: str) -> list[int]:
        """Return the sorted numbers of the rows drawn: all of them, with a warning, if there are fewer than ``size``.

        Samples of one seed are nested: the 1,000 rows are among the 2,000, so that curves over the amount of data add
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
    """Draw a seeded sample of a data set's rows, in their order.

    Args:
        dataset: In memory or on disk. Streams of files are sampled where they are read, with ``?size=N`` in their spec:
            see :func:`~st_xling.data.load_pairs`.
        size: Rows to draw; ``None`` for all. If there are fewer, all are taken, with a warning.
        seed: Seed of the draw; samples of one seed are nested, see :meth:`Sample.places`.
        where: What is sampled, for messages.
    Raises:
        ValueError: If ``size`` is below 1 or ``seed`` below 0, or the data set is a stream.
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
    """Return the error for a sample of a stream that may never end.

    A reservoir would have to wait for its end, and the first rows behind a shuffle buffer are no sample of a sorted
    corpus.
    """
    return ValueError(
        f"{where}: a sample of size={size} needs the number of rows, which a stream of the Hub does not tell; read it "
        "whole (without --stream), or leave out ?size and bound the run by --max-steps"
    )
