"""Mining: two piles of sentence embeddings → scored translation pairs.

``neighbours``  exact k nearest neighbours in both directions, in bounded memory
``margins``     a pair's cosine judged against the neighbourhoods of its two sentences
``mine``        neighbours, margins and a retrieval rule together: the room's front door
``threshold``   the score from which pairs are worth keeping, and precision, recall and F1
``gold``        mined pairs compared with gold pairs
"""

from st_xling.mining.gold import correct_pairs, evaluate_pairs
from st_xling.mining.margins import MARGINS, margin_scores
from st_xling.mining.mine import RETRIEVALS, MinedPairs, mine
from st_xling.mining.neighbours import Neighbours, neighbours
from st_xling.mining.threshold import Threshold, best_threshold, precision_recall_f1

__all__ = [
    "MARGINS",
    "RETRIEVALS",
    "MinedPairs",
    "Neighbours",
    "Threshold",
    "best_threshold",
    "correct_pairs",
    "evaluate_pairs",
    "margin_scores",
    "mine",
    "neighbours",
    "precision_recall_f1",
]
