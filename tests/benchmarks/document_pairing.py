"""Finding which documents of two folders belong together: precision, recall, and time for many documents.

Text, of the folder that ``ST_XLING_DATA`` names: the 240 paragraphs of XQuAD-R in seven languages with English, and the
documents of ``documents``, cut into parts of so many gold groups. A fifth of the documents of either side is missing on
the other, and both sides are shuffled; all draws and languages of a text count together. The time is that of documents
of 20 made-up vectors, on 200 topics.
"""

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.measure import Ratio, Run, data_folder, encoder_folder, log, main
from tests.benchmarks.thresholds import embed

LANGUAGES = ("ar", "de", "es", "ru", "tr", "vi", "zh")
PART_SIZES = (8, 20)
MISSING = 0.2
DRAWS = 3
SENTENCES = 20
TOPICS = 200


class Counts(NamedTuple):
    """Numbers of pairs of documents.

    Attributes:
        pairs: Pairs that were found.
        correct: Those of a document and its translation.
        gold: Documents whose translation is there.
    """

    pairs: int = 0
    correct: int = 0
    gold: int = 0

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*map(sum, zip(self, other)))


def read_xquad(folder: Path, language: str) -> list[list[str]]:
    """Return the paragraphs of XQuAD-R in a language, as sentences."""
    content = json.loads(gzip.decompress((folder / f"{language}.json.gz").read_bytes()))
    return [paragraph["sentences"] for article in content["data"] for paragraph in article["paragraphs"]]


def cut(folder: Path, size: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return the rows of the translation and of the English document of each part of so many gold groups."""
    from st_xling.evaluation.alignment import read_groups

    groups = list(read_groups(folder / "gold"))
    source: list[list[int]] = []
    target: list[list[int]] = []
    for start in range(0, len(groups) - size // 2, size):
        part = groups[start : start + size]
        translation_rows = [row for _, rows in part for row in rows]
        english_rows = [row for rows, _ in part for row in rows]
        if translation_rows and english_rows:
            source.append(translation_rows)
            target.append(english_rows)
    return source, target


def vectors_of(
    encoder: object, documents: Sequence[Sequence[str]], prompt: str, saved: Path | None
) -> list[np.ndarray]:
    """Return the vectors of the sentences of each document."""
    sentences = [sentence for document in documents for sentence in document]
    vectors = embed(encoder, sentences, prompt, saved)
    starts = [0, *accumulate(map(len, documents))]
    return [vectors[start:stop] for start, stop in pairwise(starts)]


def count_pairs(source: Sequence[np.ndarray], target: Sequence[np.ndarray]) -> Counts:
    """Pair documents with their translations, at equal places, of which some are missing on either side."""
    from st_xling.mining import pair_by_sentences

    counts = Counts()
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        order = random.permutation(len(source))
        missing = int(len(source) * MISSING)
        sources = random.permutation(order[missing:])
        targets = random.permutation(np.concatenate([order[:missing], order[2 * missing :]]))
        pairs = pair_by_sentences([source[number] for number in sources], [target[number] for number in targets])
        correct = sum(int(sources[pair.source] == targets[pair.target]) for pair in pairs)
        counts = counts.plus(Counts(len(pairs), correct, len(source) - 2 * missing))
    return counts


def made_up(documents: int, dim: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Vectors of documents and of their translations, in the same order."""
    random = np.random.default_rng(0)
    topics = random.standard_normal((TOPICS, dim), dtype=np.float32)
    source = []
    target = []
    for number in range(documents):
        subject = 0.5 * topics[number % TOPICS] + 0.3 * random.standard_normal(dim, dtype=np.float32)
        vectors = subject + 0.7 * random.standard_normal((SENTENCES, dim), dtype=np.float32)
        source.append(vectors)
        target.append(vectors + 0.8 * random.standard_normal(vectors.shape, dtype=np.float32))
    return source, target


def measure(
    run: Run,
    *,
    documents: int = 10_000,
    dim: int = 384,
    model: str | None = None,
    prompt: str = "query: ",
    vectors: str = "",
) -> Iterator[Ratio]:
    from st_xling.mining import pair_by_sentences
    from st_xling.models import load_encoder

    totals: dict[str, Counts] = {}
    if run.quick:
        totals["made-up vectors"] = count_pairs(*made_up(documents, dim))
    else:
        folder = data_folder()
        encoder = load_encoder(encoder_folder(model))

        def saved(name: str) -> Path | None:
            return Path(vectors, f"{name}.npy") if vectors else None

        english = vectors_of(encoder, read_xquad(folder / "xquad_r", "en"), prompt, saved("xquad.en"))
        for language in LANGUAGES:
            paragraphs = read_xquad(folder / "xquad_r", language)
            translated = vectors_of(encoder, paragraphs, prompt, saved(f"xquad.{language}"))
            counts = count_pairs(translated, english)
            totals["XQuAD"] = totals.get("XQuAD", Counts()).plus(counts)
            log(f"XQuAD, {language}: {counts}")
        for gold in sorted((folder / "documents").glob("*/gold")):
            lines = {side: (gold.parent / side).read_text(encoding="utf-8").splitlines() for side in ("xx", "en")}
            [translation] = vectors_of(encoder, [lines["xx"]], prompt, saved(f"{gold.parent.name}.lines.xx"))
            [original] = vectors_of(encoder, [lines["en"]], prompt, saved(f"{gold.parent.name}.lines.en"))
            for size in PART_SIZES:
                translation_rows, original_rows = cut(gold.parent, size)
                counts = count_pairs(
                    [translation[rows] for rows in translation_rows], [original[rows] for rows in original_rows]
                )
                text = f"parts of {size} groups"
                totals[text] = totals.get(text, Counts()).plus(counts)
                log(f"{gold.parent.name}, {text}: {counts}")

    print("| text | precision | recall | documents with a translation |\n| --- | --- | --- | --- |")
    for text, total in totals.items():
        print(f"| {text} | {total.correct / total.pairs:.3f} | {total.correct / total.gold:.3f} | {total.gold} |")
    print()
    for text, total in totals.items():
        yield Ratio(f"{text}: right pairs", "those found", total.correct / total.pairs, at_least=0.98)
        yield Ratio(f"{text}: right pairs found", "those that are there", total.correct / total.gold, at_least=0.95)

    source_vectors, target_vectors = made_up(documents, dim)
    shuffled = [target_vectors[number] for number in np.random.default_rng(0).permutation(documents)]
    seconds = run.seconds(lambda: pair_by_sentences(source_vectors, shuffled))
    yield Ratio(f"{documents:,} documents a side", "a minute", seconds / 60, at_most=1.0, note=f"{seconds:.1f} s")


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main(measure, quick={"documents": 60, "dim": 32})
