"""Token ids that a tokenizer gives and the word embeddings have no row for.

Tokens that were added to a tokenizer have no embedding until the table is resized. A text with such a token would end
in an ``IndexError`` of torch. The number of tokens is not enough to know: tokenizers of good models (Qwen) contain
tokens beyond the table that no text uses. So the ids in use are compared, before a model computes anything.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sentence_transformers.base.modules import Transformer
from torch import nn

if TYPE_CHECKING:
    from sentence_transformers.base.model import BaseModel
    from transformers import PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

#: Texts that are tokenized at a time.
TEXTS_PER_CHECK = 1000


def embedding_rows(model: nn.Module) -> int | None:
    """Number of rows of the word embeddings of a model's first transformer; ``None`` if it has no such table."""
    encoder = next((module.auto_model for module in model.modules() if isinstance(module, Transformer)), None)
    table = encoder.get_input_embeddings() if isinstance(encoder, nn.Module) else None  # type: ignore[operator]
    return table.num_embeddings if isinstance(table, nn.Embedding) else None


def tokens_without_row(tokenizer: PreTrainedTokenizerBase, rows: int) -> dict[str, int]:
    """Token → id of the tokens of a transformers tokenizer that are beyond ``rows``; nearly always none."""
    added = getattr(tokenizer, "added_tokens_decoder", None)
    if added is None:
        return {}
    highest = max([len(tokenizer) - 1, *added])
    if highest < rows:  # without the vocabulary, which takes a tenth of a second to list
        return {}
    return {token: token_id for token, token_id in tokenizer.get_vocab().items() if token_id >= rows}


def check_ids(tokenizer: PreTrainedTokenizerBase, rows: int | None, ids: Iterable[int]) -> None:
    """Raise ``ValueError`` if one of the ids of tokens in use has no row in the word embeddings.

    Args:
        tokenizer: A transformers tokenizer.
        rows: Rows of the word embeddings; ``None``: there is no table to compare with.
        ids: Ids in use.
    """
    if rows is None:
        return
    beyond = sorted({token_id for token_id in ids if token_id >= rows})
    if beyond:
        raise ValueError(
            f"the tokenizer has {len(tokenizer):,} tokens, the embeddings {rows:,} rows: "
            f"{tokenizer.convert_ids_to_tokens(beyond[0])!r} (id {beyond[0]}), which is used, has none. Take the "
            "tokenizer that the model was trained with, or save the model after resize_token_embeddings."
        )


def check_texts(model: BaseModel, texts: Sequence[str], *, prompt: str | None = None) -> None:
    """Raise ``ValueError`` if a text has a token without a row; costs nothing where the model has no such tokens.

    Args:
        model: A ``SentenceTransformer`` or ``CrossEncoder``.
        texts: Texts that it will read, cut to its length.
        prompt: Text before each of them.
    """
    tokenizer: Any = getattr(model, "tokenizer", None)
    rows = embedding_rows(model)
    if rows is None or not tokens_without_row(tokenizer, rows):
        return
    limit = model.max_seq_length
    cut: dict[str, Any] = {}
    if limit is not None:
        cut = {"truncation": True, "max_length": limit}
    for start in range(0, len(texts), TEXTS_PER_CHECK):
        batch = [(prompt or "") + text for text in texts[start : start + TEXTS_PER_CHECK]]
        ids_of_texts = tokenizer(batch, verbose=False, return_attention_mask=False, **cut)["input_ids"]
        check_ids(tokenizer, rows, itertools.chain.from_iterable(ids_of_texts))


def prepare_tokenizer(model: BaseModel) -> None:
    """Give a model that was loaded a padding token with a row, and check the special tokens that every text gets.

    Padding is never attended to, so any token may be it. The one that the encoder's configuration names comes first;
    positions of (XLM-)RoBERTa are counted by its id.

    Args:
        model: A ``SentenceTransformer`` or ``CrossEncoder``, changed in place.

    Raises:
        ValueError: No token that could be padding; special tokens of every text without a row.
    """
    tokenizer: Any = getattr(model, "tokenizer", None)
    rows = embedding_rows(model)
    if rows is None or not hasattr(tokenizer, "pad_token_id"):
        return
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id >= rows:
        transformer: Any = model[0]
        configured = getattr(transformer.auto_model.config, "pad_token_id", None)
        candidates = [configured, tokenizer.eos_token_id, tokenizer.sep_token_id, tokenizer.unk_token_id]
        usable = [token_id for token_id in candidates if isinstance(token_id, int) and 0 <= token_id < rows]
        tokens = [token for token in map(tokenizer.convert_ids_to_tokens, usable) if token]
        if not tokens:
            raise ValueError(
                f"the tokenizer has no padding token with one of the {rows:,} rows of the embeddings, and no end of "
                "sentence to use instead; set tokenizer.pad_token and save it."
            )
        logger.info("the tokenizer has no padding token with an embedding: %s is used", tokens[0])
        tokenizer.pad_token = tokens[0]
    check_ids(tokenizer, rows, tokenizer("", verbose=False)["input_ids"])
