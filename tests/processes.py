"""Run commands in separate processes that cannot outlive a test: they are done, or killed with all their children."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit status (``None``: its time was up) and what it wrote."""

    status: int | None
    stdout: str
    stderr: str


def run_together(
    commands: Sequence[Sequence[str]],
    folder: Path,
    *,
    seconds: float,
    python: str = sys.executable,
    disturb: Callable[[subprocess.Popen[bytes]], None] | None = None,
) -> list[Ended]:
    """Run Python with each of the argument lists at once; when one fails, or time is up, end all of them.

    Args:
        commands: What follows ``python``.
        folder: Where their streams are kept: a full pipe would stop a process.
        seconds: Time for all.
        python: The interpreter.
        disturb: Called with the first process once it runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Loopback by name: gloo otherwise looks the host's name up, which may lead to an interface that answers nobody.
    network = {"GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1"}
    environment = {**os.environ, **network, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    streams = [(folder / f"stdout{number}.txt", folder / f"stderr{number}.txt") for number in range(len(commands))]
    started: list[subprocess.Popen[bytes]] = []
    end = time.monotonic() + seconds
    try:
        for command, (out, err) in zip(commands, streams):
            with out.open("wb") as stdout, err.open("wb") as stderr:
                started.append(
                    subprocess.Popen(
                        [python, *command],
                        stdin=subprocess.DEVNULL,
                        stdout=stdout,
                        stderr=stderr,
                        env=environment,
                        start_new_session=True,
                    )
                )
        if disturb is not None:
            disturb(started[0])
        while time.monotonic() < end:
            statuses = [child.poll() for child in started]
            if None not in statuses or any(statuses):
                break
            time.sleep(0.05)
        statuses = [child.poll() for child in started]
    finally:
        for child in started:
            end_family(child)
    ended = []
    for status, (out, err) in zip(statuses, streams):
        stdout = out.read_text(encoding="utf-8", errors="replace")
        stderr = err.read_text(encoding="utf-8", errors="replace")
        ended.append(Ended(status, stdout, stderr))
    return ended


def end_family(child: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started, also those with a session of their own, as a launcher's have."""
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = psutil.Process(child.pid)
        for process in [parent, *parent.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    child.wait(timeout=10)


def alive_with(word: str) -> list[int]:
    """Return the ids of other processes, without zombies, whose command line contains ``word``."""
    pids = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.pid == os.getpid() or process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        arguments = process.info["cmdline"] or []
        if any(word in argument for argument in arguments):
            pids.append(process.pid)
    return pids
