"""Parallel text that is never in memory as a whole: files and Hub data sets as ``datasets.IterableDataset``."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from st_xling.data.columns import ColumnPair
from st_xling.data.faults import FaultLog
from st_xling.data.lines import iter_lines
from st_xling.data.moses import collect_aligned
from st_xling.data.pairs import COLUMNS, PairCollector
from st_xling.data.records import collect_jsonl, collect_parquet
from st_xling.data.sample import Sample
from st_xling.data.tsv import collect_lines, tsv_collector
from st_xling.utils.text import estimate_lines

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

logger = logging.getLogger(__name__)

PART_LINES = 1000

Languages = tuple["str | None", "str | None"]
Item = TypeVar("Item")


def stream_rows(dataset: Any) -> int | None:
    """How many rows a stream has, as its own ``info`` says or estimates; ``None`` where nobody knows."""
    splits, split = dataset.info.splits or {}, str(dataset.split)
    return int(splits[split].num_examples) or None if split in splits else None


def head(dataset: IterableDataset, rows: int) -> Dataset:
    """The first rows of a stream, at most ``rows``, in memory."""
    import pyarrow as pa
    from datasets import Dataset

    names = list(dataset.column_names or COLUMNS)
    batches = dataset.select_columns(names).take(rows).iter(batch_size=10_000)
    tables = [pa.table(batch) for batch in batches]
    return Dataset(pa.concat_tables(tables)) if tables else Dataset.from_dict({name: [] for name in names})


def text_features() -> Any:
    """The features of every parallel data set."""
    from datasets import Features, Value

    return Features({name: Value("string") for name in COLUMNS})


def stream_file(
    path: Path,
    *,
    languages: Languages,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
    sample: Sample = Sample(),  # noqa: B008
) -> IterableDataset:
    """The pairs of a ``.tsv``, ``.jsonl`` (each also ``.gz``) or ``.parquet`` file.

    Reading goes a thousand lines at a time, and again from the start in each pass; a faulty line raises when it is
    reached, with its number. Nothing but the first megabyte is looked at before, to estimate the number of rows; for a
    ``sample`` the file is read through once, to count them, and the rows are then those of the file read whole.
    """
    kind = next(ending for ending in _PARTS if path.name.lower().removesuffix(".gz").endswith(ending))
    rows = _parquet_rows(path) if kind == ".parquet" else estimate_lines(path)
    options = {"path": str(path), "languages": languages, "columns": columns, "skip_bad_lines": skip_bad_lines}
    return _stream(_file_rows, {"kind": kind, **options}, rows, sample, str(path))


def stream_moses(
    source_path: Path,
    target_path: Path,
    *,
    languages: Languages,
    skip_bad_lines: bool = False,
    sample: Sample = Sample(),  # noqa: B008
) -> IterableDataset:
    """The pairs of two line-aligned files; files of unequal length raise where the shorter one ends. For a ``sample``
    see :func:`stream_file`."""
    options = {"source_path": str(source_path), "target_path": str(target_path), "languages": languages}
    where = f"{source_path} and {target_path}"
    return _stream(
        _moses_rows, {**options, "skip_bad_lines": skip_bad_lines}, estimate_lines(source_path), sample, where
    )


def parts(items: Iterable[Item], size: int = PART_LINES) -> Iterator[tuple[int, list[Item]]]:
    """Stretches of ``size`` items, each with the number, counted from 1, of its first."""
    iterator, first = iter(items), 1
    while part := list(itertools.islice(iterator, size)):
        yield first, part
        first += len(part)


def settled_rows(collectors: Iterable[PairCollector], faults: FaultLog) -> Iterator[dict[str, str]]:
    """The pairs that collectors have gathered since they came by last; faults raise at once, or are counted."""
    dropped = 0
    for pairs in collectors:
        if faults.faults and faults.skip_bad_lines and not faults.beyond_repair:
            dropped += len({fault.line for fault in faults.faults})
        else:
            faults.settle()
        faults.faults.clear()
        rows, pairs.rows = pairs.rows, {column: [] for column in COLUMNS}
        for values in zip(*rows.values()):
            yield dict(zip(rows, values))
    faults.settle()
    if dropped:
        logger.warning("dropped %s faulty lines in this pass over the stream", f"{dropped:,}")


def _stream(
    generator: Callable[..., Iterator[dict[str, str]]], options: dict[str, Any], rows: int, sample: Sample, where: str
) -> IterableDataset:
    from datasets import IterableDataset, Split, SplitDict, SplitInfo

    if sample.size is not None:
        places = sample.places(sum(1 for _ in generator(**options)), where)
        # A tuple, not a list: of a list, datasets would hand each worker a part.
        rows, options = len(places), {"generator": generator, "options": options, "places": tuple(places)}
        generator = _chosen_rows
    stream = IterableDataset.from_generator(generator, features=text_features(), gen_kwargs=options, split=Split.TRAIN)
    stream.info.splits = SplitDict({"train": SplitInfo("train", num_examples=rows)})
    return stream


def _chosen_rows(
    generator: Callable[..., Iterator[dict[str, str]]], options: dict[str, Any], places: tuple[int, ...]
) -> Iterator[dict[str, str]]:
    wanted = iter(places)
    place = next(wanted, None)
    for number, row in enumerate(generator(**options)):
        if number == place:
            yield row
            place = next(wanted, None)
            if place is None:
                return


def _file_rows(
    kind: str, path: str, languages: Languages, columns: ColumnPair | None, skip_bad_lines: bool
) -> Iterator[dict[str, str]]:
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    yield from settled_rows(_PARTS[kind](path, faults, *languages, tuple(columns) if columns else None), faults)


def _moses_rows(
    source_path: str, target_path: str, languages: Languages, skip_bad_lines: bool
) -> Iterator[dict[str, str]]:
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    yield from settled_rows(_moses_parts(source_path, target_path, faults, languages), faults)


def _moses_parts(source_path: str, target_path: str, faults: FaultLog, languages: Languages) -> Iterator[PairCollector]:
    pairs = PairCollector(f"{source_path} and {target_path}", faults, *languages)
    ended = object()
    lines = itertools.zip_longest(iter_lines(source_path, faults), iter_lines(target_path, faults), fillvalue=ended)
    for first, part in parts(lines):
        sources, targets = ([line for line in side if line is not ended] for side in zip(*part))
        collect_aligned(source_path, target_path, sources, targets, pairs, first_line=first)
        yield pairs
        if len(sources) != len(targets):
            shorter, longer = (source_path, target_path)[:: 1 if len(sources) < len(targets) else -1]
            count = first - 1 + min(len(sources), len(targets))
            faults.add_beyond_repair(shorter, "unequal line counts", f"{count} lines, but {longer} has more")
            return


def _tsv_parts(
    path: str, faults: FaultLog, source: str | None, target: str | None, columns: ColumnPair | None
) -> Iterator[PairCollector]:
    pairs = tsv_collector(path, faults, source, target, columns)
    for first, lines in parts(iter_lines(path, faults)):
        collect_lines(lines, pairs, columns, first_line=first)
        yield pairs


def _jsonl_parts(
    path: str, faults: FaultLog, source: str | None, target: str | None, columns: ColumnPair | None
) -> Iterator[PairCollector]:
    return collect_jsonl(path, parts(iter_lines(path, faults)), faults, source, target, columns)


def _parquet_rows(path: Path) -> int:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return int(file.metadata.num_rows)


_PARTS: dict[str, Callable[..., Iterator[PairCollector]]] = {
    ".tsv": _tsv_parts,
    ".jsonl": _jsonl_parts,
    ".parquet": collect_parquet,
}
