"""Align the words of translations by the token states of an encoder, without training or a second model.

The method ``"corpus"`` also counts, over all pairs, which words go together.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

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

if TYPE_CHECKING:
    from transformers import BatchEncoding

T = TypeVar("T")

AlignmentMethod = Literal["itermax", "intersection", "corpus"]
#: Positions of linked words, (source word, target word).
WordLinks = list[tuple[int, int]]
#: Sentences, or lists of their words.
Sentences = Sequence[str | Sequence[str]]

#: Factor for words that have a partner already, in the second round of itermax.
DISCOUNT = 0.9

#: Scripts that write no spaces between words, by the beginning of their characters' names: each character is a word.
_UNSPACED_SCRIPTS = ("CJK UNIFIED", "CJK COMPATIBILITY", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")

# Of "corpus", chosen on 200 phrasebook pairs of each of five languages with English that no figure is reported on.
TEMPERATURE = 0.1  # of cosines, where they become probabilities
NO_PARTNER = 0.2  # probability that a word has none, before anything is counted
ROUNDS = 3
SURE = 0.5  # mean of both directions' probabilities from which two words are linked
LIKELY = 0.4  # probability in one direction from which a word joins the link next to it

#: Pairs of words that are counted together, which bounds the memory: some 40,000 sentence pairs of 20 words.
WORD_PAIRS_AT_ONCE = 16_000_000


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
) -> list[WordLinks]:
    """Link the words of each pair of sentences that mean the same.

    Words are compared by their pieces (tokens), see :func:`piece_similarities`.

    Args:
        model: An encoder with a fast tokenizer.
        sources: Sentences, split by :func:`split_words`; or lists of their words.
        targets: Their translations, the same.
        method: ``"intersection"`` links two words if a piece of each is the other's nearest. ``"itermax"`` links two
            words that are each other's nearest by their most similar pieces, then adds a second round, in which words
            that are linked already count for less and two linked ones for nothing: more links, fewer of them right.
            (SimAlign skips that round where a side has at most two words or is linked throughout.)
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
) -> dict[int, list[WordLinks]]:
    """:func:`align_words` by each of some layers, in one pass of the encoder. Layer → links of each pair."""
    check_choice("method", method, AlignmentMethod)
    if method != "corpus":
        link = partial(link_words, method=method)
        return _compare_pairs(model, sources, targets, layers, link, batch_size, show_progress_bar)
    similarities = _compare_pairs(
        model, sources, targets, layers, nearest_piece_similarities, batch_size, show_progress_bar
    )
    source_words = _words_of_sentences(sources)
    target_words = _words_of_sentences(targets)
    return {layer: link_by_corpus(source_words, target_words, similarities[layer]) for layer in layers}


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
    return _compare_pairs(model, sources, targets, [layer], nearest_piece_similarities)[layer]


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

    A single piece can link a part of a compound, which another language writes as a separate word; the mean state of
    its word keeps it from links that only the piece would make. On real English–French and Chinese–English gold the
    mean of both is at least as good as either of them.

    Args:
        source: Pieces of a sentence.
        target: Those of its translation.
        layer: One of the layers that both have.
    Returns:
        From -1 to 1. *Shape:* ``(source pieces, target pieces)``
    """
    source_states = source.states[layer]
    target_states = target.states[layer]
    pieces = _cosines(source_states, target_states)
    words = _cosines(source.shares @ source_states, target.shares @ target_states)
    # A piece of several words, as of Chinese ones written without spaces, has the mean of their cosines.
    words_of_source_pieces, words_of_target_pieces = (
        side.shares.gt(0) / side.shares.gt(0).sum(dim=0) for side in (source, target)
    )
    return (pieces + words_of_source_pieces.T @ words @ words_of_target_pieces) / 2


def _cosines(source: Tensor, target: Tensor) -> Tensor:
    return F.normalize(source, dim=1) @ F.normalize(target, dim=1).T


def nearest_piece_similarities(source: Pieces, target: Pieces, layer: int) -> Tensor:
    """Return the similarity of the nearest pieces of two words; NaN without a piece. *Shape:* ``(words, words)``"""
    similarities = piece_similarities(source, target, layer)
    for side in (source, target):  # maxima over source pieces; transposed, over target pieces
        rows = []
        for pieces_of_word in side.shares > 0:
            if pieces_of_word.any():
                rows.append(similarities[pieces_of_word].amax(dim=0))
            else:  # a word beyond the model's length
                rows.append(similarities.new_full(similarities.shape[1:], torch.nan))
        if rows:
            similarities = torch.stack(rows).T
        else:
            similarities = similarities.new_empty(similarities.shape[1], 0)
    return similarities


def _compare_pairs(
    model: SentenceTransformer,
    sources: Sentences,
    targets: Sentences,
    layers: Sequence[int],
    compare: Callable[[Pieces, Pieces, int], T],
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> dict[int, list[T]]:
    """Call ``compare`` on the pieces of each pair: layer → its results. Pairs of like length are encoded together."""
    if len(sources) != len(targets):
        raise ValueError(f"sources and targets must be row-aligned: got {len(sources)} and {len(targets)} sentences.")
    texts = [text if isinstance(text, str) else " ".join(text) for text in (*sources, *targets)]
    check_texts(model, texts)
    warn_of_truncated(count_truncated(model, texts, ""), len(texts), model)
    results: dict[int, list[Any]] = {layer: [None] * len(sources) for layer in layers}
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]) + len(targets[row]))
    with progress_bar(total=len(order), desc="comparing words", unit="pairs", show=show_progress_bar) as bar:
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            source_pieces = read_pieces(model, [sources[row] for row in rows], layers)
            target_pieces = read_pieces(model, [targets[row] for row in rows], layers)
            for row, source, target in zip(rows, source_pieces, target_pieces, strict=True):
                for layer in layers:
                    results[layer][row] = compare(source, target, layer)
            bar.update(len(rows))
    return results


def _words_of_sentences(sentences: Sentences) -> list[Sequence[str]]:
    return [split_words(text) if isinstance(text, str) else text for text in sentences]


def split_words(text: str) -> list[str]:
    """Split at spaces, with punctuation as separate words, and scripts without spaces into characters.

    Example:
        >>> split_words("Er kam, sah – und 说你好。")
        ['Er', 'kam', ',', 'sah', '–', 'und', '说', '你', '好', '。']
        >>> split_words("1.234,5 um 16:30.")
        ['1.234,5', 'um', '16:30', '.']
    """
    words: list[str] = []
    in_word = False  # whether the next letter belongs to the last word
    for position, character in enumerate(text):
        if character.isspace():
            in_word = False
            continue
        category = unicodedata.category(character)[0]
        following = text[position + 1 : position + 2]
        # Within a word: separate vowel signs and accents; apostrophes and hyphens between letters or digits; what
        # separates digits.
        is_mark = category == "M"
        is_joiner = character in "'’-‐" and in_word and following.isalnum()
        is_in_number = character in ".,:٫٬" and in_word and words[-1][-1].isdigit() and following.isdigit()
        is_inside = is_mark or is_joiner or is_in_number
        is_unspaced = unicodedata.name(character, "").startswith(_UNSPACED_SCRIPTS)
        is_single = not is_inside and (category in "PS" or is_unspaced)
        if words and (is_inside or (in_word and not is_single)):
            words[-1] += character
        else:
            words.append(character)
        in_word = not is_single
    return words


def word_spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Find where each word of :func:`split_words` begins and ends in a text.

    Example:
        >>> word_spans("Er kam,  sah.", ["Er", "kam", ",", "sah", "."])
        [(0, 2), (3, 6), (6, 7), (9, 12), (12, 13)]
    """
    spans = []
    end = 0
    for word in words:
        begin = max(text.find(word, end), end)  # an accent behind a space is part of the word before
        end = min(begin + len(word), len(text))
        spans.append((begin, end))
    return spans


