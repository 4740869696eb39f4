"""Tables of a paper: what a file of them means, what comes out, and that nothing is lost or done twice."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from st_xling.cli import main
from st_xling.reproduce import Paper, load_paper, reproduce
from st_xling.reproduce.reports import difference, markdown, report, sentence_interval, text, write_report
from st_xling.reproduce.run import inputs_fingerprint, is_done, why_it_failed
from st_xling.utils.io import write_json

TOY: dict[str, Any] = {
    "paper": "Tables to try (Nobody et al.)",
    "settings": {
        "tiny": {
            "model": "{start}",
            "pairs": "--data phrasebook:de?size=120",
            "budget": "--max-steps {steps} --batch-size 16 --learning-rate 1e-3 --dev none",
            "steps": 8,
            "layers": [1, 2],
            "languages": ["deu", "fra"],
            "named": "TR",
            "with": {"BERT": {"steps": 5}},
        },
    },
    "bases": {
        "start": "train tr --model tiny --tiny vocabulary=300 --tiny hidden_size=16 --tiny layers=1 "
        "--data phrasebook:de,fr?size=100 --max-steps 1 --batch-size 16 --dev none"
    },
    "models": {
        "tr": "train tr --model {model} {pairs} {budget}",
        "again": "train tr --model {tr} {pairs} {budget} --set losses.translation_ranking.scale={scale}",
        "lost": "train tr --model {model} {pairs} {budget} --set losses.nothing.weight=1",
        "after-lost": "train tr --model {lost} {pairs} {budget}",
    },
    "evaluations": {"tatoeba": "evaluate tatoeba {row} --data phrasebook:de,fr?size=40"},
    "tables": {
        "1": {
            "title": "Accuracy in %",
            "rows": {
                "as it is": "model",
                "TR": "tr",
                "again": {"model": "again", "scale": 10},
                "lost": "lost",
                "after lost": "after-lost",
            },
            "columns": {
                "{languages} → en": {"evaluation": "tatoeba", "value": "tatoeba.tatoeba_{languages}_to_en_accuracy"},
                "mean": {"evaluation": "tatoeba", "value": "tatoeba.tatoeba_mean_accuracy"},
                "both": {"evaluation": "tatoeba", "value": "tatoeba.tatoeba_{languages}_to_en_accuracy"},
            },
            "compare": [["{named}", "as it is"]],
            "paper": {"TR, mBERT": {"36 languages": 90.1}},
            "note": "Not as in the paper.",
        }
    },
}
TOY["settings"]["small"] = {**TOY["settings"]["tiny"], "pairs": "--data de-en={data}/pairs.tsv"}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The file."""
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(TOY, sort_keys=False), encoding="utf-8")
    return path


def evaluated(paper: Paper, out: Path, values: dict[str, float]) -> dict[str, Any]:
    """A report of results that are written here: a value for each step whose name begins like a key."""
    for step in paper.steps():
        for name, value in values.items():
            if step.name.startswith(f"tatoeba of {name}"):
                value += 0.1 * int(step.name[-1]) if step.name[-1].isdigit() else 0.0
                accuracies = {f"tatoeba_{key}_accuracy": value for key in ("deu_to_en", "fra_to_en", "mean")}
                (out / "results").mkdir(exist_ok=True)
                write_json(out / f"results/{step.id}.json", {"tatoeba": accuracies, "signature": f"tatoeba|{name}"})
    return report(paper, out, {})


