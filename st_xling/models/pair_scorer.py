"""Score many pairs with a cross-encoder, with little padding, and rank by the scores.

``CrossEncoder.predict`` scores batches that are made here: of rows of like length in tokens, where it sorts by
characters, and only passages are cut.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from torch import Tensor

from st_xling.models.encoding import CPU_TOKENS, GPU_TOKENS, batches, own_prompt
from st_xling.models.token_rows import check_texts
from st_xling.utils.options import Autocast, check_choice
from st_xling.utils.precision import warn_of_slow_bfloat16
from st_xling.utils.terminal import progress_bar

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase
    from typing_extensions import Unpack

# A tokenizer without a length names a huge number.
_NO_LIMIT = 1_000_000

# Texts whose tokens are counted at a time: ids take far more memory than their number.
_TEXTS_AT_ONCE = 1024

#: Option of ST by which only the passage of a pair is cut.
ONLY_PASSAGES = {"truncation": "only_second"}


class PairScorerOptions(TypedDict, total=False):
    """Options of a :class:`PairScorer`."""

    token_budget: int | None
    autocast: Autocast | None
    long_queries: Literal["error", "lowest"]
    progress: bool


class PairScorer:
    """Scores (query, passage) pairs with ``CrossEncoder.predict``, but never cuts a query.

    Pairs are sorted by tokens, which are counted once for each distinct text: a query has hundreds of passages, and a
    passage as many queries. As many are computed together as ``token_budget`` allows.

    Args:
        model: A cross-encoder with one label, on the device where it is to work.
        token_budget: Maximum number of rows of a batch times tokens of its longest row; one row is always allowed.
        autocast: ``"bfloat16"`` or ``"float16"`` to compute in; the type of the model's weights by default.
        long_queries: ``"error"``, or ``"lowest"``: minus infinity for a pair whose query, never cut, leaves no room for
            a passage.
        progress: Show a bar on stderr.

    Raises:
        ValueError: For a model of several labels, or one that reads other than plain pairs of texts.

    Attributes:
        cut_passages: Number of pairs scored so far whose passage was cut to the model's length.

    Example:
        >>> from st_xling.models.cross_encoders import tiny_cross_encoder
        >>> model = tiny_cross_encoder(["Who?", "He.", "There."], vocabulary=100, hidden_size=16)
        >>> PairScorer(model).score([("Who?", "He."), ("Who?", "There.")]).shape
        (2,)
    """

    def __init__(
        self,
        model: CrossEncoder,
        *,
        token_budget: int | None = None,
        autocast: Autocast | None = None,
        long_queries: Literal["error", "lowest"] = "error",
        progress: bool = False,
    ) -> None:
        if model.num_labels != 1:
            raise ValueError(f"expected a cross-encoder of one label: got {model.num_labels}; use its own predict.")
        if autocast is not None:
            check_choice("autocast", autocast, Autocast)
        if autocast == "bfloat16":
            warn_of_slow_bfloat16(model.device.type)
        self.model = model
        default_budget = CPU_TOKENS if model.device.type == "cpu" else GPU_TOKENS
        self.token_budget = token_budget or default_budget
        self.activation = model.activation_fn or torch.nn.Identity()
        self.autocast = autocast
        self.long_queries = long_queries
        self.progress = progress
        self.cut_passages = 0
        self._tokenizer = _plain_tokenizer(model)
        #: Tokens of a pair; ``None`` where neither tokenizer nor positions have an end.
        self._limit: int | None = None
        for limit in (model.max_seq_length, getattr(model.config, "max_position_embeddings", None)):
            if self._limit is None and limit is not None and limit < _NO_LIMIT:
                self._limit = int(limit)

    def score(self, pairs: Sequence[tuple[str, str]], *, raw: bool = False) -> np.ndarray:
        """Score pairs of query and passage, in their order, float32. *Shape:* ``(pairs,)``

        Args:
            pairs: Queries and passages.
            raw: Skip the activation: the same order, and no two scores are rounded into one.

        Raises:
            ValueError: With ``long_queries="error"``, for a query that leaves no room for a passage.
        """
        prompt = own_prompt(self.model)
        limit = self._limit or sys.maxsize
        check_texts(self.model, list(dict.fromkeys(itertools.chain.from_iterable(pairs))), prompt=prompt)
        query_sizes, passage_sizes = pair_sizes(
            self._tokenizer, [prompt + query for query, _ in pairs], [passage for _, passage in pairs]
        )
        lengths = query_sizes + passage_sizes
        too_long = query_sizes >= limit
        if too_long.any() and self.long_queries == "error":
            queries = list(dict.fromkeys(pairs[row][0] for row in np.flatnonzero(too_long).tolist()))
            raise ValueError(
                f"expected queries that leave room for a passage in the model's {limit} tokens: got {len(queries)} "
                f"that do not, the first of them {queries[0][:60]!r}; shorten them, or use a model that reads more."
            )
        self.cut_passages += int(((lengths > limit) & ~too_long).sum())

        lengths = np.minimum(lengths, limit)
        order = np.argsort(-lengths, kind="stable")
        order = order[~too_long[order]]
        scores = np.full(len(pairs), -np.inf, dtype=np.float32)
        batch_scores = self._predict(pairs, order, lengths, raw=raw)
        if batch_scores:
            scores[order] = torch.cat(batch_scores).float().cpu().numpy()
        return scores

    def _predict(
        self, pairs: Sequence[tuple[str, str]], order: np.ndarray, lengths: np.ndarray, *, raw: bool
    ) -> list[Tensor]:
        """Score the pairs of ``order``, whose lengths descend, in batches; the scores of each batch."""
        text_options: dict[str, Any] = dict(ONLY_PASSAGES)
        if self._limit is not None:
            text_options["max_length"] = self._limit
        activation = torch.nn.Identity() if raw else self.activation
        casting: AbstractContextManager[Any] = nullcontext()
        if self.autocast is not None:
            casting = torch.autocast(self.model.device.type, dtype=getattr(torch, self.autocast))
        scores: list[Tensor] = []
        with casting, progress_bar(total=len(order), unit="pairs", desc="scoring", show=self.progress) as bar:
            for batch in batches(lengths[order], self.token_budget):
                # Tensors stay on the device: waiting for each batch would leave it idle.
                batch_scores = self.model.predict(
                    [pairs[row] for row in order[batch]],
                    batch_size=len(pairs),
                    activation_fn=activation,
                    convert_to_tensor=True,
                    show_progress_bar=False,
                    processing_kwargs={"text": text_options},
                )
                scores.append(batch_scores)
                bar.update(len(batch_scores))
        return scores

    def activate(self, logits: np.ndarray) -> np.ndarray:
        """Apply the activation to raw scores, float32. *Shape:* that of ``logits``"""
        with torch.inference_mode():
            return self.activation(torch.from_numpy(logits)).float().numpy()


@dataclass(frozen=True)
class RankedPassage:
    """A passage in a ranking.

    Attributes:
        index: Its index among the passages, from 0.
        score: Score of ``CrossEncoder.predict``.
    """

    index: int
    score: float


def rerank(
    model: CrossEncoder,
    query: str,
    passages: Sequence[str],
    *,
    top_k: int | None = None,
    **options: Unpack[PairScorerOptions],
) -> list[RankedPassage]:
    """Rank the passages of a query, best first; ties by index.

    Args:
        model: A cross-encoder of one label.
        query: A query.
        passages: Passages, in one or several languages.
        top_k: Maximum number of passages; all by default.
        options: See :class:`PairScorer`.

    Raises:
        ValueError: For ``top_k`` below 1, or as :meth:`PairScorer.score`.

    Example:
        >>> from st_xling.models.cross_encoders import tiny_cross_encoder
        >>> model = tiny_cross_encoder(["Wer?", "He.", "There."], vocabulary=100, hidden_size=16)
        >>> len(rerank(model, "Wer?", ["There.", "He."], top_k=1))
        1
    """
    check_top_k(top_k)
    scorer = PairScorer(model, **options)
    logits = scorer.score([(query, passage) for passage in passages], raw=True)
    return ranked(scorer, logits, top_k)


def ranked(scorer: PairScorer, logits: np.ndarray, top_k: int | None) -> list[RankedPassage]:
    """Rank passages by their raw scores, and return them with the activated ones.

    A sigmoid rounds all logits above 17 to 1, so only raw scores keep the order.

    Args:
        scorer: Has computed ``logits``.
        logits: Raw scores of one query's passages. *Shape:* ``(passages,)``
        top_k: Maximum number of passages.
    """
    order = np.argsort(-logits, kind="stable")[:top_k]
    scores = scorer.activate(logits[order]).tolist()
    return [RankedPassage(index, score) for index, score in zip(order.tolist(), scores)]


def check_top_k(top_k: int | None) -> None:
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be 1 or more: got {top_k}; leave it out for all passages.")


def _plain_tokenizer(model: CrossEncoder) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a model that reads pairs of texts as they are."""
    module = model[0]
    processing_kwargs = getattr(module, "processing_kwargs", None) or {}
    options = {name: dict(values) for name, values in processing_kwargs.items()}
    options.get("text", {}).pop("truncation", None)  # only passages are cut here
    has_template = "message" in getattr(module, "modality_config", {})
    if has_template or any(options.values()) or model.tokenizer is None:
        raise ValueError("expected a cross-encoder of plain pairs of texts: got one with a template or processor.")
    return model.tokenizer


def pair_sizes(
    tokenizer: PreTrainedTokenizerBase, queries: Sequence[str], passages: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Count the tokens of each query, with the special tokens of a pair, and of each passage, both uncut.

    Args:
        tokenizer: Counts each distinct text once.
        queries: First texts of pairs.
        passages: Second texts.

    Returns:
        *Shape:* ``(pairs,)`` both, int64
    """
    texts = list(dict.fromkeys((*queries, *passages)))
    sizes: dict[str, int] = {}
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        chunk = texts[start : start + _TEXTS_AT_ONCE]
        ids = tokenizer(chunk, add_special_tokens=False, truncation=False, padding=False, verbose=False)["input_ids"]
        sizes.update(zip(chunk, map(len, ids)))
    query_sizes = np.array([sizes[text] for text in queries], np.int64)
    passage_sizes = np.array([sizes[text] for text in passages], np.int64)
    return query_sizes + tokenizer.num_special_tokens_to_add(pair=True), passage_sizes
