"""Merged encoders: weights between those of two, after checking what ST takes from the first unsaid."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize

from st_xling.models import load_encoder, tiny_encoder
from st_xling.models.lora import add_lora
from st_xling.models.merge import merge_encoders
from st_xling.utils.lora_options import LoraOptions

TEXTS = ["Der Hund schläft.", "The dog is sleeping."]


def encoder(seed: int, **options: Any) -> SentenceTransformer:
    return tiny_encoder(TEXTS, **{"vocabulary": 60, "hidden_size": 16, "seed": seed, **options})


def test_a_share_is_that_of_the_second_in_float32() -> None:
    """A training's small changes are lost between two weights of 16 bits; a merged model must have a share of them."""
    first = encoder(0).to(torch.bfloat16)
    second = encoder(0).to(torch.bfloat16)
    weights = dict(second.named_parameters())
    name = next(name for name, weight in weights.items() if weight.ndim == 2)
    weights[name].data *= 1 + 2**-7  # the next number of bfloat16
    merged = merge_encoders(first, second, 0.25)
    one, other = (model.get_parameter(name).float() for model in (first, second))
    torch.testing.assert_close(merged.get_parameter(name), 0.75 * one + 0.25 * other)
    assert not torch.equal(merged.get_parameter(name).bfloat16().float(), merged.get_parameter(name))
    assert first.get_parameter(name).dtype == torch.bfloat16
    half = merge_encoders(first, second, 1.0, dtype="bfloat16")
    assert torch.equal(half.get_parameter(name), second.get_parameter(name))


def test_adapters_are_merged_first(tmp_path: Any) -> None:
    """ST refuses a model of ``train --lora-keep``; it stays as it is."""
    plain = encoder(0)
    plain.save_pretrained(str(tmp_path / "base"))
    adapted = load_encoder(str(tmp_path / "base"))
    add_lora(adapted, LoraOptions(rank=2), base=tmp_path / "base")
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    merged = merge_encoders(plain, adapted, 1.0)
    torch.testing.assert_close(
        merged.encode(TEXTS, convert_to_tensor=True), adapted.encode(TEXTS, convert_to_tensor=True)
    )
    assert any("lora" in name for name, _ in adapted.named_parameters())


def _prompted(model: SentenceTransformer) -> None:
    model.prompts["query"] = "query: "


def _shortened(model: SentenceTransformer) -> None:
    model.max_seq_length = 8


def _truncated(model: SentenceTransformer) -> None:
    model.truncate_dim = 8


def _compared_by_dot(model: SentenceTransformer) -> None:
    model.similarity_fn_name = "dot"


def _normalized(model: SentenceTransformer) -> None:
    model.append(Normalize())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (_prompted, r"the prompt of a query \(.* and 'query: '\)"),
        (_shortened, r"max_seq_length \(\d+ and 8\)"),
        (_truncated, "truncate_dim"),
        (_compared_by_dot, r"similarity \(cosine and dot\)"),
        (_normalized, r"modules \(.* and .* Normalize\)"),
    ],
)
def test_models_that_read_or_compare_otherwise(change: Callable[[SentenceTransformer], None], match: str) -> None:
    """ST merges most of these, and gives the first one's settings to weights of the other."""
    other = encoder(1)
    change(other)
    with pytest.raises(ValueError, match=match):
        merge_encoders(encoder(0), other, 0.5)


def test_vocabularies_and_weights_that_do_not_fit() -> None:
    """Vocabularies of another size, or of as many other tokens; and weights that are no share: ST gives infinities."""
    with pytest.raises(ValueError, match=r"the size of the vocabulary \(\d+ and \d+\)"):
        merge_encoders(encoder(0), encoder(0, vocabulary=30), 0.5)
    with pytest.raises(ValueError, match=r"weights \("):
        merge_encoders(encoder(0), encoder(0, hidden_size=32), 0.5)
    for weight in (-0.5, 1.5, float("nan")):
        with pytest.raises(ValueError, match="share of the second model, from 0 to 1"):
            merge_encoders(encoder(0), encoder(1), weight)
