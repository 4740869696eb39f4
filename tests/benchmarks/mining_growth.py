"""What mining takes as texts grow, by stage, and what the plan says: ``python -m tests.benchmarks.mining_growth``.

Each size is a process of its own: seconds of the processor (which wait for nobody), shares of the stages, peak of the
memory beyond what was there before, without the mapped stores, and the ratio of the plan to each. Between two sizes
stands the exponent of each stage: 1 grows as the texts, 2 as their product.

Text and vectors are made up: distinct short lines and a noisy copy of each. With ``--model`` lines of real text are
embedded instead. With ``--saved`` the search is not made: its saved state is, with the known neighbours and made-up
cosines, and is loaded as if the search had been killed just before its end. So ten million lines a side can be run:
``--rows 10000000 --dim 16 --dtype int8 --saved --no-guards --no-plan``.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from st_xling.mining import EmbeddingStore, GuardOptions, MiningText, mine_texts, plan_mining, write_store
from st_xling.mining import deduplication as reading
from st_xling.mining.guards import PairGuards
from st_xling.mining.pipeline import config
from st_xling.mining.pipeline import mine_texts as pipeline
from st_xling.mining.pipeline import plan_mining as planning
from st_xling.mining.search.corpus_matrix import CorpusMatrix
from st_xling.mining.search.search_state import _identity
from st_xling.mining.search.top_k import pack_keys
from tests.benchmarks.measure import apart

K = 4
SIDES = ("source", "target")
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in ("a", "e", "i", "o", "u", "au", "ei")]

#: What a stage calls; what one calls within another is not counted twice.
STAGES: dict[str, list[tuple[Any, str]]] = {
    "read": [(reading, "validate_text"), (reading, "fold_duplicates"), (pipeline, "check_vectors")],
    "encode": [(config.MiningConfig, "embed")],
    "search": [(config, "find_neighbours")],
    "choose": [(pipeline, "best_pairs")],
    "guards": [(PairGuards, "allowed")],
    "write": [(pipeline, "_write_pairs")],
}


class Stages:
    """Seconds and memory of the stages of :func:`mine_texts`, by name; a context manager."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.mib: dict[str, float] = defaultdict(float)
        self._stack, self._done = ["other"], threading.Event()
        self._before, self._at = _anonymous_mib(), time.process_time()

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
            self.mib[name] = max(self.mib[name], _anonymous_mib() - self._before)


