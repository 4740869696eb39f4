"""Encoding to a store, by ``SentenceTransformer.encode``: real sentences of five languages and all lengths.

The encoder is that of ``ST_XLING_E5`` or ``--model``, the text that of ``ST_XLING_DATA``. On a CPU; each block of
sentences goes through all ways, in an order that turns, before the next does.
"""

import random
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.measure import Ratio, Run, encoder_folder, main, parallel, peak

LANGUAGES = ("de", "fr", "ru", "zh")


def measure(
    run: Run, *, model: str | None = None, sentences: int = 20_000, block: int = 5_000, batch_size: int = 32
) -> Iterator[Ratio]:
    from st_xling.mining import encode
    from st_xling.models import load_encoder, tiny_encoder
    from st_xling.utils.cosines import retrieval_accuracy

    pairs_per_language = sentences // 2 // len(LANGUAGES)
    pairs: list[tuple[str, str]] = []
    for language in LANGUAGES:
        pairs += random.Random(0).sample(parallel(run, language), pairs_per_language)
    random.Random(1).shuffle(pairs)
    texts = [*chain.from_iterable(pairs)]
    with tempfile.TemporaryDirectory() as folder:
        name = Path(folder, "encoder")
        if run.quick:
            tiny_encoder(texts, vocabulary=300, hidden_size=32, layers=1).save_pretrained(str(name))
        source = str(name) if run.quick else encoder_folder(model)
        float32 = load_encoder(source, device="cpu", dtype="float32")
        bfloat16 = load_encoder(source, device="cpu", dtype="bfloat16")

        def to_store(encoder: Any) -> Callable[[list[str]], np.ndarray]:
            def embed(block_texts: list[str]) -> np.ndarray:
                text = Path(folder, "text")
                text.write_text("\n".join(block_texts) + "\n", encoding="utf-8")
                return encode(encoder, text, Path(folder, "store"), overwrite=True)[:].copy()

            return embed

        def by_rows(block_texts: list[str]) -> np.ndarray:
            return float32.encode(block_texts, batch_size=batch_size, normalize_embeddings=True)

        ways = {"ST": by_rows, "store, float32": to_store(float32), "store, bfloat16": to_store(bfloat16)}
        seconds = dict.fromkeys(ways, 0.0)
        peaks = dict.fromkeys(ways, 0.0)
        parts: dict[str, list[np.ndarray]] = {name: [] for name in ways}
        for embed in ways.values():
            embed(texts[:64])
        for number, start in enumerate(range(0, len(texts), block)):
            names = list(ways)
            for name in names[number % 3 :] + names[: number % 3]:
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # begins a new peak
                block_texts = texts[start : start + block]
                seconds[name] += run.seconds(lambda: parts[name].append(ways[name](block_texts)))  # noqa: B023
                peaks[name] = max(peaks[name], peak())
    expected = np.concatenate(parts["ST"])
    for name in list(ways)[1:]:
        vectors = np.concatenate(parts[name])
        accuracy = np.mean(retrieval_accuracy(vectors[::2], vectors[1::2]))
        worst_cosine = (expected * vectors).sum(axis=1).min()
        note = f"{len(texts) / seconds[name]:.1f} sentences/s, worst cosine {worst_cosine:.6f}"
        note += f", accuracy {accuracy:.2%}, peak {peaks[name]:,.0f} by {peaks['ST']:,.0f} MiB"
        yield Ratio(f"{name}: speed", "SentenceTransformer.encode", seconds["ST"] / seconds[name], note=note)


if __name__ == "__main__":
    main(measure, quick={"sentences": 160, "block": 80})
