"""How large the blocks are that a search is cut into."""

from __future__ import annotations

from dataclasses import dataclass

# Beyond these, larger blocks gain nothing: a processor's cache is full, a GPU is busy.
_LARGEST = {"cpu": (4096, 2048), "cuda": (16384, 16384)}

# Groups that each row's products are parted into, per neighbour wanted; their maxima prune the others.
_GROUPS_PER_NEIGHBOUR = 64


@dataclass(frozen=True)
class Blocks:
    """Rows of either side compared at a time."""

    rows: int
    columns: int


def block_sizes(sources: int, targets: int, dim: int, *, memory_mib: int, device: str) -> Blocks:
    """Blocks whose working memory stays below a budget.

    A block of r by c takes about ``8 * r * c`` bytes for the products, their group maxima and what is picked from them,
    and ``6 * dim * (r + c)`` for both sides' unit vectors; a crowded block another ``8 * dim * (r + c)``.

    Raises:
        ValueError: When the budget does not even hold 64 by 64 sentences.
    """
    rows, columns = _LARGEST.get(device, _LARGEST["cuda"])
    rows, columns = min(rows, sources), min(columns, targets)
    while 8 * rows * columns + 14 * dim * (rows + columns) > memory_mib * 2**20:
        if max(rows, columns) <= 64:
            raise ValueError(
                f"memory_mib must hold blocks of 64 by 64 sentences of dim {dim}: got {memory_mib}; "
                f"allow {(8 * 64 * 64 + 14 * dim * 128) // 2**20 + 1} or more."
            )
        rows, columns = (rows, -(-columns // 2)) if columns >= rows else (-(-rows // 2), columns)
    return Blocks(rows, columns)


def padded(size: int, k: int) -> tuple[int, int]:
    """Groups that ``size`` candidates are parted into, and the next size that they divide."""
    groups = min(_GROUPS_PER_NEIGHBOUR * k, size)
    return groups, -(-size // groups) * groups
