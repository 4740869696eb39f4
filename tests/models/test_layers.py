"""An encoder cut to a layer: the states of that layer, the weights of the whole, faults named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import AutoModel

from st_xling.models.view import check_layer, cut_to_layer, layer_count, layer_states
from st_xling.utils.options import Pooling as PoolingName

TEXTS = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂"]


@pytest.fixture(scope="module")
def model(make_model: Callable[..., Any]) -> Any:
    return make_model(layers=3).eval()


@pytest.mark.parametrize(("layer", "pooling"), [(1, "mean"), (2, "cls"), (3, "mean")])
def test_a_cut_encoder_gives_the_pooled_states_of_its_layer(model: Any, layer: int, pooling: PoolingName) -> None:
    before, config = model.encode(TEXTS), model[0].auto_model.config
    cut = cut_to_layer(model, layer, pooling=pooling)
    with torch.inference_mode():
        features = model.preprocess(TEXTS)
        states = layer_states(model, dict(features))
        mask = features["attention_mask"][..., None].float()
        mean = (states[layer] * mask).sum(dim=1) / mask.sum(dim=1)
    expected = mean if pooling == "mean" else states[layer][:, 0]
    torch.testing.assert_close(torch.from_numpy(cut.encode(TEXTS)), expected, rtol=0, atol=1e-6)
    assert len(states) == 4 and layer_count(cut) == layer
    # The whole stays as it is, and lends its weights.
    assert (model.encode(TEXTS) == before).all() and layer_count(model) == 3 and not config.output_hidden_states
    assert {part.data_ptr() for part in cut.parameters()} <= {part.data_ptr() for part in model.parameters()}


@pytest.mark.parametrize("layer", [0, 4])
def test_a_layer_that_is_not_there(model: Any, layer: int) -> None:
    with pytest.raises(ValueError, match=rf"layer must be from 1 to 3: got {layer}; BertModel has 3 layers"):
        cut_to_layer(model, layer)
    assert check_layer(model, 3) == 3


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
}


@pytest.mark.parametrize("family", OTHERS)
def test_other_architectures(make_model: Callable[..., Any], tmp_path: Path, family: str) -> None:
    """Also those that normalize behind the last layer, whichever that is. What is saved is a stock model."""
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


def test_what_follows_the_last_layer_is_not_cut_through(make_model: Callable[..., Any]) -> None:
    model = make_model(layers=2).eval()

    class Scaled(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner, self.config = inner, inner.config

        def forward(self, **options: Any) -> Any:
            output = self.inner(**options)
            output.last_hidden_state = 3 * output.last_hidden_state + 1
            return output

    model[0].model = Scaled(model[0].model)
    with pytest.raises(ValueError, match="Scaled cannot be cut to layer 1"):
        cut_to_layer(model, 1)
