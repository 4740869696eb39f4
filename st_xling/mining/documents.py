"""Align the sentences of a document and its translation, in order.

Neighboring sentences are embedded together, as one text, so that one vector represents a group of them; a dynamic
program then chooses the groups that belong together, as Vecalign does (Thompson and Koehn 2019, "Vecalign: Improved
Sentence Alignment in Linear Time and Space"). The distance of two groups is normalized by their distances from random
ones (section 3.2), and long documents are first aligned in coarse chunks, then near that path (section 3.3).

The cost of a group differs from the paper's, which multiplies the distance by the product of the two sizes, and so
prices two pairs of two sentences like four single pairs. Here the distance counts once for each sentence (half on
either side), each merge has a price of its own, lengths and numbers should agree, and a longer passage without a
translation costs less than its sentences one by one.

Encoding takes nearly all of the time, so groups are encoded only where they may be needed. At first a group has the
mean of its sentences' vectors, which looks better than the vector of its text. The groups of several sentences on the
cheapest path are then encoded, and the path is computed again, until it has no groups of means. Most documents take two
to four rounds, and each sentence is encoded about 1.3 times, not 28 times as in all groups of up to seven.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple
from unicodedata import east_asian_width

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from st_xling.mining.options import EncodingOptions
from st_xling.utils.text import is_blank

# Prices in units of the distance of two random sentences, chosen with multilingual-e5-small on thirteen technical
# documents in eight languages and one of the yearbooks of the Swiss Alpine Club. Choosing on all but one of the
# documents costs the one that is left out about a point.
MERGE = 0.225  # each sentence of a group beyond one and one
PARAGRAPH = 0.25  # each paragraph mark inside a group
LENGTH = 0.4  # times the squared logarithm of the ratio of lengths
GAP = 0.4  # a passage without translation
UNPAIRED = 0.42  # each sentence in it
NUMBERS = 0.3  # times the distance of the numbers in both texts, where both have any
# Numbers are counted by a hash, in so many classes.
NUMBER_CLASSES = 64
# Thousands may be grouped by no-break or thin spaces and apostrophes: 12 000, 12'000.
_NUMBER = re.compile(r"\d{1,18}(?:[.,:]\d{1,18}|[\u00a0\u2009\u202f'’]\d{3}(?!\d))*")
# Letters that an ideograph, a kana or a Hangul syllable counts for in lengths.
WIDE_LETTERS = 3
# Chunks of different cuts are less alike than translations: in coarse alignments, gaps are cheap.
COARSE_GAP = 0.0
COARSE_UNPAIRED = 0.45

# Documents of more cells are aligned near the path of a coarser alignment.
EXHAUSTIVE_CELLS = 2_000_000
_ROWS_AT_ONCE = 64
_GROUPS_AT_ONCE = 4096
# Rounds of encoding; groups that are not encoded after the last one are not considered.
MAX_ROUNDS = 8
_SHORT = 200
_MUCH_SHORTER = 4
_TINY = 1e-9

#: Numbers of source and target sentences in a group.
GroupShape = tuple[int, int]

#: Mean vectors of many source and many target sentences, ``None`` for those of the documents themselves.
Means = tuple[np.ndarray | None, np.ndarray | None]


class Span(NamedTuple):
    """Neighboring sentences of one document.

    Attributes:
        start: The first sentence, counted without blank rows.
        size: Number of sentences.
    """

    start: int
    size: int


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
    overlaps: list[str] = []
    for size in _group_sizes(len(texts), max_size):
        overlaps += [" ".join(texts[start : start + size]) for start in range(len(texts) - size + 1)]
    return overlaps


def span_texts(sentences: Sequence[str], spans: Sequence[Span]) -> list[str]:
    """Join the sentences of spans of a document, as they are embedded.

    Args:
        sentences: Sentences of a document; blank ones are left out.
        spans: Spans of the sentences that are not blank.

    Example:
        >>> span_texts(["a", "", "b", "c"], [Span(0, 1), Span(1, 2)])
        ['a', 'b c']
    """
    texts = [sentence for sentence in sentences if not is_blank(sentence)]
    return [" ".join(texts[start : start + size]) for start, size in spans]


def single_spans(sentences: Sequence[str]) -> list[Span]:
    """Return the spans of the single sentences of a document; blank ones are left out."""
    return [Span(start, 1) for start in range(len(_rows_with_text(sentences)))]


def _group_sizes(sentences: int, max_size: int) -> range:
    """Return the numbers of sentences that a group of one document can have, in a document of so many."""
    return range(1, min(max_size - 1, sentences) + 1)


class GroupVectors:
    """Unit vectors of the groups of one size, by their first sentences: the mean of its sentences for one without own.

    They are computed where they are needed, since all groups of a long document would take more memory than its
    sentences.

    Args:
        sentence_vectors: Unit vectors of the sentences. *Shape:* ``(sentences, dim)``
        size: Number of sentences in a group.
        starts: First sentences of the groups that are encoded, in order.
        vectors: Their unit vectors. *Shape:* ``(encoded, dim)``
    """

    def __init__(self, sentence_vectors: np.ndarray, size: int, starts: np.ndarray, vectors: np.ndarray) -> None:
        self._sentence_vectors = sentence_vectors
        self._size = size
        self._starts = starts
        self._vectors = vectors
        # The last block is often asked for again, for groups of other sizes on the other side.
        self._last_rows: slice | None = None
        self._last_vectors = np.empty((0, 0), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._sentence_vectors) - self._size + 1

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return the vectors of the groups of some rows. *Shape:* ``(rows, dim)``"""
        if rows != self._last_rows:
            start, stop, _ = rows.indices(len(self))
            sums = self._sentence_vectors[start:stop].copy()
            for offset in range(1, self._size):
                sums += self._sentence_vectors[start + offset : stop + offset]
            vectors = _unit(sums)
            first, last = np.searchsorted(self._starts, [start, stop])
            vectors[self._starts[first:last] - start] = self._vectors[first:last]
            self._last_rows = rows
            self._last_vectors = vectors
        return self._last_vectors

    @property
    def encoded(self) -> np.ndarray:
        """Whether a group has a vector of its own. *Shape:* ``(starts,)``"""
        encoded = np.zeros(len(self), dtype=bool)
        encoded[self._starts] = True
        return encoded


