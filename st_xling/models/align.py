"""Align the words of translations by the token states of an encoder, without training or a second model.

The method ``"corpus"`` also counts which words go together over all pairs.
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

#: Factor on the similarity of two words of which one is already linked, in the second round of itermax.
DISCOUNT = 0.9

#: Scripts without spaces between words, by the prefix of their characters' Unicode names: each character is a word.
_UNSPACED_SCRIPTS = ("CJK UNIFIED", "CJK COMPATIBILITY", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")

# Constants of the method "corpus", chosen on 200 phrasebook pairs of each of five languages with English. No reported
# figure uses these pairs.
TEMPERATURE = 0.1  # of the softmax over cosines
NO_PARTNER = 0.2  # prior probability that a word has no partner
ROUNDS = 3  # of expectation maximization
SURE = 0.5  # two words are linked if the mean probability of both directions is above this
LIKELY = 0.4  # a word joins the link next to it if the probability of one direction is above this

#: Pairs of words that are counted at once, which limits the memory: about 40,000 sentence pairs of 20 words.
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
    """Link the words that are translations of each other in each pair of sentences.

    Words are compared by their tokens, here called pieces, see :func:`piece_similarities`.

    Args:
        model: An encoder with a fast tokenizer.
        sources: Sentences, which :func:`split_words` splits, or lists of their words.
        targets: Translation of each source, in the same form.
        method: One of:

            - ``"intersection"`` links two words if a piece of the first and a piece of the second are each other's
              nearest.
            - ``"itermax"`` links two words that are each other's nearest, by their most similar pieces. A second round
              adds links, with lower similarities for a word that is already linked, and none between two such words:
              recall rises, precision falls. (SimAlign skips this round if a side has at most two words, or all its
              words are linked.)
            - ``"corpus"`` also counts which words go together over all pairs of the call, and which have no partner,
              see :func:`link_by_corpus`. Use it for a few hundred pairs or more.
        layer: Layer whose token states are compared, counted from 1. Defaults to two thirds of the way up, such as 8 of
            12, where translated words are nearest to each other; the last layers serve the sentence embedding.
        batch_size: Maximum number of pairs that are encoded together.
        show_progress_bar: Whether to show a progress bar on stderr.

    Returns:
        Sorted links ``(source word, target word)`` of each pair, counted from 0. A word beyond the model's maximum
        length has no link.

    Raises:
        ValueError: If the numbers of sentences differ, or the encoder does not have the layer.

    Source:
        Jalili Sabet et al. 2020, SimAlign, section 2 (Argmax and Itermax); for "corpus" see :func:`link_by_corpus`.

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
    """Align words by each of several layers, in one pass of the encoder, see :func:`align_words`.

    Returns:
        Layer → links of each pair.
    """
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
    """Compute the similarity of every source word to every target word, for each pair of sentences.

    Args, Raises: As in :func:`align_words`.

    Returns:
        For each pair, the maximum of :func:`piece_similarities` over the pieces of two words, in float32; NaN for a
        word beyond the model's maximum length. *Shape:* ``(source words, target words)``

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
    """Tokens of the words of a sentence.

    Attributes:
        states: Layer → token states in float32, on the CPU. *Shape:* ``(pieces, hidden)``
        shares: Weights by which each word is the mean of its pieces: 1 / the number of its pieces, and 0 for the pieces
            of other words. *Shape:* ``(words, pieces)``
    """

    states: dict[int, Tensor]
    shares: Tensor


def piece_similarities(source: Pieces, target: Pieces, layer: int) -> Tensor:
    """Compute the mean of the cosine of two pieces and the cosine of their words.

    The pieces can link a part of a compound to what another language writes as a separate word; the words, as the means
    of their pieces, prevent links that a single piece would make by chance. On English–French and Chinese–English gold
    the mean is at least as good as either of them.

    Args:
        source: Pieces of a sentence.
        target: Pieces of its translation.
        layer: Layer whose states are compared.

    Returns:
        Similarities in [-1, 1]. *Shape:* ``(source pieces, target pieces)``
    """
    source_states = source.states[layer]
    target_states = target.states[layer]
    piece_cosines = _cosines(source_states, target_states)
    word_cosines = _cosines(source.shares @ source_states, target.shares @ target_states)
    cosines_of_their_words = _word_weights(source).T @ word_cosines @ _word_weights(target)
    return (piece_cosines + cosines_of_their_words) / 2


def _word_weights(pieces: Pieces) -> Tensor:
    """Return weights for the mean over the words of each piece. *Shape:* ``(words, pieces)``

    A piece has several words where they are written without spaces, such as two Chinese characters.
    """
    is_in_word = pieces.shares > 0
    return is_in_word / is_in_word.sum(dim=0)


def _cosines(source: Tensor, target: Tensor) -> Tensor:
    """Compute the cosines of all rows of two matrices."""
    return F.normalize(source, dim=1) @ F.normalize(target, dim=1).T


def nearest_piece_similarities(source: Pieces, target: Pieces, layer: int) -> Tensor:
    """Return the similarity of the nearest pieces of two words, see :func:`word_similarities`."""
    similarities = piece_similarities(source, target, layer)
    similarities = _max_over_pieces(similarities, source)
    return _max_over_pieces(similarities.T, target).T


def _max_over_pieces(similarities: Tensor, pieces: Pieces) -> Tensor:
    """Reduce a row per piece to a row per word: the maximum of its pieces, or NaN if the encoder did not read it."""
    rows = []
    for is_in_word in pieces.shares > 0:
        if is_in_word.any():
            rows.append(similarities[is_in_word].amax(dim=0))
        else:
            rows.append(similarities.new_full(similarities.shape[1:], torch.nan))
    return torch.stack(rows) if rows else similarities.new_empty(0, similarities.shape[1])


def _compare_pairs(
    model: SentenceTransformer,
    sources: Sentences,
    targets: Sentences,
    layers: Sequence[int],
    compare: Callable[[Pieces, Pieces, int], T],
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> dict[int, list[T]]:
    """Call ``compare`` on each pair and layer; return layer → results of all pairs."""
    if len(sources) != len(targets):
        raise ValueError(f"sources and targets must be row-aligned: got {len(sources)} and {len(targets)} sentences.")
    texts = [text if isinstance(text, str) else " ".join(text) for text in (*sources, *targets)]
    check_texts(model, texts)
    warn_of_truncated(count_truncated(model, texts, ""), len(texts), model)
    results: dict[int, list[Any]] = {layer: [None] * len(sources) for layer in layers}
    # Pairs of similar length are encoded together, which saves padding.
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
    """Split the sentences that are not yet lists of words."""
    return [split_words(text) if isinstance(text, str) else text for text in sentences]


def split_words(text: str) -> list[str]:
    """Split a text at spaces; each punctuation mark and each character of a script without spaces is a word of its own.

    Example:
        >>> split_words("Er kam, sah – und 说你好。")
        ['Er', 'kam', ',', 'sah', '–', 'und', '说', '你', '好', '。']
        >>> split_words("1.234,5 um 16:30.")
        ['1.234,5', 'um', '16:30', '.']
    """
    words: list[str] = []
    in_word = False  # whether a letter or digit that comes next belongs to the last word
    for position, character in enumerate(text):
        if character.isspace():
            in_word = False
            continue
        category = unicodedata.category(character)[0]
        following = text[position + 1 : position + 2]
        # Three kinds of characters do not end a word: combining accents and vowel signs, apostrophes and hyphens
        # between letters or digits, and separators between digits.
        is_mark = category == "M"
        is_joiner = character in "'’-‐" and in_word and following.isalnum()
        is_in_number = character in ".,:٫٬" and in_word and words[-1][-1].isdigit() and following.isdigit()
        is_inside = is_mark or is_joiner or is_in_number
        is_unspaced = unicodedata.name(character, "").startswith(_UNSPACED_SCRIPTS)
        is_single = not is_inside and (category in "PS" or is_unspaced)  # punctuation and symbols
        if words and (is_inside or (in_word and not is_single)):
            words[-1] += character
        else:
            words.append(character)
        in_word = not is_single
    return words


def word_spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Find the start and end in a text of each word that :func:`split_words` returned for it.

    Example:
        >>> word_spans("Er kam,  sah.", ["Er", "kam", ",", "sah", "."])
        [(0, 2), (3, 6), (6, 7), (9, 12), (12, 13)]
    """
    spans = []
    end = 0
    for word in words:
        # A combining accent after a space was joined to the word before it: that word is not found as it is.
        begin = max(text.find(word, end), end)
        end = min(begin + len(word), len(text))
        spans.append((begin, end))
    return spans


