"""An encoder otherwise than it was saved: what encode gives, what the signature says, what stays its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from st_xling.models.layers import cut_to_layer
from st_xling.models.view import view
from st_xling.training.retriever import separate_encoders

TEXTS = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂"]


@pytest.fixture
def model(make_model: Callable[..., Any]) -> Any:
    made = make_model(layers=3)
    made.prompts |= {"query": "query: "}
    return SentenceTransformer(modules=[*made, Normalize()], prompts=made.prompts, device="cpu").eval()


def same(left: Any, right: Any) -> bool:
    return np.allclose(left, right, rtol=0, atol=1e-6)


def test_nothing_said_and_what_is_its_own_anyway(model: Any) -> None:
    assert view(model) == (model, ())
    assert view(model, layer=3, pooling="mean").parts == ()


def test_layer_and_pooling(model: Any) -> None:
    before = model.encode(TEXTS)
    for options, parts in (
        ({"layer": 2}, ("layer:2",)),
        ({"layer": 2, "pooling": "mean"}, ("layer:2",)),
        ({"layer": 1, "pooling": "cls"}, ("layer:1", "pooling:cls")),
        ({"pooling": "max"}, ("pooling:max",)),
    ):
        made, found = view(model, **options)  # type: ignore[arg-type]
        assert found == parts
        cut = cut_to_layer(model, options.get("layer", 3), pooling=options.get("pooling", "mean"))  # type: ignore[arg-type]
        expected = cut.encode(TEXTS, normalize_embeddings="layer" not in options)
        assert same(made.encode(TEXTS), expected) and made.prompts["query"] == "query: "
    assert same(model.encode(TEXTS), before), "the model itself has not changed"


def test_prompts(model: Any) -> None:
    made, parts = view(model, prompt="a|b %\n")
    assert parts == ("prompt:a%7Cb %25%0A",)
    expected = model.encode([f"a|b %\n{text}" for text in TEXTS])
    assert same(made.encode(TEXTS), expected) and same(made.encode_query(TEXTS), expected)
    assert not same(made.encode(TEXTS), model.encode(TEXTS))
    named, parts = view(model, prompt_name="query", passage_prompt="passage: ")
    assert parts == ("prompt:query: ", "passage_prompt:passage: ")
    assert same(named.encode(TEXTS), model.encode_query(TEXTS))
    assert same(named.encode_document(TEXTS), model.encode([f"passage: {text}" for text in TEXTS]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 4}, "layer must be from 1 to 3: got 4"),
        ({"pooling": "last"}, "pooling must be one of mean, cls, max: got 'last'"),
        ({"prompt": "a", "prompt_name": "query"}, "got 'a' and 'query'"),
        ({"prompt_name": "quary"}, "no prompt 'quary': it has .*'query'"),
    ],
)
def test_faults(options: dict[str, Any], message: str, model: Any) -> None:
    with pytest.raises(ValueError, match=message):
        view(model, **options)


def test_a_model_of_two_encoders(make_model: Callable[..., Any]) -> None:
    both = separate_encoders(make_model())
    with pytest.raises(ValueError, match="models of one encoder"):
        view(both, pooling="cls")
    assert view(both, prompt="q: ").parts == ("prompt:q: ",)
