"""Grow an encoder's vocabulary by the pieces of a language that its tokenizer cannot read: the inverse of slimming.

:func:`grow_vocabulary` learns pieces from text, adds those with a character that no old piece has, and gives them rows
of the word embeddings. Text without such a character is cut into the same tokens as before, and has the same
embeddings:

* **Unigram** takes the best-scored pieces that spell a word. A new piece spells no word without a new character; and
  new scores are at least the lowest old one, which the price of an unknown character depends on.
* **WordPiece** takes the longest piece that fits. None of the new ones fits where there is no new character.
* **BPE** applies merges in their order. New ones stand behind the old ones, and one of the two parts of each has a new
  character, so that none applies to other text.

Tokenizers that read bytes as letters (GPT-2, Qwen) have no new characters: they are refused.
"""

from __future__ import annotations

import itertools
import json
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, trainers

from st_xling.models.new_rows import start_rows, translation_weights
from st_xling.models.token_rows import check_ids
from st_xling.models.vocabulary import (
    Vocabulary,
    copy_sharing_weights,
    count_tokens,
    first_transformer,
    processors,
    rebuild_tokenizer,
    replace_rows,
    token_ids,
)
from st_xling.utils.terminal import progress_bar

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Growth:
    """Result of :func:`grow_vocabulary`.

    Attributes:
        model: The grown encoder. It shares all weights with the old one but the word embeddings.
        pieces: The new pieces, in the order of their ids.
        first_id: Id of the first of them; the others follow without gaps.
        origins: Number of pieces that start from ``"parts"``, ``"translations"`` or the ``"mean"``, see
            :mod:`st_xling.models.new_rows`.

    Example:
        >>> from st_xling.models import tiny_encoder
        >>> model = tiny_encoder(["The dog is sleeping."], vocabulary=100, hidden_size=16)
        >>> growth = grow_vocabulary(model, ["ውሻው ተኝቷል።"], min_count=1)
        >>> isinstance(growth, Growth), sum(growth.origins.values()) == len(growth.pieces)
        (True, True)
    """

    model: SentenceTransformer
    pieces: Sequence[str]
    first_id: int
    origins: Mapping[str, int]


def grow_vocabulary(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    translations: Sequence[str] | None = None,
    pieces: int = 8000,
    min_count: int = 3,
    old_texts: Iterable[str] | None = None,
    progress: bool = False,
) -> Growth:
    """Add the pieces of a new language to an encoder's vocabulary; old text keeps its tokens and embeddings.

    Args:
        model: A ``SentenceTransformer`` on one transformer with a fast tokenizer that does not read bytes as letters.
            It stays as it is.
        texts: Text of the new language.
        translations: Their translations into a language that the encoder reads, row-aligned: pieces that were unknown
            start from the rows of what they are translated by.
        pieces: Number of pieces to learn, at most.
        min_count: Drop pieces that ``texts`` use less often, unless they are one character.
        old_texts: Text of the languages that the encoder reads. A character is then new if it does not occur in this
            text, even if there are pieces with it. ``None``: it is new if no piece has it.
        progress: Show a bar on stderr.

    Returns:
        An encoder of ST's modules, and its new pieces.

    Raises:
        ValueError: A model of another kind, adapters that are not merged, a tokenizer of another type; text without a
            new character, translations of another number, or fewer pieces than new characters.

    Example:
        >>> from st_xling.models import tiny_encoder
        >>> model = tiny_encoder(["The dog is sleeping.", "I am reading."], vocabulary=100, hidden_size=16)
        >>> growth = grow_vocabulary(model, ["ውሻው ተኝቷል።", "እያነበብኩ ነው።"] * 3)
        >>> "[UNK]" in model.tokenizer.tokenize("ውሻው"), "[UNK]" in growth.model.tokenizer.tokenize("ውሻው")
        (True, False)
    """
    if translations is not None and len(translations) != len(texts):
        raise ValueError(f"each text has one translation: got {len(texts):,} texts, {len(translations):,} of them.")
    first = first_transformer(model)
    tokenizer: Any = first.tokenizer
    vocabulary = Vocabulary(tokenizer)
    check_can_grow(vocabulary)
    table = first.auto_model.get_input_embeddings().weight.detach()
    check_ids(tokenizer, len(table), vocabulary.pieces)

    old_characters = _characters_of_pieces(vocabulary)
    if old_texts is not None:
        prompts = [prompt for prompt in model.prompts.values() if prompt]
        old_characters = _characters_of_texts(tokenizer, [*old_texts, *prompts])
    words = _words_with_new_characters(tokenizer, texts, old_characters, progress=progress)
    new_characters = set().union(*words) - old_characters
    if not new_characters:
        raise ValueError(
            f"text with characters that are new to the model is needed: got {len(texts):,} texts without any. Its "
            "tokenizer reads them; train without new pieces."
        )
    if pieces <= len(new_characters):
        raise ValueError(
            f"pieces must be more than the {len(new_characters):,} new characters of the text: got {pieces:,}."
        )
    learned = _learn_pieces(vocabulary, words, pieces, old_characters, min_count=min_count)
    if not learned.scores:
        raise ValueError(
            f"nothing to add: the tokenizer has the {pieces:,} pieces of this text already; learn more pieces."
        )

    first_id = max(vocabulary.pieces) + 1
    grown_tokenizer = _add_pieces(tokenizer, vocabulary, learned, len(table))
    if not learned.merges:  # a piece that is made by merges may be part of another
        counts = count_tokens(grown_tokenizer, texts, progress=progress)[first_id:]
        learned = _drop_rare(vocabulary, learned, counts.tolist(), min_count)
        grown_tokenizer = _add_pieces(tokenizer, vocabulary, learned, len(table))

    new_ids = range(first_id, first_id + len(learned.scores))
    parts = _old_parts(vocabulary, tokenizer, dict(zip(new_ids, learned.scores)))
    weights = {}
    if translations is not None:
        sources: list[list[int]] = []
        for row in token_ids(grown_tokenizer, list(texts)):
            sources.append([token_id for token_id in row if token_id in new_ids])
        weights = translation_weights(sources, token_ids(tokenizer, list(translations)))
    new_rows = start_rows(table[: len(vocabulary.ids)], new_ids, parts, weights)

    ids = _moved_ids(vocabulary, len(learned.scores), len(table))
    moved = [old for old in ids if old >= first_id]
    grown = copy_sharing_weights(model, grown_tokenizer)
    transformer: Any = grown[0]
    replace_rows(transformer.auto_model, torch.cat([table[:first_id], new_rows.rows, table[moved]]), ids)
    return Growth(grown, [*learned.scores], first_id, new_rows.origins)


