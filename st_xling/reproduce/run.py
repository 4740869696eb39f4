"""Running what tables take: each command a process of its own, done once, resumed, and named where it fails."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.reproduce.paper import Paper, Step
from st_xling.reproduce.report import report, write_report
from st_xling.utils.io import locked, read_json_object, write_json

logger = logging.getLogger(__name__)

_MODULE = "st_xling.cli"
_SAMPLE = 64 * 1024
_ROOT = Path(__file__).parents[2]


def reproduce(
    paper: Paper, out: str | Path, *, data: str | Path | None = None, jobs: int = 1, overwrite: bool = False
) -> dict[str, Any]:
    """Train and evaluate what a paper's tables take, and write the tables.

    =========================================  ==========================================================
    ``PAPER-SCALE-MODEL-SEEDS.md``, ``.json``  all tables made so far, as text and with every value, signature, command
    ``pictures/``                              those of the tables
    ``models/``                                what was trained
    ``results/``, ``logs/``, ``steps/``        of each step: its results, what it printed, and how long it took
    =========================================  ==========================================================

    A step that is done is not run again, whatever table it was done for, unless the model or the data that it reads
    have changed. A command that was killed resumes from its last checkpoint. A step that fails does not stop others.

    Args:
        paper: From :func:`~st_xling.reproduce.paper.load_paper`.
        out: Folder, which several papers may share.
        data: Folder of the data that the commands name.
        jobs: Steps at a time, which share the processor's cores.
        overwrite: Run again what is done; what stands is replaced step by step, once the new is there.

    Returns:
        What the JSON file holds of the tables asked for; ``failed`` names the steps that failed, with reasons.

    Raises:
        ValueError: If data are asked for and not there, another process works in the folder, or ``jobs`` is below 1.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1: got {jobs}.")
    out = Path(out).resolve()
    check_data(paper.steps(), data)
    for name in ("models", "results", "logs", "steps", "pictures"):
        (out / name).mkdir(parents=True, exist_ok=True)
    with locked(out):
        try:
            failed = _run_all(paper, out, data, jobs, overwrite)
        except KeyboardInterrupt:
            write_report(paper, out, {})  # what there is so far
            raise
        result = report(paper, out, failed)
        write_report(paper, out, failed)
    return result


def check_data(steps: Sequence[Step], data: str | Path | None) -> None:
    """Raise ``ValueError`` where steps read from the folder of data and there is none."""
    if any("{data}" in word for step in steps for word in step.words):
        if data is None:
            raise ValueError("these tables are made from real text: name its folder (--data, or ST_XLING_DATA).")
        if not Path(data).is_dir():
            raise ValueError(f"--data must be a folder: there is none at {data}.")


def is_done(paper: Paper, step: Step, out: Path, data: str | Path | None = None) -> bool:
    """Whether the step has finished, its result exists, and the model and data it reads have not changed since."""
    result = out / (step.folder if step.trains else f"results/{step.id}.json")
    record = read_json_object(out / "steps" / f"{step.id}.json")
    return bool(record) and result.exists() and record.get("inputs") == inputs_fingerprint(paper, step, data)


