"""A cross-encoder's scores of many pairs, each text read once and little computed on padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from st_xling.models.scoring.pair_rows import PairRows
from st_xling.models.scoring.token_batches import batches, usual_budget

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

#: What becomes of a pair whose query leaves the model no room for a passage.
LONG_QUERIES = ("error", "lowest")

#: Types that ``autocast`` may name.
AUTOCAST = ("bfloat16", "float16")

#: What makes scores of logits, such as ``torch.nn.Sigmoid()``.
Activation = Callable[[Tensor], Tensor]


@dataclass
class ScoringCounts:
    """What has been scored.

    Attributes:
        pairs: All pairs given.
        cut_passages: Pairs whose passage was cut to the model's length.
        long_queries: Pairs whose query leaves no room for a passage; they have no score.
    """

    pairs: int = 0
    cut_passages: int = 0
    long_queries: int = 0


class PairScorer:
    """Scores (query, passage) pairs as ``CrossEncoder.predict`` does, but cuts the passage alone where a pair is long.

    Pairs are taken ``chunk_pairs`` at a time. Each distinct text of a chunk is tokenised once, and not again where it
    was in the chunk before: a query has hundreds of passages, and a passage as many queries. Rows are sorted by tokens,
    and as many are computed together as ``token_budget`` allows. The same pairs in the same order give the same scores
    to the last bit; in another company, a pair's may differ in the last ones.

    Args:
        model: With one label, on the device where it is to work.
        token_budget: Rows of a batch by the tokens of its longest, at most; one row is always allowed.
        activation: Makes scores of logits; the model's own by default (a sigmoid, if it names none).
        autocast: ``"bfloat16"`` or ``"float16"`` to compute in; the model's own type by default.
        long_queries: ``"error"``, or ``"lowest"``: minus infinity for a pair whose query, never cut, leaves no room for
            a passage.
        chunk_pairs: Pairs whose tokens are in memory at a time.
        progress: Show a bar on stderr.
    Raises:
        ValueError: For a model of several labels, one that reads other than plain pairs of texts, or options out of
            range.

    Attributes:
        counts: What has been scored so far.
    """

    def __init__(
        self,
        model: CrossEncoder,
        *,
        token_budget: int | None = None,
        activation: Activation | None = None,
        autocast: str | None = None,
        long_queries: str = "error",
        chunk_pairs: int = 100_000,
        progress: bool = False,
    ) -> None:
        if model.num_labels != 1:
            raise ValueError(
                f"expected a cross-encoder of one label, a score: got {model.num_labels}; which of them ranks is "
                "unknown, use the model's own predict."
            )
        for name, value, choices in (
            ("autocast", autocast, (None, *AUTOCAST)),
            ("long_queries", long_queries, LONG_QUERIES),
        ):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}: got {value!r}.")
        for name, size in (("token_budget", token_budget), ("chunk_pairs", chunk_pairs)):
            if size is not None and size < 1:
                raise ValueError(f"{name} must be 1 or more: got {size}.")
        self.model = model
        self.token_budget = token_budget or usual_budget(model.device.type)
        self.activation: Activation = activation or model.activation_fn or torch.nn.Identity()
        self.autocast, self.long_queries = autocast, long_queries
        self.chunk_pairs, self.progress = chunk_pairs, progress
        self.counts = ScoringCounts()
        self._rows = PairRows(model)

    def score(self, pairs: Iterable[tuple[str, str]], *, raw: bool = False) -> np.ndarray:
        """Scores in the order of the pairs, float32. *Shape:* ``(pairs,)``

        Args:
            pairs: Query and passage each; taken one after another, so that they need not be in memory.
            raw: Leave out the activation: the same order, and no two scores are rounded into one.
        Raises:
            ValueError: With ``long_queries="error"``, for a query that leaves no room for a passage.
        """
        scores: list[np.ndarray] = []
        source = iter(pairs)
        total = len(pairs) if isinstance(pairs, Sized) else None
        was_training = self.model.training
        self.model.eval()
        try:
            with (
                torch.inference_mode(),
                self._precision(),
                tqdm(total=total, unit="pair", desc="scoring", disable=not self.progress) as bar,
            ):
                while chunk := list(islice(source, self.chunk_pairs)):
                    scores.append(self._score(chunk, bar, raw))
        finally:
            self.model.train(was_training)
        return np.concatenate(scores) if scores else np.empty(0, dtype=np.float32)

    def activate(self, logits: np.ndarray) -> np.ndarray:
        """The scores that raw ones stand for, float32. *Shape:* that of ``logits``"""
        with torch.inference_mode():
            return self.activation(torch.from_numpy(logits)).float().numpy()

    def _score(self, chunk: Sequence[tuple[str, str]], bar: tqdm, raw: bool) -> np.ndarray:
        rows = self._rows
        rows.load(chunk)
        if rows.long_queries.any() and self.long_queries == "error":
            raise ValueError(_too_long(chunk, rows.long_queries, rows.limit))
        self.counts.pairs += len(chunk)
        self.counts.cut_passages += int(rows.cut.sum())
        self.counts.long_queries += int(rows.long_queries.sum())
        result = np.full(len(chunk), -np.inf, dtype=np.float32)
        bar.update(int(rows.long_queries.sum()))
        order = np.argsort(-rows.lengths, kind="stable")
        order = order[~rows.long_queries[order]]
        made: list[Tensor] = []
        for batch in batches(rows.lengths[order], self.token_budget):
            features = {name: values.to(self.model.device) for name, values in rows.features(order[batch]).items()}
            logits = self.model({**features, "modality": "text"})["scores"].float()
            logits = logits if raw else self.activation(logits)
            made.append(logits.reshape(-1))  # stays on the device: waiting for each batch would idle it
            bar.update(batch.stop - batch.start)
        if made:
            result[order] = torch.cat(made).float().cpu().numpy()
        return result

    def _precision(self) -> AbstractContextManager[Any]:
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(self.model.device.type, dtype=getattr(torch, self.autocast))


def _too_long(chunk: Sequence[tuple[str, str]], long: np.ndarray, limit: int | None) -> str:
    queries = list(dict.fromkeys(chunk[place][0] for place in np.flatnonzero(long).tolist()))
    return (
        f"expected queries that leave room for a passage in the model's {limit} tokens: got {len(queries)} that do "
        f"not, the first of them {queries[0][:60]!r}; a query is never cut: shorten it, leave it out, or use a model "
        "that reads more."
    )