def link_words(source: Pieces, target: Pieces, layer: int, *, method: AlignmentMethod = "itermax") -> WordLinks:
    """Link the words of one pair of sentences, by ``"itermax"`` or ``"intersection"``, see :func:`align_words`."""
    if not source.shares.numel() or not target.shares.numel():
        return []
    # Similarities from 0 to 1, so that a discount always lowers them.
    if method == "intersection":
        linked_pieces = _nearest_to_each_other((1 + piece_similarities(source, target, layer)) / 2)
        linked = source.shares @ linked_pieces.float() @ target.shares.T > 0  # if any of their pieces are
    else:
        similarities = ((1 + nearest_piece_similarities(source, target, layer)) / 2).nan_to_num(0.0)
        linked = _nearest_to_each_other(similarities)
        # The second round: lower similarities if one word is linked, zero if both are.
        linked_sources = linked.any(dim=1, keepdim=True)
        linked_targets = linked.any(dim=0, keepdim=True)
        factors = torch.where(linked_sources | linked_targets, DISCOUNT, 1.0)
        factors = factors.masked_fill(linked_sources & linked_targets, 0.0)
        linked |= _nearest_to_each_other(factors * similarities)
    return [(i, j) for i, j in linked.nonzero().tolist()]


def _nearest_to_each_other(similarities: Tensor) -> Tensor:
    """Return which similarities are positive, and the highest of both their row and their column."""
    forward = torch.zeros_like(similarities, dtype=torch.bool)
    forward.scatter_(1, similarities.argmax(dim=1, keepdim=True), True)
    backward = torch.zeros_like(similarities, dtype=torch.bool)
    backward.scatter_(0, similarities.argmax(dim=0, keepdim=True), True)
    return forward & backward & (similarities > 0)


