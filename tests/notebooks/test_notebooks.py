"""The notebooks run from top to bottom, each by itself, with figures above chance; their outputs are kept.

To keep outputs anew, after a change: ``python -m tests.notebooks.keep_outputs``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import nbformat
import pytest

from tests.notebooks.outputs import kinds, pictures, printed
from tests.notebooks.run_notebook import NOTEBOOKS, notebooks, reads_ready_model, run_notebook

pytestmark = pytest.mark.slow

MOST_BYTES = 300_000
MOST_CELLS = 25


def numbers(pattern: str, text: str) -> list[float]:
    """The groups of the one place where ``pattern`` is found."""
    found = re.findall(pattern, text, flags=re.MULTILINE)
    assert len(found) == 1, f"{pattern!r} was found {len(found)} times in:\n{text}"
    return [float(word) for word in (found[0] if isinstance(found[0], tuple) else found)]


def every(pattern: str, text: str) -> list[list[float]]:
    """The groups of all places where ``pattern`` is found, at least one."""
    found = re.findall(pattern, text, flags=re.MULTILINE)
    assert found, f"{pattern!r} is not in:\n{text}"
    return [[float(word) for word in (groups if isinstance(groups, tuple) else (groups,))] for groups in found]


def mined(text: str) -> None:
    """Of the sentences shown all six translations are mined; of the phrasebook most, by a threshold from other text."""
    assert len(re.findall(r"^1\.\d+\t\d+\t\d+\t", text, re.M)) == 6
    assert re.search(r"^numbers: .*8 Uhr", text, re.M) and re.search(r"^copy: All rights", text, re.M)
    precision, recall, _ = numbers(r"precision ([\d.]+), recall ([\d.]+), F1 ([\d.]+)$", text)
    assert min(precision, recall) > 0.6


def filtered(text: str) -> None:
    """Each fault is removed by what is made for it; what stays is nearly clean."""
    before, after, kept = numbers(r"good pairs: ([\d.]+) before, ([\d.]+) after; (\d+) of 300", text)
    assert before == 0.5 and after > 0.8 and kept > 200
    assert {"copy", "numbers", "language", "length_ratio"} <= set(re.findall(r"^line \d+, (\w+): ", text, re.M))


def finetuned(text: str) -> None:
    """The slim model is a tenth of the whole; training makes it better."""
    plain = re.sub(r"(?<=\d),(?=\d)", "", text)
    [whole], [slim] = (numbers(rf"^{name}: +(\d+) parameters", plain) for name in ("whole model", "of our languages"))
    assert slim < whole / 10
    (*_, start), (*_, end) = every(r"^all +([\d.]+) +([\d.]+) +([\d.]+)$", text)
    assert end > start + 3 and end > 60  # chance: 0.7
    rows = every(r"^ *" + r"(-?\d\.\d\d) +" * 4, text)
    assert rows[0][2] > rows[0][3] and rows[1][2] > rows[1][3]


def evaluated(text: str) -> None:
    """Retrieval among 100; mining by the evaluator and by the module, which agree."""
    assert min(numbers(r"^all +([\d.]+) +([\d.]+) +([\d.]+)$", text)) > 60  # chance: 1
    signatures = re.findall(r"^tatoeba\|.*$", text, re.M)
    assert len(set(signatures)) == 4 and sum("|layer:" in signature for signature in signatures) == 2
    assert all(
        low <= mean <= high
        for mean, low, high in every(r"([-+][\d.]+) points .*\(([-+][\d.]+) to ([-+][\d.]+)\)", text)
    )
    by_evaluator = numbers(r"^de-en +([\d.]+) +([\d.]+) +([\d.]+) +[\d.]+ +\d+ +\d+ +40$", text)
    by_module = numbers(r"'precision': ([\d.]+), 'recall': ([\d.]+), 'f1': ([\d.]+)", text)
    assert [100 * value for value in by_module] == pytest.approx(by_evaluator, abs=0.1)


def reranked(text: str) -> None:
    """The cross-encoder is above one in ten; the search finds translations, in one stage and in two."""
    accuracy, low, high = numbers(r"^acc@1 +([\d.]+)  \(([\d.]+) to ([\d.]+)\)$", text)
    assert low < accuracy < high and low > 15
    (one, of), (two, _) = every(r": the first hit is right for (\d+) of (\d+) queries$", text)
    assert one > 0.5 * of and two > 0.1 * of


def retrieved(text: str) -> None:
    """Questions in languages that had none find their passages."""
    rows = dict(re.findall(r"^([a-z]{2}(?:-[a-z]{2})?) +([\d.]+)", text, re.M))
    assert len(rows) == 9 and min(map(float, rows.values())) > 10  # chance: 3


def published(text: str) -> None:
    """The card holds the figures, a push would publish them with the thresholds, and mining takes these."""
    assert min(numbers(r"^all +([\d.]+) +([\d.]+) +([\d.]+)$", text)) > 80
    assert "st-xling evaluate tatoeba my-encoder --data" in text
    assert len(re.findall(r"^phrasebook-test \(\w+\) \| \w+ English \| 0\.\d+$", text, re.M)) == 2
    threshold = numbers(r"^de-en: ([\d.]+) ", text)[0]
    assert numbers(r"\|threshold:([\d.]+) published\|", text)[0] == pytest.approx(threshold, abs=1e-3)
    files = re.findall(r"^(\S+) +[\d,]+ B$", text, re.M)
    assert {"README.md", "mining.json", "model.safetensors", "results.json", "training/run.json"} <= set(files)
    assert not [file for file in files if "checkpoint" in file]


def written(text: str) -> None:
    """The new term is as by loops, cached without a change, and does what it was made for."""
    at_once, cached = re.findall(r"^(?:at once|cached) (\{.*\})$", text, re.M)
    assert at_once == cached and "'short_ranking'" in cached
    value, by_loops = numbers(r"^([\d.]+), by loops ([\d.]+)$", text)
    assert value == by_loops
    (alone, _), (short, whole) = every(r": ([\d.]+) % by the first 8 numbers, ([\d.]+) % by all$", text)
    assert whole >= short > alone + 5


def scaled(text: str) -> None:
    """Searches find nearly all; indexes are kept; the killed run ends as if it had not been."""
    pairs, true, of = numbers(
        r"^([\d,]+) pairs above 1.2, ([\d,]+) of ([\d,]+) true", re.sub(r"(?<=\d),(?=\d)", "", text)
    )
    assert true > 0.9 * of and true > 0.9 * pairs
    assert min(numbers(r"source side ([\d.]+), target side ([\d.]+), by ", text)) > 0.7
    assert re.search(r"^german: \d+ MB$", text, re.M)
    assert "killed with exit code -9" in text and "pairs: False" in text and "equal: True" in text


def aligned(text: str) -> None:
    """Words are linked, and the best layer is measured."""
    assert {"Nachbar=neighbour", "verkauft=sold", "Brücke=bridge"} <= set(text.split())
    assert min(row[-1] for row in every(r"^\d+ +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", text)) < 10


def chosen(text: str) -> None:
    """The comparison tells the models apart; centering helps, on text held out and in the comparison."""
    assert len(re.findall(r"^compare\|tasks:tatoeba,", text, re.M)) == 2
    assert re.search(r"^xsim\+\+: error .* whole > four layers$", text, re.M)
    assert re.search(r"^not compared: Leak check: whole: it has no record", text, re.M)
    before = every(r"^as it was .* ([\d.]+) +1,536$", text)
    [centered] = numbers(r"^centered .* ([\d.]+) +1,536$", text)
    assert len(before) == 3 and centered > before[0][0] + 3
    four, _, _, with_means, *_ = numbers(r"^Mixed pool: mAP" + r" +([\d.]+) \[([\d.]+), ([\d.]+)\]" * 3, text)
    assert with_means > four
    (wide, by_floats), (narrow, by_octets) = every(r": +(\d+) bytes a vector, ([\d.]+) % of the trans", text)
    assert wide == 4 * narrow and by_octets > by_floats - 5


def from_documents(text: str) -> None:
    """Joined lines and the missing one are found; nearly all pairs are right; training on them helps."""
    assert re.search(r"^0\.\d\d  Der eine las Zeitung\. Der andere schlief\.$", text, re.M)
    assert re.search(r"^0\.00  Gegenüber stellte", text, re.M)
    pairs, right, of = numbers(r"^(\d+) pairs, (\d+) of them among the (\d+) right ones$", text)
    assert right > 0.85 * pairs and right > 0.85 * of
    assert re.search(r"^license: cc0-1.0$", text, re.M)
    (*_, before), (*_, after) = every(r"^all +([\d.]+) +([\d.]+) +([\d.]+)$", text)
    assert after > before + 5


def trained_better(text: str) -> None:
    """Each way from the same start as often."""
    [start], [teacher] = (numbers(rf"^{name}, \d+ steps: +([\d.]+) %$", text) for name in ("start", "teacher"))
    assert 20 < start < teacher
    same, taught = numbers(r"^60 steps from random weights: tr ([\d.]+) %, distill ([\d.]+) %$", text)
    assert same == start and taught > 20  # chance: 0.3
    plain, mined_ones = (row[0] for row in every(r"^tr.*: ([\d.]+) ± ([\d.]+) %$", text))
    assert min(plain, mined_ones) > start


SANE: dict[str, Callable[[str], None]] = {
    "01_mine": mined,
    "02_filter": filtered,
    "03_finetune": finetuned,
    "04_evaluate": evaluated,
    "05_rerank": reranked,
    "06_retriever": retrieved,
    "07_publish": published,
    "08_objective": written,
    "09_scale": scaled,
    "10_align": aligned,
    "11_choose_an_encoder": chosen,
    "12_better_training": trained_better,
    "13_documents": from_documents,
}


def kept(name: str) -> Any:
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def code_cells(notebook: Any) -> Iterator[Any]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def test_these_are_the_notebooks():
    assert [path.stem for path in notebooks()] == list(SANE)


@pytest.mark.parametrize("name", SANE)
def test_runs_as_kept(name, tmp_path, request):
    path = NOTEBOOKS / f"{name}.ipynb"
    encoder = request.getfixturevalue("real_encoder") if reads_ready_model(path) else None  # skips where it is absent
    fresh = run_notebook(path, tmp_path, encoder)
    SANE[name](printed(fresh))
    for number, (before, now) in enumerate(zip(code_cells(kept(name)), code_cells(fresh), strict=True), 1):
        assert kinds(before.outputs) == kinds(now.outputs), f"code cell {number} of {name}: {now.source}"


@pytest.mark.parametrize("name", SANE)
def test_kept_outputs_are_clean(name):
    notebook, path = kept(name), NOTEBOOKS / f"{name}.ipynb"
    SANE[name](printed(notebook))
    assert path.stat().st_size < MOST_BYTES and len(notebook.cells) <= MOST_CELLS
    assert pictures(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    for number, cell in enumerate(code_cells(notebook), 1):
        assert cell.execution_count == number and not cell.metadata
        assert not [output for output in cell.outputs if output.get("name") == "stderr"]
    text = "\n".join([printed(notebook), *(cell.source for cell in notebook.cells)])
    assert not re.search(r"(?<![\w.~/])/(?:home|root|tmp|usr|var|work|Users|mnt|opt)\b|[A-Z]:\\", text)
    assert not re.search(r"\d(?:it|s)/s|\x1b|\r", text)  # progress bars, colors
    links = re.findall(r"\]\((?!https:)([^)]+)\)", "\n".join(cell.source for cell in notebook.cells))
    assert links and all((NOTEBOOKS / link).exists() for link in links)
