"""``st-xling transfer``: table, signature and JSON; bad input; real sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from st_xling.cli import main
from tests.training.transfer.sets import write_encoder, write_set


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def words(task: str, encoder: str, paths: dict[str, Path], out: Path) -> list[str]:
    tests = [f"{language}={path}" for language, path in paths.items()]
    return ["transfer", task, encoder, "--train", f"en={paths['en']}", "--test", *tests, "--out", str(out)]


def test_from_files_to_a_table(encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = "xnli"
    paths, figures = write_set(tmp_path / "data", task), tmp_path / "deep" / "figures.json"
    command = words(task, encoder, paths, tmp_path / "run")
    small = ["--hold-out", "0.4", "--max-steps", "2", "--batch-size", "8", "--seed", "3", "--json", str(figures)]
    assert main([*command, *small]) == 0
    captured = capsys.readouterr()
    head, *rows, signature = captured.out.splitlines()
    assert head.split()[1:] == ["en", "ar", "th", "avg", "zero-shot"]
    assert [row.split()[0] for row in rows] == ["accuracy"]
    assert signature.startswith(f"transfer|task:{task}|train:en@") and "|seed:3|" in signature
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written["signature"] == written["transfer"]["signature"] == signature
    assert written["transfer"]["languages"]["th"]["accuracy"] == pytest.approx(
        float(rows[-1].split()[3]) / 100, abs=1e-3
    )
    assert f"{task}: step 2 of 2, " in captured.err and "test: en " in captured.err
    assert main([*command, *small]) == 2
    assert "holds an earlier run (it is complete)" in capsys.readouterr().err
    assert main([*command, *small, "--resume"]) == 0
    assert capsys.readouterr().out == captured.out


def test_bad_input(encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_set(tmp_path / "data", "pawsx")
    assert main(words("xnli", encoder, paths, tmp_path / "run")) == 2
    assert "expected XNLI without faults" in capsys.readouterr().err
    command = words("pawsx", encoder, paths, tmp_path / "run")
    command[2] = str(tmp_path / "no-encoder")
    assert main(command) == 2
    assert "no encoder could be loaded" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    for option, value, fault in (
        ("--batch-size", "0", "--batch-size must be above 0: got 0"),
        ("--learning-rate", "nan", "--learning-rate must be above 0: got nan"),
    ):
        assert main([*words("pawsx", encoder, paths, tmp_path / "run"), option, value]) == 2
        assert fault in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_like_a_paper_and_options_before_it(encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_set(tmp_path / "data", "xnli")
    command = [*words("xnli", encoder, paths, tmp_path / "run"), "--like", "amber", "--max-steps", "1"]
    assert main([*command, "--batch-size", "4"]) == 0
    signature = capsys.readouterr().out.splitlines()[-1]
    assert "|batch:4|lr:2e-05/constant|" in signature
    pos = write_set(tmp_path / "pos", "pos")
    assert main([*words("pos", encoder, pos, tmp_path / "tags"), "--like", "dap"]) == 2
    assert "got dap for pos" in capsys.readouterr().err
    assert main([*words("pos", encoder, pos, tmp_path / "tags"), "--fused", "--max-steps", "1"]) == 0
    assert "|words:fused|f1:runs|" in capsys.readouterr().out


def test_real_treebanks(real_data: Path, encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A few steps from an encoder that knows none of the words: every word of every language is judged all the same."""
    paths = {code: real_data / "ud_pud" / f"{code}.conllu.gz" for code in ("en", "tr")}
    few = ["--hold-out", "0.1", "--max-steps", "2", "--json", str(tmp_path / "figures.json")]
    assert main([*words("pos", encoder, paths, tmp_path / "run"), *few]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["transfer"]["languages"]
    assert {language: found["rows"] for language, found in figures.items()} == {"en": 100, "tr": 100}
    assert figures["tr"]["labels"] > 1000 and 0 < figures["tr"]["accuracy"] < 1
    assert capsys.readouterr().out.startswith("POS ")
