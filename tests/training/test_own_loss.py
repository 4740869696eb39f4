"""A loss with a head of its own, written outside of this package: trained by a recipe, resumed, and published.

Two files are all that it takes: the class, and a recipe that names it by its import path.
"""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from st_xling.cli import main

LOSS = '''
import torch
from torch import Tensor, nn

from st_xling.losses import CrossLingualLoss


class SideProbeLoss(CrossLingualLoss):
    """A head of its own reads from an embedding whether it is the source or the target."""

    min_columns = max_columns = 2
    citation = "@misc{muster2026probe, title={A probe for sides}, year={2026}}"

    def __init__(self, model: nn.Module, *, width: int = 8) -> None:
        super().__init__(model)
        self.width = width
        dim = model.get_embedding_dimension()
        self.head = nn.Sequential(nn.Linear(dim, width), nn.Tanh(), nn.Linear(width, 2))

    def compute_loss(self, batch: list[dict[str, Tensor]], labels: Tensor | None) -> Tensor:
        logits = torch.cat([self.head(column["sentence_embedding"]) for column in batch])
        sides = torch.arange(2, device=logits.device).repeat_interleave(len(logits) // 2)
        return nn.functional.cross_entropy(logits, sides)
'''

RECIPE = """
name: probed
summary: Translation ranking, and a probe.
losses:
  translation_ranking: {margin: 0.3}
  own_losses.SideProbeLoss: {weight: 0.5, width: 4}
arguments: {lr_scheduler_type: constant, warmup_steps: 0, learning_rate: 2.0e-3}
"""

SMALL = ["layers=1", "hidden_size=16", "vocabulary=300", "dropout=0.0"]
TRAINED = [
    *("--model", "tiny", *(word for size in SMALL for word in ("--tiny", size)), "--dev", "none"),
    *("--data", "phrasebook:de?size=120", "--batch-size", "16", "--eval-steps", "3"),
]


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_losses.py").write_text(LOSS, encoding="utf-8")
    (tmp_path / "probed.yaml").write_text(RECIPE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return "probed.yaml"


def losses_of(run: str) -> list[float]:
    lines = Path(run, "training", "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry["own_losses.SideProbeLoss"] for entry in map(json.loads, lines) if "loss" in entry]


def test_a_loss_of_ones_own_is_trained_resumed_and_published(
    recipe: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run ends where an undisturbed one does, its head included, and the card names the loss."""
    assert main(["train", recipe, *TRAINED, "--max-steps", "6", "--out", "whole"]) == 0
    assert main(["train", recipe, *TRAINED, "--max-steps", "3", "--out", "resumed"]) == 0
    assert main(["train", recipe, *TRAINED, "--max-steps", "6", "--out", "resumed", "--resume"]) == 0
    heads = [load_file(f"{run}/training/checkpoint-6/loss.safetensors") for run in ("whole", "resumed")]
    assert len(heads[0]) == 4  # weight and bias of two layers
    for name, weight in heads[0].items():
        torch.testing.assert_close(weight, heads[1][name], rtol=0, atol=0)
    start = load_file("resumed/training/checkpoint-3/loss.safetensors")
    assert any(not torch.equal(weight, start[name]) for name, weight in heads[0].items())  # the head learns
    assert losses_of("whole") == losses_of("resumed")

    card = Path("whole", "README.md").read_text(encoding="utf-8")
    assert "loss:SideProbeLoss" in card and "muster2026probe" in card
    assert "<code>losses.own_losses.SideProbeLoss.width</code> | <code>4</code>" in card
    capsys.readouterr()
    assert main(["push", "whole", "user/probed", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "would go to user/probed" in shown and "loss.safetensors" not in shown


def test_its_run_is_a_script_too_with_the_same_losses(recipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*TRAINED, "--max-steps", "3", "--set", "arguments.logging_steps=1"]
    assert main(["train", recipe, *words, "--out", "by-command"]) == 0
    capsys.readouterr()
    assert main(["train", recipe, *words, "--out", "by-script", "--print-python"]) == 0
    script = capsys.readouterr().out
    assert "from own_losses import SideProbeLoss" in script
    assert "loss += 0.5 * SideProbeLoss(model, width=4)" in script
    variables: dict[str, object] = {}
    exec(compile(script, "script", "exec"), variables)
    history = variables["trainer"].state.log_history  # type: ignore[attr-defined]
    values = [entry["side_probe"] for entry in history if "loss" in entry]
    assert values == pytest.approx(losses_of("by-command"), abs=2e-4)


def test_what_is_wrong_with_its_import_or_options_is_named(recipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(recipe).read_text(encoding="utf-8")
    for wrong, parts in [
        ("own_loses.SideProbeLoss", ["own_loses", "PYTHONPATH"]),
        ("own_losses.SideProbe", ["own_losses.SideProbe", "cannot be imported"]),
        ("own_losses.Tensor.shape", ["own_losses.Tensor"]),
        ("own_losses.SideProbeLoss: {widht: 4}", ["width"]),
    ]:
        changed = text.replace("own_losses.SideProbeLoss: {weight: 0.5, width: 4}", f"{wrong}: {{}}")
        changed = changed.replace("}: {}", "}")
        Path("wrong.yaml").write_text(changed, encoding="utf-8")
        assert main(["train", "wrong.yaml", *TRAINED, "--max-steps", "3", "--out", "never"]) == 2
        message = capsys.readouterr().err
        assert all(part in message for part in parts), message
        assert not Path("never").exists()