def check_can_grow(vocabulary: Vocabulary) -> None:
    """Raise ``ValueError`` for a tokenizer to which no pieces can be added."""
    content = vocabulary.content
    steps = [*processors(content["pre_tokenizer"]), *processors(content["normalizer"])]
    if any(step["type"] == "ByteLevel" for step in steps):
        raise ValueError(
            "the tokenizer reads every script by its bytes, so that no character is new to it: it cannot be grown. "
            "Train without new pieces."
        )
    marks = [vocabulary.model.get(name) for name in ("continuing_subword_prefix", "end_of_word_suffix")]
    if vocabulary.kind == "BPE" and any(marks):
        raise ValueError(
            f"BPE can be grown if its pieces have no marks inside words or at their ends: got {marks}. Train without "
            "new pieces."
        )


@dataclass(frozen=True)
class _Learned:
    """New pieces.

    Attributes:
        scores: Piece → score, which only Unigram has, in the order of the ids.
        merges: Two parts of each piece that BPE makes, in order.
    """

    scores: Mapping[str, float]
    merges: Sequence[tuple[str, str]] = ()


def _characters_of_pieces(vocabulary: Vocabulary) -> set[str]:
    return set(string.printable).union(*vocabulary.pieces.values())


def _characters_of_texts(tokenizer: PreTrainedTokenizerFast, texts: Iterable[str]) -> set[str]:
    """The characters of normalized texts, and those that stand for a space or the inside of a word."""
    characters = set(string.printable) | {"▁"}
    for text in texts:
        characters.update(_normalized(tokenizer, text))
    return characters


def _normalized(tokenizer: PreTrainedTokenizerFast, text: str) -> str:
    normalizer = tokenizer.backend_tokenizer.normalizer
    return text if normalizer is None else normalizer.normalize_str(text)


def _words_with_new_characters(
    tokenizer: PreTrainedTokenizerFast, texts: Iterable[str], old_characters: set[str], *, progress: bool
) -> Counter[str]:
    """Count the words of texts, normalized and split as the tokenizer does, that have a new character."""
    splitter = tokenizer.backend_tokenizer.pre_tokenizer
    words: Counter[str] = Counter()
    for text in progress_bar(texts, desc="reading words", unit="texts", show=progress):
        normalized = _normalized(tokenizer, text)
        split = [normalized] if splitter is None else [word for word, _ in splitter.pre_tokenize_str(normalized)]
        words.update(word for word in split if not old_characters.issuperset(word))
    return words


def _learn_pieces(
    vocabulary: Vocabulary, words: Counter[str], size: int, old_characters: set[str], *, min_count: int
) -> _Learned:
    """Learn pieces with a new character from words."""
    # In order, since the trainers' results depend on it.
    ordered = itertools.chain.from_iterable(itertools.repeat(word, count) for word, count in sorted(words.items()))
    old_pieces = {*vocabulary.pieces.values(), *vocabulary.ids}
    new_characters = sorted(set().union(*words) - old_characters)
    if vocabulary.kind == "BPE":
        return _learn_merges(ordered, size, old_pieces, new_characters, min_count=min_count)
    if vocabulary.kind == "Unigram":
        lowest = min(score for _, score in vocabulary.model["vocab"])
        learned = {piece: max(score, lowest) for piece, score in _learn_unigram(ordered, size).items()}
    else:
        prefix = vocabulary.model.get("continuing_subword_prefix") or ""
        trained = Tokenizer(models.WordPiece(unk_token=_UNKNOWN))
        trainer = trainers.WordPieceTrainer(
            vocab_size=size, show_progress=False, continuing_subword_prefix=prefix or None
        )
        trained.train_from_iterator(ordered, trainer)
        # A character may stand at the beginning of a word, and within it.
        spellings = [form + character for character in new_characters for form in ("", prefix)]
        by_id = sorted(trained.get_vocab().items(), key=lambda entry: entry[1])
        learned = dict.fromkeys([*spellings, *(piece for piece, _ in by_id)], 0.0)
    scores: dict[str, float] = {}
    for piece, score in learned.items():
        if piece not in old_pieces and not old_characters.issuperset(piece):
            scores[piece] = score
    return _Learned(scores)


