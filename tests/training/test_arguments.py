"""Training arguments: their defaults, how many steps, and where checkpoints and log lines fall."""

import math
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformerTrainingArguments

import st_xling
from st_xling.data.pairs import COLUMNS
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.samplers import LengthGroupedBatchSampler, ShuffledBatchSampler
from st_xling.losses import TranslationRankingLoss
from st_xling.models import tiny_encoder
from st_xling.training import CrossLingualTrainer, CrossLingualTrainingArguments, LoraOptions, RankingTrainingArguments
from st_xling.training.arguments import fit_to_data, read_arguments, replaced, total_steps


def arguments(**options: Any) -> CrossLingualTrainingArguments:
    return CrossLingualTrainingArguments("run", **options)


def fitted(rows: int | None = 1000, best: str | None = None, **options: Any) -> CrossLingualTrainingArguments:
    return fit_to_data(arguments(**options), rows=rows, evaluates=best is not None, best_metric=best)


def read(section: Any) -> CrossLingualTrainingArguments:
    return read_arguments(CrossLingualTrainingArguments, section)


def test_steps() -> None:
    def steps(rows: int, processes: int = 1, **options: Any) -> int:
        return total_steps(arguments(per_device_train_batch_size=10, **options), rows, processes)

    assert (steps(100), steps(3), steps(100, 2), steps(100, max_steps=7)) == (10, 1, 5, 7)
    assert (steps(109, num_train_epochs=2.5), steps(100, gradient_accumulation_steps=4)) == (25, 3)


@pytest.mark.parametrize("rows", [1, 50, 999, 12_345, 1_000_000])
@pytest.mark.parametrize("log_steps", [0, 1, 7])
def test_checkpoints_fall_on_logged_steps(rows: int, log_steps: int) -> None:
    """A checkpoint between two log lines would cut the first line after a resume short."""
    made = fitted(rows, logging_steps=log_steps, per_device_train_batch_size=16)
    steps = total_steps(arguments(per_device_train_batch_size=16), rows)
    assert made.save_steps == made.eval_steps
    assert made.save_steps % made.logging_steps == 0 or made.save_steps == steps
    assert log_steps in (0, made.logging_steps)
    assert fitted(128_000, best="eval_x").eval_steps == 100  # ten of them
    apart = fitted(rows, logging_steps=log_steps, eval_steps=14)
    assert apart.save_steps == apart.eval_steps <= 14  # less: the end comes first
    assert apart.eval_steps < 14 or 14 % apart.logging_steps == 0


def trainer(tmp_path: Path, **options: Any) -> CrossLingualTrainer:
    pairs = parallel_phrases("de", "en", size=24).select_columns(list(COLUMNS))
    model = tiny_encoder([*pairs["source"], *pairs["target"]], vocabulary=200, hidden_size=16)
    options = {"per_device_train_batch_size": 8, **options}
    return CrossLingualTrainer(
        model,
        CrossLingualTrainingArguments(str(tmp_path), **options),
        pairs,
        loss=TranslationRankingLoss(model),
    )


def test_samplers_and_dropping(tmp_path: Path) -> None:
    [batches] = [trainer(tmp_path).get_train_dataloader().batch_sampler]
    assert isinstance(batches, LengthGroupedBatchSampler)
    assert not batches.balanced and not batches.one_pair and batches.keys is not None
    plain = trainer(tmp_path, group_by_length=False).get_train_dataloader().batch_sampler
    assert type(plain) is ShuffledBatchSampler
    changed = trainer(tmp_path, language_alpha=0.5, batches="one_pair", keep_duplicates_apart=False)
    batches = changed.get_train_dataloader().batch_sampler
    assert batches.balanced and batches.one_pair and batches.keys is None
    assert fitted(rows=128).dataloader_drop_last and not fitted(rows=127).dataloader_drop_last


def test_a_stream() -> None:
    made = fitted(rows=None, max_steps=50)
    assert made.max_steps == 50 and made.eval_steps == 5 and made.dataloader_drop_last
    assert made.batch_sampler == "batch_sampler" and made.accelerator_config.dispatch_batches is False
    with pytest.raises(
        ValueError, match=r"a stream has no end that is known: .* set arguments.max_steps / --max-steps"
    ):
        fitted(rows=None)


def test_any_argument_of_sentence_transformers_passes_through() -> None:
    section = {"adam_beta2": "98e-2", "report_to": "none", "prompts": {"source": "q: "}, "save_total_limit": None}
    section |= {"logging_first_step": True, "save_strategy": "epoch", "eval_strategy": "no"}
    section |= {"auto_find_batch_size": True}
    options = read(section)
    expected = {**section, "adam_beta2": 0.98, "report_to": []}
    assert {name: options.to_dict()[name] for name in expected} == expected
    assert {**options.recorded(), "report_to": [], "eval_strategy": "no"}.items() >= {
        name: value for name, value in expected.items() if name != "prompts"
    }.items()
    made = fit_to_data(options, rows=1000, evaluates=False)
    assert (made.adam_beta2, made.prompts, made.save_strategy) == (0.98, {"source": "q: "}, "epoch")
    assert made.logging_first_step and made.auto_find_batch_size and made.save_total_limit is None
    with pytest.raises(ValueError, match="arguments.adam_beta2 must be a number: got 'high'"):
        read({"adam_beta2": "high"})
    with pytest.raises(ValueError, match="arguments has no key 'adam_beta3'; did you mean 'adam_beta"):
        read({"adam_beta3": 0.9})
    with pytest.raises(ValueError, match="sentence-transformers refuses .*sometimes"):
        read({"eval_strategy": "sometimes"})
    for key in ("output_dir", "hub_token", "save_only_model", "metric_for_best_model", "push_to_hub", "save_steps"):
        with pytest.raises(ValueError, match=f"has no key '{key}'"):
            read({key: True})


