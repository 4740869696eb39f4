"""``st-xling evaluate``, ``compare`` and ``transfer``: what they print and write is what the library finds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer

from st_xling.cli import main
from st_xling.data import load_data_specs
from st_xling.data.phrasebook import mining_phrases
from st_xling.data.reranking.specs import load_pool_specs
from st_xling.evaluation import (
    BuccEvaluator,
    PrecisionEvaluator,
    RerankingEvaluator,
    TatoebaEvaluator,
    read_saved_results,
    xsim_by_language,
)
from st_xling.evaluation.compare.tasks import TASKS as COMPARE_TASKS
from st_xling.evaluation.tatoeba_data import load_english_pairs
from st_xling.utils.io import finite
from tests.conftest import PAIRS
from tests.data.reranking.aligned_sentences import question, squad
from tests.retrieval_files import lines
from tests.training.transfer.sets import write_encoder, write_set


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sets in the layouts of Tatoeba, BUCC and SQuAD."""
    made = tmp_path_factory.mktemp("sets")
    for language in ("de", "vi"):
        for split, part in (("training", "dev"), ("test", "test")):
            texts = mining_phrases(language, "en", split=part, size=30, gold=10)
            for code, side in ((language, texts.source), ("en", texts.target)):
                lines(
                    made / f"{language}-en.{split}.{code}", (f"{code}-{row}\t{text}" for row, text in enumerate(side))
                )
            lines(made / f"{language}-en.{split}.gold", (f"{language}-{one}\ten-{other}" for one, other in texts.gold))
    for code, three, side in zip(("xx", "en"), ("deu", "eng"), zip(*PAIRS)):
        lines(made / f"tatoeba.deu-eng.{three}", side)
        asked = [[question(f"q{row}", f"{text[:8]}?", text[:4])] for row, text in enumerate(side)]
        squad(made / f"{code}.json", [(f"{row}", [(text, asked[row])]) for row, text in enumerate(side)])
    return made


def tatoeba(model: Any, folder: Path) -> tuple[str, str, Any]:
    text = load_english_pairs([folder], "de")
    evaluator = TatoebaEvaluator(text[0], data_name=text[1])
    result = evaluator.evaluate(model)
    return result.table(), result.signature, result.metrics


def precision(model: Any, folder: Path) -> tuple[str, str, Any]:
    data = load_data_specs(["zh-vi=phrasebook?size=12"], split="test")
    evaluator = PrecisionEvaluator(data, data_name="phrasebook-test", at=[1, 3])
    result = evaluator.evaluate(model)
    return result.table("pair"), result.signature, result.metrics


def bucc(model: Any, folder: Path) -> tuple[str, str, Any]:
    evaluator = BuccEvaluator.from_folder(folder, ["de-en", "vi-en"])
    result = evaluator.evaluate(model)
    return result.table("pair"), result.signature, result.metrics


def xsim(model: Any, folder: Path) -> tuple[str, str, Any]:
    pairs = load_english_pairs([folder])[0]
    report = xsim_by_language(model, pairs, k=3, plus_plus=True, seed=1, name="tatoeba")
    return report.table(), report.signature, report.metrics


def reranking(model: Any, folder: Path) -> tuple[str, str, Any]:
    specs = [f"{code}={folder}/{code}.json" for code in ("xx", "en")]
    evaluator = RerankingEvaluator(load_pool_specs(specs, seed=3), name="toy", samples=50)
    report = evaluator.report(model)
    return report.table(), evaluator.signature, report.as_dict()


TASKS: list[tuple[Callable[..., tuple[str, str, Any]], str]] = [
    (tatoeba, "--data {0} --languages deu --batch-size 2"),
    (precision, "--data zh-vi=phrasebook?size=12 --at 1,3"),
    (bucc, "--data {0} --pairs de-en vi-en"),
    (xsim, "--data {0} --k 3 --plus-plus --seed 1"),
    (reranking, "--data xx={0}/xx.json --data en={0}/en.json --seed 3 --name toy --samples 50 --device cpu"),
]


