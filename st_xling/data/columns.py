"""Which two columns of a table with named columns hold the sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from st_xling.utils.languages import is_two_letter_code

NAMED_PAIRS = (("source", "target"), ("src", "tgt"), ("sentence1", "sentence2"))
"""Column names taken as source and target, in this order of preference."""

ColumnPair = tuple[int, int] | tuple[str, str]
"""A choice of columns: two positions counted from 0, or two names."""


class NamedColumns(NamedTuple):
    """The columns to read.

    Attributes:
        source: Name of the column (or key of ``translation``) with the source sentences.
        target: The same, of the target sentences.
        source_language: Language that the name itself states, as in a column ``de``.
        target_language: The same, of the target side.
        nested: Whether the names are keys of a column ``translation`` of ``{"de": ..., "en": ...}``.
    """

    source: str
    target: str
    source_language: str | None = None
    target_language: str | None = None
    nested: bool = False


def find_columns(
    names: Sequence[str],
    *,
    columns: ColumnPair | None = None,
    languages: tuple[str | None, str | None] = (None, None),
    translation_keys: Sequence[str] = (),
) -> NamedColumns | None:
    """The first that fits: the ``columns`` named, source/target, src/tgt, sentence1/sentence2, the languages asked for,
    two columns that are both language codes; then the same of the keys of a column ``translation``.

    Args:
        names: The names of all columns.
        columns: Two names, to choose them outright.
        languages: The languages asked for, where known.
        translation_keys: The keys of a ``translation`` column, if there is one.
    Returns:
        The two columns, or ``None`` if nothing fits.
    """
    if columns is not None:
        source, target = (str(column) for column in columns)
        for candidates, nested in ((names, False), (translation_keys, True)):
            if source in candidates and target in candidates:
                return _with_languages(source, target, nested)
        return None
    for source, target in NAMED_PAIRS:
        if source in names and target in names:
            return NamedColumns(source, target)
    return _language_columns(names, languages, nested=False) or _language_columns(
        translation_keys, languages, nested=True
    )


def check_named(columns: ColumnPair | None, where: str) -> None:
    """Refuse column positions where columns have names.

    Raises:
        ValueError: If ``columns`` is anything but ``None`` or two different names.
    """
    if columns is not None and (len(set(columns)) != 2 or not all(isinstance(column, str) for column in columns)):
        raise ValueError(f"columns of {where} must be two different names, got {columns!r}; pass e.g. ('de', 'en')")


def cells(row: Mapping[str, object], chosen: NamedColumns) -> tuple[object, object] | None:
    """Source and target of one row, or ``None`` where a key is missing."""
    values: object = row.get("translation") if chosen.nested else row
    if not isinstance(values, Mapping) or chosen.source not in values or chosen.target not in values:
        return None
    return values[chosen.source], values[chosen.target]


def _language_columns(
    names: Sequence[str], languages: tuple[str | None, str | None], *, nested: bool
) -> NamedColumns | None:
    source, target = languages
    if source in names and target in names and source != target:
        return _with_languages(str(source), str(target), nested)
    # Only where there are no other columns: "id" may be a row number, "is" a flag.
    if len(names) != 2 or not (nested or all(is_two_letter_code(name) for name in names)):
        return None
    if source == names[1] or target == names[0]:
        names = names[::-1]
    if source not in (None, names[0]) or target not in (None, names[1]):
        return None
    return _with_languages(names[0], names[1], nested)


def _with_languages(source: str, target: str, nested: bool) -> NamedColumns:
    # Three letters prove nothing: "src" and "ref" have them too.
    if nested or (is_two_letter_code(source) and is_two_letter_code(target)):
        return NamedColumns(source, target, source, target, nested)
    return NamedColumns(source, target)
