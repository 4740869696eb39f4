"""An encoder of fewer tokens: the same embeddings, for text of the chosen languages.

:func:`slim_encoder` counts tokens, chooses those that stay, gives them new ids, and cuts tokenizer and word embeddings.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules.transformer import Transformer
from tokenizers import Tokenizer
from torch import nn

from st_xling.models.lora import has_adapters
from st_xling.models.slim.vocabulary import Vocabulary, count_tokens, kept_tokens, processors, token_ids


def model_size(model: SentenceTransformer) -> dict[str, int]:
    """Compute sizes of an encoder on a transformer; of separate encoders, both together.

    Returns:
        ``tokens`` of the vocabulary; ``parameters``, each counted once; ``bytes`` of weights and tokenizer, as they are
        saved: settings of a few kilobytes come on top.
    """
    encoders = [module for module in model.modules() if isinstance(module, Transformer)]
    tokenizers = [encoder.tokenizer for encoder in encoders if encoder.tokenizer is not None]
    weights = {id(tensor): tensor for tensor in model.state_dict(keep_vars=True).values()}
    written = [tokenizer.backend_tokenizer.to_str(pretty=True).encode("utf-8") for tokenizer in tokenizers]
    return {
        "tokens": len(tokenizers[0]),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "bytes": sum(tensor.numel() * tensor.element_size() for tensor in weights.values()) + sum(map(len, written)),
    }


def slim_encoder(
    model: SentenceTransformer,
    texts: Iterable[str],
    *,
    min_count: int = 1,
    keep: Iterable[str] = (),
    progress: bool = False,
) -> SentenceTransformer:
    """Cut the vocabulary of an encoder to the tokens of some text.

    Args:
        model: Any ``SentenceTransformer`` on transformers with fast tokenizers of WordPiece, Unigram or BPE, also one
            with separate encoders for queries and documents that share a vocabulary. It stays as it is.
        texts: Text of all languages that the encoder shall still read, read once.
        min_count: Tokens that come less often go. With 1, the text itself gets exactly the embeddings it had.
        keep: Tokens, or words and texts, whose tokens stay in any case. The model's prompts always do.
        progress: Show a bar on stderr.

    Returns:
        An encoder of ST's own modules. All weights but the word embeddings are the very ones of ``model``: train one of
        the two only after saving and loading it.
    Raises:
        ValueError: A model of another kind, adapters that are not merged, tokenizers of several vocabularies or of
            another type; text without a token, or that uses the whole vocabulary; ``min_count`` below 1.
    """
    encoders = _encoders(model)
    tokenizer: Any = encoders[0].tokenizer
    vocabulary = Vocabulary(tokenizer)
    prompts = sorted({prompt for prompt in model.prompts.values() if prompt})
    # The last letters of a prompt decide how the text behind it begins.
    endings = {prompt[-2:]: prompt for prompt in prompts}
    counts, before_unknown = count_tokens(tokenizer, vocabulary, texts, prompts=endings.values(), progress=progress)
    configs = [each.auto_model.config for each in encoders]
    special = set(tokenizer.all_special_ids).union(*(ids for config in configs for ids in _named(config).values()))
    known = set(vocabulary.pieces) | set(vocabulary.added)
    # Words that are tokens themselves, and the tokens of the others.
    words = [*keep, *prompts]
    requested = {number for row in token_ids(tokenizer, words) for number in row if number != vocabulary.unknown_id}
    requested |= {vocabulary.ids[word] for word in words if word in vocabulary.ids} | before_unknown
    kept = kept_tokens(vocabulary, counts, min_count=min_count, requested=requested | special & known)
    if len(kept) == len(known):
        raise ValueError(f"there is nothing to prune: the text uses all {len(known):,} tokens; name fewer languages.")
    ids = new_ids(vocabulary, kept, pinned=special | vocabulary.structural_ids())
    pruned = prune_tokenizer(tokenizer, vocabulary, ids)

    # A copy that shares all weights with ``model`` but the word embeddings.
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    card = model.model_card_data  # it may know a trainer
    tokenizers = {id(each.tokenizer): pruned for each in encoders}
    slim = copy.deepcopy(model, {**shared, id(card): copy.copy(card), **tokenizers})
    slim.model_card_data.register_model(slim)
    slim._model_card_text = None  # it describes the source
    cut = {id(each.auto_model): each.auto_model for each in slim.modules() if isinstance(each, Transformer)}
    for transformer in cut.values():
        cut_weights(transformer, ids)
    return slim


def _encoders(model: SentenceTransformer) -> list[Transformer]:
    """ST's Transformer modules, one for most models, that agree on their vocabulary."""
    if isinstance(model, CrossEncoder):
        raise ValueError("an encoder of sentences is needed: got a cross-encoder.")
    if has_adapters(model):
        raise ValueError(
            "the model has adapters that are not merged: merge them first, with "
            "st_xling.models.lora.merge_adapters, or train without --lora-keep."
        )
    encoders = [module for module in model.modules() if isinstance(module, Transformer)]
    if not encoders or any(each.tokenizer is None for each in encoders):
        first = type(next(iter(model), None)).__name__
        raise ValueError(f"a transformer with a tokenizer is needed: the model's first module is {first}.")
    for encoder in (each.auto_model for each in encoders):
        if not isinstance(encoder.get_input_embeddings(), nn.Embedding) or encoder.get_output_embeddings() is not None:
            raise ValueError(
                f"a model that only encodes, with a table of word embeddings, is needed: got {type(encoder).__name__}."
            )
    vocabularies = [Vocabulary(each.tokenizer) for each in encoders]
    if any(each.model != vocabularies[0].model or each.added != vocabularies[0].added for each in vocabularies):
        raise ValueError(
            "encoders that share a vocabulary are needed: those for queries and documents have tokenizers of their "
            "own; cut each alone."
        )
    return encoders