@dataclass(frozen=True)
class DocumentSide:
    """Sentences of a document with the vectors of its groups.

    Attributes:
        vectors: Unit vectors of the groups of 1, 2, … sentences, by their first one. *Shapes:* ``(starts, dim)``
        lengths: Length of each sentence in letters. *Shape:* ``(sentences,)``
        marks: Whether a paragraph begins with the sentence. *Shape:* ``(sentences,)``
        numbers: Counts of the numbers in each sentence, by class. *Shape:* ``(sentences, NUMBER_CLASSES)``
        rows: Row of each sentence in its document, where blank rows mark paragraphs.
    """

    vectors: Sequence[np.ndarray | GroupVectors]
    lengths: np.ndarray
    marks: np.ndarray
    numbers: np.ndarray
    rows: Sequence[int]

    @classmethod
    def of(cls, sentences: Sequence[str], embeddings: np.ndarray, max_size: int) -> DocumentSide:
        """Return a document with the vectors of its :func:`overlap_texts`.

        Raises:
            ValueError: If there is another number of vectors.
        """
        rows = _rows_with_text(sentences)
        counts = [len(rows) - size + 1 for size in _group_sizes(len(rows), max_size)]
        vectors = np.asarray(embeddings, dtype=np.float32)
        if rows and (vectors.ndim != 2 or len(vectors) != sum(counts)):
            raise ValueError(
                f"expected {sum(counts):,} vectors for {len(rows):,} sentences, those of overlap_texts(sentences, "
                f"{max_size}), got an array of shape {vectors.shape}."
            )
        vectors_by_size = np.split(_unit(vectors), np.cumsum(counts)[:-1])
        return cls._with_vectors(sentences, vectors_by_size)

    @classmethod
    def partly_encoded(
        cls,
        sentences: Sequence[str],
        sentence_embeddings: np.ndarray,
        spans: Sequence[Span],
        span_embeddings: np.ndarray,
        max_size: int,
    ) -> DocumentSide:
        """Return a document with the vectors of its sentences and of some groups.

        Args:
            sentences: Sentences of a document; blank ones mark paragraphs.
            sentence_embeddings: Vectors of those that are not blank. *Shape:* ``(sentences, dim)``
            spans: The groups of several sentences that are encoded.
            span_embeddings: Their vectors. *Shape:* ``(spans, dim)``
            max_size: Maximum number of sentences of both sides in a group.
        """
        sentence_vectors = _unit(np.asarray(sentence_embeddings, dtype=np.float32))
        span_vectors = _unit(np.asarray(span_embeddings, dtype=np.float32))
        starts = np.array([span.start for span in spans], dtype=np.int64)
        sizes = np.array([span.size for span in spans], dtype=np.int64)
        vectors_by_size: list[np.ndarray | GroupVectors] = []
        for size in _group_sizes(len(sentence_vectors), max_size):
            if size == 1:
                vectors_by_size.append(sentence_vectors)
                continue
            encoded = np.flatnonzero(sizes == size)
            encoded = encoded[np.argsort(starts[encoded])]
            vectors_by_size.append(GroupVectors(sentence_vectors, size, starts[encoded], span_vectors[encoded]))
        return cls._with_vectors(sentences, vectors_by_size)

    @classmethod
    def _with_vectors(cls, sentences: Sequence[str], vectors: Sequence[np.ndarray | GroupVectors]) -> DocumentSide:
        rows = _rows_with_text(sentences)
        lengths = np.array([_text_length(sentences[row]) for row in rows], dtype=int)
        marks = np.array([row > 0 and is_blank(sentences[row - 1]) for row in rows], dtype=bool)
        numbers = _count_numbers([sentences[row] for row in rows])
        return cls(vectors, lengths, marks, numbers, rows)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def sizes(self) -> range:
        """Numbers of sentences of its groups."""
        return range(1, len(self.vectors) + 1)

    @property
    def sentence_vectors(self) -> np.ndarray:
        """Unit vectors of single sentences. *Shape:* ``(sentences, dim)``"""
        return self.vectors[0][:]

    def halved(self) -> DocumentSide:
        """Join each two neighboring sentences, whose vectors are averaged."""
        firsts = np.arange(0, len(self), 2)
        pairs = _unit(np.add.reduceat(self.sentence_vectors, firsts))
        lengths = np.add.reduceat(self.lengths, firsts)
        no_marks = np.zeros(len(pairs), dtype=bool)
        no_numbers = np.zeros((len(pairs), NUMBER_CLASSES), dtype=np.float32)
        return DocumentSide([pairs], lengths, no_marks, no_numbers, range(len(pairs)))


