"""Training from the encoders that people start from today: what is learned, saved, and said."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from transformers import TrainerCallback

from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
from st_xling.models import load_encoder
from st_xling.models.backbones import layer_lists
from st_xling.models.view import layer_count
from st_xling.models.vocabulary import slim_encoder
from st_xling.training import (
    CrossLingualTrainer,
    CrossLingualTrainingArguments,
    load_recipe,
    train,
    train_adapter,
)
from st_xling.training.adapter import AdapterRecipe
from tests.modern_models import STARTS, saved_start

TEXTS = ["Das Buch ist alt.", "我买了三本旧书。", "The dog is sleeping under the table."]
SHORT = {
    "arguments.max_steps": 3,
    "arguments.per_device_train_batch_size": 8,
    "arguments.learning_rate": 1e-3,
    "arguments.logging_steps": 1,
    "arguments.warm_up_heads": 0,
}


@pytest.fixture(scope="module")
def data() -> dict[str, Dataset]:
    return {code: parallel_phrases(code[:2], "en", size=32) for code in ("de-en", "zh-en")}


def vectors(model: SentenceTransformer) -> torch.Tensor:
    return model.eval().encode(TEXTS, convert_to_tensor=True).float()


def losses(result: Any) -> list[float]:
    return [entry["loss"] for entry in result.history if "loss" in entry]


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "name", ["qwen3", "embedding-gemma", "static", *map(slow, ("modernbert", "xlm-r-large", "t5"))]
)
def test_saved_as_it_was_trained(name: str, data: Any, tmp_path: Path) -> None:
    """Trained by the recipe, saved, and loaded by sentence-transformers alone: same vectors, prompts and tokens."""
    start = saved_start(name)
    result = train(load_recipe("tr", overrides=SHORT), data, tmp_path / "run", model=str(start))
    saved = SentenceTransformer(str(tmp_path / "run"), device="cpu")
    before = SentenceTransformer(str(start), device="cpu")
    torch.testing.assert_close(vectors(saved), vectors(result.model), rtol=1e-5, atol=1e-6)
    assert float((vectors(saved) - vectors(before)).abs().max()) > 1e-5
    assert [type(module) for module in saved] == [type(module) for module in before]
    assert saved.prompts == before.prompts and saved.max_seq_length == before.max_seq_length
    ids = [model.preprocess([TEXTS[0]], prompt="query: ")["input_ids"].tolist() for model in (saved, before)]
    assert ids[0] == ids[1]
    assert getattr(saved.tokenizer, "padding_side", None) == getattr(before.tokenizer, "padding_side", None)


@pytest.fixture
def bare(tmp_path: Path) -> Any:
    def save(name: str) -> Path:
        model = SentenceTransformer(str(saved_start(name)), device="cpu")
        model[0].auto_model.save_pretrained(tmp_path / name)
        model.tokenizer.save_pretrained(tmp_path / name)
        return tmp_path / name

    return save


@pytest.mark.parametrize(
    ("name", "pooling"),
    [("qwen3", "lasttoken"), slow("t5", "mean"), slow("modernbert", "cls"), slow("xlm-r-large", "cls")],
)
def test_a_bare_transformer_is_pooled_as_it_reads(
    name: str, pooling: str, bare: Any, data: Any, tmp_path: Path
) -> None:
    """The recipes' CLS is the first token, which in a decoder sees no other: ln(batch) was the loss of every step."""
    options = {**SHORT, "arguments.max_steps": 2}
    result = train(load_recipe("tr", overrides=options), data, tmp_path / "run", model=str(bare(name)))
    assert result.model[1].pooling_mode == pooling
    first, second, _ = vectors(result.model)
    assert float((first - second).abs().max()) > 1e-4
    if name == "qwen3":
        cls = load_recipe("tr", overrides={**options, "model.pooling": "cls"})
        with pytest.raises(ValueError, match="Qwen3Model is a decoder, whose first token sees no other"):
            train(cls, data, tmp_path / "other", model=str(bare(name)))


LITTLE = {"per_device_train_batch_size": 16, "max_steps": 4, "learning_rate": 2e-5, "warmup_steps": 0}


