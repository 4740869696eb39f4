"""An encoder otherwise than it was saved: views with their signatures; cut to a layer, the states of that layer."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.model_card import generate_model_card
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import AutoModel

from st_xling.models.load import mark_loaded
from st_xling.models.normalization import Centering, apply_centering, encode_columns
from st_xling.models.view import (
    cut_to_layer,
    layer_count,
    layer_states,
    load_encoder,
    model_options,
    rebuilt,
    with_signed_options,
)
from st_xling.training.retriever import separate_encoders
from st_xling.utils.signature import name_of

TEXTS = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂"]


@pytest.fixture(scope="module")
def saved(make_model: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with a prompt and a module after its pooling."""
    made = make_model(layers=3)
    folder = str(tmp_path_factory.mktemp("models") / "encoder")
    prompts = {**made.prompts, "query": "query: "}
    SentenceTransformer(modules=[*made, Normalize()], prompts=prompts, device="cpu").save_pretrained(folder)
    return folder


def same(actual: Any, expected: Any) -> bool:
    return np.allclose(actual, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{"layer": 2}, {"layer": 2, "pooling": "mean"}, {"layer": 1, "pooling": "cls"}, {"pooling": "max"}]
)
def test_layer_and_pooling(options: dict[str, Any], saved: str) -> None:
    model = load_encoder(saved)
    made = load_encoder(saved, truncate_dim=4, **options)
    assert model_options(load_encoder(saved, layer=3, pooling="mean")) == {}
    assert model_options(made) == {"dim": "4", **{name: str(part) for name, part in options.items() if part != "mean"}}
    cut = cut_to_layer(model, options.get("layer", 3), pooling=options.get("pooling", "mean"))
    expected = cut.encode(TEXTS, normalize_embeddings="layer" not in options)[:, :4]
    assert same(made.encode(TEXTS), expected) and made.prompts["query"] == "query: "


def test_prompts(saved: str) -> None:
    model = load_encoder(saved)
    made = load_encoder(saved, prompt="a|b %\n")
    assert model_options(made) == {"prompt": "a%7Cb %25%0A"}
    expected = model.encode([f"a|b %\n{text}" for text in TEXTS])
    assert same(made.encode(TEXTS), expected) and same(made.encode_query(TEXTS), expected)
    assert not same(made.encode(TEXTS), model.encode(TEXTS))
    named = load_encoder(saved, prompt_name="query", passage_prompt="passage: ")
    assert model_options(named, retrieval=True) == {"prompt": "query: ", "passage_prompt": "passage: "}
    assert same(named.encode(TEXTS), model.encode_query(TEXTS))
    assert same(named.encode_document(TEXTS), model.encode([f"passage: {text}" for text in TEXTS]))
    # A prompt of its own is always named.
    assert model_options(model) == {} and model_options(model, retrieval=True) == {"prompt": "query: "}
    model.default_prompt_name = "query"
    assert model_options(model) == {"prompt": "query: "} == model_options(model, prompt="query: ")
    assert model_options(load_encoder(saved, prompt="")) == {} == model_options(model, prompt="")


def test_how_it_was_loaded(saved_encoder: Path, make_model: Callable[..., Any]) -> None:
    assert name_of(make_model(pooling="cls")) is None and model_options(make_model(pooling="cls")) == {}
    loaded = load_encoder(str(saved_encoder), dtype="bfloat16", layer=1, trust_remote_code=True, device="cpu")
    assert next(loaded.parameters()).dtype == torch.float32  # on a CPU by autocast
    expected = {"layer": "1", "dtype": "bfloat16", "trust_remote_code": "yes"}
    # A copy, and what a worker of another process gets, know it, too.
    for same in (loaded, copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded)), rebuilt(loaded, list(loaded))):
        assert model_options(same) == expected and name_of(same) == str(saved_encoder)
    assert str(saved_encoder) not in generate_model_card(loaded)
    assert model_options(load_encoder(str(saved_encoder), dtype="float32")) == {}
    assert next(mark_loaded(loaded).parameters()).dtype == torch.bfloat16
    assert name_of(loaded) is None and model_options(loaded) == {"dtype": "bfloat16"}


def test_how_others_models_were_loaded_is_not_known(saved_encoder: Path) -> None:
    """They may be marked as they are; to note an option of theirs would be lost, or would be a guess."""
    stock = SentenceTransformer(str(saved_encoder), device="cpu")
    assert name_of(mark_loaded(stock)) is None and model_options(stock) == {}
    with pytest.raises(TypeError, match="load_encoder.*SentenceTransformerModelCardData"):
        with_signed_options(stock, layer="1")


