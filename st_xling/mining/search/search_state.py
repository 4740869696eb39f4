"""What a search has found so far, saved on disk to resume from after an interruption."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.top_k import NO_CANDIDATE
from st_xling.utils.resumable import ResumableFolder

_FILE = "search.safetensors"

# A search in tasks is saved as soon as they have taken so many times what saving takes.
_SAVE_SHARE = 20


@contextmanager
def search_state(
    source: CorpusMatrix,
    target: CorpusMatrix,
    *,
    k: int,
    folder: Path | None,
    save_seconds: float,
    tasks: int = 0,
    search: str = "exact",
) -> Iterator[SearchState]:
    """Yield the state of a search, as an earlier process saved it, and keep other processes out of its folder.

    It does not depend on the blocks of the search, which can resume with other blocks, threads or device.

    Args:
        source: Its rows are finished in order.
        target: The other corpus.
        k: Neighbors of each row.
        folder: Where to save; nothing is written without one.
        save_seconds: Least time between two saves, except for the last; most time, for a search in tasks.
        tasks: Number of tasks, for a search in tasks.
        search: What else their results depend on.
    Raises:
        ValueError: If the folder contains the state of another search, or another process uses it.
    """
    rows, columns = (torch.full((matrix.rows, k), NO_CANDIDATE) for matrix in (source, target))
    if folder is None:
        yield SearchState(rows, columns, tasks, None, save_seconds)
        return
    with ResumableFolder(folder, name="state_folder", instead="name another folder") as saved:
        digests = {"source": _digest(source), "target": _digest(target)}
        saved.begin({"command": "search", "k": k, "search": search, **digests})
        state = SearchState(rows, columns, tasks, saved, save_seconds)
        if _FILE in saved.steps:
            state.load(saved.path / _FILE)
        yield state


class SearchState:
    """Finished source rows, and the best of the targets among them; or the best of both among finished tasks.

    Attributes:
        done: Finished source rows.
        source_keys: *Shape:* ``(sources, k)``, the first ``done`` rows filled
        target_keys: *Shape:* ``(targets, k)``
        tasks: Whether each task is finished.
    """

    def __init__(
        self, source_keys: Tensor, target_keys: Tensor, tasks: int, folder: ResumableFolder | None, save_seconds: float
    ) -> None:
        self.done, self.tasks = 0, torch.zeros(tasks, dtype=torch.bool)
        self.source_keys, self.target_keys = source_keys, target_keys
        self._folder, self._save_seconds, self._cost = folder, save_seconds, 0.0
        self._saved_at = time.monotonic()

    def is_due(self) -> bool:
        least = min(self._save_seconds, _SAVE_SHARE * self._cost) if len(self.tasks) else self._save_seconds
        return self._folder is not None and time.monotonic() - self._saved_at >= least

    def save(self, done: int, target_keys: Tensor) -> None:
        """Remember, and save, that the first ``done`` source rows have been compared with all targets.

        Raises:
            OSError: When the state cannot be written; the one before stands.
        """
        self.done, self.target_keys = done, target_keys
        if self._folder is None:
            return
        started = time.monotonic()
        tensors = {"source": self.source_keys[:done].contiguous(), "target": target_keys.contiguous()}
        if len(self.tasks):
            tensors["tasks"] = self.tasks
        with self._folder.writing(_FILE, _FILE) as temporary:
            save_file(tensors, temporary)
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - started

    def load(self, path: Path) -> None:
        """Read what was saved."""
        try:
            with safe_open(path, framework="pt") as saved:
                rows = saved.get_tensor("source")
                self.done, self.target_keys = len(rows), saved.get_tensor("target")
                self.source_keys[: self.done] = rows
                if len(self.tasks):
                    self.tasks = saved.get_tensor("tasks")
        except (SafetensorError, RuntimeError) as error:
            raise ValueError(f"{path} is damaged: {error}; delete it, and the search starts again.") from error


def _digest(matrix: CorpusMatrix) -> str:
    """A digest of a matrix and its shape."""
    digest = hashlib.sha256(str((matrix.rows, matrix.dim)).encode())
    matrix.add_to(digest)
    return digest.hexdigest()