def test_a_file_becomes_commands(toy: Path) -> None:
    paper = load_paper(str(toy), seeds=(0, 1))
    steps = {step.name: step for step in paper.steps()}
    trained = steps["again, seed 1"]
    evaluated = steps["tatoeba of again, seed 1"]
    # What all share is one step; what a model starts from comes before it, and is of the same seed.
    assert [name for name in steps if name.startswith("start")] == ["start"]
    assert [step.name for step in trained.closure()] == ["start", "tr, seed 1", "again, seed 1"]
    words = trained.command()
    assert words[words.index("--model") + 1] == steps["tr, seed 1"].folder
    assert words[-4:] == ["--seed", "1", "--out", trained.folder]
    assert "losses.translation_ranking.scale=10" in words and words[words.index("--max-steps") + 1] == "8"
    assert evaluated.command()[2] == trained.folder
    assert steps["start"].command()[-4:-2] == ["--seed", "0"]
    # Another value is another step, in another folder.
    elsewhere = {step.name: step for step in load_paper(str(toy), model="BERT").steps()}["tr, seed 0"]
    assert elsewhere.command()[elsewhere.command().index("--max-steps") + 1] == "5"
    assert elsewhere.folder != steps["tr, seed 0"].folder


def test_a_table_has_means_deviations_differences_and_the_papers_figures(toy: Path, tmp_path: Path) -> None:
    paper = load_paper(str(toy), ["1"], seeds=(0, 1, 2))
    content = evaluated(paper, tmp_path, {"model": 0.2, "tr": 0.3})
    table = content["tables"]["1"]
    assert [path.split("_")[1] for path in paper.tables["1"].cells["TR"]["both"].paths] == ["deu", "fra"]
    assert table["rows"]["TR"]["mean"] == pytest.approx([30.0, 40.0, 50.0])
    assert table["rows"]["as it is"]["mean"] == pytest.approx([20.0])  # has no seed, hence no deviation
    assert "lost" not in table["rows"]  # has not run
    assert table["differences"]["TR − as it is"]["mean"]["mean"] == pytest.approx(20.0)
    assert table["signatures"] == ["tatoeba|model", "tatoeba|tr"]
    for shown in (text(content), markdown(content)):
        for fact in (
            "40.0 ± 10.0",
            "20.0",
            "90.1",
            "36 languages",
            "paper: TR, mBERT",
            "Not as in the paper.",
            "only checks that",
        ):
            assert fact in shown
    assert all(command.startswith("st-xling ") for command in content["commands"])


def test_rows_of_a_list_and_examples_below(tmp_path: Path) -> None:
    column = {"evaluation": "ranking", "value": "reranking.examples.1.rank"}
    rows = {name: {"run": name, "evaluation": "ranking"} for name in ("one", "two", "not run")}
    rows["{sizes}"] = {"model": "sized", "size": "{sizes}", "evaluation": "ranking"}
    table = {"title": "Lists", "rows": rows, "columns": {"1": column}, "factor": 1, "decimals": 0, "examples": True}
    settings = {"model": "m", "sizes": [7, 8], "pairs": "--data x.tsv?size={size}"}
    file: dict[str, Any] = {"paper": "x", "settings": {"tiny": settings}, "tables": {"5": table}}
    file["models"] = {"sized": "train tr --model {model} {pairs}"}
    file["evaluations"] = {"ranking": "evaluate reranking {row} --examples 1"}
    (tmp_path / "file.yaml").write_text(yaml.safe_dump(file, sort_keys=False), encoding="utf-8")
    paper = load_paper(str(tmp_path / "file.yaml"))
    (tmp_path / "results").mkdir()
    for rank, step in enumerate(paper.steps()[:2], 1):
        passage = {"text": f"passage of {step.name}", "language": "zh", "relevant": rank == 1}
        example = {"query": "Wo?", "language": "de", "rank": rank, "passages": [passage]}
        write_json(tmp_path / f"results/{step.id}.json", {"reranking": {"examples": {"1": example}}})
    # A row may give a setting another value.
    assert ["x.tsv?size=7" in step.words for step in paper.steps() if step.name == "sized, seed 0"] == [True, False]
    content = report(paper, tmp_path, {})
    values = {row: columns["1"] for row, columns in content["tables"]["5"]["rows"].items()}
    assert values == {"one": [1.0], "two": [2.0]}
    lines = content["tables"]["5"]["examples"].splitlines()
    assert [line[:12] for line in lines] == [
        "1. de: Wo?",
        "   one (rele",
        "   * 1. zh: ",
        "   two (rele",
        "     1. zh: ",
    ]
    for shown in (text(content), markdown(content)):
        assert all(line in shown for line in lines)


