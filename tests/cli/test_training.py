"""``st-xling train`` with each kind of recipe, and ``leak``: from files to models, results and messages."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from sentence_transformers import CrossEncoder, SentenceTransformer

from st_xling import __version__
from st_xling.cli import main
from st_xling.cli.training import TAKEN_BY, ArgumentOptions, RecipeOptions
from st_xling.training import load_recipe
from st_xling.training.adapter import load_adapter_recipe
from st_xling.training.recipe_files import read_recipe, recipe_kind, recipe_names
from st_xling.training.reranker import load_cross_encoder_recipe
from st_xling.training.retriever import load_retrieval_recipe
from tests.conftest import PAIRS
from tests.retrieval_files import ENGLISH, OTHERS, json_lines, lines, translated
from tests.training.children import st_xling
from tests.training.ranking_run import sentences

TINY = ["--tiny", "hidden_size=32", "--tiny", "layers=1", "--tiny", "vocabulary=300"]
SMALL = [*TINY, "--batch-size", "8"]


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    return path


def test_train_prints_figures_and_nothing_else(tsv: Path, tmp_path: Path) -> None:
    """In a process of its own, whose two streams are files."""
    out = tmp_path / "run"
    figures = tmp_path / "deep" / "figures.json"
    words = [*f"train dap --model tiny --data {tsv} --dev {tsv} --out {out} --json {figures}".split(), *SMALL]
    words += ["--max-steps", "2", "--batch-size", "4", "--max-length", "16"]
    ran = st_xling([*words, "--set", "losses.representation_translation.layers=1"], tmp_path)
    assert ran.status == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert len(lines) == 1 and lines[0].startswith("2 steps in ")
    assert lines[0].endswith(f"the model is in {out}") and "best development accuracy" in lines[0]
    assert all(text in ran.stderr for text in ("pairs: 8 pairs", "dap: step 2 of 2, ", "translation_ranking "))
    assert json.loads(figures.read_text()) == json.loads((out / "results.json").read_text())
    assert json.loads(figures.read_text())["training"]["steps"] == 2
    assert SentenceTransformer(str(out), device="cpu").encode(["Hallo"]).shape == (1, 32)


def test_flags_win_over_the_recipe_and_set_over_flags(tsv: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["train", "tr", "--model", "tiny", "--data", str(tsv), "--dev", "none", "--out", str(out), *SMALL]
    words += ["--max-steps", "1"]
    assert main([*words, "--learning-rate", "0.5", "--warmup", "0.5", "--set", "arguments.learning_rate=5e-5"]) == 0
    recipe = json.loads((out / "training" / "run.json").read_text())["recipe"]
    assert recipe["arguments"]["learning_rate"] == 5e-5
    assert recipe["arguments"]["warmup_steps"] == 0.5


def test_training_goes_on_from_a_saved_encoder(
    tsv: Path, saved_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--model FOLDER`` with the pooling and length of our choice; in quiet, of which the run keeps no trace."""
    out = tmp_path / "run"
    words = ["train", "tr", "--model", str(saved_encoder), "--data", str(tsv), "--dev", "none", "--out", str(out)]
    assert main(["-q", *words, "--max-steps", "1", "--pooling", "max", "--max-length", "12"]) == 0
    assert capsys.readouterr().err == ""
    command = json.loads((out / "training" / "run.json").read_text())["command"]
    assert command.startswith("st-xling train tr ") and "-q" not in command
    saved = SentenceTransformer(str(out), device="cpu")
    assert saved.max_seq_length == 12 and "max" in (out / "1_Pooling" / "config.json").read_text()


def test_an_occupied_folder_is_named_before_the_data_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Large corpora take an hour to read."""
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["train", "tr", "--model", "tiny", "--data", "de-en=absent", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("st-xling: error: --out must")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_run_may_have_the_name_of_its_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or of the model tiny: neither was an input that ``--out`` would replace."""
    monkeypatch.chdir(tmp_path)
    for name in ("tr", "tiny"):
        Path(name).mkdir()
        Path(name, "mine.txt").write_text("")
        assert main(["train", "tr", "--model", "tiny", "--data", "phrasebook:de?size=20", "--out", name]) == 2
        assert f"{name} contains mine.txt" in capsys.readouterr().err


# Recipes


