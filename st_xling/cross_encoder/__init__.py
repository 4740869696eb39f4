"""Cross-lingual passage re-ranking: a query in one language, passages in several.

In the order in which data flows:

``pairs``     the same query-passage pairs in several languages → what is trained on: negatives (never a translation of
              the positive), the mixed-language set of paraphrase identification (XPI), strategies
``pools``     a query with its candidates, its language tossed, theirs in even shares: what re-ranking is tested on
``reading``   files and data specs → pairs and pools: SQuAD's form (XQuAD, MLQA, BiPaR), labelled pairs, InsuranceQA,
              BEIR's layout
``heads``     encoder → ``CrossEncoder``, linear on CLS or the backbone's own head (``head_modules``)
``training``  recipes by name or YAML, the host's losses by name, a run in stages, its leak check
``scoring``   scores of many pairs, each text tokenised once; a query's passages, best first
"""

from st_xling.cross_encoder.head_modules import replace_head
from st_xling.cross_encoder.heads import cross_encoder, tiny_cross_encoder
from st_xling.cross_encoder.pairs.aligned import AlignedPairs
from st_xling.cross_encoder.pairs.labelled import PAIR_COLUMNS, labelled_dataset
from st_xling.cross_encoder.pairs.negatives import draw_negatives, with_negatives
from st_xling.cross_encoder.pairs.strategies import STRATEGIES, cascade, merged, mixed
from st_xling.cross_encoder.pairs.xpi import xpi_pairs, xpi_pairs_from_parallel
from st_xling.cross_encoder.pools.candidate_pool import CandidatePool, CandidatePools
from st_xling.cross_encoder.pools.candidate_pools import candidate_pools
from st_xling.cross_encoder.pools.labelled_pools import pools_of_pairs
from st_xling.cross_encoder.pools.parallel_pools import parallel_pools
from st_xling.cross_encoder.reading.insurance_qa import PooledQuestions, read_insurance_qa
from st_xling.cross_encoder.reading.pair_specs import PairData, load_pair_specs
from st_xling.cross_encoder.reading.pool_specs import load_pool_specs
from st_xling.cross_encoder.reading.question_answering import QuestionAnswering
from st_xling.cross_encoder.reading.question_files import read_question_answering
from st_xling.cross_encoder.reading.retrieval_files import read_retrieval
from st_xling.cross_encoder.reading.xpi_specs import XpiData, load_xpi_specs
from st_xling.cross_encoder.scoring.pair_scorer import PairScorer, ScoringCounts
from st_xling.cross_encoder.scoring.ranking import RankedPassage, rerank, score_text_pairs
from st_xling.cross_encoder.training.ranking_losses import RankingLoss, loss_names
from st_xling.cross_encoder.training.recipe import CrossEncoderRecipe
from st_xling.cross_encoder.training.recipe_files import (
    cross_encoder_recipe_names,
    is_cross_encoder_recipe,
    load_cross_encoder_recipe,
)
from st_xling.cross_encoder.training.result import CrossEncoderResult
from st_xling.cross_encoder.training.run import train_cross_encoder

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
    "PooledQuestions",
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
    "read_insurance_qa",
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
