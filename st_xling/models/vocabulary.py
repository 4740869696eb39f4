"""Cut an encoder's vocabulary to the tokens of some text: the same embeddings for that text, fewer weights.

:func:`slim_encoder` counts tokens, chooses those that stay, and cuts the tokenizer and the word embeddings. Tokens of
the text stay, and those without which the rest would not work. A text whose tokens all stay is cut into the same tokens
as before:

* **WordPiece** takes the longest piece that fits. What it took stays, and nothing longer was there. A word of which one
  place has no piece is unknown as a whole; hence every character of the text stays in both forms, ``c`` and ``##c``, so
  that a word that was never seen, of letters that were, has pieces. A word that was unknown may have pieces, too.
* **BPE** applies the first merge that fits. Where a token stays, so do all merges that result in it, and their parts
  with theirs, down to characters: every step that led to it still does, and no merge comes before one of them that did
  not before.
* **Unigram** takes the best-scored pieces. Scores stay, so what won still wins, with fewer rivals; the piece of the
  lowest score stays since the price of an unknown character depends on it.

For words that were never seen the single characters of the text stay, and those of ASCII.

Source: Abdaoui, Pradel and Sigel 2020, "Load What You Need: Smaller Versions of Multilingual BERT"; Ushio, Zhou and
Camacho-Collados 2023, "An Efficient Multilingual Language Model Compression through Vocabulary Trimming".
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.transformer import Transformer
from tokenizers import Tokenizer, pre_tokenizers
from torch import nn

from st_xling.models.lora import has_adapters
from st_xling.models.token_rows import check_ids
from st_xling.utils.private import forget_card, replace_backend
from st_xling.utils.terminal import progress_bar

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

#: Model types that can be pruned.
KINDS = ("WordPiece", "Unigram", "BPE")

#: Texts that are tokenized at a time.
TEXTS_PER_COUNT = 1000


def slim_encoder(
    model: SentenceTransformer, texts: Iterable[str], *, min_count: int = 1, progress: bool = False
) -> SentenceTransformer:
    """Cut the vocabulary of an encoder to the tokens of some text.

    Args:
        model: A ``SentenceTransformer`` on one transformer with a fast tokenizer of WordPiece, Unigram or BPE. It stays
            as it is.
        texts: Text of all languages that the encoder shall still read, read once. The model's prompts are kept, too.
        min_count: Drop tokens that occur less often. With 1, the text itself keeps its embeddings.
        progress: Show a bar on stderr.

    Returns:
        An encoder of ST's modules. It shares all weights with ``model`` but the word embeddings: train one of the
        two only after saving and loading it.

    Raises:
        ValueError: A model of another kind, adapters that are not merged, a tokenizer of another type; text without a
            token, or that uses the whole vocabulary.
    """
    first = first_transformer(model)
    tokenizer: Any = first.tokenizer
    vocabulary = Vocabulary(tokenizer)
    prompts = sorted({prompt for prompt in model.prompts.values() if prompt})
    # The last letters of a prompt decide how the text behind it begins.
    endings = {prompt[-2:]: prompt for prompt in prompts}
    counts = count_tokens(tokenizer, texts, prompts=[*endings.values()], progress=progress)
    rows = first.auto_model.get_input_embeddings().num_embeddings
    check_ids(tokenizer, rows, [*np.flatnonzero(counts).tolist(), *tokenizer("", verbose=False)["input_ids"]])
    requested = set(tokenizer.all_special_ids)
    requested.update(*token_settings(first.auto_model.config).values())
    requested |= set(itertools.chain.from_iterable(token_ids(tokenizer, prompts))) - {vocabulary.unknown_id}
    requested |= {vocabulary.ids[prompt] for prompt in prompts if prompt in vocabulary.ids}
    kept = kept_tokens(vocabulary, counts, min_count=min_count, requested=requested)
    kept = {token_id for token_id in kept if token_id < rows}  # no text uses the others: they are dropped
    if len(kept) == len(set(vocabulary.ids.values())):
        raise ValueError(f"there is nothing to prune: the text uses all {len(kept):,} tokens; name fewer languages.")
    # The library gives added tokens that are no pieces of the model the ids behind all pieces.
    pieces_first = sorted(kept, key=lambda old: (old not in vocabulary.pieces, old))
    ids = {old: new for new, old in enumerate(pieces_first)}

    slim = copy_sharing_weights(model, prune_tokenizer(tokenizer, vocabulary, ids))
    transformer: Any = slim[0]
    cut_weights(transformer.auto_model, ids)
    return slim


def first_transformer(model: SentenceTransformer) -> Any:
    """Return the first module of an encoder, whose vocabulary can be changed.

    Raises:
        ValueError: It is no transformer with word embeddings, or has adapters that are not merged.
    """
    if has_adapters(model):
        raise ValueError("the model has adapters: merge them first, with st_xling.models.lora.merge_adapters.")
    first: Any = model[0]
    if not isinstance(first, Transformer) or not isinstance(first.auto_model.get_input_embeddings(), nn.Embedding):
        raise ValueError(f"a transformer with word embeddings is needed: the first module is {type(first).__name__}.")
    return first


def copy_sharing_weights(model: SentenceTransformer, tokenizer: PreTrainedTokenizerFast) -> SentenceTransformer:
    """Copy an encoder with another tokenizer; all weights are shared, the card describes the copy."""
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    card = model.model_card_data  # it may know a trainer
    old_tokenizer: Any = model[0].tokenizer
    copied = copy.deepcopy(model, {**shared, id(card): copy.copy(card), id(old_tokenizer): tokenizer})
    copied.model_card_data.register_model(copied)
    forget_card(copied)  # it describes the source
    return copied


def model_size(model: SentenceTransformer) -> dict[str, int]:
    """Count the ``tokens`` of the vocabulary, and the ``parameters``, each once."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"tokens": len(model.tokenizer), "parameters": parameters}


