"""What a BUCC evaluator is given, checked: sentences of both sides and gold pairs of their indices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from st_xling.data import BuccCorpus

Corpora: TypeAlias = "Mapping[str, BuccCorpus | tuple[Sequence[str], Sequence[str], Sequence[tuple[int, int]]]]"


class IndexedCorpus(NamedTuple):
    """Two piles of sentences and the pairs of their indices that are translations."""

    source: list[str]
    target: list[str]
    gold: list[tuple[int, int]]


def indexed_corpora(corpora: Corpora, name: str, *, like: Collection[str] | None = None) -> dict[str, IndexedCorpus]:
    """Corpora by language pair, in the order given, or in that of ``like``; all faults in one error."""
    faults = [] if corpora else ["got none; pass e.g. {'de-en': (german, english, [(0, 3)])}."]
    indexed = {}
    for pair, corpus in corpora.items():
        try:
            indexed[pair] = _indexed(corpus)
        except ValueError as error:
            faults.append(f"{pair} {error}")
    if like is not None and set(like) != set(corpora):
        faults.append(f"expected {', '.join(like)}, got {', '.join(corpora)}.")
    if faults:
        raise ValueError(f"{name} must hold sentences and gold for at least one language pair: {' '.join(faults)}")
    return {pair: indexed[pair] for pair in (like or indexed)}


def _indexed(corpus: BuccCorpus | tuple[Sequence[str], Sequence[str], Sequence[tuple[int, int]]]) -> IndexedCorpus:
    if isinstance(corpus, tuple):
        source, target, gold = corpus
        pairs = [(int(first), int(second)) for first, second in gold]
    else:
        if corpus.gold is None:
            raise ValueError("has no gold; only corpora with gold can be judged.")
        source, target = corpus.source, corpus.target
        source_row = {identifier: row for row, identifier in enumerate(corpus.source_ids)}
        target_row = {identifier: row for row, identifier in enumerate(corpus.target_ids)}
        pairs = [(source_row[first], target_row[second]) for first, second in corpus.gold]
    if not source or not target or not pairs:
        raise ValueError(f"has {len(source)} and {len(target)} sentences and {len(pairs)} gold pairs; each needs one.")
    beyond = [pair for pair in pairs if not (0 <= pair[0] < len(source) and 0 <= pair[1] < len(target))]
    if beyond:
        raise ValueError(f"has gold {beyond[0]} for {len(source)} and {len(target)} sentences; count rows from 0.")
    if len(set(pairs)) < len(pairs):
        raise ValueError(f"has {len(pairs) - len(set(pairs))} gold pairs twice; remove the repeats.")
    return IndexedCorpus(list(source), list(target), pairs)
