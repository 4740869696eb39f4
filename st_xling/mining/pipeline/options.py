"""What a call of the pipeline asks for, as one thing that its steps hand on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from st_xling.mining.find import check_search, find_neighbours
from st_xling.mining.guards import GuardOptions
from st_xling.mining.mine import check_choice
from st_xling.mining.neighbours import Neighbours
from st_xling.mining.pipeline.guarded_pairs import check_guards
from st_xling.mining.pipeline.pair_files import REJECTS, check_pair_format
from st_xling.mining.store import check_format
from st_xling.mining.vectors import EncodeOptions, Encoder, VectorMakers, vectors_from
from st_xling.utils.cosines import Embeddings
from st_xling.utils.devices import check_device
from st_xling.utils.paths import check_outputs
from st_xling.utils.work_folder import Output, WorkFolder, deliver, work_folder, work_path


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchOptions:
    """Where vectors come from and how neighbours are searched; every attribute as for ``mine_texts``."""

    model: Any
    source_embeddings: str | Path | None
    target_embeddings: str | Path | None
    dim: int
    laser_dtype: str
    batch_size: int
    dtype: str
    prompt: str | None
    k: int
    method: str
    engine: str
    device: str | None
    memory_mib: int

    def check(self) -> None:
        """Raise for what should not wait for an encoder or a search."""
        check_search(self.method, self.engine)
        check_format(self.dtype, "safetensors")
        for name, usual in (("k", 4), ("batch_size", 128), ("memory_mib", 256)):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 1: got {name}={getattr(self, name)}; leave it out for {usual}."
                )
        if self.device is not None:
            check_device(self.device)

    @property
    def place(self) -> str:
        """Device to embed and search on."""
        return self.device or ("cuda" if torch.cuda.is_available() else "cpu")

    def vector_makers(self, rows: dict[str, int]) -> tuple[VectorMakers, Encoder | None]:
        """As :func:`~st_xling.mining.vectors.vectors_from`, with sides of so many sentences."""
        return vectors_from(
            self.model,
            {"source": self.source_embeddings, "target": self.target_embeddings},
            rows,
            dim=self.dim,
            laser_dtype=self.laser_dtype,
            options=EncodeOptions(
                batch_size=self.batch_size, dtype=self.dtype, prompt=self.prompt, device=self.place, engine=self.engine
            ),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PairOptions(SearchOptions):
    """These, and what becomes of the pairs."""

    out: Output
    margin: str
    threshold: float | None
    guards: GuardOptions
    rejects: str | Path | None
    format: str
    save_seconds: float
    work: str | Path | None
    keep_work: bool
    progress: bool

    @property
    def inputs(self) -> Sequence[Any]:
        """What is read, and no result may replace; what is no path is passed over."""
        return [self.model, self.source_embeddings, self.target_embeddings]

    def check(self) -> None:
        check_choice(margin=self.margin, threshold=self.threshold)
        check_pair_format(self.format)
        super().check()
        check_guards(self.guards, self.k)
        if not 0 <= self.save_seconds < math.inf:
            raise ValueError(f"save_seconds must be 0 or more: got {self.save_seconds}; 60 is the usual choice.")
        outputs = {"out": self.out, "rejects": self.rejects}
        check_outputs(outputs, self.inputs, folders={"work": work_path(self.out, self.work)})

    @property
    def search(self) -> dict[str, Any]:
        """Options of every search of this call."""
        names = ("k", "memory_mib", "save_seconds", "progress")
        return {"device": self.place, **{name: getattr(self, name) for name in names}}

    def find(
        self, embeddings: tuple[Embeddings, Embeddings], method: str, folder: WorkFolder
    ) -> tuple[Neighbours, Neighbours]:
        """Neighbours of both sides by a method that was chosen; a search that was stopped goes on."""
        state = folder.path / "search"
        return find_neighbours(*embeddings, method=method, engine=self.engine, state_folder=state, **self.search)

    def made(self, folder: WorkFolder) -> Path:
        """Where the pairs are written first."""
        return folder.path / f"pairs.{self.format}"

    @contextmanager
    def working(self, task: dict[str, Any]) -> Iterator[WorkFolder]:
        """The work folder; when the block ends well, pairs and rejects go where they are wanted, and the work goes."""
        with work_folder(self.out, self.work, task) as folder:
            yield folder
            deliver(self.made(folder), self.out)
            if self.rejects is not None:
                deliver(folder.path / REJECTS, self.rejects)
            if not self.keep_work:
                folder.remove()
