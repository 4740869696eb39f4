"""``st-xling card``: options, faults, and the Hub's validator on a loopback server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import ModelCard

from st_xling.cli import main
from st_xling.evaluation.results import read_kept_figures
from st_xling.hub import card_text
from st_xling.hub.card.run_command import absolute_paths, flag_values, shown_command
from tests.processes import run_together


def test_options_reach_the_card_and_stay(copy_of, capsys, tmp_path):
    folder = copy_of("encoder")
    (tmp_path / "own.bib").write_text("@misc{own}", encoding="utf-8")
    words = ["--license", "apache-2.0", "--data-license", "de-en=cc-by-2.0", "--repo", "me/mine", "--author", "Ada"]
    words += ["--languages", "de,fr", "--intended-use", "Tests.", "--citation", str(tmp_path / "own.bib")]
    assert main(["card", str(folder), *words]) == 0
    assert f"the card is {folder / 'README.md'}" in capsys.readouterr().out
    assert main(["card", str(folder)]) == 0
    text = (folder / "README.md").read_text(encoding="utf-8")
    data = ModelCard(text).data
    assert data.license == "apache-2.0" and data.language == ["de", "fr"]
    assert "| cc-by-2.0 |" in text and "Ada" in text and "## Intended use\n\nTests." in text and "@misc{own}" in text
    assert json.loads((folder / "card.json").read_text(encoding="utf-8"))["said"]["repo_id"] == "me/mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data-license", "de-en"], "takes NAME=LICENCE"),
        (["--data-license", "xx-yy=mit"], "got xx-yy; there are de-en, fr-en"),
        (["--license", "not one"], "a licence is an identifier"),
        (["--repo", "a/b/c"], "repo_id must be an id on the Hub"),
        (["--languages", "Deutsch"], "languages are codes"),
    ],
)
def test_faults_change_nothing(words, message, copy_of, capsys):
    folder = copy_of("encoder")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert main(["card", str(folder), *words]) == 2
    assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_folder_without_a_model_is_refused(tmp_path, capsys):
    assert main(["card", str(tmp_path)]) == 2
    assert "expected the folder of a model" in capsys.readouterr().err
    assert main(["card", "owner/name"]) == 2
    assert "there is no folder owner/name" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_broken_card_file_is_named(copy_of, capsys):
    folder = copy_of("encoder")
    (folder / "card.json").write_text('{"version": 7}', encoding="utf-8")
    assert main(["card", str(folder)]) == 2
    assert "card.json must hold what st-xling card wrote" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("results.json", {"training": {"machine": 7}}, "training.machine, got 7"),
        ("results.json", {"leak": {"sets": {}}}, "must be as st-xling wrote them"),
        ("results.json", {"slim": {"langs": ["de"]}}, "must be as st-xling wrote them"),
        ("training/run.json", {"command": 5}, "command, got 5"),
        ("training/run.json", {"recipe": []}, "recipe, got []"),
        ("training/run.json", {"data": {"a": 5}}, "data.a, got 5"),
        ("training/run.json", {"data": []}, "data, got []"),
        ("card.json", {"version": 1, "said": {"title": 5}}, "said.title, got 5"),
        ("card.json", {"version": 1, "said": {}, "found": {"data": 5}}, "found.data, got 5"),
        ("mining.json", {"version": 1, "pairs": {"de-en": {"threshold": 10**400}}}, "de-en"),
        ("config_sentence_transformers.json", {"__version__": 5}, "__version__, got 5"),
    ],
)
def test_damaged_files_are_named(name, content, place, copy_of, capsys):
    folder = copy_of("encoder")
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    assert main(["card", str(folder)]) == 2
    error = capsys.readouterr().err
    assert place in error and name in error


def test_cards_and_kept_figures_at_once(copy_of, tmp_path):
    """What each process keeps is there in the end, and the card is whole."""
    folder = copy_of("encoder")
    keep = (
        "import sys; from st_xling.evaluation.results import *; from st_xling.hub import write_card\n"
        "for number in range(8):\n"
        "    keep_figures(sys.argv[1], KeptFigures('xsim', {}, f'{sys.argv[2]}|{number}', 'c'))\n"
        "    write_card(sys.argv[1])\n"
    )
    for done in run_together([["-c", keep, str(folder), name] for name in "ab"], tmp_path / "out", seconds=240):
        assert done.status == 0, done.stderr
    assert len(read_kept_figures(folder)) == 16
    assert (folder / "README.md").read_text(encoding="utf-8") == card_text(folder)
    assert not list(folder.rglob("*.tmp"))


def test_commands_are_shown_without_what_one_machine_needs():
    typed = "st-xling train dap --data 'x y.tsv' --out /tmp/a/run --overwrite --json=f.json --cache c --resume"
    assert shown_command(typed) == "st-xling train dap --data 'x y.tsv' --out run"
    assert shown_command("st-xling evaluate bucc m --keep", repo_id="a/b") == "st-xling evaluate bucc a/b"
    assert shown_command("an 'open quote") == "an 'open quote"
    assert flag_values("x --data a --data=b=c --dat d", "--data") == ["a", "b=c"]
    assert absolute_paths(["x --data de-en=/abs/a.tsv,b ~/c d/e f=g"]) == ["de-en=/abs/a.tsv,b", "~/c"]


def test_places_on_this_machine_are_warned_about(copy_of, caplog):
    folder = copy_of("encoder")
    run = json.loads((folder / "training" / "run.json").read_text(encoding="utf-8"))
    run["command"] = "st-xling train dap --data de-en=/here/alone.tsv --out run"
    (folder / "training" / "run.json").write_text(json.dumps(run), encoding="utf-8")
    assert main(["card", str(folder)]) == 0
    assert "name places on this machine: de-en=/here/alone.tsv" in caplog.text


VALIDATE = """
import sys
from huggingface_hub import constants
from st_xling.hub.card.validate import validate_online

