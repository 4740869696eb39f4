"""Hard negatives from the training text itself: mined by the model that is being trained, anew every few epochs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from st_xling.data.text_columns import column_texts, exact_keys, find_sorted
from st_xling.models.encode import encode
from st_xling.utils import distributed
from st_xling.utils.io import atomic_path

logger = logging.getLogger(__name__)

_ROWS = 1024
_CELLS = 2**27  # cosines of a block: half a GiB, however many texts there are
NEIGHBOURS = 4
"""Whose mean cosine is what a margin divides by, as in mining."""


@dataclass(frozen=True)
class NegativeOptions:
    """Targets of other pairs that the model takes for a source's translation: ranked by margin, some are drawn.

    Attributes:
        count: Negatives of each pair; 0: none are mined.
        first: Rank of the nearest that may be drawn, from 1; nearer ones are often translations, too.
        last: Rank of the furthest.
        refresh: Epochs after which they are mined and drawn anew.
    """

    count: int = 0
    first: int = 2
    last: int = 32
    refresh: int = 1

    def __post_init__(self) -> None:
        ranks = self.last - self.first + 1
        if self.count < 0 or self.first < 1 or self.refresh < 1 or ranks < max(1, self.count):
            raise ValueError(
                "negatives needs a count of 0 or more, ranks from first (1 or more) to last that are as many, and a "
                f"refresh of 1 or more: got {self.count} of the ranks {self.first} to {self.last}, refresh "
                f"{self.refresh}."
            )

    @property
    def names(self) -> list[str]:
        """Columns that they stand in."""
        return [f"negative_{number}" for number in range(1, self.count + 1)]


class HardNegatives(TrainerCallback):
    """Mines at the beginning of an epoch, and adds the negatives to rows.

    What was drawn is kept in a file for each time, so that a run that is resumed within an epoch has the negatives of
    the undisturbed one, though the model has moved since.

    Args:
        pairs: With ``source`` and ``target``. Targets of equal sources are no negatives of each other.
        options: How many, and which.
        model: The encoder that is trained.
        folder: Where the files lie.
        prompts: Column → what stands before its texts.
        seed: Of the draws.

    Raises:
        ValueError: Fewer other targets than ranks to draw from.
    """

    def __init__(
        self,
        pairs: Any,
        options: NegativeOptions,
        model: Any,
        folder: Path,
        *,
        prompts: Mapping[str, str],
        seed: int = 0,
    ) -> None:
        self.options, self.model, self.folder, self.prompts, self.seed = options, model, folder, dict(prompts), seed
        self.sources, source_rows = _distinct(column_texts(pairs, "source"))
        self.targets, target_rows = _distinct(column_texts(pairs, "target"))
        # Each source with its own targets once, in order of the sources: what is no negative of it.
        own = np.unique(np.column_stack([source_rows, target_rows]), axis=0)
        self.own, self.starts = own, np.searchsorted(own[:, 0], np.arange(len(self.sources) + 1))
        self.most_own = int(np.diff(self.starts).max())
        if len(self.targets) - self.most_own < options.last:
            raise ValueError(
                f"negatives.last must be at most the other targets that every source has, "
                f"{len(self.targets) - self.most_own:,}: got {options.last}; lower it, or add text."
            )
        keys = exact_keys(self.sources)
        self.order = keys.argsort()
        self.keys = keys[self.order]
        self.drawn: np.ndarray | None = None

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The rows with their negatives; before any is mined, with their targets in place of them."""
        if self.drawn is None:
            return [{**row, **dict.fromkeys(self.options.names, row["target"])} for row in rows]
        found, known = find_sorted(self.keys, exact_keys(row["source"] for row in rows))
        assert known.all(), "a source that was not there before training"
        drawn = self.drawn[self.order[found]]
        return [
            {**row, **{name: self.targets[place] for name, place in zip(self.options.names, places)}}
            for row, places in zip(rows, drawn)
        ]

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        epoch = int(state.epoch or 0) // self.options.refresh * self.options.refresh
        path = self.folder / f".negatives-{epoch}.npy"
        distributed.run_on_main(lambda: None if path.is_file() else self._mine(path, epoch))
        self.drawn = np.load(path)

    def _mine(self, path: Path, epoch: int) -> None:
        first, last, count = self.options.first, self.options.last, self.options.count
        source, target = (
            torch.from_numpy(encode(self.model, texts, prompt=self.prompts.get(side), normalize_embeddings=True))
            for side, texts in (("source", self.sources), ("target", self.targets))
        )
        ranked = nearest_by_margin(source, target, self.own, self.starts, last=last)[:, first - 1 :]
        order = np.random.default_rng([self.seed, epoch]).random(ranked.shape).argsort(axis=1)[:, :count]
        logger.info("hard negatives of epoch %d: %d of ranks %d to %d", epoch + 1, count, first, last)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary, Path(temporary).open("wb") as file:
            np.save(file, np.take_along_axis(ranked, order, axis=1))


def nearest_by_margin(source: Tensor, target: Tensor, own: np.ndarray, starts: np.ndarray, *, last: int) -> np.ndarray:
    """The targets of highest ratio margin with each source, its own left out, best first.

    Among as many of highest cosine as have the ranks twice over; margins of one source differ by how near the target
    lies to all sources. Beside the vectors it takes about 1.3 GiB at most, block by block.

    Args:
        source: Of length 1. *Shape:* ``(sources, dim)``
        target: Of length 1. *Shape:* ``(targets, dim)``
        own: Source and target that belong together, in order of the sources. *Shape:* ``(pairs, 2)``
        starts: Where each source's begin in ``own``, and the end. *Shape:* ``(sources + 1,)``
        last: Ranks.

    Returns:
        *Shape:* ``(sources, last)``, int32

    Source:
        Artetxe and Schwenk 2019, Margin-based parallel corpus mining, equation 2 (ratio).
    """
    size = max(1, min(_ROWS, _CELLS // max(len(source), len(target))))
    near = torch.cat(
        [(part @ source.T).topk(min(NEIGHBOURS, len(source)), dim=1).values.mean(dim=1) for part in target.split(size)]
    )
    places = []
    for start in range(0, len(source), size):
        cosines = source[start : start + size] @ target.T
        around = cosines.topk(min(NEIGHBOURS, len(target)), dim=1).values.mean(dim=1, keepdim=True)
        mine = own[starts[start] : starts[min(start + size, len(source))]]
        cosines[mine[:, 0] - start, mine[:, 1]] = -torch.inf
        best = cosines.topk(min(2 * last, len(target)), dim=1)
        margins = best.values * 2 / (around + near[best.indices]).clamp(min=1e-6)
        order = margins.argsort(dim=1, descending=True, stable=True)[:, :last]
        places.append(best.indices.gather(1, order))
    return torch.cat(places).int().numpy()


def _distinct(texts: Any) -> tuple[list[str], np.ndarray]:
    """Distinct texts in the order of their first rows, and the number of each row's."""
    numbers: dict[str, int] = {}
    rows = np.array([numbers.setdefault(text, len(numbers)) for text in texts])
    return list(numbers), rows
