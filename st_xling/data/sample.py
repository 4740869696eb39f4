"""A seeded sample of the rows of any data: what ``?size=N&seed=S`` asks for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from st_xling.data.spec_options import SpecOption, whole_above
from st_xling.data.streams import stream_rows, text_features

if TYPE_CHECKING:
    import numpy as np
    from datasets import IterableDataset

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


def sample_rows(dataset: Any, size: int | None, *, seed: int = 0, where: str = "data") -> Any:
    """A seeded sample of a data set's rows, in their order.

    A stream is read through once, to count its rows, and then gives the same rows as the whole file would; a reservoir
    would hold them in memory, and the first rows behind a shuffle buffer are no sample of a sorted corpus.

    Args:
        dataset: A ``Dataset``, or an ``IterableDataset`` with the columns of parallel text.
        size: Rows to take; ``None`` for all. Where there are fewer, all are taken, and a warning says so.
        seed: Of the draw; samples of one seed are nested, see :meth:`Sample.places`.
        where: What is sampled, for messages.
    Raises:
        ValueError: A ``size`` below 1, a ``seed`` below 0; a stream that does not say how long it is, which may never
            end.
    Example:
        >>> from datasets import Dataset
        >>> sample_rows(Dataset.from_dict({"source": list("abcdef")}), 3)["source"][:]
        ['c', 'd', 'f']
    """
    if (size is not None and size < 1) or seed < 0:
        raise ValueError(f"{where}: expected a size above 0 and a seed from 0 up, got size={size} and seed={seed}")
    if size is None:
        return dataset
    sample = Sample(size, seed)
    if hasattr(dataset, "__len__"):
        places = sample.places(len(dataset), where)
        return dataset if len(places) == len(dataset) else dataset.select(places)
    return _sample_stream(dataset, sample, where)


def _sample_stream(stream: IterableDataset, sample: Sample, where: str) -> IterableDataset:
    import numpy as np
    from datasets import IterableDataset, Split, SplitDict, SplitInfo

    if stream_rows(stream) is None:
        raise ValueError(
            f"{where}: a sample of size={sample.size} needs the number of rows, which this stream does not know; read "
            "it whole (without --stream), or leave out ?size and bound the run by --max-steps"
        )
    total = sum(len(batch["source"]) for batch in stream.select_columns(["source"]).iter(batch_size=10_000))
    places = sample.places(total, where)
    if len(places) == total:
        return stream
    # An array, not a list: of a list, datasets would hand each worker a part.
    options = {"stream": stream, "places": np.array(places)}
    sampled = IterableDataset.from_generator(
        _chosen_rows, features=text_features(), gen_kwargs=options, split=Split.TRAIN
    )
    sampled.info.splits = SplitDict({"train": SplitInfo("train", num_examples=len(places))})
    return sampled


def _chosen_rows(stream: IterableDataset, places: np.ndarray) -> Iterator[dict[str, str]]:
    wanted = iter(places.tolist())
    place = next(wanted, None)
    for number, row in enumerate(stream):
        if number == place:
            yield row
            place = next(wanted, None)
            if place is None:
                return


def _n(rows: int) -> str:
    return f"{rows:,} row{'s'[: rows != 1]}"
