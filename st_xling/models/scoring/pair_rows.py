"""Pairs of texts as rows of token ids, the passage cut where a pair is too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from st_xling.models.scoring.pair_template import PairTemplate, text_ids

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

# A tokenizer says a huge number where nobody told it the length.
_NO_LIMIT = 1_000_000

# Texts tokenised at a time: what the tokenizer returns is ten times the size of what is kept of it.
_TEXTS_AT_ONCE = 1024


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
        queries = [self._prompt + query for query, _ in pairs]  # where the host puts a prompt
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
            some = missing[start : start + _TEXTS_AT_ONCE]
            self._texts.update(zip(some, map(self._shortened, text_ids(self._tokenizer, some))))

    def _shortened(self, ids: np.ndarray) -> np.ndarray:
        # Tokens beyond the limit are never read, yet one more than may be read must be known to be there.
        if self.limit is None or len(ids) <= self.limit:
            return ids
        return (ids[-self.limit :] if self._tokenizer.truncation_side == "left" else ids[: self.limit]).copy()


def max_tokens(model: CrossEncoder) -> int | None:
    """Tokens that a row may have at most; ``None`` if there is no limit."""
    known = [model.max_seq_length, getattr(model.config, "max_position_embeddings", None)]
    limits = [int(limit) for limit in known if limit is not None and limit < _NO_LIMIT]
    return limits[0] if limits else None


def _plain_tokenizer(model: CrossEncoder) -> Any:
    """The tokenizer of a model that reads pairs of texts as they are."""
    module = model[0]
    told = {name: dict(values) for name, values in (getattr(module, "processing_kwargs", None) or {}).items()}
    told.get("text", {}).pop("truncation", None)  # what is cut is settled here
    if "message" in getattr(module, "modality_config", {}) or any(told.values()) or model.tokenizer is None:
        raise ValueError(
            "expected a cross-encoder that reads plain pairs of texts: got one with a chat template or a processor of "
            "its own; score with its own predict."
        )
    if model.tokenizer.pad_token_id is None:
        raise ValueError("expected a tokenizer with a padding token, to score pairs together: got one without.")
    return model.tokenizer
