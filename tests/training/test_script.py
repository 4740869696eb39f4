"""``st-xling train RECIPE --print-python`` prints the run of the command as a short script that trains the same."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from st_xling.cli import main
from st_xling.training import load_recipe
from st_xling.training.recipe_files import recipe_names
from st_xling.training.script import training_script
from tests.training.golden_curves import COMMANDS, by_command, curve_of, made_files


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["train", *words, "--print-python"]) == 0
    return capsys.readouterr().out


def run(script: str) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    torch.set_num_threads(1)
    exec(compile(script, "script", "exec"), variables)
    return variables


@pytest.mark.parametrize("start", [[], ["--model", "tiny", "--data", "phrasebook:de,fr"]], ids=["placeholders", "tiny"])
@pytest.mark.parametrize("recipe", recipe_names())
def test_every_recipe_of_an_encoder_is_a_script_of_thirty_lines_at_most(
    recipe: str, start: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    script = printed([recipe, *start], capsys)
    compile(script, recipe, "exec")
    assert len(script.splitlines()) <= 30
    assert max(map(len, script.splitlines()[1:])) <= 120


@pytest.mark.parametrize(
    "name",
    [
        *("tr", "dap", "tr-tlm", "tr, mined negatives", "dap, loaded, 5 steps of heads"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "dap, turned to English",
                "tr, loaded",
                "tr, prompt a column",
                "tr, gradient cache",
                "tr, LoRA",
            )
        ),
    ],
)
def test_the_script_makes_the_losses_of_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = made_files(tmp_path)
    words = [word.format(**files) if word == "{start}" else word for word in COMMANDS[name]]
    script = printed([*words, "--out", "by-script"], capsys)
    state = run(script)["trainer"].state
    expected = by_command(COMMANDS[name], tmp_path)
    assert curve_of(state.log_history)["loss"] == pytest.approx(expected["loss"], abs=1e-5)
    assert len(expected["loss"]) == 20
    assert (tmp_path / "by-script" / "modules.json").is_file()


def test_a_script_holds_out_development_pairs_and_keeps_the_best_checkpoint_as_the_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny = ["--model", "tiny", "--tiny", "layers=1", "--tiny", "hidden_size=16", "--tiny", "vocabulary=300"]
    words = ["tr", *tiny, "--data", "phrasebook:de?size=3000", "--max-steps", "10", "--tiny", "dropout=0.0"]
    history = run(printed([*words, "--out", "by-script"], capsys))["trainer"].state.log_history
    by_command(words, tmp_path)
    lines = (tmp_path / "run" / "training" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    scores = [
        [entry["eval_dev_mean_accuracy"] for entry in log if "eval_dev_mean_accuracy" in entry]
        for log in (history, map(json.loads, lines))
    ]
    assert len(scores[0]) == 2
    assert scores[0] == pytest.approx(scores[1])


def test_a_teacher_and_losses_of_sentence_transformers_and_of_others_are_code(tmp_path: Path) -> None:
    taught = load_recipe("distill", overrides={"data.teacher.model": "some/teacher", "data.teacher.reads": "both"})
    script = training_script(taught, cache=tmp_path)
    joined = " ".join(script.split())
    assert 'add_teacher_vectors( pairs, "some/teacher", student=model, reads="both", cache=' in joined
    assert 'loss = 100.0 * make("MSELoss", model)' in script
    mined = {"num_negatives": 2, "relative_margin": None, "sampling_strategy": "random"}
    script = training_script(load_recipe("tr", overrides={f"data.hard_negatives.{key}": mined[key] for key in mined}))
    search = "num_negatives=2, relative_margin=None, sampling_strategy="
    assert f'add_hard_negatives(pairs, model, {search}"random")' in " ".join(script.split())
    headed = load_recipe("tr-tlm", overrides={"arguments.save_vocabulary_head": True})
    assert training_script(headed, out="out").endswith('trainer.save_model("out")\n')
    long = training_script(load_recipe("tr", overrides={"model.max_length": 1024}))
    assert long.count("max_length=1024") == 2  # of the model, and of the texts that are trained on
    matryoshka = {
        "losses": {"MatryoshkaLoss": {"matryoshka_dims": [32, 16], "loss": {"translation_ranking": {"margin": 0.2}}}}
    }
    script = training_script(load_recipe("tr", overrides=matryoshka))
    assert (
        'loss = make("MatryoshkaLoss", model, matryoshka_dims=[32, 16], loss=TranslationRankingLoss(model, margin=0.2))'
        in script
    )
    sections = {"losses": {"st_xling.losses.koleo_loss.KoleoLoss": {"weight": 0.5}, "tlm": {}}}
    script = training_script(load_recipe("tr", overrides=sections))
    assert "from st_xling.losses.koleo_loss import KoleoLoss" in script
    assert "loss = 0.5 * KoleoLoss(model)\nloss += TranslationLanguageModelingLoss(model)\n" in script


def test_what_a_script_does_not_do_is_an_error_that_names_what_to_use(capsys: pytest.CaptureFixture[str]) -> None:
    for words, parts in [
        (["ir"], ["recipes of encoders", "a retriever, ir", "train_retrieval"]),
        (["xpr-mixed"], ["recipes of encoders", "a cross-encoder, xpr-mixed", "train_cross_encoder"]),
        (["tr", "--resume"], ["--resume", "the training alone"]),
        (["tr", "--print"], ["--print-python cannot be used with --print"]),
        (["tr", "--sweep"], ["--sweep is for adapters"]),
        ([], ["missing RECIPE"]),
        (["tr", "--data", "en-en=pairs.tsv"], ["en"]),
        (["tr", "--model", "no/such-model-anywhere"], ["no/such-model-anywhere", "Check the name"]),
    ]:
        assert main(["train", *words, "--print-python"]) == 2
        message = capsys.readouterr().err
        assert all(part in message for part in parts), message


def test_a_wrong_word_is_named_before_torch_is_loaded() -> None:
    code = "import sys; from st_xling.cli import main; print(main(sys.argv[1:]), 'torch' in sys.modules)"
    words = ["train", "tr", "--print-python", "--set", "arguments.learning_rat=1e-3"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.stdout.split() == ["2", "False"]
    assert "learning_rate" in done.stderr
