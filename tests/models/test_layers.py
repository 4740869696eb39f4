"""An encoder cut to a layer: the states of that layer, the weights of the whole, faults named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import AutoModel, DistilBertConfig, XLMConfig

from st_xling.models.layers import check_layer, cut_to_layer, layer_count, layer_states
from st_xling.models.load import Pooling as PoolingName

TEXTS = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂"]


@pytest.fixture(scope="module")
def model(make_model: Callable[..., Any]) -> Any:
    return make_model(layers=3).eval()


@pytest.mark.parametrize("layer", [1, 2, 3])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_cut_encoder_gives_the_pooled_states_of_its_layer(model: Any, layer: int, pooling: PoolingName) -> None:
    cut = cut_to_layer(model, layer, pooling=pooling)
    with torch.inference_mode():
        features = model.preprocess(TEXTS)
        states = layer_states(model, dict(features))
        mask = features["attention_mask"][..., None].float()
        mean = (states[layer] * mask).sum(dim=1) / mask.sum(dim=1)
    expected = mean if pooling == "mean" else states[layer][:, 0]
    torch.testing.assert_close(torch.from_numpy(cut.encode(TEXTS)), expected, rtol=0, atol=1e-6)
    assert len(states) == 4 and layer_count(cut) == layer


def test_the_whole_stays_as_it_is_and_lends_its_weights(model: Any) -> None:
    before, config = model.encode(TEXTS), model[0].auto_model.config
    cut = cut_to_layer(model, 1)
    assert (model.encode(TEXTS) == before).all()
    assert (config.num_hidden_layers, layer_count(model)) == (3, 3)
    own = {tensor.data_ptr() for tensor in model.parameters()}
    assert {tensor.data_ptr() for tensor in cut.parameters()} < own
    assert not config.output_hidden_states


@pytest.mark.parametrize("layer", [0, -1, 4])
def test_a_layer_that_is_not_there(model: Any, layer: int) -> None:
    with pytest.raises(ValueError, match=rf"layer must be from 1 to 3: got {layer}; BertModel has 3 layers"):
        cut_to_layer(model, layer)
    assert check_layer(model, 3) == 3


@pytest.mark.parametrize(
    "config",
    [
        DistilBertConfig(vocab_size=300, dim=16, n_layers=3, n_heads=2, hidden_dim=32),
        XLMConfig(vocab_size=300, emb_dim=16, n_layers=3, n_heads=2, pad_index=0),
    ],
    ids=["distilbert", "xlm"],
)
def test_other_architectures(make_model: Callable[..., Any], config: Any) -> None:
    """XLM keeps its layers in four lists and counts them by itself; DistilBERT names them otherwise."""
    tokens = make_model()
    transformer: Transformer = tokens[0]
    torch.manual_seed(0)
    transformer.model = AutoModel.from_config(config)
    transformer.model_forward_params = {"input_ids", "attention_mask", "output_hidden_states", "return_dict"}
    model = SentenceTransformer(modules=[transformer, Pooling(16, "mean")], device="cpu").eval()
    cut = cut_to_layer(model, 2)
    with torch.inference_mode():
        features = model.preprocess(TEXTS)
        expected = layer_states(model, dict(features))[2]
        torch.testing.assert_close(cut[0](dict(features))["token_embeddings"], expected)


def test_a_final_normalisation_is_not_cut_through(make_model: Callable[..., Any]) -> None:
    """What follows the last layer would follow the layer that is cut to: the vectors would be other ones."""
    model = make_model(layers=2).eval()

    class Normalised(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner, self.config = inner, inner.config

        def forward(self, **options: Any) -> Any:
            output = self.inner(**options)
            output.last_hidden_state = 3 * output.last_hidden_state + 1
            return output

    model[0].model = Normalised(model[0].model)
    with pytest.raises(ValueError, match="Normalised cannot be cut to layer 1: .* final normalisation"):
        cut_to_layer(model, 1)
