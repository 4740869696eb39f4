"""The saved rows of all meetings, from which the page "Works with" is made."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

from tests.neighbours.meeting import MEETINGS, Row

#: The saved rows.
ROWS = Path(__file__).parents[2] / ".docs" / "works_with.json"

#: Modules of meetings, and the headings that they have on the page.
GROUPS = {
    "translation_memories": "Translation memories and translation files",
    "alignments": "Alignments",
    "runs": "Rankings, judgments and retrieval sets",
    "vectors": "Embeddings",
    "tables": "Data sets and cards",
    "encoders": "Encoders",
}


def load_meetings() -> None:
    """Import the modules of all meetings, and put the meetings in the order of the page."""
    for name in GROUPS:
        importlib.import_module(f"tests.neighbours.{name}")
    order = list(GROUPS)
    MEETINGS.sort(key=lambda entry: order.index(entry.group))


def load_rows() -> list[Row]:
    """Read the saved rows."""
    if not ROWS.is_file():
        return []
    return [Row(**row) for row in json.loads(ROWS.read_text(encoding="utf-8"))]


def save_row(row: Row) -> None:
    """Save a row in place of an earlier one of its name, in the order of the meetings; rows of no meeting go."""
    by_name = {saved.name: saved for saved in load_rows()}
    by_name[row.name] = row
    kept = [by_name[entry.name].as_dict() for entry in MEETINGS if entry.name in by_name]
    ROWS.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
