"""Sizes of the tiny encoder, checked without torch, so that a slip of the finger is named at once."""

from __future__ import annotations

from typing import Literal

from st_xling.utils.options import check_choice

Architecture = Literal["bert", "xlm-roberta"]

LIMITS = {"vocabulary": (15, 1_000_000), "layers": (1, 100), "hidden_size": (2, 8192), "max_length": (3, 32_768)}
"""Smallest and largest sizes. The largest are beyond those of large encoders."""


def check_sizes(
    *,
    vocabulary: int = 8000,
    layers: int = 2,
    hidden_size: int = 192,
    heads: int | None = None,
    max_length: int = 32,
    dropout: float = 0.1,
    architecture: Architecture = "bert",
    seed: int = 0,
) -> int:
    """Return the number of attention heads, or raise ``ValueError`` for sizes of no small encoder.

    Args:
        vocabulary: As for :func:`tiny_encoder`, as all that follow.
        layers: As above.
        hidden_size: As above.
        heads: As above.
        max_length: As above.
        dropout: As above.
        architecture: As above.
        seed: As above.
    """
    sizes = {"vocabulary": vocabulary, "layers": layers, "hidden_size": hidden_size, "max_length": max_length}
    check_choice("architecture", architecture, Architecture)
    for name, size in sizes.items():
        least, most = LIMITS[name]
        if not least <= size <= most:
            raise ValueError(f"tiny {name} must be from {least:,} to {most:,}: got {size:,}.")
    heads = heads if heads is not None else max(2, hidden_size // 64)
    if heads < 1:
        raise ValueError(f"tiny heads must be at least 1: got {heads}.")
    if hidden_size % heads:
        raise ValueError(f"tiny hidden_size must be a multiple of heads, {heads}: got {hidden_size}; choose another.")
    if not 0 <= dropout < 1:
        raise ValueError(f"tiny dropout must be at least 0 and below 1: got {dropout}.")
    if not 0 <= seed < 2**32:
        raise ValueError(f"tiny seed must be from 0 to {2**32 - 1:,}: got {seed}.")
    return heads
