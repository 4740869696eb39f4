"""Objectives on every family of encoders that people use, each built from a small configuration."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from transformers import AutoModelForMaskedLM, Qwen3Config, Qwen3Model

from st_xling import losses
from st_xling.data.phrasebook import parallel_phrases
from st_xling.losses.token_inputs import join_pairs
from st_xling.losses.word_alignment_loss import top_attention
from st_xling.models import backbone, load_encoder
from st_xling.training import load_recipe, train
from tests import reference
from tests.losses.test_cached import gradients

SHAPE: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SHAPE |= {"max_position_embeddings": 80}
DEBERTA = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 4, "share_att_key": True}
DEBERTA |= {"norm_rel_ebd": "layer_norm", "position_biased_input": False}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", {}),
    "xlm-roberta": ("XLMRoberta", {}),
    "xlm-roberta-xl": ("XLMRobertaXL", {}),
    "distilbert": ("DistilBert", {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}),
    "mpnet": ("MPNet", {}),
    "electra": ("Electra", {"embedding_size": 16}),
    "deberta-v2": ("DebertaV2", {"legacy": False, "conv_kernel_size": 3, "conv_act": "gelu"}),
    "mdeberta-v3": ("DebertaV2", DEBERTA),
    "mmbert": ("ModernBert", {"local_attention": 8, "global_attn_every_n_layers": 2}),
    "eurobert": ("EuroBert", {"tie_word_embeddings": False, "num_key_value_heads": 1}),
}
OFF = {name: 0.0 for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")}


@pytest.fixture(scope="module")
def families(make_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Any]]:
    """Name → the encoder as it is loaded from a folder, in double, and the masked language model that was saved."""
    built: dict[str, tuple[Any, Any]] = {}

    def build(name: str) -> tuple[Any, Any]:
        if name not in built:
            family, changes = FAMILIES[name]
            tokenizer = make_model().tokenizer
            if name == "eurobert":
                tokenizer.bos_token = "[CLS]"
                tokenizer.eos_token = "[SEP]"
                tokenizer.cls_token = tokenizer.sep_token = None
            options = {**SHAPE, **OFF, "vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, **changes}
            config = getattr(transformers, f"{family}Config")(**options)
            masked_lm = AutoModelForMaskedLM.from_config(config).eval()
            torch.manual_seed(1)
            for parameter in masked_lm.parameters():
                torch.nn.init.normal_(parameter, std=0.3)
            folder = tmp_path_factory.mktemp(name)
            masked_lm.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            masked_lm = AutoModelForMaskedLM.from_pretrained(folder).eval()
            built[name] = load_encoder(str(folder), device="cpu", max_length=40).eval(), masked_lm
        return built[name]

    return build


@pytest.mark.parametrize("name", FAMILIES)
def test_mlm_starts_at_the_loss_of_the_checkpoints_own_head(
    families: Any, features: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, masked_lm = families(name)
    monkeypatch.setattr(losses.token_inputs, "mask_tokens", reference.every_third)
    value = losses.TranslationLanguageModelingLoss(model, objective="mlm").eval()(features(model)[:1]).item()
    column = features(model)[0]
    hidden = column["attention_mask"].bool() & (column["input_ids"] % 3 == 0) & (column["input_ids"] > 4)
    ids = column["input_ids"].masked_fill(hidden, model.tokenizer.mask_token_id)
    with torch.no_grad():
        logits = masked_lm(input_ids=ids, attention_mask=column["attention_mask"]).logits
    assert value == pytest.approx(F.cross_entropy(logits[hidden], column["input_ids"][hidden]).item(), rel=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_groups_of_like_length_are_encoded_as_in_one_pass(
    families: Any, features: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each family counts positions in its own way where it is given word embeddings in place of token ids."""
    model = copy.deepcopy(families(name)[0]).double()
    loss = losses.TranslationRankingLoss(model)
    expected = gradients(loss, features(model))
    passes: list[int] = []
    model[1].register_forward_hook(lambda *_: passes.append(1))
    monkeypatch.setattr(losses.rows_by_length, "GROUP_COST", 16**2)
    grouped = gradients(loss, features(model))
    assert len(passes) > 1
    assert grouped[0] == pytest.approx(expected[0], rel=1e-9)
    torch.testing.assert_close(grouped[1], expected[1], rtol=1e-6, atol=1e-9)