def _learn_merges(
    words: Iterable[str], size: int, old_pieces: set[str], new_characters: Sequence[str], *, min_count: int
) -> _Learned:
    """Learn the merges of BPE of which a part has a new character, and both parts are pieces."""
    trained = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=min_count, show_progress=False)
    trained.train_from_iterator(words, trainer)
    pieces = dict.fromkeys((character for character in new_characters if character not in old_pieces), 0.0)
    merges: list[tuple[str, str]] = []
    for first, second in json.loads(trained.to_str())["model"]["merges"]:
        result = first + second
        has_parts = all(part in old_pieces or part in pieces for part in (first, second))
        if has_parts and result not in old_pieces and not set(new_characters).isdisjoint(result):
            pieces[result] = 0.0
            merges.append((first, second))
    return _Learned(pieces, merges)


def _drop_rare(vocabulary: Vocabulary, learned: _Learned, counts: Sequence[int], min_count: int) -> _Learned:
    """Drop pieces that other new ones have made rare, unless they are one character."""
    prefix = vocabulary.model.get("continuing_subword_prefix") or ""
    kept: dict[str, float] = {}
    for (piece, score), count in zip(learned.scores.items(), counts):
        if count >= min_count or len(piece.removeprefix(prefix)) == 1:
            kept[piece] = score
    return _Learned(kept)


def _learn_unigram(words: Iterable[str], size: int) -> dict[str, float]:
    """Learn pieces and their scores, the best first."""
    trained = Tokenizer(models.Unigram())
    trainer = trainers.UnigramTrainer(
        vocab_size=size, show_progress=False, unk_token=_UNKNOWN, special_tokens=[_UNKNOWN]
    )
    trained.train_from_iterator(words, trainer)
    _, *scored = json.loads(trained.to_str())["model"]["vocab"]  # without the unknown token
    # The trainer orders equal scores at random, and gives characters that it would have dropped scores below the lowest
    # in a random order, too: these get the lowest score of the others.
    lowest = min((score for piece, score in scored if len(piece) > 1), default=-10.0)
    scores = {piece: round(max(score, lowest), 6) for piece, score in scored}
    return dict(sorted(scores.items(), key=lambda entry: (-entry[1], entry[0])))


def _add_pieces(
    tokenizer: PreTrainedTokenizerFast, vocabulary: Vocabulary, learned: _Learned, rows: int
) -> PreTrainedTokenizerFast:
    """A new tokenizer with the new pieces behind the old ones."""
    model = dict(vocabulary.model)
    if vocabulary.kind == "Unigram":
        model["vocab"] = [*model["vocab"], *([piece, score] for piece, score in learned.scores.items())]
    else:
        first_id = max(vocabulary.pieces) + 1
        new_ids = {piece: first_id + number for number, piece in enumerate(learned.scores)}
        model["vocab"] = {**model["vocab"], **new_ids}
    if learned.merges:
        model["merges"] = [*model["merges"], *map(list, learned.merges)]
    return rebuild_tokenizer(tokenizer, vocabulary, model, _moved_ids(vocabulary, len(learned.scores), rows))


def _moved_ids(vocabulary: Vocabulary, new_pieces: int, rows: int) -> dict[int, int]:
    """Old id → new id: added tokens stand behind all pieces, and those without a row are dropped."""
    first_id = max(vocabulary.pieces) + 1
    ids = {token_id: token_id for token_id in sorted(vocabulary.pieces)}
    behind = [token_id for token_id in sorted(vocabulary.added) if first_id <= token_id < rows]
    ids |= {token_id: first_id + new_pieces + number for number, token_id in enumerate(behind)}
    return ids


def _old_parts(
    vocabulary: Vocabulary, tokenizer: PreTrainedTokenizerFast, pieces: Mapping[int, str]
) -> dict[int, list[int]]:
    """Id of a new piece → ids of the old ones that spell it, without pieces that these do not spell."""
    prefix = vocabulary.model.get("continuing_subword_prefix") or ""
    parts: dict[int, list[int]] = {}
    for new_id, piece in pieces.items():
        spelled = tokenizer.backend_tokenizer.model.tokenize(piece.removeprefix(prefix))
        ids = [token.id for token in spelled]
        # The bytes of a letter say nothing of it.
        is_bytes = any(re.fullmatch(r"<0x[0-9A-F]{2}>", token.value) for token in spelled)
        if ids and vocabulary.unknown_id not in ids and not is_bytes:
            parts[new_id] = ids
    return parts
