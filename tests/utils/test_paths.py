"""An output never replaces an input: through links, in folders that are read, of every command."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from st_xling.cli import main
from st_xling.cli.app import INPUTS, OUTPUTS
from st_xling.utils.paths import check_outputs, existing_paths, shared_json, shown_command, without_folders
from tests.commands import COMMANDS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts, a model's folder, and links to both."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.de", "a.en", "model/model.safetensors"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(name)
    Path("link").symlink_to("a.de")
    Path("twin").symlink_to("model")
    return tmp_path


def test_what_a_spec_names(folder: Path) -> None:
    specs: list[Any] = ["de-en=a.de,a.en?size=20&seed=1", ["de=a.de", "a.en"], "de-en=a"]
    assert [sorted(existing_paths(spec).values()) for spec in specs] == [["a.de", "a.en"]] * 3
    assert list(existing_paths(Path("model")).values()) == ["model"]
    assert not existing_paths(["phrasebook:de?size=20", "user/model", None])


@pytest.mark.parametrize("path", ["link", "twin/model.safetensors", "model/../a.de"])
def test_inputs_are_never_replaced(path: str, folder: Path) -> None:
    with pytest.raises(ValueError, match="--out must .*(a.de|model)"):
        check_outputs({"--out": path}, ["de-en=a.de,a.en", "model"])


def test_what_is_allowed(folder: Path) -> None:
    """New files, old results, files in a folder that is not read, streams and devices."""
    Path("old.tsv").write_text("")
    files = {"--out": "old.tsv", "--json": Path("model/new.json"), "--rejects": "new/rejects.jsonl"}
    check_outputs(files, ["a.de", "model"], folders={"--work": "old.tsv.work"})
    check_outputs({"--out": io.BytesIO(), "--json": None, "--rejects": "/dev/null"}, ["/dev/null", "a.de"])
    check_outputs({"--out": "-"}, ["a.de"])


@pytest.mark.parametrize(
    ("files", "folders", "message"),
    [
        ({"--out": "model"}, {}, "--out must be a file: model is a folder"),
        ({"--json": "store/manifest.json"}, {"--out": "store"}, "--json must lie outside --out"),
        ({"--json": "a.de/x.json"}, {}, "a.de is a file"),
        ({}, {"--out": "twin"}, "--out must be a folder of its own: twin .* model"),
        ({"--out": "w"}, {"--work": "w"}, "--out must be a file of its own: w is --work already"),
        ({}, {"--out": "a.en/x"}, "--out must lie in a folder: .*a.en is a file"),
    ],
)
def test_what_is_refused(files: dict[str, Any], folders: dict[str, Any], message: str, folder: Path) -> None:
    with pytest.raises(ValueError, match=message):
        check_outputs(files, ["a.de", "model"], folders=folders)


def test_results_of_an_earlier_command_are_replaced_in_a_folder_that_is_read(folder: Path) -> None:
    """``--json model/tatoeba.json`` a second time; the results that a card is made of are the model's own."""
    for name, content in (("t.json", {"tatoeba": {}, "signature": "…"}), ("results.json", {"training": {}})):
        (folder / "model" / name).write_text(json.dumps(content))
    check_outputs({"--json": "model/t.json"}, ["model"])
    with pytest.raises(ValueError, match="model/results.json is a file of the input model"):
        check_outputs({"--json": "model/results.json"}, ["model"])


NO_PATHS = {"KEY=VALUE", "NAME=X", "NAME=ID", "X", "LIST", "CODE", "ID", "OWNER/NAME", "BRANCH", "QUERY", "REPO"}
NO_PATHS |= {"TABLE", "LABEL", "METHOD"}
NOT_PATHS = {"split", "device", "name", "revision", "message", "prompt", "prompt_name", "passage_prompt"}
NOT_PATHS |= {"teacher_prompt", "title", "limits"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_text_option_is_a_path_or_is_known_to_be_none(name: str) -> None:
    """The check goes by metavars: an option whose metavar is new would escape it."""
    for option in COMMANDS[name].params:
        metavar = str(option.metavar).removesuffix("...")
        if option.name in OUTPUTS - {"json"}:
            assert metavar in {"DIR", "STORE", "FILE"}, option.name
        elif option.type_descriptor.annotation is str and option.name not in NOT_PATHS:
            assert metavar in INPUTS | NO_PATHS, option.name


LINES = [
    "mine a.de a.en --model model --out o.tsv --json a.de",
    "mine a.de a.en --model model --out model/model.safetensors",
    "mine a.de a.en --source-embeddings st --target-embeddings st --out st/shard-000000.safetensors",
    "encode model a.de --out st --json a.de",
    "train dap --model model --data de-en=gold.tsv --out model --overwrite",
    "compare model --data phrasebook:de?size=20 --out model",
    "train distill --model tiny --teacher model --data de-en=gold.tsv --out o --json model/model.safetensors",
    "transfer xnli model --train en=gold.tsv --test en=gold.tsv --out model --overwrite",
]


@pytest.mark.parametrize("command", LINES)
def test_no_command_replaces_what_it_reads(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("gold.tsv", "de.npy", "en.npy", "st/manifest.json", "st/shard-000000.safetensors"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(name)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(command.split()) == 2
    assert "must " in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/me/my text/a.tsv", "a.tsv"),
        ("de-en=/home/me/a.de,~/b/a.en?size=3", "de-en=a.de,a.en?size=3"),
        ("C:\\Users\\me\\a.tsv", "a.tsv"),
        ("file:///home/me/a.tsv", "a.tsv"),
        ("tatoeba|data:/data/x@12|k:4", "tatoeba|data:x@12|k:4"),
        ("st-xling mine '/a b/c.de' d/e.en --out ~me/f", "st-xling mine c.de d/e.en --out f"),
        *((text, text) for text in ("https://x.y/a/b", "s3://a/b", "user/name", "../a/b", "a / b", "~5", "st-xling '")),
    ],
)
def test_what_others_read_names_no_folder(text: str, shown: str, tmp_path: Path) -> None:
    assert without_folders(text) == without_folders(shown) == shown
    (tmp_path / "a.json").write_text(json.dumps({text: [text, 1, None]}))
    assert json.loads(shared_json(tmp_path / "a.json")) == {shown: [shown, 1, None]}
    if text == shown:
        assert shared_json(tmp_path / "a.json") == (tmp_path / "a.json").read_bytes()


def test_published_commands_hide_passwords() -> None:
    """``push`` published the command of a run with the token of its data's address."""
    command = "st-xling train tr --data 'de-en=HTTPS://me:p@ss/word@host/a.tsv?token=secret' --out run"
    assert shown_command(command) == "st-xling train tr --data 'de-en=HTTPS://***@host/a.tsv?token=***' --out run"