def test_intervals_over_sentences_are_those_of_plain_draws() -> None:
    """A gap of one F1 was "shown" by seeds alone, where one gold pair more or less is one F1: the test set is fixed."""
    random = np.random.default_rng(5)

    def run(recall: float) -> dict[str, dict[str, Any]]:
        found = {}
        for pair, n in (("de-en", 90), ("fr-en", 60)):
            gold = list(range(0, n, 3))
            correct = [row for row in gold if random.random() < recall]
            found[pair] = {"n": n, "gold": gold, "mined": [*correct, 1, 2], "correct": correct}
        return found

    first = [run(0.8), run(0.8)]
    second = [run(0.6)]

    def f1(runs: list[dict[str, dict[str, Any]]], drawn: dict[str, list[int]]) -> float:
        values = []
        for result in runs:
            for pair, rows in drawn.items():
                sums = {name: sum(row in result[pair][name] for row in rows) for name in ("gold", "mined", "correct")}
                values.append(2 * sums["correct"] / (sums["mined"] + sums["gold"]))
        return sum(values) / len(values)

    gaps = []
    for _ in range(1000):
        drawn = {pair: random.integers(counts["n"], size=counts["n"]).tolist() for pair, counts in first[0].items()}
        gaps.append(f1(first, drawn) - f1(second, drawn))
    low, high = sentence_interval(first, second)
    assert (low, high) == pytest.approx(np.quantile(gaps, [0.025, 0.975]), abs=0.02)
    assert sentence_interval(first, first) == (0.0, 0.0)
    of_pair = sentence_interval(first, second, pairs=["fr-en"])
    assert of_pair != (low, high) and of_pair[1] - of_pair[0] > high - low
    with pytest.raises(ValueError, match="same test sentences"):
        sentence_interval(first, [{"de-en": second[0]["de-en"] | {"gold": [0]}, "fr-en": second[0]["fr-en"]}])
    with pytest.raises(ValueError, match="got 2 and 0"):
        sentence_interval(first, [])


