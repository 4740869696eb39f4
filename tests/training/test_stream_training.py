"""Training on streams: by command, by trainer, killed and resumed; what was not seen before training does no harm."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformerTrainingArguments

from st_xling.data import load_pairs
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.samplers import mix_streams
from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
from st_xling.training import CrossLingualTrainer, load_recipe, mixture, train
from tests.processes import Ended
from tests.training.children import Death, st_xling


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("data")
    german = parallel_phrases("de", "en", size=150)
    chinese = parallel_phrases("zh", "en", size=40)
    lines = [f"{source}\t{target}\n" for source, target in zip(german["source"], german["target"])]
    (made / "de-en.tsv").write_text("".join(lines), encoding="utf-8")
    chinese.select_columns(["source", "target"]).to_json(made / "zh-en.jsonl", force_ascii=False)
    return made


def run(folder: Path, out: Path, *options: str, death: Death | None = None) -> Ended:
    words = "train dap --model tiny --stream --max-steps 12 --batch-size 8 --eval-steps 4"
    words += " --tiny hidden_size=32 --tiny vocabulary=400 --tiny layers=1 --set arguments.save_total_limit=10"
    words += " --set losses.representation_translation.layers=1 --set arguments.language_alpha=0.5"
    words += f" --data {folder / 'de-en.tsv'} --data {folder / 'zh-en.jsonl'} --out {out}"
    return st_xling([*words.split(), *options], out.parent / "streams", death)


def losses(out: Path) -> dict[int, float]:
    entries = map(json.loads, (out / "training" / "log.jsonl").read_text(encoding="utf-8").splitlines())
    return {entry["step"]: entry["loss"] for entry in entries if "loss" in entry}


@pytest.mark.slow
def test_a_killed_run_resumes_at_its_row(folder: Path, tmp_path: Path) -> None:
    undisturbed = run(folder, tmp_path / "whole")
    assert undisturbed.status == 0, undisturbed.stderr
    assert "share of the batches" in undisturbed.stderr and "streaming: vocabulary" in undisturbed.stderr
    assert "de-en: streamed, " in undisturbed.stderr

    assert run(folder, tmp_path / "run", death=Death(step=10)).status == -9
    resumed = run(folder, tmp_path / "run", "--resume")
    assert resumed.status == 0, resumed.stderr
    assert losses(tmp_path / "run") == pytest.approx(losses(tmp_path / "whole"), abs=1e-6)
    assert max(losses(tmp_path / "run")) == 12
    mine, theirs = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "whole"))
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mixed", [False, True])
def test_the_trainer_takes_a_stream(mixed: bool, tmp_path: Path, folder: Path, make_model: Any) -> None:
    """Plain, as sentence-transformers reads any stream, or as batches made by ``mix_streams``."""
    stream = load_pairs(folder / "zh-en.jsonl", stream=True)
    model = make_model(max_length=32)
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path), max_steps=7, per_device_train_batch_size=8, logging_steps=1, report_to="none", disable_tqdm=True
    )
    loss = TranslationRankingLoss(model) + RepresentationTranslationLoss(model, layers=1)
    data = mix_streams({"zh-en": stream}, batch_rows=8) if mixed else stream
    trainer = CrossLingualTrainer(model=model, args=arguments, train_dataset=data, loss=loss)
    trainer.train()
    assert trainer.state.global_step == 7  # more than the five batches of one pass
    assert len([entry for entry in trainer.state.log_history if "loss" in entry]) == 7


def test_words_that_come_later_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_model: Any) -> None:
    """Vocabulary and softmax come from the first rows of a stream; the model is one that knows more."""
    monkeypatch.setattr(mixture, "HEAD_ROWS", 8)
    changes = {"arguments.max_steps": 4, "arguments.per_device_train_batch_size": 8}
    recipe = load_recipe("dap", tiny=True, overrides={**changes, "losses.representation_translation.layers": 1})
    data = {"de-en": parallel_phrases("de", "en", size=150).to_iterable_dataset()}
    result = train(recipe, data, tmp_path / "run", model=make_model(max_length=32))
    losses = [entry["representation_translation"] for entry in result.history if "representation_translation" in entry]
    assert result.steps == 4 and losses and all(0 < loss < 100 for loss in losses)
