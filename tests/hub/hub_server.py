"""A Hub on 127.0.0.1: the part of the API that the real client uses to publish and to fetch."""

import base64
import hashlib
import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote

from huggingface_hub import get_session

# The client's own HTTP library, of which huggingface_hub has taken several.
httpx: Any = sys.modules[type(get_session()).__module__.partition(".")[0]]

TOKEN = "hf_" + "OnlyTokenOfTheTestsABCDEFGHIJKLMNO"
#: A fault: the connection is cut.
CUT = "cut"

_REPO = r"/api/(?P<kind>models|datasets)/(?P<name>[\w.-]+/[\w.-]+)"
ROUTES = {
    "create": r"/api/repos/create",
    "validate": r"/api/validate-yaml",
    "preupload": rf"{_REPO}/preupload/(?P<revision>[^/]+)",
    "commit": rf"{_REPO}/commit/(?P<revision>[^/]+)",
    "paths": rf"{_REPO}/paths-info/(?P<revision>[^/]+)",
    "tree": rf"{_REPO}/tree/(?P<revision>[^/]+)(/(?P<path>.+))?",
    "info": rf"{_REPO}(/revision/(?P<revision>[^/]+))?",
    "resolve": r"/((?P<kind>datasets)/)?(?P<name>[\w.-]+/[\w.-]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)",
}


@dataclass
class Repo:
    """A repository: id → title and files of its commits, oldest first; an unknown revision is the last one."""

    private: bool = False
    commits: dict[str, tuple[str, dict[str, bytes]]] = field(default_factory=dict)

    @property
    def head(self) -> str:
        return [*self.commits][-1]

    def add(self, title: str, files: dict[str, bytes]) -> str:
        oid = hashlib.sha1(f"{title} {len(self.commits)} {files}".encode()).hexdigest()
        self.commits[oid] = (title, files)
        return oid


