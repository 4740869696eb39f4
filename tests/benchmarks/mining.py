"""What mining costs, part by part: ``python -m tests.benchmarks.mining --part kernel``.

``kernel``  exact neighbours in both directions, by a bare float32 product of the same size (target: at most 1.25x) and
            by two exact FAISS searches (at most 0.65x; ``pip install faiss-cpu``), in turn within one process; answers
            are compared too
``growth``  time and memory from 10,000 to 100,000 sentences a side (300,000 with ``--large``), as exponents: 2 is what
            comparing all with all costs, and memory beyond the inputs should not grow with the pairs
``ray``     processor time of 1, 2 and 4 workers of a cluster on this machine, with all that belongs to it, by that of
            the same tasks in this process, and of one search without tasks

From text to pairs, against the two ways in common use: ``python -m tests.benchmarks.mining_end_to_end``; approximate
search, recall against time: ``python -m tests.benchmarks.mining_approximate``.

Times are medians; each round's ratio is taken within the round, so that other work on the machine cancels out, and
once more in processor time, which waits for nobody. Each memory figure is the peak resident size of a fresh process.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import torch

from st_xling.mining import Neighbours, neighbours
from st_xling.mining.search.find import find_neighbours
from st_xling.mining.search.shards import run_here, sharded_neighbours, tasks_of

DIM, K = 768, 4


def embeddings(rows: int, seed: int, dim: int = DIM) -> np.ndarray:
    """Unit vectors of random sentences; every second one is near the same row of seed 0, as a translation is."""
    values = np.random.default_rng(0).standard_normal((rows, dim), dtype=np.float32)
    if seed:
        random = np.random.default_rng(seed)
        values[1::2] = random.standard_normal((len(values[1::2]), dim), dtype=np.float32)
        for start in range(0, rows, 4096):  # noise in pieces: rows may be many
            part = values[start : start + 4096]
            part += 0.7 * random.standard_normal(part.shape, dtype=np.float32)
    for start in range(0, rows, 4096):
        values[start : start + 4096] /= np.linalg.norm(values[start : start + 4096], axis=1, keepdims=True)
    return values


def kernel(arguments: argparse.Namespace) -> None:
    rows = arguments.rows
    source, target = embeddings(rows, 0), embeddings(rows, 1)
    one, other, out = torch.from_numpy(source), torch.from_numpy(target).T, torch.empty(rows, rows)
    runs: dict[str, Callable[[], object]] = {
        "ours": lambda: neighbours(source, target, k=K, memory_mib=arguments.memory_mib),
        "product": lambda: torch.mm(one, other, out=out),
    }
    try:
        import faiss
    except ImportError:
        print("faiss-cpu is not installed: no comparison with it", file=sys.stderr)
    else:
        faiss.omp_set_num_threads(torch.get_num_threads())
        runs["faiss"] = lambda: (_faiss_search(source, target), _faiss_search(target, source))
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    processor: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(arguments.rounds + 1):
        for name, run in runs.items():
            started, worked = time.perf_counter(), time.process_time()
            found = run()
            if number:  # the first round warms up
                seconds[name].append(time.perf_counter() - started)
                processor[name].append(time.process_time() - worked)
            elif name == "ours":
                ours = found
            elif name == "faiss":
                same = np.mean([np.mean(a.indices == b) for a, b in zip(ours, found)])
        if number:
            print("  " + ", ".join(f"{name} {spent[-1]:.2f} s" for name, spent in seconds.items()), file=sys.stderr)
    print(f"{rows} x {rows} x {DIM}, k {K}, {torch.get_num_threads()} threads, medians of {arguments.rounds} rounds")
    print("                                     time   processor time")
    for peer, label, most in (("product", "a bare product", 1.25), ("faiss", "two FAISS searches", 0.65)):
        if peer in runs:
            ratios = f"{_ratio(seconds, peer):.3f}  {_ratio(processor, peer):.3f}"
            print(f"ours / {label + ':':<29} {ratios}   (at most {most})")
    if "faiss" in runs:
        print(f"neighbours that FAISS also names:    {same:.6f}   (its order is that of float32 sums)")


def _faiss_search(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    import faiss

    index = faiss.IndexFlatIP(corpus.shape[1])
    index.add(corpus)
    return index.search(queries, K)[1]


def _ratio(seconds: dict[str, list[float]], peer: str) -> float:
    return float(np.median(np.array(seconds["ours"]) / np.array(seconds[peer])))


def growth(arguments: argparse.Namespace) -> None:
    sizes = [10_000, 30_000, 100_000] + [300_000] * arguments.large
    figures = []
    for rows in sizes:
        command = [sys.executable, "-m", "tests.benchmarks.mining", "--apart", str(rows)]
        command += ["--memory-mib", str(arguments.memory_mib), "--dim", str(arguments.dim)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        figures.append(json.loads(done.stdout.splitlines()[-1]))
        print(
            f"{rows:>8} a side: {figures[-1]['seconds']:9.1f} s, {figures[-1]['extra_mib']:7.1f} MiB beyond the inputs"
        )
    for (rows, small), (more, large) in itertools.pairwise(zip(sizes, figures)):
        exponents = [math.log(large[key] / small[key]) / math.log(more / rows) for key in ("seconds", "extra_mib")]
        print(f"{rows:>8} to {more}: time ^ {exponents[0]:.2f} (at most 2.1), memory ^ {exponents[1]:.2f} (at most 1)")


def one_size(rows: int, dim: int, memory_mib: int) -> dict[str, float]:
    """Seconds and peak MiB beyond a process that has only imported torch, with memory-mapped inputs on disk."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for seed in (0, 1):
            paths.append(Path(folder) / f"{seed}.npy")
            np.save(paths[-1], embeddings(rows, seed, dim))
        source, target = (np.load(path, mmap_mode="r") for path in paths)
        neighbours(source[:64], target[:64], k=K)  # what torch loads on first use is no cost of the search
        with _PeakMemory() as memory:
            started = time.perf_counter()
            neighbours(source, target, k=K, memory_mib=memory_mib, progress=True)
            seconds = time.perf_counter() - started
    return {"seconds": seconds, "extra_mib": memory.extra_mib}