def _rows_with_text(sentences: Sequence[str]) -> list[int]:
    """Return the rows of a document that are not blank."""
    return [row for row, sentence in enumerate(sentences) if not is_blank(sentence)]


def _text_length(text: str) -> int:
    """Return the number of characters, of which an ideograph, a kana or a Hangul syllable counts as three.

    Each of them says about as much as three letters, so that lines of text, of names and of code have similar ratios:
    a Chinese line that only names a command is as long as the English one.
    """
    if text.isascii():
        return len(text)
    wide_characters = sum(east_asian_width(character) in "WF" for character in text)
    return len(text) + (WIDE_LETTERS - 1) * wide_characters


def _count_numbers(sentences: Sequence[str]) -> np.ndarray:
    """Count the numbers of each sentence by class: ``1,5`` is ``1.5``, and ``٣`` is ``3``."""
    counts = np.zeros((len(sentences), NUMBER_CLASSES), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        for number in _NUMBER.findall(sentence):
            parts = [str(int(part)) for part in re.split(r"\D", number)]
            counts[row, zlib.crc32(".".join(parts).encode()) % NUMBER_CLASSES] += 1
    return counts


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), _TINY))


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
        max_size: Maximum number of sentences of both sides in a group, at least 2.
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

        encoder = Encoder(model, EncodingOptions(prompt=prompt, batch_size=batch_size, device=device))
    sides: list[DocumentSide] = []
    encodings: list[_Encoding | None] = []
    for sentences, embeddings in ((source_sentences, source_embeddings), (target_sentences, target_embeddings)):
        if embeddings is not None:
            encodings.append(None)
            sides.append(DocumentSide.of(sentences, embeddings, max_size))
        else:
            encoding = _Encoding(sentences, encoder, max_size)
            encodings.append(encoding)
            sides.append(encoding.side)
    for _ in range(MAX_ROUNDS):
        spans_by_side = spans_to_encode(*sides, max_size=max_size)
        if not any(spans_by_side):
            break
        for number, (partial, spans) in enumerate(zip(encodings, spans_by_side)):
            if partial is not None:
                partial.add(spans)
                sides[number] = partial.side
    return align_sides(*sides, max_size=max_size)


