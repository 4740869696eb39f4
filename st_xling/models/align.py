"""Align the words of translations by the token states of an encoder, without training or a second model."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor

from st_xling.models.backbone import backbone
from st_xling.models.corpus_alignment import Links, link_by_corpus
from st_xling.models.encode import count_truncated, warn_of_truncated
from st_xling.models.view import check_layer
from st_xling.utils.console import progress_bar
from st_xling.utils.options import check_choice

AlignmentMethod = Literal["itermax", "intersection", "corpus"]

#: Factor for words that have a partner already, in the second round of itermax.
DISCOUNT = 0.9

#: Scripts that write no spaces between words, by the beginning of their characters' names: each character is a word.
_UNSPACED = ("CJK UNIFIED", "CJK COMPATIBILITY", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@torch.inference_mode()
def align_words(
    model: SentenceTransformer,
    sources: Sequence[str | Sequence[str]],
    targets: Sequence[str | Sequence[str]],
    *,
    method: AlignmentMethod = "itermax",
    layer: int | None = None,
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> list[Links]:
    """Link the words of each pair of sentences that mean the same.

    Words are compared by their pieces (tokens), see :func:`piece_similarities`.

    Args:
        model: An encoder with a fast tokenizer.
        sources: Sentences, split by :func:`split_words`; or lists of their words.
        targets: Their translations, the same.
        method: ``"intersection"`` links two words if a piece of each is the other's nearest. ``"itermax"`` links two
            words that are each other's nearest by their most similar pieces, then adds a second round, in which words
            that are linked already count for less and two linked ones for nothing: more links, fewer of them right.
            (SimAlign's own skips that round where a side has at most two words or is linked throughout.)
            ``"corpus"`` also counts which words go together in all pairs of the call, and which have no partner, see
            :func:`~st_xling.models.corpus_alignment.link_by_corpus`: for some hundred pairs and more.
        layer: Whose states, counted from 1; default: two thirds of the way up, 8 of 12, where translations' words are
            nearest to each other. The last layers serve the sentence embedding.
        batch_size: Most pairs that are encoded together.
        show_progress_bar: Show one on stderr.

    Returns:
        For each pair, sorted positions ``(source word, target word)`` counted from 0. A word beyond the model's length
        has no link.

    Raises:
        ValueError: Unequal numbers of sentences, a layer that the encoder does not have, or a tokenizer
            without a map from tokens to words.

    Source:
        Jalili Sabet et al. 2020, SimAlign, section 2: Argmax and Itermax; of "corpus" see there.

    Example:
        >>> from st_xling.models import align_words, tiny_encoder
        >>> sources, targets = ["Das Haus ist rot."], ["The house is red."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> links = align_words(model, sources, targets, method="intersection")
        >>> all(i < 5 and j < 5 for i, j in links[0])
        True
    """
    layer = default_layer(model) if layer is None else layer
    links = align_by_layers(
        model, sources, targets, [layer], method=method, batch_size=batch_size, show_progress_bar=show_progress_bar
    )
    return links[layer]


@torch.inference_mode()
def align_by_layers(
    model: SentenceTransformer,
    sources: Sequence[str | Sequence[str]],
    targets: Sequence[str | Sequence[str]],
    layers: Sequence[int],
    *,
    method: AlignmentMethod = "itermax",
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> dict[int, list[Links]]:
    """:func:`align_words` by each of some layers, in one pass of the encoder. Layer → links of each pair."""
    check_choice("method", method, AlignmentMethod)
    links: dict[int, list[Links]] = {layer: [[]] * len(sources) for layer in layers}
    similarities: dict[int, list[Tensor]] = {layer: [torch.empty(0, 0)] * len(sources) for layer in layers}
    for row, source, target in _pairs_of_pieces(model, sources, targets, layers, batch_size, show_progress_bar):
        for layer in layers:
            if method == "corpus":
                similarities[layer][row] = _of_words(source, target, layer)
            else:
                links[layer][row] = link_words(source, target, layer, method=method)
    if method == "corpus":
        words = [[split_words(text) if isinstance(text, str) else text for text in side] for side in (sources, targets)]
        links = {layer: link_by_corpus(words[0], words[1], similarities[layer]) for layer in layers}
    return links


@torch.inference_mode()
def word_similarities(
    model: SentenceTransformer,
    sources: Sequence[str | Sequence[str]],
    targets: Sequence[str | Sequence[str]],
    *,
    layer: int | None = None,
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> list[Tensor]:
    """Compute the similarities of the words of each pair of sentences: of two words, that of their nearest pieces.

    Args, Raises: As of :func:`align_words`.

    Returns:
        For each pair :func:`piece_similarities`, the maximum over the pieces of two words, in float32; NaN for a word
        beyond the model's length. *Shape:* ``(source words, target words)``

    Example:
        >>> from st_xling.models import tiny_encoder, word_similarities
        >>> sources, targets = ["Das Haus ist rot."], ["The house is red!"]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> word_similarities(model, sources, targets)[0].shape
        torch.Size([5, 5])
    """
    layer = default_layer(model) if layer is None else layer
    found: list[Tensor] = [torch.empty(0)] * len(sources)
    for row, source, target in _pairs_of_pieces(model, sources, targets, [layer], batch_size, show_progress_bar):
        found[row] = _of_words(source, target, layer)
    return found


class Pieces(NamedTuple):
    """Tokens of a sentence.

    Attributes:
        states: Layer → states in float32, on the CPU. *Shape:* ``(pieces, hidden)``
        shares: Share of each piece in each word: 1 / the word's pieces, or 0. *Shape:* ``(words, pieces)``
    """

    states: dict[int, Tensor]
    shares: Tensor


def piece_similarities(source: Pieces, target: Pieces, layer: int) -> Tensor:
    """Compute the mean of the cosine of two pieces and the cosine of their words.

    A piece alone can link a part of a compound, which another language writes as a word of its own; the mean state of
    its word keeps it from links that only the piece would make. On real English–French and Chinese–English gold the
    mean of both is at least as good as either alone.

    Args:
        source: Pieces of a sentence.
        target: Those of its translation.
        layer: One of the layers that both have.
    Returns:
        From -1 to 1. *Shape:* ``(source pieces, target pieces)``
    """
    one, other = source.states[layer], target.states[layer]
    words = _cosines(source.shares @ one, target.shares @ other)
    # A piece of several words, as of Chinese ones written without spaces, has the mean of their cosines.
    within = [side.shares.gt(0) / side.shares.gt(0).sum(dim=0) for side in (source, target)]
    return (_cosines(one, other) + within[0].T @ words @ within[1]) / 2


def _cosines(source: Tensor, target: Tensor) -> Tensor:
    return F.normalize(source, dim=1) @ F.normalize(target, dim=1).T


def _of_words(source: Pieces, target: Pieces, layer: int) -> Tensor:
    """Return the similarity of the nearest pieces of two words; NaN without a piece. *Shape:* ``(words, words)``"""
    found = piece_similarities(source, target, layer)
    for side in (source, target):  # maxima over source pieces; transposed, over target pieces
        own = [
            found[pieces].amax(dim=0) if pieces.any() else found.new_full(found.shape[1:], torch.nan)
            for pieces in side.shares > 0
        ]
        found = torch.stack(own).T if own else found.new_empty(found.shape[1], 0)
    return found


def _pairs_of_pieces(
    model: SentenceTransformer,
    sources: Sequence[str | Sequence[str]],
    targets: Sequence[str | Sequence[str]],
    layers: Sequence[int],
    batch_size: int,
    show_progress_bar: bool,
) -> Iterator[tuple[int, Pieces, Pieces]]:
    """Yield rows with the pieces of source and target; pairs of like length together, for their padding."""
    if len(sources) != len(targets):
        raise ValueError(f"sources and targets must be row-aligned: got {len(sources)} and {len(targets)} sentences.")
    texts = [text if isinstance(text, str) else " ".join(text) for side in (sources, targets) for text in side]
    warn_of_truncated(count_truncated(model, texts, ""), len(texts), model)
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]) + len(targets[row]))
    with progress_bar(total=len(order), desc="comparing words", unit="pairs", show=show_progress_bar) as bar:
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            columns = (read_pieces(model, [side[row] for row in rows], layers) for side in (sources, targets))
            yield from zip(rows, *columns, strict=True)
            bar.update(len(rows))


def split_words(text: str) -> list[str]:
    """Split at spaces, with punctuation as separate words, and scripts without spaces into characters.

    Example:
        >>> split_words("Er kam, sah – und 说你好。")
        ['Er', 'kam', ',', 'sah', '–', 'und', '说', '你', '好', '。']
        >>> split_words("1.234,5 um 16:30.")
        ['1.234,5', 'um', '16:30', '.']
    """
    words: list[str] = []
    joins = False  # the next letter to the last word
    for place, character in enumerate(text):
        if character.isspace():
            joins = False
            continue
        kind, following = unicodedata.category(character)[0], text[place + 1 : place + 2]
        # Within a word: vowel signs and accents of their own; apostrophes and hyphens between letters or digits; what
        # separates digits.
        inside = kind == "M" or (character in "'’-‐" and joins and following.isalnum())
        inside |= character in ".,:٫٬" and joins and words[-1][-1].isdigit() and following.isdigit()
        alone = not inside and (kind in "PS" or unicodedata.name(character, "").startswith(_UNSPACED))
        if words and (inside or (joins and not alone)):
            words[-1] += character
        else:
            words.append(character)
        joins = not alone
    return words


def word_spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Find where each word of :func:`split_words` begins and ends in a text.

    Example:
        >>> word_spans("Er kam,  sah.", ["Er", "kam", ",", "sah", "."])
        [(0, 2), (3, 6), (6, 7), (9, 12), (12, 13)]
    """
    spans, end = [], 0
    for word in words:
        begin = max(text.find(word, end), end)  # an accent behind a space is part of the word before
        end = min(begin + len(word), len(text))
        spans.append((begin, end))
    return spans


def link_words(
    source: Pieces, target: Pieces, layer: int, *, method: Literal["itermax", "intersection"] = "itermax"
) -> Links:
    """Link the words of one pair of sentences, see :func:`align_words`; sorted."""
    if not source.shares.numel() or not target.shares.numel():
        return []
    # Similarities from 0 to 1, so that a discount always lowers them.
    if method == "intersection":
        pieces = _nearest_to_each_other((1 + piece_similarities(source, target, layer)) / 2)
        linked = source.shares @ pieces.float() @ target.shares.T > 0  # by any piece
    else:
        similarities = ((1 + _of_words(source, target, layer)) / 2).nan_to_num(0.0)
        linked = _nearest_to_each_other(similarities)
        row, column = linked.any(dim=1, keepdim=True), linked.any(dim=0, keepdim=True)
        discounted = torch.where(row | column, DISCOUNT, 1.0).masked_fill(row & column, 0.0) * similarities
        linked |= _nearest_to_each_other(discounted)
    return [(i, j) for i, j in linked.nonzero().tolist()]


def _nearest_to_each_other(similarities: Tensor) -> Tensor:
    forward, backward = (torch.zeros_like(similarities, dtype=torch.bool) for _ in range(2))
    forward.scatter_(1, similarities.argmax(dim=1, keepdim=True), True)
    backward.scatter_(0, similarities.argmax(dim=0, keepdim=True), True)
    return forward & backward & (similarities > 0)


@torch.inference_mode()
def read_pieces(
    model: SentenceTransformer, texts: Sequence[str | Sequence[str]], layers: Sequence[int]
) -> list[Pieces]:
    """Encode sentences and return their pieces of words, without special tokens; a word that was cut off has none.

    Args:
        model: An encoder.
        texts: Sentences, or lists of their words: one batch.
        layers: Counted from 1.

    Raises:
        ValueError: A layer that the encoder does not have, or a tokenizer that does not say which words its tokens
            belong to.
    """
    parts = backbone(model)
    if not getattr(parts.tokenizer, "is_fast", False):
        raise ValueError(f"aligning words needs a fast tokenizer: got {type(parts.tokenizer).__name__}.")
    for layer in layers:
        check_layer(model, layer)
    # A sentence as it is, so that its tokens are those that the encoder knows: of Chinese, words, not characters.
    whole = all(isinstance(text, str) for text in texts)
    words = [split_words(text) if isinstance(text, str) else list(text) for text in texts]
    features = parts.tokenizer(
        # A list without words has tokens all the same: its row is not read.
        list(texts) if whole else [row or ["."] for row in words],
        is_split_into_words=not whole,
        padding=True,
        truncation=True,
        max_length=model.max_seq_length,
        return_offsets_mapping=True,
        return_tensors="pt",
    )
    inputs: dict[str, Any] = {name: features[name].to(model.device) for name in ("input_ids", "attention_mask")}
    model.eval()
    hidden = parts.model(**inputs, output_hidden_states=True, return_dict=True).hidden_states
    states = {layer: hidden[layer].float().cpu() for layer in layers}
    found = []
    for row, own in enumerate(words):
        if whole:
            spans = torch.tensor(word_spans(str(texts[row]), own)).reshape(-1, 1, 2)
            begin, end = features["offset_mapping"][row].T
            belongs = torch.minimum(spans[..., 1], end) > torch.maximum(spans[..., 0], begin)
        else:
            places = [-1 if place is None else place for place in features.word_ids(row)]
            belongs = torch.tensor(places)[None] == torch.arange(len(own))[:, None]
        pieces = belongs.any(dim=0)
        shares = (belongs / belongs.sum(dim=1, keepdim=True).clamp(min=1))[:, pieces]
        found.append(Pieces({layer: states[layer][row][pieces] for layer in layers}, shares))
    return found


def default_layer(model: SentenceTransformer) -> int:
    """Two thirds of the way up: 8 of 12, where Jalili Sabet et al. 2020 found translations' words nearest."""
    return max(1, round(2 * len(backbone(model).layers) / 3))