@torch.inference_mode()
def read_pieces(model: SentenceTransformer, texts: Sentences, layers: Sequence[int]) -> list[Pieces]:
    """Encode one batch of sentences, and return the pieces of each, without special tokens.

    A word beyond the model's maximum length has no pieces.

    Args:
        model: An encoder.
        texts: Sentences, or lists of their words.
        layers: Layers whose states are returned, counted from 1.

    Raises:
        ValueError: If the encoder does not have a layer.
    """
    parts = backbone(model)
    for layer in layers:
        check_layer(model, layer)
    # Sentences are tokenized as a whole, as in training: a token of Chinese may be a word, which :func:`split_words`
    # splits into characters.
    are_sentences = all(isinstance(text, str) for text in texts)
    words_of_texts = _words_of_sentences(texts)
    batch: list[Any] = list(texts)
    if not are_sentences:
        # The tokenizer takes no empty list; what stands for one belongs to no word below.
        batch = [list(words) or ["."] for words in words_of_texts]
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
    for row, words in enumerate(words_of_texts):
        # Which token belongs to which word. *Shape:* ``(words, tokens)``
        if are_sentences:
            spans = torch.tensor(word_spans(str(texts[row]), words)).reshape(-1, 1, 2)
            word_begin, word_end = spans[..., 0], spans[..., 1]
            token_begin, token_end = features["offset_mapping"][row].T
            belongs = torch.minimum(word_end, token_end) > torch.maximum(word_begin, token_begin)  # they overlap
        else:
            word_of_token = [-1 if word is None else word for word in features.word_ids(row)]
            belongs = torch.tensor(word_of_token)[None] == torch.arange(len(words))[:, None]
        in_words = belongs.any(dim=0)
        shares = (belongs / belongs.sum(dim=1, keepdim=True).clamp(min=1))[:, in_words]
        pieces.append(Pieces({layer: states[layer][row][in_words] for layer in layers}, shares))
    return pieces


def default_layer(model: SentenceTransformer) -> int:
    """Return the layer two thirds of the way up: 8 of 12, where Jalili Sabet et al. 2020 found the best links."""
    return max(1, round(2 * len(backbone(model).layers) / 3))


