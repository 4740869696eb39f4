"""The adapter's targets, beside sentence-transformers' ``encode``, which gives one layer.

2,000 pairs are trained on in under a minute after one pass; a sweep's pass over all layers, with its cache and its
judging, costs at most 1.2 times ``encode``.

``python -m tests.benchmarks.adapter``; ``--quick`` for a toy shape. Random weights and words: what is learnt is noise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch

from st_xling.evaluation import PrecisionEvaluator
from st_xling.models import tiny_encoder
from st_xling.training.adapter import fit_adapter, load_adapter_recipe, sweep_rows
from st_xling.training.sentence_vectors import VectorCache

AT_MOST, SECONDS_AT_MOST = 1.2, 60


def texts_of(rows: int, seed: int) -> list[str]:
    """Sentences of 5 to 25 random words."""
    random = np.random.default_rng(seed)
    words = np.array([f"{a}{b}" for a in "bdfgklmnprst" for b in ("a", "en", "ir", "ou", "ust")])
    return [" ".join(words[random.integers(0, len(words), random.integers(5, 26))]) for _ in range(rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--dev", type=int, default=250)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=192)
    parser.add_argument("--train-width", type=int, default=768, help="of the vectors that are trained on")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="default: torch's")
    parser.add_argument("--cpu-time", action="store_true", help="processor time: for a busy machine, with --threads 1")
    parser.add_argument("--quick", action="store_true", help="a toy shape: figures without meaning")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.quick:
        arguments.pairs, arguments.dev, arguments.layers, arguments.hidden, arguments.train_width = 60, 20, 3, 32, 32
    clock = time.process_time if arguments.cpu_time else time.perf_counter

    source, target = texts_of(arguments.pairs, 0), texts_of(arguments.pairs, 1)
    dev = texts_of(arguments.dev, 2), texts_of(arguments.dev, 3)
    texts = [*source, *target, *dev[0], *dev[1]]
    model = tiny_encoder(texts[:500], hidden_size=arguments.hidden, layers=arguments.layers, vocabulary=500)
    model.eval().encode(texts[:64])  # warms up
    evaluator = PrecisionEvaluator({"a-b": dev}, name="dev")
    columns = list(dict.fromkeys(column for row in sweep_rows(arguments.layers) for column in row.columns))
    ratios = []
    for number in range(arguments.rounds):
        started = clock()
        model.encode(texts)
        plain = clock() - started
        with tempfile.TemporaryDirectory() as folder:
            started = clock()
            cache = VectorCache(model, Path(folder) / "cache")
            cache.fill(texts, columns)
            encoding = clock() - started
            for column in columns:
                evaluator.judge({"a-b": (cache.read(dev[0], column), cache.read(dev[1], column))})
                cache.read(source, column), cache.read(target, column)
            whole = clock() - started
        ratios.append(whole / plain)
        told = (
            f"encode {plain:.2f} s, all layers into the cache {encoding:.2f} s, with reading and judging {whole:.2f} s"
        )
        print(f"  round {number + 1}: {told}", file=sys.stderr)
    print(f"sweep by one pass: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})   (at most {AT_MOST:.2f})")

    torch.manual_seed(0)
    sides = torch.randn(2, arguments.pairs, arguments.train_width)
    started = clock()
    fit = fit_adapter(sides[0], sides[1], load_adapter_recipe("sf"))
    took = clock() - started
    print(f"training, {fit.steps} steps at width {arguments.train_width}: {took:.1f} s   (at most {SECONDS_AT_MOST})")
    print(f"{arguments}, {torch.get_num_threads()} threads, torch {torch.__version__}")


if __name__ == "__main__":
    main()