def test_differences_are_students_t_for_pairs() -> None:
    first = [3.0, 5.0, 4.5]
    second = [1.0, 2.0, 3.5]
    gaps = [a - b for a, b in zip(first, second)]
    mean = sum(gaps) / 3
    error = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / 2 / 3)
    tested = difference(first, second)
    assert tested is not None and tested["mean"] == pytest.approx(mean)
    # 4.302653 is the 97.5th percentile of t with two degrees of freedom; p by its closed form there.
    assert tested["low"] == pytest.approx(mean - 4.302653 * error, rel=1e-6)
    t = mean / error
    assert tested["p"] == pytest.approx(1 - t / math.sqrt(t * t + 2), rel=1e-9)
    assert difference([2.0], [1.5]) == {"mean": 0.5, "low": None, "high": None, "p": None, "n": 1, "of": 1}
    assert difference([None], [1.0]) is None and difference([None, 2.0], [1.0, None]) is None
    # Seeds that one side lacks are left out of both.
    both = difference([1.0, 3.0], [0.0, 2.0])
    assert both is not None and difference([1.0, None, 3.0], [0.0, 5.0, 2.0]) == both | {"of": 3}
    same = difference([1.0, 2.0], [1.0, 2.0])
    assert same is not None and same["p"] == 1.0


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["TOY", "7"], ["'7'", "1"]),
        (["TOY", "--rows", "TX*"], ["'TX*'", "as it is", "TR"]),
        (["TOY", "--scale", "paper"], ["'paper'", "tiny, small"]),
        (["TOY", "--scale", "small"], ["--data", "ST_XLING_DATA"]),
        (["TOY", "--scale", "small", "--data", "nowhere"], ["nowhere"]),
        (["TOY", "--jobs", "0"], ["jobs", "0"]),
    ],
)
def test_errors_name_what_came_and_what_there_is(
    words: list[str], facts: list[str], toy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(toy.parent)
    monkeypatch.delenv("ST_XLING_DATA", raising=False)
    status = main(["reproduce", *(str(toy) if word == "TOY" else word for word in words)])
    error = capsys.readouterr().err
    assert status == 2 and all(fact in error for fact in facts), error
    assert not Path("xling-reproduce").exists()


def changed(path: tuple[str, ...], value: Any) -> str:
    """The toy's file with another value at a path."""
    content = json.loads(json.dumps(TOY))
    part = content
    for key in path[:-1]:
        part = part[key]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


TABLE = ("tables", "1")
MISTAKES: dict[str, tuple[str | bytes, list[str]]] = {
    "no YAML": ("paper: [a\ntables: {", ["not valid YAML", "line 2"]),
    "a tab": ("paper:\n\tx: 1", ["not valid YAML", "line 2"]),
    "an object": ("!!python/tuple [1]", ["not valid YAML"]),
    "deep": ("[" * 3000, ["not valid YAML"]),
    "empty": ("", ["must be a mapping", "None"]),
    "a list": ("- 1", ["must be a mapping"]),
    "Latin-1": ("paper: é".encode("latin-1"), ["UTF-8"]),
    "a section": (changed(("evaluation",), {}), ["'evaluation'", "did you mean 'evaluations'"]),
    "no tables": (changed(("tables",), None), ["tables is missing"]),
    "tables": (changed(("tables",), ["1"]), ["tables must be a mapping"]),
    "a setting": (changed(("settings", "tiny"), "x"), ["settings: tiny must be a mapping"]),
    "no model": (changed(("settings", "tiny", "model"), None), ["settings: tiny must name the model"]),
    "a command": (changed(("evaluations", "tatoeba"), 5), ["evaluations: tatoeba must be text: got 5"]),
    "no command": (changed(("models", "tr"), " "), ["models: tr must be a command"]),
    "a number": (changed((*TABLE, "rows"), {250: "tr"}), ["table 1: rows: a name must be text: got 250", '"250"']),
    "rows": (changed((*TABLE, "rows"), ["tr"]), ["table 1: rows must be a mapping"]),
    "a row": (changed((*TABLE, "rows", "TR"), {"modle": "tr"}), ["table 1: rows: TR must have model or run"]),
    "a column": (changed((*TABLE, "columns", "mean"), {"evaluation": "tatoeba"}), ["columns: mean must have value"]),
    "a key": (changed((*TABLE, "colums"), {}), ["'colums'", "did you mean 'columns'"]),
    "pairs": (changed((*TABLE, "compare"), ["TR"]), ["compare must be a list of pairs"]),
    "a circle": (changed(("settings", "tiny", "pairs"), "{budget} {pairs}"), ["must not name itself"]),
    "models in a circle": (changed(("models", "tr"), "train tr --model {again}"), ["must not name itself"]),
    "a quote": (changed(("models", "tr"), "train tr --data 'a b"), ["No closing quotation in the command", "'a b"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_file_is_named(
    mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of one's own with a mistake ended in a traceback."""
    text, facts = MISTAKES[mistake]
    content = text if isinstance(text, bytes) else text.encode("utf-8")
    monkeypatch.chdir(tmp_path)
    for ending in ("yaml", "yml"):
        path = tmp_path / f"own.{ending}"
        path.write_bytes(content)
        assert main(["reproduce", str(path)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("st-xling: error: ") and "Traceback" not in error
        assert all(fact in error for fact in facts), error
        assert not (tmp_path / "xling-reproduce").exists()


def test_the_page_has_what_has_run(toy: Path, tmp_path: Path) -> None:
    paper = load_paper(str(toy), seeds=(0, 1), rows=["TR"], precision="bf16")
    evaluated(paper, tmp_path, {"tr": 0.3})
    last = next(step for step in paper.steps() if step.name == "tatoeba of tr, seed 1")
    write_report(paper, tmp_path, {})
    page = (tmp_path / "toy-tiny-start-seeds-0-1.md").read_text(encoding="utf-8")
    assert "35.0 ± 7.1" in page and "| as it is |" not in page
    assert f"st-xling reproduce {toy} 1 --scale tiny --model start --seeds 0,1 --rows TR" in page
    (tmp_path / last.result).unlink()
    assert "30.0 (n 1)" in text(report(paper, tmp_path, {}))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["slim", "x", "--languages", "de", "--out", "y", "--sede", "0"], "No such option: --sede"),
        (["evaluate", "tatoeba"], "Missing argument 'MODEL'."),
        (
            ["train", "tr", "--max-steps", "many"],
            "Invalid value for '--max-steps': Input should be a valid integer, unable to parse string as an integer",
        ),
        (["train", "tr", "--" + "lang" * 30], "lang" * 12),
        (["evaluate", "tatoeba", "nowhere/at/all", "--data", "phrasebook:de"], "nowhere/at/all"),
    ],
)
def test_a_wrong_command_in_a_step_is_shown_with_its_reason(words: list[str], reason: str, tmp_path: Path) -> None:
    """The reason of a failed step was the lower border of the box that typer draws around errors of usage."""
    for encoding in ("utf-8", "ascii"):
        environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        log = tmp_path / f"{encoding}.log"
        with log.open("wb") as stream:
            command = [sys.executable, "-m", "st_xling.cli", *words]
            status = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, env=environment).returncode
        assert status == 2
        why = why_it_failed(log, status)
        assert reason in why and not set("╭╰│─") & set(why) and "---" not in why, why


def test_other_data_are_other_results(toy: Path, tmp_path: Path) -> None:
    """Known by name and content: another text of the same size and time is another result. The beginning of two
    files' names counts as well."""
    data = tmp_path / "data"
    data.mkdir()
    for ending in ("de", "en"):
        (data / f"pairs.{ending}").write_text("a\n" * 100)
    content = {**TOY, "models": {**TOY["models"], "tr": "train tr {model} --data de-en={data}/pairs?size=9"}}
    toy.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    paper = load_paper(str(toy))
    step = next(step for step in paper.steps() if step.name == "tr, seed 0")
    for folder in (step.folder, "steps"):
        (tmp_path / folder).mkdir(parents=True)
    write_json(tmp_path / "steps" / f"{step.id}.json", {"inputs": inputs_fingerprint(paper, step, data)})
    assert is_done(paper, step, tmp_path, data)
    assert is_done(paper, step, tmp_path, shutil.copytree(data, tmp_path / "moved" / "data"))
    before = (data / "pairs.en").stat()
    (data / "pairs.en").write_text("b\n" * 100)
    os.utime(data / "pairs.en", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not is_done(paper, step, tmp_path, data)


@pytest.mark.slow
def test_a_failure_is_named_the_rest_stands_and_a_kill_changes_nothing(
    toy: Path, tmp_path: Path, warm_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", warm_python)  # of the steps
    out = tmp_path / "out"
    content = reproduce(load_paper(str(toy)), out, jobs=2)
    rows = content["tables"]["1"]["rows"]
    assert len(rows["TR"]["mean"]) == 1 and not {"lost", "after lost"} & rows.keys()
    failed = {name.rpartition("-")[0]: why for name, why in content["failed"].items()}
    assert "nothing" in failed["lost-seed-0"] and "needs lost, seed 0" in failed["after-lost-seed-0"]
    name = load_paper(str(toy)).file_name  # -fp32 on a processor without bfloat16
    page = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    assert page["tables"] == content["tables"] and page["failed"] == content["failed"]
    # Again: only what failed is tried.
    times = {path: path.stat().st_mtime_ns for path in (out / "steps").iterdir()}
    assert reproduce(load_paper(str(toy)), out)["tables"] == content["tables"]
    assert times == {path: path.stat().st_mtime_ns for path in (out / "steps").iterdir()}
    # Killed while the base trains, with all its children, then once more by Ctrl-C while a model does.
    words = ["-m", "st_xling.cli", "reproduce", str(toy), "1", "--rows", "as it is", "TR", "--out", "killed"]
    for stop, reached in ((signal.SIGKILL, "models/start-*"), (signal.SIGINT, "models/tr-seed-0-*")):
        # A shell's background jobs ignore Ctrl-C, and so would their children.
        heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        process = subprocess.Popen([sys.executable, *words], cwd=tmp_path, preexec_fn=heeding)
        until = time.monotonic() + 120
        while not any((tmp_path / "killed").glob(reached)) and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(process.pid, stop)
        assert process.wait(60) in (-stop, 130)
    paper = load_paper(str(toy), ["1"], rows=["as it is", "TR"])
    for _ in range(200):  # until the child that was orphaned by SIGKILL is through
        try:
            again = reproduce(paper, tmp_path / "killed")
            break
        except ValueError as error:
            assert "another process" in str(error)
            time.sleep(0.3)
    assert not again["failed"]
    assert {name: again["tables"]["1"]["rows"][name] for name in ("as it is", "TR")} == {
        name: rows[name] for name in ("as it is", "TR")
    }


def test_a_missing_value_is_named_and_the_other_cells_stay(toy: Path, tmp_path: Path) -> None:
    """A renamed metric emptied the whole table, after hours of training."""
    file = deepcopy(TOY)
    file["tables"]["1"]["columns"]["wrong"] = {"evaluation": "tatoeba", "value": "tatoeba.no_such"}
    toy.write_text(yaml.safe_dump(file, sort_keys=False), encoding="utf-8")
    content = evaluated(load_paper(str(toy), ["1"]), tmp_path, {"tr": 0.3})
    ((name, why),) = content["failed"].items()
    assert name.startswith("tatoeba-of-tr-seed-0-") and "no_such" in why
    row = content["tables"]["1"]["rows"]["TR"]
    assert row.pop("wrong") == [None] and set(map(tuple, row.values())) == {(30.0,)}


@pytest.mark.parametrize("fact", ["picture", "examples"])
def test_a_row_without_its_first_seed_has_picture_and_examples(fact: str, toy: Path, tmp_path: Path) -> None:
    """Where the first seed of a row had failed, the page of all tables ended in a KeyError, and nothing was written."""
    file = deepcopy(TOY)
    file["tables"]["1"] |= {fact: True, "rows": {"as it is": "model", "TR": "tr"}}
    toy.write_text(yaml.safe_dump(file, sort_keys=False), encoding="utf-8")
    paper = load_paper(str(toy), ["1"], seeds=(0, 1), precision="bf16")
    passage = {"text": "Hier.", "language": "de", "relevant": True}
    example = {"query": "Wo?", "language": "de", "rank": 1, "passages": [passage]}
    points = {"source": [[0.0, 1.0]], "target": [[1.0, 0.0]]}
    result = {
        "tatoeba": {f"tatoeba_{key}_accuracy": 0.5 for key in ("deu_to_en", "fra_to_en", "mean")},
        "components": {"of": "tokens", "languages": ["de", "en"], "points": points},
        "reranking": {"examples": {"1": example}},
    }
    (tmp_path / "results").mkdir()
    second_seed = next(step for step in paper.steps() if step.name == "tatoeba of tr, seed 1")
    write_json(tmp_path / second_seed.result, result)
    write_report(paper, tmp_path, {})
    content = json.loads((tmp_path / f"{paper.file_name}.json").read_text(encoding="utf-8"))
    table = content["tables"]["1"]
    assert list(table["rows"]) == ["TR"] and fact in table
