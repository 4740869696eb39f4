"""From two texts and their ready embeddings to a file of pairs: ``python -m tests.benchmarks.mining_end_to_end``.

Text: the mining sets (test split) of the folder that ``ST_XLING_DATA`` names, each by itself and all as one.
Embeddings: LASER's raw float32 files, of ``--model``; without one made up, gold pairs near each other.

``st-xling mine`` with and without guards, against the two ways in common use, which share their algorithm: FAISS's flat
index (``pip install faiss-cpu``) searched once in each direction, then margins and choice in Python loops. ``laser``
writes plain text; ``host``, as the example of sentence-transformers does, xz.

Calls take turns in one process; each ratio is taken within its round, on the clock and in processor time (target: at
least 2x faster). Pairs found by all are compared. Memory is the peak of a fresh process beyond what it held before
(target: below 512 MiB).
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from tests.benchmarks.measure import apart, peak, resident, spread

MODULE = "tests.benchmarks.mining_end_to_end"
SETS = ("de-en", "fr-en", "ru-en", "zh-en")
K, DIM = 4, 1024
GUARDED, UNGUARDED = "ours, guards", "ours, no guards"


def two_searches(folder: Path, name: str, dim: int, out: str) -> None:
    """Both peers' way: unique lines, two flat searches, a loop over candidates, a greedy pass, a file."""
    import faiss

    texts, vectors = [], []
    for side in ("source", "target"):
        rows: dict[str, int] = {}
        for row, line in enumerate((folder / f"{name}.{side}").read_text(encoding="utf-8").split("\n")[:-1]):
            rows.setdefault(line, row)
        texts.append(list(rows))
        vectors.append(
            np.fromfile(folder / f"{name}.{side}.raw", dtype=np.float32).reshape(-1, dim)[list(rows.values())]
        )
        faiss.normalize_L2(vectors[-1])
    searches = []
    for queries, corpus in (vectors, vectors[::-1]):
        index = faiss.IndexFlatIP(dim)
        index.add(corpus)
        searches.append(index.search(queries, K))
    means = [cosines.mean(axis=1) for cosines, _ in searches]
    candidates: list[tuple[float, int, int]] = []
    for way, (_, found) in enumerate(searches):
        own, other = vectors[way], vectors[1 - way]
        for row in range(len(found)):
            scored = [
                (own[row].dot(other[near]) / ((means[way][row] + means[1 - way][near]) / 2), near)
                for near in found[row]
            ]
            score, near = max(scored)
            candidates.append((score, row, near) if way == 0 else (score, near, row))
    taken: tuple[set[int], set[int]] = (set(), set())
    write = lzma.open if out.endswith(".xz") else open
    with write(folder / out, "wt", encoding="utf-8") as file:
        for score, one, other_one in sorted(candidates, reverse=True):
            if one not in taken[0] and other_one not in taken[1]:
                taken[0].add(one)
                taken[1].add(other_one)
                file.write(f"{score}\t{texts[0][one]}\t{texts[1][other_one]}\n")


def ours(folder: Path, name: str, dim: int, *, guarded: bool) -> None:
    """``st-xling mine`` without its start: the call that it makes."""
    from st_xling.mining import GuardOptions, mine_texts

    languages = dict(zip(("source_language", "target_language"), name.split("-"))) if name in SETS else {}
    guards = GuardOptions(**languages) if guarded else GuardOptions().with_flags(off=["all"])
    files = {f"{side}_embeddings": folder / f"{name}.{side}.raw" for side in ("source", "target")}
    out = folder / f"{name}.{'guarded' if guarded else 'ours'}"
    mine_texts(folder / f"{name}.source", folder / f"{name}.target", out, **files, dim=dim, k=K, guards=guards)


def ways(folder: Path, name: str, dim: int) -> dict[str, Callable[[], None]]:
    return {
        UNGUARDED: lambda: ours(folder, name, dim, guarded=False),
        GUARDED: lambda: ours(folder, name, dim, guarded=True),
        "laser": lambda: two_searches(folder, name, dim, f"{name}.laser"),
        "host": lambda: two_searches(folder, name, dim, f"{name}.host.xz"),
    }


