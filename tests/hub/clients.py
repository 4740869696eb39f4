"""Processes that use the real client, pointed at a Hub on loopback: it reads its address where it is imported."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hub.hub_server import TOKEN

# One process runs many commands, since imports take seconds; of its waiting before a retry nothing but the time is cut.
_MANY = """
import contextlib, io, json, logging, os, sys, time
really_sleep = time.sleep
time.sleep = lambda seconds: really_sleep(min(seconds, 0.01))
answers = os.fdopen(os.dup(1), "w")
import torch
torch.set_num_threads(1)
from st_xling.cli import main
for line in sys.stdin:
    asked = json.loads(line)
    os.environ.update(asked["environment"])
    out, err = io.StringIO(), io.StringIO()
    logging.getLogger().handlers.clear()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            if asked["code"] is None:
                status = main(asked["words"])
            else:
                exec(compile(asked["code"], "given", "exec"), {"words": asked["words"]})
                status = 0
        except SystemExit as end:
            status = end.code
        except Exception:
            import traceback
            traceback.print_exc()
            status = 1
    print(json.dumps([status, out.getvalue(), err.getvalue()]), file=answers, flush=True)
"""


@dataclass(frozen=True)
class Outcome:
    status: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The one line that says what went wrong."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("st-xling: error: ")]
        assert self.status == 2 and len(lines) == 1 and "Traceback" not in self.stderr, self.stderr
        return lines[0].removeprefix("st-xling: error: ")


def environment(url: str, home: Path, *, token: str | None = TOKEN) -> dict[str, str]:
    """Of a user whose Hub is at ``url`` and who has no other traces of a Hub."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    given = {"HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return {**kept, **given, "OMP_NUM_THREADS": "1", **({"HF_TOKEN": token} if token else {})}


class Client:
    """A process that runs ``st-xling`` commands, one after the other.

    Args:
        url: Of the Hub.
        home: Where the client keeps what it keeps.
    """

    def __init__(self, url: str, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MANY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(url, home),
        )

    def st_xling(self, *words: Any, **variables: str) -> Outcome:
        """Run a command, with variables of the environment set from now on."""
        return self._ask([str(word) for word in words], None, variables)

    def python(self, code: str, *words: Any) -> Outcome:
        """Run code, which finds ``words``, logged in."""
        return self._ask([str(word) for word in words], code, {"HF_TOKEN": TOKEN})

    def _ask(self, words: list[str], code: str | None, variables: dict[str, str]) -> Outcome:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"words": words, "code": code, "environment": variables}) + "\n")
        self.process.stdin.flush()
        answered, _, _ = select.select([self.process.stdout], [], [], 300)
        assert answered, f"no answer within five minutes to {words}"
        return Outcome(*json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run(words: Sequence[Any], variables: dict[str, str], folder: Path, seconds: float = 120) -> Outcome:
    """A Python process of its own, elsewhere, that ends in time."""
    done = subprocess.run(
        [sys.executable, *map(str, words)], env=variables, cwd=folder, capture_output=True, text=True, timeout=seconds
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def change(path: Path, **content: Any) -> None:
    """Set keys of a JSON file, which may not be there yet."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**before, **content}), encoding="utf-8")
