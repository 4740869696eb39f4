"""Passages for queries: sets of one language or several mixed; search by an encoder, and by BM25."""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from st_xling.data.retrieval import RetrievalSet
from st_xling.models.encoding import Role
from st_xling.models.normalization import encode_by_language
from st_xling.utils.options import require
from st_xling.utils.terminal import progress_bar

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Query id → ids and scores of passages, best first.
Rankings = dict[str, list[tuple[str, float]]]

#: Maximum number of scores of a chunk of passages for all queries, which are in memory at a time.
CHUNK_SCORES = 2**23
#: Maximum number of passages of a chunk.
CHUNK_PASSAGES = 8192

# Thai, Lao, Burmese, Khmer, kana, Han; and Hangul, which has spaces, but whose particles grow on to its words. Lucene's
# CJK analyzer takes pairs of characters there, too.
_BIGRAM_SCRIPTS = (
    r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
)
_RUN = re.compile(rf"([{_BIGRAM_SCRIPTS}]+)|[^\s{_BIGRAM_SCRIPTS}]+")


class _WordCharacters(dict[int, int]):
    """A table for ``str.translate`` that looks each character up once: letters, marks and numbers stay."""

    def __missing__(self, code: int) -> int:
        is_of_word = unicodedata.category(chr(code))[0] in "LMN"
        self[code] = code if is_of_word else ord(" ")
        return self[code]


_WORD_CHARACTERS = _WordCharacters()


class PoolQuery(NamedTuple):
    """One query.

    Attributes:
        id: Unique in its pool.
        text: Text of the query.
        language: Language of the text.
        label: Label under which its measures are averaged: its language, or ``en-fi`` for English over Finnish
            passages.
        relevant: Passage id → grade above 0; empty if all judged passages are irrelevant.
        itself: Passages that have the query's id and are not relevant to it: the query itself, where queries were taken
            from the corpus, as in ArguAna and Quora. As in BEIR, they are no hits.
    """

    id: str
    text: str
    language: str
    label: str
    relevant: dict[str, int]
    itself: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RetrievalPool:
    """Passages of one set or of several, and the queries over all of them.

    Attributes:
        name: The passages' languages.
        queries: Grouped by label.
        corpora: Passages of each set, read from the disk whenever they are iterated over.
        passage_ids: Unique in the pool: ``fi:12`` where languages are mixed.
        languages: Passage id → language.
        sha256: Digest of queries, passages and judgments.
    """

    name: str
    queries: tuple[PoolQuery, ...] = field(repr=False)
    corpora: Sequence[Iterable[str]] = field(repr=False)
    passage_ids: list[str] = field(repr=False)
    languages: dict[str, str] = field(repr=False)
    sha256: str

    @property
    def passages(self) -> Iterator[str]:
        """Texts of all passages, in order."""
        return chain.from_iterable(self.corpora)


def retrieval_pools(sets: Sequence[RetrievalSet], *, mixed: bool) -> list[RetrievalPool]:
    """Return a pool for each set, its queries over its passages; or one of all passages, in which all are searched.

    A query that several sets of a mixed pool have in the same language, under the same id, is one query: what is
    relevant in any of them is relevant.

    Raises:
        ValueError: No set, or two of one language, whose measures would have the same label; in a mixed pool, a query
            id that two sets use for different texts of one language.
    """
    codes = [retrieval_set.language for retrieval_set in sets]
    if not codes or len({*codes}) < len(codes):
        raise ValueError(
            f"retrieval needs sets of different languages, at least one: got {', '.join(codes) or 'none'}."
        )
    if mixed:
        return [_make_pool(sets, mixed=True)]
    return [_make_pool([retrieval_set], mixed=False) for retrieval_set in sets]