def link_by_corpus(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], similarities: Sequence[Tensor]
) -> list[WordLinks]:
    r"""Link words by their similarities, and by how often the same words are linked in other pairs.

    1. Each word *j* chooses a partner *i* in the other sentence, or none, by the similarities:
       :math:`p(i \mid j) \propto e^{s_{ij} / \tau}`.
    2. The sums of these probabilities over all pairs give :math:`t(w \mid v)`, how often the word *v* is chosen by *w*.
    3. Each word chooses again, now by :math:`p(i \mid j) \propto e^{s_{ij} / \tau} \, t(w_j \mid v_i)`. Steps 2 and 3
       are repeated.

    So the other pairs correct words that are similar by chance, and a word that is always translated by two words keeps
    both. Both directions are learned separately. Two words are linked if the mean of their two probabilities is above
    one half; then links grow: a word without a link joins the link next to it if one direction finds it likely.

    A large corpus is counted in parts of :data:`WORD_PAIRS_AT_ONCE` pairs of words, in at most about 1.6 GB of memory.

    Args:
        sources: Words of each source.
        targets: Words of each target.
        similarities: Similarities of the words of each pair, see :func:`~st_xling.models.word_similarities`; NaN for a
            word that the encoder did not read. *Shape:* each ``(source words, target words)``

    Returns:
        Sorted links ``(source word, target word)`` of each pair.

    Source:
        Brown et al. 1993, The Mathematics of Statistical Machine Translation, section 4.2 (model 1, here with a prior);
        Koehn et al. 2003, Statistical Phrase-Based Translation, section 3.1 (growing).
    """
    # Words beyond the encoder's maximum length have no similarities and no links.
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
    """Count the rows (words) up to the last one that is not all NaN, which is the last word that the encoder read."""
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

    # The cells of all matrices one after the other, each with its source and target word. Words are numbered over all
    # pairs; ``starts`` has the numbers of the first source and target word of each pair.
    starts = np.cumsum([(0, 0), *shapes], axis=0)
    cells = [np.indices(shape).reshape(2, -1) + start[:, None] for shape, start in zip(shapes, starts)]
    source_words, target_words = np.concatenate(cells, axis=1)
    cosines = np.concatenate([matrix.numpy().ravel() for matrix in similarities])
    prior = np.exp((np.nan_to_num(cosines, nan=-np.inf) - 1) / TEMPERATURE)

    # A type stands for all occurrences of a word; a pair of types is the number of a cell in ``width`` columns.
    source_types = _number_word_types(sources)
    target_types = _number_word_types(targets)
    width = target_types.max() + 1
    cell_type_pairs = source_types[source_words] * width + target_types[target_words]
    type_pairs, type_pair_of_cell = np.unique(cell_type_pairs, return_inverse=True)
    backward = _choice_probabilities(prior, source_words, source_types, type_pair_of_cell, type_pairs % width)
    forward = _choice_probabilities(prior, target_words, target_types, type_pair_of_cell, type_pairs // width)

    ends = np.cumsum(sizes)[:-1]
    links = []
    for shape, pair_forward, pair_backward in zip(shapes, np.split(forward, ends), np.split(backward, ends)):
        links.append(_grow_links(pair_forward.reshape(shape), pair_backward.reshape(shape)))
    return links


def _number_word_types(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the type of each word: a number that words share if only case or surrounding punctuation differs."""
    numbers: dict[str, int] = {}
    types = []
    for word in itertools.chain.from_iterable(sentences):
        types.append(numbers.setdefault(_strip_punctuation(word), len(numbers)))
    return np.array(types, np.int64)


def _strip_punctuation(word: str) -> str:
    """Return a word casefolded and without surrounding punctuation; a word of punctuation alone is unchanged."""
    letters = [index for index, character in enumerate(word) if unicodedata.category(character)[0] not in "PS"]
    return word[letters[0] : letters[-1] + 1].casefold() if letters else word


def _choice_probabilities(
    prior: np.ndarray, choosers: np.ndarray, types: np.ndarray, type_pair_of_cell: np.ndarray, chosen_types: np.ndarray
) -> np.ndarray:
    """Compute by expectation maximization, for each cell, the probability that one of its words chooses the other.

    Args:
        prior: Prior probability of each cell, unnormalized. *Shape:* ``(cells,)``
        choosers: Number of the word that chooses, for each cell. *Shape:* ``(cells,)``
        types: Type of each word that chooses. *Shape:* ``(words,)``
        type_pair_of_cell: Index of the pair of types of each cell. *Shape:* ``(cells,)``
        chosen_types: Type that is chosen, for each pair of types. *Shape:* ``(pairs of types,)``
    """
    word_count = len(types)
    type_count = types.max() + 1
    prior_of_chooser = np.bincount(choosers, prior, word_count)
    prior = (1 - NO_PARTNER) * prior / np.maximum(prior_of_chooser, 1e-30)[choosers]
    # How often two types go together, and how often a type has no partner. Both are uniform at first.
    goes_with = np.ones(len(chosen_types))
    without_partner = np.ones(type_count)
    for iteration in range(ROUNDS + 1):
        # Expectation: the probabilities of a word's cells and of no partner sum to one.
        chosen = prior * goes_with[type_pair_of_cell]
        none = NO_PARTNER * without_partner[types]
        total = np.bincount(choosers, chosen, word_count) + none
        chosen = chosen / total[choosers]
        none = none / total
        if iteration == ROUNDS:
            break
        # Maximization: how often each chosen type, or none, goes with each type. One count, shared by all types, is
        # added, so that rare types are not certain.
        counts = np.bincount(type_pair_of_cell, chosen)
        counts_of_chosen = np.bincount(chosen_types, counts)[chosen_types]
        goes_with = (counts + 1 / type_count) / (counts_of_chosen + 1)
        without_partner = (np.bincount(types, none) + 1 / type_count) / (none.sum() + 1)
    return chosen


def _grow_links(forward: np.ndarray, backward: np.ndarray) -> WordLinks:
    """Link words whose mean probability is above ``SURE``, then let unlinked words join the links next to them."""
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
