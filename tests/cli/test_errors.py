"""What cannot be is one line on stderr that says why, before anything is written."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from st_xling.cli import main
from tests.conftest import PAIRS
from tests.retrieval_files import json_lines, lines, translated

DATA = "--data phrasebook:vi?size=8"
RECIPES = {
    "TR": f"train tr --model tiny {DATA}",
    "IR": "train ir --model tiny --data queries=queries.jsonl",
    "BUCC": "evaluate bucc encoder --data bucc --pairs",
    "MINE": "mine a.de a.en --model encoder --out out",
    "SLIM": "slim encoder --data phrasebook:de?size=60 --out out --languages",
}
ERRORS = {
    "TR --set arguments.epoch=2": "arguments has no key 'epoch'",
    "TR --set losses.translation_ranking.margn=1": "did you mean 'margin'",
    "TR --set name=[a": "--set name= takes a YAML value: got '[a'",
    "TR --batch-size 0": "--batch-size must be at least 1: got 0",
    "TR --model encoder --tiny layers=1": "the model 'tiny' only",
    "TR --model https://me:secret@host/model": "'https://***@host/model'",
    "train tr --model tiny --data http://me:secret@host/a.tsv": "http:/***@host/a.tsv",
    # Options of other kinds of recipes
    "TR --parallel x": "--parallel is for retrievers",
    "TR --layer 3": "--layer is for adapters: got the recipe of an encoder tr",
    "IR --stream": "--stream is for encoders: got the recipe of a retriever ir",
    # Evaluation
    "evaluate tatoeba encoder --data tatoeba --languages deu,xx": "a group of them (xnli14, full28",
    "BUCC fr-en": "bucc/fr-en.",
    "evaluate bucc encoder --data tatoeba": "files xx-yy.test.xx, .yy and .gold: tatoeba has none.",
    "evaluate bucc encoder --data bucc2018": "https://comparable.limsi.fr/bucc2018",
    "evaluate retrieval bm25 --data de=xquad-r": "https://github.com/google-research-datasets/lareqa",
    "evaluate retrieval bm25 --data vi=beir": "not in the corpus, such as p98",
    "evaluate retrieval bm25 --data vi=absent --keep": "--keep does not apply: bm25 is no encoder",
    # Mining
    "MINE --disable-filter all --k 0": "--k must be at least 1: got 0",
    "MINE --source-embeddings absent.store": "there is no folder absent.store",
    "MINE --source-language de --target-language en --threshold published": "it has none; give a number, or calibrate",
    # Slim models
    "SLIM de,fr": "got none of fr (there is text of: de, en)",
}


def words_of(command: str) -> list[str]:
    """Return the words of a command whose first word may be a key of ``RECIPES``."""
    first, _, others = command.partition(" ")
    return shlex.split(f"{RECIPES.get(first, first)} {others}")


@pytest.fixture(scope="module")
def inputs(saved_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    others, english = zip(*PAIRS)
    (folder / "encoder").symlink_to(saved_encoder)
    lines(folder / "a.de", others)
    lines(folder / "a.en", english)
    json_lines(folder / "queries.jsonl", [{"query": query, "passage": text} for text, query in PAIRS])
    for path in ("tatoeba/tatoeba.deu-eng.deu", "tatoeba/tatoeba.deu-eng.eng"):
        (folder / path).parent.mkdir(exist_ok=True)
        lines(folder / path, others)
    (folder / "bucc").mkdir()
    for name, rows in (("de", ["d1\tJa."]), ("en", ["e1\tYes."]), ("gold", ["d1\te1"])):
        for split in ("training", "test"):
            lines(folder / "bucc" / f"de-en.{split}.{name}", rows)
    with (translated(folder / "beir") / "qrels.tsv").open("a", encoding="utf-8") as file:
        file.write("q1\tp98\t1\nq2\tp99\t1\n")
    return folder


@pytest.mark.parametrize("command", ERRORS)
def test_an_error_is_one_line(
    command: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in inputs.iterdir():
        Path(path.name).symlink_to(path)
    names_before = {path.name for path in tmp_path.iterdir()}
    words = words_of(command)
    if words[0] == "train":
        words += ["--out", "out"]
    assert main(words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
    errors = [line for line in err.splitlines() if line.startswith("st-xling: error: ")]
    assert len(errors) == 1
    assert ERRORS[command] in err[err.index(errors[0]) :]
    # Results that took time are kept.
    assert {path.name for path in tmp_path.iterdir()} <= names_before | {"cache", "out.work"}


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ("train dpa --model tiny --data phrasebook:de --out x", "did you mean 'dap'"),
        ("train dap --model tiny --data de-en=absent.tsv --out x", "expected a file absent.tsv"),
        ("train dap --model tiny --data de-en=absent.tsv?sise=3 --out x", "'sise=3'"),
        ("train dap --model tiny --data phrasebook:de?columns=0,1 --out x", "'columns=0,1'"),
        ("train dap --model no/model --data phrasebook:de --out x", "Hub id or folder 'no/model'"),
        ("evaluate tatoeba --data phrasebook:de --model ./none", "Hub id or folder './none'"),
        ("encode own-model text.txt --out s", "there is no folder of that name here, and the Hub is not asked"),
        ("transfer pos tiny --train en=absent --test de=b --out x", "expected a file absent"),
        ("reproduce dpa 1 --out x", "'dpa'"),
        ("reproduce dap 99 --out x", "table at scale tiny must be one of"),
        ("card absent", "there is no folder absent"),
    ],
)
def test_a_typo_is_told_before_torch_is_imported(words: str, fact: str, tmp_path: Path) -> None:
    code = "import sys; from st_xling.cli import main; print(main(sys.argv[1:]), 'torch' in sys.modules)"
    child = [sys.executable, "-c", code, *words.split()]
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    process = subprocess.run(child, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert fact in process.stderr
    assert process.stdout.split() == ["2", "False"]
