"""Similarity matrices that the sentence-level losses rank by."""

from __future__ import annotations

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

Similarity = Literal["cosine", "dot"]


def similarity_matrix(source: Tensor, target: Tensor, similarity: Similarity = "cosine") -> Tensor:
    """All similarities between two sets of embeddings.

    Args:
        source: *Shape:* ``(rows, dim)``
        target: *Shape:* ``(columns, dim)``
        similarity: ``"cosine"`` or ``"dot"``.

    Returns:
        *Shape:* ``(rows, columns)``, in the embeddings' dtype, also under autocast.

    Raises:
        ValueError: Another similarity, or embeddings that are not matrices of one width.
    """
    if similarity not in get_args(Similarity):
        raise ValueError(f"similarity must be one of {get_args(Similarity)}: got {similarity!r}.")
    if source.ndim != 2 or target.ndim != 2 or source.shape[1] != target.shape[1]:
        raise ValueError(
            f"expected two matrices of embeddings of one width: got {tuple(source.shape)} and {tuple(target.shape)}."
        )
    with torch.autocast(source.device.type, enabled=False):  # bfloat16 tells a cosine of 0.996 from 1 and none between
        if similarity == "cosine":
            source, target = F.normalize(source, dim=1), F.normalize(target, dim=1)
        return source @ target.T