OBJECTIVES = {
    "rtl": lambda model: losses.RepresentationTranslationLoss(model, layers=1),
    "rtl both": lambda model: losses.RepresentationTranslationLoss(model, direction="both", layers=2),
    "tlm": losses.TranslationLanguageModelingLoss,
    "tlm running": lambda model: losses.TranslationLanguageModelingLoss(model, positions="running", segments=True),
    "wa": losses.WordAlignmentLoss,
}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_pair_counts_as_if_it_was_alone(
    families: Any, features: Any, name: str, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums and counts of a padded batch are those of its pairs, read one at a time without padding."""
    monkeypatch.setattr(losses.token_inputs, "mask_tokens", reference.every_third)
    model = copy.deepcopy(families(name)[0]).double()
    torch.manual_seed(0)
    loss = OBJECTIVES[objective](model).double().eval()

    def parts(columns: Any) -> torch.Tensor:
        encoded = [{**column, **model(dict(column))} for column in columns]
        return torch.stack([torch.stack([total, count.double()]) for total, count in loss.compute_parts(encoded, None)])

    if objective == "rtl both":  # a row rebuilds by its place
        pairs = [features(model, slice(row, row + 2)) for row in (0, 2, 4)]
    else:
        pairs = [features(model, slice(row, row + 1)) for row in range(6)]
    expected = torch.stack([parts(pair) for pair in pairs]).sum(dim=0)
    torch.testing.assert_close(parts(features(model, slice(0, 6))), expected, rtol=1e-8, atol=1e-10)
    value = loss.train()(features(model, slice(0, 6)))
    value.backward()
    layer = backbone(model).layers[0]
    assert torch.isfinite(value) and sum(part.grad.abs().sum() for part in layer.parameters()) > 0


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_is_what_transformers_shows(families: Any, features: Any, name: str) -> None:
    """Of pairs that are read whole: the mask alone makes the difference."""
    model = copy.deepcopy(families(name)[0]).train()
    parts = backbone(model)
    columns = [{**column} for column in features(model, slice(0, 1))]
    pairs = join_pairs(parts, *columns, positions="running", segments=False)
    size = pairs.input_ids.shape[1]
    before = parts.model.config._attn_implementation
    weights = top_attention(parts, pairs, torch.ones(2, size, size, dtype=torch.bool))
    assert model.training and parts.layers[-1].training and parts.model.config._attn_implementation == before
    model.eval()
    parts.model.set_attn_implementation("eager")
    named = {"input_ids": pairs.input_ids, "attention_mask": pairs.attention_mask.long()}
    expected = parts.model(**named, output_attentions=True).attentions[-1]
    torch.testing.assert_close(weights[:1], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["bert", "mdeberta-v3", "mmbert"])
def test_gradient_checkpointing_reads_the_same_masks(families: Any, features: Any, name: str) -> None:
    model = copy.deepcopy(families(name)[0]).double().train()
    loss = losses.WordAlignmentLoss(model)
    plain = gradients(loss, features(model))
    model[0].model.gradient_checkpointing_enable({"use_reentrant": False})
    torch.testing.assert_close(gradients(loss, features(model)), plain)
    assert backbone(model).layers[0].gradient_checkpointing


@pytest.fixture(scope="module")
def others(make_model: Any) -> dict[str, SentenceTransformer]:
    """What is no encoder of tokens in both directions: a bag of static embeddings, and a decoder."""
    tokens = make_model()[0].tokenizer
    tokens.padding_side = "left"
    torch.manual_seed(0)
    config = {**SHAPE, "vocab_size": len(tokens), "head_dim": 8, "num_key_value_heads": 1, "pad_token_id": 0}
    transformer: Any = make_model()[0]
    transformer.model = Qwen3Model(Qwen3Config(**config))
    transformer.model_forward_params = {"input_ids", "attention_mask", "return_dict"}
    decoder = SentenceTransformer(modules=[transformer, Pooling(16, "lasttoken")], device="cpu")
    bag = SentenceTransformer(modules=[StaticEmbedding(make_model().tokenizer, embedding_dim=16)], device="cpu")
    return {"static": bag, "decoder": decoder}


SENTENCES = (
    losses.TranslationRankingLoss,
    losses.SemanticContrastiveLoss,
    losses.LanguageContrastiveLoss,
    losses.InBatchRankingLoss,
    losses.SiameseContrastiveLoss,
)


@pytest.mark.parametrize("kind", ["static", "decoder"])
def test_sentence_level_objectives_train_whatever_embeds(others: Any, features: Any, kind: str) -> None:
    model = others[kind]
    for cls in SENTENCES:
        loss = cls(model)
        plain, cached = (
            gradients(part, features(model)) for part in (loss, losses.CachedLoss(loss, mini_batch_size=2))
        )
        torch.testing.assert_close(cached, plain)
        assert sum(gradient.abs().sum() for gradient in plain[1].values()) > 0


@pytest.mark.parametrize("objective", ["rtl", "tlm", "wa"])
def test_token_level_objectives_say_what_they_need(others: Any, make_model: Any, objective: str) -> None:
    for kind, message in (("static", "transformer encoder.*StaticEmbedding"), ("decoder", "Qwen3Model is a decoder")):
        with pytest.raises(ValueError, match=message):
            OBJECTIVES[objective](others[kind])
    if objective == "wa":
        model = make_model()
        model[0].model.config._attn_implementation = "flash_attention_2"
        with pytest.raises(ValueError, match="'flash_attention_2' does not take.*'attn_implementation': 'sdpa'"):
            losses.WordAlignmentLoss(model)


RECIPES = {"static": "tr", "decoder": "semacl-langcl", "mmbert": "dap", "mdeberta-v3": "amber", "eurobert": "tr-tlm"}


@pytest.mark.parametrize(("name", "recipe"), RECIPES.items())
def test_recipes_train_them(families: Any, others: Any, name: str, recipe: str, tmp_path: Path) -> None:
    model = others[name] if name in others else families(name)[0]
    model.save_pretrained(str(tmp_path / "start"))
    data = {"de-en": parallel_phrases("de", "en", size=24)}
    options = {"max_steps": 2, "per_device_train_batch_size": 8, "mini_batch_size": 4}
    changes = {"model.pooling": None, "model.max_length": 32, **{f"arguments.{key}": n for key, n in options.items()}}
    train(load_recipe(recipe, overrides=changes), data, tmp_path / "run", model=str(tmp_path / "start"))
    trained = SentenceTransformer(str(tmp_path / "run"), device="cpu")
    assert abs(trained.encode(["Ja."]) - model.float().eval().encode(["Ja."])).max() > 0
