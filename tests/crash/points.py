"""Crash points: a command is killed at each of its changes to the file system in turn, and then run again.

Python tells an audit hook of every file that is opened for writing, renamed, removed, and so on, before it happens. A
first, undisturbed run lists these events. Another process, forked from one that has imported everything, then dies
before event *N*. What was written since the event before it, by Python or by a library in Rust or C++, is left whole,
cut in half or left out, since a kill between two writes may leave any part of it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from tests.training.children import CONTEXT

DIED = 137
SECONDS = 60  # for one run of a command
EVENTS = {"os.rename": 2, "os.remove": 1, "os.mkdir": 2, "os.rmdir": 1, "os.truncate": None, "os.link": 2}
"""Events that change something → which argument is the descriptor of the folder that the path is relative to."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Point(NamedTuple):
    """Where a process dies: before an event (from 1; one more than there are: at its end), and which share of what was
    written last since the event before it is there.
    """

    number: int
    part: float = 1.0


class Event(NamedTuple):
    """What was about to happen, to which file of the folder; and the file written since the event before, or ``""``."""

    name: str
    path: str
    written: str

    def __str__(self) -> str:
        return f"{self.name} {self.path}"


class Ended(NamedTuple):
    """How a run ended: exit status (negative: a signal), what it wrote to stderr, its events (the last, if it died)."""

    status: int
    stderr: str
    events: list[Event]


class Watch:
    """The audit hook: counts the events in a folder, and dies at one of them.

    Args:
        folder: Real path of the folder.
        point: Where to die; ``None``: the events are listed.
    """

    def __init__(self, folder: str, point: Point | None, report: Callable[[list[Event]], None]) -> None:
        self._folder, self._point, self._report = folder, point, report
        self._events: list[Event] = []
        self._number = 0
        self._files = self._scan()
        self._busy = False
        sys.addaudithook(self._hook)

    def end(self) -> None:
        """The command has ended: the last point."""
        self._event("end", self._folder)

    def _hook(self, name: str, values: tuple[Any, ...]) -> None:
        if self._busy or (name != "open" and name not in EVENTS):
            return
        if name == "open" and not (isinstance(values[2], int) and values[2] & WRITES):
            return
        base = EVENTS.get(name)
        path = self._resolve(values[0], values[base] if base is not None and len(values) > base else -1)
        if name in ("os.rename", "os.link") and not self._inside(path):
            path = self._resolve(values[1], values[3] if len(values) > 3 else -1)
        if self._inside(path):
            emptied = (name == "open" and values[2] & os.O_TRUNC) or (name == "os.truncate" and values[1] == 0)
            self._event(name, path, bool(emptied))

    def _resolve(self, path: Any, folder: int) -> str:
        if isinstance(path, int):
            return str(Path(f"/proc/self/fd/{path}").readlink()) if path > 2 else ""
        start = Path(f"/proc/self/fd/{folder}").readlink() if folder >= 0 else Path.cwd()
        return os.path.normpath(start / os.fsdecode(path))

    def _inside(self, path: str) -> bool:
        return path == self._folder or path.startswith(self._folder + os.sep)

    def _event(self, name: str, path: str, emptied: bool = False) -> None:
        self._busy = True
        self._number += 1
        number, point = self._number, self._point
        if point is None or number >= point.number - 1:  # the scan before tells what was written since
            before, self._files = self._files, self._scan()
            written = self._written(before)
            self._events.append(Event(name, os.path.relpath(path, self._folder), written[0]))
            if point is not None and number == point.number:
                if written[0]:
                    _, start, size = written
                    os.truncate(Path(self._folder, written[0]), start + int(point.part * (size - start)))
                self._report(self._events[-1:])
                os._exit(DIED)
            if emptied and Path(path).is_file():
                self._files[Path(path).stat().st_ino] = (path, 0, 0)
        self._busy = False

    def _scan(self) -> dict[int, tuple[str, int, int]]:
        """Inode → path, size, time."""
        found = {}
        for root, _, names in os.walk(self._folder):
            for name in names:
                path = Path(root, name)
                with contextlib.suppress(FileNotFoundError):
                    status = path.lstat()
                    found[status.st_ino] = (str(path), status.st_size, status.st_mtime_ns)
        return found

    def _written(self, before: dict[int, tuple[str, int, int]]) -> tuple[str, int, int]:
        """The file that was written last, its size before and now."""
        grown = [
            (time, path, before.get(inode, ("", 0, 0))[1], size)
            for inode, (path, size, time) in self._files.items()
            if size > before.get(inode, ("", 0, 0))[1]
        ]
        if not grown:
            return "", 0, 0
        _, path, start, size = max(grown)
        return os.path.relpath(path, self._folder), start, size


class Zygote:
    """A process that has imported everything and forks another for each run of a command; a context manager."""

    def __init__(self) -> None:
        self._ours, theirs = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *exception: object) -> None:
        self._ours.close()
        self._process.join(10)
        self._process.kill()

    def warm(self, model: Path) -> None:
        """Load an encoder in the process that forks the others, which makes their loading faster."""
        self._call([], model, None)

    def _call(self, words: list[str], folder: Path, point: Point | None) -> tuple[int, list[list[str]]]:
        self._ours.send((words, str(folder.resolve()), point))
        assert self._ours.poll(SECONDS + 30), f"no answer to {shlex.join(words)} at {point}"
        return self._ours.recv()

    def run(self, words: Sequence[str], folder: Path, point: Point | None = None) -> Ended:
        """Run ``st-xling`` in ``folder``; streams are kept beside it."""
        status, events = self._call(list(words), folder, point)
        stderr = folder.with_name("stderr.txt").read_text(encoding="utf-8", errors="replace")
        return Ended(status, stderr, [Event(*event) for event in events])


