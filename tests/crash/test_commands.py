"""A command that writes, killed after a step and run again, ends as if it had not been, and damages nothing."""

import ast
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.crash.jobs import JOBS, Job, contents, equal, lay_out, run, spread, write_inputs

EVERYDAY = {"mine from texts"}


def test_what_is_imported_before_a_fork_is_there() -> None:
    """The fork server ignores a module that is not there: after a renaming, each child imported torch anew."""
    tree = ast.parse((Path(__file__).parents[1] / "training" / "preload.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    names: list[str] = []
    for node in imports:
        names += [alias.name for alias in node.names]
    assert "st_xling.mining.encoding" in names
    assert [name for name in names if find_spec(name) is None] == []


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs") / "job"
    folder.mkdir()
    write_inputs(folder)
    return folder


@pytest.mark.parametrize(
    "name", [name if name in EVERYDAY else pytest.param(name, marks=pytest.mark.slow) for name in JOBS]
)
def test_killed_and_run_again(name: str, inputs: Path, tmp_path: Path) -> None:
    job = JOBS[name]
    words = shlex.split(job.words)
    before = tmp_path / "before" / "job"
    folder = tmp_path / "job"
    lay_out(job, inputs, before)
    shutil.copytree(before, folder)
    start = contents(folder, job)
    undisturbed, steps = run(words, folder)
    assert undisturbed.status == 0, undisturbed.stderr
    end = contents(folder, job)

    faults: list[str] = []
    for point in spread(steps):
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        killed, renamed = run(words, folder, point)
        assert killed.status == -9 and len(renamed) == point, killed.stderr
        when = f"before {renamed[-1]}"
        faults += [f"{when}: {file} is damaged" for file in damaged(job, contents(folder, job), start, end)]
        again, _ = run([*words, *shlex.split(job.again)], folder)
        if again.status != 0:
            faults.append(f"{when}: run again, it fails: {again.stderr.strip().splitlines()[-1:]}")
        else:
            faults += [f"{when}: run again, {file} differs" for file in unlike(contents(folder, job), end)]
    assert not faults, "\n".join(faults)


def damaged(job: Job, actual: dict[str, Any], start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    """Return the outputs that are neither as before nor as in the end."""
    names = []
    for name in job.outputs.split():
        content = actual.get(name)
        if not equal(content, start.get(name)) and not equal(content, end.get(name)):
            names.append(name)
    return names


def unlike(actual: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return the files that are missing, left over, or of another content."""
    return [
        name
        for name in sorted(actual.keys() | expected.keys())
        if (name in actual) != (name in expected) or not equal(actual[name], expected[name])
    ]
