"""``st-xling completion``: a shell that has read the script completes a line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from st_xling.cli import main

pytest.importorskip("shtab")

COMPLETED = {
    "st-xling ev": "evaluate",
    "st-xling --debug mi": "mine",
    "st-xling evaluate xs": "xsim",
    "st-xling evaluate bucc my-encoder --margin r": "ratio",
    "st-xling train da": "dap dap-released",
    "st-xling train my-r": "my-recipe.yaml",
    "st-xling train dap --lor": "--lora --lora-keep",
    "st-xling recipes ir-semacl-": "ir-semacl-langcl",
    "st-xling mine ne": "news.de",
    "st-xling slim my-encoder --langu": "--languages",
}


def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out, encoding="utf-8")
    for name in ("news.de", "my-recipe.yaml"):
        (tmp_path / name).touch()
    lines = "\n".join(COMPLETED)
    shell = r"""
source ./script
function_of() { complete -p st-xling | sed 's/.*-F \([^ ]*\).*/\1/'; }
while read -r COMP_LINE; do
  COMP_WORDS=($COMP_LINE) COMP_POINT=${#COMP_LINE} COMPREPLY=()
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  "$(function_of)" st-xling "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  echo "${COMPREPLY[*]}"
done
"""
    ran = subprocess.run(["bash", "-c", shell], input=f"{lines}\n", capture_output=True, text=True, cwd=tmp_path)
    assert dict(zip(COMPLETED, ran.stdout.splitlines())) == COMPLETED, ran.stderr


def test_zsh_has_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("#compdef st-xling") and "xpr-mixed" in script
