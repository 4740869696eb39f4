"""Align the sentences of a document and its translation, in order.

Neighboring sentences are embedded together, as one text, so that one vector represents a group of them; a dynamic
program then chooses the groups that belong together, as Vecalign does (Thompson and Koehn 2019, "Vecalign: Improved
Sentence Alignment in Linear Time and Space"). The distance of two groups is normalized by their distances from random
ones (section 3.2), and long documents are first aligned in coarse chunks, then near that path (section 3.3).

The cost of a group differs from the paper's, which multiplies the distance by the product of the two sizes, and so
prices two pairs of two sentences like four single pairs. Here the distance counts once for each sentence (half on
either side), each merge has a price of its own, lengths should agree, and a longer passage without a translation costs
less than its sentences one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from st_xling.utils.languages import hub_language
from st_xling.utils.options import require
from st_xling.utils.text import is_blank

_WITHOUT_SPACES = re.compile(
    r"(?<=[\u0e00-\u0eff\u3000-\u9fff\uff00-\uff60])\s*\n\s*(?=[\u0e00-\u0eff\u3000-\u9fff\uff00-\uff60])"
)
"""A line end inside Thai, Lao, Chinese or Japanese, which have no spaces between words."""

# Prices in units of the distance of two random sentences, chosen on one document of the yearbooks of the Swiss Alpine
# Club (468 German and 554 French lines) with multilingual-e5-small.
MERGE = 0.25  # each sentence of a group beyond one and one
PARAGRAPH = 0.25  # each paragraph mark inside a group
LENGTH = 0.4  # times the squared logarithm of the ratio of lengths
GAP = 0.7  # a passage without translation
UNPAIRED = 0.4  # each sentence in it
# Chunks of different cuts are less alike than translations: in coarse alignments, gaps are cheap.
COARSE_GAP = 0.0
COARSE_UNPAIRED = 0.45

# Documents of more cells are aligned near the path of a coarser alignment.
EXHAUSTIVE_CELLS = 2_000_000
_ROWS_AT_ONCE = 64
_SHORT = 200
_MUCH_SHORTER = 4
_TINY = 1e-9

Shape = tuple[int, int]
Means = tuple[np.ndarray | None, np.ndarray | None]


class SentenceGroup(NamedTuple):
    """Neighboring sentences of one document, and their translation in the other.

    Attributes:
        source: Indices of source sentences, counted from 0; empty if the target sentence has no partner.
        target: Indices of target sentences.
        score: 1 for equal vectors, about 0 for sentences that have nothing to do with each other; 0 without a partner.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    score: float


def check_max_size(max_size: int) -> None:
    """Raise ``ValueError`` for a maximum size of groups below one sentence of each side."""
    if max_size < 2:
        raise ValueError(f"max_size must be at least 2, one sentence of each side: got {max_size}.")


def overlap_texts(sentences: Sequence[str], max_size: int) -> list[str]:
    """Join each 1, 2, … neighboring sentences of a document, as they are embedded.

    Args:
        sentences: Sentences of a document; blank ones are left out.
        max_size: As for :func:`align_documents`: the longest texts are one sentence shorter.
    Returns:
        All single sentences, then all pairs, and so on.
    Example:
        >>> overlap_texts(["a", "b", "c"], max_size=3)
        ['a', 'b', 'c', 'a b', 'b c']
    """
    texts = [sentence for sentence in sentences if not is_blank(sentence)]
    sizes = range(1, min(max_size - 1, len(texts)) + 1)
    return [" ".join(texts[start : start + size]) for size in sizes for start in range(len(texts) - size + 1)]