class Vocabulary:
    """A view on a tokenizer's ``tokenizer.json``; the tokenizer stays as it is.

    Args:
        tokenizer: A transformers tokenizer.

    Attributes:
        content: The JSON, parsed.
        kind: One of :data:`KINDS`.
        pieces: Id → piece of the model's vocabulary.
        added: Ids of the tokens that were added to it; some are in the model's vocabulary as well.
        ids: Piece or token → id.
        unknown_id: Id of the token for what no piece spells, or ``None``.

    Raises:
        ValueError: A tokenizer written in Python, or of another type.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        content = {} if backend is None else json.loads(backend.to_str())
        self.kind = str(content.get("model", {}).get("type"))
        if self.kind not in KINDS:
            raise ValueError(
                f"a fast tokenizer (tokenizer.json) of type {', '.join(KINDS)} is needed: got "
                f"{type(tokenizer).__name__ if backend is None else self.kind}."
            )
        self.content: dict[str, Any] = {**content, "padding": None}  # set anew by every call
        self.model: dict[str, Any] = content["model"]
        listed = self.model["vocab"]
        if isinstance(listed, dict):
            ids = listed
        else:  # Unigram: pieces with their scores
            ids = {piece: token_id for token_id, (piece, _) in enumerate(listed)}
        self.pieces: dict[int, str] = {token_id: piece for piece, token_id in ids.items()}
        added = {token["content"]: token["id"] for token in content["added_tokens"]}
        self.added: set[int] = {*added.values()}
        self.ids: dict[str, int] = {**ids, **added}
        self.unknown_id: int | None = self.ids.get(self.model.get("unk_token") or "")
        if self.kind == "Unigram":
            self.unknown_id = self.model.get("unk_id")

    def structural_ids(self) -> set[int]:
        """Ids that the tokenizer needs whatever the text: added tokens and the unknown one, all bytes where it falls
        back on them, and Unigram's piece of the lowest score.
        """
        needed = set(self.added)
        if self.unknown_id is not None:
            needed.add(self.unknown_id)
        if self.kind == "Unigram":  # an unknown character costs ten more than the lowest score of all
            scores = [score for _, score in self.model["vocab"]]
            needed.add(scores.index(min(scores)))
        if self.model.get("byte_fallback"):
            for token_id, piece in self.pieces.items():
                if re.fullmatch(r"<0x[0-9A-F]{2}>", piece):
                    needed.add(token_id)
        steps = [*processors(self.content["pre_tokenizer"]), *processors(self.content["normalizer"])]
        if any(step["type"] == "ByteLevel" for step in steps):
            needed.update(self.ids[letter] for letter in pre_tokenizers.ByteLevel.alphabet() if letter in self.ids)
        return needed

    def merges(self) -> list[tuple[int, int, int]]:
        """Ids of first part, second part and result of each merge of BPE, in order; none of other types."""
        if self.kind != "BPE":
            return []
        prefix = self.model.get("continuing_subword_prefix") or ""
        merges = []
        for first, second in self.model["merges"]:
            result = first + second.removeprefix(prefix)
            merges.append((self.ids[first], self.ids[second], self.ids[result]))
        return merges


def processors(step: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """A post-processor, normalizer or pre-tokenizer, and those inside it."""
    if step:
        yield step
        for key in ("processors", "normalizers", "pretokenizers"):
            for inner in step.get(key) or ():
                yield from processors(inner)


def count_tokens(
    tokenizer: PreTrainedTokenizerFast, texts: Iterable[str], *, prompts: Iterable[str] = (), progress: bool = False
) -> np.ndarray:
    """Count the tokens of texts, not truncated, without special tokens.

    Args:
        tokenizer: A fast transformers tokenizer.
        texts: Sentences or passages; blank ones are ignored.
        prompts: Put before every text in turn, besides the plain text: a word may begin with another piece where it
            does not begin the text.
        progress: Show a bar on stderr.

    Returns:
        Occurrences by id. *Shape:* ``(ids,)``
    """
    counts = np.zeros(max(tokenizer.get_vocab().values()) + 1, dtype=np.int64)
    filled = filter(str.strip, progress_bar(texts, desc="counting tokens", unit="texts", show=progress))
    while batch := list(itertools.islice(filled, TEXTS_PER_COUNT)):
        for beginning in ("", *prompts):
            rows = token_ids(tokenizer, [beginning + text for text in batch])
            flat = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64)
            counts += np.bincount(flat, minlength=len(counts))
    return counts


def token_ids(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> list[list[int]]:
    """Ids of each text, uncut and without special tokens."""
    # Not by calling the tokenizer, which makes ten times as many Python objects; a call sets these two anew.
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return [encoding.ids for encoding in backend.encode_batch_fast(texts, add_special_tokens=False)]


def kept_tokens(
    vocabulary: Vocabulary, counts: np.ndarray, *, min_count: int = 1, requested: Iterable[int] = ()
) -> set[int]:
    """Choose the ids of the tokens to keep.

    Args:
        vocabulary: Vocabulary of the tokenizer.
        counts: From :func:`count_tokens`. *Shape:* ``(ids,)``
        min_count: Drop tokens that occur less often, unless another reason keeps them.
        requested: Ids to keep in any case, as far as there are such tokens.

    Raises:
        ValueError: For text without any token.
    """
    if not counts.any():
        raise ValueError("text is needed: got none with a token in it; give text of every language to be kept.")
    often = set(np.flatnonzero(counts >= min_count).tolist())
    kept = vocabulary.structural_ids() | set(requested) | often
    kept |= _single_characters(vocabulary, np.flatnonzero(counts).tolist())
    kept &= set(vocabulary.ids.values())
    # The parts of all merges that result in a kept token, and their parts.
    parts_of: dict[int, list[int]] = {}
    for first, second, result in vocabulary.merges():
        parts_of.setdefault(result, []).extend((first, second))
    queue = list(kept)
    while queue:
        added = set(parts_of.get(queue.pop(), ())) - kept
        kept |= added
        queue += added
    return kept


def _single_characters(vocabulary: Vocabulary, used: Iterable[int]) -> set[int]:
    """Pieces of one character, for every character that the used pieces spell, and for ASCII."""
    prefix = vocabulary.model.get("continuing_subword_prefix") or ""
    suffix = vocabulary.model.get("end_of_word_suffix") or ""
    alphabet = set(string.printable)
    for token_id in used:
        piece = vocabulary.pieces.get(token_id, "")
        alphabet.update(piece.removeprefix(prefix).removesuffix(suffix))
    # Within, at the beginning and at the end of a word.
    spellings = itertools.product({"", prefix}, alphabet, {"", suffix})
    pieces = map("".join, spellings)
    return {vocabulary.ids[piece] for piece in pieces if piece in vocabulary.ids}


def prune_tokenizer(
    tokenizer: PreTrainedTokenizerFast, vocabulary: Vocabulary, ids: Mapping[int, int]
) -> PreTrainedTokenizerFast:
    """A new tokenizer that only knows the tokens of ``ids``, under their new ids.

    Args:
        tokenizer: A fast transformers tokenizer; it stays as it is.
        vocabulary: Vocabulary of the tokenizer.
        ids: Old id → new id, from 0, in order and without gaps.
    """
    model = dict(vocabulary.model)
    pieces = [token_id for token_id in ids if token_id in vocabulary.pieces]
    if isinstance(model["vocab"], list):
        model["vocab"] = [model["vocab"][token_id] for token_id in pieces]
        if model.get("unk_id") is not None:
            model["unk_id"] = ids[model["unk_id"]]
    else:
        model["vocab"] = {vocabulary.pieces[token_id]: ids[token_id] for token_id in pieces}
    if vocabulary.kind == "BPE":
        merges = zip(model["merges"], vocabulary.merges())
        model["merges"] = [merge for merge, merge_ids in merges if ids.keys() >= set(merge_ids)]
    return rebuild_tokenizer(tokenizer, vocabulary, model, ids)


def rebuild_tokenizer(
    tokenizer: PreTrainedTokenizerFast, vocabulary: Vocabulary, model: dict[str, Any], ids: Mapping[int, int]
) -> PreTrainedTokenizerFast:
    """A new tokenizer with another model, whose added tokens and template have their new ids.

    Args:
        tokenizer: A fast transformers tokenizer; it stays as it is.
        vocabulary: Vocabulary of the tokenizer.
        model: Section ``model`` of ``tokenizer.json``, with the new pieces.
        ids: Old id → new id; added tokens that are not in it are dropped.
    """
    content = copy.deepcopy({**vocabulary.content, "model": None})
    content["model"] = model
    # An added token that is not in `ids` has no row in the embeddings, and no text uses it.
    added = [{**token, "id": ids[token["id"]]} for token in content["added_tokens"] if token["id"] in ids]
    content["added_tokens"] = sorted(added, key=lambda token: token["id"])
    for step in processors(content["post_processor"]):
        for token in (step.get("special_tokens") or {}).values():
            token["ids"] = [ids[token_id] for token_id in token["ids"]]
        for name in ("cls", "sep"):  # (token, id)
            if isinstance(step.get(name), list):
                step[name][1] = ids[step[name][1]]
    rebuilt = copy.deepcopy(tokenizer)
    replace_backend(rebuilt, Tokenizer.from_str(json.dumps(content, ensure_ascii=False)))
    if getattr(rebuilt, "vocab_file", None):
        rebuilt.vocab_file = None  # a file of all pieces, which would be saved again
    return rebuilt


def cut_weights(encoder: PreTrainedModel, ids: Mapping[int, int]) -> None:
    """Replace the word embeddings of ``encoder`` by those rows that stay, in place; all other weights stay.

    Args:
        encoder: A transformers model.
        ids: Old id → new id, from 0, in order and without gaps.

    Raises:
        ValueError: Positions hang on the id of padding, and that changes.
    """
    table: Any = encoder.get_input_embeddings()
    replace_rows(encoder, table.weight.detach()[[*ids]].clone(), ids)


def replace_rows(encoder: PreTrainedModel, rows: Tensor, ids: Mapping[int, int]) -> None:
    """Replace the word embeddings of ``encoder`` by other rows, in place; all other weights stay.

    Args:
        encoder: A transformers model.
        rows: Row of each new id. *Shape:* ``(tokens, hidden)``
        ids: Old id → new id.

    Raises:
        ValueError: Positions hang on the id of padding, and that changes.
    """
    table: Any = encoder.get_input_embeddings()
    padding = getattr(getattr(encoder, "embeddings", None), "padding_idx", None)
    if padding is not None and ids.get(padding) != padding:
        raise ValueError(
            f"{type(encoder).__name__} counts positions from the id of padding, {padding}, which would become "
            f"{ids.get(padding)}; keep more tokens."
        )
    weight = nn.Parameter(rows, requires_grad=table.weight.requires_grad)
    # A copy of the module itself: some scale their output.
    replaced = copy.deepcopy(table, {id(table.weight): weight})
    replaced.num_embeddings = len(rows)
    replaced.padding_idx = None if table.padding_idx is None else ids.get(table.padding_idx)
    encoder.set_input_embeddings(replaced)
    for name, old_ids in token_settings(encoder.config).items():
        new_ids = [ids.get(old) for old in old_ids]
        if isinstance(getattr(encoder.config, name), list):
            setattr(encoder.config, name, new_ids)
        else:
            setattr(encoder.config, name, new_ids[0])
    encoder.config.vocab_size = len(rows)


def token_settings(config: PreTrainedConfig) -> dict[str, list[int]]:
    """Entries that are ids of tokens, such as ``pad_token_id``; negative numbers are ids of none."""
    entries: dict[str, list[int]] = {}
    for name, value in config.to_dict().items():
        if not name.endswith("_token_id"):
            continue
        ids = value if isinstance(value, list) else [value]
        if ids and all(type(token_id) is int and token_id >= 0 for token_id in ids):
            entries[name] = ids
    return entries