def new_ids(vocabulary: Vocabulary, kept: Sequence[int], *, pinned: Iterable[int] = ()) -> dict[int, int]:
    """Old id → new id, in the old order from 0, without gaps.

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
        for place in ("cls", "sep"):
            if isinstance(part.get(place), list):
                part[place][1] = ids[part[place][1]]
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
        merges = zip(model["merges"], vocabulary.merges())
        model["merges"] = [merge for merge, parts in merges if all(part in ids for part in parts)]
    return model


def cut_weights(encoder: Any, ids: Mapping[int, int]) -> None:
    """Replace the word embeddings of ``encoder`` by those rows that stay, in place; all other weights stay.

    Args:
        encoder: A transformers model.
        ids: Old id → new id, from 0 and without gaps.

    Raises:
        ValueError: Positions hang on the id of padding, and that changes.
    """
    table: Any = encoder.get_input_embeddings()
    old = table.padding_idx
    padding = None if old is None else ids.get(old)
    counted_from = getattr(getattr(encoder, "embeddings", None), "padding_idx", None)
    if counted_from is not None and ids.get(counted_from) != counted_from:
        raise ValueError(
            f"{type(encoder).__name__} counts positions from the id of padding, {counted_from}, which would become "
            f"{ids.get(counted_from)}; keep more tokens."
        )
    rows = sorted(ids, key=ids.__getitem__)
    weight = nn.Parameter(table.weight.detach()[rows].clone(), requires_grad=table.weight.requires_grad)
    # A copy of the module itself: some scale their output.
    cut = copy.deepcopy(table, {id(table.weight): weight})
    cut.num_embeddings, cut.padding_idx = len(rows), padding
    encoder.set_input_embeddings(cut)
    for config in (encoder.config, getattr(encoder, "generation_config", None)):
        if config is not None:
            for name, numbers in _named(config).items():
                renamed = [ids.get(number) for number in numbers]
                setattr(config, name, renamed if isinstance(getattr(config, name), list) else renamed[0])
    encoder.config.vocab_size = len(rows)
    if hasattr(encoder, "vocab_size"):
        encoder.vocab_size = len(rows)


def _named(config: Any) -> dict[str, list[int]]:
    """Entries that are ids of tokens, such as ``pad_token_id``; negative numbers stand for none."""
    entries = {name: value if isinstance(value, list) else [value] for name, value in config.to_dict().items()}
    return {
        name: numbers
        for name, numbers in entries.items()
        if name.endswith("_token_id") and numbers and all(type(n) is int and n >= 0 for n in numbers)
    }
