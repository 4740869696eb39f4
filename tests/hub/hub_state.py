"""State of the Hub on loopback: repositories with their branches and commits, blobs, and what is to go wrong."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOKEN = "hf_" + "LoopbackOnlyTokenOfTheTestsABCDEFG"
READ_TOKEN = "hf_" + "LoopbackOnlyReadTokenOfTheTestsABC"
USER = "tester"
#: What the Hub stores as LFS, whatever its size.
LFS_SUFFIXES = (".safetensors", ".png", ".model", ".bin")
ATTRIBUTES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"


@dataclass
class Fault:
    """What goes wrong at a route.

    Attributes:
        route: Name of the route.
        status: The answer; ``None``: the connection is cut, of uploads in the middle of the body.
        calls: Which calls, counted from 1; ``None``: all.
        message: Of the error.
        headers: Of the answer.
        after: Do what was asked before answering so.
        content: Answer with this body, instead of an error.
        pace: ``"silent"``: never answer; ``"drip"``: a byte now and then, without end.
    """

    route: str
    status: int | None
    calls: tuple[int, ...] | None = None
    message: str = "injected"
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    content: bytes | None = None
    pace: str | None = None


@dataclass
class Commit:
    oid: str
    parent: str | None
    title: str
    #: path → (LFS oid, size), or bytes
    files: dict[str, bytes | tuple[str, int]]


@dataclass
class Repo:
    kind: str
    name: str
    private: bool
    sdk: str | None = None
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    def add(self, ref: str, title: str, files: dict[str, Any], parent: str | None) -> Commit:
        oid = hashlib.sha1(f"{self.name}{title}{len(self.commits)}{time.time_ns()}".encode()).hexdigest()
        self.commits[oid] = Commit(oid, parent, title, files)
        self.refs[ref] = oid
        return self.commits[oid]

    def at(self, revision: str) -> Commit | None:
        return self.commits.get(self.refs.get(revision, revision))


class Hub:
    """State of the server, for tests to look at and to disturb.

    Attributes:
        calls: Names of the routes asked, in order, with the paths.
        paths: All that was asked, also where there is no route.
        tokens: Bearer tokens that came.
        broken: Errors of the server itself; a test should find none.
        uploaded: LFS oids whose bytes came, one entry each time.
        faults: Those in force.
        before: Route → what happens when it is asked next, before it answers.
        multipart: Bytes a part; ``None``: uploads in one piece.
        xet: Address of the storage that hf_xet is sent to; ``None``: none.
    """

    def __init__(self, folder: Path) -> None:
        self.blobs = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.url = ""
        self.repos: dict[tuple[str, str], Repo] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.multipart: int | None = None
        self.xet: str | None = None
        self.lock = threading.RLock()
        self.reset()

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self.repos.clear()
            self.parts.clear()
            self.multipart = self.xet = None
            for blob in self.blobs.iterdir():
                blob.unlink()
            self.reset()

    def reset(self) -> None:
        """Forget calls and faults."""
        self.calls: list[tuple[str, str]] = []
        self.paths: list[str] = []
        self.tokens: list[str | None] = []
        self.uploaded: list[str] = []
        self.broken: list[str] = []
        self.faults: list[Fault] = []
        self.before: dict[str, Callable[[], None]] = {}
        self._counts: dict[str, int] = {}

    def fault(self, route: str) -> Fault | None:
        with self.lock:
            self.before.pop(route, lambda: None)()
            count = self._counts[route] = self._counts.get(route, 0) + 1
            for fault in self.faults:
                if fault.route == route and (fault.calls is None or count in fault.calls):
                    return fault
        return None

    def asked(self, route: str) -> int:
        return sum(name == route for name, _ in self.calls)

    def model(self, name: str, kind: str = "model") -> Repo:
        return self.repos[kind, name]

    def files(self, name: str, revision: str = "main", kind: str = "model") -> dict[str, bytes]:
        commit = self.repos[kind, name].at(revision)
        assert commit is not None
        return {path: self.content(stored) for path, stored in commit.files.items()}

    def content(self, stored: bytes | tuple[str, int]) -> bytes:
        return stored if isinstance(stored, bytes) else (self.blobs / stored[0]).read_bytes()

    def put(self, name: str, files: dict[str, bytes | None], kind: str = "model") -> None:
        """A commit by somebody else, past the API; ``None`` deletes."""
        repo = self.repos.get((kind, name)) or self.create(name, kind)
        head = repo.at("main")
        assert head is not None
        changed = {**head.files, **{path: text for path, text in files.items() if text is not None}}
        kept = {path: text for path, text in changed.items() if files.get(path, b"") is not None}
        repo.add("main", "by hand", kept, head.oid)

    def create(self, name: str, kind: str, private: bool = False, sdk: str | None = None) -> Repo:
        repo = self.repos[kind, name] = Repo(kind, name, private, sdk)
        repo.add("main", "initial commit", {".gitattributes": ATTRIBUTES}, None)
        return repo
