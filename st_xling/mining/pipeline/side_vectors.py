"""Vectors of both sides' distinct sentences, and what they depend on: as mining and scoring need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from st_xling.mining.deduplication import DistinctText
from st_xling.mining.find import check_k
from st_xling.mining.vectors import GivenEmbeddings, VectorMakers, embeddings_of
from st_xling.utils.cosines import Embeddings


class SideText(Protocol):
    """A side's name, its sentences by row, and the distinct ones."""

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> Sequence[str]: ...

    @property
    def distinct(self) -> DistinctText: ...


def search_task(command: str, texts: Mapping[str, str], makers: VectorMakers, *, k: int, method: str) -> dict[str, Any]:
    """What embeddings and search depend on, for a :class:`~st_xling.utils.work_folder.WorkFolder`.

    Args:
        command: Whose work it is.
        texts: Hashes, by name.
        makers: What gives each side's vectors.
        k: Neighbours.
        method: Of the search.
    """
    task: dict[str, Any] = {"command": command, "k": k, "method": method}
    task |= {f"{name} text": sha256 for name, sha256 in texts.items()}
    for side, maker in makers.items():
        task |= {f"{side} {name}": value for name, value in maker.settings.items()}
    return task


def check_sides(sides: Sequence[SideText], makers: VectorMakers, k: int) -> None:
    """Raise for what can be wrong with text and embeddings, before a work folder is made and anything is embedded.

    Raises:
        ValueError: If a store is damaged or of another text, or ``k`` above the number of distinct sentences.
    """
    for side in sides:
        maker = makers[side.name]
        if isinstance(maker, GivenEmbeddings):
            maker.check(side.text)
    check_k(k, *(len(side.distinct) for side in sides))


def distinct_vectors(
    sides: Sequence[SideText], makers: VectorMakers, folder: Path, *, progress: bool = False
) -> tuple[Embeddings, Embeddings]:
    """Vectors of each side's distinct sentences, which :func:`check_sides` has looked at."""
    source, target = (
        embeddings_of(side.distinct, makers[side.name], folder / side.name, progress=progress) for side in sides
    )
    return source, target