@pytest.mark.parametrize(("task", "options"), TASKS, ids=lambda value: getattr(value, "__name__", ""))
def test_what_the_library_finds(
    task: Callable[..., tuple[str, str, Any]],
    options: str,
    folder: Path,
    saved_encoder: Path,
    saved_cross_encoder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, figures = task.__name__, tmp_path / "deep" / "figures.json"
    kind, saved = (CrossEncoder, saved_cross_encoder) if task is reranking else (SentenceTransformer, saved_encoder)
    assert main(["evaluate", name, str(saved), *options.format(folder).split(), "--json", str(figures)]) == 0
    captured = capsys.readouterr()
    table, signature, metrics = task(kind(str(saved), device="cpu"), folder)
    assert captured.out == f"{table}\n{signature}\n" and signature.startswith(f"{name}|")
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written["signature"] == signature and written.keys() == {name, "signature"}
    expected = json.loads(json.dumps(finite(metrics)))
    assert written[name] == (expected if isinstance(next(iter(expected.values())), dict) else pytest.approx(expected))


def test_bucc_options(saved_encoder: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is typed reaches the library; a threshold that keeps nothing is written as null."""
    figures = tmp_path / "figures.json"
    words = f"evaluate bucc {saved_encoder} --data {folder} --pairs de-en,vi-en --json {figures}".split()
    options = ["--k", "2", "--margin", "distance", "--retrieval", "intersect", "--split", "training"]
    assert main([*words, *options, "--threshold", "inf"]) == 0
    signature = capsys.readouterr().out.splitlines()[-1]
    start = "bucc|pairs:de-en,vi-en|margin:distance|k:2|retrieval:intersect|threshold:given|split:training|"
    assert signature.startswith(start)
    written = json.loads(figures.read_text(encoding="utf-8"), parse_constant=pytest.fail)["bucc"]
    assert written["bucc_de-en_threshold"] is None and written["bucc_de-en_n_mined"] == 0
    assert main([*words, "--threshold", "tune"]) == 0
    assert "|threshold:tuned on this gold|split:test|" in capsys.readouterr().out


# Comparison

COMPARED = ["--data", "phrasebook:de?size=20", "--samples", "20", "--tasks", "tatoeba,mining,size"]


def test_table_page_and_cards(encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Path(shutil.copytree(encoder, tmp_path / "other"))
    words = ["compare", f"{encoder}?prompt=query: ", str(other), *COMPARED, "--out", str(tmp_path / "out")]
    assert main([*words, "--json", str(tmp_path / "comparison.json"), "--keep"]) == 0
    printed = capsys.readouterr()
    written = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert printed.out.splitlines()[-1] == written["signature"] == written["compare"]["signature"]
    assert f"my-encoder: {encoder}, prompt 'query: '" in printed.out and "compare.html" in printed.err
    assert "st-xling compare" not in printed.out
    for folder in (encoder, other):
        (kept,) = read_saved_results(folder)
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert kept.task == "compare" and kept.signature in card and "## Results" in card
        assert [row.label for row in kept.rows or ()][:1] == ["Tatoeba: accuracy"]
        assert ("prompt:query: " in kept.signature) == (folder == encoder)
    assert kept.command.startswith("st-xling compare 'my-encoder?prompt=query: ' other --data")


def test_an_interrupted_comparison_says_how_to_resume(
    encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(COMPARE_TASKS, "tatoeba", COMPARE_TASKS["tatoeba"]._replace(run=stopped))
    assert main(["compare", str(encoder), *COMPARED, "--out", str(tmp_path / "out")]) == 130
    assert "Run the same command again to resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["{0}", "--tasks", "xsimm"], "xsimm"),
        (["{0}", "--data", "{0}/nothing"], "nothing"),
        (["{0}?layers=2"], "layers=2"),
        (["no/model", "--keep"], "no/model"),
        (["{0}", "--languages", "klingon"], "klingon"),
        (["{0}", "--out", "{0}"], "{0}"),
    ],
)
def test_bad_input_of_a_comparison(
    words: list[str], fact: str, encoder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [] if "--data" in words else COMPARED[:2]
    assert main(["compare", *(word.format(encoder) for word in words), *data]) == 2
    printed = capsys.readouterr()
    assert fact.format(encoder) in printed.err and not printed.out


# Transfer


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def transfer_words(task: str, bert: str, paths: dict[str, Path], out: Path) -> list[str]:
    tests = [f"{language}={path}" for language, path in paths.items()]
    return ["transfer", task, bert, "--train", f"en={paths['en']}", "--test", *tests, "--out", str(out)]


def test_transfer_from_files_to_a_table(bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = "xnli"
    paths, figures = write_set(tmp_path / "data", task), tmp_path / "deep" / "figures.json"
    command = transfer_words(task, bert, paths, tmp_path / "run")
    command[4] += "?size=30&seed=0"
    small = ["--hold-out", "0.4", "--max-steps", "2", "--batch-size", "8", "--seed", "3", "--json", str(figures)]
    assert main([*command, *small]) == 0
    captured = capsys.readouterr()
    head, *rows, signature = captured.out.splitlines()
    assert head.split() == ["language", "accuracy"]
    assert [row.split()[0] for row in rows if "---" not in row] == ["en", "ar", "th", "mean", "mean"]
    assert signature.startswith(f"transfer|task:{task}|train:en@") and "|seed:3|" in signature
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written["signature"] == written["transfer"]["signature"] == signature
    assert written["transfer"]["languages"]["th"]["accuracy"] == pytest.approx(
        float(rows[2].split()[1]) / 100, abs=1e-3
    )
    assert f"{task}: step 2 of 2, " in captured.err and "test: en " in captured.err
    assert main([*command, *small]) == 2
    assert "holds an earlier run (it is complete)" in capsys.readouterr().err
    assert main([*command, *small, "--resume"]) == 0
    assert capsys.readouterr().out == captured.out


def test_bad_input_of_a_transfer(bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_set(tmp_path / "data", "pawsx")
    assert main(transfer_words("xnli", bert, paths, tmp_path / "run")) == 2
    assert "expected XNLI without faults" in capsys.readouterr().err
    command = transfer_words("pawsx", bert, paths, tmp_path / "run")
    command[2] = str(tmp_path / "no-encoder")
    assert main(command) == 2
    assert "no encoder could be loaded" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
