"""From two texts and their ready embeddings to a file of pairs: ``st-xling mine`` by LASER's way.

Text: the mining sets (test split) of the folder that ``ST_XLING_DATA`` names, each by itself and all as one.
Embeddings: ``.npy`` files of float32, made up, gold pairs near each other.

LASER, as sentence-transformers' example, searches FAISS's flat index once in each direction; margins and choice are
Python loops. Speed is taken in turn in one process, and the pairs are compared.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from tests.benchmarks.measure import Ratio, Run, data_folder, main, quotients

SETS = ("de-en", "fr-en", "ru-en", "zh-en")
K, DIM = 4, 1024


def two_searches(folder: Path, name: str) -> None:
    """LASER's way: unique lines, two flat searches, a loop over candidates, a greedy pass, a file."""
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
        index = faiss.IndexFlatIP(DIM)
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
    with (folder / f"{name}.laser").open("w", encoding="utf-8") as file:
        for score, one, other_one in sorted(candidates, reverse=True):
            if one not in taken[0] and other_one not in taken[1]:
                taken[0].add(one)
                taken[1].add(other_one)
                file.write(f"{score}\t{texts[0][one]}\t{texts[1][other_one]}\n")


def ours(folder: Path, name: str, *, filtered: bool) -> None:
    """``st-xling mine`` without its start: the call that it makes."""
    from st_xling.mining import FilterOptions, SearchOptions, mine_texts

    languages = dict(zip(("source_language", "target_language"), name.split("-"))) if name in SETS else {}
    filters = FilterOptions(**languages) if filtered else FilterOptions(disable=["all"])
    files = {f"{side}_embeddings": folder / f"{name}.{side}.npy" for side in ("source", "target")}
    out = folder / f"{name}.{'filtered' if filtered else 'ours'}"
    search = SearchOptions(k=K)
    mine_texts(folder / f"{name}.source", folder / f"{name}.target", out, **files, search=search, filters=filters)


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
    texts = slice(3, 5) if path.suffix == ".ours" else slice(-2, None)
    return {tuple(line.split("\t")[texts]) for line in path.read_text(encoding="utf-8").split("\n")[:-1]}


def measure(run: Run, *, sets: tuple[str, ...] = (*SETS, "all")) -> Iterator[Ratio]:
    import faiss

    faiss.omp_set_num_threads(run.threads)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(run, folder, [name for name in sets if name != "all"] if run.quick else [*SETS])
        for name in sets:
            ways: dict[str, Callable[[], None]] = {
                "no filters": partial(ours, folder, name, filtered=False),
                "filters": partial(ours, folder, name, filtered=True),
                "LASER": partial(two_searches, folder, name),
            }
            seconds = run.in_turn(ways)
            own, theirs = _pairs(folder / f"{name}.ours"), _pairs(folder / f"{name}.laser")
            for way in ("no filters", "filters"):
                note = f"{median(seconds[way]):.2f} s; {len(own):,} pairs, {len(own & theirs):,} of them also theirs"
                target = 2.0 if name == "all" else None
                faster = quotients(seconds["LASER"], seconds[way])
                yield Ratio(f"{name}, {way}: speed", "LASER's way", faster, at_least=target, note=note)


if __name__ == "__main__":
    main(measure, rounds=5, quick={"sets": ("de-en",)})
