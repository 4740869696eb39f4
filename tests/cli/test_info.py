"""``st-xling info``, which people paste into bug reports."""

import json
from pathlib import Path

import pytest
import sentence_transformers
import torch

import st_xling
from st_xling.cli import main


def test_it_prints_what_a_bug_report_needs_and_no_name_of_the_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A maintainer's first three questions are versions, device and cache; a home folder has the user's name."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("ST_XLING_DATA", f"{tmp_path}/data")
    path = tmp_path / "info.json"
    assert main(["info", "--json", str(path)]) == 0
    text = capsys.readouterr().out
    for line in (st_xling.__version__, sentence_transformers.__version__, torch.__version__):
        assert f" {line}\n" in text
    assert f"cpu, {torch.get_num_threads()} threads of " in text
    assert "ST_XLING_DATA" in text and "~/data" in text
    assert str(tmp_path) not in text
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert saved["versions"]["torch"] == torch.__version__
