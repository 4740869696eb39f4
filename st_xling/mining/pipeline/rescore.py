"""Score mined pairs again with a cross-encoder, which reads both sentences together."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from st_xling.mining.filters import RejectedPair
from st_xling.mining.mined_pairs import MinedPairs
from st_xling.mining.store import model_identity
from st_xling.utils.io import file_crc32
from st_xling.utils.lazy_model import LazyModel
from st_xling.utils.resumable import ResumableFolder
from st_xling.utils.signature import name_of
from st_xling.utils.terminal import progress_bar

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder
    from typing_extensions import Unpack

    from st_xling.models.load import LoadingOptions
    from st_xling.models.pair_scorer import PairScorer

logger = logging.getLogger(__name__)

# Pairs scored between two saves, and sorted by length together.
_PAIRS_PER_STEP = 2000


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
            f"expected a cross-encoder with a trained head of one score at {model!r}; st-xling train filter makes "
            f"one ({error})"
        ) from error


def rescore_threshold(model: Any, threshold: float | None) -> float | None:
    """Return the threshold of a cross-encoder: the given one, or that of a filter; ``None``: every score is kept.

    Args:
        model: Name of the cross-encoder, or the model.
        threshold: The user's.

    Raises:
        ValueError: If the file that has a filter's threshold is broken.
    """
    if threshold is not None:
        return threshold
    from st_xling.models.pair_filter import load_pair_filter

    pair_filter = load_pair_filter(model)
    if pair_filter is None:
        return None
    logger.info(
        "re-scoring threshold %.4f of %s: precision %.3f, recall %.3f on its held-out pairs, half of them translations",
        pair_filter.threshold,
        name_of(model) or model,
        pair_filter.precision,
        pair_filter.recall,
    )
    return pair_filter.threshold


class PairRescorer:
    """Scores pairs again with a cross-encoder, block by block, and counts those below its threshold.

    Args:
        model: The cross-encoder.
        name: Name by which it was loaded.
        threshold: Lowest score, after the model's activation, of the kept pairs; ``None``: that of a filter, if the
            model is one.

    Attributes:
        model: Name of the model, for signatures.
        threshold: The threshold; ``None``: every score is kept.
        rejected: Number of rejected pairs: ``rescore`` for those below the threshold, ``too_long`` for those whose
            source, which is never cut, leaves the model no room for a target.
    """

    def __init__(self, model: CrossEncoder, name: str | None, threshold: float | None) -> None:
        from st_xling.models.pair_scorer import PairScorer

        self.model = str(model_identity(model, name))
        self.threshold = rescore_threshold(name or model, threshold)
        self.rejected = Counter[str]()
        self._scorer = PairScorer(model, long_queries="lowest")

    def scores(self, pairs: Sequence[tuple[str, str]]) -> tuple[np.ndarray, list[str | None]]:
        """Score pairs, source first.

        Returns:
            Scores after the activation, float64, *shape* ``(pairs,)``; and the reason why each is rejected, ``None``
            for those that are kept.
        """
        if not pairs:
            return np.empty(0), []
        logits = self._scorer.score(pairs, raw=True)
        scores = self._scorer.activate(logits).astype(np.float64)
        reasons: list[str | None] = []
        for logit, score in zip(logits.tolist(), scores.tolist()):
            reason = None
            if not np.isfinite(logit):
                reason = "too_long"
            elif self.threshold is not None and score < self.threshold:
                reason = "rescore"
            reasons.append(reason)
        self.rejected.update(reason for reason in reasons if reason is not None)
        return scores, reasons


class RescoredPairs(NamedTuple):
    """Pairs with the scores of a cross-encoder.

    Attributes:
        pairs: Pairs with those scores, best first; equal scores stay in the order of their margins.
        margins: Their margins. *Shape:* ``(pairs,)``
        rejected: Number of rejected pairs per reason: ``rescore`` for those below the threshold, ``too_long`` for those
            whose source, which is never cut, leaves the model no room for a target.
        model: Name of the model, for signatures.
    """

    pairs: MinedPairs
    margins: np.ndarray
    rejected: dict[str, int]
    model: str


def rescore_pairs(
    encoder: Any,
    name: str | None,
    pairs: MinedPairs,
    texts: tuple[Sequence[str], Sequence[str]],
    folder: ResumableFolder,
    *,
    threshold: float | None,
    on_reject: Callable[[RejectedPair], object],
    progress: bool = False,
) -> RescoredPairs:
    """Score each pair as (source, target), and sort by this score.

    Scores are saved in ``folder`` as they are computed; called again with the same pairs and model, it resumes.

    Args:
        encoder: A cross-encoder of one label.
        name: Name by which it was loaded.
        pairs: Mined pairs.
        texts: Sentences of both languages, by row.
        folder: Folder where scores are saved, a step for some pairs.
        threshold: Keep pairs whose score, after the model's activation, is at least this.
        on_reject: Called with each rejected pair, whose ``score`` is its margin.
        progress: Show a bar on stderr.

    Raises:
        ValueError: For a model of several labels.
    """
    from st_xling.models.pair_scorer import PairScorer

    identity = model_identity(encoder, name)
    scorer = PairScorer(encoder, long_queries="lowest")
    dtype = next(encoder.parameters()).dtype
    logits = _score_logits(scorer, f"{identity.fingerprint} {dtype}", pairs, texts, folder, progress=progress)
    # Sorted before the activation: a sigmoid takes all logits above 17 for 1.
    order = np.argsort(-logits, kind="stable")
    order = order[np.isfinite(logits[order])]
    scores = scorer.activate(logits[order]).astype(np.float64)
    is_kept = np.ones(len(order), dtype=bool) if threshold is None else scores >= threshold

    def reject(row: int, reason: str, score: float | None) -> None:
        margin, source_index, target_index = pairs[row]
        sources, targets = texts
        source = sources[source_index]
        target = targets[target_index]
        on_reject(RejectedPair(reason, score, margin, source_index, target_index, source, target))

    rejected = Counter[str]()
    for row, score in zip(order[~is_kept].tolist(), scores[~is_kept].tolist()):
        reject(row, "rescore", score)
        rejected["rescore"] += 1
    for row in np.flatnonzero(~np.isfinite(logits)).tolist():
        reject(row, "too_long", None)
        rejected["too_long"] += 1
    kept_rows = order[is_kept]
    kept = MinedPairs(scores[is_kept], pairs.source_indices[kept_rows], pairs.target_indices[kept_rows])
    return RescoredPairs(kept, pairs.scores[kept_rows], dict(rejected), str(identity))


def _score_logits(
    scorer: PairScorer,
    fingerprint: str,
    pairs: MinedPairs,
    texts: tuple[Sequence[str], Sequence[str]],
    folder: ResumableFolder,
    *,
    progress: bool,
) -> np.ndarray:
    """Score pairs before the activation, minus infinity for those that are too long; saved scores are read.

    Args:
        scorer: Scorer of the cross-encoder.
        fingerprint: Everything of the model that its scores depend on.
        pairs: The pairs.
        texts: Sentences of both languages, by row.
        folder: As for :func:`rescore_pairs`.
        progress: Show a bar on stderr.
    """
    digest = hashlib.sha256(fingerprint.encode())
    for indices in (pairs.source_indices, pairs.target_indices):
        digest.update(indices.tobytes())
    logits = np.empty(len(pairs), dtype=np.float32)
    finished = folder.steps
    sources, targets = texts
    with progress_bar(total=len(pairs), unit="pairs", desc="re-scoring", show=progress) as bar:
        for start in range(0, len(pairs), _PAIRS_PER_STEP):
            some = pairs.select(slice(start, start + _PAIRS_PER_STEP))
            step = f"rescored-{digest.hexdigest()[:16]}-{start}"
            scores = _load_scores(folder.path / f"{step}.npy", finished[step]) if step in finished else None
            if scores is None:
                rows = zip(some.source_indices.tolist(), some.target_indices.tolist())
                scores = scorer.score([(sources[source], targets[target]) for source, target in rows], raw=True)
                with folder.writing(step, f"{step}.npy", checksum=True) as path, path.open("wb") as stream:
                    np.save(stream, scores)
            logits[start : start + _PAIRS_PER_STEP] = scores
            bar.update(len(some))
    return logits


def _load_scores(path: Path, step: Mapping[str, Any]) -> np.ndarray | None:
    """Load the saved scores of a finished step; ``None`` if the file is damaged."""
    if file_crc32(path) != step.get("crc32"):
        logger.warning("%s is damaged: these pairs are scored again", path)
        return None
    return np.load(path)
