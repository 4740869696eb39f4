"""``st-xling encode``, ``mine`` and ``score``: data and nothing else on stdout, progress on stderr."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling import __version__
from st_xling.cli import main
from st_xling.data import load_pairs
from st_xling.data.phrasebook import mining_phrases
from st_xling.mining import EmbeddingStore, write_store
from tests.mining.pipeline.test_text_mining import read_cells
from tests.training.children import st_xling


@pytest.fixture
def sides(tmp_path: Path) -> list[str]:
    texts = mining_phrases("de", "en", split="dev", size=120, gold=60)
    paths = []
    for name, lines in (("de", texts.source), ("en", texts.target)):
        path = tmp_path / f"news.{name}"
        path.write_text("".join(f"{line}\n" for line in [*lines, f"\\{name}\tTab", lines[0]]), encoding="utf-8")
        paths.append(str(path))
    return paths


def test_the_file_and_the_figures(
    saved_encoder: Path, sides: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pairs.tsv"
    figures = tmp_path / "deep" / "figures.json"
    rejects = tmp_path / "rejects.jsonl"
    words = ["mine", *sides, "--model", str(saved_encoder), "--out", str(out), "--json", str(figures)]
    filters = ["--source-language", "de", "--target-language", "en", "--disable-filter", "numbers"]
    filters += ["--filter-limit", "length_ratio=3"]
    assert main([*words, *filters, "--rejects", str(rejects), "--k", "3", "--threshold", "0.9"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    pairs = read_cells(out)
    assert lines[0] == "source: 122 lines, 121 distinct sentences, 0 blank lines"
    assert lines[-2] == f"{len(pairs)} pairs: {out}"
    assert "|filters:copy=0.85,length_ratio=3,language=0.1" in lines[-1]
    assert "|threshold:0.9|" in lines[-1] and "|k:3|" in lines[-1] and lines[-1].startswith("mine|model:")
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert (written["mine"]["source_language"], written["mine"]["target_language"]) == ("de", "en")
    assert written["signature"] == lines[-1] and written["mine"]["pairs"] == len(pairs) > 20
    assert len(rejects.read_text(encoding="utf-8").splitlines()) == sum(written["mine"]["rejected"].values())
    assert "encoding:" not in captured.err  # no bar
    out.unlink()
    assert main([*words, "--dry-run"]) == 0
    assert "for an exact search on cpu" in capsys.readouterr().out.splitlines()[2] and not out.exists()
    assert json.loads(figures.read_text(encoding="utf-8"))["plan"]["rows"] == {"source": 122, "target": 122}


def test_stdout_holds_the_pairs_alone(saved_encoder: Path, sides: list[str], tmp_path: Path) -> None:
    words = ["mine", *sides, "--model", str(saved_encoder), "--disable-filter", "all"]
    piped = st_xling([*words, "--out", "-"], tmp_path / "streams")
    assert piped.status == 0, piped.stderr
    assert main([*words, "--out", str(tmp_path / "pairs.tsv")]) == 0
    assert piped.stdout == (tmp_path / "pairs.tsv").read_text(encoding="utf-8")
    assert "\nmine|model:" in piped.stderr and " pairs: -" in piped.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["news.de", "news.en", "pairs.tsv", "streams"]


def test_rejected_pairs_on_stdout(saved_encoder: Path, sides: list[str], tmp_path: Path) -> None:
    """``--rejects -`` wrote a file of the name ``-``."""
    words = ["mine", *sides, "--model", str(saved_encoder), "--threshold", "0.9"]
    words += ["--source-language", "de", "--target-language", "en"]
    piped = st_xling([*words, "--out", str(tmp_path / "a.tsv"), "--rejects", "-"], tmp_path / "streams")
    assert piped.status == 0, piped.stderr
    named = [*words, "--out", str(tmp_path / "b.tsv"), "--rejects", str(tmp_path / "r")]
    assert main(named) == 0
    assert piped.stdout == (tmp_path / "r").read_text(encoding="utf-8") != ""
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()
    assert "\nmine|model:" in piped.stderr and not (tmp_path / "streams" / "-").exists()


def interrupt_before(name: str) -> None:
    """Press Ctrl-C before a file gets its name."""

    def hook(event: str, values: tuple[Any, ...]) -> None:
        if event == "os.rename" and Path(os.fsdecode(values[1])).name == name:
            signal.raise_signal(signal.SIGINT)

    sys.addaudithook(hook)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("mine {0} {1} --model {2} --out out", "out"),
        ("encode {2} {0} --out out --shard-rows 30", "shard-000002.safetensors"),
    ],
    ids=["mine", "encode"],
)
def test_ctrl_c_then_the_same_command(
    command: str, name: str, saved_encoder: Path, sides: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells how to resume: without a word, people delete the work of hours."""
    monkeypatch.chdir(tmp_path)
    words = command.format(*sides, saved_encoder).split()
    stopped = st_xling(words, tmp_path / "first", before=partial(interrupt_before, name))
    assert stopped.status == 130 and stopped.stdout == "" and "Traceback" not in stopped.stderr, stopped.stderr
    assert "Run the same command again to resume." in stopped.stderr
    assert not Path("out").is_file() and not Path("out/manifest.json").exists()
    finished = st_xling(words, tmp_path / "second")
    assert finished.status == 0, finished.stderr
    assert Path("out").is_file() or EmbeddingStore.open("out").rows == 122
    assert not Path("out.work").exists()


