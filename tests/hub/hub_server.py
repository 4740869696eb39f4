"""A Hub on 127.0.0.1: the part of the real API that the real client uses to publish and to fetch.

Repositories with branches, commits and pull requests; regular files and LFS files. Faults are
injected by route, see :class:`Fault`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_" + "LoopbackOnlyTokenOfTheTestsABCDEFG"
READ_TOKEN = "hf_" + "LoopbackOnlyReadTokenOfTheTestsABC"
USER = "tester"
#: What the Hub stores as LFS, whatever its size.
LFS_SUFFIXES = (".safetensors", ".parquet", ".png", ".model", ".bin")
ATTRIBUTES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"


@dataclass
class Fault:
    """What goes wrong at a route.

    Attributes:
        route: Name of the route.
        status: The answer; ``None``: the connection is cut, of uploads in the middle of the body.
        calls: Which calls, counted from 1; ``None``: all.
        silent: Never answer a request without a body.
    """

    route: str
    status: int | None
    calls: tuple[int, ...] | None = None
    silent: bool = False


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
    """

    def __init__(self, folder: Path) -> None:
        self.blobs = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.url = ""
        self.repos: dict[tuple[str, str], Repo] = {}
        self.lock = threading.RLock()
        self.reset()

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self.repos.clear()
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
        self._counts: dict[str, int] = {}

    def fault(self, route: str) -> Fault | None:
        with self.lock:
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

    def create(self, name: str, kind: str, private: bool = False) -> Repo:
        repo = self.repos[kind, name] = Repo(kind, name, private)
        repo.add("main", "initial commit", {".gitattributes": ATTRIBUTES}, None)
        return repo


class Refused(Exception):
    """An answer that says no."""

    def __init__(self, status: int, message: str, code: str | None = None, **headers: str) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, message, code, headers


