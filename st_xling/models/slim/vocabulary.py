"""What a fast tokenizer knows, read from its own JSON: pieces by id, model type, and the ids that must stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tokenizers import pre_tokenizers

KINDS = ("WordPiece", "Unigram", "BPE")
"""Model types that can be pruned."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


class Vocabulary:
    """A view on a tokenizer's ``tokenizer.json``; the tokenizer stays as it is.

    Args:
        tokenizer: A transformers tokenizer.

    Attributes:
        content: The JSON, parsed.
        kind: One of :data:`KINDS`.
        pieces: Id → piece of the model's own vocabulary.
        added: Id → token that was added to it; some stand in the model's vocabulary as well.
        ids: Piece or token → id.

    Raises:
        ValueError: A tokenizer written in Python, or of another type.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ValueError(
                f"a fast tokenizer (tokenizer.json) is needed: {type(tokenizer).__name__} is written in Python, and "
                "its vocabulary cannot be cut; convert it to a fast one first."
            )
        self.content: dict[str, Any] = json.loads(backend.to_str())
        self.model: dict[str, Any] = self.content["model"]
        self.kind = str(self.model.get("type"))
        if self.kind not in KINDS:
            raise ValueError(f"a tokenizer of type {', '.join(KINDS)} is needed: got {self.kind}.")
        listed = self.model["vocab"]
        self.pieces: dict[int, str] = (
            {number: piece for number, (piece, _) in enumerate(listed)}
            if isinstance(listed, list)
            else {number: piece for piece, number in listed.items()}
        )
        self.added: dict[int, str] = {token["id"]: token["content"] for token in self.content["added_tokens"]}
        self.ids: dict[str, int] = {piece: number for number, piece in (self.pieces | self.added).items()}

    def __len__(self) -> int:
        """One more than the highest id."""
        return max(self.pieces | self.added) + 1

    @property
    def unknown_id(self) -> int | None:
        """Id of the token for what no piece spells."""
        if self.kind == "Unigram":
            return self.model.get("unk_id")
        return self.ids.get(self.model.get("unk_token") or "")

    def structural_ids(self) -> set[int]:
        """Ids that the tokenizer needs whatever the text: added, unknown and padding token, those that the
        post-processor puts in, all bytes where it falls back on them, and what :meth:`_scale_ids` says.
        """
        needed = {*self.added, *_processor_ids(self.content["post_processor"])} | self._scale_ids() | self._byte_ids()
        if self.unknown_id is not None:
            needed.add(self.unknown_id)
        if self.content["padding"]:
            needed.add(self.content["padding"]["pad_id"])
        return needed & (set(self.pieces) | set(self.added))

    def _scale_ids(self) -> set[int]:
        """Unigram scores an unknown character ten below the lowest score of all: that piece has to stay."""
        if self.kind != "Unigram":
            return set()
        listed = self.model["vocab"]
        return {min(range(len(listed)), key=lambda number: (listed[number][1], number))}

    def _byte_ids(self) -> set[int]:
        found = set()
        if self.model.get("byte_fallback"):
            found = {number for number, piece in self.pieces.items() if _BYTE.fullmatch(piece)}
        if _is_byte_level(self.content["pre_tokenizer"]) or _is_byte_level(self.content["normalizer"]):
            found |= {self.ids[letter] for letter in pre_tokenizers.ByteLevel.alphabet() if letter in self.ids}
        return found


def processors(part: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """A post-processor, normalizer or pre-tokenizer, and those inside it."""
    if part:
        yield part
        for key in ("processors", "normalizers", "pretokenizers"):
            for inner in part.get(key) or ():
                yield from processors(inner)


def _is_byte_level(part: dict[str, Any] | None) -> bool:
    return any(each["type"] == "ByteLevel" for each in processors(part))


def _processor_ids(part: dict[str, Any] | None) -> set[int]:
    found: set[int] = set()
    for each in processors(part):
        for token in (each.get("special_tokens") or {}).values():
            found |= set(token["ids"])
        found |= {each[side][1] for side in ("cls", "sep") if isinstance(each.get(side), list)}
    return found
