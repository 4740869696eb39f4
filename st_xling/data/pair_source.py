"""Pairs that a location names, and how they are read: memory-mapped through the cache of ``datasets``, or streamed."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from st_xling._version import __version__
from st_xling.data.check import FaultLog
from st_xling.data.columns import Layout, NumberedRow
from st_xling.data.formats import open_parquet, pair_tables
from st_xling.data.pairs import Sample, no_rows, sample_rows, stream_rows, text_features
from st_xling.utils.io import file_sha256
from st_xling.utils.private import fingerprint
from st_xling.utils.text import estimate_lines

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

    from st_xling.data.builder import PairsBuilder

logger = logging.getLogger(__name__)


class PairReader(NamedTuple):
    """Reader of one file, of a pair of files, or of a data set.

    Attributes:
        rows: Function that takes a fault log and yields numbered rows.
        layout: Columns of the rows.
        where: File of the source side, and of the target side.
    """

    rows: partial[Iterator[NumberedRow]]
    layout: Layout
    where: tuple[str, str]

    def tables(self, faults: FaultLog, names: Sequence[str]) -> Iterator[Any]:
        """Yield the pairs as Arrow tables with the number of each line."""
        rows = self.rows(faults)
        if self.layout.header is not None:
            next(rows, None)
        return pair_tables(rows, self.layout, self.where, faults, names)


@dataclass(frozen=True)
class PairSource:
    """Pairs that have been found, and how to read them.

    Attributes:
        parts: Readers of the files, in this order.
        where: What is read, for messages.
        files: The files; none of a data set of the Hub.
        table: Data set or stream of the Hub or of a folder.
        content: Hash of the files of such a folder; empty of a stream, which is not cached.
    """

    parts: tuple[PairReader, ...]
    where: str
    files: tuple[Path, ...] = ()
    table: Any = None
    content: str = ""

    def with_every_label(self) -> PairSource:
        """Return the same pairs with those whose label says that they are none."""
        readers = [reader._replace(layout=reader.layout._replace(label_key=None)) for reader in self.parts]
        return replace(self, parts=tuple(readers))

    def load(self, skip_bad_lines: bool, sample: Sample = Sample(), *, stream: bool) -> Any:  # noqa: B008
        """Return a stream of the pairs, or a data set; see :meth:`stream` and :meth:`read`."""
        if stream:
            return self.stream(skip_bad_lines, sample)
        return self.read(skip_bad_lines, sample)

    def read(self, skip_bad_lines: bool, sample: Sample = Sample()) -> Dataset:  # noqa: B008
        """Read all pairs, or those of a sample, memory-mapped."""
        from datasets.exceptions import DatasetGenerationError

        builder = self._make_builder(skip_bad_lines, is_stream=False)
        try:
            builder.download_and_prepare()
        except DatasetGenerationError as error:
            raise error.__cause__ or error from None

        info = builder.info
        if not info.splits["train"].num_examples:
            raise no_rows(self.where, info.description)
        if info.description:
            logger.warning("%s", info.description)
        return sample_rows(builder.as_dataset("train"), sample.size, seed=sample.seed, where=self.where)

    def stream(self, skip_bad_lines: bool, sample: Sample = Sample()) -> IterableDataset:  # noqa: B008
        """Read the pairs as they are iterated over. A sample is drawn from the memory-mapped whole."""
        from datasets import SplitDict, SplitInfo

        if sample.size is None:
            stream = self._make_builder(skip_bad_lines, is_stream=True).as_streaming_dataset("train")
            size = self._estimate_rows()
        elif self.files:
            rows = self.read(skip_bad_lines, sample)
            stream = rows.to_iterable_dataset()
            size = len(rows)
        else:
            # The first rows are no sample of a sorted corpus, and a stream may never end.
            raise ValueError(
                f"{self.where}: a sample of size={sample.size} needs the number of rows, which a stream of the Hub "
                "does not have; read it whole (without --stream), or leave out ?size and bound the run by --max-steps"
            )
        stream.info.splits = SplitDict({"train": SplitInfo("train", num_examples=size or 0)})
        return stream

    def _make_builder(self, skip_bad_lines: bool, *, is_stream: bool) -> PairsBuilder:
        from st_xling.data.builder import PairsBuilder

        # A stream is read anew each time. A cached text is found again by the content of its files: size and time of
        # modification may both be those of the text before, as after "cp -p", "rsync -t" or unpacking an archive.
        content = self.content
        if not is_stream:
            content += content_sha256(self.files)
        # `datasets` has no public name for the fingerprint of a table, which changes with its content.
        table = self.table
        if table is not None and not is_stream:
            table = fingerprint(table)

        # A reader is a partial function of this package; data sets among its arguments have fingerprints themselves.
        functions = [reader.rows for reader in self.parts]
        readers = [(rows.func.__qualname__, rows.args if self.files else (), rows.keywords) for rows in functions]
        layouts = [(reader.layout, reader.where) for reader in self.parts]
        version = repr((__version__, skip_bad_lines, readers, layouts, content, table))
        key = hashlib.sha256(version.encode()).hexdigest()

        features = text_features(self.parts[0].layout.negatives)
        return PairsBuilder(self.parts, features, skip_bad_lines=skip_bad_lines, is_stream=is_stream, key=key)

    def _estimate_rows(self) -> int | None:
        if not self.files:
            return stream_rows(self.table)
        if self.files[0].suffix == ".parquet":
            with open_parquet(self.files[0]) as file:
                return int(file.metadata.num_rows)
        # Two line-aligned files are one part: their rows are the lines of the first.
        files = self.files if len(self.parts) > 1 else self.files[:1]
        return sum(map(estimate_lines, files))


def content_sha256(files: Iterable[Path]) -> str:
    """Return a hash of the paths and the bytes of files; of those in an archive, of the archive."""
    digest = hashlib.sha256()
    for path in dict.fromkeys(map(file_on_disk, files)):
        digest.update(f"{path}\t{file_sha256(path)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def file_on_disk(path: Path) -> Path:
    """Return the absolute path of the file itself, or of the archive that a path leads into."""
    for folder in (path, *path.parents):
        if folder.is_file():
            return folder.resolve()
    return path.resolve()
