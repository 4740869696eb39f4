"""What mining takes as texts grow, by stage: the exponent of time and memory; and what the plan says of it.

1 grows as the texts, 2 as their product. Each size is a process of its own: seconds of the processor, of each stage,
and peak of the memory beyond what was there before, without the mapped stores.

Text and vectors are made up: distinct short lines and a noisy copy of each. With ``--model`` lines of real text are
embedded instead.
"""

from __future__ import annotations

import contextlib
import functools
import math
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from st_xling.mining import FilterOptions, MiningText, mine_texts, plan_mining, write_store
from st_xling.mining.filters import PairFilters
from st_xling.mining.pipeline import mine_texts as pipeline
from tests.benchmarks.measure import Ratio, Run, apart, log, main, peak

K = 4
SIDES = ("source", "target")
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in ("a", "e", "i", "o", "u", "au", "ei")]

#: What a stage calls; what one calls within another is not counted twice.
STAGES: dict[str, list[tuple[Any, str]]] = {
    "read": [(pipeline, "validate_text"), (pipeline, "UniqueSentences")],
    "encode": [(pipeline, "embed_distinct")],
    "search": [(pipeline, "find_neighbors")],
    "choose": [(pipeline, "best_pairs")],
    "filters": [(PairFilters, "allowed")],
    "write": [(pipeline, "_write_pairs")],
}


class Stages:
    """Seconds and memory of the stages of :func:`mine_texts`, by name; a context manager."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.mib: dict[str, float] = defaultdict(float)
        self._stack, self._done = ["other"], threading.Event()
        self._before, self._at = peak("RssAnon"), time.process_time()

    def __enter__(self) -> Stages:
        for name, functions in STAGES.items():
            for owner, function in functions:
                setattr(owner, function, self._within(name, getattr(owner, function)))
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._count()

    def _within(self, name: str, function: Any) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            self._count()
            self._stack.append(name)
            try:
                return function(*arguments, **options)
            finally:
                self._count()
                self._stack.pop()

        return call

    def _count(self) -> None:
        now = time.process_time()
        self.seconds[self._stack[-1]] += now - self._at
        self._at = now

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            name = self._stack[-1]
            self.mib[name] = max(self.mib[name], peak("RssAnon") - self._before)


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


def one_size(arguments: SimpleNamespace, rows: int) -> dict[str, Any]:
    """Mine so many lines a side."""
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        folder, options = Path(place), dict[str, Any](k=K)
        if arguments.model:
            for side, path in zip(SIDES, arguments.text):
                with Path(path).open("rb") as whole:
                    (folder / f"{side}.txt").write_bytes(b"".join(islice(whole, rows)))
            options |= {"model": arguments.model, "dtype": arguments.dtype}
        else:
            make_up(folder, rows, arguments.dim, arguments.dtype)
            options |= {f"{side}_embeddings": folder / f"{side}.store" for side in SIDES}
        texts = [folder / f"{side}.txt" for side in SIDES]
        with contextlib.chdir(folder), Stages() as stages:
            filters = FilterOptions(disable=["all"] if arguments.no_filters else [])
            report = mine_texts(*texts, "pairs.tsv", filters=filters, method=arguments.method, **options)
        plan: dict[str, Any] = {}
        if not arguments.no_plan:
            plan = plan_mining(*texts, **options).as_dict()
    return {"pairs": report.pairs, "seconds": stages.seconds, "mib": stages.mib, "plan": plan}


def ratios(rows: int, more: int, small: dict[str, Any], large: dict[str, Any]) -> Iterator[Ratio]:
    """Exponents between two sizes: 1 grows as the rows, 2 as their product."""
    spent, before = large["seconds"], small["seconds"]

    def exponent(of: float, by: float) -> float:
        return math.log(max(1e-9, of) / max(1e-9, by)) / math.log(more / rows)

    total, size = sum(spent.values()), f"{rows:,} to {more:,}"
    shares = ", ".join(f"{name} {part / total:.0%}" for name, part in spent.items() if part > 0.005 * total)
    time_exponent = exponent(total, sum(before.values()))
    yield Ratio(f"{size}: exponent of time", "rows", time_exponent, note=f"{total:.1f} s: {shares}")
    if before["search"]:
        yield Ratio(f"{size}: exponent of search", "rows", exponent(spent["search"], before["search"]), at_most=2.1)
    few, most = (max([1.0, *result["mib"].values()]) for result in (small, large))
    yield Ratio(f"{size}: exponent of memory", "rows", exponent(most, few), at_most=1.0, note=f"{most:,.0f} MiB")


def measure(
    run: Run,
    *,
    rows: tuple[int, ...] = (10_000, 30_000, 100_000),
    dim: int = 32,
    dtype: str = "float16",
    method: str = "exact",
    model: str | None = None,
    text: tuple[str, ...] = (),
    folder: str | None = None,
    no_filters: bool = False,
    no_plan: bool = False,
) -> Iterator[Ratio]:
    """``text``: source and target, for ``model``; ``folder`` for texts and stores meanwhile."""
    arguments = SimpleNamespace(dim=dim, dtype=dtype, method=method, model=model, text=text, folder=folder)
    arguments.no_filters, arguments.no_plan = no_filters, no_plan
    sizes: list[tuple[int, dict[str, Any]]] = []
    for count in rows:
        sizes.append((count, apart(one_size, arguments, count)))
        result = sizes[-1][1]
        stages = ", ".join(f"{name} {spent:.1f} s" for name, spent in result["seconds"].items())
        log(f"{count:,}: {stages}; MiB: {', '.join(f'{name} {mib:,.0f}' for name, mib in result['mib'].items())}")
        if result["plan"]:
            planned = sum(result["plan"][f"{key}_seconds"] for key in ("encode", "search"))
            yield Ratio(f"{count:,}: plan, time", "measured", planned / sum(result["seconds"].values()))
            memory = result["plan"]["memory_bytes"] / 2**20 / max([1.0, *result["mib"].values()])
            yield Ratio(f"{count:,}: plan, memory", "measured", memory)
    for (few, small), (many, large) in pairwise(sizes):
        yield from ratios(few, many, small, large)


if __name__ == "__main__":
    main(measure, quick={"rows": (500, 1000)})
