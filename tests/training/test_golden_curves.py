"""Every recipe, option of training and README's trainer give the losses that they gave before training was moved.

The numbers in ``golden_curves.json`` are of 20 steps on the phrasebook in float32 on one thread, each with the commit
and the versions that it was recorded with, by ``python -m tests.training.record_golden_curves``. A curve that has
changed on purpose since its first record has a note that says why.
"""

import itertools
import json
from pathlib import Path

import pytest

from st_xling.training.recipe_files import recipe_names
from tests.training.golden_curves import COMMANDS, NAMES, RECORDED, Curve, by_command, loss_curve

CURVES = {name: entry["losses"] for name, entry in json.loads(RECORDED.read_text(encoding="utf-8"))["curves"].items()}
EVERYDAY = {
    "dap",
    "amber",
    "semacl-langcl",
    "mexma",
    "distill",
    "dap, loaded, 5 steps of heads",
    "tr, gradient cache",
    "tr, mined negatives",
    "sf",
    "ir-semacl",
    "xpr-mixed",
    "CrossLingualTrainer, TR",
}
"""A run of each family of losses, and the options that most others stand on."""

SENSITIVE = {
    "tr, LoRA",
    "ir",
    "ir-semacl",
    "ir-langcl",
    "ir-semacl-langcl",
    "ir-semacl-langcl, shared encoder, other text",
}
"""Runs whose losses fall so fast that rounding grows: with older instructions (``ATEN_CPU_CAPABILITY=default``, SSE4.2
in MKL and oneDNN) or two threads they differ by up to 1.1e-5, all others by at most 1.4e-6."""

SAME = [
    {"tr", "tr, gradient cache"},
    {"dap", "dap, gradient cache", "dap, stream", "dap, turned to English"},
    {"dap, pivot de", "dap, no pivot"},
    {"CrossLingualTrainer, TR", "CrossLingualTrainer, TR, gradient cache"},
]
"""Options that change how a loss is computed or its text is read, and not the loss: without dropout, the gradient
cache, a stream and pairs that are turned to the pivot give the same curve."""


def differences(curve: Curve, recorded: Curve, *, tolerance: float = 1e-5) -> list[str]:
    """Say where two curves differ.

    Args:
        curve: What a run has logged.
        recorded: What it shall be.
        tolerance: Of the loss, relative or absolute, whichever is larger. Its components are logged with four digits
            after the point, the last of which may be rounded either way.
    """
    if list(curve) != list(recorded):
        return [f"expected the losses {', '.join(recorded)}: got {', '.join(curve)}"]
    messages = []
    for name, values in recorded.items():
        if len(curve[name]) != len(values):
            messages.append(f"{name}: expected {len(values)} steps, got {len(curve[name])}")
        least = tolerance if name == "loss" else 1.01e-4
        for step, (got, expected) in enumerate(zip(curve[name], values), 1):
            if got != pytest.approx(expected, rel=tolerance, abs=least):
                messages.append(f"{name}, step {step}: expected {expected}, got {got}")
                break
    return messages


def everyday_first(names: list[str]) -> list[object]:
    return [name if name in EVERYDAY else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", everyday_first(NAMES))
def test_the_losses_are_those_recorded(name: str, tmp_path: Path) -> None:
    tolerance = 5e-5 if name in SENSITIVE else 1e-5
    assert differences(loss_curve(name, tmp_path), CURVES[name], tolerance=tolerance) == []


def test_every_recipe_has_a_curve() -> None:
    kinds = ("encoder", "adapter", "retriever", "cross-encoder")
    shipped = {name for kind in kinds for name in recipe_names(kind)}
    assert shipped <= set(COMMANDS) and list(CURVES) == NAMES
    assert all(COMMANDS[name][0] == name for name in shipped)


def test_every_option_has_a_curve_of_its_own() -> None:
    """An option that a run ignored would have the curve of the run without it."""
    for first, second in itertools.combinations(NAMES, 2):
        alike = not differences({"loss": CURVES[first]["loss"]}, {"loss": CURVES[second]["loss"]})
        assert alike is any({first, second} <= names for names in SAME), f"{first} | {second}"


RECIPE_OF_TERM: dict[str, str] = {}
"""Each term of a sum of losses, whose weight can be set → the first recipe that has it. No weight is 0.5."""
for curve_name, curve in CURVES.items():
    for term in curve:
        if curve_name in COMMANDS and COMMANDS[curve_name][0] == curve_name and term != "loss":
            RECIPE_OF_TERM.setdefault(term, curve_name)

SECTIONS = {"replay": "data"}
"""Terms whose weight is not in the section ``losses``."""

OTHERS = [
    ("tr", "losses.translation_ranking.margin=0.31"),
    ("tr", "losses.translation_ranking.scale=20.1"),
    ("tr-tlm", "losses.tlm.mask_probability=0.16"),
    ("mexma", "losses.cross_unmasking.mask_probability=0.41"),
    ("semacl", "losses.semantic_contrastive.temperature=0.051"),
    ("sf", "loss.margin=1.01"),
    ("sf", "adapter.dropout=0.21"),
    ("xpr-mixed", "loss=mse"),
    ("xpr-mixed", "negatives.per_positive=2"),
    ("xpi", "loss=mse"),
    ("xpr-merged", "arguments.learning_rate=0.00051"),
    ("xpr-cascade", "arguments.learning_rate=0.00051"),
    ("ir", "losses.in_batch_ranking.scale=20.1"),
]


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        OTHERS[0],
        *(pytest.param(*case, marks=pytest.mark.slow) for case in OTHERS[1:]),
        *(
            pytest.param(name, f"{SECTIONS.get(term, 'losses')}.{term}.weight=0.5", marks=pytest.mark.slow)
            for term, name in RECIPE_OF_TERM.items()
        ),
    ],
)
def test_a_curve_tells_other_settings_apart(name: str, setting: str, tmp_path: Path) -> None:
    """A curve that does not depend on its loss would guard nothing."""
    curve = by_command([*COMMANDS[name], "--set", setting], tmp_path)
    messages = differences(curve, CURVES[name])
    assert messages and messages[0].startswith("loss, step")
