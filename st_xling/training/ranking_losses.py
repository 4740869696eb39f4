"""ST's losses for cross-encoders by name, and labeled pairs as the rows that each of them reads.

=============  ==============================================  ==========================================
form           columns                                         label
=============  ==============================================  ==========================================
``pairs``      ``query, passage``                              ``label``: 0 or 1
``lists``      ``query, passages`` (a list)                    ``labels``: one a passage, relevant ones first
``positives``  ``query, positive, negative_1, …, negative_n``  none
=============  ==============================================  ==========================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import losses as st_losses
from torch import nn

from st_xling.data.reranking.pairs import KEY_COLUMNS, PAIR_COLUMNS
from st_xling.training.recipe_files import check_keys, option_types, read_value
from st_xling.utils.options import is_checked, nearest_name

if TYPE_CHECKING:
    from datasets import Dataset

Form = Literal["pairs", "lists", "positives"]

DEFAULT = "binary_cross_entropy"

_CLASSES: dict[str, tuple[str, Form]] = {
    "binary_cross_entropy": ("BinaryCrossEntropyLoss", "pairs"),
    "mse": ("MSELoss", "pairs"),
    "lambda": ("LambdaLoss", "lists"),
    "list_net": ("ListNetLoss", "lists"),
    "list_mle": ("ListMLELoss", "lists"),
    "plist_mle": ("PListMLELoss", "lists"),
    "rank_net": ("RankNetLoss", "lists"),
    "adr_mse": ("ADRMSELoss", "lists"),
    "multiple_negatives_ranking": ("MultipleNegativesRankingLoss", "positives"),
    "cached_multiple_negatives_ranking": ("CachedMultipleNegativesRankingLoss", "positives"),
}


@dataclass(frozen=True)
class RankingLoss:
    """A loss that a recipe names.

    Attributes:
        name: As :func:`loss_names` spells it.
        options: Numbers, words and truth values that ST's class takes, and ``pos_weight`` as a number.
    """

    name: str = DEFAULT
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def form(self) -> Form:
        """The rows it reads, see :func:`loss_rows`."""
        return _CLASSES[self.name][1]

    @property
    def compares_within_batch(self) -> bool:
        """True if other rows' passages serve as negatives, so that no text, nor a translation of it, may come twice
        in a batch: see :func:`meaning_keys`."""
        return self.form == "positives"

    def build(self, model: CrossEncoder) -> nn.Module:
        """ST's loss over ``model``."""
        options = dict(self.options)
        if "pos_weight" in options:
            options["pos_weight"] = torch.tensor(options["pos_weight"], device=model.device)
        return _st_class(self.name)(model, **options)


def loss_names() -> list[str]:
    """Losses of the installed sentence-transformers that can be trained with labeled pairs."""
    return [name for name, (kind, _) in _CLASSES.items() if hasattr(st_losses, kind)]


def read_ranking_loss(section: Any, where: str = "loss") -> RankingLoss:
    """Read a recipe's key ``loss``: a name, or a mapping of one name to its options.

    Raises:
        ValueError: A loss or option that is not known (the nearest is named), or a value of another type.
    """
    if section is None:
        return RankingLoss()
    if isinstance(section, str):
        section = {section: None}
    if not isinstance(section, dict) or len(section) != 1:
        raise ValueError(f"{where} names one loss, as in {{list_net: {{mini_batch_size: 16}}}}: got {section!r}.")
    [(name, options)] = section.items()
    if name not in loss_names():
        raise ValueError(f"{where} {name!r} is not known{nearest_name(str(name), loss_names())}")
    known = option_types(_st_class(name))
    takes = {key: hint for key, hint in known.items() if is_checked(hint) and key != "show_progress_bar"}
    if "pos_weight" in known:
        takes["pos_weight"] = float
    options = {} if options is None else options
    check_keys(options, takes, f"{where}.{name}")
    read = {key: read_value(value, takes[key], f"{where}.{name}.{key}") for key, value in options.items()}
    return RankingLoss(name, read)


