"""What a search has found so far, saved on disk to resume from after an interruption."""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path
from types import TracebackType

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


class SearchState:
    """Finished source rows, and the best of the targets among them; or the best of both among finished tasks.

    Neither depends on the blocks of the search, so it can resume with other blocks, threads or device. Use it as a
    context manager, which keeps other processes out of its folder and loads what an earlier one saved there.

    Args:
        source: Its rows are finished in order.
        target: The other corpus.
        k: Neighbors of each row.
        folder: Where to save; nothing is written without one.
        save_seconds: Least time between two saves, except for the last; most time, for a search in tasks.
        tasks: Number of tasks, for a search in tasks.
        search: What else their results depend on.
    Raises:
        ValueError: On entering: the folder contains the state of another search, or another process uses it.

    Attributes:
        done: Finished source rows.
        source_keys: *Shape:* ``(sources, k)``, the first ``done`` rows filled
        target_keys: *Shape:* ``(targets, k)``
        tasks: Whether each task is finished.
    """

    def __init__(
        self,
        source: CorpusMatrix,
        target: CorpusMatrix,
        *,
        k: int,
        folder: Path | None,
        save_seconds: float,
        tasks: int = 0,
        search: str = "exact",
    ) -> None:
        self._folder = None
        if folder is not None:
            self._folder = ResumableFolder(folder, name="state_folder", instead="name another folder")
            digests = {"source": _digest(source), "target": _digest(target)}
            self._task = {"command": "search", "k": k, "search": search, **digests}
        self._save_seconds, self._cost = save_seconds, 0.0
        self._saved_at = time.monotonic()
        self.done, self.tasks = 0, torch.zeros(tasks, dtype=torch.bool)
        self.source_keys = torch.full((source.rows, k), NO_CANDIDATE)
        self.target_keys = torch.full((target.rows, k), NO_CANDIDATE)

    def __enter__(self) -> SearchState:
        if self._folder is not None:
            self._folder.__enter__()
            try:
                self._folder.begin(self._task)
                if _FILE in self._folder.steps:
                    self._load(self._folder.path / _FILE)
            except BaseException:
                self._folder.__exit__(*sys.exc_info())
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.__exit__(kind, error, trace)

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

    def _load(self, path: Path) -> None:
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
