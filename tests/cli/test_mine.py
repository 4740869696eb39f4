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