def prepare(folder: Path, model: str | None) -> int:
    """Write text and embeddings of each set, and of all sets as one; returns the number of dimensions."""
    data = Path(os.environ.get("ST_XLING_DATA", "../shared/data")) / "mining"
    encoder = None
    if model:
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer(model)
    dim = encoder.get_sentence_embedding_dimension() if encoder else DIM
    for name in SETS:
        base, random = data / name, np.random.default_rng(len(name) + ord(name[0]))
        gold = [line.split() for line in (base / f"{name}.test.gold").read_text(encoding="utf-8").splitlines()]
        near = {two[0]: two[1] for two in gold} | {two[1]: two[0] for two in gold}
        made: dict[str, np.ndarray] = {}
        for side, language in zip(("source", "target"), name.split("-")):
            lines = (base / f"{name}.test.{language}").read_text(encoding="utf-8").split("\n")[:-1]
            ids, texts = zip(*(line.split("\t", 1) for line in lines))
            if encoder is not None:
                vectors = encoder.encode(list(texts), batch_size=128, show_progress_bar=False)
            else:
                vectors = random.standard_normal((len(ids), dim), dtype=np.float32) / 2
                vectors += [made[near[key]] if near.get(key) in made else np.zeros(dim) for key in ids]
                made |= dict(zip(ids, vectors))
            for label in (name, "all"):
                with (folder / f"{label}.{side}").open("a", encoding="utf-8") as file:
                    file.writelines(f"{text}\n" for text in texts)
                with (folder / f"{label}.{side}.raw").open("ab") as raw:
                    raw.write(np.asarray(vectors, dtype=np.float32).tobytes())
    return int(dim)


def compare(folder: Path, name: str, dim: int, rounds: int) -> None:
    runs = ways(folder, name, dim)
    clock: dict[str, list[float]] = {way: [] for way in runs}
    processor: dict[str, list[float]] = {way: [] for way in runs}
    for number in range(rounds + 1):
        for way, run in runs.items():
            started, worked = time.perf_counter(), time.process_time()
            run()
            if number:  # the first round warms up
                clock[way].append(time.perf_counter() - started)
                processor[way].append(time.process_time() - worked)
    rows = [(folder / f"{name}.{side}").read_bytes().count(b"\n") for side in ("source", "target")]
    print(f"\n{name}: {rows[0]:,} x {rows[1]:,} x {dim}")
    for way in runs:
        words = ["apart", "--folder", str(folder), "--set", name, "--dim", str(dim), "--way", way]
        memory = apart(MODULE, words)["extra_mib"]
        ratios = [
            f"{peer} {spread([a / b for a, b in zip(clock[peer], clock[way])])} clock "
            f"{spread([a / b for a, b in zip(processor[peer], processor[way])])} processor"
            for peer in ("laser", "host")
            if way.startswith("ours")
        ]
        print(f"  {way:<16}{median(clock[way]):7.2f} s {memory:7.0f} MiB   " + ";  ".join(ratios))
    mined = {tuple(line.split("\t")[-2:]) for line in _lines(folder / f"{name}.ours")}
    theirs = {tuple(line.split("\t")[-2:]) for line in _lines(folder / f"{name}.laser")}
    print(f"  pairs without guards: {len(mined):,}, of which the loops also find {len(mined & theirs):,}")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def one_call(arguments: argparse.Namespace) -> None:
    """Memory of one call, in a process of its own, which has seen its libraries but none of its inputs."""
    runs = ways(Path(arguments.folder), arguments.set, arguments.dim)
    with tempfile.TemporaryDirectory() as small:
        warm = Path(small)
        for side in ("source", "target"):
            (warm / f"{arguments.set}.{side}").write_text("".join(f"Sentence {n}.\n" for n in range(8)), "utf-8")
            np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32).tofile(
                warm / f"{arguments.set}.{side}.raw"
            )
        ways(warm, arguments.set, 8)[arguments.way]()
    before = resident()
    runs[arguments.way]()
    print(json.dumps({"extra_mib": max(0.0, peak() - before)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="encoder of the embeddings; made up without one")
    parser.add_argument("--sets", nargs="+", default=[*SETS, "all"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("task", nargs="?", choices=("compare", "apart"), default="compare", help=argparse.SUPPRESS)
    for hidden in ("--folder", "--set", "--way"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--dim", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task == "apart":
        one_call(arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        dim = prepare(Path(folder), arguments.model)
        for name in arguments.sets:
            compare(Path(folder), name, dim, arguments.rounds)


if __name__ == "__main__":
    main()