def trained_share(kind: Any, data: Any, folder: Path, **options: Any) -> tuple[float, Any]:
    """Train an encoder that is stored in bfloat16; the share of its layers' weights that moved, and the model."""
    model = SentenceTransformer(str(saved_start("modernbert", dtype=torch.bfloat16)), device="cpu")
    before = {name: weight.detach().clone().float() for name, weight in model.named_parameters()}
    arguments = SentenceTransformerTrainingArguments(
        str(folder), report_to="none", disable_tqdm=True, save_strategy="no", use_cpu=True, **{**LITTLE, **options}
    )
    rows = data["de-en"].select_columns(["source", "target"])
    kind(model=model, args=arguments, train_dataset=rows, loss=TranslationRankingLoss(model)).train()
    layers = [(name, weight) for name, weight in model.named_parameters() if "layers" in name]
    moved = sum(int((weight.float() != before[name]).sum()) for name, weight in layers)
    return moved / sum(weight.numel() for _, weight in layers), model


def test_small_updates_of_weights_in_bfloat16_are_not_lost(data: Any, tmp_path: Path, caplog: Any) -> None:
    """transformers loads a checkpoint in the type it was stored in. In bfloat16, most updates of AdamW at 2e-5 are
    rounded away, and training went on without a word."""
    coarse, _ = trained_share(SentenceTransformerTrainer, data, tmp_path / "st")
    share, model = trained_share(CrossLingualTrainer, data, tmp_path / "ours")
    assert coarse < 0.5 and share > 0.99
    lines = [line for line in caplog.messages if "stored in bfloat16" in line]
    assert len(lines) == 1 and "trained, and saved, in float32" in lines[0]
    model.save_pretrained(str(tmp_path / "saved"))
    saved = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert {weight.dtype for weight in saved.parameters()} == {torch.float32}
    torch.testing.assert_close(vectors(saved), vectors(model), rtol=0, atol=0)


def test_heads_over_bfloat16_are_trained_in_float32(data: Any, tmp_path: Path) -> None:
    """The scale of Gemma's embeddings, which is computed in the stored type, is that of a float32 model, too."""
    start = saved_start("embedding-gemma", dtype=torch.bfloat16)
    model = SentenceTransformer(str(start), device="cpu")
    loss = TranslationRankingLoss(model) + RepresentationTranslationLoss(model, direction="both")
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path), report_to="none", disable_tqdm=True, use_cpu=True, **{**LITTLE, "max_steps": 1}
    )
    rows = data["de-en"].select_columns(["source", "target"])
    trainer = CrossLingualTrainer(model=model, args=arguments, train_dataset=rows, loss=loss)
    exact = SentenceTransformer(str(start), device="cpu", model_kwargs={"dtype": torch.float32}).float()
    torch.testing.assert_close(vectors(model), vectors(exact), rtol=0, atol=0)
    trainer.train()
    assert {weight.dtype for weight in loss.parameters()} == {torch.float32}
    states = trainer.optimizer.state.values()  # type: ignore[union-attr]
    assert states and {state["exp_avg_sq"].dtype for state in states} == {torch.float32}


@pytest.mark.parametrize(
    ("name", "bf16"),
    [
        ("qwen3", True),
        slow("qwen3", False),
        slow("embedding-gemma", True),
        slow("embedding-gemma", False),
    ],
)
def test_adapters_over_bfloat16(name: str, bf16: bool, data: Any, tmp_path: Path) -> None:
    """transformers gives adapters the type of the frozen weights; merged into them, small changes are lost as well."""
    start = saved_start(name, dtype=torch.bfloat16)
    options = {**SHORT, "arguments.lora": {"rank": 4}, "arguments.bf16": bf16, "arguments.learning_rate": 2e-5}
    result = train(load_recipe("tr", overrides=options), data, tmp_path / "run", model=str(start))
    saved = SentenceTransformer(str(tmp_path / "run"), device="cpu")
    assert {weight.dtype for weight in saved.parameters()} == {torch.float32}
    torch.testing.assert_close(saved.state_dict(), result.model.state_dict(), rtol=0, atol=0)
    for (buffer, value), (_, trained) in zip(saved.named_buffers(), result.model.named_buffers()):
        torch.testing.assert_close(value, trained, rtol=0, atol=0, msg=buffer)
    before = dict(SentenceTransformer(str(start), device="cpu").named_parameters())
    layer = "0.model.layers.0.mlp.up_proj.weight"
    moved = (dict(saved.named_parameters())[layer] != before[layer].float()).float().mean()
    assert float(moved) > 0.95


def backbone_layers(model: SentenceTransformer) -> Any:
    [(_, _, layers)] = layer_lists(model[0].auto_model, layer_count(model))
    return layers


