"""How sure a share is."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np


def wilson(hits: np.ndarray, trials: int, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of a binomial share.

    Args:
        hits: Successes. Any shape
        trials: Trials, at least 1, taken as independent.
        confidence: In (0, 1).
    Returns:
        Lower and upper ends, in [0, 1]. *Shapes:* that of ``hits``
    Source:
        Wilson 1927; Brown, Cai and DasGupta 2001, "Interval Estimation for a Binomial Proportion".
    Example:
        >>> [end.round(3).item() for end in wilson(np.array(9), 10, 0.95)]
        [0.596, 0.982]
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = hits / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    # At the ends of the scale one side is 0 or 1 in exact arithmetic; rounding should not leave a crumb.
    return np.where(hits == 0, 0.0, middle - half), np.where(hits == trials, 1.0, middle + half)
