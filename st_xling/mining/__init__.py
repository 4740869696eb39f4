"""Mining: two corpora of sentence embeddings → scored translation pairs.

- ``text``: read sentences of large files, in order or by row; write lines of TSV
- ``deduplication``: find the distinct sentences of a text
- ``store``: embeddings on disk, written shard by shard, that read like one array
- ``encoding``: encoders that embed text files into a store; ``vectors``: an encoder, a store or an array by side
- ``search``: nearest neighbors in both directions, by ``find_neighbors``: exact, by FAISS, or on a cluster (``ray``)
- ``margins``: margin scores, of candidates or of given pairs
- ``mine``: neighbors, margins and a retrieval rule together: the main function of the package; xsim
- ``thresholds``: tune the threshold on gold pairs, or use the one in a model's ``mining.json``
- ``calibrate``: estimate the threshold from known translations added to the text
- ``documents``: align the sentences of a document and its translation, in order
- ``filters``: reject mined pairs with a reason code: copies, lengths, numbers, languages
- ``numbers``: numbers written with digits, and whether those of two sentences contradict
- ``pipeline``: mine two text files, align documents, score a file of pairs, or estimate what mining takes
"""

from typing import TYPE_CHECKING

from st_xling.mining.calibrate import Calibration, calibrate
from st_xling.mining.documents import SentenceGroup, align_documents, overlap_texts, split_sentences
from st_xling.mining.filters import CandidateBatch, FilterOptions, PairFilters, RejectedPair
from st_xling.mining.margins import margin_scores, score_pairs
from st_xling.mining.mine import MinedPairs, Xsim, best_pairs, mine, xsim
from st_xling.mining.search.approximate import approximate_neighbors
from st_xling.mining.search.exact import Neighbors
from st_xling.mining.search.find import find_neighbors
from st_xling.mining.store import EmbeddingStore, write_store
from st_xling.mining.text import MiningText, tsv_cells, tsv_line
from st_xling.mining.thresholds import (
    PublishedThreshold,
    Threshold,
    best_threshold,
    correct_pairs,
    evaluate_pairs,
    load_published_thresholds,
    precision_recall_f1,
    publish_thresholds,
)
from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.mining.encoding import encode
    from st_xling.mining.pipeline.align_texts import align_texts, pair_documents
    from st_xling.mining.pipeline.mine_texts import mine_texts, plan_mining
    from st_xling.mining.pipeline.score_texts import score_texts

__all__ = [
    "Calibration",
    "CandidateBatch",
    "EmbeddingStore",
    "FilterOptions",
    "MinedPairs",
    "MiningText",
    "Neighbors",
    "PairFilters",
    "PublishedThreshold",
    "RejectedPair",
    "SentenceGroup",
    "Threshold",
    "Xsim",
    "align_documents",
    "align_texts",
    "approximate_neighbors",
    "best_pairs",
    "best_threshold",
    "calibrate",
    "correct_pairs",
    "encode",
    "evaluate_pairs",
    "find_neighbors",
    "load_published_thresholds",
    "margin_scores",
    "mine",
    "mine_texts",
    "overlap_texts",
    "pair_documents",
    "plan_mining",
    "precision_recall_f1",
    "publish_thresholds",
    "score_pairs",
    "score_texts",
    "split_sentences",
    "tsv_cells",
    "tsv_line",
    "write_store",
    "xsim",
]

# These need sentence-transformers, which is slow to import; vectors do not.
__getattr__, __dir__, _ = lazy_names(__name__, __file__)
