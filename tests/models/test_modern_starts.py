"""Encoders that people start from today, as token-level objectives take them apart."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling.losses import (
    CrossUnmaskingLoss,
    RepresentationTranslationLoss,
    TranslationLanguageModelingLoss,
    TranslationRankingLoss,
    WordAlignmentLoss,
)
from st_xling.models import backbone, load_encoder
from st_xling.models.encoding import name_unused_prompts
from st_xling.models.heads import RepresentationTranslationHead
from tests.modern_models import QWEN_PROMPTS, saved_start

LONG_TEXT = "Das Buch ist alt, und wir können die Orangen morgen alle essen, sagt der Hund unter dem roten Tisch."


def loaded(name: str, **options: Any) -> SentenceTransformer:
    return SentenceTransformer(str(saved_start(name, **options)), device="cpu").eval()


def columns(model: Any) -> list[dict[str, Any]]:
    return [model.preprocess(texts) for texts in (["Das Buch ist alt.", LONG_TEXT], ["The book is old.", "我买了书。"])]


@pytest.mark.parametrize("name", ["embedding-gemma", "modernbert", "xlm-r-large"])
def test_the_last_layers_read_as_they_do_in_the_encoder(name: str) -> None:
    """Of EmbeddingGemma, the layer that looks far was given the mask and the rotary positions of one that looks near,
    in all that representation translation trains: the loss fell all the same."""
    model = loaded(name)
    parts = backbone(model)
    features = model.preprocess([LONG_TEXT, "我买了书。"])
    mask = features["attention_mask"].bool()
    with torch.no_grad():
        inputs = {"input_ids": features["input_ids"], "attention_mask": features["attention_mask"]}
        output = parts.model(**inputs, output_hidden_states=True)
        for count in (1, 2, len(parts.layers)):
            below = output.hidden_states[len(parts.layers) - count]
            states = parts.run(list(parts.layers[-count:]), below, mask, parts.position_ids(mask))
            torch.testing.assert_close(states[mask], output.last_hidden_state[mask])
    kinds = getattr(parts.model.config, "layer_types", None)
    assert kinds is None or len(kinds) == len(parts.layers)


def test_the_mask_is_read_as_the_encoder_reads_it() -> None:
    """Gemma multiplies its rows by the root of its width: the head's mask was one sixth, or one 28th, of a token."""
    model = loaded("embedding-gemma")
    parts = backbone(model)
    number = parts.mask_id("a test")
    head = RepresentationTranslationHead(parts, layers=1, mask_id=number)
    torch.testing.assert_close(head.mask_embedding.detach(), parts.word_embeddings(torch.tensor(number)).detach())


@pytest.mark.parametrize(
    "loss", [RepresentationTranslationLoss, TranslationLanguageModelingLoss, WordAlignmentLoss, CrossUnmaskingLoss]
)
@pytest.mark.parametrize("name", ["embedding-gemma", "modernbert"])
def test_token_level_objectives_reach_the_encoder(name: str, loss: Any) -> None:
    """AMBER on EmbeddingGemma ended after a warm-up in a TypeError, since its layers take the mask by name alone."""
    model = loaded(name)
    loss(model)(columns(model)).backward()
    layers = backbone(model).layers
    gradients = [weight.grad for layer in layers for weight in layer.parameters() if weight.grad is not None]
    assert gradients and all(torch.isfinite(gradient).all() for gradient in gradients)
    assert sum(float(gradient.abs().sum()) for gradient in gradients) > 0


def test_a_decoder_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="Qwen3Model is a decoder.*sentence-level losses only"):
        TranslationLanguageModelingLoss(loaded("qwen3"))


def test_t5_says_what_fits() -> None:
    """T5 has the distances between tokens in its first layer alone, so that copies of the last ones knew no order."""
    model = loaded("t5")
    with pytest.raises(ValueError, match=r"TLM needs a mask token.*tokenizer\.mask_token = '<extra_id_0>'"):
        TranslationLanguageModelingLoss(model)
    model.tokenizer.mask_token = "<extra_id_0>"
    for loss in (TranslationLanguageModelingLoss, CrossUnmaskingLoss, TranslationRankingLoss):
        assert torch.isfinite(loss(model)(columns(model)))
    with pytest.raises(ValueError, match="last layers of T5EncoderModel know no order.*layers=3"):
        RepresentationTranslationLoss(model)
    assert torch.isfinite(RepresentationTranslationLoss(model, layers=3)(columns(model)))
    with pytest.raises(ValueError, match="T5EncoderModel takes those of its first one"):
        WordAlignmentLoss(model)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_last_token_is_that_of_the_text(side: str) -> None:
    """The end of a text is one token behind it, also of texts that are cut, and padding on either side is not read."""
    model = loaded("qwen3", padding_side=side)
    assert model.tokenizer.padding_side == side
    model.max_seq_length = 12
    features = model.preprocess([LONG_TEXT, "我买了书。"], prompt=model.prompts["query"][:8])
    last = [ids[mask.bool()][-1] for ids, mask in zip(features["input_ids"], features["attention_mask"])]
    assert [model.tokenizer.convert_ids_to_tokens(int(number)) for number in last] == ["<|endoftext|>"] * 2
    together = model.encode([LONG_TEXT, "Ja."], convert_to_tensor=True)
    apart = torch.cat([model.encode([text], convert_to_tensor=True) for text in (LONG_TEXT, "Ja.")])
    torch.testing.assert_close(together, apart, rtol=1e-4, atol=1e-5)


def test_a_decoder_that_looks_both_ways_is_an_encoder() -> None:
    """transformers reads ``is_causal: false`` of a configuration; such models were refused as decoders."""
    model = loaded("qwen3")
    model[0].auto_model.config.is_causal = False
    model.tokenizer.mask_token = "<|im_start|>"
    loss = TranslationLanguageModelingLoss(model)
    assert torch.isfinite(loss(columns(model)))


def test_the_first_token_of_a_decoder_is_no_embedding() -> None:
    """It sees no other token: all texts that begin alike had one embedding, and the loss never moved."""
    with pytest.raises(ValueError, match="'cls' gives all texts one embedding: Qwen3Model is a decoder"):
        load_encoder(str(saved_start("qwen3")), pooling="cls", device="cpu")
    assert load_encoder(str(saved_start("qwen3")), pooling="mean", device="cpu")[1].pooling_mode == "mean"


def test_a_prompt_of_two_lines_is_named_as_a_shell_reads_it(caplog: pytest.LogCaptureFixture) -> None:
    r"""The advice to use Qwen3's prompt had ``\n`` in plain quotes: pasted, the model read a backslash and an n."""
    model = load_encoder(str(saved_start("qwen3", max_length=64)), device="cpu")  # warned of once by its name
    name_unused_prompts(model)
    [advice] = re.findall(r"to use one: --prompt (.*); to use none", caplog.text)
    printed = subprocess.run(["bash", "-c", f"printf %s {advice}"], capture_output=True, text=True, check=True).stdout
    assert printed == QWEN_PROMPTS["query"]