def _st_class(name: str) -> Any:
    return getattr(st_losses, _CLASSES[name][0])


def loss_rows(pairs: Dataset, form: Form) -> tuple[Dataset, int]:
    """The rows, and how many queries were skipped because all their passages have the same label.

    Args:
        pairs: Labeled pairs, see ``labeled_dataset``; rows of the same query text and language belong together.
        form: What the loss reads; only ``"pairs"`` takes queries whose passages are all relevant, or all not.

    Raises:
        ValueError: No rows, a missing column, a label other than 0 and 1, or no query that can be ranked.
    """
    from datasets import Dataset

    check_pairs(pairs)
    if form == "pairs":
        return pairs.select_columns(["query", "passage", "label"]), 0
    # Passages of each query and language, relevant ones and others, in the order in which they first come.
    entries: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for row in pairs.select_columns(list(PAIR_COLUMNS)):
        both = entries.setdefault((row["query"], row["query_language"]), ([], []))
        passages = both[0 if row["label"] else 1]
        if row["passage"] not in passages:
            passages.append(row["passage"])
    usable = [(query, *both) for (query, _), both in entries.items() if all(both)]
    if not usable:
        raise ValueError(
            f"a loss that compares passages needs a query with a relevant and another one: got {len(entries):,} "
            "queries with one kind alone; draw negatives, or take binary_cross_entropy."
        )
    return Dataset.from_dict(_columns(usable, form)), len(entries) - len(usable)


def check_pairs(pairs: Dataset) -> None:
    """Raise ``ValueError`` unless ``pairs`` can be trained on."""
    missing = [name for name in PAIR_COLUMNS if name not in pairs.column_names]
    if missing:
        raise ValueError(f"labeled pairs lack {', '.join(missing)}: they have {', '.join(pairs.column_names)}.")
    unknown = [label for label in pairs.unique("label") if label not in (0, 1)]
    if unknown:
        raise ValueError(f"a label is 1 (relevant) or 0 (not): got {', '.join(map(repr, unknown[:5]))}.")
    if len(pairs) < 2:
        raise ValueError(f"training needs at least 2 labeled pairs: got {len(pairs)}; check the reader's report.")


def _columns(usable: list[tuple[str, list[str], list[str]]], form: Form) -> dict[str, list[Any]]:
    if form == "lists":  # ListMLE reads the order of the passages as their rank
        return {
            "query": [query for query, _, _ in usable],
            "passages": [relevant + others for _, relevant, others in usable],
            "labels": [[1.0] * len(relevant) + [0.0] * len(others) for _, relevant, others in usable],
        }
    rows = [(query, positive, others) for query, relevant, others in usable for positive in relevant]
    # Columns are the same for all rows: as many negatives as the query with the fewest has.
    negatives = min(len(others) for _, _, others in usable)
    texts = {"query": [query for query, _, _ in rows], "positive": [positive for _, positive, _ in rows]}
    return texts | {f"negative_{place + 1}": [others[place] for _, _, others in rows] for place in range(negatives)}


def meaning_keys(pairs: Dataset, rows: Dataset) -> np.ndarray | None:
    """Keys of each row's texts, shared by translations, to keep in-batch negatives apart; ``None`` without any.

    Args:
        pairs: Labeled pairs, with :data:`~st_xling.data.reranking.pairs.KEY_COLUMNS` if they were aligned.
        rows: Made of them for a loss: a column ``query``, the others passages.
    Returns:
        A text with two meanings (``Taxi`` in two languages) has the key of the last.
        *Shape:* ``(rows, columns)``, uint64
    """
    if not set(KEY_COLUMNS) <= set(pairs.column_names):
        return None
    queries, passages = (dict(zip(pairs[side], pairs[f"{side}_key"])) for side in ("query", "passage"))
    columns = [(queries if name == "query" else passages, rows[name]) for name in rows.column_names]
    return np.stack([np.fromiter((keys[text] for text in column), np.uint64) for keys, column in columns], axis=1)
