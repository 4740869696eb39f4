"""The notebooks run from top to bottom, each by itself, with outputs of the kinds that are kept in them.

To keep outputs anew, after a change: ``python -m tests.notebooks.run_notebook``.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest

from tests.notebooks.run_notebook import NOTEBOOKS, kinds, notebooks, pictures, printed, reads_ready_model, run_notebook

pytestmark = pytest.mark.slow

MOST_BYTES = 300_000
MOST_CELLS = 25


def kept(name: str) -> Any:
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def code_cells(notebook: Any) -> Iterator[Any]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("name", [path.stem for path in notebooks()])
def test_runs_as_kept(name, tmp_path, request, warm_python):
    path = NOTEBOOKS / f"{name}.ipynb"
    encoder = request.getfixturevalue("real_encoder") if reads_ready_model(path) else None  # skips where it is absent
    python = warm_python if encoder is None else sys.executable
    fresh = run_notebook(path, tmp_path, encoder, python=python, few_steps=True)  # as many outputs, of the same kinds
    for number, (before, now) in enumerate(zip(code_cells(kept(name)), code_cells(fresh), strict=True), 1):
        assert kinds(before.outputs) == kinds(now.outputs), f"code cell {number} of {name}: {now.source}"
    assert written_by_others(name, {file.name for file in tmp_path.iterdir()}) == set()


def written_by_others(name: str, files: set[str]) -> set[str]:
    """Return which of the files of a notebook another one names: run in one folder, it would meet them."""
    named: set[str] = set()
    for path in notebooks():
        if path.stem != name:
            for cell in code_cells(kept(path.stem)):
                named |= set(re.findall(r"[\w.-]*[.-][\w.-]*", cell.source))
    return files & named


@pytest.mark.parametrize("name", [path.stem for path in notebooks()])
def test_kept_outputs_are_clean(name):
    path = NOTEBOOKS / f"{name}.ipynb"
    notebook = kept(name)
    assert path.stat().st_size < MOST_BYTES
    assert len(notebook.cells) <= MOST_CELLS
    assert pictures(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    for number, cell in enumerate(code_cells(notebook), 1):
        assert cell.execution_count == number and not cell.metadata
        # A notebook ends at the first command that fails: "!command" goes on, and so does bash without -e.
        assert not re.search(r"(?m)^\s*!|^%%bash(?! -e$)", cell.source)
        assert not [output for output in cell.outputs if output.get("name") == "stderr"]
    text = "\n".join([printed(notebook), *(cell.source for cell in notebook.cells)])
    assert not re.search(r"(?<![\w.~/])/(?:home|root|tmp|usr|var|work|Users|mnt|opt)\b|[A-Z]:\\", text)
    assert not re.search(r"\d(?:it|s)/s|\x1b|\r", text)  # progress bars, colors
    links = re.findall(r"\]\((?!https:)([^)]+)\)", "\n".join(cell.source for cell in notebook.cells))
    assert links and all((NOTEBOOKS / link).exists() for link in links)