def _blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _pointer(oid: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n".encode()


class Handler(BaseHTTPRequestHandler):
    """The routes; each gets what its pattern found."""

    protocol_version = "HTTP/1.1"
    timeout = 20
    hub: Hub
    _kind = r"(?P<kind>models|spaces|datasets)"
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
        ("POST", "lfs_batch", rf"/((?P<kind>spaces|datasets)/)?{_repo}\.git/info/lfs/objects/batch"),
        ("PUT", "lfs_put", r"/_lfs/(?P<oid>[0-9a-f]{64})"),
        ("GET", "resolve", rf"/((?P<kind>spaces|datasets)/)?{_repo}/(resolve|raw)/(?P<revision>[^/]+)/(?P<path>.+)"),
    ]

    def log_message(self, format: str, *args: Any) -> None:
        """Silence; what was asked is in ``hub.calls``."""

    def do_GET(self) -> None:
        self._answer("GET")

    def do_HEAD(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def _answer(self, method: str) -> None:
        split = urlsplit(self.path)
        self.hub.paths.append(split.path)
        self.query = {key: values[0] for key, values in parse_qs(split.query).items()}
        matches = ((route, re.fullmatch(pattern, split.path)) for verb, route, pattern in self.routes if verb == method)
        route, found = next((match for match in matches if match[1]), ("", None))
        if found is None:
            self._body()
            self._send(404, {"error": f"no route {method} {split.path}"}, {"X-Error-Code": "EntryNotFound"})
            return
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ") or None
        self.hub.calls.append((route, split.path))
        self.hub.tokens.append(bearer)
        fault = self.hub.fault(route)
        if fault is not None and fault.silent:
            self.close_connection = True
            select.select([self.connection], [], [], 300)  # until the client goes away
            return
        if fault is not None and fault.status is None:
            self._cut()
            return
        self.body = self._body()
        if self.body is None:
            return
        given = {key: unquote(value) for key, value in found.groupdict().items() if value is not None}
        try:
            if fault is not None:
                raise Refused(fault.status or 500, "injected")
            with self.hub.lock:
                status, content, headers = getattr(self, f"_{route}")(bearer, **given)
        except Refused as error:
            names = {"X-Error-Message": error.message, **({"X-Error-Code": error.code} if error.code else {})}
            status, content, headers = error.status, {"error": error.message}, {**names, **error.headers}
        self._send(status, content, headers)

    def _body(self) -> bytes | None:
        """What was sent; ``None`` if the sender went away."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            read = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                read += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return read
        length = int(self.headers.get("Content-Length") or 0)
        read = self.rfile.read(length)
        return read if len(read) == length else None

    def _cut(self) -> None:
        """Read half of the body, then hang up."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0) // 2)
        self._hang_up()

    def _hang_up(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        names = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        for name, value in names.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    # who may what

    def _login(self, token: str | None, *, write: bool = False) -> None:
        if token not in (TOKEN, READ_TOKEN):
            raise Refused(401, "Invalid username or password.")
        if write and token != TOKEN:
            raise Refused(403, "You don't have the rights to write here")

    def _found(self, token: str | None, kind: str | None, name: str, *, write: bool = False) -> Repo:
        repo = self.hub.repos.get(((kind or "models").removesuffix("s"), name))
        if repo is None or (repo.private and token not in (TOKEN, READ_TOKEN)):
            status = 404 if token in (TOKEN, READ_TOKEN) else 401
            raise Refused(status, "Repository not found", "RepoNotFound")
        if write:
            self._login(token, write=True)
        return repo

    def _at(self, repo: Repo, revision: str) -> Commit:
        commit = repo.at(revision)
        if commit is None:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    # the routes

    def _create(self, token: str | None) -> Any:
        asked = json.loads(self.body)
        self._login(token, write=True)
        kind, owner = asked.get("type") or "model", asked.get("organization") or USER
        if owner != USER:
            raise Refused(403, f"You don't have the rights to create a {kind} under the namespace {owner!r}")
        name = f"{owner}/{asked['name']}"
        prefix = "" if kind == "model" else f"{kind}s/"
        answer = {"url": f"{self.hub.url}/{prefix}{name}", "name": name}
        if (kind, name) in self.hub.repos:
            return 409, {**answer, "error": f"You already created this {kind} repo"}, {}
        private = asked.get("visibility") == "private" or bool(asked.get("private"))
        self.hub.create(name, kind, private)
        return 200, answer, {}

    def _validate(self, token: str | None) -> Any:
        import yaml

        metadata = yaml.safe_load(json.loads(self.body)["content"].split("---\n", 2)[1])
        if metadata.get("license_name") == "nonsense":
            return 400, {"errors": [{"message": '"license_name" must be one of ...'}], "warnings": []}, {}
        return 200, {"errors": [], "warnings": []}, {}

    def _branch(self, token: str | None, kind: str, name: str, branch: str) -> Any:
        repo = self._found(token, kind, name, write=True)
        if branch in repo.refs:
            raise Refused(409, "Reference already exists")
        repo.refs[branch] = self._at(repo, json.loads(self.body or b"{}").get("startingPoint") or "main").oid
        return 200, {}, {}

    def _preupload(self, token: str | None, kind: str, name: str, revision: str) -> Any:
        asked = json.loads(self.body)
        repo = self._found(token, kind, name)
        self._login(token, write="create_pr" not in self.query)
        head = self._at(repo, revision)
        stored = head.files.get(".gitignore", b"")
        ignored = asked.get("gitIgnore", stored.decode() if isinstance(stored, bytes) else "").splitlines()
        files = []
        for file in asked["files"]:
            there = head.files.get(file["path"])
            oid = None if there is None else there[0] if isinstance(there, tuple) else _blob_id(there)
            mode = "lfs" if file["path"].endswith(LFS_SUFFIXES) else "regular"
            skip = any(line.startswith("*") and file["path"].endswith(line[1:]) for line in ignored)
            files.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": skip, "oid": oid})
        return 200, {"files": files}, {}

    def _lfs_batch(self, token: str | None, name: str, kind: str | None = None) -> Any:
        self._found(token, kind, name)
        asked, objects = json.loads(self.body), []
        for item in asked["objects"]:
            oid, size = item["oid"], item["size"]
            answer: dict[str, Any] = {"oid": oid, "size": size, "authenticated": True}
            if not (self.hub.blobs / oid).exists():
                upload = {"href": f"{self.hub.url}/_lfs/{oid}?X-Signature=secret-{oid[:8]}", "header": {}}
                answer["actions"] = {"upload": upload}
            objects.append(answer)
        return 200, {"transfer": "basic", "objects": objects}, {}

    def _lfs_put(self, token: str | None, oid: str) -> Any:
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise Refused(400, "content does not match its oid")
        (self.hub.blobs / oid).write_bytes(self.body)
        self.hub.uploaded.append(oid)
        return 200, {}, {}

    def _commit(self, token: str | None, kind: str, name: str, revision: str) -> Any:
        repo = self._found(token, kind, name)
        pull = "create_pr" in self.query
        self._login(token, write=not pull)
        rows = [json.loads(line) for line in self.body.splitlines()]
        assert rows[0]["key"] == "header"
        header, head = rows[0]["value"], self._at(repo, revision)
        wanted = header.get("parentCommit")
        if wanted and not pull and wanted != head.oid:
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        files = self._changed(dict(head.files), rows[1:])
        number = 1 + sum(ref.startswith("refs/pr/") for ref in repo.refs)
        made = repo.add(f"refs/pr/{number}" if pull else revision, header["summary"], files, head.oid)
        prefix = f"{self.hub.url}/{'' if kind == 'models' else kind + '/'}{name}"
        answer = {"success": True, "commitOid": made.oid, "commitUrl": f"{prefix}/commit/{made.oid}"}
        return 200, {**answer, "pullRequestUrl": f"{prefix}/discussions/{number}" if pull else None}, {}

    def _changed(self, files: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
        for row in rows:
            key, value = row["key"], row["value"]
            path = value["path"]
            if key == "file":
                files[path] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                if not (self.hub.blobs / value["oid"]).exists():
                    raise Refused(400, f"lfs object {value['oid']} of {path} was not uploaded")
                files[path] = (value["oid"], value["size"])
            else:
                assert key == "deletedFile"
                del files[path]
        return files

    def _info(self, token: str | None, kind: str, name: str, revision: str = "main") -> Any:
        repo = self._found(token, kind, name)
        commit = self._at(repo, revision)
        siblings = [{"rfilename": path} for path in sorted(commit.files)]
        answer = {"_id": "0", "id": name, "modelId": name, "sha": commit.oid, "private": repo.private, "tags": []}
        return 200, {**answer, "siblings": siblings}, {}

    def _tree(self, token: str | None, kind: str, name: str, revision: str, path: str = "") -> Any:
        """Files and folders in a folder; those below it too, if ``recursive`` is asked for."""
        files = self._at(self._found(token, kind, name), revision).files
        inside = [file for file in sorted(files) if not path or file.startswith(f"{path}/")]
        if path and not inside:
            raise Refused(404, f"{path} does not exist", "EntryNotFound")
        depth = len(path.split("/")) if path else 0
        parts = [file.split("/") for file in inside]
        folders = {"/".join(each[:end]) for each in parts for end in range(depth + 1, len(each))}
        rows = [*map(self._folder_row, sorted(folders)), *(self._file_row(file, files[file]) for file in inside)]
        deep = self.query.get("recursive", "").lower() in ("1", "true")
        return 200, [row for row in rows if deep or row["path"].count("/") == depth], {}

    def _paths(self, token: str | None, kind: str, name: str, revision: str) -> Any:
        files = self._at(self._found(token, kind, name), revision).files
        asked = parse_qs(self.body.decode())["paths"] if self.body[:1] != b"{" else json.loads(self.body)["paths"]
        rows = [self._file_row(path, files[path]) for path in asked if path in files]
        folders = [path for path in asked if any(file.startswith(f"{path}/") for file in files)]
        return 200, [*rows, *map(self._folder_row, folders)], {}

    @staticmethod
    def _folder_row(path: str) -> dict[str, Any]:
        return {"type": "directory", "path": path, "oid": _blob_id(path.encode()), "size": 0}

    @staticmethod
    def _file_row(path: str, stored: bytes | tuple[str, int]) -> dict[str, Any]:
        content = stored if isinstance(stored, bytes) else _pointer(*stored)
        row = {"type": "file", "path": path, "oid": _blob_id(content), "size": len(content)}
        if isinstance(stored, tuple):
            row |= {"size": stored[1], "lfs": {"oid": stored[0], "size": stored[1], "pointerSize": len(content)}}
        return row

    def _resolve(self, token: str | None, name: str, revision: str, path: str, kind: str | None = None) -> Any:
        repo = self._found(token, kind, name)
        commit = self._at(repo, revision)
        stored = commit.files.get(path)
        seen = {"X-Repo-Commit": commit.oid, "Content-Type": "application/octet-stream"}
        if stored is None:
            raise Refused(404, "Entry not found", "EntryNotFound", **{"X-Repo-Commit": commit.oid})
        content = self.hub.content(stored)
        seen["ETag"] = f'"{stored[0] if isinstance(stored, tuple) else _blob_id(content)}"'
        if isinstance(stored, tuple):
            seen |= {"X-Linked-ETag": seen["ETag"], "X-Linked-Size": str(stored[1])}
        return 200, content, seen


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
def serve(folder: Path) -> Iterator[Hub]:
    """A Hub, until the block ends."""
    hub = Hub(folder)
    with _Server(("127.0.0.1", 0), type("BoundHandler", (Handler,), {"hub": hub})) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield hub
        server.shutdown()