def on_ray(arguments: argparse.Namespace) -> None:
    import ray

    from tests.mining.on_ray import HERE

    dim, rows = arguments.dim, arguments.rows
    source, target = embeddings(rows, 0, dim), embeddings(rows, 1, dim)
    torch.set_num_threads(1)  # as each worker has
    search = partial(find_neighbours, k=K, memory_mib=arguments.memory_mib)
    tasks = tasks_of(rows, rows, k=K, method="exact", shard_rows=max(2 * K, rows // 4))

    def task(some: np.ndarray, others: np.ndarray, _: object) -> tuple[Neighbours, Neighbours]:
        return neighbours(some, others, k=K, memory_mib=arguments.memory_mib)

    base = {"one search": _family_seconds(lambda: search(source, target))}
    base["the tasks"] = _family_seconds(lambda: sharded_neighbours(source, target, task, tasks, run_here, k=K))
    print(f"{rows} x {rows} x {dim}, k {K}, {len(tasks)} tasks; one search: {base['one search'][1]:.1f} s of processor")
    print("               processor time, by that of     clock, by that of")
    print("               the tasks   one search        the tasks   one search")
    _ray_row("here", base["the tasks"], base)
    for workers in (1, 2, 4):
        ray.init(address="local", num_cpus=workers, **HERE)
        # Every worker imports torch before the clock starts.
        search(source[: 64 * workers], target[:64], engine="ray", shard_rows=16)
        options = {"engine": "ray", "shard_rows": rows // 4}
        _ray_row(f"{workers} workers", _family_seconds(lambda: search(source, target, **options)), base)  # noqa: B023
        ray.shutdown()


def _ray_row(name: str, spent: tuple[float, float], base: dict[str, tuple[float, float]]) -> None:
    ratios = [f"{spent[unit] / base[peer][unit]:8.2f}" for unit in (1, 0) for peer in ("the tasks", "one search")]
    print(f"{name:<12} {ratios[0]:>11} {ratios[1]:>11} {ratios[2]:>16} {ratios[3]:>11}")


def _family_seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Clock and processor seconds of this process and all that it has started, while something runs."""
    before, started = _family_processor(), time.perf_counter()
    run()
    return time.perf_counter() - started, _family_processor() - before


def _family_processor() -> float:
    """Seconds of this process and its descendants, those that have ended included."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            total += sum(process.cpu_times()[:4])  # user, system, and both of its own children
    return total


class _PeakMemory:
    """Peak of this process's own memory, sampled: mapped files are pages that the system may take back."""

    def __enter__(self) -> _PeakMemory:
        self._before = self._peak = _own_mib()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self._peak = max(self._peak, _own_mib())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def extra_mib(self) -> float:
        return self._peak - self._before


def _own_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1]) / 2**10


PARTS = {"kernel": kernel, "growth": growth, "ray": on_ray}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, default="kernel")
    parser.add_argument("--rows", type=int, default=16_384, help="sentences a side, for kernel and ray")
    parser.add_argument("--dim", type=int, default=DIM, help="for growth and ray")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory-mib", type=int, default=256)
    parser.add_argument("--large", action="store_true", help="growth: also 300,000 sentences a side")
    parser.add_argument("--apart", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.apart:
        print(json.dumps(one_size(arguments.apart, arguments.dim, arguments.memory_mib)))
    else:
        PARTS[arguments.part](arguments)


if __name__ == "__main__":
    main()
