"""Cross-lingual passage re-ranking: a query in one language, passages in several.

``scoring``        scores of query-passage pairs; a query's passages, best first
``pair_scorer``    the same for many pairs, with what was cut counted
``pair_rows``      pairs as rows of token ids, each text tokenised once; ``pair_template``: how a tokenizer joins two
``aligned``        the same query-passage pairs in several languages; ``labelled``: pairs as a ``datasets.Dataset``
``negatives``      other rows' passages, never a translation of the positive (``same_text``, ``draw_apart``)
``xpi``            the mixed-language set of paraphrase identification, also from parallel text (``language_pairs``,
                   ``thinned``); ``xpi_pools``: its development set; ``shares``: exact proportions
``strategies``     merged, cascade, mixed: stages to train on
``pools``          a query with its candidates; ``candidate_pools``: language tossed, candidates in even shares
``question_answering``  every paragraph a candidate for every question; ``question_files``, ``squad_form``,
                   ``align_questions``: from XQuAD, MLQA, BiPaR
``retrieval_files``  BEIR's layout → pools; ``labelled_files``: labelled pairs, one file a language
``heads``          encoder → ``CrossEncoder``, linear on CLS or the backbone's own head
``recipe``         recipes by name or YAML; ``ranking_losses``: the host's losses by name; ``loss_rows``: what they read
``run``            a training run; ``stages``: what comes after what, and its folder; ``stage_training``, ``trainer``,
                   ``pair_lengths``: one stage
``pair_specs``     what the command line's ``--data`` may say (``pair_forms``); ``xpi_specs``: the same for XPI
"""

from st_xling.cross_encoder.aligned import AlignedPairs
from st_xling.cross_encoder.candidate_pools import candidate_pools, pools_of_pairs
from st_xling.cross_encoder.heads import cross_encoder, replace_head, tiny_cross_encoder
from st_xling.cross_encoder.labelled import PAIR_COLUMNS, labelled_dataset
from st_xling.cross_encoder.negatives import draw_negatives, with_negatives
from st_xling.cross_encoder.pair_scorer import PairScorer, ScoringCounts
from st_xling.cross_encoder.pair_specs import PairData, load_pair_specs, load_pool_specs
from st_xling.cross_encoder.pools import CandidatePool, CandidatePools
from st_xling.cross_encoder.question_answering import QuestionAnswering
from st_xling.cross_encoder.question_files import read_question_answering
from st_xling.cross_encoder.ranking_losses import RankingLoss, loss_names
from st_xling.cross_encoder.recipe import (
    CrossEncoderRecipe,
    cross_encoder_recipe_names,
    is_cross_encoder_recipe,
    load_cross_encoder_recipe,
)
from st_xling.cross_encoder.retrieval_files import read_retrieval
from st_xling.cross_encoder.run import CrossEncoderResult, train_cross_encoder
from st_xling.cross_encoder.scoring import RankedPassage, rerank, score_text_pairs
from st_xling.cross_encoder.strategies import STRATEGIES, cascade, merged, mixed
from st_xling.cross_encoder.xpi import xpi_pairs, xpi_pairs_from_parallel
from st_xling.cross_encoder.xpi_pools import parallel_pools
from st_xling.cross_encoder.xpi_specs import XpiData, load_xpi_specs

__all__ = [
    "PAIR_COLUMNS",
    "STRATEGIES",
    "AlignedPairs",
    "CandidatePool",
    "CandidatePools",
    "CrossEncoderRecipe",
    "CrossEncoderResult",
    "PairData",
    "PairScorer",
    "QuestionAnswering",
    "RankedPassage",
    "RankingLoss",
    "ScoringCounts",
    "XpiData",
    "candidate_pools",
    "cascade",
    "cross_encoder",
    "cross_encoder_recipe_names",
    "draw_negatives",
    "is_cross_encoder_recipe",
    "labelled_dataset",
    "load_cross_encoder_recipe",
    "load_pair_specs",
    "load_pool_specs",
    "load_xpi_specs",
    "loss_names",
    "merged",
    "mixed",
    "parallel_pools",
    "pools_of_pairs",
    "read_question_answering",
    "read_retrieval",
    "replace_head",
    "rerank",
    "score_text_pairs",
    "tiny_cross_encoder",
    "train_cross_encoder",
    "with_negatives",
    "xpi_pairs",
    "xpi_pairs_from_parallel",
]