class _Encoding:
    """A document of which more and more groups are encoded.

    Args:
        sentences: Its sentences.
        encoder: An :class:`~st_xling.mining.encoding.Encoder`.
        max_size: Maximum number of sentences of both sides in a group.
    """

    def __init__(self, sentences: Sequence[str], encoder: Any, max_size: int) -> None:
        self._sentences = sentences
        self._encoder = encoder
        self._max_size = max_size
        self._sentence_embeddings = self._encode(single_spans(sentences))
        self._spans: list[Span] = []
        self._span_embeddings = self._sentence_embeddings[:0]

    def add(self, spans: Sequence[Span]) -> None:
        """Encode groups."""
        if spans:
            self._spans += spans
            self._span_embeddings = np.concatenate([self._span_embeddings, self._encode(spans)])

    def _encode(self, spans: Sequence[Span]) -> np.ndarray:
        texts = span_texts(self._sentences, spans)
        return np.asarray(self._encoder.vectors(texts)) if texts else np.empty((0, 0))

    @property
    def side(self) -> DocumentSide:
        """The document with the vectors of all groups that are encoded."""
        return DocumentSide.partly_encoded(
            self._sentences, self._sentence_embeddings, self._spans, self._span_embeddings, self._max_size
        )


def align_sides(
    source: DocumentSide, target: DocumentSide, *, max_size: int, means: Means = (None, None)
) -> list[SentenceGroup]:
    """Align two documents by the vectors of their groups; those that are not encoded are not considered.

    Args:
        source: Source document.
        target: Target document.
        max_size: Maximum number of sentences of both sides in a group.
        means: Mean vectors of many source and many target sentences, which stand for random ones; by default those of
            these documents are used.
    """
    if not len(source) or not len(target):
        unpaired = [SentenceGroup((row,), (), 0.0) for row in source.rows]
        return unpaired + [SentenceGroup((), (row,), 0.0) for row in target.rows]
    costs, path = _align(source, target, max_size, means, with_means=False)
    groups = []
    for i, j, n, m in path:
        score = costs.score(i, j, n, m) if n and m else 0.0
        source_rows = tuple(source.rows[i : i + n])
        target_rows = tuple(target.rows[j : j + m])
        groups.append(SentenceGroup(source_rows, target_rows, score))
    return groups


def spans_to_encode(
    source: DocumentSide, target: DocumentSide, *, max_size: int, means: Means = (None, None)
) -> tuple[list[Span], list[Span]]:
    """Return the groups of either side that should be encoded next: those of the cheapest path.

    There are none if all groups on this path are encoded: it is then the one that :func:`align_sides` finds.

    Args:
        source: Source document.
        target: Target document.
        max_size: Maximum number of sentences of both sides in a group.
        means: As for :func:`align_sides`.
    """
    spans: tuple[list[Span], list[Span]] = ([], [])
    if not len(source) or not len(target):
        return spans
    source_encoded = _encoded_by_size(source)
    target_encoded = _encoded_by_size(target)
    _, path = _align(source, target, max_size, means, with_means=True)
    for i, j, n, m in path:
        if n and m and not source_encoded[n - 1][i]:
            spans[0].append(Span(i, n))
        if n and m and not target_encoded[m - 1][j]:
            spans[1].append(Span(j, m))
    return spans


def _align(
    source: DocumentSide, target: DocumentSide, max_size: int, means: Means, *, with_means: bool
) -> tuple[_GroupCosts, list[tuple[int, int, int, int]]]:
    """Return the costs of groups and the cheapest path; ``with_means`` also through groups that are not encoded."""
    shapes = [(n, m) for n, m in product(source.sizes, target.sizes) if n + m <= max_size]
    band = _band_to_search(source, target, margin=2 * max_size)
    log_ratio = _log_length_ratio(source, target, band)
    costs = _GroupCosts(source, target, means=means, log_ratio=log_ratio, with_means=with_means)
    return costs, _cheapest_path(costs, shapes, band, gap_price=GAP, unpaired_price=UNPAIRED)


def _encoded_by_size(side: DocumentSide) -> list[np.ndarray]:
    """Return whether the groups of a document have vectors of their own, by size."""
    encoded = []
    for vectors in side.vectors:
        if isinstance(vectors, GroupVectors):
            encoded.append(vectors.encoded)
        else:
            encoded.append(np.ones(len(vectors), dtype=bool))
    return encoded


class _Band(NamedTuple):
    """Cells of a search: for each number of source sentences, the least and greatest number of target sentences."""

    first: np.ndarray
    last: np.ndarray


