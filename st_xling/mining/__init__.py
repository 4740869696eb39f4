"""Mining: two corpora of sentence embeddings → scored translation pairs.

- ``text``: read sentences of large files, in order or by row; write lines of TSV
- ``deduplication``: find the distinct sentences of a text
- ``store``: embeddings on disk, written shard by shard, that read like one array
- ``options``: options of search and of encoding, which are passed whole
- ``encoding``: encoders that embed text files into a store; ``vectors``: an encoder, a store or an array by side
- ``search``: nearest neighbors in both directions, by ``find_neighbors``: exact, by FAISS, or on a cluster (``ray``)
- ``margins``: margin scores, of candidates or of given pairs
- ``first_stage``: sentences that may have a translation, by a static encoder, so that only these are embedded
- ``mined_pairs``: neighbors, margins and a retrieval rule together: the main function of the package; xsim
- ``thresholds``: tune the threshold on gold pairs, or use the one in a model's ``mining.json``
- ``calibration``: estimate the threshold from known translations added to the text
- ``score_mixture``: estimate the threshold from the scores alone
- ``documents``: align the sentences of a document and its translation, in order
- ``document_pairing``: find which documents of two collections are translations of each other
- ``sentences``: split a document into sentences
- ``filters``: reject mined pairs with a reason code: copies, lengths, numbers, languages
- ``numbers``: numbers written with digits, and whether those of two sentences contradict; ``clock``: times of day
- ``text_languages``: the languages of texts: named, in file names, or identified
- ``pipeline``: mine two text files, pair and align documents, score a file of pairs, or estimate what mining takes

All names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_xling.utils.lazy import lazy_names

if TYPE_CHECKING:
    from st_xling.mining.calibration import Calibration as Calibration
    from st_xling.mining.calibration import calibrate as calibrate
    from st_xling.mining.document_pairing import DocumentPair as DocumentPair
    from st_xling.mining.document_pairing import pair_by_sentences as pair_by_sentences
    from st_xling.mining.documents import SentenceGroup as SentenceGroup
    from st_xling.mining.documents import align_documents as align_documents
    from st_xling.mining.documents import overlap_texts as overlap_texts
    from st_xling.mining.encoding import encode as encode
    from st_xling.mining.filters import FilterOptions as FilterOptions
    from st_xling.mining.filters import PairFilters as PairFilters
    from st_xling.mining.filters import RejectedPair as RejectedPair
    from st_xling.mining.margins import margin_scores as margin_scores
    from st_xling.mining.margins import score_pairs as score_pairs
    from st_xling.mining.mined_pairs import MinedPairs as MinedPairs
    from st_xling.mining.mined_pairs import Xsim as Xsim
    from st_xling.mining.mined_pairs import best_pairs as best_pairs
    from st_xling.mining.mined_pairs import mine as mine
    from st_xling.mining.mined_pairs import xsim as xsim
    from st_xling.mining.options import EncodingOptions as EncodingOptions
    from st_xling.mining.options import FirstStageOptions as FirstStageOptions
    from st_xling.mining.options import SearchOptions as SearchOptions
    from st_xling.mining.pipeline.document_alignment import align_texts as align_texts
    from st_xling.mining.pipeline.document_alignment import pair_documents as pair_documents
    from st_xling.mining.pipeline.document_matching import DocumentMatches as DocumentMatches
    from st_xling.mining.pipeline.document_matching import folder_files as folder_files
    from st_xling.mining.pipeline.document_matching import match_documents as match_documents
    from st_xling.mining.pipeline.pair_scoring import score_texts as score_texts
    from st_xling.mining.pipeline.text_mining import mine_texts as mine_texts
    from st_xling.mining.pipeline.text_mining import plan_mining as plan_mining
    from st_xling.mining.score_mixture import ThresholdEstimate as ThresholdEstimate
    from st_xling.mining.score_mixture import estimate_threshold as estimate_threshold
    from st_xling.mining.search.approximate import approximate_neighbors as approximate_neighbors
    from st_xling.mining.search.exact import Neighbors as Neighbors
    from st_xling.mining.search.find import find_neighbors as find_neighbors
    from st_xling.mining.sentences import split_sentences as split_sentences
    from st_xling.mining.store import EmbeddingStore as EmbeddingStore
    from st_xling.mining.store import write_store as write_store
    from st_xling.mining.text import MiningText as MiningText
    from st_xling.mining.text import tsv_cells as tsv_cells
    from st_xling.mining.text import tsv_line as tsv_line
    from st_xling.mining.thresholds import PublishedThreshold as PublishedThreshold
    from st_xling.mining.thresholds import Threshold as Threshold
    from st_xling.mining.thresholds import best_threshold as best_threshold
    from st_xling.mining.thresholds import correct_pairs as correct_pairs
    from st_xling.mining.thresholds import evaluate_pairs as evaluate_pairs
    from st_xling.mining.thresholds import load_published_thresholds as load_published_thresholds
    from st_xling.mining.thresholds import precision_recall_f1 as precision_recall_f1
    from st_xling.mining.thresholds import publish_thresholds as publish_thresholds

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
