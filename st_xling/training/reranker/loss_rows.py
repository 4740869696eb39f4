"""Labelled pairs → the rows that a ranking loss of the host reads.

=============  ==============================================  ==========================================
form           columns                                         label
=============  ==============================================  ==========================================
``pairs``      ``query, passage``                              ``label``: 0 or 1
``lists``      ``query, passages`` (a list)                    ``labels``: one a passage, relevant ones first
``positives``  ``query, positive, negative_1, …, negative_n``  none
``triplets``   ``query, positive, negative``                   ``label``: the margin, 1
=============  ==============================================  ==========================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from st_xling.data.reranking.pairs import PAIR_COLUMNS

if TYPE_CHECKING:
    from datasets import Dataset

Form = Literal["pairs", "lists", "positives", "triplets"]


@dataclass(frozen=True)
class Candidates:
    """The passages of one query in one language."""

    query: str
    relevant: list[str]
    others: list[str]


def loss_rows(pairs: Dataset, form: Form) -> tuple[Dataset, int]:
    """The rows, and how many queries were left out because all their passages have the same label.

    Args:
        pairs: Labelled pairs, see ``labelled_dataset``; rows of the same query text and language belong together.
        form: What the loss reads; only ``"pairs"`` takes queries whose passages are all relevant, or all not.

    Raises:
        ValueError: No rows, a missing column, a label other than 0 and 1, or no query that can be ranked.
    """
    from datasets import Dataset

    check_pairs(pairs)
    if form == "pairs":
        return pairs.select_columns(["query", "passage", "label"]), 0
    found = candidates(pairs)
    usable = [entry for entry in found if entry.relevant and entry.others]
    if not usable:
        raise ValueError(
            f"a loss that compares passages needs a query with a relevant and another one: got {len(found):,} "
            "queries with one kind alone; draw negatives, or take binary_cross_entropy."
        )
    return Dataset.from_dict(_BUILDERS[form](usable)), len(found) - len(usable)


def candidates(pairs: Dataset) -> list[Candidates]:
    """The passages of each query, in the order in which they first come; a repeated passage counts once."""
    entries: dict[tuple[str, str], Candidates] = {}
    for row in pairs.select_columns(list(PAIR_COLUMNS)):
        key = (row["query"], row["query_language"])
        entry = entries.setdefault(key, Candidates(row["query"], [], []))
        side = entry.relevant if row["label"] else entry.others
        if row["passage"] not in side:
            side.append(row["passage"])
    return list(entries.values())


def check_pairs(pairs: Dataset) -> None:
    """Raise ``ValueError`` unless ``pairs`` can be trained on."""
    missing = [name for name in PAIR_COLUMNS if name not in pairs.column_names]
    if missing:
        raise ValueError(f"labelled pairs lack {', '.join(missing)}: they have {', '.join(pairs.column_names)}.")
    unknown = [label for label in pairs.unique("label") if label not in (0, 1)]
    if unknown:
        raise ValueError(f"a label is 1 (relevant) or 0 (not): got {', '.join(map(repr, unknown[:5]))}.")
    if len(pairs) < 2:
        raise ValueError(f"training needs at least 2 labelled pairs: got {len(pairs)}; check the reader's report.")


def _lists(usable: list[Candidates]) -> dict[str, list[Any]]:
    # ListMLE reads the order of the passages as their rank.
    return {
        "query": [entry.query for entry in usable],
        "passages": [entry.relevant + entry.others for entry in usable],
        "labels": [[1.0] * len(entry.relevant) + [0.0] * len(entry.others) for entry in usable],
    }


def _positives(usable: list[Candidates]) -> dict[str, list[Any]]:
    # Columns are the same for all rows: as many negatives as the query with the fewest has.
    negatives = min(len(entry.others) for entry in usable)
    rows = [(entry, positive) for entry in usable for positive in entry.relevant]
    columns = {"query": [entry.query for entry, _ in rows], "positive": [positive for _, positive in rows]}
    return columns | {f"negative_{place + 1}": [entry.others[place] for entry, _ in rows] for place in range(negatives)}


def _triplets(usable: list[Candidates]) -> dict[str, list[Any]]:
    rows = [(entry.query, one, other) for entry in usable for one in entry.relevant for other in entry.others]
    columns = zip(("query", "positive", "negative"), zip(*rows))
    return {name: list(texts) for name, texts in columns} | {"label": [1.0] * len(rows)}


_BUILDERS: dict[str, Callable[[list[Candidates]], dict[str, list[Any]]]] = {
    "lists": _lists,
    "positives": _positives,
    "triplets": _triplets,
}
