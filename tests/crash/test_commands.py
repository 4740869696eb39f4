"""Every command that writes, killed at its changes to the file system and run again, ends as if it never had been."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest

from tests.crash.jobs import JOBS, Job, contents, half_written, lay_out
from tests.crash.points import Point, Zygote, faults, sample, unlike

EVERYDAY = [name for name, job in JOBS.items() if not job.training or name == "train dap"]


def some(job: Job, points: list[Point]) -> Iterable[Point]:
    """Training takes long, and what makes and removes its folders is at its ends."""
    return sample(points, first=4, middle=0, last=2) if job.training else sample(points, first=3, middle=3, last=2)


def most(job: Job, points: list[Point]) -> Iterable[Point]:
    """All; of many those at the ends and a third of the others, of a training, which writes the same files at each
    checkpoint, a sixteenth."""
    if not job.training and len(points) <= 40:
        return points
    ends, part = (8, 16) if job.training else (10, 3)
    return sample(points, first=ends, middle=max(0, len(points) - 2 * ends) // part, last=ends)


@pytest.mark.parametrize("name", EVERYDAY)
def test_killed_at_some_points(name: str, zygote: Zygote, inputs: Path, tmp_path: Path) -> None:
    check(name, zygote, inputs, tmp_path, every=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_killed_at_most_points(name: str, zygote: Zygote, inputs: Path, tmp_path: Path) -> None:
    check(name, zygote, inputs, tmp_path, every=True)


@pytest.mark.parametrize("name", ["train dap", "train xpr-cascade"])
def test_a_resumed_run_has_the_same_tokenizer(name: str, zygote: Zygote, inputs: Path, tmp_path: Path) -> None:
    """Of a run that had ended."""
    job, folder = JOBS[name], tmp_path / "job"
    lay_out(job, inputs, folder, zygote)
    words, found = shlex.split(job.words), []
    for more in ([], shlex.split(job.again)):
        ended = zygote.run([*words, *more], folder)
        assert ended.status == 0, ended.stderr
        found.append(contents(folder, job, tokenizers=True))
    assert not unlike(*found)


def check(name: str, zygote: Zygote, inputs: Path, place: Path, *, every: bool) -> None:
    job = JOBS[name]
    lay_out(job, inputs, place / "before", zygote)
    points, found = faults(
        zygote,
        place / "before",
        shlex.split(job.words),
        contents=partial(contents, job=job),
        again=shlex.split(job.again),
        choose=partial(most if every else some, job),
        after_kill=lambda *of: half_written(of[0], job, *of[1:]),
        done=job.done,
    )
    assert points >= 6
    assert not found, f"{len(found)} of {points} points of st-xling {job.words}:\n" + "\n".join(found)
