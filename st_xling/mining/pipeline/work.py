"""Shared steps of mining and scoring: keep the work, embed, write pairs and sign them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from st_xling._version import __version__
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import PairFilters
from st_xling.mining.search.approximate import FAISS, CandidateIndex
from st_xling.mining.search.exact import check_k
from st_xling.mining.search.find import choose_method
from st_xling.mining.vectors import PrecomputedEmbeddings, VectorMakers, embeddings_of, encoding_settings, model_names
from st_xling.utils.cosines import Embeddings
from st_xling.utils.options import Margin
from st_xling.utils.resumable import Output, ResumableFolder, deliver, work_folder

#: Name of the rejects in a work folder.
REJECTS = "rejects.jsonl"


def default_device() -> str:
    """Return the device to embed and search on: a GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def open_work(
    command: str,
    out: Output,
    rejects: str | Path | None,
    work: str | Path | None,
    *,
    texts: Mapping[str, tuple[Sequence[str], UniqueSentences]],
    hashes: Mapping[str, str],
    makers: VectorMakers,
    k: int,
    method: str,
    format: str,
) -> Iterator[ResumableFolder]:
    """Check text and embeddings, and open the work folder; if the block succeeds, deliver pairs and rejects.

    The folder is then removed, unless the user named it.

    Args:
        command: Name of the command.
        out: Destination of the pairs.
        rejects: Destination of the rejects.
        work: Folder chosen by the user.
        texts: Sentences by row, and the distinct ones, by side.
        hashes: Hashes of the texts, by name.
        makers: Providers of the vectors, by side.
        k: Number of neighbors.
        method: Method of the search.
        format: Format of the pairs.
    Raises:
        ValueError: If a store is damaged or of another text, FAISS cannot make the index for the vectors, ``k`` is
            above the number of distinct sentences, or the folder is of another task.
    """
    for name, (rows, _) in texts.items():
        maker = makers[name]
        if method.startswith(FAISS) and maker.dim:
            CandidateIndex(method.removeprefix(FAISS), maker.dim)  # raises for one that FAISS cannot make
        if isinstance(maker, PrecomputedEmbeddings):
            maker.check(rows)
    sources, targets = (len(distinct) for _, distinct in texts.values())
    check_k(k, sources, targets, kind="distinct ")
    # What embeddings and search depend on: other options may change when the work is resumed.
    task: dict[str, Any] = {"command": command, "k": k, **{f"{name} text": sha256 for name, sha256 in hashes.items()}}
    for side, maker in makers.items():
        task |= {f"{side} {name}": value for name, value in maker.settings.items()}
    with work_folder(out, work, task) as folder:
        yield folder
        deliver(folder.path / f"pairs.{format}", out)
        if rejects is not None:
            deliver(folder.path / REJECTS, rejects)
        if work is None:
            folder.remove()


def embed_distinct(
    texts: Mapping[str, UniqueSentences], makers: VectorMakers, folder: Path, *, method: str, progress: bool
) -> tuple[tuple[Embeddings, Embeddings], str]:
    """Embed the distinct sentences of both texts, and choose the method to search them by.

    Args:
        texts: Distinct sentences, by side.
        makers: Providers of their vectors, by side.
        folder: Folder of the stores.
        method: As for :func:`~st_xling.mining.find_neighbors`.
        progress: Show progress bars on stderr.
    """
    source, target = (
        embeddings_of(text, makers[name], folder / name, progress=progress) for name, text in texts.items()
    )
    sizes = int(source.shape[0]), int(target.shape[0]), int(source.shape[1])
    return (source, target), choose_method(method, *sizes)


def search_name(method: str) -> str:
    """Return the name of the folder that a search is saved in; each method has its own."""
    return "search" if method == "exact" else f"search-{hashlib.sha256(method.encode()).hexdigest()[:8]}"


def sign_pairs(
    command: str,
    makers: VectorMakers,
    filters: PairFilters,
    *,
    margin: Margin,
    k: int,
    method: str,
    threshold: str,
    choice: Sequence[str],
    texts: Sequence[str],
) -> str:
    """Return the signature of mined or scored pairs.

    Args:
        command: Name of the command.
        makers: Providers of the vectors.
        filters: Filters that ran.
        margin: Margin of the scores.
        k: Number of neighbors.
        method: Method of the search.
        threshold: Threshold, with its origin.
        choice: Further parts on how the pairs were chosen.
        texts: Names and hashes of the texts.
    """
    words = [
        *(command, f"model:{model_names(makers)}"),
        *(f"{name}:{value}" for name, value in encoding_settings(makers).items()),
        *(f"margin:{margin}", f"k:{k}", *choice, f"method:{method}", f"filters:{filters.signature}"),
        *(f"threshold:{threshold}", "duplicates:merged", *texts, f"st-xling:{__version__}"),
    ]
    return "|".join(words)


def outcome_lines(rejected: Mapping[str, int], best: float | None) -> list[str]:
    """Describe the number of rejected pairs by reason, and the best score if no pair reached the threshold."""
    lines = []
    if rejected:
        lines.append(f"rejected: {', '.join(f'{count:,} {reason}' for reason, count in rejected.items())}")
    if best is not None:
        lines.append(f"no pair reaches the threshold: the best score is {best:.4f}")
    return lines
