"""Aligning documents of several lengths, against encoding their sentences and groups; and memory.

Vectors are made up: 19 of 20 sentences have a translation, one of ten is split in two by the translator. The times of
encoding each sentence once, and all groups, are those of samples of real ones, by the encoder of ``ST_XLING_E5`` or
``--model``. From a model, all sentences and few of the groups are encoded: the time is between the two.
"""

import random
from collections.abc import Iterator

import numpy as np

from tests.benchmarks.measure import Ratio, Run, apart, encoder_folder, log, main, parallel, peak, resident

MAX_SIZE = 8
NOISE = 0.05


def made_up(rows: int, dim: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Vectors and lengths of a document and its translation, as :func:`align_documents` takes them."""
    rng = np.random.default_rng(0)
    meanings = rng.standard_normal((rows, dim), dtype=np.float32) / np.sqrt(dim)
    lengths = rng.integers(40, 160, rows)
    halves = rng.random(rows) < 0.1
    kept = rng.random(rows) < 0.95
    counts = np.where(halves, 2, 1) * kept
    target = np.repeat(meanings / (1 + halves[:, None]), counts, axis=0)
    sides = []
    for sentences, sizes in ((meanings, lengths), (target, np.repeat(lengths // (1 + halves), counts))):
        sums = np.concatenate([np.zeros((1, dim)), np.cumsum(sentences, axis=0, dtype=np.float64)])
        groups = [sums[size:] - sums[:-size] for size in range(1, min(MAX_SIZE - 1, len(sentences)) + 1)]
        vectors = np.concatenate(groups).astype(np.float32)
        vectors += NOISE * rng.standard_normal(vectors.shape, dtype=np.float32)
        sides.append((vectors, sizes))
    return sides


def one_length(run: Run, rows: int, dim: int) -> tuple[float, float, int]:
    """Seconds, MiB beyond the vectors, and number of groups of one alignment."""
    from st_xling.mining import align_documents

    (source, source_lengths), (target, target_lengths) = made_up(rows, dim)
    # Each has a number, since numbers are compared, too.
    source_sentences = ["x" * (length - 2) + " 7" for length in source_lengths]
    target_sentences = ["x" * (length - 2) + " 7" for length in target_lengths]
    groups = []

    def align() -> None:
        groups.extend(
            align_documents(
                source_sentences,
                target_sentences,
                source_embeddings=source,
                target_embeddings=target,
                max_size=MAX_SIZE,
            )
        )

    before = resident()
    seconds = run.seconds(align)
    return seconds, peak() - before, len(groups)


def measure(
    run: Run,
    *,
    rows: tuple[int, ...] = (200, 2_000, 20_000),
    dim: int = 384,
    sample: int = 700,
    model: str | None = None,
) -> Iterator[Ratio]:
    from st_xling.mining import overlap_texts
    from st_xling.models import load_encoder, tiny_encoder

    sentences = [pair[0] for pair in parallel(run, "de", sample)]
    groups = random.Random(0).sample(overlap_texts(sentences, MAX_SIZE), min(sample, len(sentences)))
    if run.quick:
        encoder = tiny_encoder(sentences, vocabulary=300, hidden_size=32, layers=1)
    else:
        encoder = load_encoder(encoder_folder(model), device="cpu", dtype="float32")
    encoder.encode(groups[:32])
    sentence_seconds = run.seconds(lambda: encoder.encode(sentences, batch_size=32)) / len(sentences)
    group_seconds = run.seconds(lambda: encoder.encode(groups, batch_size=32)) / len(groups)
    log(f"encoding: {1 / sentence_seconds:.1f} sentences/s, {1 / group_seconds:.1f} groups/s")
    for count in rows:
        seconds, memory, n_groups = apart(one_length, run, count, dim)
        once = 2 * count * sentence_seconds
        everything = 2 * count * (MAX_SIZE - 1) * group_seconds
        what = f"{count:,} sentences a side: time"
        note = f"{seconds:.1f} s, encoding {once:,.0f} s, {memory:,.0f} MiB beyond the vectors, {n_groups:,} groups"
        yield Ratio(what, "encoding each sentence once", seconds / once, at_most=0.1, note=note)
        note = f"encoding {everything:,.0f} s"
        yield Ratio(f"{what} of the search", "encoding all groups", seconds / everything, at_most=0.1, note=note)


if __name__ == "__main__":
    main(measure, quick={"rows": (50, 100), "sample": 40, "dim": 32})
