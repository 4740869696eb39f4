"""One street: a room imports only the rooms before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import st_xling

ROOMS = [
    "utils",
    "data",
    "models",
    "losses",
    "training",
    "mining",
    "reranking",
    "evaluation",
    "metrics",
    "hub",
    "cli",
]
HOUSE = Path(st_xling.__file__).parent


def imported_rooms(file: Path) -> set[str]:
    """Rooms that a file imports anywhere, type-checking imports and those inside functions included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file} imports relatively; rooms are named in full"
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    parts = (name.split(".") for name in names)
    return {words[1] for words in parts if words[0] == "st_xling" and len(words) > 1}


@pytest.mark.parametrize("room", [room for room in ROOMS if (HOUSE / room).is_dir()])
def test_a_room_imports_only_those_before_it(room: str) -> None:
    later = set(ROOMS[ROOMS.index(room) + 1 :]) | {"cli", "demo"} - {room}
    if room == "cli":
        later.discard("demo")  # `st-xling demo` calls it
    files = sorted((HOUSE / room).rglob("*.py"))
    assert files
    faults = {str(file.relative_to(HOUSE)): sorted(imported_rooms(file) & later) for file in files}
    assert {name: rooms for name, rooms in faults.items() if rooms} == {}


def test_every_folder_is_a_room() -> None:
    folders = {path.name for path in HOUSE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= set(ROOMS)
