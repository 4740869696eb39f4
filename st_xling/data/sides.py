"""Sides of parallel text: the pivot language last, and a check that both are in the languages named for them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from st_xling.data.columns import negative_columns
from st_xling.data.line_ids import check_no_ids
from st_xling.data.pairs import COLUMNS, head, pair_rows, sample_rows
from st_xling.data.spec import unique_name
from st_xling.utils.identify import LanguageUnknown, expected_labels, main_language
from st_xling.utils.languages import UNKNOWN, base_language, canonical_language, check_languages

logger = logging.getLogger(__name__)

HEAD_ROWS = 1000
"""Rows of a stream that are looked at for its languages."""

DRAWN_ROWS = 400
"""Rows of a data set that are drawn to check its sides."""
IDENTIFIED_TEXTS = 100
"""Longest texts of those rows, of which the language is identified."""
LEAST_TEXTS = 10
"""Fewer texts of a side are not identified."""
LEAST_SWAPPED_TEXTS = 4
"""Fewer texts of sides that may be swapped are not identified."""
SHARE_OF_FEW_TEXTS = 0.8
"""Share of fewer than :data:`LEAST_TEXTS` texts that must be in another language."""
LEAST_CHARS = 15
"""Shorter texts are names and interjections, which are identified by chance."""

_SWAPPED = dict(zip(COLUMNS, ("target", "source", "target_language", "source_language")))


def orient(data: Mapping[str, Any], *, pivot: str | None = "en") -> tuple[dict[str, Any], list[str]]:
    """Exchange the sides of every row whose source is the pivot and whose target is not.

    Objectives that rebuild or rank the target side (DAP, section 5.1: non-English → English) need it to be one
    language, while corpora name their pairs by the alphabet: ``de-en``, but ``en-fr``. Rows without the pivot stay as
    they are. Hard negatives are of the target side: a data set that is turned loses them, with a warning.

    Args:
        data: Name → ``Dataset`` or ``IterableDataset`` with the columns of parallel text. Only the first rows of a
            stream are read; later ones are turned one by one as they come.
        pivot: Language to put last, in any spelling (``en``, ``eng``, ``en-GB``); ``None`` to leave all as it is.

    Returns:
        Name → data set or stream, in the order given; a data set that was named by its two languages is named by them
        in their new order. And messages: a line for each data set that was turned, with its rows whose sides were
        exchanged (of a stream, among the first :data:`HEAD_ROWS`), and one if the target side has several languages.

    Raises:
        ValueError: If rows have one known language on both sides, such as ``en-en`` (of a stream, also when such a row
            is reached).
    Source:
        Li et al. 2023 (DAP), section 5.1 and table 5: the target that switches between languages costs.
    """
    oriented: dict[str, Any] = {}
    messages: list[str] = []
    targets: dict[str, None] = {}
    for name, dataset in data.items():
        is_stream = not hasattr(dataset, "__len__")
        pairs = language_pairs(dataset)
        check_languages(pairs, name)
        backward = set()
        if pivot is not None:
            backward = {(source, target) for source, target in pairs if _is_backward(source, target, pivot)}
        negatives = negative_columns(dataset.column_names or COLUMNS)
        if backward and negatives:
            logger.warning("%s: leaves out %s, which no source has once sides are turned", name, ", ".join(negatives))
            dataset = dataset.remove_columns(negatives)
        for source, target in pairs:
            new_target = source if (source, target) in backward else target
            targets[new_target] = None

        if not is_stream and len(backward) == len(pairs) > 0:
            dataset = dataset.rename_columns(_SWAPPED).select_columns(dataset.column_names)
        elif pivot is not None and (is_stream or backward):
            turn = partial(_turn_rows, name=name, pivot=pivot)
            dataset = dataset.map(turn, batched=True, features=dataset.features)
        new_name = name
        if len(backward) == len(pairs) == 1:
            new_name = _turned_name(name, *next(iter(backward)))
        new_name = unique_name(new_name, oriented)
        oriented[new_name] = dataset
        if backward:
            rows = sum(pairs[pair] for pair in backward)
            messages.append(f"{new_name}: {rows:,} rows turned, so that {pivot} is the target")
    if len(set(map(canonical_language, targets))) > 1:
        messages.append(f"the target side holds several languages: {', '.join(targets)}")
    return oriented, messages


def language_pairs(dataset: Any) -> dict[tuple[str, str], int]:
    """Return the rows of each source and target language, of a stream among its first :data:`HEAD_ROWS` rows."""
    return {pair: len(rows) for pair, rows in pair_rows(head(dataset, HEAD_ROWS)).items()}


def _is_backward(source: str, target: str, pivot: str) -> bool:
    """Return whether the source is the pivot, in any spelling and region, and the target is not."""
    pivot = base_language(pivot)
    return base_language(source) == pivot and base_language(target) != pivot


def _turn_rows(batch: dict[str, list[Any]], name: str, pivot: str) -> dict[str, list[Any]]:
    """Return a batch of rows with the pivot last."""
    pairs = list(zip(batch["source_language"], batch["target_language"]))
    check_languages(set(pairs), name)
    backward = [_is_backward(*pair, pivot) for pair in pairs]
    if any(backward) and negative_columns(list(batch)):  # of a stream, whose first rows were all forward
        raise ValueError(
            f"{name}: a row begins with {pivot}, and its negatives would be of the other language once it is turned; "
            "turn such rows, leave out the negatives (?columns=), or take --pivot none"
        )
    turned = dict(batch)
    for column, other_column in _SWAPPED.items():
        cells = zip(batch[column], batch[other_column], backward)
        turned[column] = [other_cell if is_backward else cell for cell, other_cell, is_backward in cells]
    return turned


def _turned_name(name: str, source: str, target: str) -> str:
    """Return ``de-en`` for ``en-de`` and ``en-de-2``; other names stay."""
    names_pair = rf"{re.escape(source)}-{re.escape(target)}(-\d+)?"
    return f"{target}-{source}" if re.fullmatch(names_pair, name) else name


def check_sides(data: Mapping[str, Any]) -> list[str]:
    """Raise for data sets whose sides look swapped, and warn of a side that is in another language than named.

    Of each data set the longest 100 out of 400 rows that a fixed seed draws are looked at (of a stream, out of its
    first thousand). A side is reported where more than half of its texts are in one other language. Languages that
    py3langid does not know pass, and so does text of which only a few rows are long enough.

    Args:
        data: Name → ``Dataset`` or ``IterableDataset`` with the columns of parallel text.

    Returns:
        The warnings, a line each; they are logged too.

    Raises:
        ValueError: If both sides are in the language of the other, so that every label would be wrong; or if nearly all
            texts of a side begin with ids.
    """
    warnings: list[str] = []
    for name, dataset in data.items():
        rows = head(dataset, HEAD_ROWS)
        rows = sample_rows(rows, min(len(rows), DRAWN_ROWS))
        check_no_ids(rows["source"], f"{name}, source")
        check_no_ids(rows["target"], f"{name}, target")
        for languages, row_numbers in pair_rows(rows).items():
            rows_of_pair = rows.select(row_numbers)
            _check_not_swapped(name, rows_of_pair, languages)
            findings = _describe_unexpected(rows_of_pair, languages)
            if findings:
                warning = f"{name}: {findings}; nothing is changed; check the file and the languages named for it"
                warnings.append(warning)
                logger.warning("%s", warning)
    return warnings


def _check_not_swapped(name: str, rows: Any, languages: tuple[str, str]) -> None:
    """Raise ``ValueError`` if each side is in the language of the other."""
    source, target = languages
    source_found = _unexpected_language(rows["source"], source, least=LEAST_SWAPPED_TEXTS)
    target_found = _unexpected_language(rows["target"], target, least=LEAST_SWAPPED_TEXTS)
    if source_found is None or target_found is None:
        return
    if source_found in expected_labels(target) and target_found in expected_labels(source):
        raise ValueError(
            f"{name}: the sides look swapped: source looks like {source_found}, expected {source}; target looks like "
            f"{target_found}, expected {target}; name the languages as {target}-{source}, or swap the columns "
            "(?columns=1,0)."
        )


def _describe_unexpected(rows: Any, languages: tuple[str, str]) -> str:
    """Describe the sides that are in another language than named; empty if both are as expected."""
    findings = []
    for side, expected in zip(("source", "target"), languages):
        found_language = _unexpected_language(rows[side], expected)
        if found_language is not None:
            findings.append(f"{side} looks like {found_language}, expected {expected}")
    return "; ".join(findings)


def _unexpected_language(texts: Iterable[str], expected: str, *, least: int = LEAST_TEXTS) -> str | None:
    """Return the language of more than half of the texts, of few texts that of nearly all, if it is not expected.

    Args:
        texts: Texts of one side.
        expected: Language named for it.
        least: Number of texts that must be long enough to be identified.
    """
    long_texts = sorted((text for text in texts if len(text) >= LEAST_CHARS or not text.isascii()), key=len)
    try:
        labels = expected_labels(expected)
    except LanguageUnknown:
        return None
    if len(long_texts) < least:
        return None
    share = 0.5 if len(long_texts) >= LEAST_TEXTS else SHARE_OF_FEW_TEXTS
    label = main_language(long_texts[-IDENTIFIED_TEXTS:], share=share)
    return None if label in (UNKNOWN, *labels) else label