def test_the_best_checkpoint_is_among_those_that_are_evaluated() -> None:
    """transformers refuses two strategies, of which a user has set one."""
    for options in ({"save_strategy": "epoch"}, {"eval_strategy": "epoch"}):
        made = fitted(best="eval_x", **options)
        assert (made.eval_strategy, made.save_strategy, made.load_best_model_at_end) == ("epoch", "epoch", True)
        assert (made.metric_for_best_model, made.greater_is_better) == ("eval_x", True)
    for options in ({"save_strategy": "no"}, {"eval_strategy": "no"}):
        assert not fitted(best="eval_x", **options).load_best_model_at_end
    without = fitted()
    assert (without.eval_strategy, without.load_best_model_at_end) == ("no", False)


def test_what_is_recorded_makes_the_same_arguments_again() -> None:
    made = arguments(learning_rate=3e-5, lora=LoraOptions(rank=4), eval_strategy="epoch", mini_batch_size=8)
    changed = made.changed()
    assert changed["learning_rate"] == 3e-5 and changed["lora"]["rank"] == 4
    assert made.recorded()["warm_up_heads"] is None and made.recorded()["num_train_epochs"] == 1
    assert read(changed).recorded() == made.recorded()
    assert arguments().changed() == RankingTrainingArguments("run").changed() == {}
    with pytest.raises(TypeError, match="has no argument 'learning_rat'"):
        replaced(made, learning_rat=1)


def test_a_trainer_survives_what_is_said_of_its_arguments(tmp_path: Path) -> None:
    """Arguments made after a trainer reset accelerate's state: training ended with "no attribute distributed_type"."""
    built = trainer(tmp_path, max_steps=1)
    assert "output_dir" not in built.args.changed() and "accelerator_config" not in arguments().changed()
    changed = arguments(accelerator_config={"even_batches": False}).changed()["accelerator_config"]
    assert changed["even_batches"] is False
    again = trainer(tmp_path / "again", max_steps=1)
    again.args.changed()
    again.train()
    assert again.state.global_step == 1


def test_a_cpu_has_bfloat16_too() -> None:
    """Sentence-transformers refuses it on a machine without a GPU unless it is told that the CPU is meant."""
    made = fitted(bf16=True)
    assert made.bf16 and made.device.type == (torch.accelerator.current_accelerator() or torch.device("cpu")).type
    assert not fitted().use_cpu
    assert "use_cpu" not in arguments(bf16=True).changed()  # a run may be resumed on another machine


@pytest.mark.parametrize("name", ["eval_steps", "save_steps"])
def test_either_steps_set_both(name: str) -> None:
    """``save_steps=500`` alone, as most scripts have it, was an error about steps that do not divide."""
    made = arguments(**{name: 4}, max_steps=20)
    assert (made.eval_steps, made.save_steps) == (4, 4)


RANGES: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("learning_rate", "num_train_epochs"), (0, -1e-4, math.inf, math.nan)),
    **dict.fromkeys(("warmup_steps", "weight_decay", "language_alpha", "max_grad_norm"), (-0.1, math.nan)),
    **dict.fromkeys(("per_device_train_batch_size", "gradient_accumulation_steps"), (0,)),
    **dict.fromkeys(("eval_steps", "logging_steps", "seed", "early_stopping_patience", "warm_up_heads"), (-1,)),
    **{"mini_batch_size": (-2, 3), "mini_batch_num_tokens": (0, -1), "max_steps": (0, -2), "save_total_limit": (0,)},
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in RANGES.items() for value in values])
def test_numbers_out_of_range_are_named(key: str, value: float) -> None:
    """A learning rate of 0 trains for as long as any other, and changes nothing."""
    with pytest.raises(ValueError, match=f"arguments.{key} .*got {value}"):
        read({key: value})
    with pytest.raises(ValueError, match=f"^{key} .*got {value}"):  # in a script, too
        arguments(**{key: value})


def test_mini_batches_have_rows_or_tokens() -> None:
    both = {"mini_batch_size": 8, "mini_batch_num_tokens": 512}
    with pytest.raises(ValueError, match="got arguments.mini_batch_size 8 and arguments.mini_batch_num_tokens 512"):
        read(both)
    with pytest.raises(ValueError, match="got mini_batch_size 8 and mini_batch_num_tokens 512; drop one"):
        arguments(**both)
    assert read({"mini_batch_num_tokens": 512}).recorded()["mini_batch_num_tokens"] == 512


def test_the_guide_lists_our_fields_and_every_default_that_differs_from_sentence_transformers() -> None:
    page = (Path(st_xling.__file__).parent / "docs" / "guide" / "train.md").read_text(encoding="utf-8")
    section = page.partition("### Training arguments\n")[2].partition("\n### ")[0]
    theirs = {entry.name: entry.default for entry in fields(SentenceTransformerTrainingArguments)}
    differing = {
        entry.name
        for entry in fields(CrossLingualTrainingArguments)
        if entry.name not in theirs or entry.default != theirs[entry.name]
        if entry.default is not MISSING
    }
    assert differing - {"report_to"} <= set(re.findall(r"`(\w+)`", section))
