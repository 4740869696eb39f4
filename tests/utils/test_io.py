"""A JSON file that several processes add to: nothing lost, nothing half-written, nothing that is not JSON."""

import json
from pathlib import Path

import pytest

from st_xling.utils.io import finite, read_json_object, update_json_object, write_json
from tests.processes import run_together


def test_what_json_does_not_know(tmp_path: Path) -> None:
    """Python would write NaN and Infinity, which no other reader takes; what has them already is mended."""
    path = tmp_path / "f.json"
    path.write_text('{"old": NaN, "older": [-Infinity, 1e999]}', encoding="utf-8")
    update_json_object(path, lambda content: {**content, "new": (float("inf"), {"x": float("nan")}, 0.5, True)})
    written = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert written == {"old": None, "older": [None, None], "new": [None, {"x": None}, 0.5, True]}
    assert finite([1, "NaN", None]) == [1, "NaN", None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1', r"f\.json: expected JSON, got .*; restore the file, or remove it"),
        (b"[1]", r"f\.json: expected a JSON object, got list"),
        (b"[" * 100_000, r"f\.json: expected JSON, got "),
    ],
)
def test_a_broken_file_is_named_and_left(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_json_object(path)
    with pytest.raises(ValueError, match=message):
        update_json_object(path, lambda content: {})
    assert path.read_bytes() == content


ADDS = """
import sys
from pathlib import Path
from st_xling.utils.io import update_json_object
for number in range(25):
    update_json_object(Path(sys.argv[1]), lambda content: {**content, f"{sys.argv[2]}{number}": number})
"""


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "model" / "f.json"
    path.parent.mkdir()
    ended = run_together([["-c", ADDS, str(path), name] for name in "ab"], tmp_path, seconds=100)
    assert [end.status for end in ended] == [0, 0], ended
    assert len(read_json_object(path)) == 50


def test_a_change_that_fails_leaves_the_file_and_no_lock(tmp_path: Path) -> None:
    """A lock that was left behind would make every later ``--keep`` wait half a minute."""
    path = tmp_path / "f.json"
    update_json_object(path, lambda _: {"a": 1})
    with pytest.raises(TypeError):
        update_json_object(path, lambda _: {"a": {1, 2}})
    with pytest.raises(KeyError):
        update_json_object(path, lambda content: content["b"])
    update_json_object(path, lambda content: {"größe": content["a"] + 1, "b": "🙂"})
    assert "größe" in path.read_text(encoding="utf-8") and read_json_object(path) == {"größe": 2, "b": "🙂"}
    assert [file.name for file in tmp_path.iterdir()] == ["f.json"]


def test_the_users_own_temporary_file_stays(tmp_path: Path) -> None:
    """A file of the name that we would have written first was replaced, or removed after an error."""
    (tmp_path / "f.json.tmp").write_text("precious")
    write_json(tmp_path / "f.json", {})
    with pytest.raises(TypeError):
        write_json(tmp_path / "f.json", object())
    assert (tmp_path / "f.json.tmp").read_text() == "precious" and len(list(tmp_path.iterdir())) == 2
