"""``st-xling encode``, ``mine`` and ``score``: data and nothing else on stdout, progress on stderr."""

import json
from pathlib import Path

import numpy as np
import pytest

from st_xling import __version__
from st_xling.cli import main
from st_xling.data.phrasebook import mining_phrases
from st_xling.mining import EmbeddingStore
from tests.mining.pipeline.test_mine_texts import read_cells
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
    out, figures, rejects = tmp_path / "pairs.tsv", tmp_path / "deep" / "figures.json", tmp_path / "rejects.jsonl"
    words = ["mine", *sides, "--model", str(saved_encoder), "--out", str(out), "--json", str(figures)]
    more = ["--source-language", "de", "--target-language", "en", "--disable-filter", "numbers"]
    more += ["--filter-limit", "length_ratio=3"]
    assert main([*words, *more, "--rejects", str(rejects), "--k", "3", "--threshold", "0.9"]) == 0
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


SENTENCES = ["Der Hund schläft.\t1", "The dog sleeps. 🙂", "แมวดำ", "لا أعرف.", "Ich lese.", "I read.", "ฝนตก"]


def test_figures_and_nothing_else_on_stdout(saved_encoder: Path, tmp_path: Path) -> None:
    text, figures, out = tmp_path / "ids.txt", tmp_path / "deep" / "figures.json", tmp_path / "store"
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
    out, figures = tmp_path / "pairs.tsv", tmp_path / "figures.json"
    assert main(["mine", *few_translations, "--out", str(out), "--json", str(figures)]) == 0
    rows = read_cells(out)
    right = [row for row in rows if row[1] == row[2]]
    assert len(right) > 0.9 * len(rows) > 45
    *_, advice, threshold, pairs, signature = capsys.readouterr().out.splitlines()
    assert "reach the threshold. Another threshold: --threshold X" in advice and "--keep-all" in advice
    assert threshold.startswith("threshold 1.") and "estimated from the scores: precision about" in threshold
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