@pytest.mark.parametrize("ending", ["tsv", "jsonl"])
def test_mined_pairs_can_be_trained_on_and_scored(
    ending: str, saved_encoder: Path, sides: list[str], tmp_path: Path
) -> None:
    """Of the JSON lines of ``mine`` the ids of a repeated sentence are lists, which no reader of pairs took."""
    mined = tmp_path / f"p.{ending}"
    scored = tmp_path / f"scored.{ending}"
    words = ["mine", *sides, "--model", str(saved_encoder), "--disable-filter", "all", "--retrieval", "forward"]
    words.append("--keep-all")
    assert main([*words, "--out", str(mined), "--format", ending]) == 0
    pairs = load_pairs(str(mined))
    lines = mined.read_text(encoding="utf-8").splitlines()[ending == "tsv" :]
    assert len(pairs) == len(lines) > 100
    assert "\\de\tTab" in pairs["source"][:] and any("1,122" in line or '["1", "122"]' in line for line in lines)
    assert main(["score", str(mined), "--model", str(saved_encoder), "--out", str(scored), "--format", ending]) == 0
    again = load_pairs(scored)
    assert (again["source"][:], again["target"][:]) == (pairs["source"][:], pairs["target"][:])


def test_between_ready_stores_nothing_heavy_is_imported(sides: list[str], tmp_path: Path) -> None:
    """No model is loaded, so neither are the libraries that load one: they take seconds."""
    stores = []
    for name, side in zip(("source", "target"), sides):
        text = Path(side).read_text(encoding="utf-8").splitlines()
        vectors = np.random.default_rng(len(name)).standard_normal((len(text), 8))
        stores += [f"--{name}-embeddings", str(write_store(tmp_path / name, vectors, sentences=text).path)]
    words = ["mine", *sides, *stores, "--source-language", "de", "--target-language", "en"]
    words += ["--out", str(tmp_path / "out.tsv")]
    script = f"import sys\nfrom st_xling.cli import main\nstatus = main({words})\nprint(status, *sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    status, *modules = ran.stdout.splitlines()[-1].split()
    assert status == "0", ran.stderr
    assert not {"sentence_transformers", "transformers", "datasets", "pandas", "ray", "faiss"} & set(modules)


SENTENCES = ["Der Hund schläft.\t1", "The dog sleeps. 🙂", "แมวดำ", "لا أعرف.", "Ich lese.", "I read.", "ฝนตก"]


def test_figures_and_nothing_else_on_stdout(saved_encoder: Path, tmp_path: Path) -> None:
    text = tmp_path / "ids.txt"
    figures = tmp_path / "deep" / "figures.json"
    out = tmp_path / "store"
    text.write_text("".join(f"x-{row}\t{text}\n" for row, text in enumerate(SENTENCES)), encoding="utf-8")
    words = f"encode {saved_encoder} {text} --out {out} --text-format bucc --shard-rows 2 --store-dtype float16"
    ran = st_xling([*words.split(), "--batch-size", "3", "--json", str(figures)], tmp_path / "streams")
    assert ran.status == 0, ran.stderr
    store = EmbeddingStore.open(out)
    assert store.shape == (7, 16) and store.dtype == np.float16
    store.check_text(SENTENCES)
    first, signature = ran.stdout.splitlines()
    assert first == f"7 vectors of dim 16 in 4 shards: {out}"
    assert signature == store.signature
    assert signature.startswith("encode|model:") and signature.endswith(f"|st-xling:{__version__}")
    assert "|dtype:float16|normalized:yes|batch_size:3|shard_rows:2|data:ids.txt@" in signature
    assert json.loads(figures.read_text()) == {"encode": {"rows": 7, "dim": 16, "shards": 4}, "signature": signature}
    assert ran.stderr == ""


@pytest.fixture
def few_translations(tmp_path: Path) -> list[str]:
    """Two texts of 400 sentences of which 60 are translations, with their vectors, as options of ``mine``."""
    source, target = np.random.default_rng(7).standard_normal((2, 400, 48)).astype(np.float32)
    target[:60] = source[:60] + 0.7 * target[:60]
    words = []
    for name, vectors in (("source", source), ("target", target)):
        lines = [f"{name} {chr(0x4E00 + row)}\n" for row in range(400)]
        (tmp_path / f"few.{name}").write_text("".join(lines), encoding="utf-8")
        np.save(tmp_path / f"few.{name}.npy", vectors)
        words += [str(tmp_path / f"few.{name}"), f"--{name}-embeddings", str(tmp_path / f"few.{name}.npy")]
    return [*words, "--disable-filter", "all"]


