"""A run is resumed on the model and the data that it was started with, however these are named."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from st_xling.training import load_recipe, train
from st_xling.training.reranker import load_cross_encoder_recipe, train_cross_encoder
from tests.conftest import PAIRS

OTHER = "has other weights or files than when that run was started"


@pytest.fixture
def start(saved_encoder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved_encoder, tmp_path / "start"))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    return path


def words(start: Path | str, pairs: Path | str, out: Path, *options: str, recipe: str = "tr") -> list[str]:
    command = ["train", recipe, "--model", str(start), "--data", f"de-en={pairs}", "--dev", "none", "--out", str(out)]
    return [*command, "--max-steps", "2", "--batch-size", "4", *options]


def change_weights(folder: Path) -> None:
    """One weight, in a file of the same size and time."""
    path = folder / "model.safetensors"
    times = path.stat()
    weights = load_file(path)
    name = next(name for name in weights if "query.weight" in name)
    weights[name] = weights[name].clone()
    weights[name][0, 0] += 1.0
    save_file(weights, path, metadata={"format": "pt"})
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("recipe", ["tr", "sf"])
def test_other_weights_under_the_same_name_are_refused(
    recipe: str, start: Path, pairs: Path, tmp_path: Path, capsys: Any
) -> None:
    """The model in a folder was replaced while its training was interrupted: the run went on with other weights."""
    out = tmp_path / "run"
    options = ["--layer", "1"] if recipe == "sf" else []
    assert main(words(start, pairs, out, *options, recipe=recipe)) == 0
    kept = load_file(out / "model.safetensors")
    change_weights(start)
    capsys.readouterr()
    assert main(words(start, pairs, out, "--resume", *options, recipe=recipe)) == 2
    assert f"the model {start} {OTHER}" in capsys.readouterr().err
    assert all(torch.equal(kept[name], tensor) for name, tensor in load_file(out / "model.safetensors").items())


def test_another_teacher_is_refused_before_it_encodes(start: Path, pairs: Path, tmp_path: Path, capsys: Any) -> None:
    """A run resumed with a changed teacher was refused, too, but after it had encoded all texts."""
    teacher = Path(shutil.copytree(start, tmp_path / "teacher"))
    cache = tmp_path / "cache"
    options = ["--teacher", str(teacher), "--cache", str(cache)]
    assert main(words(start, pairs, tmp_path / "run", *options, recipe="distill")) == 0
    encoded = sorted(cache.iterdir())
    assert encoded
    change_weights(teacher)
    capsys.readouterr()
    assert main(words(start, pairs, tmp_path / "run", "--resume", *options, recipe="distill")) == 2
    shown = capsys.readouterr().err
    assert f"the teacher has other weights or files than {teacher} had when that run was started" in shown
    assert sorted(cache.iterdir()) == encoded


def test_a_given_model_is_told_by_its_weights(start: Path, tmp_path: Path) -> None:
    recipe = load_recipe("tr", tiny=True, overrides={"arguments.max_steps": 1})
    rows = Dataset.from_dict({"source": [row[0] for row in PAIRS], "target": [row[1] for row in PAIRS]})
    train(recipe, rows, tmp_path / "run", model=SentenceTransformer(str(start), device="cpu"))
    change_weights(start)
    with pytest.raises(ValueError, match=OTHER):
        train(recipe, rows, tmp_path / "run", model=SentenceTransformer(str(start), device="cpu"), resume=True)


def test_the_same_model_by_another_path_is_the_same(
    start: Path, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """./start for its absolute path, and a folder that was moved, with another card, are the same files."""
    out = tmp_path / "run"
    assert main(words(start, pairs, out, "--lora", "--lora-keep")) == 0
    monkeypatch.chdir(tmp_path)
    (start / "README.md").write_text("a card", encoding="utf-8")
    assert main(words("./start", "pairs.tsv", out, "--lora", "--lora-keep", "--resume")) == 0
    start.rename(tmp_path / "moved")
    assert main(words("moved", "./pairs.tsv", Path("run"), "--lora-keep", "--resume")) == 0
    # A model of adapters is known by its base, too.
    assert main(words("run", "pairs.tsv", tmp_path / "second")) == 0
    shutil.copytree("run", "copy")
    assert main(words("copy", "pairs.tsv", tmp_path / "second", "--resume")) == 0
    change_weights(Path("copy/training/base"))
    assert main(words("copy", "pairs.tsv", tmp_path / "second", "--resume")) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_changed_data_are_noticed(stream: bool, start: Path, pairs: Path, tmp_path: Path, capsys: Any) -> None:
    """A file that was replaced by one of equal size and time was read from the cache."""
    out = tmp_path / "run"
    options = ["--stream"] if stream else []
    assert main(words(start, pairs, out, *options)) == 0
    before = pairs.stat()
    text = pairs.read_text(encoding="utf-8")
    pairs.write_text(text.swapcase(), encoding="utf-8")
    os.utime(pairs, ns=(before.st_atime_ns, before.st_mtime_ns))
    capsys.readouterr()
    assert main(words(start, pairs, out, "--resume", *options)) == 2
    assert "data.de-en.sha8 differ" in capsys.readouterr().err


def test_changed_labels_are_noticed(tmp_path: Path) -> None:
    """The texts of labeled pairs were compared, their labels were not."""
    recipe = load_cross_encoder_recipe("xpr-mixed", tiny=True, overrides={"arguments.max_steps": 1})
    columns = {"query": ["Hund", "Katze"], "passage": ["dog", "cat"], "label": [1, 0]}
    columns |= {"query_language": ["de", "de"], "passage_language": ["en", "en"]}
    options: Any = {"model": "tiny", "tiny": {"hidden_size": 16, "vocabulary": 100}}
    train_cross_encoder(recipe, [Dataset.from_dict(columns)], tmp_path / "run", **options)
    swapped = Dataset.from_dict({**columns, "label": [0, 1]})
    with pytest.raises(ValueError, match="labels.xpr-mixed differ"):
        train_cross_encoder(recipe, [swapped], tmp_path / "run", resume=True, **options)
