"""Align the words of translations by the token states of an encoder, without training or a second model.

The method ``"corpus"`` also counts, over all pairs, which words go together.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor

from st_xling.models.backbones import backbone
from st_xling.models.encoding import count_truncated, warn_of_truncated
from st_xling.models.token_rows import check_texts
from st_xling.models.view import check_layer
from st_xling.utils.options import check_choice
from st_xling.utils.terminal import progress_bar

AlignmentMethod = Literal["itermax", "intersection", "corpus"]
Links = list[tuple[int, int]]
#: Sentences, or lists of their words.
Sentences = Sequence[str | Sequence[str]]

#: Factor for words that have a partner already, in the second round of itermax.
DISCOUNT = 0.9

#: Scripts that write no spaces between words, by the beginning of their characters' names: each character is a word.
_UNSPACED = ("CJK UNIFIED", "CJK COMPATIBILITY", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")

# Of "corpus", chosen on 200 phrasebook pairs of each of five languages with English that no figure is reported on.
TEMPERATURE = 0.1  # of cosines, where they become probabilities
NO_PARTNER = 0.2  # probability that a word has none, before anything is counted
ROUNDS = 3
SURE = 0.5  # mean of both directions' probabilities from which two words are linked
LIKELY = 0.4  # probability in one direction from which a word joins the link next to it

#: Pairs of words that are counted together, which bounds the memory: some 40,000 sentence pairs of 20 words.
PART = 16_000_000


@torch.inference_mode()
def align_words(
    model: SentenceTransformer,
    sources: Sentences,
    targets: Sentences,
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
            :func:`link_by_corpus`: for some hundred pairs and more.
        layer: Whose states, counted from 1; default: two thirds of the way up, 8 of 12, where translations' words are
            nearest to each other. The last layers serve the sentence embedding.
        batch_size: Most pairs that are encoded together.
        show_progress_bar: Show one on stderr.

    Returns:
        For each pair, sorted positions ``(source word, target word)`` counted from 0. A word beyond the model's length
        has no link.

    Raises:
        ValueError: Unequal numbers of sentences, or a layer that the encoder does not have.

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
    sources: Sentences,
    targets: Sentences,
    layers: Sequence[int],
    *,
    method: AlignmentMethod = "itermax",
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> dict[int, list[Links]]:
    """:func:`align_words` by each of some layers, in one pass of the encoder. Layer → links of each pair."""
    check_choice("method", method, AlignmentMethod)
    compute = _of_words if method == "corpus" else partial(link_words, method=method)
    found = _compare(model, sources, targets, layers, compute, batch_size, show_progress_bar)
    if method != "corpus":
        return found
    words = [[split_words(text) if isinstance(text, str) else text for text in side] for side in (sources, targets)]
    return {layer: link_by_corpus(words[0], words[1], found[layer]) for layer in layers}


@torch.inference_mode()
def word_similarities(
    model: SentenceTransformer, sources: Sentences, targets: Sentences, *, layer: int | None = None
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
    return _compare(model, sources, targets, [layer], _of_words)[layer]


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


def _compare(
    model: SentenceTransformer,
    sources: Sentences,
    targets: Sentences,
    layers: Sequence[int],
    compute: Callable[[Pieces, Pieces, int], Any],
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> dict[int, list[Any]]:
    """Layer → what ``compute`` makes of each pair's pieces. Pairs of like length are encoded together."""
    if len(sources) != len(targets):
        raise ValueError(f"sources and targets must be row-aligned: got {len(sources)} and {len(targets)} sentences.")
    texts = [text if isinstance(text, str) else " ".join(text) for side in (sources, targets) for text in side]
    check_texts(model, texts)
    warn_of_truncated(count_truncated(model, texts, ""), len(texts), model)
    found: dict[int, list[Any]] = {layer: [None] * len(sources) for layer in layers}
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]) + len(targets[row]))
    with progress_bar(total=len(order), desc="comparing words", unit="pairs", show=show_progress_bar) as bar:
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            columns = (read_pieces(model, [side[row] for row in rows], layers) for side in (sources, targets))
            for row, source, target in zip(rows, *columns, strict=True):
                for layer in layers:
                    found[layer][row] = compute(source, target, layer)
            bar.update(len(rows))
    return found


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


def link_words(source: Pieces, target: Pieces, layer: int, *, method: AlignmentMethod = "itermax") -> Links:
    """Link the words of one pair of sentences by themselves, see :func:`align_words`; sorted."""
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
def read_pieces(model: SentenceTransformer, texts: Sentences, layers: Sequence[int]) -> list[Pieces]:
    """Encode sentences and return their pieces of words, without special tokens; a word that was cut off has none.

    Args:
        model: An encoder.
        texts: Sentences, or lists of their words: one batch.
        layers: Counted from 1.

    Raises:
        ValueError: A layer that the encoder does not have.
    """
    parts = backbone(model)
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


