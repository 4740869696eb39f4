"""Parallel datasets of the Hugging Face Hub, and folders that ``datasets`` can load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.columns import ColumnPair, NamedColumns, check_named, find_columns
from st_xling.data.faults import FaultLog
from st_xling.data.pairs import PairCollector
from st_xling.data.records import collect_records, needed_columns, no_columns
from st_xling.utils.languages import pair_in_name
from st_xling.utils.text import describe_missing

if TYPE_CHECKING:
    from datasets import Dataset


def read_hub(
    dataset_id: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
    name: str | None = None,
    split: str | None = None,
) -> Dataset:
    """Pairs of a dataset of the Hub, through ``datasets.load_dataset``; they are held in memory.

    Args:
        dataset_id: E.g. ``"Helsinki-NLP/opus-100"``, or a folder with Parquet or JSON files, or one written by
            ``Dataset.save_to_disk``.
        source_language: Language of the source side; else the row's own ``source_language``; else that of a
            configuration named like ``de-en``; else the column or ``translation`` key, if it is a language code; else
            ``"und"``.
        target_language: The same, of the target side.
        columns: Names of two columns, or two keys of ``translation``. Else ``source``/``target``, ``src``/``tgt``,
            ``sentence1``/``sentence2``, the two languages, as columns or as keys of ``translation``.
        skip_bad_lines: Drop faulty rows, with a warning, instead of raising.
        name: The configuration, e.g. ``"de-en"``.
        split: The split; else ``"train"``, or the only one there is.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language``.
    Raises:
        ValueError: If it cannot be loaded (the host's own error is its cause), or the split must be chosen.
        ParallelTextError: If no two columns fit; for faulty rows, counted from 1, all together; if no row is left.
    """
    where = f"{dataset_id}{f'/{name}' if name else ''}"
    check_named(columns, where)
    table = load_table(dataset_id, name, split, where)
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    asked = (source_language, target_language)
    chosen, languages = choose_columns(table.column_names, table.features, where, name, columns, asked)
    pairs = PairCollector(where, faults, *languages)
    rows = _rows(table.with_format(None).select_columns(needed_columns(table.column_names, chosen)))
    collect_records(enumerate(rows, 1), pairs, chosen, source_language, target_language)
    return pairs.dataset()


def choose_columns(
    names: list[str],
    features: Any,
    where: str,
    name: str | None,
    columns: ColumnPair | None,
    asked: tuple[str | None, str | None],
) -> tuple[NamedColumns, tuple[str | None, str | None]]:
    """The two columns of a table, and the languages of rows that do not say their own; raises as ``read_hub``."""
    source_language, target_language = asked
    named = pair_in_name(name or "")
    if named[0] and (source_language == named[1] or target_language == named[0]) and named[0] != named[1]:
        named = (named[1], named[0])  # the columns are chosen by language, so that either direction can be read
    languages = (source_language or named[0], target_language or named[1])
    chosen = find_columns(
        names,
        columns=columns,
        languages=languages,
        translation_keys=_translation_keys(features.get("translation")),
    )
    if chosen is None:
        faults = FaultLog()
        faults.add_beyond_repair(where, "missing key", no_columns(columns, names, where))
        faults.settle()
        raise AssertionError("settle raises for what is beyond repair")
    return chosen, (languages[0] or chosen.source_language, languages[1] or chosen.target_language)


def load_table(dataset_id: str | Path, name: str | None, split: str | None, where: str, *, stream: bool = False) -> Any:
    """One split of a dataset of the Hub or of a folder; raises as ``read_hub``."""
    return _one_split(_load(dataset_id, name, split, where, stream), where)


def _load(dataset_id: str | Path, name: str | None, split: str | None, where: str, stream: bool) -> Any:
    import datasets

    folder = Path(dataset_id)
    try:
        if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
            saved = datasets.load_from_disk(str(folder))
            return saved[split] if split and isinstance(saved, datasets.DatasetDict) else saved
        return datasets.load_dataset(str(dataset_id), name, split=split, streaming=stream)
    except Exception as error:  # the host raises a dozen unrelated kinds; each is kept as the cause
        reason = (str(error).splitlines() or [""])[0]
        nearby = "" if folder.is_dir() else f" As a file: {describe_missing(folder)}."
        raise ValueError(
            f"expected a file, a Moses prefix, a folder or the id of a dataset on the Hub, got {where}"
            f"{f' with split {split}' if split else ''}; the Hub says: {type(error).__name__}: {reason}.{nearby} "
            "Check the spelling, the network (HF_HUB_OFFLINE), and name= (the configuration) and split=."
        ) from error


def _one_split(loaded: Any, where: str) -> Any:
    import datasets

    if isinstance(loaded, (datasets.Dataset, datasets.IterableDataset)):
        return loaded
    if "train" in loaded:
        return loaded["train"]
    if len(loaded) == 1:
        return next(iter(loaded.values()))
    raise ValueError(f"{where}: expected a split to choose, got none for {', '.join(loaded)}; pass e.g. split='test'")


def _translation_keys(feature: Any) -> list[str]:
    """The languages of a ``translation`` feature, whether it is a Translation or a plain struct."""
    keys = getattr(feature, "languages", feature)
    return list(keys) if isinstance(keys, (dict, list, tuple)) else []


def _rows(table: Any) -> Iterator[dict[str, object]]:
    for batch in table.iter(batch_size=1000):
        for values in zip(*batch.values()):
            yield dict(zip(batch, values))
