"""Environments of neighbors: pinned packages in a folder of their own, in which functions of ours are called."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

#: Calls a function with arguments from stdin, and prints what it returns behind a mark.
_CALL = """from __future__ import annotations

{source}
if __name__ == "__main__":
    import json, sys
    arguments = json.loads(sys.stdin.read())
    print("\\nANSWER" + json.dumps({name}(*arguments)))
"""


class NotTried(Exception):
    """A neighbor cannot be met here; the message is the reason."""


class NeighborFailed(Exception):
    """A neighbor ended with an error; the message is the last line of its output."""


class Environment:
    """Packages of the registry in a virtual environment, which is installed once and kept.

    Args:
        folder: Where environments are kept.
        packages: Requirements with a version each, such as ``"hypomnema==0.8"``.
        above_ours: Whether the packages are put above those of the running environment, without what they need
            themselves, as for another version of sentence-transformers; otherwise they are alone.
    """

    def __init__(self, folder: Path, packages: Sequence[str], *, above_ours: bool = False) -> None:
        unpinned = [package for package in packages if "==" not in package]
        if unpinned:
            raise ValueError(f"expected packages with a version, such as hypomnema==0.8: got {', '.join(unpinned)}")
        key = hashlib.sha256(json.dumps([sys.version, *packages, above_ours]).encode()).hexdigest()[:12]
        self.packages = packages
        self.above_ours = above_ours
        self.folder = folder / key
        self.python = self.folder / "bin" / "python"

    def install(self) -> None:
        """Install the packages, unless they are there."""
        mark = self.folder / "installed"
        if mark.is_file():
            return
        shutil.rmtree(self.folder, ignore_errors=True)  # half installed
        # The running pip installs there: to put one into each takes longer than most packages.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder], check=True)
        command = [sys.executable, "-m", "pip", "--python", self.python, "install", "-q", *self.packages]
        if self.above_ours:
            # The site-packages of the running environment come after those of the new one, and have what these need.
            [site_packages] = self.folder.glob("lib/python*/site-packages")
            (site_packages / "below.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
            command += ["--no-deps", "--ignore-installed"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            name, _, version = self.packages[0].partition("==")
            wanted = re.search(rf"\b{re.escape(version)} Requires-Python ([^\s;]+)", done.stderr)
            python = f"{sys.version_info.major}.{sys.version_info.minor}"
            reason = f"wants Python {wanted[1]}, this is {python}" if wanted else _last_line(done.stderr)
            raise NotTried(f"{name} cannot be installed: {reason}")
        mark.write_text("\n".join(self.packages), encoding="utf-8")

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of ours in the environment.

        Args:
            function: A function of a module; its source alone is sent there, so that it imports what it needs itself.
            arguments: Paths, and what JSON can hold.

        Returns:
            What the function returns, as JSON has it: tuples are lists.

        Raises:
            NeighborFailed: If it ends with an error.
        """
        script = _CALL.format(source=source_without_decorators(function), name=function.__name__)
        return json.loads(self.run("-c", script, given=json.dumps(arguments, default=str)).rpartition("\nANSWER")[2])

    def run(self, *words: str | Path, given: str = "") -> str:
        """Run the environment's Python; returns its stdout.

        Raises:
            NeighborFailed: If it ends with an error.
        """
        self.install()
        variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        if self.above_ours:
            variables["PYTHONPATH"] = str(ROOT)
        variables["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{variables.get('PATH', '')}"
        done = subprocess.run([self.python, *words], input=given, capture_output=True, text=True, env=variables)
        if done.returncode:
            raise NeighborFailed(_last_line(done.stderr))
        return done.stdout


def source_without_decorators(function: Callable[..., Any]) -> str:
    """Return the source of a function from ``def`` on."""
    source = inspect.getsource(function)
    start = re.search(r"^def ", source, re.MULTILINE)
    assert start is not None, "functions of modules are not indented"
    return source[start.start() :]


def debian_files(folder: Path, package: str) -> Path:
    """Return a folder with the files of a Debian package and of all that it needs, which are not installed.

    Raises:
        NotTried: Where there is no apt, or it cannot get them.
    """
    root = folder / f"debian-{package}"
    mark = root / "unpacked"
    if mark.is_file():
        return root
    if shutil.which("apt-get") is None:
        raise NotTried("its package is Debian's")
    archives = root / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    options = ["-y", "--no-install-recommends", "--download-only", "-o", f"Dir::Cache::archives={archives}"]
    done = subprocess.run(["apt-get", "install", *options, package], capture_output=True, text=True)
    if done.returncode:
        raise NotTried(f"cannot be had from Debian: {_last_line(done.stderr)}")
    for archive in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg", "-x", archive, root], check=True)
    mark.touch()
    return root


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
