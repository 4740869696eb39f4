"""A Hub on 127.0.0.1: the part of the real API that the real client uses to publish and to fetch."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import select
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_" + "LoopbackOnlyTokenOfTheTestsABCDEFG"
USER = "tester"
#: What the Hub stores as LFS, whatever its size.
LFS_SUFFIXES = (".safetensors", ".parquet", ".png", ".model", ".bin")
CUT, SILENT = "cut", "silent"


@dataclass
class Commit:
    title: str
    files: dict[str, bytes]


@dataclass
class Repo:
    """A repository: commits by id, oldest first, and branches."""

    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    def add(self, ref: str, title: str, files: dict[str, bytes]) -> str:
        oid = hashlib.sha1(f"{id(self)} {title} {len(self.commits)}".encode()).hexdigest()
        self.commits[oid] = Commit(title, files)
        self.refs[ref] = oid
        return oid


class Hub:
    """State of the server, for tests to look at and to disturb.

    Attributes:
        paths: All that was asked.
        tokens: Bearer tokens that came.
        broken: Errors of the server itself; a test should find none.
        blobs: LFS files that came, by SHA-256.
        faults: Route → what goes wrong there: a status, :data:`CUT`: the connection is cut in the middle of the body,
            or :data:`SILENT`: no answer.
    """

    def __init__(self) -> None:
        self.url = ""
        self.lock = threading.RLock()
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.repos: dict[tuple[str, str], Repo] = {}
        self.blobs: dict[str, bytes] = {}
        self.paths: list[str] = []
        self.tokens: set[str | None] = set()
        self.broken: list[str] = []
        self.faults: dict[str, int | str] = {}

    def model(self, name: str, kind: str = "model") -> Repo:
        return self.repos[kind, name]

    def files(self, name: str, revision: str = "main", kind: str = "model") -> dict[str, bytes]:
        repo = self.repos[kind, name]
        return dict(repo.commits[repo.refs.get(revision, revision)].files)

    def create(self, name: str, kind: str = "model", private: bool = False) -> Repo:
        repo = self.repos[kind, name] = Repo(private)
        repo.add("main", "initial commit", {".gitattributes": b""})
        return repo

    def put(self, name: str, files: dict[str, bytes], kind: str = "model") -> Repo:
        """A commit by somebody else, past the API."""
        repo = self.repos.get((kind, name)) or self.create(name, kind)
        repo.add("main", "by hand", {**self.files(name, kind=kind), **files})
        return repo


class Refused(Exception):
    """An answer that says no."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Handler(BaseHTTPRequestHandler):
    """The routes; each gets what its pattern found."""

    protocol_version = "HTTP/1.1"
    timeout = 20
    hub: Hub
    _kind = r"(?P<kind>models|datasets)"
    _repo = r"(?P<name>[\w.-]+/[\w.-]+)"
    routes: ClassVar = [
        ("POST", "create", r"/api/repos/create"),
        ("POST", "validate", r"/api/validate-yaml"),
        ("POST", "branch", rf"/api/{_kind}/{_repo}/branch/(?P<branch>[^/]+)"),
        ("POST", "preupload", rf"/api/{_kind}/{_repo}/preupload/(?P<revision>[^/]+)"),
        ("POST", "commit", rf"/api/{_kind}/{_repo}/commit/(?P<revision>[^/]+)"),
        ("POST", "paths", rf"/api/{_kind}/{_repo}/paths-info/(?P<revision>[^/]+)"),
        ("GET", "tree", rf"/api/{_kind}/{_repo}/tree/(?P<revision>[^/]+)(/(?P<path>.+))?"),
        ("GET", "info", rf"/api/{_kind}/{_repo}(/revision/(?P<revision>[^/]+))?"),
        ("POST", "lfs_batch", rf"/((?P<kind>datasets)/)?{_repo}\.git/info/lfs/objects/batch"),
        ("PUT", "lfs_put", r"/_lfs/(?P<oid>[0-9a-f]{64})"),
        ("GET", "resolve", rf"/((?P<kind>datasets)/)?{_repo}/resolve/(?P<revision>[^/]+)/(?P<path>.+)"),
    ]

    def log_message(self, format: str, *args: Any) -> None:
        """Silence; what was asked is in ``hub.paths``."""

    def do_GET(self) -> None:
        self._answer("GET")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def _answer(self, method: str) -> None:
        split = urlsplit(self.path)
        self.hub.paths.append(split.path)
        self.query = {key: values[0] for key, values in parse_qs(split.query).items()}
        self.token = self.headers.get("Authorization", "").removeprefix("Bearer ") or None
        self.hub.tokens.add(self.token)
        matches = ((route, re.fullmatch(pattern, split.path)) for verb, route, pattern in self.routes if verb == method)
        route, found = next((match for match in matches if match[1]), ("", None))
        fault = self.hub.faults.get(route)
        if fault in (CUT, SILENT):
            if fault == SILENT:
                select.select([self.connection], [], [], 300)  # until the client goes away
            else:
                self.rfile.read(int(self.headers.get("Content-Length") or 0) // 2)
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.body = self._body()
        try:
            if found is None:
                raise Refused(404, f"no route {method} {split.path}", "EntryNotFound")
            if fault is not None:
                raise Refused(int(fault), "injected")
            given = {key: unquote(value) for key, value in found.groupdict().items() if value is not None}
            with self.hub.lock:
                status, content, headers = getattr(self, f"_{route}")(**given)
        except Refused as error:
            status, content = error.status, {"error": str(error)}
            headers = {"X-Error-Message": str(error), "X-Error-Code": error.code}
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        read = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            read += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return read

    def _login(self) -> None:
        if self.token != TOKEN:
            raise Refused(401, "Invalid username or password.")

    def _found(self, kind: str, name: str) -> Repo:
        repo = self.hub.repos.get((kind.removesuffix("s"), name))
        if repo is None or (repo.private and self.token != TOKEN):
            raise Refused(404 if self.token == TOKEN else 401, "Repository not found", "RepoNotFound")
        return repo

    def _at(self, kind: str, name: str, revision: str) -> tuple[str, dict[str, bytes]]:
        """The id of a commit, and its files."""
        repo = self._found(kind, name)
        oid = repo.refs.get(revision, revision)
        if oid not in repo.commits:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return oid, repo.commits[oid].files

    # the routes

    def _create(self) -> Any:
        asked = json.loads(self.body)
        self._login()
        kind, owner = asked.get("type") or "model", asked.get("organization") or USER
        if owner != USER:
            raise Refused(403, f"You don't have the rights to create a {kind} under the namespace {owner!r}")
        name = f"{owner}/{asked['name']}"
        answer = {"url": f"{self.hub.url}/{'' if kind == 'model' else f'{kind}s/'}{name}", "name": name}
        if (kind, name) in self.hub.repos:
            return 409, {**answer, "error": f"You already created this {kind} repo"}, {}
        self.hub.create(name, kind, asked.get("visibility") == "private" or bool(asked.get("private")))
        return 200, answer, {}

    def _validate(self) -> Any:
        return 200, {"errors": [], "warnings": []}, {}

    def _branch(self, kind: str, name: str, branch: str) -> Any:
        repo = self._found(kind, name)
        self._login()
        if branch in repo.refs:
            raise Refused(409, "Reference already exists")
        repo.refs[branch] = repo.refs["main"]
        return 200, {}, {}

    def _preupload(self, kind: str, name: str, revision: str) -> Any:
        self._login()
        _, there = self._at(kind, name, revision)
        files = []
        for path in (file["path"] for file in json.loads(self.body)["files"]):
            oid = _oid(path, there[path]) if path in there else None
            mode = "lfs" if path.endswith(LFS_SUFFIXES) else "regular"
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return 200, {"files": files}, {}

    def _lfs_batch(self, name: str, kind: str = "models") -> Any:
        self._found(kind, name)
        objects = []
        for item in json.loads(self.body)["objects"]:
            upload = {"upload": {"href": f"{self.hub.url}/_lfs/{item['oid']}", "header": {}}}
            actions = {} if item["oid"] in self.hub.blobs else {"actions": upload}
            objects.append({"oid": item["oid"], "size": item["size"], "authenticated": True, **actions})
        return 200, {"transfer": "basic", "objects": objects}, {}

    def _lfs_put(self, oid: str) -> Any:
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise Refused(400, "content does not match its oid")
        self.hub.blobs[oid] = self.body
        return 200, {}, {}

    def _commit(self, kind: str, name: str, revision: str) -> Any:
        self._login()
        repo, (_, there) = self._found(kind, name), self._at(kind, name, revision)
        header, *rows = (json.loads(line) for line in self.body.splitlines())
        files = dict(there)
        for row in rows:
            path = row["value"]["path"]
            if row["key"] == "deletedFile":
                del files[path]
            elif row["key"] == "lfsFile":
                files[path] = self.hub.blobs[row["value"]["oid"]]
            else:
                files[path] = base64.b64decode(row["value"]["content"])
        oid = repo.add(revision, header["value"]["summary"], files)
        url = f"{self.hub.url}/{'' if kind == 'models' else f'{kind}/'}{name}/commit/{oid}"
        return 200, {"success": True, "commitOid": oid, "commitUrl": url}, {}

    def _info(self, kind: str, name: str, revision: str = "main") -> Any:
        oid, files = self._at(kind, name, revision)
        siblings = [{"rfilename": path} for path in sorted(files)]
        private = self._found(kind, name).private
        return 200, {"_id": "0", "id": name, "sha": oid, "private": private, "tags": [], "siblings": siblings}, {}

    def _tree(self, kind: str, name: str, revision: str, path: str = "") -> Any:
        """Files and folders in a folder; those below it too, if ``recursive`` is asked for."""
        _, files = self._at(kind, name, revision)
        inside = [file for file in sorted(files) if not path or file.startswith(f"{path}/")]
        if path and not inside:
            raise Refused(404, f"{path} does not exist", "EntryNotFound")
        rows = _rows(
            {"/".join(file.split("/")[:end]) for file in inside for end in range(1, file.count("/") + 2)}, files
        )
        deep = self.query.get("recursive", "").lower() in ("1", "true")
        depth = path.count("/") + 1 if path else 0
        shown = [row for row in rows if row["path"] != path and row["path"].startswith(path)]
        return 200, [row for row in shown if deep or row["path"].count("/") == depth], {}

    def _paths(self, kind: str, name: str, revision: str) -> Any:
        _, files = self._at(kind, name, revision)
        asked = parse_qs(self.body.decode())["paths"] if self.body[:1] != b"{" else json.loads(self.body)["paths"]
        there = {path for path in asked if path in files or any(file.startswith(f"{path}/") for file in files)}
        return 200, _rows(there, files), {}

    def _resolve(self, name: str, revision: str, path: str, kind: str = "models") -> Any:
        oid, files = self._at(kind, name, revision)
        if path not in files:
            raise Refused(404, "Entry not found", "EntryNotFound")
        content = files[path]
        seen = {"X-Repo-Commit": oid, "Content-Type": "application/octet-stream", "ETag": f'"{_oid(path, content)}"'}
        return 200, content, seen


def _oid(path: str, content: bytes) -> str:
    if path.endswith(LFS_SUFFIXES):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _rows(paths: set[str], files: dict[str, bytes]) -> list[dict[str, Any]]:
    rows = []
    for path in sorted(paths):
        if path not in files:
            rows.append({"type": "directory", "path": path, "oid": _oid("", path.encode()), "size": 0})
            continue
        row = {"type": "file", "path": path, "oid": _oid(path, files[path]), "size": len(files[path])}
        if path.endswith(LFS_SUFFIXES):
            row["lfs"] = {"oid": row["oid"], "size": row["size"], "pointerSize": 130}
        rows.append(row)
    return rows


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests; what else goes wrong is ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            self.RequestHandlerClass.hub.broken.append(repr(error))  # type: ignore[attr-defined]


@contextmanager
def serve() -> Iterator[Hub]:
    """A Hub, until the block ends."""
    hub = Hub()
    with _Server(("127.0.0.1", 0), type("BoundHandler", (Handler,), {"hub": hub})) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield hub
        server.shutdown()
