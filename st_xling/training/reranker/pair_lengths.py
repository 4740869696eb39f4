"""How long the training pairs are: cut passages are counted, pairs whose query leaves them no room are left out."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

if TYPE_CHECKING:
    from datasets import Dataset

BATCH_ROWS = 1000


@dataclass(frozen=True)
class PairLengths:
    """Tokens of labelled pairs, special tokens included.

    Attributes:
        pairs: Pairs counted.
        cut: Pairs of which the passage will be cut.
        longest: Tokens of the longest pair.
        left_out: Pairs, not among the others, whose query leaves no room for a token of the passage.
    """

    pairs: int
    cut: int
    longest: int
    left_out: int

    def tell(self, name: str, max_length: int | None) -> None:
        """Say on stderr how many passages are cut and how many pairs are left out, if any."""
        if self.cut:
            share = 100 * self.cut / self.pairs
            tqdm.write(
                f"{name}: {self.cut:,} of {self.pairs:,} pairs ({share:.1f} %) are longer than {max_length} tokens: "
                f"their passages are cut; the longest has {self.longest}. Raise model.max_length to keep more.",
                file=sys.stderr,
            )
        if self.left_out:
            tqdm.write(
                f"{name}: {self.left_out:,} pairs are left out: their queries, which are never cut, leave no room for "
                f"a passage in {max_length} tokens. Raise model.max_length to keep them.",
                file=sys.stderr,
            )


def fitting_pairs(tokenizer: Any, pairs: Dataset, *, max_length: int | None) -> tuple[Dataset, PairLengths]:
    """The pairs that can be trained on, and how long they are; a text of several pairs is tokenised once.

    Args:
        tokenizer: The model's.
        pairs: Labelled pairs.
        max_length: Tokens that a pair is cut to, its passage alone; ``None``: never.

    Raises:
        ValueError: No query leaves room for a passage.
    """
    queries, passages = list(pairs["query"]), list(pairs["passage"])
    sizes = _sizes(tokenizer, dict.fromkeys((*queries, *passages)))
    special = tokenizer.num_special_tokens_to_add(pair=True)
    asked = np.fromiter((sizes[text] for text in queries), np.int64, len(queries)) + special
    total = asked + np.fromiter((sizes[text] for text in passages), np.int64, len(passages))
    if max_length is None:
        return pairs, PairLengths(len(pairs), 0, int(total.max(initial=0)), 0)
    fits = asked < max_length
    if not fits.any():
        raise ValueError(
            f"a query is never cut, and none of {len(set(queries)):,} leaves room for a passage in {max_length} "
            f"tokens: the shortest takes {int(asked.min(initial=0))} with its special tokens; raise model.max_length."
        )
    kept = total[fits]
    found = PairLengths(len(kept), int((kept > max_length).sum()), int(kept.max()), int((~fits).sum()))
    return (pairs if fits.all() else pairs.select(np.flatnonzero(fits))), found


def _sizes(tokenizer: Any, texts: Iterable[str]) -> dict[str, int]:
    known = list(texts)
    sizes: dict[str, int] = {}
    with tqdm(total=len(known), desc="lengths", file=sys.stderr, leave=False, disable=len(known) < BATCH_ROWS) as bar:
        for start in range(0, len(known), BATCH_ROWS):
            batch = known[start : start + BATCH_ROWS]
            rows = tokenizer(batch, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
            sizes.update((text, len(row)) for text, row in zip(batch, rows))
            bar.update(len(batch))
    return sizes
