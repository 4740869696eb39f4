"""Which side is source and which is target: the pivot language last."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from st_xling.data.columns import negative_columns
from st_xling.data.pairs import COLUMNS, head
from st_xling.data.spec import unique_name
from st_xling.utils.languages import UNKNOWN, base_language, canonical_code, canonical_language

logger = logging.getLogger(__name__)

HEAD_ROWS = 1000
"""Rows of a stream that are looked at for its languages."""

_SWAPPED = {
    "source": "target",
    "target": "source",
    "source_language": "target_language",
    "target_language": "source_language",
}


@dataclass(frozen=True)
class OrientedData:
    """Data sets whose pivot side is the target.

    Attributes:
        data: Name → data set or stream, in the order given. A data set that was named by its two languages is named by
            them in their new order.
        turned: New name → rows whose sides were exchanged, of the data sets that had any; of a stream, among the first
            :data:`HEAD_ROWS`.
        target_languages: Of the target sides of all data sets, as the rows spell them, in their order; ``und``, the
            unknown language, included.
        pivot: The language that was put last; ``None`` if nothing was to be turned.
    """

    data: dict[str, Any]
    turned: dict[str, int]
    target_languages: tuple[str, ...]
    pivot: str | None = "en"

    @property
    def several_targets(self) -> bool:
        """True if the target side has more than one language, which a head that rebuilds it must know."""
        return len(set(map(canonical_language, self.target_languages))) > 1

    def messages(self) -> list[str]:
        """A line for each data set that was turned, and one where the target side holds several languages."""
        lines = [
            f"{name}: {rows:,} rows turned, so that {self.pivot} is the target" for name, rows in self.turned.items()
        ]
        if self.several_targets:
            lines.append(f"the target side holds several languages: {', '.join(self.target_languages)}")
        return lines


def orient(data: Mapping[str, Any], *, pivot: str | None = "en") -> OrientedData:
    """Exchange the sides of every row whose source is the pivot and whose target is not.

    Objectives that rebuild or rank the target side (DAP, section 5.1: non-English → English) need it to be one
    language, while corpora name their pairs by the alphabet: ``de-en``, but ``en-fr``. Rows without the pivot stay as
    they are. Hard negatives are of the target side: a data set that is turned loses them, with a warning.

    Args:
        data: Name → ``Dataset`` or ``IterableDataset`` with the columns of parallel text. Nothing of a stream is read
            but its first rows; later ones are turned one by one as they come.
        pivot: Language to put last, in any spelling (``en``, ``eng``, ``en-GB``); ``None`` to leave all as it is.
    Returns:
        The data sets, what was turned, and the languages of the target side.
    Raises:
        ValueError: A data set without the four columns; rows that have one known language on both sides, such as
            ``en-en``, which say nothing about the order of languages (of a stream, also when such a row is reached).
    Source:
        Li et al. 2023 (DAP), section 5.1 and table 5: the target that switches between languages costs.
    """
    oriented: dict[str, Any] = {}
    turned: dict[str, int] = {}
    targets: dict[str, None] = {}
    for name, dataset in data.items():
        names = dataset.column_names or COLUMNS
        if missing := [column for column in COLUMNS if column not in names]:
            raise ValueError(f"data set {name!r} lacks {', '.join(missing)}: it has {', '.join(names)}.")
        is_stream = not hasattr(dataset, "__len__")
        pairs = language_pairs(dataset)
        check_languages(pairs, name)
        swap = {pair for pair in pairs if _is_backward(*pair, pivot)}
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
            turned[new] = sum(pairs[pair] for pair in swap)
    return OrientedData(oriented, turned, tuple(targets), pivot)


def check_languages(pairs: Iterable[tuple[str, str]], name: str) -> None:
    """Raise ``ValueError`` if a pair of languages is one known language twice; ``name`` is what has them."""
    for source, target in pairs:
        if source != UNKNOWN and canonical_code(source) == canonical_code(target):
            raise ValueError(
                f"{name}: expected two languages, got {source}-{target}; name them right, as in de-en=PATH, or leave "
                "such rows out"
            )


def language_pairs(dataset: Any) -> dict[tuple[str, str], int]:
    """Source and target language → rows, in the order of the rows; of a stream, of its first :data:`HEAD_ROWS` rows."""
    from st_xling.data.balance import count_pairs

    return count_pairs(head(dataset, HEAD_ROWS))


def _is_backward(source: str, target: str, pivot: str | None) -> bool:
    """Return whether the source is the pivot, in any spelling and region, and the target is not."""
    if pivot is None:
        return False
    one, other, last = map(base_language, (source, target, pivot))
    return one == last != other


def _turn_rows(batch: dict[str, list[Any]], name: str, pivot: str) -> dict[str, list[Any]]:
    """A batch of rows with the pivot last."""
    pairs = list(zip(batch["source_language"], batch["target_language"]))
    check_languages(set(pairs), name)
    backward = [_is_backward(*pair, pivot) for pair in pairs]
    if any(backward) and negative_columns(list(batch)):  # of a stream, whose first rows were all forward
        raise ValueError(
            f"{name}: a row begins with {pivot}, and its negatives would be of the other language once it is turned; "
            "turn such rows, leave out the negatives (?columns=), or take --pivot none."
        )
    turned = {
        column: [two if swap else one for one, two, swap in zip(batch[column], batch[other], backward)]
        for column, other in _SWAPPED.items()
    }
    return {**batch, **turned}


def _new_name(name: str, source: str, target: str) -> str:
    """``de-en`` for ``en-de`` and ``en-de-2``; other names stay."""
    own = rf"{re.escape(source)}-{re.escape(target)}(-\d+)?"
    return f"{target}-{source}" if re.fullmatch(own, name) else name
