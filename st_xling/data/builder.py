"""Pairs of files as a builder of ``datasets``: written to its Arrow cache once and memory-mapped, or streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import datasets
import pyarrow as pa

from st_xling.data.check import FaultLog


class PairsBuilder(datasets.ArrowBasedBuilder):
    """Build a data set of the pairs of some files; its description lists what was not read.

    Args:
        parts: Files with their readers: each has ``tables(faults, names)``.
        features: Columns of the data set.
        skip_bad_lines: Drop faulty lines instead of raising.
        is_stream: Raise the faults of a batch when it is read, not those of all files together.
        key: Tells versions of the files and options apart.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        features: datasets.Features,
        *,
        skip_bad_lines: bool,
        is_stream: bool,
        key: str,
    ) -> None:
        self.parts = list(parts)
        self.skip_bad_lines = skip_bad_lines
        self.is_stream = is_stream
        self.columns = features
        super().__init__(dataset_name="pairs", hash=key)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=self.columns)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        return [datasets.SplitGenerator("train", {"parts": self.parts})]

    def _generate_tables(self, parts: Sequence[Any]) -> Iterator[tuple[Any, pa.Table]]:
        faults = FaultLog(skip_bad_lines=self.skip_bad_lines)
        columns = list(self.columns)
        for part_number, part in enumerate(parts):
            for table_number, table in enumerate(part.tables(faults, columns)):
                if self.is_stream:
                    faults.flush()
                yield (part_number, table_number), table.drop_columns(["line"])
        if self.is_stream:
            faults.finalize()
        else:
            faults.check()
            self.info.description = faults.warning()