@pytest.mark.slow
@pytest.mark.parametrize(("cached", "keep"), [(0, False), (4, True)])
@pytest.mark.parametrize("name", ["qwen3", "embedding-gemma", "modernbert", "xlm-r-large", "t5"])
def test_gradient_checkpointing_with_adapters(name: str, cached: int, keep: bool, data: Any, tmp_path: Path) -> None:
    """The inputs of a frozen encoder need gradients, or nothing is trained: the losses are those without it."""
    options = {**SHORT, "arguments.lora": {"rank": 4, "dropout": 0.0, "merge": not keep}}
    options |= {"arguments.mini_batch_size": cached}
    results = []
    passes = []
    for checkpointing in (False, True):
        recipe = load_recipe("tr", overrides={**options, "arguments.gradient_checkpointing": checkpointing})
        model = SentenceTransformer(str(saved_start(name)), device="cpu")
        norm = next(part for part in backbone_layers(model)[0].modules() if "Norm" in type(part).__name__)
        passes.append(0)

        def count(module: Any, *_: Any) -> None:
            passes[-1] += module.training and torch.is_grad_enabled()

        norm.register_forward_hook(count)
        results.append(train(recipe, data, tmp_path / f"run-{checkpointing}", model=model))
    assert passes[1] > passes[0] > 0
    assert losses(results[1]) == pytest.approx(losses(results[0]), rel=1e-5)
    norms = [[entry["grad_norm"] for entry in result.history if "grad_norm" in entry] for result in results]
    assert norms[1] == pytest.approx(norms[0], rel=1e-4) and min(norms[1]) > 0
    saved = load_encoder(str(tmp_path / "run-True"), device="cpu")
    torch.testing.assert_close(vectors(saved), vectors(results[1].model), rtol=1e-5, atol=1e-6)


