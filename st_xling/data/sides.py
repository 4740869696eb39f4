"""Sides of parallel text: the pivot language last, and a check that both are in the languages named for them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from st_xling.data.columns import negative_columns
from st_xling.data.line_ids import check_no_ids
from st_xling.data.pairs import COLUMNS, check_languages, head, pair_rows, sample_rows
from st_xling.data.spec import unique_name
from st_xling.utils.identify import LanguageUnknown, expected_labels, main_language
from st_xling.utils.languages import UNKNOWN, base_language, canonical_language

logger = logging.getLogger(__name__)

HEAD_ROWS = 1000
"""Rows of a stream that are looked at for its languages."""

DRAWN_ROWS = 400
LOOKED_AT = 100
LEAST_ROWS = 10
"""Fewer rows of two languages are not identified."""
LEAST_SWAPPED = 4
"""Fewer rows of two languages that are swapped are not identified."""
SWAPPED_SHARE = 0.8
"""Share of few rows that must be in the language of the other side."""
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
        names = dataset.column_names or COLUMNS
        is_stream = not hasattr(dataset, "__len__")
        pairs = language_pairs(dataset)
        check_languages(pairs, name)
        swap = {pair for pair in pairs if pivot is not None and _is_backward(*pair, pivot)}
        if swap and (negatives := negative_columns(names)):
            logger.warning("%s: leaves out %s, which no source has once sides are turned", name, ", ".join(negatives))
            dataset = dataset.remove_columns(negatives)
        targets |= {pair[pair not in swap]: None for pair in pairs}
        if not is_stream and len(swap) == len(pairs) > 0:
            dataset = dataset.rename_columns(_SWAPPED).select_columns(dataset.column_names)
        elif pivot is not None and (is_stream or swap):
            turn = partial(_turn_rows, name=name, pivot=pivot)
            dataset = dataset.map(turn, batched=True, features=dataset.features)
        new = _new_name(name, *next(iter(swap))) if len(swap) == len(pairs) == 1 else name
        new = unique_name(new, oriented)
        oriented[new] = dataset
        if swap:
            rows = sum(pairs[pair] for pair in swap)
            messages.append(f"{new}: {rows:,} rows turned, so that {pivot} is the target")
    if len(set(map(canonical_language, targets))) > 1:
        messages.append(f"the target side holds several languages: {', '.join(targets)}")
    return oriented, messages


def language_pairs(dataset: Any) -> dict[tuple[str, str], int]:
    """Return the rows of each source and target language, of a stream among its first :data:`HEAD_ROWS` rows."""
    return {pair: len(rows) for pair, rows in pair_rows(head(dataset, HEAD_ROWS)).items()}


def _is_backward(source: str, target: str, pivot: str) -> bool:
    """Return whether the source is the pivot, in any spelling and region, and the target is not."""
    one, other, last = map(base_language, (source, target, pivot))
    return one == last != other


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
    turned = {
        column: [two if swap else one for one, two, swap in zip(batch[column], batch[other], backward)]
        for column, other in _SWAPPED.items()
    }
    return {**batch, **turned}


def _new_name(name: str, source: str, target: str) -> str:
    """Return ``de-en`` for ``en-de`` and ``en-de-2``; other names stay."""
    own = rf"{re.escape(source)}-{re.escape(target)}(-\d+)?"
    return f"{target}-{source}" if re.fullmatch(own, name) else name


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
    lines = []
    for name, dataset in data.items():
        rows = head(dataset, HEAD_ROWS)
        rows = sample_rows(rows, min(len(rows), DRAWN_ROWS))
        for side in ("source", "target"):
            check_no_ids(rows[side], f"{name}, {side}")
        for pair, places in pair_rows(rows).items():
            some = rows.select(places)
            sides = ("source", "target")
            few = [_other_language(some[side], code, least=LEAST_SWAPPED) for side, code in zip(sides, pair)]
            if all(few) and few[0] in expected_labels(pair[1]) and few[1] in expected_labels(pair[0]):
                faults = [f"{side} looks like {other}, expected {code}" for side, other, code in zip(sides, few, pair)]
                raise ValueError(
                    f"{name}: the sides look swapped: {'; '.join(faults)}; name the languages as "
                    f"{pair[1]}-{pair[0]}, or swap the columns (?columns=1,0)."
                )
            found = [_other_language(some[side], code) for side, code in zip(sides, pair)]
            if not any(found):
                continue
            found_sides = zip(sides, found, pair)
            faults = [f"{side} looks like {other}, expected {code}" for side, other, code in found_sides if other]
            advice = "check the file and the languages named for it"
            lines.append(f"{name}: {'; '.join(faults)}; nothing is changed; {advice}")
            logger.warning("%s", lines[-1])
    return lines


def _other_language(texts: Iterable[str], expected: str, *, least: int = LEAST_ROWS) -> str | None:
    """Return the language of more than half of the texts, of fewer than ten of nearly all, if it is not expected."""
    long = sorted((text for text in texts if len(text) >= LEAST_CHARS or not text.isascii()), key=len)
    try:
        labels = expected_labels(expected)
    except LanguageUnknown:
        return None
    share = 0.5 if len(long) >= LEAST_ROWS else SWAPPED_SHARE
    label = main_language(long[-LOOKED_AT:], share=share) if len(long) >= least else UNKNOWN
    return None if label in (UNKNOWN, *labels) else label
