"""An encoder of fewer tokens: the same embeddings, for text of the chosen languages."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules.transformer import Transformer

from st_xling.models.lora import has_adapters
from st_xling.models.slim.count_tokens import count_tokens, token_ids
from st_xling.models.slim.cut_weights import check_encoder, config_ids, cut_weights
from st_xling.models.slim.kept_tokens import kept_tokens
from st_xling.models.slim.model_size import ModelSize, model_size
from st_xling.models.slim.prune_tokenizer import new_ids, prune_tokenizer
from st_xling.models.slim.vocabulary import Vocabulary


@dataclass(frozen=True)
class SlimReport:
    """What became of the vocabulary.

    Attributes:
        texts: Texts that were counted.
        before: Size of the model.
        after: Size of what is left of it.
        reasons: How many tokens stay, by reason: :data:`~st_xling.models.slim.kept_tokens.REASONS`.
        rare: Tokens of the text that came too seldom to stay.
    """

    texts: int
    before: ModelSize
    after: ModelSize
    reasons: dict[str, int]
    rare: int


@dataclass(frozen=True)
class SlimResult:
    """A slim encoder and its report.

    Attributes:
        model: Of the host's modules alone. All weights but the word embeddings are the very ones of the source: train
            one of the two only after saving and loading it. ``None`` where only a plan was asked for.
        report: What became of the vocabulary.
    """

    model: SentenceTransformer | None
    report: SlimReport


def slim_encoder(
    model: SentenceTransformer,
    texts: Iterable[str],
    *,
    min_count: int = 1,
    keep: Iterable[str] = (),
    plan: bool = False,
    progress: bool = False,
    total: int | None = None,
) -> SlimResult:
    """Cut the vocabulary of an encoder to the tokens of some text.

    Args:
        model: Any ``SentenceTransformer`` on transformers with fast tokenizers of WordPiece, Unigram or BPE, also one
            with separate encoders for queries and documents that share a vocabulary. It stays as it is.
        texts: Text of all languages that the encoder shall still read, read once.
        min_count: Tokens that come less often go. With 1, the text itself gets exactly the embeddings it had.
        keep: Tokens, or words and texts, whose tokens stay in any case. The model's prompts always do.
        plan: Only say what would become of the vocabulary.
        progress: Show a bar on stderr.
        total: How many texts there are, for the bar.

    Raises:
        ValueError: A model of another kind, adapters that are not merged, tokenizers of several vocabularies or of
            another type; text without a token, or that uses the whole vocabulary; ``min_count`` below 1.
    """
    encoders = _encoders(model)
    tokenizer: Any = encoders[0].tokenizer
    vocabulary = Vocabulary(tokenizer)
    for encoder in encoders:
        check_encoder(encoder.auto_model, len(vocabulary))
    if min_count < 1:
        raise ValueError(f"min_count must be 1 or more: got {min_count}; 1 keeps every token of the text.")
    prompts = sorted({prompt for prompt in model.prompts.values() if prompt})
    # What stands before a text decides with its last letters how the text begins.
    endings = {prompt[-2:]: prompt for prompt in prompts}
    counted = count_tokens(tokenizer, vocabulary, texts, prompts=endings.values(), progress=progress, total=total)
    special = set(tokenizer.all_special_ids).union(*(config_ids(each.auto_model.config) for each in encoders))
    known = set(vocabulary.pieces) | set(vocabulary.added)
    kept = kept_tokens(
        vocabulary,
        counted,
        min_count=min_count,
        special=special & known,
        asked=_asked_ids(tokenizer, vocabulary, [*keep, *prompts]),
    )
    if len(kept.ids) == len(known):
        raise ValueError(f"there is nothing to prune: the text uses all {len(known):,} tokens; name fewer languages.")
    before = model_size(model)
    ids = new_ids(vocabulary, kept.ids, pinned=special | vocabulary.structural_ids())
    pruned = prune_tokenizer(tokenizer, vocabulary, ids)
    slim = _with_tokens(model, ids, {id(each.tokenizer): pruned for each in encoders})
    report = SlimReport(
        texts=counted.texts,
        before=before,
        after=model_size(slim),
        reasons=kept.reasons,
        rare=kept.rare,
    )
    return SlimResult(None if plan else slim, report)


def _encoders(model: SentenceTransformer) -> list[Transformer]:
    """The host's Transformer modules, one for most models, that agree on their vocabulary."""
    if isinstance(model, CrossEncoder):
        raise ValueError(
            "an encoder of sentences is needed: got a cross-encoder, whose scores have no parity report yet."
        )
    if has_adapters(model):
        raise ValueError(
            "the model has adapters that are not merged: merge them first, with "
            "st_xling.models.lora.merge_adapters, or train without --lora-keep."
        )
    found = [module for module in model.modules() if isinstance(module, Transformer)]
    if not found or any(each.tokenizer is None for each in found):
        first = type(next(iter(model), None)).__name__
        raise ValueError(f"a transformer with a tokenizer is needed: the model's first module is {first}.")
    vocabularies = [Vocabulary(each.tokenizer) for each in found]
    if any(each.model != vocabularies[0].model or each.added != vocabularies[0].added for each in vocabularies):
        raise ValueError(
            "encoders that share a vocabulary are needed: those for queries and documents have tokenizers of their "
            "own; cut each alone."
        )
    return found


def _asked_ids(tokenizer: object, vocabulary: Vocabulary, words: list[str]) -> set[int]:
    """Ids of what is a token as it stands, and of the tokens of what is not."""
    rows = token_ids(tokenizer, words)
    found = {number for row in rows for number in row if number != vocabulary.unknown_id}
    return found | {vocabulary.ids[word] for word in words if word in vocabulary.ids}


def _with_tokens(model: SentenceTransformer, ids: dict[int, int], tokenizers: dict[int, object]) -> SentenceTransformer:
    """A copy that shares all weights with ``model`` but the word embeddings."""
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    card = model.model_card_data  # it may know a trainer
    slim = copy.deepcopy(model, {**shared, id(card): copy.copy(card), **tokenizers})
    slim.model_card_data.register_model(slim)
    slim._model_card_text = None  # what it says is true of the source
    for encoder in {
        id(each.auto_model): each.auto_model for each in slim.modules() if isinstance(each, Transformer)
    }.values():
        cut_weights(encoder, ids)
    return slim
