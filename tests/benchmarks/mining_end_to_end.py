"""From two texts and their ready embeddings to a file of pairs: ``st-xling mine`` by the two ways in common use.

Text: the mining sets (test split) of the folder that ``ST_XLING_DATA`` names, each by itself and all as one.
Embeddings: ``.npy`` files of float32, made up, gold pairs near each other.

The ways in common use share their algorithm: FAISS's flat index searched once in each direction, then margins and
choice in Python loops. LASER's writes plain text; that of sentence-transformers' example, xz.

Speed is taken in turn in one process. Pairs found by all are compared. Memory is the peak of a fresh process beyond
what it held before.
"""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np

from tests.benchmarks.measure import Ratio, Run, apart, data_folder, main, peak, quotients, resident

SETS = ("de-en", "fr-en", "ru-en", "zh-en")
K, DIM = 4, 1024
FILTERED, UNFILTERED = "filters", "no filters"


def two_searches(folder: Path, name: str, dim: int, out: str) -> None:
    """Both peers' way: unique lines, two flat searches, a loop over candidates, a greedy pass, a file."""
    import faiss

    texts, vectors = [], []
    for side in ("source", "target"):
        rows: dict[str, int] = {}
        for row, line in enumerate((folder / f"{name}.{side}").read_text(encoding="utf-8").split("\n")[:-1]):
            rows.setdefault(line, row)
        texts.append(list(rows))
        vectors.append(np.load(folder / f"{name}.{side}.npy")[list(rows.values())])
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


def ours(folder: Path, name: str, *, filtered: bool) -> None:
    """``st-xling mine`` without its start: the call that it makes."""
    from st_xling.mining import FilterOptions, mine_texts

    languages = dict(zip(("source_language", "target_language"), name.split("-"))) if name in SETS else {}
    filters = FilterOptions(**languages) if filtered else FilterOptions(disable=["all"])
    files = {f"{side}_embeddings": folder / f"{name}.{side}.npy" for side in ("source", "target")}
    out = folder / f"{name}.{'filtered' if filtered else 'ours'}"
    mine_texts(folder / f"{name}.source", folder / f"{name}.target", out, **files, k=K, filters=filters)


def ways(folder: Path, name: str, dim: int) -> dict[str, Callable[[], None]]:
    return {
        UNFILTERED: lambda: ours(folder, name, filtered=False),
        FILTERED: lambda: ours(folder, name, filtered=True),
        "LASER": lambda: two_searches(folder, name, dim, f"{name}.laser"),
        "ST": lambda: two_searches(folder, name, dim, f"{name}.host.xz"),
    }


def read(run: Run, name: str) -> tuple[list[str], list[str], list[tuple[int, int]]]:
    """Source, target, and pairs of rows that are translations."""
    from st_xling.data import read_bucc
    from st_xling.data.phrasebook import mining_phrases

    if run.quick:
        phrases = mining_phrases(*name.split("-"), size=60, gold=20)
        return phrases.source, phrases.target, phrases.gold
    corpus = read_bucc(data_folder() / "mining", name, "test")
    rows = [{one: row for row, one in enumerate(ids)} for ids in (corpus.source_ids, corpus.target_ids)]
    return corpus.source, corpus.target, [(rows[0][one], rows[1][other]) for one, other in corpus.gold or []]


def prepare(run: Run, folder: Path, sets: list[str]) -> None:
    """Write text and embeddings of each set, and of all sets as one."""
    for name in sets:
        *texts, gold = read(run, name)
        random = np.random.default_rng(len(name) + ord(name[0]))
        vectors = [random.standard_normal((len(lines), DIM), dtype=np.float32) / 2 for lines in texts]
        for one, other in gold:
            vectors[1][other] += vectors[0][one]
        for side, lines, some in zip(("source", "target"), texts, vectors):
            for label in (name, "all"):
                with (folder / f"{label}.{side}").open("a", encoding="utf-8") as file:
                    file.writelines(f"{text}\n" for text in lines)
                path = folder / f"{label}.{side}.npy"
                np.save(path, np.concatenate([*([np.load(path)] if path.exists() else []), some]).astype(np.float32))


def _pairs(path: Path) -> set[tuple[str, ...]]:
    return {tuple(line.split("\t")[-2:]) for line in path.read_text(encoding="utf-8").split("\n")[:-1]}


def memory(folder: str, name: str, dim: int, way: str) -> float:
    """MiB of one call in a process that has seen its libraries but none of its inputs."""
    with tempfile.TemporaryDirectory() as small:
        warm = Path(small)
        for side in ("source", "target"):
            (warm / f"{name}.{side}").write_text("".join(f"Sentence {n}.\n" for n in range(8)), "utf-8")
            np.save(warm / f"{name}.{side}.npy", np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32))
        ways(warm, name, 8)[way]()
    before = resident()
    ways(Path(folder), name, dim)[way]()
    return max(0.0, peak() - before)


def measure(run: Run, *, sets: tuple[str, ...] = (*SETS, "all")) -> Iterator[Ratio]:
    import faiss

    faiss.omp_set_num_threads(run.threads)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(run, folder, [name for name in sets if name != "all"] if run.quick else [*SETS])
        for name in sets:
            seconds = run.in_turn(ways(folder, name, DIM))
            mib = {way: apart(memory, place, name, DIM, way) for way in (FILTERED, UNFILTERED, "LASER")}
            rows = [(folder / f"{name}.{side}").read_bytes().count(b"\n") for side in ("source", "target")]
            ours, theirs = _pairs(folder / f"{name}.ours"), _pairs(folder / f"{name}.laser")
            for way in (UNFILTERED, FILTERED):
                for peer in ("LASER", "ST"):
                    note = f"{rows[0]:,} x {rows[1]:,}, {median(seconds[way]):.2f} s"
                    if way == UNFILTERED and peer == "LASER":
                        note += f"; {len(ours):,} pairs, {len(ours & theirs):,} of them also theirs"
                    faster = quotients(seconds[peer], seconds[way])
                    target = 2.0 if name == "all" else None
                    what = f"{name}, {way}: speed" + (" beside ST" if peer == "ST" else "")
                    yield Ratio(what, f"{peer}'s way", faster, at_least=target, note=note)
                note = f"{mib[way]:.0f} by {mib['LASER']:.0f} MiB"
                yield Ratio(f"{name}, {way}: memory", "512 MiB", mib[way] / 512, at_most=1.0, note=note)


if __name__ == "__main__":
    main(measure, rounds=5, quick={"sets": ("de-en",)})
