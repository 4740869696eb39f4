"""Guards: mined pairs that no margin can tell from translations, turned down with a reason code.

- ``copy``, ``CopyGuard``: both sentences are the same text
- ``near_copy``, ``NearCopyGuard``: almost the same text
- ``length_ratio``, ``LengthRatioGuard``: one sentence says much more than the other
- ``numbers``, ``NumbersGuard``: they name different numbers
- ``language``, ``LanguageGuard``: a sentence is not in the language it should be in
- ``hub``, ``HubGuard``: a sentence is a neighbour of too many others

``GuardOptions`` switches them, ``PairGuards`` applies them, ``RejectsFile`` writes down what they turned down.
"""

from st_xling.mining.guards.language import LanguageGuard
from st_xling.mining.guards.numbers import NumbersGuard, Quantity, agree, quantities
from st_xling.mining.guards.pair_guards import REASONS, GuardOptions, PairGuards, Reject, RejectsFile, reject_line
from st_xling.mining.guards.predicates import (
    CandidateBatch,
    CopyGuard,
    Guard,
    HubGuard,
    LengthRatioGuard,
    NearCopyGuard,
    NeighbourCounts,
    Verdict,
    letter_key,
    weighted_length,
)
from st_xling.utils.identify import LanguageUnknown

__all__ = [
    "REASONS",
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
    "letter_key",
    "quantities",
    "reject_line",
    "weighted_length",
]