@dataclass(frozen=True)
class DocumentSide:
    """Sentences of a document with the vectors of its groups.

    Attributes:
        vectors: Unit vectors of the groups of 1, 2, … sentences, by their first one. *Shapes:* ``(starts, dim)``
        lengths: Number of characters of each sentence. *Shape:* ``(sentences,)``
        marks: Whether a paragraph begins with the sentence. *Shape:* ``(sentences,)``
        rows: Row of each sentence in its document, where blank rows mark paragraphs.
    """

    vectors: Sequence[np.ndarray]
    lengths: np.ndarray
    marks: np.ndarray
    rows: Sequence[int]

    @classmethod
    def of(cls, sentences: Sequence[str], embeddings: np.ndarray, max_size: int) -> DocumentSide:
        """Return a document with the vectors of its :func:`overlap_texts`.

        Raises:
            ValueError: If there is another number of vectors.
        """
        rows = [row for row, sentence in enumerate(sentences) if not is_blank(sentence)]
        lengths = np.array([len(sentences[row]) for row in rows], dtype=int)
        marks = np.array([row > 0 and is_blank(sentences[row - 1]) for row in rows], dtype=bool)
        counts = [len(rows) - size + 1 for size in range(1, min(max_size - 1, len(rows)) + 1)]
        vectors = np.asarray(embeddings, dtype=np.float32)
        if rows and (vectors.ndim != 2 or len(vectors) != sum(counts)):
            raise ValueError(
                f"expected {sum(counts):,} vectors for {len(rows):,} sentences, those of overlap_texts(sentences, "
                f"{max_size}), got an array of shape {vectors.shape}."
            )
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), _TINY)
        return cls(np.split(vectors, np.cumsum(counts)[:-1]), lengths, marks, rows)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def sizes(self) -> range:
        """Numbers of sentences of its groups."""
        return range(1, len(self.vectors) + 1)

    def halved(self) -> DocumentSide:
        """Join each two neighboring sentences, whose vectors are averaged."""
        single = self.vectors[0]
        pairs = np.add.reduceat(single, np.arange(0, len(single), 2))
        pairs /= np.maximum(np.linalg.norm(pairs, axis=1, keepdims=True), _TINY)
        lengths = np.add.reduceat(self.lengths, np.arange(0, len(self), 2))
        return DocumentSide([pairs], lengths, np.zeros(len(pairs), dtype=bool), range(len(pairs)))


def align_documents(
    source_sentences: Sequence[str],
    target_sentences: Sequence[str],
    model: Any = None,
    *,
    source_embeddings: np.ndarray | None = None,
    target_embeddings: np.ndarray | None = None,
    max_size: int = 8,
    prompt: str | None = None,
    batch_size: int | None = None,
    device: str | None = None,
) -> list[SentenceGroup]:
    """Align the sentences of a document with those of its translation, in order.

    Each sentence is in one group: with its translation, where up to ``max_size`` sentences of both sides belong
    together, or alone, if it has none. Time and memory grow linearly for long documents. Sentences that are empty
    mark paragraphs, across which groups are less likely; they are in no group.

    Args:
        source_sentences: Sentences or paragraphs of a document, in order.
        target_sentences: Those of its translation.
        model: Encoder: a ``SentenceTransformer``, or the Hub id or folder of one. Not needed with embeddings.
        source_embeddings: Vectors of ``overlap_texts(sentences, max_size)``, of the sentences that are not empty.
            *Shape:* ``(overlaps, dim)``
        target_embeddings: The same of the target.
        max_size: Maximum number of sentences of both sides in a group, at least 2. Larger groups take more embedding:
            one sentence is encoded ``max_size * (max_size - 1) / 2`` times.
        prompt: Text put before every sentence, such as ``"query: "``.
        batch_size: Maximum number of texts in a batch.
        device: Device to embed on; by default a GPU if there is one.
    Returns:
        Groups in the order of the source; a sentence without partner stays in the order of its own document.
    Raises:
        ValueError: If neither a model nor both embeddings are given, or embeddings have another number of rows.
    Example:
        >>> align_documents(german, french, "intfloat/multilingual-e5-small", prompt="query: ")  # doctest: +SKIP
        [SentenceGroup(source=(0,), target=(0,), score=0.81), SentenceGroup(source=(1, 2), target=(1,), score=0.74), …]
    """
    check_max_size(max_size)
    if model is None and (source_embeddings is None or target_embeddings is None):
        raise ValueError("expected a model, or source_embeddings and target_embeddings; got neither.")
    encoder: Any = None
    if model is not None:
        from st_xling.mining.encoding import Encoder

        encoder = Encoder(model, prompt=prompt, batch_size=batch_size, device=device)
    sides: list[DocumentSide] = []
    for sentences, embeddings in ((source_sentences, source_embeddings), (target_sentences, target_embeddings)):
        if embeddings is None:
            texts = overlap_texts(sentences, max_size)
            embeddings = encoder.vectors(texts) if texts else np.empty((0, 0))
        sides.append(DocumentSide.of(sentences, embeddings, max_size))
    return align_sides(*sides, max_size=max_size)


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """Split a document into sentences, with an empty one between paragraphs, as :func:`align_documents` takes them.

    Paragraphs have blank lines between them, so that wrapped lines are joined; without any, each line is one.

    Args:
        text: The document.
        language: Its language, whose abbreviations are known; English by default.
    Raises:
        ValueError: If sentencex, which splits, is not installed.
    Example:
        >>> split_sentences("Dr. Weiß kam. Sie\\nblieb.\\n\\nEs war spät.", "de")
        ['Dr. Weiß kam.', 'Sie blieb.', '', 'Es war spät.']
    """
    segment = require("sentencex", "splitting sentences", extra="split").segment
    lines = text.strip().splitlines()
    blank = any(not line.strip() for line in lines)
    paragraphs = re.split(r"\n(?:\s*\n)+", "\n".join(lines)) if blank else lines
    sentences: list[str] = []
    for paragraph in paragraphs:
        if sentences:
            sentences.append("")
        unwrapped = _WITHOUT_SPACES.sub("", paragraph)
        found = segment(hub_language(language or "en"), " ".join(unwrapped.split()))
        sentences += [sentence.strip() for sentence in found if sentence.strip()]
    return sentences


