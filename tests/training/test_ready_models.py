"""Training starts from a ready model, as sentence-transformers has it: its own shape and prompts, the trainer's own
options, callbacks, and runs that are resumed for longer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from transformers import TrainerCallback

from st_xling.cli import main
from st_xling.evaluation import TatoebaEvaluator
from st_xling.losses import TranslationRankingLoss
from st_xling.training import (
    CrossLingualTrainer,
    CrossLingualTrainingArguments,
    load_recipe,
    train,
    train_adapter,
    train_retrieval,
)
from st_xling.training.reranker import train_cross_encoder
from st_xling.training.run import shape_of
from st_xling.training.run_folder import RunFolder

STEPS = {"arguments.max_steps": 4, "arguments.eval_steps": 1, "arguments.per_device_train_batch_size": 4}
PROMPTS = {"query": "query: ", "document": "passage: "}


@pytest.fixture(scope="module")
def ready(make_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mean pooling, 40 tokens, unit length, and prompts of its own."""
    model = make_model(max_length=40)
    model.append(Normalize())
    model.prompts = dict(PROMPTS)
    model.save_pretrained(str(folder := tmp_path_factory.mktemp("models") / "ready"))
    return folder


@pytest.fixture(scope="module")
def bare(make_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The transformer of such a model alone."""
    folder = tmp_path_factory.mktemp("models") / "bare"
    model = make_model(max_length=40)
    model[0].auto_model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def short(name: str = "tr", **changes: Any) -> Any:
    return load_recipe(name, overrides={**STEPS, **{key.replace("__", "."): value for key, value in changes.items()}})


def test_a_ready_model_keeps_what_it_is(ready: Path, data: Any, tmp_path: Path, logged: Any) -> None:
    result = train(short(), data, tmp_path / "run", model=str(ready))
    line = next(line for line in logged().splitlines() if line.startswith("model "))
    count = sum(part.numel() for part in result.model.parameters())
    assert line == f"model {ready}: BertModel, {count:,} parameters, pretrained; mean pooling, at most 40 tokens"
    saved = SentenceTransformer(str(result.folder))
    assert shape_of(saved) == {"pooling": "mean", "max_length": 40} and isinstance(saved[-1], Normalize)
    assert saved.prompts == PROMPTS and saved.default_prompt_name is None


def test_what_the_user_sets_wins(ready: Path, bare: Path, data: Any, tmp_path: Path, logged: Any) -> None:
    """A bare transformer is pooled as the recipe says."""
    for start, changes, length in ((ready, {"model__pooling": "cls"}, 20), (bare, {}, 24)):
        out = tmp_path / start.name
        train(short(model__max_length=length, **changes), data, out, model=str(start))
        assert f"cls pooling, at most {length} tokens" in logged()
        assert shape_of(SentenceTransformer(str(out))) == {"pooling": "cls", "max_length": length}
    with pytest.raises(ValueError, match=r"model.pooling must be one of 'mean', 'cls', 'max' .*: got 'sum'"):
        train(short(model__pooling="sum"), data, tmp_path / "other", model=str(ready))
    with pytest.raises(ValueError, match="max_length must be at most 42, .* got 512"):
        train(short(model__max_length=512), data, tmp_path / "other", model=str(ready))


def test_random_weights_only_by_name(tmp_path: Path, capsys: Any) -> None:
    line_of_command = "train tr --data phrasebook:vi?size=20 --dev none --max-steps 1 --batch-size 4"
    line_of_command += f" --out {tmp_path / 'run'}"
    assert main(line_of_command.split()) == 2
    assert "missing --model" in capsys.readouterr().err
    words = [*line_of_command.split(), "--tiny", "hidden_size=16", "--learning-rate", "1e-4"]
    assert main([*words, "--model", "tiny"]) == 0
    err = capsys.readouterr().err
    assert "tr: step 1 of 1, " in err and ": loss " in err and "tr: 100%" not in err
    line = next(line for line in err.splitlines() if line.startswith("model tiny: BertModel, "))
    assert line.endswith("random weights; mean pooling, at most 32 tokens")
    words = [*line_of_command.split(), "--model", str(tmp_path / "nowhere"), "--out", str(tmp_path / "other")]
    words += ["--data", "de-en=absent.tsv"]
    assert main(words) == 2
    assert "no encoder could be loaded" in capsys.readouterr().err  # before the data are read


@pytest.mark.parametrize("function", [train, train_retrieval, train_adapter, train_cross_encoder])
def test_training_options_are_the_recipes(function: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"no argument 'learning_rate'.*'arguments\.learning_rate': 1"):
        function(load_recipe("tr"), [{}], tmp_path / "run", model="tiny", learning_rate=1)


class Steps(TrainerCallback):
    """Notes the prompts that the trainer was given, and the steps that it makes."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.prompts = args.prompts

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.made = [*getattr(self, "made", []), state.global_step]


@pytest.mark.parametrize(
    ("prompts", "default", "seen", "saved"),
    [
        ({"arguments__prompts": "query: "}, None, ("query: ", "query: "), "query"),
        ({"arguments__prompt_name": "document"}, None, ("passage: ", "passage: "), "document"),
        ({"arguments__prompts": "find: "}, None, ("find: ", "find: "), "default"),
        ({"arguments__prompts": {"source": "de: ", "target": "en: "}}, None, ("de: ", "en: "), None),
        ({"arguments__prompts": {"source": "de: "}}, None, ("de: ", ""), None),
        ({}, "query", ("query: ", "query: "), "query"),
        ({"arguments__prompts": ""}, "query", ("", ""), None),
    ],
)
def test_prompts(prompts: Any, default: Any, seen: Any, saved: Any, make_model: Any, data: Any, tmp_path: Path) -> None:
    """Training reads text behind them, and the model is saved with them: a model's default prompt is one too."""
    model = make_model(max_length=40)
    steps = Steps()
    model.prompts, model.default_prompt_name = dict(PROMPTS), default
    result = train(short(arguments__max_steps=1, **prompts), data, tmp_path / "run", model=model, callbacks=[steps])
    assert tuple(steps.prompts.get(side, "") for side in ("source", "target")) == seen
    loaded = SentenceTransformer(str(result.folder))
    assert loaded.default_prompt_name == saved and PROMPTS.items() <= loaded.prompts.items()
    if saved:
        assert loaded.prompts[saved] == seen[0]
    elif seen[0]:
        assert loaded.prompts["source"] == seen[0]


def test_a_script_saves_the_prompt_that_it_trains_with(make_model: Any, data: Any, tmp_path: Path) -> None:
    """The published model encoded without it, and encode_query did even where a command had saved it."""
    model = make_model(max_length=40)
    arguments = CrossLingualTrainingArguments(str(tmp_path / "run"), prompts="find: ", report_to="none")
    rows = data["vi-en"].select_columns(["source", "target"])
    CrossLingualTrainer(model=model, args=arguments, train_dataset=rows, loss=TranslationRankingLoss(model))
    model.save_pretrained(str(tmp_path / "model"))
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    behind_prompt = loaded.encode(["Es regnet."])
    assert not np.allclose(behind_prompt, loaded.encode(["Es regnet."], prompt=""))
    np.testing.assert_allclose(loaded.encode_query(["Es regnet."]), behind_prompt, rtol=1e-5)


def test_prompts_that_do_not_fit(ready: Path, data: Any, tmp_path: Path) -> None:
    for key, value, message in (
        ("prompts", {"sourc": "x"}, "arguments.prompts has no key 'sourc'; did you mean 'source'"),
        ("prompt_name", "quer", r"one of the model's prompts \(query, document\): got 'quer'"),
    ):
        with pytest.raises(ValueError, match=message):
            train(short(**{f"arguments__{key}": value}), data, tmp_path / "run", model=str(ready))


@pytest.fixture
def constant(data: Any) -> TatoebaEvaluator:
    """An evaluator whose score is always the same."""
    return TatoebaEvaluator({"vie": (["một"], ["one"])}, name="dev")


def test_early_stopping_and_callbacks(ready: Path, data: Any, constant: Any, tmp_path: Path) -> None:
    recipe = short(arguments__max_steps=20, arguments__early_stopping_patience=2)
    out = tmp_path / "run"
    steps = Steps()
    result = train(recipe, data, out, model=str(ready), evaluator=constant, callbacks=[steps])
    assert result.steps == 3 and steps.made == [1, 2, 3]  # the first score, and two that are not better
    again = train(recipe, data, out, model=str(ready), evaluator=constant, callbacks=[steps], resume=True)
    assert again.steps == 3 and len(steps.made) == 3  # it had ended
    with pytest.raises(ValueError, match="early_stopping_patience needs evaluations to stop by: got none"):
        train(recipe, data, tmp_path / "other", model=str(ready))


@pytest.mark.slow
def test_a_run_is_resumed_for_longer(ready: Path, data: Any, tmp_path: Path, logged: Any) -> None:
    out = tmp_path / "run"
    steps = Steps()
    options: dict[str, Any] = {"model": str(ready), "callbacks": [steps]}
    train(short(), data, out, **options)
    longer = short(arguments__max_steps=7, arguments__save_total_limit=3)
    result = train(longer, data, out, **options, resume=True, command="longer")
    changed = "max_steps 4 → 7, save_total_limit 2 → 3"
    assert f"resume continues with other options than the run began with: {changed}" in logged()
    assert result.steps == 7 and steps.made == [1, 2, 3, 4, 5, 6, 7]
    manifest = RunFolder(out).read_manifest()
    assert manifest["recipe"]["arguments"]["max_steps"] == 7 and manifest["resumed_with"] == ["longer"]
    rates = [entry["learning_rate"] for entry in result.history if "loss" in entry]
    assert rates[4] == 0 < rates[6] < rates[5]  # the last of the shorter schedule, then along the longer one
    with pytest.raises(ValueError, match=r"recipe\.arguments\.learning_rate differ"):
        train(short(arguments__max_steps=7, arguments__learning_rate=1e-3), data, out, **options, resume=True)
    epochs = short(arguments__max_steps=-1, arguments__num_train_epochs=2)  # of six steps
    assert train(epochs, data, out, **options, resume=True).steps == 12


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"gradient_checkpointing": True}, marks=pytest.mark.slow),
        pytest.param({"torch_compile": True, "torch_compile_backend": "eager"}, marks=pytest.mark.slow),
        {"save_strategy": "epoch", "max_steps": -1, "num_train_epochs": 2},
        {"save_strategy": "no"},
        {"save_strategy": "best"},
        {"eval_strategy": False},  # as YAML reads no
        {"dataloader_num_workers": 1},
    ],
    ids=lambda changes: ",".join(changes),
)
def test_arguments_of_the_trainer(changes: Any, ready: Path, data: Any, constant: Any, tmp_path: Path) -> None:
    recipe = short("dap", **{f"arguments__{key}": value for key, value in changes.items()})
    result = train(recipe, data, tmp_path / "run", model=str(ready), evaluator=constant)
    assert result.steps == (12 if "num_train_epochs" in changes else 4)
    saved = sorted(int(path.name.rpartition("-")[2]) for path in (tmp_path / "run/training").glob("checkpoint-*"))
    assert saved == {"epoch": [6, 12], "no": []}.get(changes.get("save_strategy"), [3, 4])


@pytest.mark.parametrize("function", [train, train_retrieval, train_adapter, train_cross_encoder])
def test_keywords_that_no_run_takes(function: Any, tmp_path: Path) -> None:
    """``train(…, lerning_rate=1)`` named a class that the user had never seen, and not the recipe's key."""
    for keyword, message in (
        ("lerning_rate", r"no argument 'lerning_rate'.*'arguments\.learning_rate': 1"),
        ("learning_rate", r"no argument 'learning_rate'.*'arguments\.learning_rate': 1"),
        ("evaluater", "no argument 'evaluater'; did you mean 'evaluator'"),
    ):
        with pytest.raises(TypeError, match=message):
            function(load_recipe("tr"), [{}], tmp_path / "run", model="tiny", **{keyword: 1})
    assert not (tmp_path / "run").exists()
