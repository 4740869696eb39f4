"""How a tokenizer joins two texts into one row, so that each text needs to be read only once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Texts to see it by; of several lengths, so that a template that fits one pair by chance fails on another.
_PROBES = (("a", "b c d"), ("b c d e", "a"), ("d", "e"))


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
        """Read off a tokenizer, and checked on other pairs.

        Raises:
            ValueError: If the tokenizer joins texts in another way.
        """
        template = cls._read_off(tokenizer, *_PROBES[0])
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

    @classmethod
    def _read_off(cls, tokenizer: Any, first: str, second: str) -> PairTemplate | None:
        one, two = text_ids(tokenizer, [first, second])
        row, types = _joined(tokenizer, first, second)
        for start in range(len(row) - len(one) - len(two) + 1):
            end = start + len(one)
            for begin in range(end, len(row) - len(two) + 1):
                stop = begin + len(two)
                if row[start:end] == one.tolist() and row[begin:stop] == two.tolist():
                    specials = tuple(row[:start]), tuple(row[end:begin]), tuple(row[stop:])
                    if types is None:
                        return cls(specials, None)
                    parts = (
                        tuple(types[:start]),
                        types[start],
                        tuple(types[end:begin]),
                        types[begin],
                        tuple(types[stop:]),
                    )
                    return cls(specials, parts)
        return None

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


def _joined(tokenizer: Any, first: str, second: str) -> tuple[list[int], list[int] | None]:
    row = tokenizer(first, second, truncation=False, padding=False)
    return list(row["input_ids"]), list(row["token_type_ids"]) if "token_type_ids" in row else None