def _make_pool(sets: Sequence[RetrievalSet], *, mixed: bool) -> RetrievalPool:
    """Join the passages of the sets, and the queries that several of them have under one id."""
    # Keys: language and id of a query.
    texts: dict[tuple[str, str], str] = {}
    relevant: dict[tuple[str, str], dict[str, int]] = {}
    passages_of_same_id: dict[tuple[str, str], set[str]] = {}
    languages: dict[str, str] = {}
    conflicts: list[str] = []
    for retrieval_set in sets:
        prefix = f"{retrieval_set.language}:" if mixed else ""
        languages |= {f"{prefix}{passage}": retrieval_set.language for passage in retrieval_set.passages.ids}
        for code, text_by_id in retrieval_set.queries.items():
            for query_id, text in text_by_id.items():
                key = (code, query_id)
                if texts.setdefault(key, text) != text:
                    conflicts.append(f"{code} {query_id}")
                judged = retrieval_set.relevant[query_id]
                relevant.setdefault(key, {}).update({f"{prefix}{passage}": grade for passage, grade in judged.items()})
                if query_id in retrieval_set.passages.ids:
                    passages_of_same_id.setdefault(key, set()).add(f"{prefix}{query_id}")
    if conflicts:
        raise ValueError(
            f"an id must mean one query in all sets of a mixed pool: {len(conflicts)} differ in their text, such as "
            f"{', '.join(conflicts[:5])}; give them other ids, or keep the sets apart."
        )

    # Grouped by label: the queries of one set are already.
    keys = sorted(texts, key=lambda key: key[0]) if mixed else list(texts)
    queries: list[PoolQuery] = []
    for key in keys:
        code, query_id = key
        label = code if mixed or code == sets[0].language else f"{code}-{sets[0].language}"
        itself = frozenset(passages_of_same_id.get(key, ())) - relevant[key].keys()
        queries.append(PoolQuery(f"{code}:{query_id}", texts[key], code, label, relevant[key], itself))

    digests = [retrieval_set.sha256 for retrieval_set in sets]
    digest = hashlib.sha256("\n".join(digests).encode()).hexdigest() if mixed else digests[0]
    return RetrievalPool(
        name="+".join(retrieval_set.language for retrieval_set in sets),
        queries=tuple(queries),
        corpora=[retrieval_set.passages for retrieval_set in sets],
        passage_ids=list(languages),
        languages=languages,
        sha256=digest,
    )


def dense_search(
    pool: RetrievalPool,
    model: SentenceTransformer,
    *,
    k: int = 100,
    chunk: int | None = None,
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> Rankings:
    """Search the best passages of each query by an encoder, best first; equal scores in the order of the passages' ids.

    Passages are embedded in chunks and not kept, so that memory holds the queries' embeddings, one chunk with its
    scores, ``k`` hits for each query, and the ids of the passages. Queries go through ``encode_query`` and passages
    through ``encode_document``, with the model's prompts or routes; the similarity is the model's own.

    Args:
        pool: Queries and passages.
        model: The encoder.
        k: Hits kept for each query.
        chunk: Passages of a chunk; by default as many as :data:`CHUNK_PASSAGES` and :data:`CHUNK_SCORES` allow.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one while encoding.

    Raises:
        ValueError: Embeddings that are zero or not finite.
    """
    chunk = chunk or max(256, min(CHUNK_PASSAGES, CHUNK_SCORES // max(1, len(pool.queries))))
    total = len(pool.passage_ids)
    id_ranks = _rank_ids(pool)

    def embed(texts: list[str], languages: list[str], role: Role) -> torch.Tensor:
        rows: dict[str, list[int]] = {}
        for row, language in enumerate(languages):
            rows.setdefault(language, []).append(row)
        columns: list[list[str]] = []
        for rows_of_language in rows.values():
            columns.append([texts[row] for row in rows_of_language])
        encoded = encode_by_language(
            model, columns, list(rows), role=role, batch_size=batch_size, show_progress_bar=show_progress_bar
        )
        # They are grouped by language: back into the order of the texts.
        vectors = np.concatenate(encoded)
        vectors = vectors[np.argsort(np.concatenate(list(rows.values())))]
        bad = ~np.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1)
        if bad.any():
            what = "queries" if role == "query" else "passages"
            raise ValueError(
                f"embeddings of {what} must be finite and not zero: "
                f"{int(bad.sum()):,} of {len(bad):,} are not; check the model and its precision."
            )
        return torch.from_numpy(vectors).to(model.device)

    queries = embed([query.text for query in pool.queries], [query.language for query in pool.queries], "query")
    # Rows of each query's best passages so far, and their scores.
    hits = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))] * len(queries)
    texts = pool.passages
    for start in progress_bar(range(0, total, chunk), desc="corpus", unit="chunks", show=show_progress_bar):
        rows = np.arange(start, min(start + chunk, total))
        languages = [pool.languages[pool.passage_ids[row]] for row in rows]
        passages = embed(list(islice(texts, len(rows))), languages, "document")
        scores = model.similarity(queries, passages).float().cpu().numpy()
        for number, scores_of_query in enumerate(scores):
            kept_rows, kept_scores = hits[number]
            candidates = np.concatenate([kept_rows, rows])
            hits[number] = _select_best(candidates, np.concatenate([kept_scores, scores_of_query]), id_ranks, k)

    rankings = Rankings()
    for query, (best_rows, best_scores) in zip(pool.queries, hits):
        rankings[query.id] = _name_hits(pool, best_rows, best_scores)
    return rankings


