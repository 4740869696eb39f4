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
from st_xling.utils.io import atomic_path

_FILE = "search.safetensors"

logger = logging.getLogger(__name__)


class SearchState:
    """Finished source rows, and the best of the targets among them.

    Both are exact and free of how the search was cut into blocks, so a search may resume with other blocks, threads or
    device and end with the same bytes.

    Args:
        source: Its rows are finished in order.
        target: The other corpus.
        k: Neighbours of each row.
        folder: Where to save ``search.safetensors``; nothing is written without one.
        save_seconds: Least time between two saves, except for the last.
    Raises:
        ValueError: When the folder holds the state of another search.

    Attributes:
        done: Finished source rows.
        source_keys: *Shape:* ``(sources, k)``, the first ``done`` rows filled
        target_keys: *Shape:* ``(targets, k)``
    """

    def __init__(
        self, source: CorpusMatrix, target: CorpusMatrix, *, k: int, folder: Path | None, save_seconds: float
    ) -> None:
        self.done = 0
        self.source_keys = torch.empty((source.rows, k), dtype=torch.int64)
        self.target_keys = torch.empty((0, k), dtype=torch.int64)
        self._path = None if folder is None else folder / _FILE
        self._save_seconds = save_seconds
        self._saved_at = time.monotonic()
        self._identity = "" if folder is None else _identity(source, target, k)
        if self._path is not None and self._path.exists():
            try:
                self._load(self._path)
            except (SafetensorError, KeyError, RuntimeError) as error:  # cut off, or other shapes
                logger.warning("%s is damaged (%r): the search begins again.", self._path, error)
                self.done, self.target_keys = 0, torch.empty((0, k), dtype=torch.int64)

    def is_due(self) -> bool:
        return self._path is not None and time.monotonic() - self._saved_at >= self._save_seconds

    def save(self, done: int, target_keys: Tensor) -> None:
        """Remember, and save, that the first ``done`` source rows have been compared with all targets.

        Raises:
            OSError: When the state cannot be written; the one before stands.
        """
        self.done, self.target_keys = done, target_keys
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {"source": self.source_keys[:done].contiguous(), "target": target_keys.contiguous()}
        with atomic_path(self._path) as temporary:
            save_file(tensors, temporary, metadata={"identity": self._identity, "done": str(done)})
        self._saved_at = time.monotonic()

    def _load(self, path: Path) -> None:
        with safe_open(path, framework="pt") as saved:
            metadata = saved.metadata() or {}
            if metadata["identity"] != self._identity:
                raise ValueError(
                    f"state_folder must hold the state of this search: {path} is of other embeddings or another k; "
                    "delete it or name another folder."
                )
            self.done = int(metadata["done"])
            self.source_keys[: self.done] = saved.get_tensor("source")
            self.target_keys = saved.get_tensor("target")


def _identity(source: CorpusMatrix, target: CorpusMatrix, k: int) -> str:
    """A digest of k, both shapes and both matrices."""
    digest = hashlib.sha256(str((k, source.rows, target.rows, source.dim)).encode())
    for matrix in (source, target):
        matrix.add_to(digest)
    return digest.hexdigest()
