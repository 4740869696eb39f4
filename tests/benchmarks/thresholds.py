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
    """Return source, target, and the rows of gold pairs."""
    from st_xling.data import read_bucc
    from st_xling.data.phrasebook import mining_phrases

    if run.quick:
        phrase_split = "test" if split == "test" else "dev"
        phrases = mining_phrases(*name.split("-"), split=phrase_split, size=120, gold=60)
        return phrases.source, phrases.target, phrases.gold
    corpus = read_bucc(data_folder() / "mining", name, split)
    source_rows = {sentence_id: row for row, sentence_id in enumerate(corpus.source_ids)}
    target_rows = {sentence_id: row for row, sentence_id in enumerate(corpus.target_ids)}
    gold = [(source_rows[source], target_rows[target]) for source, target in corpus.gold or []]
    return corpus.source, corpus.target, gold


def embed(model: object, texts: list[str], prompt: str, saved: Path | None) -> np.ndarray:
    """Return the embeddings of texts, from the file ``saved`` if it exists; write it otherwise, if one is named."""
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
        # By split: candidate pairs, gold pairs, embeddings of both sides, and their neighbors.
        mined = {}
        golds = {}
        embeddings = {}
        neighbors = {}
        for split in ("training", "test"):
            source, target, golds[split] = read(run, name, split)
            if encoder is None:
                encoder = tiny_encoder(source + target) if run.quick else load_encoder(encoder_folder(model))
            embeddings[split] = []
            for language, texts in zip(name.split("-"), (source, target)):
                saved = Path(vectors, f"{name}.{split}.{language}.npy") if vectors else None
                embeddings[split].append(embed(encoder, texts, prompt, saved))
            neighbors[split] = find_neighbors(*embeddings[split], k=K)
            mined[split] = best_pairs(*neighbors[split])

        pairs = mined["test"]
        estimate = estimate_threshold(*neighbors["test"], pairs.scores, pairs.source_indices, pairs.target_indices)
        source_rows, target_rows = np.array(golds["training"]).T
        source_vectors, target_vectors = embeddings["training"]
        translations = (source_vectors[source_rows], target_vectors[target_rows])
        best = {}
        for split, candidates in mined.items():
            is_correct = correct_pairs(candidates, golds[split])
            best[split] = best_threshold(candidates.scores, is_correct, len(golds[split])).threshold
        thresholds = {
            "estimated": -np.inf if estimate.threshold is None else estimate.threshold,
            "training split": best["training"],
            "calibrated": calibrate(*embeddings["test"], *translations, k=K).best(),
            "best": best["test"],
        }
        scores = {label: evaluate_pairs(pairs, golds["test"], threshold) for label, threshold in thresholds.items()}
        for label, result in scores.items():
            n_kept = int((pairs.scores >= result.threshold).sum())
            figures = " | ".join(f"{100 * value:.1f}" for value in (result.precision, result.recall, result.f1))
            print(f"| {name} | {label} {result.threshold:.4f} | {figures} | {n_kept} |")
        note = f"precision of {scores['estimated'].precision:.3f} was estimated as {estimate.precision or 0:.3f}"
        for peer in ("training split", "calibrated", "best"):
            ratio = scores["estimated"].f1 / scores[peer].f1
            yield Ratio(f"{name}: F1 of the estimated threshold by {peer}", "F1", ratio, at_least=0.95, note=note)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main(measure, quick={"sets": ("de-en",), "prompt": ""})
