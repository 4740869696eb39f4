"""evaluate.load finds the metrics by name, in processes of their own with caches of their own."""

import http.server
import json
import os
import runpy
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

import evaluate  # noqa: F401  # as a whole, before its settings are read alone
import pytest

from st_xling import __version__, metrics

ROOT = Path(__file__).resolve().parents[2]


def environment(home, **changes):
    """No network but loopback, where a refused port stands for one that cannot be reached."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "XDG_"))}
    endpoint = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_UPDATE_DOWNLOAD_COUNTS": "0", "HF_HUB_OFFLINE": "1"}
    return {**kept, **endpoint, "HF_HOME": str(home), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **changes}


def python(script, *words, env, cwd):
    words = [sys.executable, "-c", script, *words]
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


@pytest.mark.slow
def test_alone_and_without_the_package(tmp_path):
    """In a process that imports nothing of ours; and where the package is gone, they say what to install."""
    script = """
import json, sys, evaluate
sys.modules["st_xling"] = None
errors = []
for name in sys.argv[1:]:
    try:
        evaluate.load(name)
    except ImportError as error:
        errors.append(str(error))
del sys.modules["st_xling"]
print(json.dumps([errors, [evaluate.load(name).name for name in sys.argv[1:]]]))
"""
    env = environment(tmp_path, HF_EVALUATE_OFFLINE="1")
    assert python("import st_xling", env=env, cwd=tmp_path).returncode == 0
    ran = python(script, *metrics.NAMES, env=env, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    errors, loaded = json.loads(ran.stdout)
    assert loaded == list(metrics.NAMES)
    for name, message in zip(metrics.NAMES, errors, strict=True):
        assert all(fact in message for fact in (name, "pip install st-xling", str(tmp_path / "modules"))), message


@pytest.mark.slow
def test_parallel_imports(tmp_path):
    """Eight processes import at once; each then finds all files whole, and nothing else is left."""
    script = """
import json, sys, time
while time.time() < float(sys.argv[1]):
    pass
from st_xling import metrics
places = {name: f"evaluate_modules/metrics/*{name}/[0-9a-f]*/{name}.py" for name in metrics.NAMES}
files = {name: next(metrics.modules_cache().glob(place)) for name, place in places.items()}
print(json.dumps([file.read_text() == metrics.shim_text(name) for name, file in files.items()]))
"""
    words = [sys.executable, "-c", script, str(time.time() + 0.5)]
    options = {"env": environment(tmp_path), "cwd": tmp_path, "text": True}
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) for _ in range(8)]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert json.loads(out) == [True, True, True], err
    assert len(shim_files(tmp_path / "modules")) == 3


class Hub(http.server.BaseHTTPRequestHandler):
    """Knows no metric, and remembers what it was asked for."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_error(404)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.slow
def test_with_a_network(tmp_path):
    """By path nobody is asked; by name the Hub is, and after its no comes the shim."""
    script = "import sys, st_xling, evaluate\nfor name in sys.argv[1:]: print(evaluate.load(name).name)"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        env = environment(tmp_path, HF_ENDPOINT=endpoint, HF_HUB_OFFLINE="0", NO_PROXY="127.0.0.1")
        ran = python(script, *map(metrics.path, metrics.NAMES), "tatoeba", env=env, cwd=tmp_path)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
    assert ran.stdout.split() == [*metrics.NAMES, "tatoeba"], ran.stderr
    asked = [path for path in Hub.asked if path.startswith("/spaces/")]
    assert asked and all("/evaluate-" in path and "/tatoeba/" in path for path in asked)