def without_queries(queries: Iterable[PoolQuery], rankings: Rankings, *, k: int) -> Rankings:
    """Return the ``k`` best hits of each query that are not the query itself."""
    kept = {}
    for query in queries:
        hits = [hit for hit in rankings[query.id] if hit[0] not in query.itself]
        kept[query.id] = hits[:k]
    return kept


def _rank_ids(pool: RetrievalPool) -> np.ndarray:
    """Return the rank of each passage's id in the sorted ids, which decides ties. *Shape:* ``(passages,)``"""
    return np.argsort(sorted(range(len(pool.passage_ids)), key=pool.passage_ids.__getitem__))


def _select_best(rows: np.ndarray, scores: np.ndarray, id_ranks: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``k`` best of these rows and their scores, best first; equal scores in the order of ids."""
    if len(rows) > k:  # fewer to sort; all that equal the last one stay, since ids decide between them
        is_enough = scores >= np.partition(scores, -k)[-k]
        rows = rows[is_enough]
        scores = scores[is_enough]
    order = np.lexsort((id_ranks[rows], -scores))[:k]
    return rows[order], scores[order]


def _name_hits(pool: RetrievalPool, rows: np.ndarray, scores: np.ndarray) -> list[tuple[str, float]]:
    """Return ids of passages with their scores."""
    return [(pool.passage_ids[row], float(score)) for row, score in zip(rows, scores)]


def bm25_search(pool: RetrievalPool, *, k: int = 100, show_progress_bar: bool = False) -> Rankings:
    """Find the best passages of each query that share a term with it, best first; equal scores in the order of ids.

    The terms of all passages are in memory, their texts are not.

    Args:
        pool: Queries and passages.
        k: Hits kept for each query.
        show_progress_bar: Whether to show one.

    Raises:
        ValueError: If bm25s is not installed, or no passage holds a word.
    """
    bm25s: Any = require("bm25s", "BM25")
    tokenization: Any = require("bm25s.tokenization", "BM25")
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every step, whatever the level above it

    vocabulary: dict[str, int] = {}
    ids: list[list[int]] = []
    for text in progress_bar(pool.passages, desc="BM25", unit="passages", show=show_progress_bar):
        ids.append([vocabulary.setdefault(term, len(vocabulary)) for term in words(text)])
    if not vocabulary:
        raise ValueError(f"BM25 needs passages with words: the {len(ids):,} passages of {pool.name} hold none.")
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)  # Anserini's, whose BM25 Mr.TyDi reports
    index.index(tokenization.Tokenized(ids=ids, vocab=dict(vocabulary)), show_progress=False)

    id_ranks = _rank_ids(pool)
    rankings = Rankings()
    for query in pool.queries:
        terms = [vocabulary[term] for term in words(query.text) if term in vocabulary]
        scores = np.asarray(index.get_scores_from_ids(terms)) if terms else np.zeros(0)
        rows = np.flatnonzero(scores > 0)
        best_rows, best_scores = _select_best(rows, scores[rows], id_ranks, k)
        rankings[query.id] = _name_hits(pool, best_rows, best_scores)
    return rankings


def words(text: str) -> list[str]:
    """Split a text into terms, in order.

    Args:
        text: Any script; taken in compatibility form (NFKC) and without case.

    Example:
        >>> words("Wo liegt Hanoi?"), words("河内在哪里")
        (['wo', 'liegt', 'hanoi'], ['河内', '内在', '在哪', '哪里'])
    """
    terms: list[str] = []
    normalized = unicodedata.normalize("NFKC", text).casefold().translate(_WORD_CHARACTERS)
    for match in _RUN.finditer(normalized):
        run = match[0]
        if match[1] and len(run) > 1:
            terms += [run[start : start + 2] for start in range(len(run) - 1)]
        else:
            terms.append(run)
    return terms
