"""The notebooks run from top to bottom, in order in one folder, with figures above chance; their outputs are kept.

To keep outputs anew, after a change: ``python -m tests.notebooks.keep_outputs``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.notebooks.outputs import kinds, pictures, printed
from tests.notebooks.run_notebook import NOTEBOOKS, notebooks, run_notebook

pytestmark = pytest.mark.slow

ORDER = ["01_train", "02_evaluate", "03_mine", "04_rerank", "05_publish"]
MOST_BYTES = 300_000
MOST_CELLS = 12  # of code


def numbers(pattern: str, text: str) -> list[float]:
    """The groups of the one place where ``pattern`` is found."""
    found = re.findall(pattern, text, flags=re.MULTILINE)
    assert len(found) == 1, f"{pattern!r} was found {len(found)} times in:\n{text}"
    return [float(word) for word in (found[0] if isinstance(found[0], tuple) else found)]


def trained(text: str) -> None:
    """The encoder finds translations among 100, and puts one nearer than another sentence."""
    assert numbers(r"best development accuracy ([\d.]+) %", text)[0] > 80  # chance: 1
    rows = re.findall(r"^ *" + r"(-?\d\.\d\d) +" * 4, text, re.M)
    german, chinese, english, _ = [[float(value) for value in row] for row in rows]
    assert german[2] > german[3] and chinese[2] > chinese[3] and english[2] == pytest.approx(1, abs=0.01)
    ranking = [float(value) for value in re.findall(r"^step .*: TR ([\d.]+)", text, re.M)]
    assert ranking[-1] < ranking[0]


def evaluated(text: str) -> None:
    """Retrieval among 300; mining by the command and by the module, which agree."""
    assert min(numbers(r"^all +([\d.]+) +([\d.]+) +([\d.]+)$", text)) > 80  # chance: 0.3
    precision, recall, f1 = numbers(r"^mean +([\d.]+) +([\d.]+) +([\d.]+)$", text)
    assert precision > 50 and recall > 50 and f1 > 55
    by_command = numbers(r"^de-en +[\d.]+ +\d+ +\d+ +80 +([\d.]+) +([\d.]+) +([\d.]+)$", text)
    by_module = numbers(r"'precision': ([\d.]+), 'recall': ([\d.]+), 'f1': ([\d.]+)", text)
    assert [100 * value for value in by_module] == pytest.approx(by_command, abs=0.1)


def mined(text: str) -> None:
    """The published threshold was taken; the pairs are translations; the guards saw the noise."""
    published = numbers(r"^de-en: threshold ([\d.]+), precision", text)[0]
    assert numbers(r"^threshold ([\d.]+) of my-encoder for de-en", text)[0] == pytest.approx(published, abs=1e-3)
    precision, recall = numbers(r"translations: precision ([\d.]+), recall ([\d.]+)$", text)
    assert precision > 0.6 and recall > 0.5
    assert re.search(r"^copy: The garden", text, re.M) and re.search(r"^numbers: ", text, re.M)
    errors = [float(rate) for rate in re.findall(r"errors in 300, ([\d.]+) %", text)]
    assert len(errors) == 3 and max(errors) < 20


def reranked(text: str) -> None:
    """Above one in ten; the search with both stages finds something."""
    accuracy, low, high = numbers(r"^acc@1 +([\d.]+)  \(([\d.]+) to ([\d.]+)\)$", text)
    assert low < accuracy < high and accuracy > 10
    stages = re.findall(r"^([\w -]+): the first hit is right for (\d+) of 40 questions$", text, re.M)
    assert [name for name, _ in stages] == ["encoder", "encoder and re-ranker"]
    assert int(stages[0][1]) > 8 and int(stages[1][1]) > 2  # chance: 1


def published(text: str) -> None:
    """The card holds the figures, the push would publish them, the slim model is the same and smaller."""
    assert min(numbers(r"^\| \*\*all\*\* \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text)) > 80
    assert "st-xling evaluate tatoeba my-encoder --data" in text and "st-xling evaluate bucc my-encoder" in text
    assert len(re.findall(r"^phrasebook-test \(\w+\) \| \w+ English \| 0\.\d+$", text, re.M)) == 6
    before, after = numbers(r"^vocabulary +([\d,]+) +([\d,]+) ", text.replace(",", ""))
    assert after < before
    assert re.search(r"^held-out text +\d+ +1\.0000", text, re.M)
    files = re.findall(r"^(\S+) +[\d.]+ (?:B|KiB|MiB)  ", text, re.M)
    assert {"README.md", "mining.json", "model.safetensors", "results.json", "training/run.json"} <= set(files)
    assert not [file for file in files if "checkpoint" in file]


SANE: dict[str, Callable[[str], None]] = {
    "01_train": trained,
    "02_evaluate": evaluated,
    "03_mine": mined,
    "04_rerank": reranked,
    "05_publish": published,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all of them run, so that a later one finds the models of those before."""
    return tmp_path_factory.mktemp("notebooks")


def kept(name: str) -> Any:
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def code_cells(notebook: Any) -> Iterator[Any]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def test_these_are_the_notebooks():
    assert [path.stem for path in notebooks()] == ORDER == list(SANE)


@pytest.mark.parametrize("name", ORDER)
def test_runs_as_kept(name, folder):
    fresh = run_notebook(NOTEBOOKS / f"{name}.ipynb", folder)
    SANE[name](printed(fresh))
    SANE[name](printed(kept(name)))
    for number, (before, now) in enumerate(zip(code_cells(kept(name)), code_cells(fresh), strict=True), 1):
        assert kinds(before.outputs) == kinds(now.outputs), f"code cell {number} of {name}: {now.source}"


@pytest.mark.parametrize("name", ORDER)
def test_kept_outputs_are_clean(name):
    notebook, path = kept(name), NOTEBOOKS / f"{name}.ipynb"
    assert path.stat().st_size < MOST_BYTES
    assert len(list(code_cells(notebook))) <= MOST_CELLS
    assert pictures(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    for number, cell in enumerate(code_cells(notebook), 1):
        assert cell.execution_count == number and not cell.metadata
        assert not [output for output in cell.outputs if output.get("name") == "stderr"]
    text = "\n".join([printed(notebook), *(cell.source for cell in notebook.cells)])
    assert not re.search(r"(?<![\w.~/])/(?:home|root|tmp|usr|var|work|Users|mnt|opt)\b|[A-Z]:\\", text)
    assert not re.search(r"\d(?:it|s)/s|\x1b|\r", text)  # progress bars, colours


@pytest.mark.parametrize("name", ORDER[1:])
def test_what_is_made_if_it_is_absent_is_what_the_first_notebook_makes(name):
    """Each stands alone: the command of its first cell is the one that 01 keeps with its model."""
    first = "".join(cell.source for cell in code_cells(kept("01_train")))
    command = re.search(r"command = \((.*?)\n\)", first, re.DOTALL)
    assert command is not None
    expected = shlex.split("".join(re.findall(r'"(.*)"', command[1])))
    cells = [cell.source.replace("\\\n", " ") for cell in code_cells(kept(name))]
    commands = re.findall(r"\|\| (st-xling train dap .*) > /dev/null$", "\n".join(cells), re.M)
    assert [shlex.split(found) for found in commands] == [expected]