def test_the_default_threshold_is_estimated(
    few_translations: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """README's ``mine`` kept 254 pairs, of which 84 were right, and its next command trained on them."""
    out = tmp_path / "pairs.tsv"
    figures = tmp_path / "figures.json"
    assert main(["mine", *few_translations, "--out", str(out), "--json", str(figures)]) == 0
    rows = read_cells(out)
    right = [row for row in rows if row[1] == row[2]]
    assert len(right) > 0.9 * len(rows) > 45
    *_, advice, threshold, pairs, signature = capsys.readouterr().out.splitlines()
    assert "reach the threshold. Another threshold: --threshold X" in advice and "--keep-all" in advice
    assert threshold.startswith("threshold 1.") and "estimated from the scores" in threshold
    assert pairs == f"{len(rows)} pairs: {out}" and " estimated|" in signature
    written = json.loads(figures.read_text(encoding="utf-8"))["mine"]
    assert written["threshold_source"] == "estimated" and written["histogram"]["kept"] == len(rows)
    assert len(written["histogram"]["counts"]) == 10 and len(written["histogram"]["edges"]) == 11


def test_all_pairs_are_kept_if_asked_for(
    few_translations: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pairs.tsv"
    assert main(["mine", *few_translations, "--out", str(out), "--keep-all"]) == 0
    assert len(read_cells(out)) > 250
    *_, advice, pairs, signature = capsys.readouterr().out.splitlines()
    assert advice.startswith("All pairs are kept, right or wrong.") and "--calibrate known.tsv" in advice
    assert pairs.endswith(f" pairs: {out}") and "|threshold:none|" in signature
    for words in (["--threshold", "1.06"], ["--calibrate", str(out), "--model", "tiny"]):
        again = ["mine", *few_translations, "--out", str(tmp_path / "no.tsv"), "--keep-all", *words]
        assert main(again) != 0
        assert f"--keep-all cannot be used with {words[0]}" in capsys.readouterr().err


def test_score_shows_how_scores_are_distributed(
    few_translations: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The only hint at a threshold was the file itself."""
    sides = [Path(few_translations[0]), Path(few_translations[3])]
    lines = zip(*(side.read_text(encoding="utf-8").splitlines() for side in sides))
    (tmp_path / "parallel.tsv").write_text("".join(map("{0[0]}\t{0[1]}\n".format, lines)), encoding="utf-8")
    embeddings = [*few_translations[1:3], *few_translations[4:6]]
    words = ["score", str(tmp_path / "parallel.tsv"), *embeddings, "--out", str(tmp_path / "scored.tsv")]
    assert main([*words, "--json", str(tmp_path / "figures.json")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-14] == "scores of 400 pairs, best first:" and max(map(len, shown[-13:-3])) <= 80
    assert shown[-3].startswith("No threshold: all scores are kept. To drop the lowest: --threshold X.")
    assert sum(json.loads((tmp_path / "figures.json").read_text())["score"]["histogram"]["counts"]) == 400
    assert main([*words, "--threshold", "1", "--overwrite"]) == 0
    kept = len(read_cells(tmp_path / "scored.tsv"))
    assert f"{kept} of 400 pairs ({kept / 400:.1%}) reach the threshold 1." in capsys.readouterr().out.splitlines()[-3]


def test_pairs_of_a_file_are_shown(
    few_translations: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing showed a mined file: no histogram, no pairs around a threshold."""
    out = tmp_path / "pairs.tsv"
    figures = tmp_path / "figures.json"
    assert main(["mine", *few_translations, "--out", str(out), "--keep-all"]) == 0
    scores = [float(row[0]) for row in read_cells(out)]
    capsys.readouterr()
    assert main(["pairs", str(out), "--around", "1.2", "--size", "4", "--json", str(figures)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"scores of {len(scores)} pairs, best first:" and len(shown) == 1 + 10 + 2 * 4 + 1
    assert shown[15] == "---- 1.2 ----" and max(map(len, shown[:11])) <= 80
    nearest = json.loads(figures.read_text(encoding="utf-8"))["pairs"]["nearest"]
    above = [score for score in scores if score >= 1.2][-2:]
    below = [score for score in scores if score < 1.2][:2]
    assert [pair["score"] for pair in nearest] == [*above, *below]
    page = tmp_path / "page.html"
    assert main(["pairs", str(out), "--html", str(page)]) == 0
    assert page.read_text(encoding="utf-8").count("<section") == len(scores)
    capsys.readouterr()
    assert main(["pairs", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "To look at the pairs around a score: --around X"
    assert main(["pairs", few_translations[0]]) != 0
    assert "expected scored pairs, with the columns score" in capsys.readouterr().err


def test_pairs_are_shown_without_torch(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"score": 1.1, "source": "Hund", "target": "dog"}\n', encoding="utf-8")
    code = f"import sys\nfrom st_xling.cli import main\nmain(['pairs', {str(tmp_path / 'a.jsonl')!r}])\n"
    ran = subprocess.run([sys.executable, "-c", f"{code}print('torch' in sys.modules)"], capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "False" and "1.1000 to" in ran.stdout
