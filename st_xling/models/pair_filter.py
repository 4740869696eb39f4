"""Cross-encoders as filters of translations: scores that are probabilities, and the threshold that goes with them.

A cross-encoder that is trained to tell translations from pairs that only look like it gives logits whose scale depends
on the training. :func:`calibrate_filter` fits two numbers on held-out pairs (Platt scaling) and puts them into the
weights of the head, so that sentence-transformers' ``predict`` gives a probability anywhere. ``results.json`` has the
threshold of the best F1 on the same pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from torch import nn

from st_xling.models.cross_encoders import head_modules
from st_xling.models.pair_scorer import PairScorer
from st_xling.utils.io import read_json_object
from st_xling.utils.signature import loaded, name_of

_RECORD = "results.json"
_FEWEST_PAIRS = 10  # of each label


@dataclass(frozen=True)
class PairFilter:
    """How a filter was calibrated, and its threshold.

    Attributes:
        threshold: Lowest probability of the kept pairs, where F1 is best on the held-out pairs.
        precision: Share of translations among them, if half of all pairs are translations.
        recall: Share of the translations that are kept.
        f1: Harmonic mean of precision and recall.
        scale: Number that the logits were multiplied by; above 0.
        offset: Number that was added then.
        pairs: Number of held-out pairs.

    Example:
        >>> PairFilter(threshold=0.4, precision=0.9, recall=0.8, f1=0.85, scale=1.5, offset=-0.2, pairs=400).as_dict()
        {'threshold': 0.4, 'precision': 0.9, 'recall': 0.8, 'f1': 0.85, 'scale': 1.5, 'offset': -0.2, 'pairs': 400}
    """

    threshold: float
    precision: float
    recall: float
    f1: float
    scale: float
    offset: float
    pairs: int

    def as_dict(self) -> dict[str, float]:
        """Return the facts for ``results.json``."""
        return asdict(self)


def platt_scaling(logits: np.ndarray, is_translation: np.ndarray) -> tuple[float, float]:
    r"""Fit the scale and the offset with which logits become probabilities.

    .. math:: P(\text{translation}) = \sigma(\mathrm{scale} \cdot \mathrm{logit} + \mathrm{offset})

    Both labels weigh the same, however many pairs there are of each: the probability is that of a text of which half of
    the pairs are translations.

    Args:
        logits: Scores before the activation. *Shape:* ``(pairs,)``
        is_translation: Flags. *Shape:* ``(pairs,)``

    Returns:
        Scale and offset.

    Raises:
        ValueError: Too few pairs of a label, or logits that are not higher for translations.

    Source:
        Platt 1999, "Probabilistic outputs for support vector machines"; labels are smoothed as there, so that pairs
        that are told apart without an error do not give an infinite scale.

    Example:
        >>> scale, offset = platt_scaling(np.linspace(-4, 4, 40), np.arange(40) >= 20)
        >>> scale > 1, abs(offset) < 0.1
        (True, True)
    """
    from scipy.optimize import minimize

    flags = np.asarray(is_translation, dtype=bool)
    counts = (int((~flags).sum()), int(flags.sum()))
    if min(counts) < _FEWEST_PAIRS:
        raise ValueError(
            f"calibration needs at least {_FEWEST_PAIRS} held-out translations and as many other pairs: got "
            f"{counts[1]} and {counts[0]}; give more development text."
        )
    targets = np.where(flags, (counts[1] + 1) / (counts[1] + 2), 1 / (counts[0] + 2))
    weights = np.where(flags, 0.5 / counts[1], 0.5 / counts[0])
    # In units of their spread, logits of any model take the same steps.
    spread = float(np.std(logits)) or 1.0
    values = np.asarray(logits, dtype=np.float64) / spread

    def loss(parameters: np.ndarray) -> float:
        scaled = parameters[0] * values + parameters[1]
        return float(np.sum(weights * (np.logaddexp(0, scaled) - targets * scaled)))

    scale, offset = minimize(loss, np.array([1.0, 0.0]), method="BFGS").x
    if scale <= 0:
        raise ValueError(
            "the cross-encoder does not tell held-out translations from other pairs: their scores are no higher; train "
            "longer, or on more text."
        )
    return float(scale) / spread, float(offset)


def calibrate_filter(
    model: CrossEncoder, pairs: Sequence[tuple[str, str]], is_translation: Sequence[bool] | np.ndarray
) -> PairFilter:
    """Calibrate a cross-encoder on held-out pairs, in place, and choose its threshold.

    Args:
        model: A cross-encoder with one label, whose last layer is linear. ``predict`` gives probabilities afterwards.
        pairs: Held-out pairs, which it was not trained on; both translations and pairs that only look like it.
        is_translation: Whether each is a translation.

    Raises:
        ValueError: As :func:`platt_scaling`.
    """
    scorer = PairScorer(model, long_queries="lowest")
    logits = scorer.score(pairs, raw=True).astype(np.float64)
    scored = np.isfinite(logits)
    flags = np.asarray(is_translation, dtype=bool)[scored]
    scale, offset = platt_scaling(logits[scored], flags)
    _scale_head(model, scale, offset)
    probabilities = 1 / (1 + np.exp(-(scale * logits[scored] + offset)))
    threshold, precision, recall = _best_threshold(probabilities, flags)
    return PairFilter(
        threshold=round(threshold, 4),
        precision=round(precision, 4),
        recall=round(recall, 4),
        f1=round(2 * precision * recall / (precision + recall), 4),
        scale=scale,
        offset=offset,
        pairs=int(scored.sum()),
    )


def _best_threshold(probabilities: np.ndarray, flags: np.ndarray) -> tuple[float, float, float]:
    """Return the threshold of the best F1 if both labels are as frequent, with its precision and recall."""
    order = np.argsort(-probabilities, kind="stable")
    kept_right = np.cumsum(flags[order]) / flags.sum()
    kept_wrong = np.cumsum(~flags[order]) / (~flags).sum()
    ordered = probabilities[order]
    last_of_equal = np.append(ordered[1:] != ordered[:-1], True)
    precision = kept_right / (kept_right + kept_wrong)
    f1 = np.where(last_of_equal & (kept_right > 0), 2 * kept_right / (kept_right + kept_wrong + 1), -1.0)
    best = int(f1.argmax())
    lower = ordered[best + 1] if best + 1 < len(ordered) else 0.0
    # Midway to the next lower one, since new pairs have other scores.
    return float((ordered[best] + lower) / 2), float(precision[best]), float(kept_right[best])


def _scale_head(model: CrossEncoder, scale: float, offset: float) -> None:
    """Multiply the scores by ``scale`` and add ``offset``, in the last linear layer of the head."""
    layers = [module for module in nn.ModuleList(head_modules(model)).modules() if isinstance(module, nn.Linear)]
    last = layers[-1]
    with torch.no_grad():
        last.weight.mul_(scale)
        if last.bias is None:
            last.bias = nn.Parameter(torch.zeros_like(last.weight[:, 0]))
        last.bias.mul_(scale).add_(offset)


def load_pair_filter(model: Any) -> PairFilter | None:
    """Return the calibration that was saved with a cross-encoder; ``None``: it is none that was trained as a filter.

    Args:
        model: Folder or Hub id, or a model that was loaded from either. From the Hub one file is downloaded, of the
            model's revision.

    Raises:
        ValueError: If the file is broken.

    Example:
        >>> load_pair_filter("my-encoder") is None
        True
    """
    name = str(model) if isinstance(model, (str, Path)) else name_of(model)
    if name is None:
        return None
    path: str | Path | None = Path(name, _RECORD)
    if not Path(name).is_dir():
        from sentence_transformers.util import load_file_path

        revision = None if isinstance(model, (str, Path)) else loaded(model).options.get("revision")
        path = load_file_path(name, _RECORD, revision=revision)
    content = {} if path is None else read_json_object(Path(path))
    training = content.get("training")
    facts = training.get("filter") if isinstance(training, dict) else None
    if facts is None:
        return None
    names = [field.name for field in fields(PairFilter)]
    try:
        pair_filter = PairFilter(**{key: facts[key] for key in names})
        is_sound = 0 <= pair_filter.threshold <= 1 and math.isfinite(pair_filter.scale)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected the calibration of a filter, with {', '.join(names)} ({error}).") from error
    if not is_sound:
        raise ValueError(f"{path}: expected a threshold between 0 and 1: got {pair_filter.threshold!r}.")
    return pair_filter