def test_faults(saved_encoder: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"layer": 3}, "layer must be from 1 to 2: got 3"),
        ({"layer": 0}, "layer must be from 1 to 2: got 0"),
        ({"prompt": "a", "prompt_name": "query"}, "got 'a' and 'query'"),
        ({"prompt_name": "quary"}, "no prompt 'quary'"),
        ({"truncate_dim": 17}, "from 1 to 16.* got 17"),
        ({"backend": "openvino"}, "pip install"),
        ({"backend": "tf"}, "tf"),
        ({"dtype": "int8"}, "int8"),
        # Options that would not apply.
        ({"backend": "openvino", "dtype": "float16"}, "--dtype.* got float16 for openvino"),
        ({"backend": "openvino", "layer": 1}, "--layer.* got 1 for openvino"),
        ({"revision": "main"}, "--revision.* got 'main' for the folder"),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=message):
            load_encoder(str(saved_encoder), **options)


def test_what_follows_the_last_layer_is_not_cut_through(make_model: Callable[..., Any]) -> None:
    """An encoder of somebody else's code may change its states after its last layer: cut to another one it would do so
    there, and give vectors of no layer."""

    class Scaled(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner
            self.config = inner.config

        def forward(self, **options: Any) -> Any:
            output = self.inner(**options)
            output.last_hidden_state = 3 * output.last_hidden_state + 1
            return output

    model = make_model(layers=2).eval()
    model[0].model = Scaled(model[0].model)
    with pytest.raises(ValueError, match="Scaled cannot be cut to layer 1.*last layer, 2"):
        cut_to_layer(model, 1)
    assert not model.training


def test_a_model_of_two_encoders(make_model: Callable[..., Any], tmp_path: Path) -> None:
    both = separate_encoders(make_model())
    both.save_pretrained(str(tmp_path / "both"))
    with pytest.raises(ValueError, match="no pooling module"):
        load_encoder(str(tmp_path / "both"), pooling="cls")
    assert model_options(load_encoder(str(tmp_path / "both"), prompt="q: ")) == {"prompt": "q: "}
    centering = Centering(torch.zeros(16), {"zh": torch.full((16,), 0.2)})
    for role, by in (("query", both.encode_query), ("document", both.encode_document)):
        (vectors,) = encode_columns(apply_centering(both, centering), [TEXTS], tasks=["zh"], role=role)  # type: ignore[arg-type]
        expected = centering(torch.from_numpy(by(TEXTS)), "zh").numpy()
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)


WIDTHS = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
DISTANCES = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm"}
OTHERS = {
    "DistilBert": {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32},
    "XLM": {"emb_dim": 16, "n_layers": 3, "n_heads": 2, "pad_index": 0},  # keeps its layers in four lists
    "XLMRobertaXL": WIDTHS,
    "MPNet": WIDTHS,
    "DebertaV2": {**WIDTHS, **DISTANCES, "position_biased_input": False},
    "ModernBert": {**WIDTHS, "global_attn_every_n_layers": 2},
    "EuroBert": {**WIDTHS, "num_key_value_heads": 2},
    "Qwen3": {**WIDTHS, "num_key_value_heads": 2, "head_dim": 8},
    "Albert": {**WIDTHS, "embedding_size": 8},  # runs one layer again and again
}


@pytest.mark.parametrize("family", OTHERS)
def test_other_architectures(make_model: Callable[..., Any], tmp_path: Path, family: str) -> None:
    """Also those that normalize behind the last layer, whichever that is. What is saved is a stock model.

    ``--layer`` of ALBERT, which has no list of its layers, ended in ``IndexError: list index out of range``.
    """
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(vocab_size=300, pad_token_id=0, **OTHERS[family])
    encoder = AutoModel.from_config(config)
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    encoder.save_pretrained(tmp_path)
    make_model().tokenizer.save_pretrained(tmp_path)
    model = SentenceTransformer(modules=[Transformer(str(tmp_path)), Pooling(16, "mean")], device="cpu").eval()
    cut = cut_to_layer(model, 2)
    with torch.inference_mode():
        features = model.preprocess(TEXTS)
        expected = layer_states(model, dict(features))[2]
        torch.testing.assert_close(cut[0](dict(features))["token_embeddings"], expected)
    cut.save_pretrained(str(tmp_path / "cut"))
    again = SentenceTransformer(str(tmp_path / "cut"), device="cpu")
    assert layer_count(again) == 2
    torch.testing.assert_close(again.encode(TEXTS), cut.encode(TEXTS), rtol=0, atol=1e-6)
