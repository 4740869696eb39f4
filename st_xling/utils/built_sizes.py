"""Sizes of the models that are built from text, checked without torch, so that a typing error is named at once."""

from __future__ import annotations

from typing import Literal

from st_xling.utils.options import check_choice

Architecture = Literal["bert", "xlm-roberta"]

BUILT_MODELS = ("tiny", "static")
"""Names of models that a run builds from its training text, with random weights."""

LIMITS = {"vocabulary": (15, 1_000_000), "layers": (1, 100), "hidden_size": (2, 8192), "max_length": (3, 32_768)}
"""Smallest and largest sizes of the tiny encoder. The largest are beyond those of large encoders."""

STATIC_LIMITS = {"vocabulary": (15, 2_000_000), "dimensions": (2, 8192)}
"""Smallest and largest sizes of the static encoder."""


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

    The arguments are those of :func:`~st_xling.models.tiny_encoder`.

    Args:
        vocabulary: Size of the vocabulary in pieces, special tokens included.
        layers: Transformer layers.
        hidden_size: Width of the states and of the sentence embedding.
        heads: Attention heads; ``None``: one for every 64 dimensions, and at least 2.
        max_length: Tokens that a text is cut to, special tokens included.
        dropout: Dropout of hidden states and attention weights.
        architecture: ``"bert"`` or ``"xlm-roberta"``.
        seed: Seed of the weights.
    """
    sizes = {"vocabulary": vocabulary, "layers": layers, "hidden_size": hidden_size, "max_length": max_length}
    check_choice("architecture", architecture, Architecture)
    _check_limits("tiny", sizes, LIMITS, seed)
    if heads is None:
        heads = max(2, hidden_size // 64)
    if heads < 1:
        raise ValueError(f"tiny heads must be at least 1: got {heads}.")
    if hidden_size % heads:
        raise ValueError(f"tiny hidden_size must be a multiple of heads, {heads}: got {hidden_size}; choose another.")
    if not 0 <= dropout < 1:
        raise ValueError(f"tiny dropout must be at least 0 and below 1: got {dropout}.")
    return heads


def check_static_sizes(*, vocabulary: int = 24_000, dimensions: int = 256, seed: int = 0) -> None:
    """Raise ``ValueError`` for sizes of no static encoder.

    The arguments are those of :func:`~st_xling.models.static_encoder`.

    Args:
        vocabulary: Size of the vocabulary in pieces.
        dimensions: Dimensions of the sentence embedding.
        seed: Seed of the vectors.
    """
    _check_limits("static", {"vocabulary": vocabulary, "dimensions": dimensions}, STATIC_LIMITS, seed)


def _check_limits(model: str, sizes: dict[str, int], limits: dict[str, tuple[int, int]], seed: int) -> None:
    for name, size in sizes.items():
        least, most = limits[name]
        if not least <= size <= most:
            raise ValueError(f"{model} {name} must be from {least:,} to {most:,}: got {size:,}.")
    if not 0 <= seed < 2**32:
        raise ValueError(f"{model} seed must be from 0 to {2**32 - 1:,}: got {seed}.")
