"""Dense search by the host's evaluator, over a corpus that is read as it is embedded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from torch import Tensor

from st_xling.evaluation.retrieval.measures import Rankings
from st_xling.evaluation.retrieval.pool import RetrievalPool

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Scores of a chunk of passages for all queries, and passages of a chunk, held at a time.
CHUNK_SCORES = 2**23
CHUNK_PASSAGES = 8192


class DenseSearch(InformationRetrievalEvaluator):
    """The host's evaluator, which embeds and ranks; its rankings are kept for figures by language.

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
        # The host takes a dict and copies its texts; a sequence that reads its slices from the disk serves as well.
        texts: Any = pool.passages
        self.corpus_ids, self.corpus = pool.passage_ids, texts
        self.rankings: Rankings = {}

    def search(self, model: SentenceTransformer) -> Rankings:
        """The best passages of each query, best first.

        Raises:
            ValueError: Embeddings that are zero or not finite.
        """
        self.score_functions = self._model_score_functions(model)
        self.score_function_names = sorted(self.score_functions)
        self.compute_all_metrics(model)
        return self.rankings

    def compute_metrics(self, queries_result_list: list[Any]) -> dict[str, dict[int, float]]:
        self.rankings = {
            query: [(hit["corpus_id"], float(hit["score"])) for hit in hits]
            for query, hits in zip(self.queries_ids, queries_result_list)
        }
        return super().compute_metrics(queries_result_list)

    def embed_inputs(self, *args: Any, **kwargs: Any) -> Any:
        embeddings: Any = super().embed_inputs(*args, **kwargs)
        rows: Tensor = embeddings
        bad = ~torch.isfinite(rows).all(dim=1) | ~rows.any(dim=1)
        if bool(bad.any()):
            what = "queries" if kwargs.get("encode_fn_name") == "query" else "passages"
            raise ValueError(
                f"embeddings of {what} must be finite and not zero: {int(bad.sum()):,} of {len(bad):,} are not; check "
                "the model and its precision."
            )
        return embeddings
