"""Shared steps of mining and scoring: check options, keep the work, embed, sign, and time the stages."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from st_xling._version import __version__
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import FILTERS, PairFilters
from st_xling.mining.search.approximate import FAISS, check_factory
from st_xling.mining.search.exact import check_k
from st_xling.mining.search.find import check_search, choose_method
from st_xling.mining.search.shards import tasks_of
from st_xling.mining.store import check_dtype
from st_xling.mining.vectors import PrecomputedEmbeddings, VectorMakers, embeddings_of, encoding_settings, model_names
from st_xling.utils.cosines import Embeddings
from st_xling.utils.devices import check_device
from st_xling.utils.resumable import Output, ResumableFolder, deliver, work_folder
from st_xling.utils.text import SCORED_COLUMNS

#: Values of ``format``.
PAIR_FORMATS = ("tsv", "jsonl")

#: Name of the rejects in a work folder.
REJECTS = "rejects.jsonl"


def default_device() -> str:
    """Return the device to embed and search on: a GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def check_options(
    *,
    k: int,
    device: str | None,
    memory_mib: int,
    batch_size: int | None,
    dtype: str,
    method: str = "exact",
    index: str | Path | None = None,
    engine: str = "local",
    shard_rows: int | None = None,
    format: str = "tsv",
) -> None:
    """Raise ``ValueError`` for options out of range, before anything is read, embedded or searched."""
    if index is not None and method == "exact":
        raise ValueError("index (--index) is for approximate search: got method 'exact'; leave one of them out.")
    if format not in PAIR_FORMATS:
        raise ValueError(f"format must be one of {', '.join(PAIR_FORMATS)}: got {format!r}.")
    check_search(method, engine)
    tasks_of(k, k, k=k, method=method, shard_rows=shard_rows)  # raises for shards smaller than k
    check_dtype(dtype)
    for name, value in (("batch_size", batch_size), ("memory_mib", memory_mib)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1: got {name}={value}.")
    if device is not None:
        check_device(device)


def check_vectors(
    texts: Mapping[str, tuple[Sequence[str], UniqueSentences]], makers: VectorMakers, *, k: int, method: str
) -> None:
    """Check text and embeddings, before a work folder is made and anything is embedded.

    Args:
        texts: Sentences by row, and the distinct ones, by side.
        makers: Providers of their vectors, by side.
        k: Number of neighbors.
        method: Method of the search.
    Raises:
        ValueError: If a store is damaged or of another text, FAISS cannot make the index for the vectors, or ``k`` is
            above the number of distinct sentences.
    """
    for name, (rows, _) in texts.items():
        maker = makers[name]
        if method.startswith(FAISS):
            check_factory(method.removeprefix(FAISS), maker.dim)
        if isinstance(maker, PrecomputedEmbeddings):
            maker.check(rows)
    sources, targets = (len(distinct) for _, distinct in texts.values())
    check_k(k, sources, targets, kind="distinct ")


@contextmanager
def open_work(
    out: Output,
    rejects: str | Path | None,
    work: str | Path | None,
    *,
    command: str,
    k: int,
    hashes: Mapping[str, str],
    makers: VectorMakers,
    pairs: str,
    keep_work: bool,
) -> Iterator[ResumableFolder]:
    """Open the work folder; if the block succeeds, deliver pairs and rejects, and remove the folder.

    Args:
        out: Destination of the pairs.
        rejects: Destination of the rejects.
        work: Folder chosen by the user.
        command: Name of the command.
        k: Number of neighbors.
        hashes: Hashes of the texts, by name.
        makers: Providers of the vectors.
        pairs: Name of the file in the work folder that the pairs are written to.
        keep_work: Do not remove the folder.
    """
    # What embeddings and search depend on: other options may change when the work is resumed.
    task: dict[str, Any] = {"command": command, "k": k, **{f"{name} text": sha256 for name, sha256 in hashes.items()}}
    for side, maker in makers.items():
        task |= {f"{side} {name}": value for name, value in maker.settings.items()}
    with work_folder(out, work, task) as folder:
        yield folder
        deliver(folder.path / pairs, out)
        if rejects is not None:
            deliver(folder.path / REJECTS, rejects)
        if not keep_work:
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


def search_name(method: str, shard_rows: int | None) -> str:
    """Return the name of the folder that a search is saved in; each method has its own."""
    digest = hashlib.sha256(f"{method} {shard_rows}".encode()).hexdigest()[:8]
    return "search" if method == "exact" else f"search-{digest}"


def sign_pairs(
    command: str,
    makers: VectorMakers,
    filters: PairFilters,
    *,
    margin: str,
    k: int,
    method: str,
    shard_rows: int | None,
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
        shard_rows: As for :func:`~st_xling.mining.find_neighbors`.
        threshold: Threshold, with its origin.
        choice: Further parts on how the pairs were chosen.
        texts: Names and hashes of the texts.
    """
    words = [
        *(command, f"model:{model_names(makers)}"),
        *(f"{name}:{value}" for name, value in encoding_settings(makers).items()),
        *(f"margin:{margin}", f"k:{k}", *choice),
        f"method:{method}" + (f"|shard_rows:{shard_rows}" if shard_rows and method != "exact" else ""),
        f"filters:{filters.signature}",
        *(f"threshold:{threshold}", "duplicates:merged", *texts, f"st-xling:{__version__}"),
    ]
    return "|".join(words)


def header_line(*more: str) -> bytes:
    """Return the header line of a TSV file of scored pairs, with further columns."""
    return "\t".join([*SCORED_COLUMNS, *more]).encode() + b"\n"


def rejection_lines(rejected: Mapping[str, int]) -> list[str]:
    """Describe the number of pairs that each filter rejected; empty if there are none."""
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in rejected.items() if reason in FILTERS)
    return [f"rejected by filters: {reasons}"] if reasons else []


def best_line(best: float | None) -> list[str]:
    """Describe the best score, for a run whose threshold no pair reached."""
    return [] if best is None else [f"no pair reaches the threshold: the best score is {best:.4f}"]


class Stages(dict[str, dict[str, float]]):
    """Seconds of each stage of a run, in order; for stages that choose pairs also ``pairs`` and ``removed``."""

    @contextmanager
    def timed(self, name: str) -> Iterator[dict[str, float]]:
        """Time a block; the numbers of pairs may be noted in the yielded entry."""
        self[name] = {"seconds": 0.0}
        started = time.perf_counter()
        yield self[name]
        self[name]["seconds"] = time.perf_counter() - started

    def lines(self) -> list[str]:
        """Describe the stages in one line."""
        words = [
            f"{name} {stage['seconds']:.2f} s"
            + (f" (removed {stage['removed']:,} of {stage['pairs']:,})" if "pairs" in stage else "")
            for name, stage in self.items()
        ]
        return [f"stages: {', '.join(words)}"]
