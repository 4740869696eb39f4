"""Cross-encoders: what their heads compute, what they keep, and what they start from."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import CrossEncoder

from st_xling.models.backbones import token_encoder
from st_xling.models.cross_encoders import cross_encoder, head_modules, replace_head, tiny_cross_encoder
from tests import reference
from tests.conftest import PAIRS

TEXTS = [text for pair in PAIRS for text in pair]
SHORT = [(query[:6], passage) for query, passage in PAIRS]
TINY: dict[str, Any] = {"vocabulary": 300, "layers": 1, "hidden_size": 32, "max_length": 48}


def tiny(head: Any = "cls", **options: Any) -> CrossEncoder:
    return tiny_cross_encoder(TEXTS, head=head, **{**TINY, **options}).to("cpu")


def base_weights(model: CrossEncoder) -> dict[str, torch.Tensor]:
    base: Any = token_encoder(model).base_model
    return {name: tensor.clone() for name, tensor in base.state_dict().items()}


def test_the_cls_head_is_equation_one() -> None:
    """z = sigmoid(W h_CLS + b), of ``[CLS] x [SEP] y [SEP]`` with token types 0 and 1."""
    model = tiny().eval()
    replace_head(model, seed=4)
    features = model.preprocess([PAIRS[0]])
    ids = features["input_ids"][0].tolist()
    types = features["token_type_ids"][0].tolist()
    separator = model.tokenizer.sep_token_id
    first = ids.index(separator)
    assert ids[0] == model.tokenizer.cls_token_id and ids[-1] == separator and ids.count(separator) == 2
    assert types == [0] * (first + 1) + [1] * (len(ids) - first - 1)
    wanted = {key: features[key] for key in ("input_ids", "token_type_ids", "attention_mask")}
    with torch.no_grad():
        state = token_encoder(model)(**wanted).last_hidden_state[0, 0]
    [head] = head_modules(model)
    logit = reference.dot(head.linear.weight[0].tolist(), state.tolist()) + head.linear.bias.item()
    assert float(model.predict([PAIRS[0]])[0]) == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-6)


@pytest.mark.parametrize("head", ["cls", "pooler"])
def test_only_the_passage_is_cut_after_loading_too(head: str, tmp_path: Path) -> None:
    tiny(head).save_pretrained(str(tmp_path))
    model = CrossEncoder(str(tmp_path), device="cpu")
    query = PAIRS[0][0] * 2
    query_ids = model.tokenizer(query, add_special_tokens=False)["input_ids"]
    assert 24 < len(query_ids) <= 44  # more than half of what fits: "longest_first" would cut it
    ids = model.preprocess([(query, PAIRS[0][1] * 20)])["input_ids"][0].tolist()
    assert len(ids) == 48 and ids[1 : 1 + len(query_ids)] == query_ids
    with pytest.raises(Exception, match="Truncation error"):  # the tokenizer's own, where a query fills everything
        model.predict([(query * 3, PAIRS[0][1])])


@pytest.mark.parametrize("head", ["cls", "pooler"])
def test_from_encoders_and_cross_encoders(head: Any, make_model: Any, tmp_path: Path) -> None:
    encoder = make_model()
    encoder.save_pretrained(str(tmp_path / "encoder"))
    encoder[0].save(str(tmp_path / "bare"))
    weights = encoder[0].auto_model.state_dict()
    for start in (str(tmp_path / "encoder"), str(tmp_path / "bare"), encoder):
        model = cross_encoder(start, head=head, seed=2, device="cpu")
        copied = base_weights(model)
        assert copied.keys() == weights.keys() and all(torch.equal(copied[key], weights[key]) for key in copied)
    assert encoder[0].processing_kwargs == {}  # the given model is not touched
    model.save_pretrained(str(tmp_path / "ranker"))
    kept = cross_encoder(str(tmp_path / "ranker"), head="keep", device="cpu")
    assert (kept.predict(SHORT) == model.predict(SHORT)).all()
    other_head: Any = "pooler" if head == "cls" else "cls"
    other = cross_encoder(str(tmp_path / "ranker"), head=other_head, max_length=20)
    assert other.max_seq_length == 20
    copied = base_weights(other)
    assert all(torch.equal(copied[key], weights[key]) for key in copied)


def test_what_has_no_place_for_a_head(make_model: Any, tmp_path: Path) -> None:
    encoder = make_model()
    encoder.save_pretrained(str(tmp_path))
    with pytest.raises(ValueError, match="head must be one of .*cls.*: got 'mean'"):
        cross_encoder(encoder, head="mean")  # type: ignore[arg-type]
    for start in (encoder, str(tmp_path)):
        with pytest.raises(ValueError, match="head 'keep' needs a cross-encoder with a head"):
            cross_encoder(start, head="keep")
    with pytest.raises(ValueError, match="max_length must be at most 26"):
        cross_encoder(encoder, max_length=100)
    for head in ("cls", "keep"):
        with pytest.raises(ValueError, match="no encoder could be loaded from the Hub id or folder 'no/such'"):
            cross_encoder("no/such", head=head)  # type: ignore[arg-type]


def head_weights(model: CrossEncoder) -> list[torch.Tensor]:
    parameters = torch.nn.ModuleList(head_modules(model)).parameters()
    return [parameter.detach().clone() for parameter in parameters]


@pytest.mark.parametrize("head", ["cls", "pooler"])
def test_a_new_head_over_the_same_encoder(head: str) -> None:
    """Each stage of a cascade starts with one."""
    model = tiny(head)
    before = base_weights(model)
    state = torch.get_rng_state()
    heads = head_weights(model)
    assert replace_head(model, seed=5) is model
    again = head_weights(model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in base_weights(model).items())
    weights = [(old, new) for old, new in zip(heads, again) if old.ndim == 2]
    assert weights and not any(torch.equal(old, new) for old, new in weights)
    assert all(not new.any() for new in again if new.ndim == 1)
    assert torch.equal(state, torch.get_rng_state())
