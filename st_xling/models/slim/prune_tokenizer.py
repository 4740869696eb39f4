"""The tokenizer of fewer tokens: its JSON with new ids wherever it names one."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer

from st_xling.models.slim.kept_tokens import as_pair, merges
from st_xling.models.slim.vocabulary import Vocabulary, processors


def new_ids(vocabulary: Vocabulary, kept: Sequence[int], *, pinned: Iterable[int] = ()) -> dict[int, int]:
    """Old id → new id, in the old order from 0, so that none is left out.

    Args:
        vocabulary: Of the tokenizer.
        kept: Old ids of what stays.
        pinned: Ids that are to stay what they are, where fewer tokens still reach as far: RoBERTa's kin count positions
            from the id of padding, and classes of transformers expect the unknown token in its place.
    """
    own = [number for number in sorted(kept) if number in vocabulary.pieces]
    # The library gives added tokens that are no pieces of the model the ids behind all pieces.
    behind = [number for number in sorted(kept) if number not in vocabulary.pieces]
    fixed = {number for number in pinned if number in own and number < len(own)}
    free = (number for number in range(len(own)) if number not in fixed)
    moved = {number: number if number in fixed else next(free) for number in own}
    return {**moved, **{number: len(own) + place for place, number in enumerate(behind)}}


def prune_tokenizer(tokenizer: Any, vocabulary: Vocabulary, ids: dict[int, int]) -> Any:
    """A tokenizer of its own that knows the tokens of ``ids`` alone, under their new ids.

    Args:
        tokenizer: A fast transformers tokenizer; it stays as it is.
        vocabulary: Its own.
        ids: As :func:`new_ids` gives them.

    Raises:
        ValueError: The tokenizers library would give a token another id than it must have.
    """
    content = {key: part for key, part in vocabulary.content.items() if key != "model"}
    content = {**copy.deepcopy(content), "model": _model(vocabulary, ids)}
    content["added_tokens"] = sorted(
        ({**token, "id": ids[token["id"]]} for token in content["added_tokens"]), key=lambda token: token["id"]
    )
    if content["padding"]:
        content["padding"]["pad_id"] = ids.get(content["padding"]["pad_id"], 0)
    for part in processors(content["post_processor"]):
        for token in (part.get("special_tokens") or {}).values():
            token["ids"] = [ids[number] for number in token["ids"]]
        for side in ("cls", "sep"):
            if isinstance(part.get(side), list):
                part[side][1] = ids[part[side][1]]
    backend = Tokenizer.from_str(json.dumps(content, ensure_ascii=False))
    for old, new in ids.items():
        token = vocabulary.added.get(old) or vocabulary.pieces[old]
        if backend.token_to_id(token) != new and vocabulary.ids[token] == old:
            raise ValueError(
                f"this tokenizer cannot be cut: {token!r} would be {backend.token_to_id(token)} instead of {new}; its "
                "added tokens are numbered in an order of their own."
            )
    pruned = copy.deepcopy(tokenizer)
    pruned._tokenizer = backend
    if getattr(pruned, "vocab_file", None):
        pruned.vocab_file = None  # a file of all pieces, which would be saved again
    return pruned


def _model(vocabulary: Vocabulary, ids: dict[int, int]) -> dict[str, Any]:
    model = dict(vocabulary.model)
    order = sorted((number for number in ids if number in vocabulary.pieces), key=ids.__getitem__)
    if isinstance(model["vocab"], list):
        model["vocab"] = [model["vocab"][number] for number in order]
        if model.get("unk_id") is not None:
            model["unk_id"] = ids[model["unk_id"]]
    else:
        model["vocab"] = {vocabulary.pieces[number]: ids[number] for number in order}
    if vocabulary.kind == "BPE":
        made = zip(model["merges"], merges(vocabulary))
        model["merges"] = [list(as_pair(merge)) for merge, parts in made if all(part in ids for part in parts)]
    return model
