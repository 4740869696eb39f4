"""One door to streams of parallel text of every kind: ``stream_parallel``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.columns import ColumnPair, NamedColumns, check_named
from st_xling.data.faults import FaultLog
from st_xling.data.hub import choose_columns, load_table
from st_xling.data.moses import find_moses, language_ending
from st_xling.data.pairs import PairCollector
from st_xling.data.readers import file_ending
from st_xling.data.records import collect_records
from st_xling.data.sample import Sample, no_length
from st_xling.data.streams import stream_file, stream_moses, text_features
from st_xling.utils.text import describe_missing

if TYPE_CHECKING:
    from datasets import IterableDataset

STREAMED = (".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".parquet")


def stream_parallel(
    path_or_id: str | Path | tuple[str | Path, str | Path],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
    name: str | None = None,
    split: str | None = None,
    sample: Sample = Sample(),  # noqa: B008
) -> IterableDataset:
    """As ``read_parallel``, without holding the text: rows come from the file as they are asked for.

    Takes what ``read_parallel`` takes except CSV, whose header and quotes need the whole file. Faults are told when
    their line is reached, not all together.

    Args:
        path_or_id, source_language, target_language, columns, skip_bad_lines, name, split: As ``read_parallel``.
        sample: Rows of a file to take: the same rows that a sample of the whole file has, for one more pass over it.
    Raises:
        ValueError: A kind that cannot be streamed; a sample of a data set of the Hub, which may be without an end; and
            as ``read_parallel``.
        FileNotFoundError: If there is no such file.
    """
    languages = (source_language, target_language)
    if isinstance(path_or_id, (tuple, list)):
        source_path, target_path = (Path(path).expanduser() for path in path_or_id)
        return _moses(source_path, target_path, languages, skip_bad_lines, sample)
    path = Path(path_or_id).expanduser()
    ending = file_ending(path)
    if ending in STREAMED and not path.is_dir():
        if not path.is_file():
            raise FileNotFoundError(describe_missing(path))
        return stream_file(path, languages=languages, columns=columns, skip_bad_lines=skip_bad_lines, sample=sample)
    if ending in (".csv", ".csv.gz") or path.is_file():
        raise ValueError(
            f"expected a file ending in {', '.join(STREAMED)} to stream, got {path}; convert it, or read it whole"
        )
    found = None if path.is_dir() else find_moses(path, source_language, target_language)
    if found:
        return _moses(*found, languages, skip_bad_lines, sample)
    if sample.size is not None:
        raise no_length(str(path_or_id), sample.size)
    return _hub(path_or_id, languages, columns, skip_bad_lines, name, split)


def _moses(
    source_path: Path,
    target_path: Path,
    languages: tuple[str | None, str | None],
    skip_bad_lines: bool,
    sample: Sample,
) -> IterableDataset:
    for path in (source_path, target_path):
        if not path.is_file():
            raise FileNotFoundError(describe_missing(path))
    sides = (languages[0] or language_ending(source_path), languages[1] or language_ending(target_path))
    return stream_moses(source_path, target_path, languages=sides, skip_bad_lines=skip_bad_lines, sample=sample)


def _hub(
    dataset_id: str | Path,
    languages: tuple[str | None, str | None],
    columns: ColumnPair | None,
    skip_bad_lines: bool,
    name: str | None,
    split: str | None,
) -> IterableDataset:
    where = f"{dataset_id}{f'/{name}' if name else ''}"
    check_named(columns, where)
    table = load_table(dataset_id, name, split, where, stream=True)
    if hasattr(table, "to_iterable_dataset"):  # a folder of save_to_disk, which is on disk as it is
        table = table.to_iterable_dataset()
    if table.features is None:
        table = table._resolve_features()  # looks at the first rows
    chosen, sides = choose_columns(table.column_names, table.features, where, name, columns, languages)
    convert = _HubRows(where, chosen, sides, languages, skip_bad_lines)
    return table.map(
        convert, batched=True, with_indices=True, remove_columns=table.column_names, features=text_features()
    )


@dataclass(frozen=True)
class _HubRows:
    """A batch of a Hub table → a batch of pairs."""

    where: str
    chosen: NamedColumns
    sides: tuple[str | None, str | None]
    asked: tuple[str | None, str | None]
    skip_bad_lines: bool

    def __call__(self, batch: dict[str, list[Any]], numbers: list[int]) -> dict[str, list[str]]:
        faults = FaultLog(skip_bad_lines=self.skip_bad_lines)
        pairs = PairCollector(self.where, faults, *self.sides)
        rows = (dict(zip(batch, values)) for values in zip(*batch.values()))
        collect_records(((number + 1, row) for number, row in zip(numbers, rows)), pairs, self.chosen, *self.asked)
        faults.settle()
        return pairs.rows