def _band_to_search(source: DocumentSide, target: DocumentSide, margin: int) -> _Band:
    """Return all cells of short documents, those near a coarser alignment of long ones."""
    rows = len(source) + 1
    columns = len(target) + 1
    if rows * columns <= EXHAUSTIVE_CELLS:
        return _Band(np.zeros(rows, dtype=np.int64), np.full(rows, columns - 1))
    coarse_source = source.halved()
    coarse_target = target.halved()
    coarse_band = _band_to_search(coarse_source, coarse_target, margin)
    path = _cheapest_path(
        _GroupCosts(coarse_source, coarse_target),
        [(1, 1)],
        coarse_band,
        gap_price=COARSE_GAP,
        unpaired_price=COARSE_UNPAIRED,
    )
    # By number of coarse source sentences: the least and greatest number of target sentences that the path reaches.
    first = np.full(len(coarse_source) + 1, columns)
    last = np.zeros(len(coarse_source) + 1, dtype=np.int64)
    for i, j, n, m in [*path, (len(coarse_source), len(coarse_target), 0, 0)]:
        for row, coarse_column in ((i, j), (i + n, j + m)):
            first[row] = min(first[row], 2 * coarse_column)
            last[row] = max(last[row], 2 * coarse_column)
    # Each row is searched as far as the path reaches within the margin, before and after it.
    fine_rows = np.arange(rows)
    before = np.maximum(fine_rows - margin, 0) // 2
    after = np.minimum((fine_rows + margin + 1) // 2, len(coarse_source))
    return _Band(
        first=np.clip(first[before] - margin, 0, columns - 1),
        last=np.clip(last[after] + margin, 0, columns - 1),
    )


def _log_length_ratio(source: DocumentSide, target: DocumentSide, band: _Band) -> float:
    """Return the logarithm of the usual ratio of lengths: the median of lines that are each other's nearest."""
    nearest_target = np.zeros(len(source), dtype=np.int64)
    nearest_source = np.zeros(len(target), dtype=np.int64)
    highest_cosines = np.full(len(target), -np.inf)  # of each target sentence, so far
    for start in range(0, len(source), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(source))
        first = int(band.first[start])
        last = max(int(band.last[stop]), first + 1)
        cosines = source.sentence_vectors[start:stop] @ target.sentence_vectors[first:last].T
        nearest_target[start:stop] = first + cosines.argmax(axis=1)
        rows = cosines.argmax(axis=0)
        block_cosines = cosines[rows, np.arange(cosines.shape[1])]
        higher = block_cosines > highest_cosines[first:last]
        highest_cosines[first:last][higher] = block_cosines[higher]
        nearest_source[first:last][higher] = start + rows[higher]
    mutual = np.flatnonzero(nearest_source[nearest_target] == np.arange(len(source)))
    source_lengths = source.lengths[mutual] + 1
    target_lengths = target.lengths[nearest_target[mutual]] + 1
    return float(np.median(np.log(source_lengths / target_lengths)))


class _GroupCosts:
    """Costs of pairs of groups, by the cells where they end.

    Attributes:
        source: Source document.
        target: Target document.
    """

    def __init__(
        self,
        source: DocumentSide,
        target: DocumentSide,
        *,
        means: Means = (None, None),
        log_ratio: float = 0.0,
        with_means: bool = False,
    ) -> None:
        self.source = source
        self.target = target
        self._with_means = with_means
        self._source_encoded = _encoded_by_size(source)
        self._target_encoded = _encoded_by_size(target)
        source_mean, target_mean = means
        # Lists have an array for each size of groups, by first sentences, from size 1 on.
        self._source_random = _random_distances_by_size(source, target, target_mean)
        self._target_random = _random_distances_by_size(target, source, source_mean)
        self._source_log_lengths = _log_lengths_by_size(source, shift=log_ratio)
        self._target_log_lengths = _log_lengths_by_size(target, shift=0.0)
        self._source_marks = _marks_by_size(source)
        self._target_marks = _marks_by_size(target)
        self._has_numbers = bool(source.numbers.any() and target.numbers.any())
        self._source_numbers = _numbers_before(source)
        self._target_numbers = _numbers_before(target)

    def distances(self, rows: slice, columns: slice, n: int, m: int) -> np.ndarray:
        """Return the distances of groups, by their first sentences; 1 is that of random ones."""
        cosines = self.source.vectors[n - 1][rows] @ self.target.vectors[m - 1][columns].T
        random = self._source_random[n - 1][rows][:, None] + self._target_random[m - 1][columns]
        return (1 - cosines) / np.maximum(random / 2, _TINY)

    def score(self, i: int, j: int, n: int, m: int) -> float:
        """Return the score of a group by its first sentences and sizes, see :class:`SentenceGroup`."""
        return min(1.0, 1 - float(self.distances(slice(i, i + 1), slice(j, j + 1), n, m)[0, 0]))

    def block(self, rows: slice, columns: slice, shape: GroupShape) -> np.ndarray:
        """Return the costs of groups that end in a block of cells; infinite where they would begin outside."""
        n, m = shape
        costs = np.full((rows.stop - rows.start, columns.stop - columns.start), np.inf)
        i = slice(max(rows.start - n, 0), rows.stop - n)
        j = slice(max(columns.start - m, 0), columns.stop - m)
        if i.stop <= i.start or j.stop <= j.start:
            return costs
        log_ratios = self._source_log_lengths[n - 1][i][:, None] - self._target_log_lengths[m - 1][j]
        marks = self._source_marks[n - 1][i][:, None] + self._target_marks[m - 1][j]
        inside = (n + m) / 2 * self.distances(i, j, n, m) + MERGE * (n + m - 2)
        inside += LENGTH * log_ratios**2
        inside += PARAGRAPH * marks
        if self._has_numbers:
            source_numbers, source_any = _number_vectors(self._source_numbers, i, n)
            target_numbers, target_any = _number_vectors(self._target_numbers, j, m)
            # A number of one side only may be written out in the other, or be that of a page.
            inside += NUMBERS * (source_any[:, None] * target_any - source_numbers @ target_numbers.T)
        if not self._with_means:
            inside[~self._source_encoded[n - 1][i]] = np.inf
            inside[:, ~self._target_encoded[m - 1][j]] = np.inf
        costs[costs.shape[0] - inside.shape[0] :, costs.shape[1] - inside.shape[1] :] = inside
        return costs


def _random_distances_by_size(
    side: DocumentSide, other_side: DocumentSide, other_mean: np.ndarray | None
) -> list[np.ndarray]:
    """Return the mean distances of groups from random sentences of the other side, by size."""
    # A single sentence of the other side is no random one: those of this side stand for them.
    others = other_side if len(other_side) > 1 else side
    return [_random_distances(vectors, others, other_mean) for vectors in side.vectors]


def _log_lengths_by_size(side: DocumentSide, *, shift: float) -> list[np.ndarray]:
    """Return the logarithms of the lengths of groups, less a shift, by size."""
    log_lengths = []
    for size in side.sizes:
        lengths = sliding_window_view(side.lengths + 1, size).sum(axis=1)
        log_lengths.append(np.log(lengths) - shift)
    return log_lengths


def _marks_by_size(side: DocumentSide) -> list[np.ndarray]:
    """Return the numbers of paragraph marks inside groups, by size: not that of the first sentence."""
    return [sliding_window_view(side.marks, size)[:, 1:].sum(axis=1) for size in side.sizes]


def _numbers_before(side: DocumentSide) -> np.ndarray:
    """Return the counts of the numbers before each sentence, and in all. *Shape:* ``(sentences + 1, classes)``"""
    before = np.zeros((len(side) + 1, side.numbers.shape[1]), dtype=np.float32)
    np.cumsum(side.numbers, axis=0, out=before[1:])
    return before


def _number_vectors(numbers_before: np.ndarray, starts: slice, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors of the numbers of groups, and whether they have any: 1 or 0, and a vector of zeros.

    Args:
        numbers_before: As :func:`_numbers_before` returns it.
        starts: First sentences of the groups.
        size: Number of sentences in a group.
    """
    counts = numbers_before[starts.start + size : starts.stop + size] - numbers_before[starts]
    return _unit(counts), counts.any(axis=1).astype(np.float32)


def _random_distances(vectors: np.ndarray | GroupVectors, other: DocumentSide, mean: np.ndarray | None) -> np.ndarray:
    """Return the mean distance of groups from random sentences of the other side. *Shape:* ``(starts,)``

    The mean of ``1 - x @ y`` over ``y`` is ``1 - x @ mean(y)``. In a short document the nearest sentence, which is
    probably the translation, would count for much: it is ignored.
    """
    if mean is None and len(other) == 1:  # one sentence a side has no random ones: as if they were at right angles
        return np.ones(len(vectors))
    if mean is None and len(other) > _SHORT:
        mean = other.sentence_vectors.mean(axis=0)
    distances = []
    for start in range(0, len(vectors), _GROUPS_AT_ONCE):
        block = vectors[start : start + _GROUPS_AT_ONCE]
        if mean is not None:
            distances.append(1 - block @ mean)
        else:
            cosines = block @ other.sentence_vectors.T
            distances.append(1 - (cosines.sum(axis=1) - cosines.max(axis=1)) / (len(other) - 1))
    return np.concatenate(distances)


class _Moves(NamedTuple):
    """How each cell of a row is reached at the lowest cost. *Shapes:* ``(cells of the band in this row,)``

    Attributes:
        shapes: Number of the shape of the group that ends in the cell.
        states: State of the cheapest path to the cell: a group ends there, or it is in a gap of either side.
        source_opened: Whether a gap of the source that ends in the cell has one sentence: it was opened there.
        target_opened: The same of the target.
        before_source_gap: State of the cheapest path to the cell that is not in a gap of the source.
        before_target_gap: The same of the target.
    """

    shapes: np.ndarray
    states: np.ndarray
    source_opened: np.ndarray
    target_opened: np.ndarray
    before_source_gap: np.ndarray
    before_target_gap: np.ndarray


# States of a path in a cell: the last sentences are a group, or unpaired ones of the source or of the target.
_GROUP, _SOURCE_GAP, _TARGET_GAP = 0, 1, 2


def _cheapest_path(
    costs: _GroupCosts,
    shapes: Sequence[GroupShape],
    band: _Band,
    *,
    gap_price: float,
    unpaired_price: float,
) -> list[tuple[int, int, int, int]]:
    """Find the cheapest sequence of groups and gaps through the cells of a band.

    Returns:
        Groups and unpaired sentences in order: first sentences and sizes of both sides.
    """
    search = _PathSearch(costs, shapes, band, gap_price, unpaired_price)
    moves = [search.next_row() for _ in range(search.rows)]
    return _trace_back(moves, shapes, band, columns=search.columns)


class _PathSearch:
    """The dynamic program of :func:`_cheapest_path`, row by row.

    Row ``i`` has the cells that ``i`` source sentences reach; column ``j``, ``j`` target sentences. Each cell has three
    values: the cost if a group ends there, and the costs inside a gap of the source and of the target. A gap is opened
    anew after one of the other side: if neighboring gaps shared the price, a pair between two gaps would cost more
    than two gaps that swallow it.
    """

    def __init__(
        self,
        costs: _GroupCosts,
        shapes: Sequence[GroupShape],
        band: _Band,
        gap_price: float,
        unpaired_price: float,
    ) -> None:
        self.rows = len(costs.source) + 1
        self.columns = len(costs.target) + 1
        self._costs = costs
        self._shapes = shapes
        self._band = band
        self._row = 0
        # Lowest costs of the last rows only, as a ring; outside the band they are infinite.
        self._depth = max(n for n, _ in shapes) + 1
        self._best = np.full((self._depth, self.columns), np.inf)
        # Of the last row: costs inside a gap of the source, and of paths that are not in one.
        self._source_gap = np.full(self.columns, np.inf)
        self._no_source_gap = np.full(self.columns, np.inf)
        # Where one document is much shorter, most of the other is without a translation, wherever the short one
        # belongs: a gap at its beginning or end is cheaper.
        shorter, longer = sorted((self.rows, self.columns))
        self._gap_price = gap_price
        self._edge_price = gap_price * min(1.0, _MUCH_SHORTER * shorter / longer)
        self._source_opening = np.full(self.columns, gap_price)
        self._source_opening[[0, -1]] = self._edge_price
        self._unpaired_price = unpaired_price
        self._along = np.arange(self.columns) * unpaired_price
        # Costs of the groups that end in a block of some rows, by shape, and the first cell of the block.
        self._blocks: dict[GroupShape, np.ndarray] = {}
        self._block_row = 0
        self._block_column = 0

    def next_row(self) -> _Moves:
        """Compute the lowest costs of the next row, and return how they are reached."""
        i = self._row
        if i % _ROWS_AT_ONCE == 0:
            self._load_block(i)
        low = int(self._band.first[i])
        high = int(self._band.last[i]) + 1
        ends, shape_numbers = self._cheapest_ends(i, low, high)
        source_gap, source_opened = self._cheapest_source_gaps(low, high)
        no_target_gap = np.minimum(ends, source_gap)
        target_gap, target_opened = self._cheapest_target_gaps(i, low, high, no_target_gap)
        no_source_gap = np.minimum(ends, target_gap)

        before_source_gap = np.where(target_gap < ends, _TARGET_GAP, _GROUP).astype(np.uint8)
        before_target_gap = np.where(source_gap < ends, _SOURCE_GAP, _GROUP).astype(np.uint8)
        states = np.where(target_gap < no_target_gap, _TARGET_GAP, before_target_gap).astype(np.uint8)
        self._best[i % self._depth] = np.inf
        self._best[i % self._depth, low:high] = np.minimum(no_target_gap, target_gap)
        for values, new_values in ((self._source_gap, source_gap), (self._no_source_gap, no_source_gap)):
            values[:] = np.inf
            values[low:high] = new_values
        self._row += 1
        return _Moves(shape_numbers, states, source_opened, target_opened, before_source_gap, before_target_gap)

    def _load_block(self, i: int) -> None:
        """Compute the costs of groups that end in the rows from ``i`` on."""
        stop = min(i + _ROWS_AT_ONCE, self.rows)
        self._block_row = i
        self._block_column = int(self._band.first[i])
        rows = slice(i, stop)
        columns = slice(self._block_column, int(self._band.last[stop - 1]) + 1)
        self._blocks = {shape: self._costs.block(rows, columns, shape) for shape in self._shapes}

    def _cheapest_ends(self, i: int, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest costs of paths whose last group ends in each cell of a row, and the shapes of these."""
        ends = np.full(high - low, np.inf)
        if i == 0 and low == 0:
            ends[0] = 0.0
        shape_numbers = np.zeros(high - low, dtype=np.uint8)
        for number, (n, m) in enumerate(self._shapes):
            skip = max(m - low, 0)  # cells where the group would begin before the first sentence
            if n > i or skip >= high - low:
                continue
            before = self._best[(i - n) % self._depth, low + skip - m : high - m]
            block_columns = slice(low + skip - self._block_column, high - self._block_column)
            reached = before + self._blocks[n, m][i - self._block_row, block_columns]
            cheaper = reached < ends[skip:]
            ends[skip:][cheaper] = reached[cheaper]
            shape_numbers[skip:][cheaper] = number
        return ends, shape_numbers

    def _cheapest_source_gaps(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest costs inside a gap of the source in each cell of a row, and whether it is opened there."""
        opened = self._no_source_gap[low:high] + self._source_opening[low:high]
        grown = self._source_gap[low:high]
        return np.minimum(opened, grown) + self._unpaired_price, opened < grown

    def _cheapest_target_gaps(
        self, i: int, low: int, high: int, no_target_gap: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same of the target, from the costs of paths to the cells of this row that are not in such a gap.

        A gap grows along the row: its cost is the running minimum of those at which it is opened, less the price of
        the columns before them.
        """
        is_inner_row = 0 < i < self.rows - 1
        opened = no_target_gap + (self._gap_price if is_inner_row else self._edge_price)
        along = self._along[low:high]
        lowest = np.minimum.accumulate(opened - along)
        costs = np.full(high - low, np.inf)
        costs[1:] = lowest[:-1] + along[1:]
        is_opened = np.ones(high - low, dtype=bool)
        # The gap has one sentence if the cell before is where it is opened at the lowest cost so far.
        is_opened[1:] = opened[:-1] - along[:-1] <= lowest[:-1]
        return costs, is_opened


def _trace_back(
    moves: Sequence[_Moves], shapes: Sequence[GroupShape], band: _Band, *, columns: int
) -> list[tuple[int, int, int, int]]:
    """Follow the moves from the last cell to the first, and return the path in order, as :func:`_cheapest_path`."""
    path: list[tuple[int, int, int, int]] = []
    i = len(moves) - 1
    j = columns - 1
    state = moves[i].states[j - band.first[i]]
    while i or j:
        cell = j - band.first[i]
        if state == _GROUP:
            n, m = shapes[moves[i].shapes[cell]]
            i, j = i - n, j - m
            state = moves[i].states[j - band.first[i]]
        elif state == _SOURCE_GAP:
            n, m = 1, 0
            opened = moves[i].source_opened[cell]
            i -= 1
            if opened:
                state = moves[i].before_source_gap[j - band.first[i]]
        else:
            n, m = 0, 1
            opened = moves[i].target_opened[cell]
            j -= 1
            if opened:
                state = moves[i].before_target_gap[j - band.first[i]]
        path.append((i, j, n, m))
    return path[::-1]