def align_sides(
    source: DocumentSide, target: DocumentSide, *, max_size: int, means: Means = (None, None)
) -> list[SentenceGroup]:
    """Align two documents by the vectors of their groups.

    Args:
        source: Source document.
        target: Target document.
        max_size: Maximum number of sentences of both sides in a group.
        means: Mean vectors of many source and many target sentences, which stand for random ones; by default those of
            these documents are used.
    """
    if not len(source) or not len(target):
        alone = [SentenceGroup((row,), (), 0.0) for row in source.rows]
        return alone + [SentenceGroup((), (row,), 0.0) for row in target.rows]
    shapes = [(n, m) for n, m in product(source.sizes, target.sizes) if n + m <= max_size]
    band = _band(source, target, margin=2 * max_size)
    costs = _GroupCosts(source, target, means=means, log_ratio=_log_length_ratio(source, target, band))
    groups = []
    for i, j, n, m in _cheapest_path(costs, shapes, band):
        score = costs.score(i, j, n, m) if n and m else 0.0
        groups.append(SentenceGroup(tuple(source.rows[i : i + n]), tuple(target.rows[j : j + m]), score))
    return groups


class _Band(NamedTuple):
    """Cells of a search: for each number of source sentences, the least and greatest number of target sentences."""

    first: np.ndarray
    last: np.ndarray


