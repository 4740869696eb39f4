"""Score mined pairs again with a cross-encoder, which reads both sentences together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from st_xling.mining.filters import RejectedPair
from st_xling.mining.mine import MinedPairs
from st_xling.mining.store import model_identity
from st_xling.utils.console import progress_bar
from st_xling.utils.io import atomic_writer

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

# Pairs scored between two saves, and sorted by length together.
_PAIRS = 2000


def load_reranker(model: Any, device: str | None = None, **options: Any) -> tuple[CrossEncoder, str | None]:
    """Load a cross-encoder; returns it with the name it was loaded by, if any.

    Args:
        model: One, or its Hub id or folder.
        device: Where to put one that is loaded; by default a GPU where there is one.
        **options: Of :func:`~st_xling.models.load.load_sentence_transformer`, for one that is loaded.
    Raises:
        ValueError: If nothing can be loaded at that name, or what is there has no trained head of one score.
    """
    from st_xling.models.cross_encoder import cross_encoder
    from st_xling.models.load import name_of

    if not isinstance(model, str):
        return model, name_of(model)
    try:
        return cross_encoder(model, head="keep", device=device, **options), model
    except ValueError as error:
        raise ValueError(
            f"expected a cross-encoder with a trained head of one score at {model!r}; st-xling train xpr-mixed makes "
            f"one ({error})"
        ) from error


@dataclass(frozen=True, eq=False)
class Rescored:
    """Pairs in the order of a cross-encoder's scores.

    Attributes:
        pairs: With those scores, best first; equal ones in the order of their margins.
        margins: What they were mined by. *Shape:* ``(pairs,)``
        counts: Pairs ``kept``; ``below`` the threshold; whose target was ``cut`` to the model's length; left out as
            ``too_long``, because the source, which is never cut, leaves the model no room for a target.
        model: What scored them.
        removed: The other pairs, to be read once: for the reason ``rescore`` those below the threshold, with what the
            cross-encoder made of them, and for ``too_long`` those left out.
    """

    pairs: MinedPairs
    margins: np.ndarray
    counts: dict[str, int]
    model: str
    removed: Iterable[RejectedPair]


def rescore_pairs(
    encoder: Any,
    name: str | None,
    pairs: MinedPairs,
    texts: Sequence[Sequence[str]],
    folder: Path,
    *,
    threshold: float | None = None,
    progress: bool = False,
) -> Rescored:
    """Score each pair as (source, target), and sort by this score.

    Scores are saved in ``folder`` as they are computed; called again with the same pairs and model, it resumes.

    Args:
        encoder: A cross-encoder of one label.
        name: What it was loaded by.
        pairs: Mined.
        texts: Sentences of both languages, by row.
        folder: Where scores are saved.
        threshold: Keep pairs whose score, after the model's activation, is at least this.
        progress: Show a bar on stderr.
    Raises:
        ValueError: For a model of several labels.
    """
    from st_xling.models.pair_scorer import PairScorer

    identity = model_identity(encoder, name)
    # Other types of numbers give other scores; the usual one is not named, as it was before there were others.
    own = {str(parameter.dtype) for parameter in encoder.parameters()} - {"torch.float32"}
    digest = hashlib.sha256(repr((identity.fingerprint, *sorted(own)) if own else identity.fingerprint).encode())
    for column in (pairs.source_indices, pairs.target_indices):
        digest.update(column.tobytes())
    scorer = PairScorer(encoder, long_queries="lowest")
    logits = np.empty(len(pairs), dtype=np.float32)
    cut = 0
    with progress_bar(total=len(pairs), unit="pairs", desc="re-scoring", show=progress) as bar:
        for start in range(0, len(pairs), _PAIRS):
            some = pairs.select(slice(start, start + _PAIRS))
            part = folder / f"rescored-{digest.hexdigest()[:16]}-{start}.npz"
            saved = _saved(part, len(some))
            if saved is None:
                before = scorer.counts.cut_passages
                rows = zip(some.source_indices.tolist(), some.target_indices.tolist())
                scores = scorer.score([(texts[0][one], texts[1][other]) for one, other in rows], raw=True)
                saved = scores, scorer.counts.cut_passages - before
                with atomic_writer(part) as stream:
                    np.savez(stream, logits=saved[0], cut=saved[1])
            logits[start : start + _PAIRS] = saved[0]
            cut += saved[1]
            bar.update(len(some))
    # Sorted before the activation: a sigmoid takes all logits above 17 for 1.
    order = np.argsort(-logits, kind="stable")
    order = order[np.isfinite(logits[order])]
    scores = scorer.activate(logits[order]).astype(np.float64)
    above = np.ones(len(order), dtype=bool) if threshold is None else scores >= threshold
    chosen = order[above]
    counts = {"kept": len(chosen), "below": len(order) - len(chosen), "cut": cut, "too_long": len(pairs) - len(order)}
    below = zip(order[~above].tolist(), scores[~above].tolist())
    too_long = np.flatnonzero(~np.isfinite(logits)).tolist()
    removed = chain(
        (_rejected(pairs, row, texts, "rescore", score, threshold) for row, score in below),
        (_rejected(pairs, row, texts, "too_long", None, None) for row in too_long),
    )
    return Rescored(
        MinedPairs(scores[above], pairs.source_indices[chosen], pairs.target_indices[chosen]),
        pairs.scores[chosen],
        counts,
        model=str(identity or name),
        removed=removed,
    )


def _rejected(
    pairs: MinedPairs,
    row: int,
    texts: Sequence[Sequence[str]],
    reason: str,
    value: float | None,
    limit: float | None,
) -> RejectedPair:
    """Return a removed pair; its score is the margin that it was mined by."""
    one, other = int(pairs.source_indices[row]), int(pairs.target_indices[row])
    return RejectedPair(reason, value, limit, float(pairs.scores[row]), one, other, texts[0][one], texts[1][other])


def _saved(path: Path, pairs: int) -> tuple[np.ndarray, int] | None:
    """Load the scores of so many pairs and the number of cut ones; ``None`` if they are missing or damaged."""
    try:
        with np.load(path) as saved:
            logits, cut = saved["logits"], int(saved["cut"])
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, BadZipFile):
        return None  # cut off
    return (logits, cut) if logits.shape == (pairs,) else None
