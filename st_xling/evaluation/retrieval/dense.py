"""Dense search by sentence-transformers' evaluator, over a corpus that is read as it is embedded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from torch import Tensor

from st_xling.evaluation.retrieval.measures import Rankings
from st_xling.evaluation.retrieval.pool import RetrievalPool
from st_xling.models.view import Centring, centred_model, language_tasks, saved_centring

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Scores of a chunk of passages for all queries, and passages of a chunk, held at a time.
CHUNK_SCORES = 2**23
CHUNK_PASSAGES = 8192


class DenseSearch(InformationRetrievalEvaluator):
    """Sentence-transformers' evaluator, which embeds and ranks; its rankings are kept for figures by language.

    Passages are embedded in chunks and forgotten, so that memory holds the queries' embeddings, one chunk with its
    scores, ``k`` hits for each query, and the ids of the passages. Queries go through ``encode_query`` and passages
    through ``encode_document``, with the model's prompts or routes; the similarity is the model's own. Equal scores are
    put in the order of the passages' ids.

    Args:
        pool: Queries and passages.
        k: Hits kept for each query.
        batch_size: Texts embedded at a time.
        show_progress_bar: Whether to show one.
        truncate_dim: Cut embeddings to this many dimensions; the model's own setting by default.
    """

    def __init__(
        self,
        pool: RetrievalPool,
        *,
        k: int = 100,
        batch_size: int = 64,
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
            batch_size=batch_size,
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
        self._encoded = {"query": 0, "document": 0}
        self.compute_all_metrics(model)
        return self.rankings

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
        tasks, joint = language_tasks(model, self._languages[role][first : self._encoded[role]])
        self.joint_mean |= joint
        rows: Tensor
        if any(tasks):
            rows = self._by_language(model, list(sentences), tasks, kwargs)
        else:
            rows = super().embed_inputs(*args, **kwargs)  # type: ignore[assignment]
        bad = ~torch.isfinite(rows).all(dim=1) | ~rows.any(dim=1)
        if bool(bad.any()):
            raise ValueError(
                f"embeddings of {'queries' if role == 'query' else 'passages'} must be finite and not zero: "
                f"{int(bad.sum()):,} of {len(bad):,} are not; check the model and its precision."
            )
        return rows

    def _by_language(self, model: Any, texts: list[str], tasks: list[str | None], options: dict[str, Any]) -> Tensor:
        """Each language less its mean, which is put into the model, since ``encode_query`` has a task of its own."""
        centring = saved_centring(model)
        if centring is None:
            raise ValueError("of routes by language, retrieval takes those of centred models only: got others.")
        rows: dict[int, Tensor] = {}
        for task in dict.fromkeys(tasks):
            places = [place for place, own in enumerate(tasks) if own == task]
            mean = centring.joint if task is None else centring.languages[task]
            one = centred_model(model, Centring(mean, {}))
            vectors: Any = super().embed_inputs(one, [texts[place] for place in places], **options)
            rows |= dict(zip(places, vectors))
        return torch.stack([rows[place] for place in range(len(texts))])
