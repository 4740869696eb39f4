"""The weighted F1 that mteb reports for bitext tasks such as Tatoeba."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def weighted_f1(found: ArrayLike) -> float:
    r"""F1 of "which sentence did row i find?" read as classification into as many classes as there are sentences.

    mteb takes row :math:`i`'s own number as its class and the number of its nearest neighbour as the prediction, and
    calls scikit-learn's ``f1_score(average="weighted", zero_division=0)``. Each class has one member, so with
    :math:`c_i` the rows that found sentence :math:`i`

    .. math:: \frac{1}{n} \sum_{i=1}^{n} \frac{2\,[\,\mathrm{found}_i = i\,]}{1 + c_i}

    A hit counts in full only where no other row found the same sentence: the figure is at most the accuracy (P@1), and
    the two agree where every sentence is found at most once. There are no distractors and no threshold, so it is not
    the F1 of mining, whatever the data set is called.

    Args:
        found: Index of each row's nearest neighbour. *Shape:* ``(rows,)``
    Returns:
        A fraction in [0, 1].
    Source:
        mteb 2.26.24, ``abstasks/text/bitext_mining.py``, method ``_compute_metrics``.
    Example:
        >>> round(weighted_f1([0, 0, 2]), 4)
        0.5556
    """
    indices = np.asarray(found, dtype=np.int64)
    if indices.ndim != 1 or not len(indices):
        raise ValueError(f"found must be a list of at least one index: got shape {indices.shape}.")
    counts = np.bincount(indices, minlength=len(indices))[: len(indices)]
    hits = indices == np.arange(len(indices))
    return float(np.mean(2 * hits / (1 + counts)))
