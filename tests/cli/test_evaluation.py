"""``st-xling evaluate``, ``compare`` and ``transfer``: what they print and write is what the library finds."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from st_xling.cli import main
from st_xling.cli.results import write_results
from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation.compare.tasks import COMPARISON_TASKS
from tests.retrieval_files import beir
from tests.training.transfer.sets import write_encoder, write_set

TASKS = {
    "tatoeba": ("--data phrasebook:de,fr?size=9 --languages deu", "tatoeba|languages:deu|direction:both|"),
    "precision": ("--data zh-vi=phrasebook?size=12 --at 1,3", "precision|at:1,3|pairs:zh-vi|"),
    "bucc": ("--data phrasebook?size=30&gold=10 --pairs de-en vi-en", "bucc|pairs:de-en,vi-en|margin:ratio|k:4|"),
    "xsim": ("--data phrasebook:de?size=9 --k 3 --plus-plus", "xsim|languages:deu|direction:both|margin:ratio|k:3|"),
    "reranking": ("--data de=phrasebook?size=6 --data en=phrasebook?size=6 --samples 50", "reranking|n:"),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_table_a_signature_and_json(
    task: str, saved_encoder: Path, saved_cross_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, start = TASKS[task]
    model = saved_cross_encoder if task == "reranking" else saved_encoder
    figures = tmp_path / "deep" / "figures.json"
    assert main(["evaluate", task, str(model), *options.split(), "--json", str(figures)]) == 0
    *table, signature = capsys.readouterr().out.splitlines()
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert len(table) > 1 and signature.startswith(start)
    # From the sentences of mined pairs `reproduce` computes intervals.
    keys = {task, "signature", "sentences"} if task == "bucc" else {task, "signature"}
    assert written.keys() == keys and written["signature"] == signature and written[task]


def test_results_are_written_by_an_older_typer(tmp_path: Path) -> None:
    """Typer 0.20 to 0.28 has the value of ``--json`` as text in the context: all evaluations ended with a traceback."""
    path = tmp_path / "deep" / "figures.json"
    write_results(SimpleNamespace(params={"json": str(path)}), {"a": 1})  # type: ignore[arg-type]
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": 1}


def test_runs_lack_queries_without_a_hit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """trec_eval, pytrec_eval and trectools leave them out of the mean, and print more than our report, unnoticed."""
    folder = beir(
        tmp_path / "en", {"d1": "the cat sat"}, {"en": {"q1": "cat", "q2": "moon"}}, [("q1", "d1", 1), ("q2", "d1", 1)]
    )
    assert main(["evaluate", "retrieval", "bm25", "--data", f"en={folder}", "--runs", str(tmp_path / "runs")]) == 0
    assert "en, BM25: queries without a hit: 1; they have no line" in capsys.readouterr().err
    assert (tmp_path / "runs" / "en.BM25.trec").read_text(encoding="utf-8").count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        "evaluate tatoeba MODEL --data en-de=FILE",
        "evaluate precision MODEL --data en_GB-deu_Latn=FILE",
        "postprocess MODEL --data en-de=FILE --center language --out OUT",
        "push FILE user/pairs --source-language en-GB --target-language de_AT --license mit --dry-run",
    ],
)
def test_swapped_languages_are_no_result(
    command: str, saved_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both directions were reported under each other's names, and cards and means had the other language's."""
    pairs = parallel_phrases("de", "en", split="train", size=60, seed=0)
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{source}\t{target}\n" for source, target in zip(pairs["source"], pairs["target"])))
    paths = {"MODEL": saved_encoder, "FILE": file, "OUT": tmp_path / "out"}
    for word, path in paths.items():
        command = command.replace(word, str(path))
    assert main(command.split()) == 2
    assert "the sides look swapped: source looks like de" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# Comparison

COMPARED = ["--data", "phrasebook:de?size=20", "--samples", "20", "--tasks", "tatoeba,mining,size"]


def test_a_comparison(encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", f"{encoder}?prompt=query: ", f"{encoder}?name=other", *COMPARED, "--out", str(tmp_path / "out")]
    assert main([*words, "--json", str(tmp_path / "comparison.json")]) == 0
    printed = capsys.readouterr()
    written = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert printed.out.splitlines()[-1] == written["signature"] == written["compare"]["signature"]
    assert f"my-encoder: {encoder}, prompt 'query: '" in printed.out and "compare.html" in printed.err
    assert main(["compare", str(encoder), "--tasks", "xsimm"]) == 2 and "xsimm" in capsys.readouterr().err


def test_an_interrupted_comparison_tells_how_to_resume(
    encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(COMPARISON_TASKS, "tatoeba", COMPARISON_TASKS["tatoeba"]._replace(run=stopped))
    assert main(["compare", str(encoder), *COMPARED, "--out", str(tmp_path / "out")]) == 130
    assert "same command again to resume" in capsys.readouterr().err


# Transfer


def test_transfer_from_files_to_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_set(tmp_path / "data", "xnli")
    figures = tmp_path / "deep" / "figures.json"
    tests = [f"{language}={path}" for language, path in paths.items()]
    command = ["transfer", "xnli", write_encoder(tmp_path / "encoder"), "--train", f"en={paths['en']}?size=30&seed=0"]
    command += ["--test", *tests, "--out", str(tmp_path / "run")]
    small = ["--hold-out", "0.4", "--max-steps", "2", "--batch-size", "8", "--seed", "3", "--json", str(figures)]
    assert main([*command, *small]) == 0
    captured = capsys.readouterr()
    head, *rows, signature = captured.out.splitlines()
    assert head.split() == ["language", "accuracy"]
    assert [row.split()[0] for row in rows if "---" not in row] == ["en", "ar", "th", "mean", "mean"]
    assert signature.startswith("transfer|task:xnli|train:en@") and "|seed:3|" in signature
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written["signature"] == written["transfer"]["signature"] == signature
    shown = float(rows[2].split()[1]) / 100
    assert written["transfer"]["languages"]["th"]["accuracy"] == pytest.approx(shown, abs=1e-3)
    assert "xnli: step 2 of 2, " in captured.err and "test: en " in captured.err
    assert main([*command, *small]) == 2
    assert "holds an earlier run (it is complete)" in capsys.readouterr().err
    assert main([*command, *small, "--resume"]) == 0
    assert capsys.readouterr().out == captured.out
