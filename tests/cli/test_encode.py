"""``st-xling encode``: figures on stdout, progress on stderr."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from st_xling import __version__
from st_xling.cli import main
from st_xling.mining import EmbeddingStore
from tests.training.children import st_xling

SENTENCES = ["Der Hund schläft.\t1", "The dog sleeps. 🙂", "แมวดำ", "لا أعرف.", "Ich lese.", "I read.", "ฝนตก"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "ids.txt"
    path.write_text("".join(f"x-{row}\t{text}\n" for row, text in enumerate(SENTENCES)), encoding="utf-8")
    return path


def words(saved_encoder: Path, text: Path, out: Path) -> list[str]:
    return ["encode", str(saved_encoder), str(text), "--out", str(out), "--text-format", "bucc", "--shard-rows", "2"]


def test_figures_and_nothing_else_on_stdout(saved_encoder: Path, text: Path, tmp_path: Path) -> None:
    figures, out = tmp_path / "deep" / "figures.json", tmp_path / "store"
    given = [*words(saved_encoder, text, out), "--store-dtype", "float16", "--batch-size", "3", "--json", str(figures)]
    ran = st_xling(given, tmp_path / "streams")
    assert ran.status == 0, ran.stderr
    store = EmbeddingStore.open(out)
    assert store.shape == (7, 16) and store.dtype == np.float16
    store.check_text(SENTENCES)
    first, signature = ran.stdout.splitlines()
    assert first == f"7 vectors of dim 16 in 4 shards: {out}"
    assert signature == store.signature
    assert signature.startswith("encode|model:") and signature.endswith(f"|st-xling:{__version__}")
    assert "|dtype:float16|normalized:yes|batch_size:3|shard_rows:2|data:ids.txt@" in signature
    assert json.loads(figures.read_text()) == {
        "encode": {"rows": 7, "dim": 16, "shards": 4},
        "signature": signature,
    }
    assert ran.stderr == ""
    assert main([*words(saved_encoder, text, tmp_path / "long"), "--no-normalize"]) == 0
    longer = EmbeddingStore.open(tmp_path / "long")
    assert "|normalized:no|" in longer.signature and not np.allclose(np.linalg.norm(longer[:], axis=1), 1)


def test_lines_that_were_kept_are_told(saved_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "text.txt", tmp_path / "store"
    path.write_bytes(b"gut\n\n\xff\n")
    given = ["encode", str(saved_encoder), str(path), "--out", str(out), "--errors", "replace", "--blank-lines", "keep"]
    assert main(given) == 0
    captured = capsys.readouterr()
    for place in (0, len(given)):
        shutil.rmtree(out)
        assert main([*given[:place], "--quiet", *given[place:]]) == 0 and capsys.readouterr() == (captured.out, "")
        shutil.rmtree(out)
        assert main([*given[:place], "-v", *given[place:]]) == 0
        assert f"{saved_encoder}" in (told := capsys.readouterr().err) and "1 lines without a sentence" in told
    assert "1 lines without a sentence, kept" in captured.err
    assert captured.out.startswith("3 vectors of dim 16 in 1 shards")