def link_by_corpus(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], similarities: Sequence[Tensor]
) -> list[Links]:
    r"""Links of all pairs, from the similarities of their words and from how often these are linked in other pairs.

    With the similarities alone each word chooses its partner among those of the other sentence, or none:
    :math:`p(i \mid j) \propto e^{s_{ij} / \tau}`. Over all pairs that gives expected counts of links, by them
    :math:`t(w \mid v)`, how often the word *v* goes with *w*; and :math:`p(i \mid j) \propto e^{s_{ij} / \tau} \,
    t(w_j \mid v_i)` makes new ones. So words that are near by chance are set right by the other pairs, and a word that
    is always said by two keeps both. Both directions are learned apart; words are linked where the mean of both is
    above one half, then grown: a word without a link joins the link next to it if one direction would. A large corpus
    is counted in parts of :data:`PART` pairs of words, in at most about 1.6 GB of memory.

    Args:
        sources: Words of each pair's source.
        targets: Words of its target.
        similarities: Those of their words, see :func:`~st_xling.models.word_similarities`; NaN for a word that the
            encoder did not read. *Shape:* each ``(source words, target words)``

    Returns:
        For each pair, sorted positions ``(source word, target word)``.

    Source:
        Brown et al. 1993, The Mathematics of Statistical Machine Translation, section 4.2 (model 1), here with a prior;
        Koehn et al. 2003, Statistical Phrase-Based Translation, section 3.1 (growing).
    """
    # Words beyond the encoder's length, which have no similarities, are never linked.
    read = [own[: _read_rows(own), : _read_rows(own.T)] for own in similarities]
    sources = [words[: own.shape[0]] for words, own in zip(sources, read)]
    targets = [words[: own.shape[1]] for words, own in zip(targets, read)]
    parts = np.cumsum([own.numel() for own in read]) // PART
    links: list[Links] = []
    for part in np.unique(parts):
        rows = np.flatnonzero(parts == part)
        links += _link_part([sources[row] for row in rows], [targets[row] for row in rows], [read[row] for row in rows])
    return links


def _read_rows(similarities: Tensor) -> int:
    """Count the rows up to the last one that is not all NaN."""
    known = (~similarities.isnan()).any(dim=1).nonzero()
    return int(known[-1]) + 1 if len(known) else 0


def _link_part(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], similarities: Sequence[Tensor]
) -> list[Links]:
    """Return the links of pairs that are counted together."""
    shapes = [tuple(own.shape) for own in similarities]
    if not any(rows * columns for rows, columns in shapes):
        return [[] for _ in shapes]
    source_kinds, target_kinds = _kinds(sources), _kinds(targets)
    # Every cell of every pair's matrix, one after the other: which words of the corpus it belongs to.
    starts = np.cumsum([(0, 0), *shapes], axis=0)
    cells = [np.indices(shape).reshape(2, -1) + start[:, None] for shape, start in zip(shapes, starts)]
    source, target = np.concatenate(cells, axis=1)
    cosines = np.concatenate([own.numpy().ravel() for own in similarities])
    prior = np.exp((np.nan_to_num(cosines, nan=-np.inf) - 1) / TEMPERATURE)
    width = target_kinds.max() + 1
    pairs, together = np.unique(source_kinds[source] * width + target_kinds[target], return_inverse=True)
    backward = _choices(prior, source, source_kinds, together, pairs % width)
    forward = _choices(prior, target, target_kinds, together, pairs // width)
    ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
    return [
        _grown(one.reshape(shape), other.reshape(shape))
        for one, other, shape in zip(np.split(forward, ends), np.split(backward, ends), shapes)
    ]


def _kinds(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """A number for each word of the corpus, the same for the same word, without case and punctuation around it."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(_bare(word), len(numbers)) for words in sentences for word in words], np.int64)


def _bare(word: str) -> str:
    inner = [place for place, character in enumerate(word) if unicodedata.category(character)[0] not in "PS"]
    return word[inner[0] : inner[-1] + 1].casefold() if inner else word


def _choices(
    prior: np.ndarray, chooser: np.ndarray, kinds: np.ndarray, together: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    """Compute by expectation maximization, for each cell, the probability that its one word chooses the other.

    Args:
        prior: Prior probability of each cell, up to a factor.
        chooser: Each cell's word that chooses.
        kinds: The kind of each of these words.
        together: Each cell's pair of kinds.
        chosen: The kind that is chosen, of each pair of kinds.
    """
    words, number = len(kinds), kinds.max() + 1
    share = (1 - NO_PARTNER) * prior / np.maximum(np.bincount(chooser, prior, words), 1e-30)[chooser]
    goes_with, alone = np.ones(len(chosen)), np.ones(number)
    for last in range(ROUNDS + 1):
        weight, none = share * goes_with[together], NO_PARTNER * alone[kinds]
        total = np.bincount(chooser, weight, words) + none
        weight, none = weight / total[chooser], none / total
        if last == ROUNDS:
            break
        # Counts of the chooser's kind by the chosen one's, or by none; one more, evenly, for kinds that are rare.
        pairs = np.bincount(together, weight)
        goes_with = (pairs + 1 / number) / (np.bincount(chosen, pairs)[chosen] + 1)
        alone = (np.bincount(kinds, none) + 1 / number) / (none.sum() + 1)
    return weight


def _grown(forward: np.ndarray, backward: np.ndarray) -> Links:
    linked, likely = (forward + backward) / 2 > SURE, np.maximum(forward, backward) > LIKELY
    while True:
        edged = np.pad(linked, 1)
        neighbor = edged[:-2, 1:-1] | edged[2:, 1:-1] | edged[1:-1, :-2] | edged[1:-1, 2:]
        free = ~linked.any(axis=1, keepdims=True) | ~linked.any(axis=0, keepdims=True)
        more = likely & neighbor & free & ~linked
        if not more.any():
            return [(i, j) for i, j in np.argwhere(linked).tolist()]
        linked |= more
