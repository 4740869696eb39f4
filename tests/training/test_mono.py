"""Text of one language beside parallel text, for masked language modelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.retrieval.training_text import read_all_others
from st_xling.training import TrainingOptions, load_recipe
from st_xling.training.mixture import add_mono, prepare
from st_xling.training.run_folder import RunFolder


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Five sentences: two contiguous pairs, and one over."""
    path = tmp_path / "text.de"
    path.write_text("".join(f"Satz {number}.\n" for number in range(5)), encoding="utf-8")
    return path


def test_contiguous_sentences_stand_beside_the_pairs(text: Path) -> None:
    mixture = prepare({"de-en": parallel_phrases("de", "en", size=7)}, TrainingOptions())
    mono = read_all_others([f"de={text}"])
    mixed = add_mono(mixture, mono, seed=1)
    beside = list(zip(mixed.pairs["mono"], mixed.pairs["mono_next"]))
    assert set(beside) == {("Satz 0.", "Satz 1."), ("Satz 2.", "Satz 3.")}
    assert {beside.count(pair) for pair in set(beside)} == {3, 4}
    assert mixed.pairs["source"][:] == mixture.pairs["source"][:]
    assert add_mono(mixture, mono, seed=1).pairs["mono"][:] == mixed.pairs["mono"][:]


def train(folder: Path, recipe: str, *words: str) -> int:
    tiny = ["--tiny", "hidden_size=16", "--tiny", "layers=2", "--tiny", "vocabulary=200"]
    common = ["--data", "phrasebook:de?size=40", "--dev", "none", "--batch-size", "8", "--max-steps", "2"]
    return main(["train", recipe, "--model", "tiny", *tiny, *common, "--out", str(folder), *words])


def test_the_command_trains_on_it(text: Path, tmp_path: Path) -> None:
    assert train(tmp_path / "run", "amber", "--mono", f"de={text}") == 0
    manifest = RunFolder(tmp_path / "run").read_manifest()
    assert manifest["mono"]["de:text.de"]["rows"] == 5
    losses = manifest["recipe"]["losses"]
    mlm = losses.pop("mlm")
    assert (mlm["columns"], mlm["contiguous"], mlm["positions"]) == ([2, 3], True, "restarting")
    assert {tuple(options["columns"]) for options in losses.values()} == {(0, 1)}
    assert load_recipe("amber").losses["mlm"]["positions"] == "running"  # the tiny encoder's positions end too early


def test_streams_and_single_sentences_are_refused(text: Path) -> None:
    data = {"de-en": parallel_phrases("de", "en", size=7)}
    stream = prepare({"de-en": data["de-en"].to_iterable_dataset()}, TrainingOptions(max_steps=1))
    with pytest.raises(ValueError, match="got a stream"):
        add_mono(stream, read_all_others([f"de={text}"]))
    with pytest.raises(
        ValueError, match="'de:text.de?size=1' must have at least 2 sentences: got 1".replace("?", r"\?")
    ):
        add_mono(prepare(data, TrainingOptions()), read_all_others([f"de={text}?size=1"]))


@pytest.mark.parametrize(
    ("recipe", "words", "message"),
    [
        ("tr", [], "monolingual text is for masked language modelling: tr has translation_ranking"),
        ("sf", [], "--mono is for encoders"),
    ],
)
def test_what_is_refused(
    recipe: str, words: list[str], message: str, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path / "run", recipe, "--mono", f"de={text}", *words) == 2
    assert message in capsys.readouterr().err
