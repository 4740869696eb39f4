"""A sweep over all layers, with its cache and its evaluation, by sentence-transformers' ``encode``, which gives one.

And how long the training on 2,000 pairs takes. Random weights and words: what is learnt is noise.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import numpy as np
import torch

from tests.benchmarks.measure import Ratio, Run, main, quotients


def texts_of(rows: int, seed: int) -> list[str]:
    """Sentences of 5 to 25 random words."""
    random = np.random.default_rng(seed)
    words = np.array([f"{a}{b}" for a in "bdfgklmnprst" for b in ("a", "en", "ir", "ou", "ust")])
    return [" ".join(words[random.integers(0, len(words), random.integers(5, 26))]) for _ in range(rows)]


def measure(
    run: Run, *, pairs: int = 2000, dev: int = 250, layers: int = 12, hidden: int = 192, train_width: int = 768
) -> Iterator[Ratio]:
    from st_xling.evaluation import PrecisionEvaluator
    from st_xling.models import tiny_encoder
    from st_xling.training.adapter import fit_adapter, load_adapter_recipe, sweep_rows
    from st_xling.training.sentence_vectors import cached_vectors, layer_vectors

    source, target = texts_of(pairs, 0), texts_of(pairs, 1)
    held_out = texts_of(dev, 2), texts_of(dev, 3)
    texts = [*source, *target, *held_out[0], *held_out[1]]
    model = tiny_encoder(texts[:500], hidden_size=hidden, layers=layers, vocabulary=500).eval()
    model.encode(texts[:64])  # warms up
    evaluator = PrecisionEvaluator({"a-b": held_out}, name="dev")
    columns = list(dict.fromkeys(column for row in sweep_rows(layers).values() for column in row))

    def sweep() -> None:
        with tempfile.TemporaryDirectory() as folder:
            names = [column.name for column in columns]
            vectors, _ = cached_vectors(
                texts, names, lambda part: layer_vectors(model, part, columns), fingerprint="", folder=folder
            )
            for name in names:
                evaluator.measure_vectors({"a-b": tuple(vectors[name].of(side).numpy() for side in held_out)})
                vectors[name].of(source), vectors[name].of(target)

    seconds = run.in_turn({"sweep": sweep, "encode": lambda: model.encode(texts)}, warm_up=False)
    yield Ratio("sweep: time", "encode", quotients(seconds["sweep"], seconds["encode"]), at_most=1.2)

    torch.manual_seed(0)
    vectors = torch.randn(2, pairs, train_width)
    took = run.seconds(lambda: fit_adapter(vectors[0], vectors[1], load_adapter_recipe("sf")))
    yield Ratio("training: time", "a minute", took / 60, at_most=1.0, note=f"width {train_width}")


if __name__ == "__main__":
    main(measure, rounds=3, quick={"pairs": 60, "dev": 20, "layers": 3, "hidden": 32, "train_width": 32})