def link_words(source: Pieces, target: Pieces, layer: int, *, method: AlignmentMethod = "itermax") -> WordLinks:
    """Link the words of one pair of sentences by themselves, see :func:`align_words`; sorted."""
    if not source.shares.numel() or not target.shares.numel():
        return []
    # Similarities from 0 to 1, so that a discount always lowers them.
    if method == "intersection":
        pieces = _nearest_to_each_other((1 + piece_similarities(source, target, layer)) / 2)
        linked = source.shares @ pieces.float() @ target.shares.T > 0  # by any piece
    else:
        similarities = ((1 + nearest_piece_similarities(source, target, layer)) / 2).nan_to_num(0.0)
        linked = _nearest_to_each_other(similarities)
        # The second round: less for words with a link, nothing for two of them.
        linked_sources = linked.any(dim=1, keepdim=True)
        linked_targets = linked.any(dim=0, keepdim=True)
        factors = torch.where(linked_sources | linked_targets, DISCOUNT, 1.0)
        factors = factors.masked_fill(linked_sources & linked_targets, 0.0)
        discounted = factors * similarities
        linked |= _nearest_to_each_other(discounted)
    return [(i, j) for i, j in linked.nonzero().tolist()]


def _nearest_to_each_other(similarities: Tensor) -> Tensor:
    forward = torch.zeros_like(similarities, dtype=torch.bool)
    forward.scatter_(1, similarities.argmax(dim=1, keepdim=True), True)
    backward = torch.zeros_like(similarities, dtype=torch.bool)
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
    are_sentences = all(isinstance(text, str) for text in texts)
    sentences = _words_of_sentences(texts)
    batch: list[Any] = list(texts)
    if not are_sentences:
        # A list without words gets tokens nevertheless: its row is not read.
        batch = [list(words) or ["."] for words in sentences]
    features: BatchEncoding = parts.tokenizer(
        batch,
        is_split_into_words=not are_sentences,
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
    pieces = []
    for row, words in enumerate(sentences):
        # Which token belongs to which word: *Shape:* ``(words, tokens)``
        if are_sentences:
            spans = torch.tensor(word_spans(str(texts[row]), words)).reshape(-1, 1, 2)
            begin, end = features["offset_mapping"][row].T
            belongs = torch.minimum(spans[..., 1], end) > torch.maximum(spans[..., 0], begin)
        else:
            word_of_token = [-1 if word is None else word for word in features.word_ids(row)]
            belongs = torch.tensor(word_of_token)[None] == torch.arange(len(words))[:, None]
        in_words = belongs.any(dim=0)
        shares = (belongs / belongs.sum(dim=1, keepdim=True).clamp(min=1))[:, in_words]
        pieces.append(Pieces({layer: states[layer][row][in_words] for layer in layers}, shares))
    return pieces


def default_layer(model: SentenceTransformer) -> int:
    """Two thirds of the way up: 8 of 12, where Jalili Sabet et al. 2020 found translations' words nearest."""
    return max(1, round(2 * len(backbone(model).layers) / 3))


def link_by_corpus(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], similarities: Sequence[Tensor]
) -> list[WordLinks]:
    r"""Links of all pairs, from the similarities of their words and from how often these are linked in other pairs.

    By the similarities each word chooses its partner among those of the other sentence, or none:
    :math:`p(i \mid j) \propto e^{s_{ij} / \tau}`. Over all pairs that gives expected counts of links, by them
    :math:`t(w \mid v)`, how often the word *v* goes with *w*; and :math:`p(i \mid j) \propto e^{s_{ij} / \tau} \,
    t(w_j \mid v_i)` makes new ones. So words that are near by chance are set right by the other pairs, and a word that
    is always translated by two keeps both. Both directions are learned apart; words are linked where the mean of both
    is above one half, then grown: a word without a link joins the link next to it if one direction would. A large
    corpus is counted in parts of :data:`WORD_PAIRS_AT_ONCE` pairs of words, in at most about 1.6 GB of memory.

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
    matrices = [matrix[: _count_encoded(matrix), : _count_encoded(matrix.T)] for matrix in similarities]
    sources = [words[: matrix.shape[0]] for words, matrix in zip(sources, matrices)]
    targets = [words[: matrix.shape[1]] for words, matrix in zip(targets, matrices)]
    part_of_pair = np.cumsum([matrix.numel() for matrix in matrices]) // WORD_PAIRS_AT_ONCE
    links: list[WordLinks] = []
    for part in np.unique(part_of_pair):
        pairs = np.flatnonzero(part_of_pair == part)
        links += _link_part(
            [sources[pair] for pair in pairs], [targets[pair] for pair in pairs], [matrices[pair] for pair in pairs]
        )
    return links


def _count_encoded(similarities: Tensor) -> int:
    """Count the words (rows) up to the last one that the encoder read, whose row is not all NaN."""
    encoded = (~similarities.isnan()).any(dim=1).nonzero()
    return int(encoded[-1]) + 1 if len(encoded) else 0


def _link_part(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], similarities: Sequence[Tensor]
) -> list[WordLinks]:
    """Return the links of pairs that are counted together."""
    shapes = [tuple(matrix.shape) for matrix in similarities]
    sizes = [rows * columns for rows, columns in shapes]
    if not any(sizes):
        return [[] for _ in shapes]

    # Every cell of every pair's matrix, one after the other: which words of the corpus it belongs to.
    starts = np.cumsum([(0, 0), *shapes], axis=0)
    cells = [np.indices(shape).reshape(2, -1) + start[:, None] for shape, start in zip(shapes, starts)]
    source_words, target_words = np.concatenate(cells, axis=1)
    cosines = np.concatenate([matrix.numpy().ravel() for matrix in similarities])
    prior = np.exp((np.nan_to_num(cosines, nan=-np.inf) - 1) / TEMPERATURE)

    # Pairs of word types are numbered as (source type, target type) in a matrix of ``width`` columns.
    source_types = _number_word_types(sources)
    target_types = _number_word_types(targets)
    width = target_types.max() + 1
    cell_type_pairs = source_types[source_words] * width + target_types[target_words]
    type_pairs, pair_of_cell = np.unique(cell_type_pairs, return_inverse=True)
    backward = _choice_probabilities(prior, source_words, source_types, pair_of_cell, type_pairs % width)
    forward = _choice_probabilities(prior, target_words, target_types, pair_of_cell, type_pairs // width)

    ends = np.cumsum(sizes)[:-1]
    links = []
    for shape, pair_forward, pair_backward in zip(shapes, np.split(forward, ends), np.split(backward, ends)):
        links.append(_grow_links(pair_forward.reshape(shape), pair_backward.reshape(shape)))
    return links


def _number_word_types(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Number each word of the corpus, equally for the same word without case and punctuation around it."""
    numbers: dict[str, int] = {}
    types = []
    for word in itertools.chain.from_iterable(sentences):
        types.append(numbers.setdefault(_strip_punctuation(word), len(numbers)))
    return np.array(types, np.int64)