def _anonymous_mib() -> float:
    """Memory of this process that is no file's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 2**10


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


def make_up(folder: Path, rows: int, dim: int, dtype: str) -> np.ndarray:
    """Write both texts and their stores; the source of each target."""
    of_target = np.random.default_rng(1).permutation(rows)
    for side, numbers in zip(SIDES, (np.arange(rows), of_target)):
        with (folder / f"{side}.txt").open("w", encoding="utf-8") as file:
            for start in range(0, rows, 2**16):
                file.writelines(f"{_words(number, side)}\n" for number in numbers[start : start + 2**16].tolist())
        text = MiningText(folder / f"{side}.txt")
        vectors = MadeUp(numbers, dim, SIDES.index(side))
        write_store(folder / f"{side}.store", vectors, sentences=text, dtype=dtype)
    return of_target


def _words(number: int, side: str) -> str:
    ending, words = {"source": "s", "target": "zh"}[side], []
    for _ in range(4):
        number, digit = divmod(number, len(SYLLABLES))
        words.append(SYLLABLES[digit] + ending)
    return " ".join(["".join(words[:2]), "".join(words[2:])])


def save_state(folder: Path, path: Path, of_target: np.ndarray) -> None:
    """The state of a finished exact search: each sentence's partner first, then random others."""
    rows = len(of_target)
    of_source = np.empty(rows, dtype=np.int64)
    of_source[of_target] = np.arange(rows)
    states = {}
    for side, partners in zip(SIDES, (of_source, of_target)):
        keys = torch.empty((rows, K), dtype=torch.int64)
        random = np.random.default_rng(SIDES.index(side))
        for start in range(0, rows, 2**16):
            some = partners[start : start + 2**16, None]
            others = (some + np.cumsum(random.integers(1, rows // K, (len(some), K - 1)), axis=1)) % rows
            others, own = np.hstack([some, others]), np.arange(start, start + len(some))[:, None]
            # The same for a pair from either side.
            one, other = (own, others) if side == "source" else (others, own)
            cosines = 0.5 + 0.2 * ((one * 2654435761 + other * 40503) % 1048573) / 1048573 + 0.2 * (others == some)
            packed = pack_keys(torch.from_numpy(cosines.astype(np.float32)), torch.from_numpy(others))
            keys[start : start + 2**16] = packed.sort(dim=1, descending=True).values
        states[side] = keys
    stores = (CorpusMatrix(EmbeddingStore.open(folder / f"{side}.store"), side, torch.device("cpu")) for side in SIDES)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(states, path, metadata={"identity": _identity(*stores, K), "done": str(rows)})


def one_size(arguments: argparse.Namespace, rows: int) -> dict[str, Any]:
    """Mine so many lines a side."""
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        folder, options = Path(place), {"k": K, "method": arguments.method}
        options["guards"] = GuardOptions().with_flags(off=["all"] if arguments.no_guards else [])
        if arguments.model:
            for side, path in zip(SIDES, arguments.text):
                with Path(path).open("rb") as whole:
                    (folder / f"{side}.txt").write_bytes(b"".join(islice(whole, rows)))
            options |= {"model": arguments.model, "dtype": arguments.dtype}
        else:
            of_target = make_up(folder, rows, arguments.dim, arguments.dtype)
            options |= {f"{side}_embeddings": folder / f"{side}.store" for side in SIDES}
            if arguments.saved:
                save_state(folder, folder / "state", of_target)
            del of_target
        texts = [folder / f"{side}.txt" for side in SIDES]
        with contextlib.chdir(folder), Stages() as stages:
            if arguments.saved:
                inner = config.find_neighbours

                def resumed(*both: Any, state_folder: Path, **named: Any) -> Any:
                    state_folder.mkdir(parents=True)
                    Path("state").rename(state_folder / "search.safetensors")
                    return inner(*both, state_folder=state_folder, **named)

                config.find_neighbours = resumed
            report = mine_texts(*texts, "pairs.tsv", **options)
        plan: dict[str, Any] = {}
        if not arguments.no_plan:
            planning.time.perf_counter = time.process_time  # type: ignore[attr-defined]
            plan = plan_mining(*texts, **options).as_dict()
    return {"pairs": report.pairs, "seconds": stages.seconds, "mib": stages.mib, "plan": plan}


def table(sizes: list[int], results: list[dict[str, Any]]) -> Iterator[str]:
    names = [*STAGES, "other"]
    yield "rows a side  " + "".join(f"{name:>18}" for name in names) + "   total, peak MiB; plan by measured"
    before: tuple[int, dict[str, Any]] | None = None
    for rows, result in zip(sizes, results):
        seconds, plan = result["seconds"], result["plan"]
        total, peak = sum(seconds.values()), max(result["mib"].values())
        cells = [f"{seconds.get(name, 0):.1f} s {seconds.get(name, 0) / total:4.0%}" for name in names]
        said = ""
        if plan:
            parts = [(names, plan[f"{key}_seconds"]) for key, names in PLANNED.items()]
            ratios = [f"{planned / max(1e-9, sum(seconds.get(one, 0) for one in of)):.2f}" for of, planned in parts]
            said = f"; time {' '.join(ratios)}, memory {plan['memory_bytes'] / 2**20 / peak:.2f}"
        yield f"{rows:>11,}  " + "".join(f"{cell:>18}" for cell in cells) + f"   {total:.1f} s, {peak:,.0f} MiB{said}"
        mib = ", ".join(f"{name} {result['mib'][name]:,.0f}" for name in names if name in result["mib"])
        yield f"{'':13}MiB by stage: {mib}; {result['pairs']:,} pairs"
        if before is not None:
            step = math.log(rows / before[0])
            exponents = [
                f"{math.log(seconds[name] / before[1][name]) / step:.2f}" if seconds.get(name, 0) > 0.05 else ""
                for name in names
            ]
            yield f"{'exponent':>11}  " + "".join(f"{cell:>18}" for cell in exponents)
        before = rows, seconds


#: Which stages the parts of a plan are about.
PLANNED = {
    "encode": ["encode"],
    "search": ["search"],
    "guard": ["guards"],
    "text": ["read", "choose", "write", "other"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--dtype", default="float16", help="of the stores")
    parser.add_argument("--method", default="exact")
    parser.add_argument("--model", help="encoder of real text")
    parser.add_argument("--text", nargs=2, metavar=("SOURCE", "TARGET"), help="for --model")
    for flag in ("--saved", "--no-guards", "--no-plan"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--folder", help="where texts and stores are kept meanwhile")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.apart:
        print(json.dumps(one_size(arguments, arguments.rows[0])))
        return
    words = [f"--{name.replace('_', '-')}" for name, value in vars(arguments).items() if value is True]
    for name in ("dim", "dtype", "method", "model", "folder"):
        if getattr(arguments, name) is not None:
            words += [f"--{name}", str(getattr(arguments, name))]
    words += ["--text", *arguments.text] if arguments.text else []
    results = []
    for rows in arguments.rows:
        results.append(apart("tests.benchmarks.mining_growth", ["--apart", "--rows", str(rows), *words]))
        for line in list(table(arguments.rows, results))[-2 if len(results) == 1 else -3 :]:
            print(line, flush=True)


if __name__ == "__main__":
    main()
