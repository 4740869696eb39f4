"""Encoding to a store, by ``SentenceTransformer.encode``: real sentences of five languages and all lengths.

The encoder is that of ``ST_XLING_E5`` or ``--model``, the text that of ``ST_XLING_DATA``. On a CPU; each block of
sentences goes through all ways, in an order that turns, before the next does.
"""

import random
import tempfile
from collections.abc import Callable, Iterator
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

    each = sentences // 2 // len(LANGUAGES)
    pairs = [pair for language in LANGUAGES for pair in random.Random(0).sample(parallel(run, language), each)]
    random.Random(1).shuffle(pairs)
    texts = [text for pair in pairs for text in pair]
    with tempfile.TemporaryDirectory() as folder:
        name = Path(folder, "encoder")
        if run.quick:
            tiny_encoder(texts, vocabulary=300, hidden_size=32, layers=1).save_pretrained(str(name))
        source = str(name) if run.quick else encoder_folder(model)
        plain, half = (load_encoder(source, device="cpu", dtype=dtype) for dtype in ("float32", "bfloat16"))

        def to_store(encoder: Any) -> Callable[[list[str]], np.ndarray]:
            def embed(some: list[str]) -> np.ndarray:
                text = Path(folder, "text")
                text.write_text("\n".join(some) + "\n", encoding="utf-8")
                return encode(encoder, text, Path(folder, "store"), overwrite=True)[:].copy()

            return embed

        def by_rows(some: list[str]) -> np.ndarray:
            return plain.encode(some, batch_size=batch_size, normalize_embeddings=True)

        ways = {"ST": by_rows, "store, float32": to_store(plain), "store, bfloat16": to_store(half)}
        seconds, peaks = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0.0)
        parts: dict[str, list[np.ndarray]] = {name: [] for name in ways}
        for embed in ways.values():
            embed(texts[:64])
        for number, start in enumerate(range(0, len(texts), block)):
            names = list(ways)
            for name in names[number % 3 :] + names[: number % 3]:
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # begins a new peak
                some = texts[start : start + block]
                seconds[name] += run.seconds(lambda: parts[name].append(ways[name](some)))  # noqa: B023
                peaks[name] = max(peaks[name], peak())
    expected = np.concatenate(parts["ST"])
    for name in list(ways)[1:]:
        found = np.concatenate(parts[name])
        accuracy = np.mean(retrieval_accuracy(found[::2], found[1::2]))
        note = f"{len(texts) / seconds[name]:.1f} sentences/s, worst cosine {(expected * found).sum(axis=1).min():.6f}"
        note += f", accuracy {accuracy:.2%}, peak {peaks[name]:,.0f} by {peaks['ST']:,.0f} MiB"
        yield Ratio(f"{name}: speed", "SentenceTransformer.encode", seconds["ST"] / seconds[name], note=note)


if __name__ == "__main__":
    main(measure, quick={"sentences": 160, "block": 80})