class Refused(Exception):
    """An answer that says no."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Hub:
    """Its state, for tests to look at and to disturb.

    Attributes:
        repos: Repositories by ``models/owner/name`` or ``datasets/owner/name``.
        requests: All requests.
        faults: Route → what goes wrong there: a status, :data:`CUT`, or an event before which there is no answer.
    """

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.requests: list[Any] = []
        self.faults: dict[str, int | str | threading.Event] = {}

    def repo(self, name: str, kind: str = "models") -> Repo:
        if f"{kind}/{name}" not in self.repos:
            raise Refused(404, "Repository not found", "RepoNotFound")
        return self.repos[f"{kind}/{name}"]

    def files(self, name: str, kind: str = "models") -> dict[str, bytes]:
        repo = self.repo(name, kind)
        return dict(repo.commits[repo.head][1])

    def put(self, name: str, files: dict[str, bytes], kind: str = "models") -> None:
        """Commit files past the API, as somebody else."""
        repo = self.repos.setdefault(f"{kind}/{name}", Repo())
        before = self.files(name, kind) if repo.commits else {".gitattributes": b""}
        repo.add("by hand", {**before, **files})

    def answer(self, request: Any) -> Any:
        """Answer a request of the client."""
        self.requests.append(request)
        matches = ((route, re.fullmatch(pattern, request.url.path)) for route, pattern in ROUTES.items())
        route, matched = next((match for match in matches if match[1]), ("", None))
        fault = self.faults.get(route)
        if isinstance(fault, threading.Event):
            fault.wait(60)
        if fault == CUT or isinstance(fault, threading.Event):
            raise httpx.ReadError("the connection is cut", request=request)
        try:
            if matched is None or fault:
                raise Refused(int(fault or 404), "injected" if fault else "no such route", "EntryNotFound")
            is_write = route in ("create", "preupload", "commit")
            if is_write and request.headers.get("Authorization") != f"Bearer {TOKEN}":
                raise Refused(401, "Invalid username or password.")
            arguments = {key: unquote(value) for key, value in matched.groupdict().items() if value is not None}
            content, headers = getattr(self, f"_{route}")(request, **arguments)
        except Refused as error:
            headers = {"X-Error-Message": str(error), "X-Error-Code": error.code}
            return httpx.Response(error.status, json={"error": str(error), "url": str(error)}, headers=headers)
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return httpx.Response(200, content=body, headers=headers)

    def _at(self, kind: str, name: str, revision: str) -> tuple[str, dict[str, bytes]]:
        repo = self.repo(name, kind)
        oid = revision if revision in repo.commits else repo.head
        return oid, repo.commits[oid][1]

    def _create(self, request: Any) -> Any:
        options = json.loads(request.content)
        name = f"{options['organization']}/{options['name']}"
        kind = f"{options.get('type') or 'model'}s"
        url = f"https://huggingface.co/{'' if kind == 'models' else f'{kind}/'}{name}"
        if f"{kind}/{name}" in self.repos:
            raise Refused(409, url)  # which is not an error if it may exist
        self.put(name, {}, kind)
        self.repo(name, kind).private = options.get("visibility") == "private" or bool(options.get("private"))
        return {"url": url}, {}

    def _validate(self, request: Any) -> Any:
        return {"errors": [], "warnings": []}, {}

    def _preupload(self, request: Any, kind: str, name: str, revision: str) -> Any:
        _, there = self._at(kind, name, revision)
        files = []
        for path in (file["path"] for file in json.loads(request.content)["files"]):
            oid = _oid(there[path]) if path in there else None
            files.append({"path": path, "uploadMode": "regular", "shouldIgnore": False, "oid": oid})
        return {"files": files}, {}

    def _commit(self, request: Any, kind: str, name: str, revision: str) -> Any:
        header, *rows = (json.loads(line) for line in request.content.splitlines())
        files = self.files(name, kind)
        for row in rows:
            path = row["value"]["path"]
            if row["key"] == "deletedFile":
                del files[path]
            else:
                files[path] = base64.b64decode(row["value"]["content"])
        oid = self.repo(name, kind).add(header["value"]["summary"], files)
        url = f"https://huggingface.co/{'' if kind == 'models' else f'{kind}/'}{name}/commit/{oid}"
        return {"success": True, "commitOid": oid, "commitUrl": url}, {}

    def _info(self, request: Any, kind: str, name: str, revision: str = "main") -> Any:
        oid, files = self._at(kind, name, revision)
        siblings = [{"rfilename": path} for path in sorted(files)]
        private = self.repo(name, kind).private
        return {"_id": "0", "id": name, "sha": oid, "private": private, "tags": [], "siblings": siblings}, {}

    def _tree(self, request: Any, kind: str, name: str, revision: str, path: str = "") -> Any:
        """Files and folders in a folder; those below it too, if ``recursive`` is asked for."""
        _, files = self._at(kind, name, revision)
        start = f"{path}/" if path else ""
        inside = [file for file in files if file.startswith(start)]
        if path and not inside:
            raise Refused(404, f"{path} does not exist", "EntryNotFound")
        ends = {"/".join(file.split("/")[:end]) for file in inside for end in range(1, file.count("/") + 2)}
        deep = request.url.params.get("recursive", "").lower() in ("1", "true")
        shown = [end for end in ends if end.startswith(start) and (deep or end.count("/") == start.count("/"))]
        return [_row(end, files) for end in sorted(shown)], {}

    def _paths(self, request: Any, kind: str, name: str, revision: str) -> Any:
        _, files = self._at(kind, name, revision)
        text = request.content.decode()
        paths = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text)["paths"]
        present = [path for path in paths if any(file == path or file.startswith(f"{path}/") for file in files)]
        return [_row(path, files) for path in present], {}

    def _resolve(self, request: Any, name: str, revision: str, path: str, kind: str = "models") -> Any:
        oid, files = self._at(kind, name, revision)
        if path not in files:
            raise Refused(404, "Entry not found", "EntryNotFound")
        return files[path], {"X-Repo-Commit": oid, "ETag": f'"{_oid(files[path])}"'}


def _oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _row(path: str, files: dict[str, bytes]) -> dict[str, Any]:
    kind, content = ("file", files[path]) if path in files else ("directory", path.encode())
    return {"type": kind, "path": path, "oid": _oid(content), "size": len(content)}


class Handler(BaseHTTPRequestHandler):
    """Hands requests to the Hub; its server has it as ``hub``."""

    protocol_version = "HTTP/1.1"
    timeout = 20

    def do_GET(self) -> None:
        server: Any = self.server
        url = f"https://huggingface.co{self.path}"
        request = httpx.Request(self.command, url, headers=dict(self.headers), content=b"".join(self.body()))
        try:
            response = server.hub.answer(request)
        except httpx.ReadError:
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        self.send_response(response.status_code)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.content)

    do_POST = do_HEAD = do_GET

    def body(self) -> Iterator[bytes]:
        if self.headers.get("Transfer-Encoding") != "chunked":
            yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def log_message(self, format: str, *words: Any) -> None: ...


class Loopback(httpx.HTTPTransport):  # type: ignore[misc]
    """Sends what goes to the Hub to a port of this machine."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port

    def handle_request(self, request: Any) -> Any:
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self.port)
        return super().handle_request(request)


@contextmanager
def serving(hub: Hub) -> Iterator[int]:
    """Serve a Hub, and return its port."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.hub, server.daemon_threads = hub, True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