def _strip_punctuation(word: str) -> str:
    """Return a word without case and without punctuation around it; of punctuation only, as it is."""
    letters = [index for index, character in enumerate(word) if unicodedata.category(character)[0] not in "PS"]
    return word[letters[0] : letters[-1] + 1].casefold() if letters else word


def _choice_probabilities(
    prior: np.ndarray, choosers: np.ndarray, types: np.ndarray, pair_of_cell: np.ndarray, chosen_types: np.ndarray
) -> np.ndarray:
    """Compute by expectation maximization, for each cell, the probability that its one word chooses the other.

    Args:
        prior: Prior probability of each cell, up to a factor. *Shape:* ``(cells,)``
        choosers: Each cell's word that chooses. *Shape:* ``(cells,)``
        types: The word type of each of these words. *Shape:* ``(words,)``
        pair_of_cell: Each cell's pair of word types. *Shape:* ``(cells,)``
        chosen_types: The word type that is chosen, of each pair of types. *Shape:* ``(pairs of types,)``
    """
    word_count = len(types)
    type_count = types.max() + 1
    prior_of_chooser = np.bincount(choosers, prior, word_count)
    share = (1 - NO_PARTNER) * prior / np.maximum(prior_of_chooser, 1e-30)[choosers]
    # How often two types go together, and a type with none; even before anything is counted.
    goes_with = np.ones(len(chosen_types))
    without_partner = np.ones(type_count)
    for iteration in range(ROUNDS + 1):
        # Expectation: each word's probabilities sum to one over its cells and having no partner.
        weight = share * goes_with[pair_of_cell]
        none = NO_PARTNER * without_partner[types]
        total = np.bincount(choosers, weight, word_count) + none
        weight = weight / total[choosers]
        none = none / total
        if iteration == ROUNDS:
            break
        # Maximization: counts of the chooser's type by the chosen one's, or by none; one more, evenly, for rare types.
        counts = np.bincount(pair_of_cell, weight)
        counts_of_chosen = np.bincount(chosen_types, counts)[chosen_types]
        goes_with = (counts + 1 / type_count) / (counts_of_chosen + 1)
        without_partner = (np.bincount(types, none) + 1 / type_count) / (none.sum() + 1)
    return weight


def _grow_links(forward: np.ndarray, backward: np.ndarray) -> WordLinks:
    """Link words where the mean of both probabilities is sure; then let words without a link join the next one."""
    linked = (forward + backward) / 2 > SURE
    likely = np.maximum(forward, backward) > LIKELY
    while True:
        padded = np.pad(linked, 1)
        has_neighbor = padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
        is_free = ~linked.any(axis=1, keepdims=True) | ~linked.any(axis=0, keepdims=True)
        joining = likely & has_neighbor & is_free & ~linked
        if not joining.any():
            return [(i, j) for i, j in np.argwhere(linked).tolist()]
        linked |= joining
