"""Score mined pairs again with a cross-encoder, which reads both sentences together."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.mining.filters import RejectedPair
from st_xling.mining.mined_pairs import MinedPairs
from st_xling.mining.store import model_identity
from st_xling.utils.io import atomic_writer
from st_xling.utils.lazy_model import LazyModel
from st_xling.utils.signature import name_of
from st_xling.utils.terminal import progress_bar

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder
    from typing_extensions import Unpack

    from st_xling.models.load import LoadingOptions

logger = logging.getLogger(__name__)

# Pairs scored between two saves, and sorted by length together.
_PAIRS = 2000


def load_reranker(
    model: Any, device: str | None = None, **options: Unpack[LoadingOptions]
) -> tuple[CrossEncoder, str | None]:
    """Load a cross-encoder; returns it with the name it was loaded by, if any.

    Args:
        model: A cross-encoder, perhaps yet to be loaded, or its Hub id or folder.
        device: Device to load it on; by default a GPU if there is one.
        **options: See :func:`~st_xling.models.load.load_sentence_transformer`; only of a name.
    Raises:
        ValueError: If nothing can be loaded at that name, or the model has no trained head of one score.
    """
    from st_xling.models.cross_encoders import cross_encoder

    if isinstance(model, LazyModel):
        return model.load(), model.name
    if not isinstance(model, str):
        return model, name_of(model)
    try:
        return cross_encoder(model, head="keep", device=device, **options), model
    except ValueError as error:
        raise ValueError(
            f"expected a cross-encoder with a trained head of one score at {model!r}; st-xling train xpr-mixed makes "
            f"one ({error})"
        ) from error


def rescore_pairs(
    encoder: Any,
    name: str | None,
    pairs: MinedPairs,
    texts: Sequence[Sequence[str]],
    folder: Path,
    *,
    threshold: float | None,
    on_reject: Callable[[RejectedPair], object],
    progress: bool = False,
) -> tuple[MinedPairs, np.ndarray, dict[str, int], str]:
    """Score each pair as (source, target), and sort by this score; equal scores stay in the order of their margins.

    Scores are saved in ``folder`` as they are computed; called again with the same pairs and model, it resumes.

    Args:
        encoder: A cross-encoder of one label.
        name: Name by which it was loaded.
        pairs: Mined pairs.
        texts: Sentences of both languages, by row.
        folder: Folder where scores are saved.
        threshold: Keep pairs whose score, after the model's activation, is at least this.
        on_reject: Called with each rejected pair, whose ``score`` is its margin.
        progress: Show a bar on stderr.
    Returns:
        Pairs with those scores; their margins, *shape* ``(pairs,)``; the number of rejected pairs per reason:
        ``rescore`` for those below the threshold, ``too_long`` for those whose source, which is never cut, leaves the
        model no room for a target; and the name of the model, for signatures.
    Raises:
        ValueError: For a model of several labels.
    """
    from st_xling.models.pair_scorer import PairScorer

    identity = model_identity(encoder, name)
    digest = hashlib.sha256(f"{identity.fingerprint} {next(encoder.parameters()).dtype}".encode())
    for column in (pairs.source_indices, pairs.target_indices):
        digest.update(column.tobytes())
    scorer = PairScorer(encoder, long_queries="lowest")
    logits = np.empty(len(pairs), dtype=np.float32)
    with progress_bar(total=len(pairs), unit="pairs", desc="re-scoring", show=progress) as bar:
        for start in range(0, len(pairs), _PAIRS):
            some = pairs.select(slice(start, start + _PAIRS))
            part = folder / f"rescored-{digest.hexdigest()[:16]}-{start}.npy"
            scores = _load_scores(part, len(some))
            if scores is None:
                rows = zip(some.source_indices.tolist(), some.target_indices.tolist())
                scores = scorer.score([(texts[0][one], texts[1][other]) for one, other in rows], raw=True)
                with atomic_writer(part) as stream:
                    np.save(stream, scores)
            logits[start : start + _PAIRS] = scores
            bar.update(len(some))
    # Sorted before the activation: a sigmoid takes all logits above 17 for 1.
    order = np.argsort(-logits, kind="stable")
    order = order[np.isfinite(logits[order])]
    scores = scorer.activate(logits[order]).astype(np.float64)
    above = np.ones(len(order), dtype=bool) if threshold is None else scores >= threshold
    removed: list[tuple[str, int, float | None]] = [
        *(("rescore", row, score) for row, score in zip(order[~above].tolist(), scores[~above].tolist())),
        *(("too_long", row, None) for row in np.flatnonzero(~np.isfinite(logits)).tolist()),
    ]
    for reason, row, value in removed:
        margin, one, other = pairs[row]
        on_reject(RejectedPair(reason, value, margin, one, other, texts[0][one], texts[1][other]))
    chosen = order[above]
    rescored = MinedPairs(scores[above], pairs.source_indices[chosen], pairs.target_indices[chosen])
    return rescored, pairs.scores[chosen], dict(Counter(reason for reason, *_ in removed)), str(identity)


def _load_scores(path: Path, pairs: int) -> np.ndarray | None:
    """Load the saved scores of so many pairs; ``None`` if there are none, or the file is damaged."""
    if not path.is_file():
        return None
    try:
        scores = np.load(path)
    except (ValueError, EOFError):
        scores = None
    if not isinstance(scores, np.ndarray) or scores.shape != (pairs,):
        logger.warning("%s is damaged: these pairs are scored again", path)
        return None
    return scores
