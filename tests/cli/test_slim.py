"""``st-xling slim``: the folder it leaves, what it prints, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from tests.models.slim_encoders import encoder


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slim") / "big"
    encoder("tiny").save_pretrained(str(folder))
    (folder / "training").mkdir()
    manifest = {"recipe": {"name": "tr"}, "command": "st-xling train tr", "finished": True}
    (folder / "training" / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / "results.json").write_text('{"training": {"steps": 3}, "evaluations": []}', encoding="utf-8")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_slim_model_with_its_report(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files_before = files(source)
    out = tmp_path / "deep" / "small"
    words = f"slim {source} --languages de,en --data phrasebook:de?size=300".split()
    assert main([*words, "--out", str(out), "--json", str(tmp_path / "f.json")]) == 0
    printed = capsys.readouterr().out
    assert files(source) == files_before
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert list(results) == ["slim"]
    assert json.loads((tmp_path / "f.json").read_text(encoding="utf-8")) == results
    slim = results["slim"]
    assert (slim["source"], slim["langs"], slim["relation"]) == ("big", ["de", "en"], "quantized")
    assert slim["command"].startswith("st-xling slim ")
    assert "--json" not in slim["command"]
    assert printed.splitlines()[-1] == slim["signature"]
    report = slim["report"]
    assert report["texts"]["de"] == report["texts"]["en"] == 300
    assert report["parity"]["same_share"] == 1
    assert report["parity"]["texts"] == 600
    for label in ("tokens", "parameters", "100.0 % of 600 texts"):
        assert label in printed
    assert json.loads((out / "training" / "run.json").read_text(encoding="utf-8"))["recipe"] == {"name": "tr"}
    model = SentenceTransformer(str(out), device="cpu")
    assert len(model.tokenizer) == report["size"]["tokens"]["after"] < report["size"]["tokens"]["before"]
    assert not [path for path in out.parent.iterdir() if path != out]


def test_text_of_other_languages_is_left_out(source: Path, tmp_path: Path) -> None:
    words = f"slim {source} --languages deu --data phrasebook:de?size=100 --out {tmp_path}/small".split()
    assert main([*words, "--json", str(tmp_path / "f.json")]) == 0
    report = json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))["slim"]["report"]
    assert report["texts"] == {"deu": 100}


def test_the_models_options_become_the_slim_models_own(source: Path, tmp_path: Path) -> None:
    words = f"slim {source} --languages de,en --data phrasebook:de?size=80 --out {tmp_path}/small".split()
    assert main([*words, "--layer", "1", "--prompt", "query: ", "--dtype", "bfloat16"]) == 0
    slim = json.loads((tmp_path / "small" / "results.json").read_text(encoding="utf-8"))["slim"]
    assert "|layer:1|prompt:query: |dtype:bfloat16|data:" in slim["signature"]
    small: Any = SentenceTransformer(str(tmp_path / "small"), device="cpu")
    assert small[0].auto_model.config.num_hidden_layers == 1
    assert small.dtype == torch.bfloat16
    assert small.prompts[small.default_prompt_name] == "query: "


def test_text_is_looked_at_before_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A language without text, or a file without languages, was named once the model was loaded."""
    (tmp_path / "m").mkdir()  # no model can be loaded from it
    (tmp_path / "p.tsv").write_text("Guten Morgen.\tGood morning.\n", encoding="utf-8")
    pairs = str(tmp_path / "p.tsv")
    for languages, data, message in (
        ("de,fr", f"de-en={pairs}", "got none of fr (there is text of: de, en)"),
        ("de,en", pairs, "are not known; put them before it, as in de-en="),
        (",", f"de-en={pairs}", "languages are needed: got none"),
    ):
        words = ["slim", str(tmp_path / "m"), "--languages", languages, "--data", data, "--out", str(tmp_path / "o")]
        assert main(words) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_folders_that_may_not_be_written_to(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["slim", str(source), "--data", "phrasebook:de?size=60", "--languages"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years", encoding="utf-8")
    out = tmp_path / "small"
    assert main([*words, "de,en", "--out", str(out)]) == 0
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    files_before = files(tmp_path)
    for folder, languages, message in (
        (source, "de,en --overwrite", "must be a folder of its own"),
        (source.parent, "de,en", "must lie apart from the model"),
        (source / "small", "de,en", "must lie apart from the model"),
        (tmp_path / "mine", "de,en --overwrite", "did not write"),
        (tmp_path / "mine" / "thesis.txt", "de,en", "is a file"),
        (out, "de,en", "use --overwrite to replace it"),
        (out, "de,en,fr --overwrite", "got none of fr"),
    ):
        assert main([*words, *languages.split(), "--out", str(folder)]) == 2
        assert message in capsys.readouterr().err
    assert files(tmp_path) == files_before
    assert main([*words, "de,en", "--out", str(out), "--overwrite"]) == 0
    assert (out / "notes.txt").exists()
    assert (out / "model.safetensors").is_file()