def inputs_fingerprint(paper: Paper, step: Step, data: str | Path | None) -> str | None:
    """Hash the files that a step reads, besides those of other steps; ``None`` if there are none.

    Of each file its name, its size, and 64 KiB of its start, middle and end are hashed: enough for another model of
    same shape or another text, without reading gigabytes before each run.
    """
    starts = Path(paper.model).is_dir() and any(paper.model in word for word in step.words)
    read = [paper.model] if starts else []
    if data is not None:
        found = (re.findall(r"\{data\}([^\s,?=]*)", word) for word in step.words)
        read += [f"{Path(data).resolve()}{rest}" for word in found for rest in word]
    files: set[Path] = set()
    for name in read:
        place = Path(name)
        # Moses text is named by what its two files have in common.
        for match in [place] if place.exists() else place.parent.glob(f"{place.name}*"):
            files.update(path for path in ([match] if match.is_file() else match.rglob("*")) if path.is_file())
    if not files:
        return None
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: (path.name, path)):  # wherever the folders are
        size = path.stat().st_size
        digest.update(f"{path.name} {size} ".encode())
        with path.open("rb") as stream:
            for start in (0, size // 2, max(0, size - _SAMPLE)):
                stream.seek(start)
                digest.update(stream.read(_SAMPLE))
    return digest.hexdigest()[:8]


def _run_all(paper: Paper, out: Path, data: str | Path | None, jobs: int, overwrite: bool) -> dict[str, str]:
    """Run all that is not done; id → why it failed."""
    steps = paper.steps()
    waiting: list[Step] = []
    for step in steps:  # what stands on something that is made anew is made anew
        if overwrite or not is_done(paper, step, out, data) or any(need in waiting for need in step.needs):
            waiting.append(step)
    total, started, failed = len(waiting), 0, dict[str, str]()
    logger.info(f"{len(steps)} steps, {len(steps) - total} of them done")
    runner = _Runner(paper, out, data, jobs)
    with ThreadPoolExecutor(jobs) as pool, contextlib.ExitStack() as stop:
        stop.callback(runner.stop)
        running: dict[Future[str | None], Step] = {}
        while waiting or running:
            held_up = {step.id for step in (*waiting, *running.values())}
            for step in list(waiting):
                lost = [need.name for need in step.needs if need.id in failed]
                if lost:
                    failed[step.id] = f"needs {lost[0]}, which failed"
                    waiting.remove(step)
                elif len(running) < jobs and held_up.isdisjoint(need.id for need in step.needs):
                    waiting.remove(step)
                    started += 1
                    logger.info(f"{started}/{total} {step.name}")
                    running[pool.submit(runner.run, step)] = step
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                step, why = running.pop(future), future.result()
                if why is not None:
                    failed[step.id] = why
                    logger.info(f"failed: {step.name}: {why} (logs/{step.id}.log)")
    return failed


class _Runner:
    """Starts the processes, and stops them with the block."""

    def __init__(self, paper: Paper, out: Path, data: str | Path | None, jobs: int) -> None:
        self._paper, self._out = paper, out
        self._data = None if data is None else str(Path(data).resolve())
        self._threads = str(max(1, (os.cpu_count() or 1) // jobs))
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def stop(self) -> None:
        """Interrupt what runs, as Ctrl-C does, so that it saves what it has."""
        with self._lock:
            self._stopped = True
        for process in list(self._processes):
            process.send_signal(signal.SIGINT)

    def run(self, step: Step) -> str | None:
        """Run one step; why it failed, or ``None``."""
        words = [word.replace("{data}", self._data or "") for word in step.command()]
        training = self._out / step.folder / "training"
        if step.trains or step.fine_tunes:
            words.append("--resume" if any(training.glob("checkpoint-*")) else "--overwrite")
        environment = {"OMP_NUM_THREADS": self._threads, **os.environ}
        if step.is_python:
            program = words[1:]
            # A checkout's benchmarks are next to the package, and not installed.
            environment["PYTHONPATH"] = f"{_ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        else:
            program = ["-m", _MODULE, *words]
        inputs, begun = inputs_fingerprint(self._paper, step, self._data), time.monotonic()
        with (self._out / "logs" / f"{step.id}.log").open("wb") as log:
            with self._lock:
                if self._stopped:
                    return "stopped before it began"
                process = subprocess.Popen(
                    [sys.executable, *program],
                    cwd=self._out,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C reaches a process once, through us.
                    start_new_session=True,
                )
                self._processes.add(process)
            status = process.wait()
            self._processes.discard(process)
        if status:
            return why_it_failed(self._out / "logs" / f"{step.id}.log", status)
        seconds = round(time.monotonic() - begun, 1)
        record = {"command": self._paper.shown(step), "seconds": seconds, "st-xling": __version__}
        record["inputs"] = inputs
        write_json(self._out / "steps" / f"{step.id}.json", record)
        # Checkpoints are many times a model's size; of fine-tuning only the results are asked for.
        for folder in [self._out / step.folder] if step.fine_tunes else training.glob("checkpoint-*"):
            shutil.rmtree(folder)
        return None


def why_it_failed(log: Path, status: int) -> str:
    """The reason in a line, from what a process printed and the status that it ended with."""
    if status < 0:
        name = signal.Signals(-status).name
        return f"killed by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if line.startswith("st-xling: error: ")] or [line for line in lines if line]
    return errors[-1].removeprefix("st-xling: error: ") if errors else f"ended with status {status}"
