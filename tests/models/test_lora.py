"""Training by adapters: what learns, what is saved and resumed, and what is published."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from st_xling.data.phrasebook import parallel_phrases
from st_xling.losses import RepresentationTranslationLoss
from st_xling.models import load_encoder, lora
from st_xling.training import load_recipe, train

Make = Callable[..., Any]
TINY = {"vocabulary": 400, "hidden_size": 32, "layers": 2}
SENTENCES = ["Der Hund schläft.", "我买了三本旧书。", "The dog is sleeping."]


@pytest.fixture(scope="module")
def phrases() -> dict[str, Any]:
    return {language: parallel_phrases(language, "en", size=60) for language in ("de", "zh")}


def lora_recipe(name: str = "dap", **options: Any) -> Any:
    steps = {"max_steps": 4, "per_device_train_batch_size": 16, "eval_steps": 2, "save_total_limit": 10}
    settings = {"lora.rank": 4, **steps, "learning_rate": 1e-2, **options}
    return load_recipe(name, tiny=True, overrides={f"arguments.{key}": value for key, value in settings.items()})


@pytest.fixture(scope="module")
def merged(phrases: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return train(lora_recipe(), phrases, tmp_path_factory.mktemp("lora") / "run", model="tiny", tiny=TINY)


def adapted(make_model: Make, folder: Path, **options: Any) -> SentenceTransformer:
    """A model whose adapters have learned something."""
    model = make_model()
    lora.add_lora(model, lora.LoraOptions(**{"rank": 4, "dropout": 0.0, **options}), base=folder / "base")
    with torch.no_grad():
        for name, part in model.named_parameters():
            if "lora_B" in name:
                part.normal_(std=0.3)
    return model.eval()


@pytest.mark.parametrize("name", ["dap", "amber"])
def test_recipes_train_adapters_and_heads_alone(name: str, phrases: dict[str, Any], tmp_path: Path) -> None:
    recipe = lora_recipe(name, max_steps=2, per_device_train_batch_size=8, mini_batch_size=4)
    train(recipe, phrases, tmp_path / "run", model="tiny", tiny=TINY)
    before = load_file(tmp_path / "run" / "training" / "base" / "model.safetensors")
    after = load_file(tmp_path / "run" / "model.safetensors")
    assert before.keys() == after.keys()
    moved = {key for key in before if not torch.equal(before[key], after[key])}
    linear = ("query.weight", "key.weight", "value.weight", "dense.weight")
    assert moved and all(key.endswith(linear) and "pooler" not in key for key in moved)


def test_the_merged_model_is_the_last_checkpoint(merged: Any) -> None:
    """The published weights compute what the adapters beside the frozen weights compute; heads learn in full."""
    folders = [merged.folder / "training" / f"checkpoint-{step}" for step in (2, 4)]
    first, saved = (load_file(folder / "loss.safetensors") for folder in folders)
    for ending in ("head.bias", "head.mask_embedding", "head.layers.1.attention.self.query.weight"):
        key = next(key for key in first if key.endswith(ending))
        assert not torch.equal(first[key], saved[key]), ending
    assert not lora.has_adapters(merged.model)
    assert all(part.requires_grad for part in merged.model.parameters())
    last = SentenceTransformer(str(merged.folder / "training" / "checkpoint-4"), device="cpu")
    base = SentenceTransformer(str(merged.folder / "training" / "base"), device="cpu")
    assert lora.has_adapters(last)
    vectors = merged.model.eval().encode(SENTENCES)
    assert vectors == pytest.approx(last.encode(SENTENCES), abs=1e-5)
    assert vectors != pytest.approx(base.encode(SENTENCES), abs=1e-3)


def test_adapters_that_are_kept(phrases: dict[str, Any], merged: Any, tmp_path: Path) -> None:
    out = tmp_path / "kept"
    result = train(lora_recipe(**{"lora.merge": False}), phrases, out, model="tiny", tiny=TINY)
    assert (out / "adapter_model.safetensors").is_file() and not (out / "model.safetensors").exists()
    loaded = SentenceTransformer(str(out), device="cpu")
    assert lora.has_adapters(loaded)
    assert loaded.encode(SENTENCES) == pytest.approx(result.model.eval().encode(SENTENCES), abs=1e-6)
    assert loaded.encode(SENTENCES) == pytest.approx(merged.model.eval().encode(SENTENCES), abs=1e-5)
    again = train(lora_recipe(max_steps=1, learning_rate=1e-9), phrases, tmp_path / "again", model=str(out))
    assert again.model.eval().encode(SENTENCES) == pytest.approx(loaded.encode(SENTENCES), abs=1e-4)
    with pytest.raises(ValueError, match="kept apart from a base that has none"):
        train(lora_recipe(**{"lora.merge": False}), phrases, tmp_path / "no", model=str(out))
    with pytest.raises(ValueError, match="expected a model without adapters"):
        train(lora_recipe(), phrases, tmp_path / "no", model=result.model)
    assert not (tmp_path / "no").exists()


def test_adapters_load_wherever_their_folder_is_moved(
    phrases: dict[str, Any], saved_encoder: Path, tmp_path: Path
) -> None:
    """A run with adapters that were kept named its base by an absolute path: moved, it could no longer be loaded.

    The model to start from is deleted as well. The checkpoints, which a run that met NaN tells to go on from, are
    adapters too.
    """
    start = Path(shutil.copytree(saved_encoder, tmp_path / "start"))
    out = tmp_path / "out"
    expected = train(lora_recipe("tr", **{"lora.merge": False}), phrases, out, model=str(start)).model.eval()
    vectors = expected.encode(SENTENCES)
    shutil.rmtree(start)
    moved = Path(shutil.move(out, tmp_path / "elsewhere" / "moved"))
    for folder in (moved, moved / "training" / "checkpoint-4"):
        loaded = load_encoder(str(folder))
        assert lora.has_adapters(loaded)
        assert loaded.encode(SENTENCES) == pytest.approx(vectors, abs=1e-6)
        base = lora.token_encoder(loaded).peft_config["default"].base_model_name_or_path  # type: ignore[index]
        assert base == str(moved / "training" / "base")
    before = vectors - load_encoder(str(moved / "training" / "base")).encode(SENTENCES)
    assert abs(before).max() > 1e-3  # adapters that have learned something
    again = train(lora_recipe("tr", max_steps=1, learning_rate=1e-9), phrases, tmp_path / "again", model=str(moved))
    assert again.model.eval().encode(SENTENCES) == pytest.approx(vectors, abs=1e-4)
    shutil.rmtree(moved / "training")
    with pytest.raises(ValueError, match=r"its adapters belong to the model in .*out/training/base, which is missing"):
        load_encoder(str(moved))


def test_the_base_of_the_last_stage_is_the_one_of_its_adapters(tmp_path: Path) -> None:
    """A cross-encoder of several stages keeps a base for each; the tenth comes after the ninth."""
    for name in ("training/stage-9/base", "training/stage-10/base", "training/stage-9/checkpoint-3"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "modules.json").write_text("[]")
    assert lora.own_base(tmp_path) is None  # no adapters
    for folder in (tmp_path, tmp_path / "training" / "stage-9" / "checkpoint-3"):
        (folder / "adapter_config.json").write_text("{}")
    assert lora.own_base(tmp_path) == tmp_path / "training" / "stage-10" / "base"
    assert lora.own_base(tmp_path / "training/stage-9/checkpoint-3") == tmp_path / "training" / "stage-9" / "base"


def test_checkpoints_are_read_wherever_the_base_went(make_model: Make, tmp_path: Path) -> None:
    plain = make_model().eval()
    model = adapted(make_model, tmp_path)
    base = lora.without_adapters(model)
    assert (base.encode(SENTENCES) == plain.encode(SENTENCES)).all()
    assert lora.has_adapters(model) and not lora.has_adapters(base)
    base.save_pretrained(str(tmp_path / "base"))
    model.save_pretrained(str(tmp_path / "checkpoint"))
    shutil.move(tmp_path / "base", tmp_path / "elsewhere")
    other = SentenceTransformer(str(tmp_path / "elsewhere"), device="cpu")
    lora.add_lora(other, lora.LoraOptions(rank=4), base=tmp_path / "elsewhere", seed=7)
    lora.load_adapters(other, tmp_path / "checkpoint")
    assert other.eval().encode(SENTENCES) == pytest.approx(model.encode(SENTENCES), abs=1e-6)


def test_the_head_copies_what_adapted_layers_compute(make_model: Make, tmp_path: Path) -> None:
    """Also of a model that came with its adapters: plain, trainable, shared with nobody."""
    model = adapted(make_model, tmp_path)
    head = RepresentationTranslationLoss(model, layers=2).head
    assert not lora.has_adapters(head) and all(part.requires_grad for part in head.parameters())
    theirs = {part.data_ptr() for part in model.parameters()}
    assert not any(part.data_ptr() in theirs for part in head.parameters())
    states = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    for mine, wrapped in zip(head.layers, model[0].auto_model.encoder.layer[-2:]):
        torch.testing.assert_close(mine.eval()(states), wrapped.eval()(states), rtol=0, atol=1e-5)


def test_merging_takes_every_trace_away(make_model: Make, tmp_path: Path) -> None:
    state = torch.get_rng_state()
    plain = make_model().eval()
    fresh = make_model()
    lora.add_lora(fresh, lora.LoraOptions(), base=tmp_path)
    assert torch.equal(state, torch.get_rng_state())
    assert (fresh.eval().encode(SENTENCES) == plain.encode(SENTENCES)).all()  # before they are trained
    model = adapted(make_model, tmp_path)
    expected = model.encode(SENTENCES)
    lora.merge_lora(model)
    assert not lora.has_adapters(model) and model.state_dict().keys() == plain.state_dict().keys()
    assert model.encode(SENTENCES) == pytest.approx(expected, abs=1e-5)
    spoilt = adapted(make_model, tmp_path)
    with torch.no_grad():
        next(part for name, part in spoilt.named_parameters() if "lora_B" in name).fill_(float("nan"))
    with pytest.raises(ValueError, match="NaNs detected"):
        lora.merge_adapters(spoilt)


def test_named_layers_alone_are_adapted(make_model: Make, tmp_path: Path) -> None:
    """A name that no layer has adapted nothing, and the run trained the heads alone; next to a right name it was passed
    over in silence, and adapters of word embeddings never reached the heads that share these."""
    model = make_model()
    for targets in (["qkv"], ["query", "qkv"], ["word_embeddings"]):
        with pytest.raises(ValueError, match="target_modules .*BertModel: it has dense, key, query, value, got"):
            lora.add_lora(model, lora.LoraOptions(target_modules=targets), base=tmp_path)
        assert not lora.has_adapters(model) and all(part.requires_grad for part in model.parameters())
    lora.add_lora(model, lora.LoraOptions(target_modules=["query", "value"]), base=tmp_path)  # nothing was left behind
    layers = {name.split(".lora_")[0].rpartition(".")[2] for name, _ in model.named_parameters() if "lora_" in name}
    assert layers == {"query", "value"}
