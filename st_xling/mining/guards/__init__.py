"""Guards: mined pairs that no margin can tell from translations, turned down with a reason code.

``copy``          both sides are the same text                              ``exact_copy``
``near_copy``     almost the same text                                      ``near_copy``
``length_ratio``  one side says much more than the other                    ``length_ratio``
``numbers``       the sides name different numbers                          ``number_agreement``, ``quantities``
``language``      a side is not in the language it should be in             ``language``
``hub``           a side is a neighbour of too many sentences               ``hub``

``options`` switches them, ``pair_guards`` applies them to a stream, ``rejects`` writes down what they turned down.
"""

from st_xling.mining.guards.candidates import Candidate, CandidateBatch, Guard, Verdict, candidate_batches
from st_xling.mining.guards.exact_copy import CopyGuard
from st_xling.mining.guards.hub import HubGuard, NeighbourCounts, count_occurrences
from st_xling.mining.guards.language import LanguageGuard, LanguageUnknown
from st_xling.mining.guards.length_ratio import LengthRatioGuard, weighted_length
from st_xling.mining.guards.letters import letter_key
from st_xling.mining.guards.near_copy import NearCopyGuard
from st_xling.mining.guards.number_agreement import NumbersGuard
from st_xling.mining.guards.options import REASONS, GuardOptions
from st_xling.mining.guards.pair_guards import PairGuards
from st_xling.mining.guards.quantities import Quantity, agree, quantities
from st_xling.mining.guards.rejects import Reject, RejectsFile, reject_line

__all__ = [
    "REASONS",
    "Candidate",
    "CandidateBatch",
    "CopyGuard",
    "Guard",
    "GuardOptions",
    "HubGuard",
    "LanguageGuard",
    "LanguageUnknown",
    "LengthRatioGuard",
    "NearCopyGuard",
    "NeighbourCounts",
    "NumbersGuard",
    "PairGuards",
    "Quantity",
    "Reject",
    "RejectsFile",
    "Verdict",
    "agree",
    "candidate_batches",
    "count_occurrences",
    "letter_key",
    "quantities",
    "reject_line",
    "weighted_length",
]
