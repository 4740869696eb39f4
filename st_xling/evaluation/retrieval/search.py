"""Passages for queries: by sentence-transformers, over a corpus that is read as it is embedded, and by BM25."""

from __future__ import annotations

import logging
import re
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from tqdm.auto import tqdm

from st_xling.evaluation.retrieval.measures import Rankings
from st_xling.evaluation.retrieval.pool import RetrievalPool
from st_xling.models.centring import encode_once, language_tasks
from st_xling.utils.extras import require

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Scores of a chunk of passages for all queries, and passages of a chunk, held at a time.
CHUNK_SCORES = 2**23
CHUNK_PASSAGES = 8192

# Thai, Lao, Burmese, Khmer, kana, Han; and Hangul, which has spaces, but whose particles grow on to its words. Lucene's
# CJK analyser takes pairs of characters there, too.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_RUN = re.compile(rf"([{_UNSPACED}]+)|[^\s{_UNSPACED}]+")


class _WordCharacters(dict[int, int]):
    """A table for ``str.translate`` that looks each character up once: letters, marks and numbers stay."""

    def __missing__(self, code: int) -> int:
        result = self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else ord(" ")
        return result


_WORD_CHARACTERS = _WordCharacters()


class DenseSearch(InformationRetrievalEvaluator):
    """Sentence-transformers' evaluator, which embeds and ranks; its rankings are kept for measures by language.

    Passages are embedded in chunks and forgotten, so that memory holds the queries' embeddings, one chunk with its
    scores, ``k`` hits for each query, and the ids of the passages. Queries go through ``encode_query`` and passages
    through ``encode_document``, with the model's prompts or routes; the similarity is the model's own. Equal scores are
    put in the order of the passages' ids.

    Args:
        pool: Queries and passages.
        k: Hits kept for each query.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one.
        truncate_dim: Cut embeddings to this many dimensions; the model's own setting by default.
    """

    def __init__(
        self,
        pool: RetrievalPool,
        *,
        k: int = 100,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
        truncate_dim: int | None = None,
    ) -> None:
        super().__init__(
            queries={query.id: query.text for query in pool.queries},
            corpus={},
            relevant_docs={query.id: set(query.relevant) for query in pool.queries},
            corpus_chunk_size=max(256, min(CHUNK_PASSAGES, CHUNK_SCORES // max(1, len(pool.queries)))),
            mrr_at_k=[k],
            ndcg_at_k=[k],
            accuracy_at_k=[k],
            precision_recall_at_k=[k],
            map_at_k=[k],
            show_progress_bar=show_progress_bar,
            batch_size=batch_size,  # type: ignore[arg-type]
            name=pool.name,
            write_csv=False,
            truncate_dim=truncate_dim,
        )
        # The base class takes a dict and copies its texts; a sequence that reads slices from the disk serves as well.
        texts: Any = pool.passages
        self.corpus_ids, self.corpus = pool.passage_ids, texts
        self.rankings: Rankings = {}
        languages = {query.id: query.language for query in pool.queries}
        self._languages = {
            "query": [languages[query] for query in self.queries_ids],
            "document": [pool.languages[passage] for passage in self.corpus_ids],
        }
        #: Text whose language has no mean was centred by the joint one, of a model that is centred by language.
        self.joint_mean = False

    def search(self, model: SentenceTransformer) -> Rankings:
        """The best passages of each query, best first.

        Raises:
            ValueError: Embeddings that are zero or not finite.
        """
        self.score_functions = self._model_score_functions(model)
        self.score_function_names = sorted(self.score_functions)
        self.compute_all_metrics(model)
        return self.rankings

    def compute_all_metrics(self, *args: Any, **kwargs: Any) -> Any:
        self._encoded = {"query": 0, "document": 0}
        return super().compute_all_metrics(*args, **kwargs)

    def compute_metrics(self, queries_result_list: list[Any]) -> dict[str, dict[int, float]]:
        self.rankings = {
            query: [(hit["corpus_id"], float(hit["score"])) for hit in hits]
            for query, hits in zip(self.queries_ids, queries_result_list)
        }
        return super().compute_metrics(queries_result_list)

    def embed_inputs(self, *args: Any, **kwargs: Any) -> Any:
        (model, sentences), role = args, kwargs["encode_fn_name"]
        # Chunks of passages come in order, each once.
        first = self._encoded[role]
        self._encoded[role] = first + len(sentences)
        rows: dict[str, list[int]] = {}
        for row, language in enumerate(self._languages[role][first : self._encoded[role]]):
            rows.setdefault(language, []).append(row)
        tasks, joint = language_tasks(model, list(rows))
        self.joint_mean |= joint
        columns = encode_once(
            model,
            [[sentences[row] for row in own] for own in rows.values()],
            tasks=tasks,
            role=role,
            batch_size=self.batch_size,
            show_progress_bar=self.show_progress_bar,
            truncate_dim=self.truncate_dim,
        )
        vectors = np.concatenate(columns)[np.argsort(np.concatenate(list(rows.values())))]
        bad = ~np.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1)
        if bad.any():
            raise ValueError(
                f"embeddings of {'queries' if role == 'query' else 'passages'} must be finite and not zero: "
                f"{int(bad.sum()):,} of {len(bad):,} are not; check the model and its precision."
            )
        return torch.from_numpy(vectors).to(model.device)


class Bm25:
    """An index of a pool's passages; the terms of all passages are in memory, their texts are not.

    Args:
        pool: Queries and passages.
        k1: How soon more of a term adds nothing.
        b: How much long passages are held back; with ``k1`` the defaults of Anserini, whose BM25 Mr.TyDi reports.
        show_progress_bar: Whether to show one.
    Raises:
        ValueError: If bm25s is not installed, or no passage holds a word.
    """

    def __init__(
        self, pool: RetrievalPool, *, k1: float = 0.9, b: float = 0.4, show_progress_bar: bool = False
    ) -> None:
        bm25s = require("bm25s", "BM25")
        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every step, whatever the level above it
        tokenization = require("bm25s.tokenization", "BM25")
        self.pool = pool
        self.settings = f"bm25s,lucene,k1={k1:g},b={b:g}"
        self.vocabulary: dict[str, int] = {}
        number = self.vocabulary
        passages = tqdm(pool.passages, desc="BM25", unit="passage", disable=not show_progress_bar, leave=False)
        ids = [[number.setdefault(term, len(number)) for term in words(text)] for text in passages]
        if not number:
            raise ValueError(f"BM25 needs passages with words: the {len(ids):,} passages of {pool.name} hold none.")
        self.index: Any = bm25s.BM25(method="lucene", k1=k1, b=b)
        self.index.index(tokenization.Tokenized(ids=ids, vocab=dict(number)), show_progress=False)
        order = sorted(range(len(pool.passage_ids)), key=pool.passage_ids.__getitem__)
        self.places = np.empty(len(order), dtype=np.int64)  # of each passage when ids are in order
        self.places[order] = np.arange(len(order))

    def search(self, k: int = 100) -> Rankings:
        """The best passages of each query that share a term with it, best first; equal scores in the order of ids."""
        return {query.id: self._hits(query.text, k) for query in self.pool.queries}

    def _hits(self, query: str, k: int) -> list[tuple[str, float]]:
        terms = [self.vocabulary[term] for term in words(query) if term in self.vocabulary]
        if not terms:
            return []
        scores = np.asarray(self.index.get_scores_from_ids(terms))
        rows = np.flatnonzero(scores > 0)
        if len(rows) > k:  # fewer to sort; all that equal the last one stay, since ids decide between them
            least = np.partition(scores[rows], -k)[-k]
            rows = rows[scores[rows] >= least]
        best = rows[np.lexsort((self.places[rows], -scores[rows]))][:k]
        return [(self.pool.passage_ids[row], float(scores[row])) for row in best]


def words(text: str) -> list[str]:
    """The terms of a text, in order.

    Args:
        text: Any script; taken in compatibility form (NFKC) and without case.
    Example:
        >>> words("Wo liegt Hanoi?"), words("河内在哪里")
        (['wo', 'liegt', 'hanoi'], ['河内', '内在', '在哪', '哪里'])
    """
    terms: list[str] = []
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text).casefold().translate(_WORD_CHARACTERS)):
        run = match[0]
        if match[1] and len(run) > 1:
            terms += [run[place : place + 2] for place in range(len(run) - 1)]
        else:
            terms.append(run)
    return terms
