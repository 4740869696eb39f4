"""A Python that starts at once: its processes are forked from one that has imported torch and this package.

For tests of what commands do in processes of their own, where the start of a process is not what is tested: of each
fresh one, imports take about seven seconds of processor time. :func:`write_programs` makes ``python`` and ``st-xling``,
which a test gives to what starts processes; they hand their words, environment, folder and streams to the server, which
is ``python -m tests.warm SOCKET``, pass signals on, and end as the forked process does. It sees itself as the same
``python``, so that what it starts is as quick. What is read from the environment when a library is imported, such as
``HF_HOME``, is that of the server.
"""

import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

import matplotlib

# Runs without site-packages, in milliseconds. Other interpreters, and other words than -m MODULE, get a fresh process.
PROGRAM = """#!{python} -SI
import json, os, signal, socket, sys
words = {words} + sys.argv[1:]
if words[:1] == ["-u"]:  # as torchrun starts its processes
    words = words[1:]
if words[:1] != ["-m"] or "PYTHONSAFEPATH" in os.environ:
    os.execv({python!r}, [{python!r}, *words])
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
request = {{"words": words, "folder": os.getcwd(), "environment": dict(os.environ), "python": {warm!r}}}
socket.send_fds(connection, [b" "], [0, 1, 2])
connection.sendall(json.dumps(request).encode() + b"\\n")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: connection.send(bytes([number])))
status = int.from_bytes(connection.recv(4) or b"\\1\\0\\0\\0", sys.byteorder, signed=True)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def write_programs(folder: Path, address: str) -> Path:
    """Write ``python`` and ``st-xling`` to the folder, for a server at ``address``; return the path of ``python``."""
    warm = folder / "python"
    for name, words in {"python": [], "st-xling": ["-m", "st_xling.cli"]}.items():
        program = folder / name
        program.write_text(PROGRAM.format(python=sys.executable, words=words, address=address, warm=str(warm)))
        program.chmod(0o755)
    return warm


def serve(address: str) -> dict[str, Any]:
    """Fork for each program that connects; return in the forked process alone, with the program's request.

    The server ends when its standard input does, which is with the tests.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the process that attends to a program
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(16)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                os._exit(0)
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        request: dict[str, Any] = json.loads(lines.readline())
    if child := os.fork():
        attend(connection, child)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return request


def attend(connection: socket.socket, child: int) -> None:
    """Pass signals on to the child, and its status back; it dies with the program that it runs for."""
    ended = os.pidfd_open(child)
    while True:
        ready, _, _ = select.select([connection, ended], [], [])
        if ended in ready:
            _, status = os.waitpid(child, 0)
            connection.send(struct.pack("i", os.waitstatus_to_exitcode(status)))
            os._exit(0)
        numbers = connection.recv(16)
        if not numbers:
            os.killpg(0, signal.SIGKILL)
        for number in numbers:
            os.kill(child, number)


def run(request: dict[str, Any]) -> None:
    """Run a module as ``python -m`` does."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    # As in a terminal, also where the tests run in the background, which makes children deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)
    if "MPLBACKEND" in os.environ:  # read when matplotlib is imported, used when the first figure is drawn
        matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]
    sys.executable = request["python"]
    sys.path.insert(0, request["folder"])
    _, module, *sys.argv[1:] = request["words"]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    import tests.training.preload  # noqa: F401

    run(serve(sys.argv[1]))
