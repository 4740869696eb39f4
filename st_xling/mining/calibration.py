"""Calibrate thresholds without gold pairs: add known translations to the text, and see what each threshold keeps.

:func:`calibrate` works on embeddings; :func:`calibrate_threshold` reads known translations from a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from st_xling.data.read import load_pairs
from st_xling.mining.deduplication import folding_key
from st_xling.mining.margins import check_aligned
from st_xling.mining.mined_pairs import MinedPairs, best_pairs
from st_xling.mining.options import SearchOptions
from st_xling.mining.search.exact import Neighbors
from st_xling.mining.search.find import find_neighbors
from st_xling.mining.thresholds import PublishedThreshold
from st_xling.utils.cosines import Embeddings, float64_rows
from st_xling.utils.options import Margin, Retrieval, check_choice, check_number, helpful_arguments

if TYPE_CHECKING:  # it loads sentence-transformers, which is slow to import
    from st_xling.mining.encoding import Encoder

# Level of the intervals.
_CONFIDENCE = 0.95
# Number of draws for the intervals of precision.
_DRAWS = 4000

# The languages whose sentences each retrieval assigns to pairs: sources (0), targets (1) or both.
_DECIDES = {"forward": (0,), "backward": (1,), "intersect": (0, 1), "max": (0, 1)}


@dataclass(frozen=True, eq=False)
class Calibration:
    """Estimates at each threshold, ascending, with 95 % intervals; every array has *shape* ``(thresholds,)``.

    Attributes:
        thresholds: Minimum scores of the kept pairs.
        recall: Estimated fraction of the text's translations that are kept.
        recall_low: Lower end of its interval.
        recall_high: Upper end of its interval.
        precision: Estimated fraction of translations among the kept pairs, the median of its posterior; NaN if none of
            the text is kept.
        precision_low: Lower end of its interval.
        precision_high: Upper end of its interval.
        kept: Number of the text's sentences in kept pairs, averaged over the languages that the retrieval assigns.
    """

    thresholds: np.ndarray
    recall: np.ndarray
    recall_low: np.ndarray
    recall_high: np.ndarray
    precision: np.ndarray
    precision_low: np.ndarray
    precision_high: np.ndarray
    kept: np.ndarray

    @property
    def f1(self) -> np.ndarray:
        """Harmonic mean of both estimates; 0 without an estimate of precision."""
        precision = np.nan_to_num(self.precision)
        total = precision + self.recall
        return np.divide(2 * precision * self.recall, total, out=np.zeros_like(total), where=total > 0)

    def best(self) -> float:
        """Return the threshold with the highest estimated F1; the highest of several."""
        f1 = self.f1
        return float(self.thresholds[len(f1) - 1 - int(f1[::-1].argmax())])

    def with_precision(self, precision: float) -> float:
        """Return the lowest threshold from which on the estimated precision is at least this, or infinity.

        Thresholds above the one with the highest estimate are not looked at: they keep so few known pairs that the
        estimates fall again.
        """
        estimates = np.nan_to_num(self.precision, nan=-1.0)
        most_precise = int(estimates.argmax())
        if estimates[most_precise] < precision:
            return float("inf")
        below = np.flatnonzero(estimates[:most_precise] < precision)
        first = int(below[-1]) + 1 if len(below) else 0
        return float(self.thresholds[first])


@helpful_arguments
def calibrate(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    known_source: Embeddings,
    known_target: Embeddings,
    *,
    k: int = 4,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    thresholds: Sequence[float] | None = None,
    seed: int = 0,
    search: Callable[..., tuple[Neighbors, Neighbors]] = find_neighbors,
) -> Calibration:
    r"""Add known translations to a text, mine it, and estimate precision and recall at each threshold.

    The known translations are split at random into pairs, of which both sentences are added to the text, and as many
    distractors, of which one sentence is added. At a threshold, let :math:`R` be the fraction of pairs that are found,
    :math:`W` that of pairs' sentences kept in another pair, :math:`F` that of distractors kept in any pair, and
    :math:`M` that of the text's sentences kept. A fraction :math:`\pi` of the text has a translation in it, so
    :math:`M = \pi (R + W) + (1 - \pi) F`. This is solved for :math:`\pi` at the threshold where pairs and distractors
    differ most, the largest :math:`R + W - F`. Then, at every threshold,

    .. math:: \mathrm{precision} = \frac{\pi R}{\pi (R + W) + (1 - \pi) F}, \qquad \mathrm{recall} = R

    If a retrieval assigns sentences of both languages, precision is the mean of both. The interval of :math:`R` is
    Wilson's. Precision and its interval are the median and the quantiles of draws of :math:`(R, W)` and :math:`F` from
    their Jeffreys posteriors, so that zero errors among few distractors do not count as an error rate of zero, and the
    estimate is inside its interval.

    Assumptions: known pairs are as hard to find as the text's translations (same domain, same noise); distractors are
    as easy to mistake as the text's sentences without a translation; neither the known sentences nor their translations
    are in the text already, or else a correct pair counts as wrong; known sentences are distinct, independent of each
    other, and few compared with the text, so that they do not change its neighborhoods. The intervals cover the
    sampling of the known sentences, not violations of these assumptions.

    Args:
        source_embeddings: Source sentences to mine. *Shape:* ``(sources, dim)``
        target_embeddings: Target sentences to mine. *Shape:* ``(targets, dim)``
        known_source: Sentences with a known translation, numpy or torch. *Shape:* ``(known, dim)``
        known_target: Their translations, row-aligned. *Shape:* ``(known, dim)``
        k: As for :func:`~st_xling.mining.mine`.
        margin: As for :func:`~st_xling.mining.mine`.
        retrieval: As for :func:`~st_xling.mining.mine`.
        thresholds: Thresholds to estimate; by default up to 100 scores at which known pairs are found.
        seed: Seed of the split and the draws.
        search: :func:`~st_xling.mining.find_neighbors` with the options that will mine the text, such as
            ``partial(find_neighbors, method="approximate")``: pairs that a search misses lower the estimated recall.

    Returns:
        Estimates with intervals.

    Raises:
        ValueError: For fewer than 4 known pairs, unequal rows or dims, an unknown margin or retrieval, or if no known
            pair is found and no thresholds are given; and as :func:`~st_xling.mining.find_neighbors`.
    Source:
        Rogan and Gladen 1978, "Estimating prevalence from the results of a screening test", for :math:`\pi`.
    """
    check_choice("margin", margin, Margin)
    check_choice("retrieval", retrieval, Retrieval)
    check_number("seed", seed, least=0)
    for threshold in () if thresholds is None else thresholds:
        check_number("thresholds", threshold)
    check_aligned(known_source, known_target)
    known_count = known_source.shape[0]
    if known_count < 4:
        raise ValueError(f"known pairs must be at least 4, better hundreds: got {known_count}; give more.")
    # Each side to mine: the text itself, the pairs, and distractors that only this language has.
    distractors = round(known_count / 4)
    order = np.random.default_rng(seed).permutation(known_count)
    source_distractors = order[:distractors]
    target_distractors = order[distractors : 2 * distractors]
    pairs = order[2 * distractors :]
    source = StackedRows([source_embeddings, known_source[pairs], known_source[source_distractors]])
    target = StackedRows([target_embeddings, known_target[pairs], known_target[target_distractors]])
    mined = best_pairs(*search(source, target, k=k), margin=margin, retrieval=retrieval)
    rows = (source_embeddings.shape[0], target_embeddings.shape[0])
    scores = [_best_scores(mined, language, rows, len(pairs), distractors) for language in _DECIDES[retrieval]]
    if thresholds is None:
        thresholds = _default_thresholds(scores[0].right)
    return _estimate(scores, np.unique(np.asarray(thresholds, dtype=np.float64)), seed)


def _default_thresholds(right: np.ndarray) -> list[float]:
    """Return up to 100 scores at which known pairs are found."""
    finite = np.unique(right[np.isfinite(right)])
    if len(finite) == 0:
        raise ValueError(
            "known pairs must be found somewhere: none of them was mined; check that both sides are encoded by one "
            "model and row-aligned, or give thresholds."
        )
    return np.quantile(finite, np.linspace(0, 1, min(100, len(finite))), method="nearest").tolist()


class _BestScores(NamedTuple):
    """Best score of each sentence of one language in a mined pair, minus infinity without one.

    Attributes:
        text: Scores of the text's sentences.
        right: Scores of known pairs' sentences with their partner.
        wrong: Scores of the same sentences with any other.
        distractors: Scores of distractors.
    """

    text: np.ndarray
    right: np.ndarray
    wrong: np.ndarray
    distractors: np.ndarray


def _estimate(scores: Sequence[_BestScores], thresholds: np.ndarray, seed: int) -> Calibration:
    """Estimate precision and recall at each threshold, ascending, from the scores of one language or both."""
    from scipy.stats import binomtest  # slow to import

    right = scores[0].right
    right_counts = _count_reaching(right, thresholds)
    random = np.random.default_rng(seed)
    draws = np.mean([_precision_draws(side, thresholds, random) for side in scores], axis=0)
    levels = [(1 - _CONFIDENCE) / 2, 0.5, (1 + _CONFIDENCE) / 2]
    precision_low, precision, precision_high = np.quantile(draws, levels, axis=0)
    tests = [binomtest(count, len(right)) for count in right_counts.tolist()]
    recall_low, recall_high = np.array([test.proportion_ci(_CONFIDENCE, "wilson") for test in tests]).T
    return Calibration(
        thresholds=thresholds,
        recall=right_counts / len(right),
        recall_low=recall_low,
        recall_high=recall_high,
        precision=precision,
        precision_low=precision_low,
        precision_high=precision_high,
        kept=np.mean([_count_reaching(side.text, thresholds) for side in scores], axis=0),
    )


class StackedRows:
    """Concatenated rows of several matrices of one dim, read as float64 on access."""

    ndim = 2

    def __init__(self, parts: Sequence[Embeddings]) -> None:
        self._parts = parts
        self._ends = np.cumsum([part.shape[0] for part in parts])
        self.shape: tuple[int, ...] = (int(self._ends[-1]), parts[0].shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray, /) -> np.ndarray:
        rows = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        result = np.empty((len(rows), self.shape[1]))
        part_of_row = np.searchsorted(self._ends, rows, side="right")
        for number in np.unique(part_of_row).tolist():
            part = self._parts[number]
            first_row = self._ends[number] - part.shape[0]
            selected = np.flatnonzero(part_of_row == number)
            result[selected] = float64_rows(part[rows[selected] - first_row], 0, None)
        return result


def _best_scores(mined: MinedPairs, language: int, rows: tuple[int, int], pairs: int, distractors: int) -> _BestScores:
    """Compute the best score of each sentence of one language in a mined pair.

    Args:
        mined: Pairs of both sides, in which the known pairs follow the ``rows`` of the text itself.
        language: 0 for sources, 1 for targets.
        rows: Number of rows of the text itself, sources and targets.
        pairs: Number of known pairs.
        distractors: Number of distractors of this language.
    """
    sides = (mined.source_indices, mined.target_indices)
    indices = sides[language]
    partners = sides[1 - language]
    text_rows = rows[language]
    best = np.full(text_rows + pairs + distractors, -np.inf)
    np.maximum.at(best, indices, mined.scores)
    is_known = (indices >= text_rows) & (indices < text_rows + pairs)
    is_partner = indices - text_rows == partners - rows[1 - language]

    def best_known(chosen: np.ndarray) -> np.ndarray:
        result = np.full(pairs, -np.inf)
        np.maximum.at(result, indices[chosen] - text_rows, mined.scores[chosen])
        return result

    return _BestScores(
        text=best[:text_rows],
        right=best_known(is_known & is_partner),
        wrong=best_known(is_known & ~is_partner),
        distractors=best[text_rows + pairs :],
    )


def _precision_draws(scores: _BestScores, thresholds: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw the precision at each threshold from its posterior; NaN where none of the text is kept.

    *Shape of the result:* ``(draws, thresholds)``
    """
    # The fraction with a translation is estimated where pairs and distractors differ most.
    known_scores = np.unique(np.concatenate([scores.right, scores.distractors]))
    right, wrong, mistaken = _shares(scores, known_scores)
    clearest = known_scores[[int((right + wrong - mistaken).argmax())]]
    kept = _count_reaching(scores.text, clearest) / len(scores.text)
    translated = _translated_share(*_draw_shares(scores, clearest, random), kept)
    draws = _precision(*_draw_shares(scores, thresholds, random), translated)
    draws[:, _count_reaching(scores.text, thresholds) == 0] = np.nan
    return draws


