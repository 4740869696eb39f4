"""What mining takes as texts grow: the exponent of time and memory.

1 grows as the texts, 2 as their product. Each size is a process of its own: seconds of the processor, and peak of the
memory beyond what was there before, mapped stores included. Text and vectors are made up: distinct short lines and a
noisy copy of each.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from st_xling.mining import MiningText, mine_texts, write_store
from tests.benchmarks.measure import Ratio, Run, apart, log, main, peak, resident

SIDES = ("source", "target")
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in ("a", "e", "i", "o", "u", "au", "ei")]


class MadeUp:
    """Vectors of a text, block by block; those of the target are near their sources'."""

    ndim = 2

    def __init__(self, partners: np.ndarray, dim: int, seed: int) -> None:
        self.partners, self.shape, self.seed = partners, (len(partners), dim), seed
        self.directions = np.random.default_rng(0).standard_normal((8, 256, dim), dtype=np.float32)

    def __len__(self) -> int:
        return len(self.partners)

    def __getitem__(self, rows: slice) -> np.ndarray:
        # Digits to the base 256 choose among random directions: what is near can be made again from its number.
        digits = (self.partners[rows, None] * 2654435761 % 2**61 >> np.arange(0, 64, 8)) & 255
        vectors = sum(self.directions[place, digits[:, place]] for place in range(8))
        random = np.random.default_rng([self.seed, rows.start])
        return vectors + random.standard_normal(vectors.shape, dtype=np.float32)


def make_up(folder: Path, rows: int, dim: int, dtype: str) -> None:
    """Write both texts and their stores."""
    of_target = np.random.default_rng(1).permutation(rows)
    for side, numbers in zip(SIDES, (np.arange(rows), of_target)):
        with (folder / f"{side}.txt").open("w", encoding="utf-8") as file:
            for start in range(0, rows, 2**16):
                file.writelines(f"{_words(number, side)}\n" for number in numbers[start : start + 2**16].tolist())
        text = MiningText(folder / f"{side}.txt")
        vectors = MadeUp(numbers, dim, SIDES.index(side))
        write_store(folder / f"{side}.store", vectors, sentences=text, dtype=dtype)


def _words(number: int, side: str) -> str:
    ending, words = {"source": "s", "target": "zh"}[side], []
    for _ in range(4):
        number, digit = divmod(number, len(SYLLABLES))
        words.append(SYLLABLES[digit] + ending)
    return " ".join(["".join(words[:2]), "".join(words[2:])])


def one_size(run: Run, rows: int, dim: int, dtype: str, method: str) -> tuple[float, float]:
    """Seconds and MiB that mining so many lines a side takes."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_up(folder, rows, dim, dtype)
        texts = [folder / f"{side}.txt" for side in SIDES]
        stores = {f"{side}_embeddings": folder / f"{side}.store" for side in SIDES}
        before = resident()
        seconds = run.seconds(lambda: mine_texts(*texts, folder / "pairs.tsv", method=method, **stores))
        return seconds, peak() - before


def measure(
    run: Run,
    *,
    rows: tuple[int, ...] = (10_000, 30_000, 100_000),
    dim: int = 32,
    dtype: str = "float16",
    method: str = "exact",
) -> Iterator[Ratio]:
    spent = {count: apart(one_size, run, count, dim, dtype, method) for count in rows}
    for count, (seconds, mib) in spent.items():
        log(f"{count:,}: {seconds:.1f} s, {mib:,.0f} MiB")
    for few, many in pairwise(rows):
        growth = [math.log(max(1.0, large) / max(1.0, small)) for small, large in zip(spent[few], spent[many])]
        time, memory = (each / math.log(many / few) for each in growth)
        size, (seconds, mib) = f"{few:,} to {many:,}", spent[many]
        yield Ratio(f"{size}: exponent of time", "rows", time, at_most=2.1, note=f"{seconds:.1f} s")
        yield Ratio(f"{size}: exponent of memory", "rows", memory, at_most=1.0, note=f"{mib:,.0f} MiB")


if __name__ == "__main__":
    main(measure, quick={"rows": (500, 1000)})