def _band(source: DocumentSide, target: DocumentSide, margin: int) -> _Band:
    """Return all cells of short documents, those near a coarser alignment of long ones."""
    rows, columns = len(source) + 1, len(target) + 1
    if rows * columns <= EXHAUSTIVE_CELLS:
        return _Band(np.zeros(rows, dtype=np.int64), np.full(rows, columns - 1))
    coarse = source.halved(), target.halved()
    inner = _band(*coarse, margin)
    costs = _GroupCosts(*coarse)
    path = _cheapest_path(costs, [(1, 1)], inner, gap_price=COARSE_GAP, unpaired_price=COARSE_UNPAIRED)
    first, last = np.full(len(coarse[0]) + 1, columns), np.zeros(len(coarse[0]) + 1, dtype=np.int64)
    for i, j, n, m in [*path, (len(coarse[0]), len(coarse[1]), 0, 0)]:
        for row, column in ((i, j), (i + n, j + m)):
            first[row], last[row] = min(first[row], 2 * column), max(last[row], 2 * column)
    fine = np.arange(rows)
    before = np.maximum(fine - margin, 0) // 2
    after = np.minimum((fine + margin + 1) // 2, len(coarse[0]))
    return _Band(np.clip(first[before] - margin, 0, columns - 1), np.clip(last[after] + margin, 0, columns - 1))


def _log_length_ratio(source: DocumentSide, target: DocumentSide, band: _Band) -> float:
    """Return the logarithm of the usual ratio of lengths: the median of lines that are each other's nearest."""
    nearest = np.zeros(len(source), dtype=np.int64)
    best, of_target = np.full(len(target), -np.inf), np.zeros(len(target), dtype=np.int64)
    for start in range(0, len(source), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(source))
        first, last = band.first[start], max(int(band.last[stop]), int(band.first[start]) + 1)
        cosines = source.vectors[0][start:stop] @ target.vectors[0][first:last].T
        nearest[start:stop] = first + cosines.argmax(axis=1)
        rows = cosines.argmax(axis=0)
        values = cosines[rows, np.arange(cosines.shape[1])]
        better = values > best[first:last]
        best[first:last][better] = values[better]
        of_target[first:last][better] = start + rows[better]
    mutual = np.flatnonzero(of_target[nearest] == np.arange(len(source)))
    return float(np.median(np.log((source.lengths[mutual] + 1) / (target.lengths[nearest[mutual]] + 1))))


class _GroupCosts:
    """Costs of pairs of groups, by the cells where they end."""

    def __init__(
        self, source: DocumentSide, target: DocumentSide, *, means: Means = (None, None), log_ratio: float = 0.0
    ) -> None:
        self.source, self.target = source, target
        self.random = [
            [_random_distances(vectors, other if len(other) > 1 else side, mean) for vectors in side.vectors]
            for side, other, mean in zip((source, target), (target, source), means[::-1])
        ]
        self.log_lengths = [
            [np.log(sliding_window_view(side.lengths + 1, size).sum(axis=1)) - shift for size in side.sizes]
            for side, shift in ((source, log_ratio), (target, 0.0))
        ]
        # Marks inside a group: not that of its first sentence.
        self.marks = [
            [sliding_window_view(side.marks, size)[:, 1:].sum(axis=1) for size in side.sizes]
            for side in (source, target)
        ]

    def distances(self, rows: slice, columns: slice, n: int, m: int) -> np.ndarray:
        """Return the distances of groups, by their first sentences; 1 is that of random ones."""
        cosines = self.source.vectors[n - 1][rows] @ self.target.vectors[m - 1][columns].T
        random = self.random[0][n - 1][rows][:, None] + self.random[1][m - 1][columns]
        return (1 - cosines) / np.maximum(random / 2, _TINY)

    def score(self, i: int, j: int, n: int, m: int) -> float:
        return min(1.0, 1 - float(self.distances(slice(i, i + 1), slice(j, j + 1), n, m)[0, 0]))

    def block(self, rows: slice, columns: slice, shape: Shape) -> np.ndarray:
        """Return the costs of groups that end in a block of cells; infinite where they would begin outside."""
        n, m = shape
        costs = np.full((rows.stop - rows.start, columns.stop - columns.start), np.inf)
        i, j = slice(max(rows.start - n, 0), rows.stop - n), slice(max(columns.start - m, 0), columns.stop - m)
        if i.stop <= i.start or j.stop <= j.start:
            return costs
        found = (n + m) / 2 * self.distances(i, j, n, m) + MERGE * (n + m - 2)
        found += LENGTH * (self.log_lengths[0][n - 1][i][:, None] - self.log_lengths[1][m - 1][j]) ** 2
        found += PARAGRAPH * (self.marks[0][n - 1][i][:, None] + self.marks[1][m - 1][j])
        costs[costs.shape[0] - found.shape[0] :, costs.shape[1] - found.shape[1] :] = found
        return costs


def _random_distances(vectors: np.ndarray, other: DocumentSide, mean: np.ndarray | None) -> np.ndarray:
    """Return the mean distance of groups from random sentences of the other side. *Shape:* ``(starts,)``

    The mean of ``1 - x @ y`` over ``y`` is ``1 - x @ mean(y)``. In a short document the nearest sentence, which is
    probably the translation, would count for much: it is ignored.
    """
    if mean is not None:
        return np.asarray(1 - vectors @ mean)
    if len(other) > _SHORT:
        return np.asarray(1 - vectors @ other.vectors[0].mean(axis=0))
    if len(other) == 1:  # one sentence a side has no random ones: as if they were at right angles
        return np.ones(len(vectors))
    cosines = vectors @ other.vectors[0].T
    return np.asarray(1 - (cosines.sum(axis=1) - cosines.max(axis=1)) / (len(other) - 1))


def _cheapest_path(
    costs: _GroupCosts,
    shapes: Sequence[Shape],
    band: _Band,
    *,
    gap_price: float = GAP,
    unpaired_price: float = UNPAIRED,
) -> list[tuple[int, int, int, int]]:
    """Find the cheapest sequence of groups and gaps through the cells of a band.

    Row ``i`` of the program has the cells that ``i`` source sentences reach. Each has two values: the cost if a group
    ends there, and the cost inside a gap, which has been opened and grows by a sentence of either side.

    Returns:
        Groups and unpaired sentences in order: first sentences and sizes of both sides.
    """
    rows, columns = len(costs.source) + 1, len(costs.target) + 1
    depth = max(n for n, _ in shapes) + 1
    # The last rows only, as a ring; outside the band they are infinite.
    best = np.full((depth, columns), np.inf)
    gap = np.full((2, columns), np.inf)
    # Where one document is much shorter, most of the other is without a translation, wherever the short one belongs.
    edge_price = gap_price * min(1.0, _MUCH_SHORTER * min(rows, columns) / max(rows, columns))
    opening = np.full(columns, gap_price)
    opening[[0, -1]] = edge_price
    moves: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    along = np.arange(columns) * unpaired_price
    blocks: Mapping[Shape, np.ndarray] = {}
    begin = left = 0
    for i in range(rows):
        if i % _ROWS_AT_ONCE == 0:
            begin, left = i, int(band.first[i])
            stop = min(i + _ROWS_AT_ONCE, rows)
            right = int(band.last[stop - 1]) + 1
            blocks = {shape: costs.block(slice(i, stop), slice(left, right), shape) for shape in shapes}
        low, high = int(band.first[i]), int(band.last[i]) + 1
        ends = np.full(high - low, np.inf)
        if i == 0 and low == 0:
            ends[0] = 0.0
        shape_of = np.zeros(high - low, dtype=np.uint8)
        for number, (n, m) in enumerate(shapes):
            skip = max(m - low, 0)
            if n > i or skip >= high - low:
                continue
            reached = best[(i - n) % depth, low + skip - m : high - m]
            reached = reached + blocks[n, m][i - begin, low + skip - left : high - left]
            cheaper = reached < ends[skip:]
            ends[skip:][cheaper] = reached[cheaper]
            shape_of[skip:][cheaper] = number
        inside = ends + (opening[low:high] if 0 < i < rows - 1 else edge_price)
        step = np.zeros(high - low, dtype=np.uint8)
        if i:
            from_above = gap[(i - 1) % 2, low:high] + unpaired_price
            above = from_above < inside
            inside[above] = from_above[above]
            step[above] = 1
        # A gap that grows along the row: running minimum of what is left after the steps.
        from_left = np.minimum.accumulate(inside - along[low:high]) + along[low:high]
        grown = from_left < inside - _TINY
        inside[grown] = from_left[grown]
        step[grown] = 2
        best[i % depth] = gap[i % 2] = np.inf
        gap[i % 2, low:high] = inside
        best[i % depth, low:high] = np.minimum(ends, inside)
        moves.append((shape_of, step, inside < ends))

    path, i, j = [], rows - 1, columns - 1
    in_gap = bool(moves[i][2][j - band.first[i]])
    while i or j:
        shape_of, step = (values[j - band.first[i]] for values in moves[i][:2])
        if in_gap and step == 0:
            in_gap = False
            continue
        n, m = ((1, 0), (0, 1))[step - 1] if in_gap else shapes[shape_of]
        i, j = i - n, j - m
        path.append((i, j, n, m))
        if not in_gap:
            in_gap = bool(moves[i][2][j - band.first[i]])
    return path[::-1]
