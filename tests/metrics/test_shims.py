"""evaluate.load finds the metrics by name, in processes of their own with caches of their own."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import evaluate  # noqa: F401  # as a whole, before its settings are read alone
import pytest

from st_xling import __version__, metrics

ROOT = Path(__file__).resolve().parents[2]


def environment(home, **changes):
    """No network but loopback, where a refused port stands for one that cannot be reached."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "XDG_"))}
    endpoint = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_UPDATE_DOWNLOAD_COUNTS": "0", "HF_HUB_OFFLINE": "1"}
    return {**kept, **endpoint, "HF_HOME": str(home), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **changes}


def python(script, *, env, cwd):
    words = [sys.executable, "-c", script]
    return subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, timeout=120)


def shim_files(modules):
    return sorted(path.relative_to(modules).as_posix() for path in Path(modules).rglob("*") if path.is_file())


def test_written_when_imported_without_anything_heavy(tmp_path):
    """Three files in evaluate's layout, no leftovers, and import stays light and quick."""
    script = "import sys, st_xling\nprint(sorted({'evaluate', 'torch', 'numpy', 'datasets'} & set(sys.modules)))"
    ran = python(script, env=environment(tmp_path), cwd=tmp_path)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")
    files = shim_files(tmp_path / "modules")
    assert len(files) == 3
    for name, file in zip(metrics.NAMES, files):
        start, kind, metric, code, module = file.split("/")
        assert (start, kind, metric) == ("evaluate_modules", "metrics", f"evaluate-metric--{name}")
        assert len(code) == 64 and module == f"{name}.py"
        assert (tmp_path / "modules" / file).read_text() == metrics.shim_text(name)


@pytest.mark.slow
def test_bare_names_offline(tmp_path):
    script = "import st_xling, evaluate\nfor name in st_xling.metrics.NAMES: print(evaluate.load(name).name)"
    ran = python(script, env=environment(tmp_path, HF_EVALUATE_OFFLINE="1"), cwd=tmp_path)
    assert ran.stdout.split() == list(metrics.NAMES), ran.stderr
    # evaluate's "couldn't be found locally, or remotely on the Hugging Face Hub" read like a failure.
    assert "found" not in ran.stderr, ran.stderr


@pytest.mark.parametrize(
    "changes", [{}, {"HF_MODULES_CACHE": "elsewhere/modules"}, {"HF_HOME": None, "XDG_CACHE_HOME": "~/xdg"}], ids=str
)
def test_same_folder_as_evaluate(changes, tmp_path, monkeypatch):
    """Ours, computed without evaluate, against evaluate's own."""
    monkeypatch.chdir(tmp_path)
    for key in list(os.environ):
        if key.startswith(("HF_", "XDG_")):
            monkeypatch.delenv(key)
    for key, value in {"HOME": str(tmp_path / "home"), "HF_HOME": str(tmp_path / "hf"), **changes}.items():
        monkeypatch.setenv(key, value) if value is not None else monkeypatch.delenv(key, raising=False)
    monkeypatch.delitem(sys.modules, "evaluate.config", raising=False)
    assert metrics.modules_cache() == runpy.run_module("evaluate.config")["HF_MODULES_CACHE"]
    metrics.write_shims()
    assert len(shim_files(metrics.modules_cache())) == 3
    assert tmp_path in metrics.modules_cache().absolute().parents


def test_shim_of_another_version_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics, "modules_cache", lambda: tmp_path)
    for version in ("0.0.1", "0.0.2"):
        monkeypatch.setattr(metrics, "__version__", version)
        metrics.write_shims()
        files = shim_files(tmp_path)
        assert len(files) == 3 and all(f"st-xling {version}:" in (tmp_path / file).read_text() for file in files)


def test_cache_that_cannot_be(tmp_path):
    """The cache's folder is a file: nothing can be written, and the import neither fails nor complains."""
    (tmp_path / "file").write_text("mine")
    ran = python("import st_xling; print(st_xling.__version__)", env=environment(tmp_path / "file"), cwd=tmp_path)
    assert (ran.stdout, ran.stderr) == (f"{__version__}\n", "")
    assert (tmp_path / "file").read_text() == "mine"
