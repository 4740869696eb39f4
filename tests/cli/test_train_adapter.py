"""``st-xling train sf`` and ``evaluate precision``, from a phrasebook to a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from st_xling.cli import main

TINY = ["--tiny", "hidden_size=32", "--tiny", "layers=2", "--tiny", "vocabulary=300"]
DATA = ["--data", "zh-vi=phrasebook?size=80", "--dev", "zh-vi=phrasebook?size=30&split=test"]


def test_a_sweep_and_the_model_it_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, cache = tmp_path / "run", tmp_path / "cache"
    words = [*f"train sf --model tiny --sweep --max-steps 4 --cache {cache} --out {out}".split(), *DATA, *TINY]
    assert main([*words, "--json", str(tmp_path / "figures.json")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown[:5]] == ["layer", "1", "2", "all", "cls"]
    assert shown[5].startswith("precision|at:1,5|pairs:zh-vi|") and "4 x 4 steps in" in shown[6]
    layers = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["training"]["layers"]
    assert [row["layer"] for row in layers] == ["1", "2", "all", "cls"]

    card = (out / "README.md").read_text(encoding="utf-8")
    assert 'task="zh")' in card and 'task="vi")' in card
    assert "(pictures/sentence_vectors.png)" in card
    assert (out / "pictures" / "sentence_vectors.png").read_bytes().startswith(b"\x89PNG")

    assert main([*words, "--overwrite"]) == 0
    assert "\n0 texts encoded in" in capsys.readouterr().out
    saved = json.loads((out / "results.json").read_text(encoding="utf-8"))["training"]
    data = ["--data", "zh-vi=phrasebook?size=30&split=test"]
    assert main(["evaluate", "precision", str(out), *data, "--json", str(tmp_path / "judged.json")]) == 0
    judged = json.loads((tmp_path / "judged.json").read_text(encoding="utf-8"))["precision"]
    assert judged["precision_mean_p@1"] == pytest.approx(saved["best_dev"])
    assert capsys.readouterr().out.startswith("pair   P@1 →  P@1 ←  P@5 →  P@5 ←\nzh-vi  ")
