"""Mined pairs scored again by a cross-encoder, which reads both sentences together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from tqdm import tqdm

from st_xling.mining.mine import MinedPairs
from st_xling.mining.vectors import model_identity
from st_xling.models.pair_scorer import PairScorer
from st_xling.utils.io import atomic_writer

# Pairs scored between two saves, and sorted by length together.
_PAIRS = 2000


@dataclass(frozen=True, eq=False)
class Rescored:
    """Pairs in the order of a cross-encoder's scores.

    Attributes:
        pairs: With those scores, best first; equal ones in the order of their margins.
        margins: What they were mined by. *Shape:* ``(pairs,)``
        below: Pairs left out because they score below the threshold.
        cut: Pairs whose target was cut to the model's length.
        too_long: Pairs left out because the source, which is never cut, leaves the model no room for a target.
        model: What scored them.
    """

    pairs: MinedPairs
    margins: np.ndarray
    below: int
    cut: int
    too_long: int
    model: str

    @property
    def figures(self) -> dict[str, int]:
        """Counts, for a report."""
        return {"kept": len(self.pairs), "below": self.below, "cut": self.cut, "too_long": self.too_long}


def check_rescore(model: Any, threshold: float | None) -> None:
    """Raise for what should not wait for a search."""
    if model is None and threshold is not None:
        raise ValueError("rescore_threshold needs rescore (--rescore): the cross-encoder whose scores it is for.")
    if threshold is not None and np.isnan(threshold):
        raise ValueError("rescore_threshold must be a number: got NaN; leave it out to keep every pair.")


def rescore(
    pairs: MinedPairs,
    texts: Sequence[Sequence[str]],
    encoder: Any,
    name: str | None,
    folder: Path,
    *,
    threshold: float | None = None,
    progress: bool = False,
) -> Rescored:
    """Score each pair as (source, target), and sort by that.

    Scores are kept in ``folder`` as they are made; called again with the same pairs and model, it goes on.

    Args:
        pairs: Mined.
        texts: Sentences of either side, by row.
        encoder: A cross-encoder of one label.
        name: What it was loaded by.
        folder: Where scores are kept.
        threshold: Keep pairs whose score, after the model's activation, is at least this.
        progress: Show a bar on stderr.
    Raises:
        ValueError: For a model of several labels.
    """
    identity = model_identity(encoder, name)
    digest = hashlib.sha256(repr(identity.fingerprint).encode())
    for column in (pairs.source_indices, pairs.target_indices):
        digest.update(column.tobytes())
    scorer = PairScorer(encoder, long_queries="lowest")
    logits = np.empty(len(pairs), dtype=np.float32)
    cut = 0
    with tqdm(total=len(pairs), unit="pair", desc="re-scoring", disable=not progress) as bar:
        for start in range(0, len(pairs), _PAIRS):
            stop = min(start + _PAIRS, len(pairs))
            part = folder / f"rescored-{digest.hexdigest()[:16]}-{start}.npz"
            found = _saved(part, stop - start)
            if found is None:
                before = scorer.counts.cut_passages
                scores = scorer.score(list(_texts(pairs, texts, start, stop)), raw=True)
                found = scores, scorer.counts.cut_passages - before
                with atomic_writer(part) as stream:
                    np.savez(stream, logits=found[0], cut=found[1])
            logits[start:stop] = found[0]
            cut += found[1]
            bar.update(stop - start)
    # Sorted before the activation: a sigmoid takes all logits above 17 for 1.
    order = np.argsort(-logits, kind="stable")
    order = order[np.isfinite(logits[order])]
    scores = scorer.activate(logits[order]).astype(np.float64)
    kept_rows = slice(None) if threshold is None else scores >= threshold
    chosen = order[kept_rows]
    return Rescored(
        MinedPairs(scores[kept_rows], pairs.source_indices[chosen], pairs.target_indices[chosen]),
        pairs.scores[chosen],
        below=len(order) - len(chosen),
        cut=cut,
        too_long=len(pairs) - len(order),
        model=str(identity or name),
    )


def _saved(path: Path, pairs: int) -> tuple[np.ndarray, int] | None:
    """Scores of so many pairs, and how many of those were cut; ``None`` where there are none, or they are damaged."""
    try:
        with np.load(path) as saved:
            logits, cut = saved["logits"], int(saved["cut"])
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, BadZipFile):
        return None  # cut off
    return (logits, cut) if logits.shape == (pairs,) else None


def _texts(pairs: MinedPairs, texts: Sequence[Sequence[str]], start: int, stop: int) -> Iterator[tuple[str, str]]:
    rows = zip(pairs.source_indices[start:stop].tolist(), pairs.target_indices[start:stop].tolist())
    return ((texts[0][one], texts[1][other]) for one, other in rows)
