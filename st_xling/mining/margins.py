"""Compare a pair's cosine with the neighborhoods of its two sentences."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

#: Names that ``margin`` may take.
MARGINS = ("absolute", "distance", "ratio")

#: Least mean neighbor cosine that a ratio is taken over.
SMALLEST_DENOMINATOR = 1e-6


def margin_scores(
    cosines: ArrayLike, source_means: ArrayLike, target_means: ArrayLike, *, margin: str = "ratio"
) -> np.ndarray:
    r"""Compute the margin scores of candidate pairs.

    .. math:: \mathrm{score}(x, y) = m\Bigl(\cos(x, y),\;
        \sum_{z \in N_k(x)} \frac{\cos(x, z)}{2k} + \sum_{z \in N_k(y)} \frac{\cos(y, z)}{2k}\Bigr),
        \quad m_{absolute}(a, b) = a, \quad m_{distance}(a, b) = a - b, \quad m_{ratio}(a, b) = a / b

    With the sums over :math:`2k`, :math:`b` is the mean of ``source_means`` and ``target_means``. Equation 8 of DAP has
    :math:`k` there: its ratio is half of this one, its ranking the same. We keep LASER's :math:`2k`, so that a
    threshold such as 1.06 means here what it means there.

    A ratio over a :math:`b` below 1e-6 says nothing: cosines carry an error near 1e-7, and over a negative :math:`b`
    a bad pair would turn into a good one. Such a pair scores minus infinity, whatever its cosine.

    Args:
        cosines: Cosines of the pairs. Any shape
        source_means: Mean cosine of each source's ``k`` nearest targets. Broadcast against ``cosines``
        target_means: Mean cosine of each target's ``k`` nearest sources. Broadcast against ``cosines``
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.
    Returns:
        Scores, float64; higher is better. *Shape:* that of the broadcast inputs
    Raises:
        ValueError: On an unknown margin, or when an input is not finite.
    Source:
        Artetxe and Schwenk 2019, "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings", equation
        2 and table 1; Li et al. 2023 (DAP), equation 8.
    Example:
        >>> margin_scores(0.9, 0.7, 0.5).round(4).item()
        1.5
    """
    if margin not in MARGINS:
        raise ValueError(f"margin must be one of {', '.join(MARGINS)}: got {margin!r}; 'ratio' is the usual choice.")
    inputs = {"cosines": cosines, "source_means": source_means, "target_means": target_means}
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in inputs.items()}
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite: got NaN or infinity; check the embeddings they come from.")
    cosine, source_mean, target_mean = np.broadcast_arrays(*arrays.values())
    if margin == "absolute":
        return cosine.copy()
    neighborhood = (source_mean + target_mean) / 2
    if margin == "distance":
        return np.asarray(cosine - neighborhood)
    scores = np.full(cosine.shape, -np.inf)
    np.divide(cosine, neighborhood, out=scores, where=neighborhood >= SMALLEST_DENOMINATOR)
    return scores
