"""What a search has found so far, saved on disk to resume from after an interruption."""

from __future__ import annotations

import hashlib
import logging
import time
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.top_k import NO_CANDIDATE
from st_xling.utils.io import atomic_path

# Of an exact search, and of one in tasks.
_FILES = "search.safetensors", "shards.safetensors"

# A search in tasks is saved as soon as they have taken so many times what saving takes.
_SAVE_SHARE = 20

logger = logging.getLogger(__name__)


class SearchState:
    """Finished source rows, and the best of the targets among them; or the best of both among finished tasks.

    Neither depends on the blocks of the search, so it may resume with other blocks, threads or device.

    Args:
        source: Its rows are finished in order.
        target: The other corpus.
        k: Neighbours of each row.
        folder: Where to save; nothing is written without one.
        save_seconds: Least time between two saves, except for the last; most time, for a search in tasks.
        tasks: Number of tasks, for a search in tasks.
        search: What else their results depend on.
    Raises:
        ValueError: When the folder holds the state of another search.

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
        search: str = "",
    ) -> None:
        self._path = None if folder is None else folder / _FILES[bool(tasks)]
        self._save_seconds, self._cost = save_seconds, 0.0
        self._saved_at = time.monotonic()
        self._identity = "" if folder is None else _identity(source, target, k)
        self._identity += search
        self.done, self.tasks = 0, torch.zeros(tasks, dtype=torch.bool)
        self.source_keys = torch.full((source.rows, k), NO_CANDIDATE)
        self.target_keys = torch.full((target.rows, k), NO_CANDIDATE)
        if self._path is not None and self._path.exists():
            try:
                self._load(self._path)
            except (SafetensorError, KeyError, RuntimeError) as error:  # cut off, or other shapes
                logger.warning("%s is damaged (%r): the search begins again.", self._path, error)

    def is_due(self) -> bool:
        least = min(self._save_seconds, _SAVE_SHARE * self._cost) if len(self.tasks) else self._save_seconds
        return self._path is not None and time.monotonic() - self._saved_at >= least

    def save(self, done: int, target_keys: Tensor) -> None:
        """Remember, and save, that the first ``done`` source rows have been compared with all targets.

        Raises:
            OSError: When the state cannot be written; the one before stands.
        """
        self.done, self.target_keys = done, target_keys
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        tensors = {"source": self.source_keys[:done].contiguous(), "target": target_keys.contiguous()}
        if len(self.tasks):
            tensors["tasks"] = self.tasks
        with atomic_path(self._path) as temporary:
            save_file(tensors, temporary, metadata={"identity": self._identity, "done": str(done)})
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - started

    def _load(self, path: Path) -> None:
        with safe_open(path, framework="pt") as saved:
            metadata = saved.metadata() or {}
            if metadata["identity"] != self._identity:
                others = "another k, method or shard_rows" if len(self.tasks) else "another k"
                raise ValueError(
                    f"state_folder must hold the state of this search: {path} is of other embeddings or {others}; "
                    "delete it or name another folder."
                )
            done, target = int(metadata["done"]), saved.get_tensor("target")
            tasks = saved.get_tensor("tasks") if len(self.tasks) else self.tasks
            self.source_keys[:done] = saved.get_tensor("source")
            self.done, self.target_keys, self.tasks = done, target, tasks


def _identity(source: CorpusMatrix, target: CorpusMatrix, k: int) -> str:
    """A digest of k, both shapes and both matrices."""
    digest = hashlib.sha256(str((k, source.rows, target.rows, source.dim)).encode())
    for matrix in (source, target):
        matrix.add_to(digest)
    return digest.hexdigest()