class Widths(TrainerCallback):
    """Notes the tokens of each batch's longest text."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        loader = more["train_dataloader"]
        self.seen = [int(batch["source_attention_mask"].sum(dim=1).max()) for batch in loader]


@pytest.mark.parametrize(("max_length", "width"), [(None, 512), slow(600, 600)])
def test_a_page_among_the_sentences_is_cut(
    max_length: int | None, width: int, data: Any, tmp_path: Path, caplog: Any
) -> None:
    """An encoder of 32,768 tokens would read all of it, and a batch with it takes the memory of as many such rows."""
    caplog.set_level("INFO", logger="st_xling")
    rows = data["de-en"].select_columns(["source", "target", "source_language", "target_language"])
    rows = rows.map(lambda row, i: {"source": row["source"] * (60 if i == 0 else 1)}, with_indices=True)
    widths = Widths()
    options = {
        **SHORT,
        "arguments.max_steps": 1,
        "arguments.per_device_train_batch_size": 32,
        "model.max_length": max_length,
    }
    recipe = load_recipe("tr", overrides=options)
    train(recipe, {"de-en": rows}, tmp_path / "run", model=str(saved_start("qwen3")), callbacks=[widths])
    assert max(widths.seen) == width
    saved = SentenceTransformer(str(tmp_path / "run"), device="cpu")
    assert saved.max_seq_length == (max_length or 32_768)
    lines = [line for line in caplog.messages if "training reads at most" in line]
    expected = (
        "training reads at most 512 tokens of a text, the saved model 32,768 as before; for another length: "
        "--max-length, or max_length in the training arguments"
    )
    assert lines == ([] if max_length else [expected])
    assert any(f"1 of 64 texts (1.6 %) are longer than {width} tokens" in line for line in caplog.messages)


@pytest.mark.parametrize(("max_length", "width"), [(None, 512), (600, 600)])
def test_a_page_among_the_sentences_is_cut_in_a_script(
    max_length: int | None, width: int, data: Any, tmp_path: Path, caplog: Any
) -> None:
    """Recipes alone did so: a script with the trainer ran out of memory on the same data."""
    caplog.set_level("INFO", logger="st_xling")
    rows = data["de-en"].select_columns(["source", "target"])
    rows = rows.map(lambda row, i: {"source": row["source"] * (60 if i == 0 else 1)}, with_indices=True)
    model = SentenceTransformer(str(saved_start("qwen3")), device="cpu")
    widths = Widths()
    arguments = CrossLingualTrainingArguments(
        str(tmp_path), max_steps=1, per_device_train_batch_size=32, max_length=max_length, disable_tqdm=True
    )
    loss = TranslationRankingLoss(model)
    trainer = CrossLingualTrainer(model=model, args=arguments, train_dataset=rows, loss=loss, callbacks=[widths])
    trainer.train()
    assert max(widths.seen) == width
    assert model.max_seq_length == 32_768
    lines = [line for line in caplog.messages if "training reads at most 512 tokens" in line]
    assert len(lines) == (0 if max_length else 1)


def test_static_embeddings_have_no_layers_to_adapt(data: Any, tmp_path: Path) -> None:
    """The message advised to drop token-level terms, of which there were none."""
    recipe = load_recipe("tr", overrides={**SHORT, "arguments.lora": {}})
    with pytest.raises(ValueError, match="LoRA adapts the layers of a transformer.*StaticEmbedding.*train without it"):
        train(recipe, data, tmp_path / "run", model=str(saved_start("static")))


def test_an_adapter_on_an_encoder_in_bfloat16(data: Any, tmp_path: Path) -> None:
    """The command line was told to call ``.float()``."""
    recipe = AdapterRecipe.load("sf", overrides={"arguments.max_steps": 2, "adapter.layer": 2})
    start = saved_start("modernbert", dtype=torch.bfloat16)
    train_adapter(recipe, data, tmp_path / "run", model=str(start), cache=tmp_path / "cache")
    saved = SentenceTransformer(str(tmp_path / "run"), device="cpu")
    assert {weight.dtype for weight in saved.parameters()} == {torch.float32}


PAIRED = "Instruct: Given a sentence, retrieve its translation\nQuery:"


def test_instructions_of_two_lines_are_kept(data: Any, tmp_path: Path) -> None:
    """Trained behind them, saved with the model, and used by encode."""
    options = {**SHORT, "arguments.max_steps": 2, "arguments.prompt_name": "query"}
    start = saved_start("qwen3")
    result = train(load_recipe("tr", overrides=options), data, tmp_path / "run", model=str(start))
    saved = SentenceTransformer(str(tmp_path / "run"), device="cpu")
    assert saved.prompts == {"query": PAIRED, "document": ""} and saved.default_prompt_name == "query"
    plain = saved.encode(TEXTS, prompt="", convert_to_tensor=True)
    with_prompt = saved.encode(TEXTS, convert_to_tensor=True)
    assert float((with_prompt - plain).abs().max()) > 1e-4
    torch.testing.assert_close(with_prompt, vectors(result.model), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_a_killed_run_ends_as_an_undisturbed_one(name: str, data: Any, tmp_path: Path) -> None:
    options = {**SHORT, "arguments.max_steps": 6, "arguments.eval_steps": 2, "arguments.save_total_limit": None}
    recipe = load_recipe("tr", overrides=options)
    start = str(saved_start(name))
    undisturbed = train(recipe, data, tmp_path / "whole", model=start)
    train(recipe, data, tmp_path / "run", model=start)
    for step in (4, 6):
        shutil.rmtree(tmp_path / "run" / "training" / f"checkpoint-{step}")
    resumed = train(recipe, data, tmp_path / "run", model=start, resume=True)
    assert losses(resumed) == pytest.approx(losses(undisturbed), rel=1e-5)
    torch.testing.assert_close(vectors(resumed.model), vectors(undisturbed.model), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen3", "embedding-gemma", "modernbert", "xlm-r-large", "t5"])
def test_slim_and_mine(name: str, data: Any, tmp_path: Path, capsys: Any) -> None:
    """A smaller vocabulary gives the same vectors for its text, and the trained model mines."""
    train(load_recipe("tr", overrides=SHORT), data, tmp_path / "run", model=str(saved_start(name)))
    trained = SentenceTransformer(str(tmp_path / "run"), device="cpu")
    german = data["de-en"]["source"][:] + data["de-en"]["target"][:]
    small = slim_encoder(trained, german)
    small.save_pretrained(str(tmp_path / "small"))
    loaded = SentenceTransformer(str(tmp_path / "small"), device="cpu")
    assert len(loaded.tokenizer) < len(trained.tokenizer)
    for prompt in ("", trained.prompts.get("query") or ""):
        vectors_of_small, expected = (
            m.encode(german[:20], prompt=prompt, convert_to_tensor=True) for m in (loaded, trained)
        )
        torch.testing.assert_close(vectors_of_small, expected, rtol=1e-4, atol=1e-5)
    assert loaded.prompts == trained.prompts
    for side, lines in (("de", data["de-en"]["source"][:]), ("en", data["de-en"]["target"][:])):
        (tmp_path / f"{side}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["mine", str(tmp_path / "de.txt"), str(tmp_path / "en.txt"), "--model", str(tmp_path / "run")]
    words += ["--source-language", "de", "--target-language", "en", "--keep-all"]
    assert main([*words, "--out", str(tmp_path / "pairs.tsv")]) == 0, capsys.readouterr().err
    assert (tmp_path / "pairs.tsv").read_text(encoding="utf-8").count("\n") > 0
