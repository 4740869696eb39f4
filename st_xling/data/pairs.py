"""Sentence pairs on their way into a ``datasets.Dataset``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from st_xling.data.faults import FaultLog, ParallelTextError
from st_xling.utils.languages import UNKNOWN

if TYPE_CHECKING:
    from datasets import Dataset

COLUMNS = ("source", "target", "source_language", "target_language")
"""The columns of every parallel dataset, all strings, in this order."""

SURROGATE = re.compile("[\ud800-\udfff]")


def pair_dataset(rows: Iterable[tuple[str, str, str, str]]) -> Dataset:
    """Rows of :data:`COLUMNS`, in that order, as a dataset."""
    from datasets import Dataset

    from st_xling.data.streams import text_features

    columns = list(zip(*rows)) or [()] * len(COLUMNS)
    return Dataset.from_dict(dict(zip(COLUMNS, map(list, columns))), features=text_features())


class PairCollector:
    """Takes pairs one by one, notes those that are not two non-empty strings, and ends as a dataset.

    Args:
        where: What is being read, for messages.
        faults: Where faulty pairs are noted.
        source_language: Language of the rows that do not say their own; ``None`` is ``"und"``.
        target_language: The same, of the target side.
    """

    def __init__(
        self, where: str, faults: FaultLog, source_language: str | None = None, target_language: str | None = None
    ) -> None:
        self.where = where
        self.faults = faults
        self.source_language = source_language or UNKNOWN
        self.target_language = target_language or UNKNOWN
        self.rows: dict[str, list[str]] = {column: [] for column in COLUMNS}

    def add(
        self,
        line: int,
        source: object,
        target: object,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> None:
        """Keep the pair of line or row ``line``, or note what is wrong with it.

        White space around a sentence is kept; a sentence of nothing else counts as empty.
        """
        if isinstance(source, str) and isinstance(target, str) and source.strip() and target.strip():
            self.rows["source"].append(source)
            self.rows["target"].append(target)
            self.rows["source_language"].append(source_language or self.source_language)
            self.rows["target_language"].append(target_language or self.target_language)
            return
        for side, value in (("source", source), ("target", target)):
            if not isinstance(value, str):
                got = "null" if value is None else type(value).__name__
                self.faults.add(self.where, line, "non-string value", f"{side} is {got}")
            elif not value.strip():
                self.faults.add(self.where, line, "empty side", side)

    def add_unescaped(
        self,
        line: int,
        source: object,
        target: object,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> None:
        r"""Like ``add``, for text that may hold half a surrogate pair, as JSON's ``"\ud83d"`` does."""
        for side, value in (("source", source), ("target", target)):
            if isinstance(value, str) and SURROGATE.search(value):
                self.faults.add(self.where, line, "bad JSON", f"{side} holds half a surrogate pair")
                return
        self.add(line, source, target, source_language, target_language)

    def dataset(self) -> Dataset:
        """All pairs kept, in order.

        Raises:
            ParallelTextError: If there were faults that are not to be skipped, or no pair is left.
        """
        import pyarrow as pa
        from datasets import Dataset

        self.faults.settle()
        # A table made here is four times faster than Dataset.from_dict, which looks at each value for its type.
        table = pa.table(self.rows, schema=pa.schema([(column, pa.string()) for column in COLUMNS]))
        return require_rows(Dataset(table), self.where)


def require_rows(dataset: Dataset, where: str) -> Dataset:
    """``dataset`` itself, if it has rows.

    Raises:
        ParallelTextError: If it has none; ``where`` says where it came from.
    """
    if len(dataset) == 0:
        raise ParallelTextError(f"expected at least one sentence pair in {where}, got none; check that it is the file")
    return dataset
