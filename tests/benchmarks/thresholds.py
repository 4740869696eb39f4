"""Thresholds of mining that need no gold pairs of the text, against the best one: F1 on news, and the pairs kept.

Text: the mining sets (test split) of the folder that ``ST_XLING_DATA`` names, 2.5 % of which have a translation, mined
without filters. The threshold that is estimated from the scores; the best one of the training split; the one that
``--calibrate`` finds with the gold pairs of the training split; and the best of the test split, by which the others
are measured.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.benchmarks.measure import Ratio, Run, data_folder, encoder_folder, main

SETS = ("de-en", "fr-en", "ru-en", "zh-en")
K = 4


def read(run: Run, name: str, split: str) -> tuple[list[str], list[str], list[tuple[int, int]]]:
    """Source, target, and the rows of gold pairs."""
    from st_xling.data import read_bucc
    from st_xling.data.phrasebook import mining_phrases

    if run.quick:
        phrases = mining_phrases(*name.split("-"), split="test" if split == "test" else "dev", size=120, gold=60)
        return phrases.source, phrases.target, phrases.gold
    corpus = read_bucc(data_folder() / "mining", name, split)
    rows = [{key: row for row, key in enumerate(ids)} for ids in (corpus.source_ids, corpus.target_ids)]
    gold = [(rows[0][source], rows[1][target]) for source, target in corpus.gold or []]
    return corpus.source, corpus.target, gold


def embed(model: object, texts: list[str], prompt: str, saved: Path | None) -> np.ndarray:
    """Vectors of texts, kept in a file if there is a place for it."""
    from st_xling.models.encoding import encode

    if saved is not None and saved.is_file():
        return np.asarray(np.load(saved))
    vectors = np.asarray(encode(model, texts, prompt=prompt))
    if saved is not None:
        np.save(saved, vectors)
    return vectors


def measure(
    run: Run, *, sets: tuple[str, ...] = SETS, model: str | None = None, prompt: str = "query: ", vectors: str = ""
) -> Iterator[Ratio]:
    from st_xling.mining import (
        best_pairs,
        best_threshold,
        calibrate,
        correct_pairs,
        estimate_threshold,
        evaluate_pairs,
        find_neighbors,
    )
    from st_xling.models import load_encoder, tiny_encoder

    encoder = None
    print("| pair | threshold | precision | recall | F1 | pairs |\n| --- | --- | --- | --- | --- | --- |")
    for name in sets:
        mined, golds, sides = {}, {}, {}
        for split in ("training", "test"):
            *texts, gold = read(run, name, split)
            if encoder is None:
                encoder = tiny_encoder(texts[0] + texts[1]) if run.quick else load_encoder(encoder_folder(model))
            saved = [Path(vectors, f"{name}.{split}.{side}.npy") if vectors else None for side in name.split("-")]
            sides[split] = [embed(encoder, text, prompt, file) for text, file in zip(texts, saved)]
            both = find_neighbors(*sides[split], k=K)
            mined[split], golds[split] = best_pairs(*both), gold
        pairs = mined["test"]
        estimate = estimate_threshold(*both, pairs.scores, pairs.source_indices, pairs.target_indices)
        known = [vectors_of[rows] for vectors_of, rows in zip(sides["training"], np.array(golds["training"]).T)]
        best = {
            split: best_threshold(pairs.scores, correct_pairs(pairs, golds[split]), len(golds[split])).threshold
            for split, pairs in mined.items()
        }
        thresholds = {
            "estimated": -np.inf if estimate.threshold is None else estimate.threshold,
            "training split": best["training"],
            "calibrated": calibrate(*sides["test"], *known, k=K).best(),
            "best": best["test"],
        }
        scores = {
            label: evaluate_pairs(mined["test"], golds["test"], threshold) for label, threshold in thresholds.items()
        }
        for label, found in scores.items():
            kept = int((mined["test"].scores >= found.threshold).sum())
            figures = " | ".join(f"{100 * value:.1f}" for value in (found.precision, found.recall, found.f1))
            print(f"| {name} | {label} {found.threshold:.4f} | {figures} | {kept} |")
        note = f"precision of {scores['estimated'].precision:.3f} was estimated as {estimate.precision or 0:.3f}"
        for peer in ("training split", "calibrated", "best"):
            ratio = scores["estimated"].f1 / scores[peer].f1
            yield Ratio(f"{name}: F1 of the estimated threshold by {peer}", "F1", ratio, at_least=0.95, note=note)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main(measure, quick={"sets": ("de-en",), "prompt": ""})