for number, path in enumerate(sys.argv[1:]):
    if number == 2:
        constants.ENDPOINT = "http://127.0.0.1:9"  # where nobody answers
    try:
        validate_online(path)
        print("fine")
    except (ValueError, OSError) as error:
        print(error)
"""


class Validator(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, asked))  # type: ignore[attr-defined]
        bad = "license: nonsense" in asked["content"]
        self.send_response(400 if bad else 200)
        self.end_headers()
        self.wfile.write(b'"license" must be one of ...' if bad else b"{}")

    def log_message(self, *_: object) -> None:
        pass


def test_the_validator_of_the_hub_is_asked(copy_of, tmp_path):
    good, bad = copy_of("encoder") / "README.md", tmp_path / "bad.md"
    bad.write_text("---\nlicense: nonsense\n---\n# x\n", encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), Validator) as server:
        server.asked = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HUB_OFFLINE": "0"}
        command = [sys.executable, "-c", VALIDATE, str(good), str(bad), str(good)]
        done = subprocess.run(command, env={**os.environ, **endpoint}, capture_output=True, text=True, timeout=120)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    fine, refused, absent = done.stdout.splitlines()
    assert fine == "fine" and f'{bad}: the Hub says: "license" must be one of' in refused
    assert "was not validated: http://127.0.0.1:9 cannot be asked" in absent
    path, asked = server.asked[0]  # type: ignore[attr-defined]
    assert path == "/api/validate-yaml" and asked["repoType"] == "model"
    assert asked["content"] == good.read_text(encoding="utf-8")


def test_offline_the_validator_is_not_asked(copy_of, capsys):
    assert main(["card", str(copy_of("encoder")), "--validate"]) == 2  # HF_HUB_OFFLINE is set for all tests
    assert "was not validated" in capsys.readouterr().err


def test_commands_are_shown_as_they_were_given():
    cut = "st-xling slim enc --langs de,en --text phrasebook:de --keep 'query: ' --out /home/me/small --overwrite"
    assert shown_command(cut) == "st-xling slim enc --langs de,en --text phrasebook:de --keep 'query: ' --out small"
    mixed = "st-xling train tr --data=de-en=a/b --data fr-en=phrasebook --data es-en=c.tsv --out m"
    assert flag_values(mixed, "--data") == ["de-en=a/b", "fr-en=phrasebook", "es-en=c.tsv"]


def test_an_empty_citation_takes_it_back(copy_of, tmp_path):
    folder, entry = copy_of("encoder"), tmp_path / "mine.bib"
    entry.write_text("@misc{mine, title = {Mine}}", encoding="utf-8")
    assert main(["card", str(folder), "--citation", str(entry)]) == 0
    assert "@misc{mine" in (folder / "README.md").read_text(encoding="utf-8")
    assert main(["card", str(folder), "--citation", ""]) == 0
    assert "@misc{mine" not in (folder / "README.md").read_text(encoding="utf-8")