def test_each_recipe_has_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["train", "--list", "--json", str(tmp_path / "r.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[0] for line in lines) == recipe_names(None)
    for line in lines:
        assert line.split()[1] == recipe_kind(line.split()[0]) and re.search(r" (et al\.|and \w+) 20\d\d", line)
    assert [entry["name"] for entry in json.loads((tmp_path / "r.json").read_text())["recipes"]] == [
        line.split()[0] for line in lines
    ]


@pytest.mark.parametrize("name", recipe_names(None))
def test_what_is_printed_is_the_recipe(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "my-recipe.yaml"
    assert main(["train", name, "--print"]) == 0
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    assert read_recipe(str(path)) == read_recipe(name) and recipe_kind(str(path)) == recipe_kind(name)
    if recipe_kind(name) == "encoder":
        assert load_recipe(str(path), tiny=True) == load_recipe(name, tiny=True)


def test_an_edited_recipe_trains(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    out = tmp_path / "out"
    assert main(["train", "--print", "tr"]) == 0
    content = yaml.safe_load(capsys.readouterr().out)
    content["arguments"] |= {"max_steps": 1, "per_device_train_batch_size": 4}
    path.write_text(yaml.safe_dump({**content, "name": "mine"}), encoding="utf-8")
    words = f"train {path} --model tiny --data phrasebook:de?size=16 --dev none --out {out} --json -".split()
    assert main([*words, "--tiny", "layers=1", "--tiny", "hidden_size=16"]) == 0
    results, err = capsys.readouterr()
    assert json.loads(results)["training"]["steps"] == 1 and f"the model is in {out}" in err
    assert json.loads((out / "training" / "run.json").read_text())["recipe"]["name"] == "mine"


# Adapters


def test_a_sweep_and_the_model_it_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    cache = tmp_path / "cache"
    data = ["--data", "zh-vi=phrasebook?size=30&split=test"]
    words = f"train sf --model tiny --sweep --max-steps 4 --cache {cache} --out {out}".split()
    words += ["--data", "zh-vi=phrasebook?size=80", "--dev", data[1], *TINY, "--tiny", "layers=2"]
    assert main([*words, "--json", str(tmp_path / "figures.json")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown[:5]] == ["layer", "1", "2", "all", "cls"]
    assert shown[5].startswith("precision|at:1,5|pairs:zh-vi|") and "4 x 4 steps in" in shown[6]
    layers = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["training"]["layers"]
    assert [row["layer"] for row in layers] == ["1", "2", "all", "cls"]

    card = (out / "README.md").read_text(encoding="utf-8")
    assert 'task="zh")' in card and 'task="vi")' in card

    assert main([*words, "--overwrite"]) == 0
    assert "\n0 texts encoded in" in capsys.readouterr().out
    saved = json.loads((out / "results.json").read_text(encoding="utf-8"))["training"]
    assert main(["evaluate", "precision", str(out), *data, "--json", str(tmp_path / "judged.json")]) == 0
    judged = json.loads((tmp_path / "judged.json").read_text(encoding="utf-8"))["precision"]
    assert judged["precision_mean_p@1"] == pytest.approx(saved["best_dev"])
    assert capsys.readouterr().out.startswith("pair   P@1 →  P@1 ←  P@5 →  P@5 ←\nzh-vi  ")


# Cross-encoders

STEPS = ["--max-steps", "4", "--eval-steps", "2", "--batch-size", "8"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """``--data`` of a labeled file in each of two languages, row by row translations of each other."""
    folder = tmp_path_factory.mktemp("pairs")
    words = []
    for language, texts in zip(("de", "en"), sentences(30)):
        path = folder / f"pairs.{language}.tsv"
        others = texts[1:] + texts[:1]
        rows = [f"{text}\t{text}\t1\n{text}\t{other}\t0\n" for text, other in zip(texts, others)]
        path.write_text("query\tpassage\tlabel\n" + "".join(rows), encoding="utf-8")
        words += ["--data", f"{language}={path}"]
    return words


def test_mixed(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    words = ["train", "xpr-mixed", "--model", "tiny", *files, *TINY, "--max-length", "64", *STEPS, "--out", str(out)]
    words += ["--dev-share", "0.1"]
    assert main([*words, "--json", str(tmp_path / "figures.json")]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("4 steps in ") and "best development acc@1" in told.out
    assert "queries for development" in told.err
    stages = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["training"]["stages"]
    assert [(stage["name"], stage["steps"]) for stage in stages] == [("xpr-mixed", 4)]
    assert 0 <= stages[0]["best_dev"] <= 1
    ranking = CrossEncoder(str(out), device="cpu").rank("Der Hund schläft.", ["The dog sleeps.", "Drei Bücher."])
    assert {entry["corpus_id"] for entry in ranking} == {0, 1}
    assert main(words) == 2
    assert "holds an earlier run (it is complete)" in capsys.readouterr().err


# Retrievers


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("retrieval")
    json_lines(root / "queries.jsonl", [{"query": q, "passage": p} for q, p in zip(ENGLISH, OTHERS)])
    lines(root / "xx-en.tsv", [f"{other}\t{english}" for other, english in zip(OTHERS, ENGLISH)])
    lines(root / "yy.txt", OTHERS)
    translated(root / "set")
    translated(root / "english", texts=ENGLISH)
    return root


def test_train_then_evaluate(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "retriever"
    sources = ["--data", f"queries={root / 'queries.jsonl'}", "--parallel", f"vi-en={root / 'xx-en.tsv'}"]
    words = f"train ir-semacl-langcl --model tiny --mono th={root / 'yy.txt'} --dev vi={root / 'set'}".split()
    words += f"--encoders separate --max-steps 3 --eval-steps 3 --batch-size 4 --max-length 32 --out {out}".split()
    assert main([*words, *sources, *TINY]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("3 steps in") and "best development MRR@100" in captured.out
    assert "queries en: 8 pairs" in captured.err and "mono th:yy.txt: 8 sentences" in captured.err
    figures = tmp_path / "figures.json"
    runs = tmp_path / "runs"
    sets = ["--data", f"vi={root / 'set'}", "--data", f"en={root / 'english'}"]
    judge = ["evaluate", "retrieval", str(out), *sets, "--pool", "mixed", "--bm25", "--measures", "MRR@10", "R@2"]
    assert main([*judge, "--json", str(figures), "--runs", str(runs), "--device", "cpu"]) == 0
    table = capsys.readouterr().out.splitlines()
    heads = [f"{system}{measure}" for system in ("", "BM25 ") for measure in ("MRR@10", "Recall@2")]
    assert table[0].split() == ["language", *" ".join(heads).split()]
    assert [line.split()[0] for line in table[1:3]] == ["en", "xx"] and table[4].startswith("mean")
    assert table[-1].startswith("retrieval|passages:vi,en|pool:mixed|measures:MRR@10,Recall@2|depth:100|ties:id|")
    assert any("BM25, of equally relevant hits in the query's language: 100.0 %" in line for line in table)
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written["retrieval"]["BM25"]["figures"]["en"]["MRR@10"] == 1
    assert set(written["retrieval"]["retriever"]["language_bias"]) >= {"own_share", "own_first", "expected"}
    assert {path.name for path in runs.iterdir()} >= {"en.BM25.trec", "xx.retriever.trec"}
    assert (runs / "en.BM25.trec").read_text(encoding="utf-8").startswith("q0 Q0 en:p0 1 ")


def test_bm25_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The baseline, without any model."""
    assert main(["evaluate", "retrieval", "bm25", "--data", f"en={root / 'english'}", "--query-languages", "en"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1].split() == ["en", "100.0", "100.0"]
    assert "en: 8 passages; queries: en 8" in captured.err


def test_texts_of_one_file_name_are_all_read(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``news/yy.txt`` and ``wiki/yy.txt``: the second replaced the first."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "yy.txt").write_text((root / "yy.txt").read_text(encoding="utf-8"), encoding="utf-8")
    words = ["train", "ir-langcl", "--model", "tiny", *TINY, "--max-steps", "1", "--out", str(tmp_path / "out")]
    words += ["--batch-size", "4", "--max-length", "32"]
    words += ["--data", f"queries={root / 'queries.jsonl'}", "--parallel", f"vi-en={root / 'xx-en.tsv'}"]
    words += [word for folder in (root, tmp_path / "b") for word in ("--mono", f"th={folder / 'yy.txt'}")]
    assert main(words) == 0
    shown = capsys.readouterr().err
    assert "mono th:yy.txt: 8 sentences" in shown and "mono th:yy.txt-2: 8 sentences" in shown


# Leaks

ROWS = ["Der Hund schläft.\tThe dog sleeps.", "Ich lese.\tI read.", "Es regnet.\tIt is raining.", "แมวดำ\tA black cat."]


@pytest.fixture
def repeated(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(ROWS * 2 + ["Danke.\tThanks."] * 4) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def test_set(tmp_path: Path) -> Path:
    path = tmp_path / "test.txt"
    path.write_text("it is raining\nI sing.\n", encoding="utf-8")
    return path


def test_leak(repeated: Path, test_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "deep" / "figures.json"
    words = ["leak", "--train", str(repeated), "--eval", str(test_set), "--json", str(figures)]
    assert main(words) == 0
    out, err = capsys.readouterr()
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert out.splitlines()[-1] == written["signature"] and written["signature"].endswith(f"st-xling:{__version__}")
    assert "test 2 1 (50.0 %) - - e.g. pairs row 3: Es regnet." in " ".join(out.split())
    assert "pairs: 2 of 12 training rows in question" in out
    assert written["sets"]["test"]["text"] == {"rows": 2, "leaked": 1, "share": 0.5}
    assert err == ""

    assert main([*words, "--stream"]) == 0 and capsys.readouterr().out == out
    assert main([*words, "--fail-on-leak"]) == 2
    out, err = capsys.readouterr()
    assert "1 (50.0 %)" in out  # the figures come first
    assert err.startswith("st-xling: error: training data must not hold evaluation text") and err.count("\n") == 1


def test_train_looks_for_later_tests(
    repeated: Path, test_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = [*f"train tr --model tiny --data {repeated} --dev none --out {out}".split(), *TINY, "--batch-size", "4"]
    words += ["--max-steps", "1", "--check-leak", str(test_set)]
    assert main([*words, "--fail-on-leak"]) == 2
    stdout, stderr = capsys.readouterr()
    assert stdout == "" and "1 of 1 evaluation sets share some (test)" in stderr and not out.exists()

    assert main([*words, "--drop-leaks"]) == 0
    stdout, stderr = capsys.readouterr()
    assert len(stdout.splitlines()) == 1
    assert "pairs: 2 of 12 training rows dropped" in stderr and "e.g. pairs row 3: Es regnet." in stderr
    leak = json.loads((out / "results.json").read_text(encoding="utf-8"))["leak"]
    assert leak["dropped"] is True and leak["train"] == {"pairs": {"rows": 12, "leaked": 2}}
    assert json.loads((out / "training" / "run.json").read_text(encoding="utf-8"))["data"]["pairs"]["rows"] == 10


def test_of_a_stream_the_first_rows_are_searched(
    repeated: Path, test_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stream is not read twice; the report says that it is about the first rows alone."""
    out = tmp_path / "run"
    words = f"train tr --model tiny --data {repeated} --stream --dev none --out {out} --batch-size 4".split()
    assert main([*words, *TINY, "--max-steps", "1", "--check-leak", str(test_set)]) == 0
    assert "pairs (first rows): 2 of 12 training rows in question" in capsys.readouterr().err
    leak = json.loads((out / "results.json").read_text(encoding="utf-8"))["leak"]
    assert "|train:pairs (first rows)@" in leak["signature"]


def test_pairs_that_were_mined_without_a_threshold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """README's ``mine`` kept 254 pairs of which 170 were wrong, and its ``train`` took them without a word.

    The warning comes before anything slow, here before a folder that has no model.
    """
    (tmp_path / "nothing").mkdir()
    mined = tmp_path / "mined.tsv"
    rows = [f"{1.08 - row / 600}\t{row}\t{row}\tQuelle {row}\tsource {row}" for row in range(60)]
    header = "score\tsource_id\ttarget_id\tsource\ttarget"
    mined.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    words = ["train", "tr", "--model", str(tmp_path / "nothing"), "--out", str(tmp_path / "run")]
    assert main([*words, "--data", f"de-en={mined}"]) != 0
    assert f"{mined} seems to have been mined without a threshold: 11 of 60 pairs" in capsys.readouterr().err
    mined.write_text("\n".join([header, *rows[:40], ""]), encoding="utf-8")
    assert main([*words, "--data", f"de-en={mined}"]) != 0
    assert "without a threshold" not in capsys.readouterr().err


def recipe_keys() -> dict[str, str]:
    """Name of each option of the command that sets a key of the recipe → that key."""
    keys = {entry.name: f"arguments.{entry.name}" for entry in fields(ArgumentOptions)}
    for entry in fields(RecipeOptions):
        unset = {other.name: None for other in fields(RecipeOptions)}
        [key] = [key for key, value in RecipeOptions(**{**unset, entry.name: "x"}).keys().items() if value == "x"]
        keys[entry.name] = key
    return keys


LOADERS: dict[str, tuple[Any, str]] = {
    "encoder": (load_recipe, "tr"),
    "adapter": (load_adapter_recipe, "sf"),
    "retriever": (load_retrieval_recipe, "ir"),
    "cross-encoder": (load_cross_encoder_recipe, "xpr-mixed"),
}


@pytest.mark.parametrize(("option", "key"), recipe_keys().items())
@pytest.mark.parametrize("kind", LOADERS)
def test_an_option_of_the_command_is_a_key_of_its_kinds_of_recipes(option: str, key: str, kind: str) -> None:
    texts: dict[str, Any] = {"pooling": "cls", "encoders": "shared", "pivot": "de", "hard_swaps": ["number"]}
    texts |= {"teacher": "some/encoder", "teacher_prompt": "query: "}
    value = texts.get(option, 4)
    load, name = LOADERS[kind]
    losses = {"losses.MSELoss.weight": 1} if key.startswith("data.teacher.") else {}
    if kind in TAKEN_BY.get(option, tuple(LOADERS)):
        setting = load(name, overrides={key: value, **losses})
        for part in key.split("."):
            setting = getattr(setting, part)
        assert setting == value
    else:
        with pytest.raises(ValueError, match="|".join(f"'{part}'" for part in key.split("."))):
            load(name, overrides={key: value, **losses})
