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
K = 4
DIM = 1024


def two_searches(folder: Path, name: str) -> None:
    """LASER's way: unique lines, two flat searches, a loop over candidates, a greedy pass, a file."""
    import faiss

    texts = []
    vectors = []
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
    for way, (_, neighbors) in enumerate(searches):
        queries = vectors[way]
        corpus = vectors[1 - way]
        for row, nearest_rows in enumerate(neighbors):
            scored = []
            for neighbor in nearest_rows:
                mean = (means[way][row] + means[1 - way][neighbor]) / 2
                scored.append((queries[row].dot(corpus[neighbor]) / mean, neighbor))
            score, neighbor = max(scored)
            source_row, target_row = (row, neighbor) if way == 0 else (neighbor, row)
            candidates.append((score, source_row, target_row))
    used_sources: set[int] = set()
    used_targets: set[int] = set()
    with (folder / f"{name}.laser").open("w", encoding="utf-8") as file:
        for score, source_row, target_row in sorted(candidates, reverse=True):
            if source_row not in used_sources and target_row not in used_targets:
                used_sources.add(source_row)
                used_targets.add(target_row)
                file.write(f"{score}\t{texts[0][source_row]}\t{texts[1][target_row]}\n")


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
    """Return source, target, and pairs of rows that are translations."""
    from st_xling.data import read_bucc
    from st_xling.data.phrasebook import mining_phrases

    if run.quick:
        phrases = mining_phrases(*name.split("-"), size=60, gold=20)
        return phrases.source, phrases.target, phrases.gold
    corpus = read_bucc(data_folder() / "mining", name, "test")
    source_rows = {sentence_id: row for row, sentence_id in enumerate(corpus.source_ids)}
    target_rows = {sentence_id: row for row, sentence_id in enumerate(corpus.target_ids)}
    gold = [(source_rows[source], target_rows[target]) for source, target in corpus.gold or []]
    return corpus.source, corpus.target, gold


def prepare(run: Run, folder: Path, sets: list[str]) -> None:
    """Write text and embeddings of each set, and of all sets as one."""
    for name in sets:
        source, target, gold = read(run, name)
        random = np.random.default_rng(len(name) + ord(name[0]))
        source_vectors = random.standard_normal((len(source), DIM), dtype=np.float32) / 2
        target_vectors = random.standard_normal((len(target), DIM), dtype=np.float32) / 2
        for source_row, target_row in gold:
            target_vectors[target_row] += source_vectors[source_row]
        for label in (name, "all"):
            _append(folder / f"{label}.source", source, source_vectors)
            _append(folder / f"{label}.target", target, target_vectors)


def _append(path: Path, lines: list[str], vectors: np.ndarray) -> None:
    """Append lines to a file, and their embeddings to the file next to it."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in lines)
    vectors_path = path.with_name(f"{path.name}.npy")
    if vectors_path.exists():
        vectors = np.concatenate([np.load(vectors_path), vectors])
    np.save(vectors_path, vectors.astype(np.float32))


def _read_pairs(path: Path) -> set[tuple[str, ...]]:
    texts = slice(3, 5) if path.suffix == ".ours" else slice(-2, None)
    return {tuple(line.split("\t")[texts]) for line in path.read_text(encoding="utf-8").split("\n")[:-1]}


def measure(run: Run, *, sets: tuple[str, ...] = (*SETS, "all")) -> Iterator[Ratio]:
    import faiss

    faiss.omp_set_num_threads(run.threads)
    prepared_sets = [name for name in sets if name != "all"] if run.quick else [*SETS]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(run, folder, prepared_sets)
        for name in sets:
            ways: dict[str, Callable[[], None]] = {
                "no filters": partial(ours, folder, name, filtered=False),
                "filters": partial(ours, folder, name, filtered=True),
                "LASER": partial(two_searches, folder, name),
            }
            seconds = run.in_turn(ways)
            our_pairs = _read_pairs(folder / f"{name}.ours")
            laser_pairs = _read_pairs(folder / f"{name}.laser")
            n_shared = len(our_pairs & laser_pairs)
            for way in ("no filters", "filters"):
                note = f"{median(seconds[way]):.2f} s; {len(our_pairs):,} pairs, {n_shared:,} of them also theirs"
                target = 2.0 if name == "all" else None
                faster = quotients(seconds["LASER"], seconds[way])
                yield Ratio(f"{name}, {way}: speed", "LASER's way", faster, at_least=target, note=note)


if __name__ == "__main__":
    main(measure, rounds=5, quick={"sets": ("de-en",)})