def _warm(model: str) -> None:
    """Do once what else each run would: load a model, for the hundreds of patterns that transformers then compiles to
    rename weights by; unpack what identifies languages; compile the card's template."""
    from st_xling.hub.card import _template
    from st_xling.models import load_encoder
    from st_xling.utils.identify import main_language

    load_encoder(model, device="cpu")
    main_language(["The house is red."])
    _template()


def _serve(connection: Connection) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads would not survive a fork
    import torch
    import tqdm.auto

    torch.set_num_threads(1)
    for kind in (tqdm.std.tqdm, tqdm.auto.tqdm):  # a lock shared with one that was killed would never open again
        kind.set_lock(threading.RLock())
    while True:
        try:
            words, folder, point = connection.recv()
        except EOFError:
            return
        if not words:
            _warm(folder)
            connection.send((0, []))
            continue
        gc.collect()
        gc.freeze()
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            _attempt(words, folder, point, write)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            message = json.loads(pipe.read() or b"{}")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.send((status, message.get("events", [])))
        for name in message.get("modules", []):  # what the command imported, its next runs need not
            if name not in sys.modules:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


def _attempt(words: list[str], folder: str, point: Point | None, write: int) -> None:
    signal.alarm(SECONDS)  # whatever it hangs in
    status = 1
    try:
        beside = Path(folder).parent
        (beside / "tmp").mkdir(exist_ok=True)
        os.environ["TMPDIR"] = str(beside / "tmp")
        for number, name in ((0, os.devnull), (1, "stdout.txt"), (2, "stderr.txt")):
            os.dup2(os.open(beside / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", buffering=1) for number in (1, 2))
        os.chdir(folder)
        from st_xling.cli import main

        def report(events: list[Event]) -> None:
            names = [] if point else [name for name in list(sys.modules) if not name.startswith("__")]
            with os.fdopen(os.dup(write), "wb") as pipe:
                pipe.write(json.dumps({"events": events, "modules": names}).encode())

        watch = Watch(folder, point, report)
        try:
            status = main(words)
        except SystemExit as stop:
            status = int(stop.code or 0)
        watch.end()
        if point is None:
            report(watch._events)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def points_of(events: Sequence[Event]) -> list[Point]:
    """Every point of a run: before each event, with what was just written whole, in half, and not there."""
    found = []
    for number, event in enumerate(events, start=1):
        found += [Point(number, part) for part in ((0.0, 0.5, 1.0) if event.written else (1.0,))]
    return found


def sample(points: Sequence[Point], *, first: int, middle: int, last: int, seed: int = 0) -> list[Point]:
    """Points from both ends, where a command's folders come and go, and some from between by a seeded generator."""
    if len(points) <= first + middle + last:
        return list(points)
    between = range(first, len(points) - last)
    return [points[n] for n in (*range(first), *sorted(random.Random(seed).sample(between, middle)))] + [
        *points[len(points) - last :]
    ]


def restore(folder: Path, before: Path) -> None:
    """Make ``folder`` what ``before`` is, in files of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(before, folder)


def unlike(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """What two folders differ in, or ``""``."""
    parts = [
        ("left over", sorted(found.keys() - expected.keys())),
        ("missing", sorted(expected.keys() - found.keys())),
        ("other content", sorted(name for name in found.keys() & expected.keys() if found[name] != expected[name])),
    ]
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)


def faults(
    zygote: Zygote,
    before: Path,
    words: Sequence[str],
    *,
    contents: Callable[[Path], dict[str, Any]],
    again: Sequence[str] = (),
    choose: Callable[[list[Point]], Iterable[Point]] = lambda points: points,
    after_kill: Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], str] = lambda *contents: "",
    done: str = "",
) -> tuple[int, list[str]]:
    """Kill a command at its points, run it again, and compare its folder with that of an undisturbed run.

    Args:
        zygote: Runs it.
        before: The folder with its input; beside it, the command runs in a copy called ``job``.
        words: Of the command; paths are relative to the folder.
        contents: What must be equal in the end: name → content of each file and folder.
        again: Words that the second run has besides.
        choose: Which points.
        after_kill: From the contents after the kill, before the first run, and in the end: what is wrong, or ``""``.
        done: In the message of a second run that refuses since all is done; the folder must then be whole.

    Returns:
        Number of points, and a line for each at which something was wrong.
    """
    folder = before.with_name("job")
    restore(folder, before)
    start = contents(folder)
    whole = zygote.run(words, folder)
    assert whole.status == 0, whole.stderr
    expected = contents(folder)
    found, chosen = [], list(choose(points_of(whole.events)))
    for point in chosen:
        restore(folder, before)
        died = zygote.run(words, folder, point)
        at = (
            f"{point.number} ({died.events[-1] if died.events else '?'}, {died.events[-1].written or '-'} {point.part})"
        )
        if died.status != DIED:
            found.append(f"{at}: not reached, status {died.status}: {last_line(died.stderr)}")
            continue
        if wrong := after_kill(contents(folder), start, expected):
            found.append(f"{at}: after the kill: {wrong}")
        ended = zygote.run([*words, *again], folder)
        difference = unlike(contents(folder), expected)
        if ended.status != 0 and not (done and done in ended.stderr and not difference):
            found.append(f"{at}: run again, status {ended.status}: {last_line(ended.stderr)}")
        elif difference:
            found.append(f"{at}: run again, {difference}")
    return len(chosen), found


def last_line(text: str) -> str:
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return lines[-1] if lines else ""
