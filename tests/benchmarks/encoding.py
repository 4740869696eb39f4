"""Encoding to a store against ``SentenceTransformer.encode``: real sentences of five languages and all lengths.

``python -m tests.benchmarks.encoding MODEL``, with MODEL the folder of an encoder such as multilingual-e5-small. Texts
are those of the parallel sets in the folder that ``ST_XLING_DATA`` names. On a CPU, one thread, process time; each
block of sentences goes through all ways, in an order that turns, before the next does.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from st_xling.mining import encode
from st_xling.utils.nearest import retrieval_accuracy

LANGUAGES = ("de", "fr", "ru", "zh")


def read_pairs(data: Path, count: int) -> list[tuple[str, str]]:
    """As many of each language with English, whatever their length."""
    pairs = []
    for language in LANGUAGES:
        with gzip.open(data / "parallel" / f"{language}-en.tsv.gz", "rt", encoding="utf-8") as stream:
            rows = [tuple(line.rstrip("\n").split("\t")) for line in stream]
        pairs += random.Random(0).sample([(row[0], row[1]) for row in rows if all(row[:2])], count // len(LANGUAGES))
    random.Random(1).shuffle(pairs)
    return pairs


def peak_mib() -> float:
    """The most memory since the last call, in MiB; 0 where /proc does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return int(peak.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--block", type=int, default=5_000, help="sentences that a way encodes at a time")
    parser.add_argument("--batch-size", type=int, default=32, help="of SentenceTransformer.encode")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    pairs = read_pairs(Path(os.environ.get("ST_XLING_DATA", "../shared/data")), arguments.sentences // 2)
    texts = [text for pair in pairs for text in pair]
    plain = SentenceTransformer(arguments.model, device="cpu")
    half = SentenceTransformer(arguments.model, device="cpu", model_kwargs={"dtype": torch.bfloat16})
    with tempfile.TemporaryDirectory() as folder:

        def to_store(model: SentenceTransformer) -> Callable[[list[str]], np.ndarray]:
            def run(block: list[str]) -> np.ndarray:
                text = Path(folder, "text")
                text.write_text("\n".join(block) + "\n", encoding="utf-8")
                return encode(model, text, Path(folder, "store"), overwrite=True)[:].copy()

            return run

        def by_rows(block: list[str]) -> np.ndarray:
            return plain.encode(block, batch_size=arguments.batch_size, normalize_embeddings=True)

        ways = {"SentenceTransformer": by_rows, "store, float32": to_store(plain), "store, bfloat16": to_store(half)}
        seconds, peaks = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0.0)
        parts: dict[str, list[np.ndarray]] = {name: [] for name in ways}
        for run in ways.values():
            run(texts[:64])
        for number, start in enumerate(range(0, len(texts), arguments.block)):
            names = list(ways)
            for name in names[number % 3 :] + names[: number % 3]:
                peak_mib()
                began = time.process_time()
                parts[name].append(ways[name](texts[start : start + arguments.block]))
                seconds[name] += time.process_time() - began
                peaks[name] = max(peaks[name], peak_mib())
    first = next(iter(ways))
    expected = np.concatenate(parts[first])
    for name in ways:
        found = np.concatenate(parts[name])
        accuracy = np.mean(retrieval_accuracy(found[::2], found[1::2]))
        print(
            f"{name:20} {len(texts) / seconds[name]:7.1f} sentences/s  {seconds[first] / seconds[name]:5.2f}x  "
            f"worst cosine {(expected * found).sum(axis=1).min():.6f}  accuracy {accuracy:.2%}  "
            f"peak {peaks[name]:,.0f} MiB"
        )


if __name__ == "__main__":
    main()