def _outcome_counts(scores: _BestScores, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count at each threshold known pairs that are found, those kept in another pair, and distractors kept."""
    right = _count_reaching(scores.right, thresholds)
    wrong = _count_reaching(scores.wrong, thresholds)
    mistaken = _count_reaching(scores.distractors, thresholds)
    # With "max" and "intersect" a sentence is in one pair; a backward search may hold a source several times.
    return right, np.minimum(wrong, len(scores.right) - right), mistaken


def _shares(scores: _BestScores, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute R, W and F of :func:`calibrate` at each threshold."""
    right, wrong, mistaken = _outcome_counts(scores, thresholds)
    pairs = len(scores.right)
    return right / pairs, wrong / pairs, mistaken / len(scores.distractors)


def _draw_shares(
    scores: _BestScores, thresholds: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw R, W and F of :func:`calibrate` at each threshold from their posteriors, by row."""
    right, wrong, mistaken = _outcome_counts(scores, thresholds)
    lost = len(scores.right) - right - wrong
    not_mistaken = len(scores.distractors) - mistaken
    # A Dirichlet draw is gamma draws over their sum; the prior's half a count for each outcome is Jeffreys'.
    shape = (_DRAWS, len(thresholds))
    gammas = [random.standard_gamma(count + 0.5, shape) for count in (right, wrong, lost)]
    total = gammas[0] + gammas[1] + gammas[2]
    return gammas[0] / total, gammas[1] / total, random.beta(mistaken + 0.5, not_mistaken + 0.5, shape)


def _translated_share(right: np.ndarray, wrong: np.ndarray, mistaken: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Estimate the fraction of the text with a translation; 0 if distractors are kept as often as pairs."""
    difference = right + wrong - mistaken
    share = np.divide(kept - mistaken, difference, out=np.zeros_like(difference), where=difference > 0)
    return share.clip(0.0, 1.0)


def _precision(right: np.ndarray, wrong: np.ndarray, mistaken: np.ndarray, translated: np.ndarray) -> np.ndarray:
    """Compute the fraction of translations among the kept sentences; 0 where none is kept.

    Args:
        right: R of :func:`calibrate`.
        wrong: W.
        mistaken: F.
        translated: Fraction of the text with a translation.
    """
    kept = translated * (right + wrong) + (1 - translated) * mistaken
    return np.divide(translated * right, kept, out=np.zeros_like(kept), where=kept > 0)


def _count_reaching(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Count the scores that are at least each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")


def select_known_pairs(path: str | Path, texts: Sequence[Sequence[str]], *, seed: int = 0) -> list[tuple[str, str]]:
    """Select distinct pairs of a parallel file whose sentences do not occur in the text.

    At most 10,000 pairs, and at most a tenth of the smaller side (but up to 100), are drawn, so that they do not change
    the neighborhoods of the text.

    Args:
        path: Any file of :func:`~st_xling.data.load_pairs`.
        texts: Distinct source and target sentences.
        seed: Seed of the draw.

    Raises:
        ValueError: If fewer than 4 pairs are left.
    """
    rows = load_pairs(str(path))
    pairs = list(dict.fromkeys(zip(rows["source"], rows["target"])))
    for language, text in enumerate(texts):
        keys = {folding_key(pair[language]) for pair in pairs}
        keys_in_text = {key for sentence in text if (key := folding_key(sentence)) in keys}
        pairs = [pair for pair in pairs if folding_key(pair[language]) not in keys_in_text]
    most = min(10_000, max(100, min(map(len, texts)) // 10))
    if len(pairs) > most:
        drawn = np.random.default_rng(seed).choice(len(pairs), most, replace=False)
        pairs = [pairs[row] for row in np.sort(drawn).tolist()]
    if len(pairs) < 4:
        raise ValueError(
            f"{path}: expected at least 4 pairs whose sentences do not occur in the text to mine, got {len(pairs)} of "
            f"{len(rows)}; calibrate with translations from elsewhere, of the same kind of text."
        )
    return pairs


def calibrate_threshold(
    path: str | Path,
    texts: Sequence[Sequence[str]],
    embeddings: tuple[Embeddings, Embeddings],
    encoders: Mapping[str, Encoder],
    find: Callable[..., tuple[Neighbors, Neighbors]],
    *,
    search: SearchOptions,
    folder: Path,
    settings: Mapping[str, str],
    target_precision: float | None,
    progress: bool = False,
) -> tuple[PublishedThreshold, str]:
    """Estimate the threshold of a text from a file of known translations; returns it with a line that describes it.

    Args:
        path: File of known translations, see :func:`select_known_pairs`.
        texts: Distinct source and target sentences.
        embeddings: Their embeddings.
        encoders: Encoders of the known sentences: ``source`` and ``target``.
        find: The search that will mine the text, ``search`` of :func:`calibrate`.
        search: Options by which the text is mined.
        folder: Folder for the embeddings of the known sentences and the state of the search, so that a run can resume.
        settings: Settings of the encoders, noted in the result.
        target_precision: Choose the lowest threshold whose estimated precision, not the lower end of its interval, is
            at least this; by default that of the best F1.
        progress: Show progress bars on stderr.

    Raises:
        ValueError: If fewer than 4 pairs are left, or no threshold reaches the precision.
    """
    pairs = select_known_pairs(path, texts)
    folder = folder / hashlib.sha256("\n".join(map("\t".join, pairs)).encode()).hexdigest()[:16]
    stores = []
    for side, sentences in zip(("source", "target"), zip(*pairs)):
        places = [f"{path} ({sentence!r})" for sentence in sentences]
        store = encoders[side].encode_sentences(sentences, folder / side, locate=places.__getitem__, progress=progress)
        stores.append(store)
    calibration = calibrate(
        *embeddings,
        *stores,
        k=search.k,
        margin=search.margin,
        retrieval=search.retrieval,
        search=partial(find, state_folder=folder / "search"),
    )
    threshold = calibration.best() if target_precision is None else calibration.with_precision(target_precision)
    if not np.isfinite(threshold):
        best = np.nanmax(np.append(calibration.precision, 0.0))
        raise ValueError(
            f"target_precision must be reached by some threshold: got {target_precision}, and the highest estimate is "
            f"{best:.3f}; lower it, or calibrate with more than {len(pairs)} pairs."
        )
    row = int(np.flatnonzero(calibration.thresholds == threshold)[0])
    # Without kept pairs of the text there is no estimate of precision.
    has_precision = bool(np.isfinite(calibration.precision[row]))
    calibrated = PublishedThreshold(
        threshold=threshold,
        precision=float(calibration.precision[row]) if has_precision else None,
        recall=float(calibration.recall[row]),
        f1=float(calibration.f1[row]) if has_precision else None,
        margin=search.margin,
        k=search.k,
        retrieval=search.retrieval,
        signature="",
        options=settings,
    )
    return calibrated, _describe(calibration, row, len(pairs), target_precision)


def _describe(calibration: Calibration, row: int, pairs: int, target_precision: float | None) -> str:
    """Describe the estimates at a threshold in a line.

    Args:
        calibration: All estimates.
        row: Row of the threshold.
        pairs: Number of known pairs.
        target_precision: Precision that was to be reached.
    """
    precision = calibration.precision[row]
    precision_low = calibration.precision_low[row]
    precision_text = f"{precision:.3f} [{precision_low:.3f}, {calibration.precision_high[row]:.3f}]"
    recall = calibration.recall[row]
    recall_text = f"{recall:.3f} [{calibration.recall_low[row]:.3f}, {calibration.recall_high[row]:.3f}]"
    reached = ""
    if target_precision is not None:
        target = f"the target precision {target_precision:g}"
        reached = f"; the estimate reaches {target}, the lower end of its interval does not"
        if precision_low >= target_precision:
            reached = f"; the estimate and the lower end of its interval reach {target}"
    threshold_text = f"threshold {calibration.thresholds[row]:.4f} from {pairs:,} added known pairs"
    return f"{threshold_text}; before filters, precision about {precision_text}, recall about {recall_text}{reached}"
