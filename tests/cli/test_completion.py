"""``st-xling completion``: a shell that has read the script completes a line."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Iterator
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
    "st-xling reproduce amb": "amber",
    "st-xling mine ne": "news.de",
    "st-xling slim my-encoder --langu": "--languages",
}


def write_script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    (folder / "_st-xling").write_text(capsys.readouterr().out, encoding="utf-8")
    for name in ("news.de", "my-recipe.yaml"):
        (folder / name).touch()


def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_script("bash", tmp_path, capsys)
    lines = "\n".join(COMPLETED)
    shell = r"""
source ./_st-xling
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


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal, a key completes a line as far as it can be, the beginning of all that fit, and writes it down."""
    write_script("zsh", tmp_path, capsys)
    setup = r"""
fpath=($PWD $fpath)
autoload -Uz compinit && compinit -u -D
st-xling() { }
write_down() { zle complete-word; print -r -- "$BUFFER" >> completed; zle kill-whole-line }
zle -N write_down && bindkey '^T' write_down
"""
    (tmp_path / "setup").write_text(setup, encoding="utf-8")
    terminal, other = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), other)
    environment = {**os.environ, "TERM": "dumb"}
    with subprocess.Popen(["zsh", "-f", "-i"], **streams, cwd=tmp_path, env=environment, start_new_session=True) as ran:  # type: ignore[call-overload]
        os.close(other)
        os.write(terminal, "".join(["source ./setup\n", *(f"{line}\x14" for line in COMPLETED), "exit\n"]).encode())
        shown = b"".join(read(terminal))
        assert ran.wait(timeout=60) == 0
    os.close(terminal)
    completed = (tmp_path / "completed").read_text(encoding="utf-8").splitlines()
    for line, result in zip(COMPLETED, completed, strict=True):
        start, _, _ = line.rpartition(" ")
        assert result.strip() == f"{start} {COMPLETED[line].split()[0]}", shown.decode()


def read(terminal: int) -> Iterator[bytes]:
    """What a terminal shows, until nobody writes to it any more."""
    try:
        while part := os.read(terminal, 4096):
            yield part
    except OSError:  # Linux has no end of file here
        pass
