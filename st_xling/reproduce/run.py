"""Run the steps of tables: each command in a process of its own, once, resumed, and named where it fails."""

from __future__ import annotations

import itertools
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.reproduce.paper import Paper, Step
from st_xling.reproduce.reports import report, write_report
from st_xling.utils.io import file_sha256, locked, read_json_object, write_json
from st_xling.utils.signature import sha8

logger = logging.getLogger(__name__)

#: Before the message of an error of ours.
_ERROR = "st-xling: error: "

#: First line of typer's box around an error; where the output is ASCII, its border is, too.
_TOP_OF_BOX = re.compile(r"[╭+][─-] Error ")


def reproduce(
    paper: Paper, out: str | Path, *, data: str | Path | None = None, jobs: int = 1, overwrite: bool = False
) -> dict[str, Any]:
    """Train and evaluate what a paper's tables need, and write the tables.

    =========================================  ==========================================================
    ``PAPER-SCALE-MODEL-SEEDS.md``, ``.json``  all tables made so far, as text and with every value, signature, command
    ``models/``                                the trained models
    ``results/``, ``logs/``, ``steps/``        of each step: its results, what it printed, and how long it took
    =========================================  ==========================================================

    A step that is done is not run again, whatever table it was done for, unless the model or the data that it reads
    have changed. A command that was killed resumes from its last checkpoint. A step that fails does not stop others.

    Args:
        paper: From :func:`~st_xling.reproduce.paper.load_paper`.
        out: Folder, which several papers may share.
        data: Folder of the data that the commands name.
        jobs: Steps at a time, which share the processor's cores.
        overwrite: Run again what is done.

    Returns:
        The tables asked for, as in the JSON file; ``failed`` names the steps that failed, with reasons.

    Raises:
        ValueError: If data are asked for and not there, another process works in the folder, or ``jobs`` is below 1.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1: got {jobs}.")
    out = Path(out).resolve()
    paper.check_data(data)
    for name in ("models", "results", "logs", "steps"):
        (out / name).mkdir(parents=True, exist_ok=True)
    with locked(out):
        failed: dict[str, str] = {}
        try:
            _run_all(paper, out, data, jobs, overwrite, failed)
        finally:  # after Ctrl-C: the tables so far
            write_report(paper, out, failed)
        return report(paper, out, failed)


def is_done(paper: Paper, step: Step, out: Path, data: str | Path | None = None) -> bool:
    """Return whether the step is done, with its result there and the model and data it reads unchanged."""
    record = read_json_object(out / "steps" / f"{step.id}.json")
    has_result = bool(record) and (out / step.result).exists()
    return has_result and record.get("inputs") == inputs_fingerprint(paper, step, data)


def inputs_fingerprint(paper: Paper, step: Step, data: str | Path | None) -> str:
    """Hash names and content of the files that a step reads, besides those of other steps."""
    paths: list[Path] = []
    if Path(paper.model).is_dir() and any(paper.model in word for word in step.words):
        paths.append(Path(paper.model))
    if data is not None:
        for word in step.words:
            paths += [Path(f"{data}{location}") for location in re.findall(r"\{data\}([^\s,?=]*)", word)]
    files: set[Path] = set()
    for path in paths:
        # Moses text is named by what its two files have in common.
        matches = [path] if path.exists() else path.parent.glob(f"{path.name}*")
        for match in matches:
            entries = [match] if match.is_file() else match.rglob("*")
            files.update(entry for entry in entries if entry.is_file())
    return sha8(sorted((file.name, file_sha256(file)) for file in files))


def _run_all(
    paper: Paper, out: Path, data: str | Path | None, jobs: int, overwrite: bool, failed: dict[str, str]
) -> None:
    """Run all steps that are not done; ``failed`` gets id → why it failed."""
    steps = paper.steps()
    waiting: list[Step] = []
    for step in steps:  # what needs a step that is run is run, too
        if overwrite or not is_done(paper, step, out, data) or any(need in waiting for need in step.needs):
            waiting.append(step)
    logger.info(f"{len(steps)} steps, {len(steps) - len(waiting)} of them done")
    futures: dict[str, Future[str | None]] = {}

    def run(number: int, step: Step) -> str | None:
        # Steps start in their order, so those that others need have started.
        for need in step.needs:
            if need.id in futures and futures[need.id].result() is not None:
                return f"needs {need.name}, which failed"
        logger.info(f"{number}/{len(waiting)} {step.name}")
        why = _run_step(paper, step, out, data, jobs)
        if why is not None:
            logger.info(f"failed: {step.name}: {why} (logs/{step.id}.log)")
        return why

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for number, step in enumerate(waiting, 1):
                futures[step.id] = pool.submit(run, number, step)
            for step in waiting:
                if (why := futures[step.id].result()) is not None:
                    failed[step.id] = why
        except KeyboardInterrupt:  # a terminal's Ctrl-C reaches the running commands as well, which save what they have
            pool.shutdown(cancel_futures=True)
            raise


def _run_step(paper: Paper, step: Step, out: Path, data: str | Path | None, jobs: int) -> str | None:
    """Run one step; return why it failed, or ``None``."""
    words = [word.replace("{data}", str(Path(data or "").resolve())) for word in step.command()]
    training = out / step.folder / "training"
    if step.trains or step.fine_tunes:
        has_checkpoint = any(training.glob("checkpoint-*"))
        words.append("--resume" if has_checkpoint else "--overwrite")
    program = words[1:] if step.is_python else ["-m", "st_xling.cli", *words]
    threads = max(1, (os.cpu_count() or 1) // jobs)
    inputs = inputs_fingerprint(paper, step, data)
    start = time.monotonic()
    path = out / "logs" / f"{step.id}.log"
    with path.open("wb") as log:
        status = subprocess.run(
            [sys.executable, *program],
            cwd=out,
            env={"OMP_NUM_THREADS": str(threads), **os.environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        ).returncode
    if status:
        return why_it_failed(path, status)
    seconds = round(time.monotonic() - start, 1)
    record = {"command": paper.shown(step), "seconds": seconds, "st-xling": __version__, "inputs": inputs}
    write_json(out / "steps" / f"{step.id}.json", record)
    # Checkpoints are many times a model's size; of fine-tuning only the results are read.
    folders = [out / step.folder] if step.fine_tunes else training.glob("checkpoint-*")
    for folder in folders:
        shutil.rmtree(folder)
    return None


def why_it_failed(log: Path, status: int) -> str:
    """Return the reason in a line, from what a process printed and the status that it ended with."""
    if status < 0:
        name = signal.Signals(-status).name
        hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
        return f"killed by {name}{hint}"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)]
    errors = errors or _usage_errors(lines) or [line for line in lines if line]
    return errors[-1] if errors else f"ended with status {status}"


def _usage_errors(lines: Sequence[str]) -> list[str]:
    """Return errors of a command line, such as an unknown option, which typer prints as a box of wrapped lines."""
    errors = []
    for number, line in enumerate(lines):
        if _TOP_OF_BOX.match(line):
            inside = itertools.takewhile(lambda row: row.startswith(("│", "|")), lines[number + 1 :])
            errors.append(" ".join(row.strip("│| ") for row in inside))
    return errors
