"""The wheel: built from a copy of the source, complete, and at work from a folder that knows nothing of the source."""

import email
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = """
import st_xling, sys
assert st_xling.__file__.startswith(sys.argv[1]), st_xling.__file__
print(*(name for name in st_xling.__all__ if getattr(st_xling, name) is not None))
"""


def python(*words: Any, cwd: Path, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, env=os.environ | environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_the_wheel_is_complete_and_works(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")  # the first that knows license_expression
    source = tmp_path / "source"
    installed = tmp_path / "installed"
    shutil.copytree(ROOT / "st_xling", source / "st_xling", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "setup.py", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, source / name)
    offline = ("--no-deps", "--no-index", "--quiet", "--disable-pip-version-check")
    python("-m", "pip", "wheel", *offline, "--no-build-isolation", "--wheel-dir", "..", ".", cwd=source)
    (wheel,) = tmp_path.glob("*.whl")

    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata_name,) = [name for name in names if name.endswith("/METADATA")]
        metadata = email.message_from_bytes(archive.read(metadata_name))
    files = {path.relative_to(source).as_posix() for path in (source / "st_xling").rglob("*") if path.is_file()}
    assert files - names == set()
    assert {name for name in names if ".dist-info/" not in name} == files
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata.get_payload(decode=True).strip() == (ROOT / "README.md").read_bytes().strip()
    if find_spec("twine"):
        python("-m", "twine", "check", "--strict", wheel, cwd=tmp_path)

    python("-m", "pip", "install", *offline, "--target", installed, wheel, cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    version = python("-m", "st_xling", "--version", cwd=elsewhere, PYTHONPATH=str(installed))
    assert version == f"st-xling {metadata['Version']}\n"
    public = python("-c", PUBLIC, installed, cwd=elsewhere, PYTHONPATH=str(installed)).split()
    assert {"losses", "mining", "training"} <= set(public)
    recipe = python("-m", "st_xling", "train", "dap", "--print", cwd=elsewhere, PYTHONPATH=str(installed))
    assert "learning_rate" in recipe
    # Table 6 of DAP was measured by a module of the tests, which an installed package does not have.
    words = ["-m", "st_xling", "reproduce", "dap", "6", "--out", "tables"]
    assert "TR + TLM, FLOPs" in python(*words, cwd=elsewhere, PYTHONPATH=str(installed))
