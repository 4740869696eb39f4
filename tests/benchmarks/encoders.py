"""Sentences a second, size and memory of the encoders that the guide offers as starts.

E5-small whole and with its first layers (``ST_XLING_E5``, or ``--model``), a tiny transformer and static embeddings
whose vocabularies are of the text (``ST_XLING_DATA``). Weights do not matter here, so the last two are not trained.
All are measured by turns, and memory in a process of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING

from tests.benchmarks.measure import Ratio, Run, apart, encoder_folder, main, parallel, peak, quotients

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

FEW_LAYERS = 4
WHOLE = "E5-small"


def encoder(name: str, folder: str, texts: list[str]) -> SentenceTransformer:
    """Load or make an encoder by its name."""
    from st_xling.models import load_encoder, static_encoder, tiny_encoder

    if name == "tiny":
        return tiny_encoder(texts, vocabulary=16_000)
    if name == "static":
        return static_encoder(texts)
    return load_encoder(folder, prompt="query: ", layer=None if name == WHOLE else FEW_LAYERS)


def memory(name: str, folder: str, texts: list[str]) -> float:
    """The most MiB that a process with an encoder holds while it embeds."""
    from st_xling.models.encoding import encode

    encode(encoder(name, folder, texts), texts[:64])
    return peak()


def measure(run: Run, sentences: int = 500, model: str | None = None) -> Iterator[Ratio]:
    """Yield the speed of each encoder by that of the whole E5-small."""
    from st_xling.models.encoding import encode

    folder = encoder_folder(model)
    texts = [source for source, _ in parallel(run, "de", 40 * sentences)]
    names = [WHOLE, f"E5-small, {FEW_LAYERS} layers", "tiny", "static"]
    encoders = {name: encoder(name, folder, texts) for name in names}
    measured = texts[:sentences]
    seconds = run.in_turn({name: lambda made=made: encode(made, measured) for name, made in encoders.items()})
    print("| encoder | sentences a second | MB of weights | MB of a process |\n| --- | --- | --- | --- |")
    for name, made in encoders.items():
        weights = sum(value.numel() * value.element_size() for value in made.parameters()) / 1e6
        speed = len(measured) / median(seconds[name])
        print(f"| {name} | {speed:,.0f} | {weights:.0f} | {apart(memory, name, folder, texts):.0f} |", flush=True)
    for name in names[1:]:
        yield Ratio(f"seconds of {name}", WHOLE, quotients(seconds[name], seconds[WHOLE]))


if __name__ == "__main__":
    main(measure, rounds=3, quick={"sentences": 20})
