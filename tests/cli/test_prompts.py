"""A model with prompts in its configuration of which none is used is named, once."""

import json
from pathlib import Path

import pytest

from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.models import encoding, load_encoder
from st_xling.utils.lazy_model import ST_CONFIG, configured_prompts

FACT = "has prompts (query, passage), and none is used; to use one: --prompt 'query: '"


@pytest.fixture
def prompted(encoder: Path) -> Path:
    """An encoder with the prompts of E5, of which none is the default."""
    encoding._warn_of_unused_prompts.cache_clear()
    path = encoder / ST_CONFIG
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings |= {"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": None}
    path.write_text(json.dumps(settings), encoding="utf-8")
    return encoder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs = parallel_phrases("de", "en", size=30)
    (tmp_path / "a.de").write_text("\n".join(pairs["source"]), encoding="utf-8")
    (tmp_path / "a.en").write_text("\n".join(pairs["target"]), encoding="utf-8")
    lines = [f"{source}\t{target}\n" for source, target in zip(pairs["source"], pairs["target"])]
    (tmp_path / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    return tmp_path


COMMANDS = {
    "mine": "mine a.de a.en --model my-encoder --disable-filter all --out out",
    "score": "score pairs.tsv --model my-encoder --out out",
    "encode": "encode my-encoder a.de --out out",
    "align-documents": "align-documents a.de a.en --model my-encoder --out out --max-size 2",
    "evaluate": "evaluate tatoeba my-encoder --data de-en=pairs.tsv",
    "postprocess": "postprocess my-encoder --data de-en=pairs.tsv --center joint --out out",
    "train": "train tr --model my-encoder --data de-en=pairs.tsv --dev none --max-steps 1 --batch-size 4 --out out",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_prompts_of_which_none_is_used(
    name: str, prompted: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """E5 was mined with and evaluated without its prompt, and nothing said that it has one."""
    monkeypatch.chdir(folder)
    assert main(COMMANDS[name].split()) == 0
    assert capsys.readouterr().err.count(FACT) == 1


@pytest.mark.parametrize("options", [["--prompt", "query: "], ["--prompt-name", "query"], ["--prompt", ""]])
def test_a_choice_needs_no_word(
    options: list[str],
    prompted: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    for name in ("mine", "evaluate"):
        assert main([*COMMANDS[name].split(), *options]) == 0
        assert "has prompts" not in capsys.readouterr().err


def test_a_prompt_that_the_model_lacks_is_told_before_it_is_loaded(
    prompted: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (prompted / "modules.json").write_text("broken", encoding="utf-8")
    assert main([*COMMANDS["mine"].split(), "--prompt-name", "pasage"]) == 2
    assert "has no prompt 'pasage': it has 'query', 'document', 'passage'" in capsys.readouterr().err


def test_prompts_without_loading_are_those_of_the_model(prompted: Path, saved_encoder: Path) -> None:
    for path in (prompted, saved_encoder):
        assert configured_prompts(str(path)) == load_encoder(str(path), device="cpu").prompts
    assert configured_prompts(str(prompted / "absent")) == {"query": "", "document": ""}


@pytest.mark.parametrize("prompts", ["null", "[]"])
def test_a_configuration_without_prompts(prompts: str, tmp_path: Path) -> None:
    """``--prompt-name`` of a model whose file has ``"prompts": null`` ended with a traceback."""
    (tmp_path / ST_CONFIG).write_text(f'{{"prompts": {prompts}}}', encoding="utf-8")
    assert configured_prompts(str(tmp_path)) == {"query": "", "document": ""}
