"""A cross-encoder's scores of many pairs, each text read once and little computed on padding; and ranking by them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

logger = logging.getLogger(__name__)


# A tokenizer without a length names a huge number.
_NO_LIMIT = 1_000_000

# Pairs whose tokens are in memory at a time, and which are sorted by length together.
CHUNK_PAIRS = 100_000

# Texts tokenised at a time: what the tokenizer returns is ten times the size of what is kept of it.
_TEXTS_AT_ONCE = 1024

# Texts to see it by; of several lengths, so that a template that fits one pair by chance fails on another.
_PROBES = (("a", "b c d"), ("b c d e", "a"), ("d", "e"))

# Tokens of a batch by default. A CPU gains nothing from more at a time, and fewer mean less padding; a GPU wants to be
# filled: as many tokens as ST's 32 rows of 512.
_TOKENS = {"cpu": 2048, "cuda": 16_384}

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

    Pairs are taken 100,000 at a time. Each distinct text of a chunk is tokenised once, and not again where it
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
        if token_budget is not None and token_budget < 1:
            raise ValueError(f"token_budget must be 1 or more: got {token_budget}.")
        self.model = model
        self.token_budget = token_budget or _TOKENS.get(model.device.type, _TOKENS["cuda"])
        self.activation: Activation = activation or model.activation_fn or torch.nn.Identity()
        self.autocast, self.long_queries = autocast, long_queries
        self.progress = progress
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
        dtype = None if self.autocast is None else getattr(torch, self.autocast)
        was_training = self.model.training
        self.model.eval()
        try:
            with (
                torch.inference_mode(),
                nullcontext() if dtype is None else torch.autocast(self.model.device.type, dtype=dtype),
                tqdm(total=total, unit="pair", desc="scoring", disable=not self.progress) as bar,
            ):
                while chunk := list(islice(source, CHUNK_PAIRS)):
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
            queries = list(dict.fromkeys(chunk[place][0] for place in np.flatnonzero(rows.long_queries).tolist()))
            raise ValueError(
                f"expected queries that leave room for a passage in the model's {rows.limit} tokens: got "
                f"{len(queries)} that do not, the first of them {queries[0][:60]!r}; a query is never cut: shorten it, "
                "leave it out, or use a model that reads more."
            )
        self.counts.pairs += len(chunk)
        self.counts.cut_passages += int(rows.cut.sum())
        self.counts.long_queries += int(rows.long_queries.sum())
        result = np.full(len(chunk), -np.inf, dtype=np.float32)
        bar.update(int(rows.long_queries.sum()))
        order = np.argsort(-rows.lengths, kind="stable")
        order = order[~rows.long_queries[order]]
        parts: list[Tensor] = []
        for batch in batches(rows.lengths[order], self.token_budget):
            features = {name: values.to(self.model.device) for name, values in rows.features(order[batch]).items()}
            logits = self.model({**features, "modality": "text"})["scores"].float()
            logits = logits if raw else self.activation(logits)
            parts.append(logits.reshape(-1))  # stays on the device: waiting for each batch would leave it idle
            bar.update(batch.stop - batch.start)
        if parts:
            result[order] = torch.cat(parts).float().cpu().numpy()
        return result


@dataclass(frozen=True)
class RankedPassage:
    """A passage where its score puts it.

    Attributes:
        index: Its place among the passages given, from 0.
        score: As ``CrossEncoder.predict`` scores it.
    """

    index: int
    score: float


def score_text_pairs(model: CrossEncoder, pairs: Iterable[tuple[str, str]], **options: Any) -> np.ndarray:
    """How relevant the second text of each pair is to the first, as ``CrossEncoder.predict`` scores it.

    Only the second text is cut where a pair is longer than the model; a warning says how often that was.

    Args:
        model: A cross-encoder of one label.
        pairs: Query and passage each; also an iterator, which is not held in memory.
        options: Of :class:`PairScorer`, such as ``token_budget``, ``activation``,
            ``autocast``, ``long_queries`` and ``progress``.
    Returns:
        Scores in the order of the pairs, float32. *Shape:* ``(pairs,)``
    Raises:
        ValueError: As :class:`PairScorer`; for a query that leaves no room for a
            passage.
    Example:
        >>> score_text_pairs(model, [("Who?", "He."), ("Who?", "There.")])                  # doctest: +SKIP
        array([0.93, 0.02], dtype=float32)
    """
    scorer = PairScorer(model, **options)
    scores = scorer.score(pairs)
    if scorer.counts.cut_passages:
        logger.warning(
            "%d of %d pairs were longer than the model: their passages were cut.",
            scorer.counts.cut_passages,
            scorer.counts.pairs,
        )
    return scores


def rerank(
    model: CrossEncoder, query: str, passages: Sequence[str], *, top_k: int | None = None, **options: Any
) -> list[RankedPassage]:
    """The passages of a query, best first; of equal ones the first given.

    Args:
        model: A cross-encoder of one label.
        query: In any language that the model knows.
        passages: Also in several languages.
        top_k: Passages returned at most; all by default.
        options: Of :class:`PairScorer`.
    Raises:
        ValueError: For ``top_k`` below 1, or as :func:`score_text_pairs`.
    Example:
        >>> rerank(model, "Wer?", ["There.", "He."], top_k=1)                               # doctest: +SKIP
        [RankedPassage(index=1, score=0.93)]
    """
    check_top_k(top_k)
    scorer = PairScorer(model, **options)
    logits = scorer.score([(query, passage) for passage in passages], raw=True)
    return ranked(scorer, logits, top_k)


def ranked(scorer: PairScorer, logits: np.ndarray, top_k: int | None) -> list[RankedPassage]:
    """Passages in the order of their raw scores, with the scores that the model gives.

    A sigmoid takes all logits above 17 for 1: only before it is the order whole.

    Args:
        scorer: Made ``logits``.
        logits: Raw scores of one query's passages. *Shape:* ``(passages,)``
        top_k: Passages returned at most.
    """
    order = np.argsort(-logits, kind="stable")[:top_k]
    scores = scorer.activate(logits[order]).tolist()
    return [RankedPassage(index, score) for index, score in zip(order.tolist(), scores)]


def check_top_k(top_k: int | None) -> None:
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be 1 or more: got {top_k}; leave it out for all passages.")


class PairRows:
    """Rows of one chunk of pairs at a time; what texts it shares with the next is kept.

    Args:
        model: Whose tokenizer and length hold.
    Raises:
        ValueError: If the model does not read plain pairs of texts.

    Attributes:
        limit: Tokens of a row at most; ``None`` without a limit.
        lengths: Tokens of each row, after cutting. *Shape:* ``(pairs,)``
        cut: Rows whose passage was cut. *Shape:* ``(pairs,)``
        long_queries: Rows without room for a passage, which have no features. *Shape:* ``(pairs,)``
    """

    def __init__(self, model: CrossEncoder) -> None:
        self._tokenizer = _plain_tokenizer(model)
        self._template = PairTemplate.of(self._tokenizer)
        self._prompt = model.prompts.get(model.default_prompt_name or "", "") or ""
        self.limit = max_tokens(model)
        self._texts: dict[str, np.ndarray] = {}
        self.lengths = np.empty(0, dtype=np.int64)
        self.cut = self.long_queries = np.empty(0, dtype=bool)

    def load(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Read a chunk of pairs, in place of the one before."""
        queries = [self._prompt + query for query, _ in pairs]  # where ST puts a prompt
        self._read([*queries, *(passage for _, passage in pairs)])
        self._queries = [self._texts[query] for query in queries]
        self._passages = [self._texts[passage] for _, passage in pairs]
        query_tokens = np.array([len(ids) for ids in self._queries], dtype=np.int64)
        passage_tokens = np.array([len(ids) for ids in self._passages], dtype=np.int64)
        room = (self.limit or 2 * _NO_LIMIT) - self._template.size - query_tokens
        self.long_queries = room < 1
        self._kept = np.minimum(passage_tokens, np.maximum(room, 0))
        self.cut = (self._kept < passage_tokens) & ~self.long_queries
        self.lengths = self._template.size + query_tokens + self._kept

    def features(self, rows: np.ndarray) -> dict[str, Tensor]:
        """What the model reads of some rows, padded to the longest of them.

        Args:
            rows: Places in the chunk.
        Returns:
            ``input_ids``, ``attention_mask`` and, where the tokenizer gives them, ``token_type_ids``; int64.
            *Shape of each:* ``(rows, longest)``
        """
        tokenizer, template = self._tokenizer, self._template
        shape = len(rows), int(self.lengths[rows].max())
        ids = np.full(shape, tokenizer.pad_token_id, dtype=np.int64)
        types = None if template.types is None else np.full(shape, tokenizer.pad_token_type_id, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        pad_left, cut_left = tokenizer.padding_side == "left", tokenizer.truncation_side == "left"
        for place, row in enumerate(rows.tolist()):
            kept, query, passage = int(self._kept[row]), self._queries[row], self._passages[row]
            tokens = slice(shape[1] - int(self.lengths[row]), None) if pad_left else slice(int(self.lengths[row]))
            passage = passage[len(passage) - kept :] if cut_left else passage[:kept]
            template.write(query, passage, ids[place, tokens], None if types is None else types[place, tokens])
            mask[place, tokens] = 1
        arrays = {"input_ids": ids, "attention_mask": mask} | ({} if types is None else {"token_type_ids": types})
        return {name: torch.from_numpy(values) for name, values in arrays.items()}

    def _read(self, texts: Iterable[str]) -> None:
        wanted = dict.fromkeys(texts)
        self._texts = {text: ids for text, ids in self._texts.items() if text in wanted}
        missing = [text for text in wanted if text not in self._texts]
        for start in range(0, len(missing), _TEXTS_AT_ONCE):
            part = missing[start : start + _TEXTS_AT_ONCE]
            self._texts.update(zip(part, map(self._shortened, text_ids(self._tokenizer, part))))

    def _shortened(self, ids: np.ndarray) -> np.ndarray:
        # Tokens beyond the limit are never read, yet one more than may be read must be known to be there.
        if self.limit is None or len(ids) <= self.limit:
            return ids
        return (ids[-self.limit :] if self._tokenizer.truncation_side == "left" else ids[: self.limit]).copy()


def max_tokens(model: CrossEncoder) -> int | None:
    """Tokens that a row may have at most; ``None`` if there is no limit."""
    known = (model.max_seq_length, getattr(model.config, "max_position_embeddings", None))
    return next((int(limit) for limit in known if limit is not None and limit < _NO_LIMIT), None)


def _plain_tokenizer(model: CrossEncoder) -> Any:
    """The tokenizer of a model that reads pairs of texts as they are."""
    module = model[0]
    options = {name: dict(values) for name, values in (getattr(module, "processing_kwargs", None) or {}).items()}
    options.get("text", {}).pop("truncation", None)  # PairRows cuts by itself
    if "message" in getattr(module, "modality_config", {}) or any(options.values()) or model.tokenizer is None:
        raise ValueError(
            "expected a cross-encoder that reads plain pairs of texts: got one with a chat template or a processor of "
            "its own; score with its own predict."
        )
    if model.tokenizer.pad_token_id is None:
        raise ValueError("expected a tokenizer with a padding token, to score pairs together: got one without.")
    return model.tokenizer


@dataclass(frozen=True)
class PairTemplate:
    """Special tokens before, between and after a pair's two texts.

    Attributes:
        specials: Ids of each of the three places.
        types: Token type of each of five parts: before, first text, between, second text, after. ``None`` where the
            tokenizer gives no types.
    """

    specials: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    types: tuple[tuple[int, ...], int, tuple[int, ...], int, tuple[int, ...]] | None

    @classmethod
    def of(cls, tokenizer: Any) -> PairTemplate:
        """Read off the first of :data:`_PROBES`, and checked on all.

        Raises:
            ValueError: If the tokenizer joins texts in another way.
        """
        first, second = (ids.tolist() for ids in text_ids(tokenizer, list(_PROBES[0])))
        row, types = _joined(tokenizer, *_PROBES[0])
        start = _find(row, first, 0)
        begin = _find(row, second, start + len(first))
        template = None
        if start >= 0 and begin >= 0:
            end, stop = start + len(first), begin + len(second)
            parts = None
            if types is not None:
                parts = tuple(types[:start]), types[start], tuple(types[end:begin]), types[begin], tuple(types[stop:])
            template = cls((tuple(row[:start]), tuple(row[end:begin]), tuple(row[stop:])), parts)
        if template is None or any(not template._fits(tokenizer, *pair) for pair in _PROBES):
            raise ValueError(
                f"expected a tokenizer that sets special tokens around two texts: got {type(tokenizer).__name__}, "
                "which joins them in another way; score with the model's own predict."
            )
        return template

    @property
    def size(self) -> int:
        """Special tokens of a row."""
        return sum(map(len, self.specials))

    def write(self, first: np.ndarray, second: np.ndarray, ids: np.ndarray, types: np.ndarray | None) -> None:
        """Fill a whole row.

        Args:
            first: Ids of the first text.
            second: Ids of the second.
            ids: Filled with ids. *Shape:* ``(size + first + second,)``
            types: Filled with token types, where the tokenizer gives them. *Shape:* that of ``ids``
        """
        before, between, after = self.specials
        start = 0
        for place, part in enumerate((before, first, between, second, after)):
            stop = start + len(part)
            ids[start:stop] = part
            if types is not None and self.types is not None:
                types[start:stop] = self.types[place]
            start = stop

    def _fits(self, tokenizer: Any, first: str, second: str) -> bool:
        one, two = text_ids(tokenizer, [first, second])
        row, types = _joined(tokenizer, first, second)
        ids = np.empty(self.size + len(one) + len(two), dtype=np.int64)
        own = np.empty_like(ids)
        if len(ids) != len(row):
            return False
        self.write(one, two, ids, own)
        return ids.tolist() == row and (types is None or own.tolist() == types)


def text_ids(tokenizer: Any, texts: list[str]) -> list[np.ndarray]:
    """Ids of each text by itself, uncut, without special tokens, int32."""
    rows = tokenizer(
        texts,
        add_special_tokens=False,
        truncation=False,
        padding=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # a long text is cut later
    )["input_ids"]
    return [np.array(row, dtype=np.int32) for row in rows]


def _find(row: list[int], part: list[int], start: int) -> int:
    """Where ``part`` first stands in ``row`` from ``start`` on, or -1."""
    places = range(start, len(row) - len(part) + 1) if start >= 0 else ()
    return next((place for place in places if row[place : place + len(part)] == part), -1)


def _joined(tokenizer: Any, first: str, second: str) -> tuple[list[int], list[int] | None]:
    row = tokenizer(first, second, truncation=False, padding=False)
    return list(row["input_ids"]), list(row["token_type_ids"]) if "token_type_ids" in row else None


def batches(lengths: np.ndarray, token_budget: int) -> Iterator[slice]:
    """Runs of rows whose number by their longest is at most the budget, or of one row.

    Args:
        lengths: Tokens, descending. *Shape:* ``(rows,)``
        token_budget: Tokens, padding included.
    Example:
        >>> [(run.start, run.stop) for run in batches(np.array([9, 4, 4, 2, 2]), 8)]
        [(0, 1), (1, 3), (3, 5)]
    """
    start = 0
    while start < len(lengths):
        stop = min(start + max(1, token_budget // int(lengths[start])), len(lengths))
        yield slice(start, stop)
        start = stop
