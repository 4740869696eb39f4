"""Hard negatives: how often a paraphrase of the translation becomes a negative, and how near the negatives are.

Text: the first items of PAWS-X's dev sets in German and English, in the folder that ``ST_XLING_DATA`` names. An item is
two sentences of nearly the same words, labeled as paraphrases or not. Each sentence is a training pair of its
own, so that the nearest other target of a pair is mostly the item's other sentence: a false negative of a paraphrase,
and, where it is none, the hardest negative there is. Compared are the nearest targets, those drawn at random from the
ranks 2 to 32, and the nearest ones below relative margins.
"""

import gzip
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from tests.benchmarks.measure import Ratio, Run, data_folder, encoder_folder, log, main
from tests.benchmarks.thresholds import embed

RANKS = {"range_min": 1, "range_max": 32, "sampling_strategy": "random", "relative_margin": None}
WAYS: dict[str, dict[str, Any]] = {
    "nearest": {"relative_margin": None},
    "ranks 2 to 32 at random": RANKS,
    "margin 0.03": {"relative_margin": 0.03},
    "margin 0.05": {"relative_margin": 0.05},
    "margin 0.1": {"relative_margin": 0.1},
}


class Item(NamedTuple):
    """Two sentences with nearly the same words.

    Attributes:
        source: The two in German.
        target: The two in English.
        is_paraphrase: Whether they mean the same.
    """

    source: tuple[str, str]
    target: tuple[str, str]
    is_paraphrase: bool


def read(folder: Path, items: int) -> list[Item]:
    """Read the first items that are in both languages."""
    sides = []
    for language in ("de", "en"):
        with gzip.open(folder / f"dev-{language}.tsv.gz", "rt", encoding="utf-8") as lines:
            sides.append([line.rstrip("\n").split("\t") for line in lines])
    rows = [(german, english) for german, english in zip(*sides) if english[2] in ("0", "1")]
    return [
        Item((german[0], german[1]), (english[0], english[1]), english[2] == "1") for german, english in rows[:items]
    ]


def quick_items() -> list[Item]:
    from st_xling.data.phrasebook import parallel_phrases

    phrases = list(zip(*parallel_phrases("de", size=60).select_columns(["source", "target"])[:].values()))
    return [
        Item((first[0], second[0]), (first[1], second[1]), bool(number % 2))
        for number, (first, second) in enumerate(zip(phrases[::2], phrases[1::2]))
    ]


class Encoded:
    """Vectors that are computed once, in place of an encoder."""

    def __init__(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        from sentence_transformers.util import cos_sim, pairwise_cos_sim

        self.vectors = dict(zip(texts, vectors))
        self.device = torch.device("cpu")
        self.similarity = cos_sim
        self.similarity_pairwise = pairwise_cos_sim

    def encode(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        return np.stack([self.vectors[text] for text in texts])

    encode_query = encode_document = encode


def share_taken(items: Sequence[Item], negatives: Sequence[tuple[str, ...]], is_paraphrase: bool) -> float:
    """Share of the pairs of such items that have the item's other sentence among their negatives."""
    from st_xling.data.text_cells import leak_key

    taken = []
    for number, item in enumerate(items):
        if item.is_paraphrase == is_paraphrase:
            for side in (0, 1):
                keys = {leak_key(text) for text in negatives[2 * number + side]}
                taken.append(leak_key(item.target[1 - side]) in keys)
    return float(np.mean(taken))


def measure(
    run: Run, *, items: int = 900, model: str | None = None, prompt: str = "query: ", vectors: str = ""
) -> Iterator[Ratio]:
    from datasets import Dataset

    from st_xling.models import load_encoder, tiny_encoder
    from st_xling.training import add_hard_negatives

    if run.quick:
        rows = quick_items()
        encoder = tiny_encoder([*chain.from_iterable(item.source + item.target for item in rows)])
    else:
        rows = read(data_folder() / "pawsx", items)
        encoder = load_encoder(encoder_folder(model))
    sources = [*chain.from_iterable(item.source for item in rows)]
    targets = [*chain.from_iterable(item.target for item in rows)]
    texts = list(dict.fromkeys([*sources, *targets]))
    saved = Path(vectors) if vectors else None
    encoded = Encoded(texts, embed(encoder, texts, prompt, saved))
    pairs = Dataset.from_dict({"source": sources, "target": targets})
    log(f"{len(rows)} items, {sum(item.is_paraphrase for item in rows)} of them paraphrases")

    print("| negatives | way | paraphrases taken | others taken | mean cosine |\n| --- | --- | --- | --- | --- |")
    shares = {}
    for number in (1, 5):
        for way, options in WAYS.items():
            mined: Any = add_hard_negatives(pairs, encoded, num_negatives=number, **options)  # type: ignore[arg-type]
            negatives = list(zip(*(mined[f"negative_{rank}"] for rank in range(1, number + 1))))
            shares[number, way] = share_taken(rows, negatives, True)
            others = share_taken(rows, negatives, False)
            source_vectors = torch.from_numpy(encoded.encode(sources)).repeat_interleave(number, dim=0)
            negative_vectors = torch.from_numpy(encoded.encode([*chain.from_iterable(negatives)]))
            cosines = encoded.similarity_pairwise(source_vectors, negative_vectors)
            print(f"| {number} | {way} | {shares[number, way]:.1%} | {others:.1%} | {cosines.mean():.3f} |")
    print()
    for number in (1, 5):
        random = shares[number, "ranks 2 to 32 at random"]
        what = f"{number} negatives below a margin of 5 %: paraphrases taken"
        if random:
            ratio = shares[number, "margin 0.05"] / random
            yield Ratio(what, "those of ranks 2 to 32", ratio, at_most=0.5)
        else:
            yield Ratio(what, "those of ranks 2 to 32", [], at_most=0.5, note="none is taken")


if __name__ == "__main__":
    main(measure, quick={"prompt": ""})
