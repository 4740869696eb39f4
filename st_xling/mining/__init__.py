"""Mining: two piles of sentence embeddings → scored translation pairs.

``cosines``     cosines that do not depend on blocks, order or machine
``neighbours``  exact k nearest neighbours in both directions, in bounded memory
``approximate`` the same for millions of sentences: near cells only, re-scored exactly, its recall measured
``ray_engine``  exact neighbours by the workers of a ray cluster, to the last bit
``margins``     a pair's cosine judged against the neighbourhoods of its two sentences
``mine``        neighbours, margins and a retrieval rule together: the room's front door
``score_pairs`` margin scores of pairs that exist already
``xsim``        how often the margin-based nearest target is not the translation
``calibrate``   a threshold for text without gold, from translations planted in it
``threshold``   the score from which pairs are worth keeping, and precision, recall and F1
``gold``        mined pairs compared with gold pairs
``text``        sentences of large files, one after another or by row
``encode``      text files → a store of embeddings; killed, it goes on
``store``       embeddings on disk that read like one array; LASER's raw files too
``escapes``     any sentence in one cell of a TSV line
``folding``     duplicate sentences as one
``find``        neighbours by the method and the engine that are asked for
``pipeline``    two text files → a file of pairs; killed, it goes on
``mining_plan`` what that will take: time, memory, disk
``scoring``     a file of pairs → the same with scores
``guards``      mined pairs turned down with a reason: copies, lengths, numbers, languages, hubs
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from st_xling.mining.approximate import ApproximateSearch, approximate_neighbours
from st_xling.mining.calibrate import Calibration, calibrate
from st_xling.mining.escapes import escape, tsv_cells, tsv_line, unescape
from st_xling.mining.folding import Folding, fold_duplicates
from st_xling.mining.gold import correct_pairs, evaluate_pairs
from st_xling.mining.guards import GuardOptions, NeighbourCounts, PairGuards, RejectsFile
from st_xling.mining.laser_files import open_laser
from st_xling.mining.margins import MARGINS, margin_scores
from st_xling.mining.mine import RETRIEVALS, MinedPairs, mine
from st_xling.mining.neighbours import Neighbours, neighbours
from st_xling.mining.score_pairs import score_pairs
from st_xling.mining.store import EmbeddingStore
from st_xling.mining.text import MiningText
from st_xling.mining.threshold import Threshold, best_threshold, precision_recall_f1
from st_xling.mining.write_store import write_store
from st_xling.mining.xsim import Xsim, xsim

if TYPE_CHECKING:
    from st_xling.mining.encoding import encode
    from st_xling.mining.mining_plan import plan_mining
    from st_xling.mining.pipeline import mine_texts
    from st_xling.mining.scoring import score_texts

__all__ = [
    "MARGINS",
    "RETRIEVALS",
    "ApproximateSearch",
    "Calibration",
    "EmbeddingStore",
    "Folding",
    "GuardOptions",
    "MinedPairs",
    "MiningText",
    "NeighbourCounts",
    "Neighbours",
    "PairGuards",
    "RejectsFile",
    "Threshold",
    "Xsim",
    "approximate_neighbours",
    "best_threshold",
    "calibrate",
    "correct_pairs",
    "encode",
    "escape",
    "evaluate_pairs",
    "fold_duplicates",
    "margin_scores",
    "mine",
    "mine_texts",
    "neighbours",
    "open_laser",
    "plan_mining",
    "precision_recall_f1",
    "score_pairs",
    "score_texts",
    "tsv_cells",
    "tsv_line",
    "unescape",
    "write_store",
    "xsim",
]

_LOADED_ON_USE = {
    "encode": "encoding",
    "mine_texts": "pipeline",
    "plan_mining": "mining_plan",
    "score_texts": "scoring",
}  # it needs sentence-transformers, slow to import; vectors do not


def __getattr__(name: str) -> Any:
    if name in _LOADED_ON_USE:
        return getattr(import_module(f"{__name__}.{_LOADED_ON_USE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
