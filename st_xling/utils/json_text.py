"""JSON of users' files. A key that an object has twice is an error: parsers would silently keep its last value."""

from __future__ import annotations

import json
from typing import Any


class RepeatedKey(ValueError):
    """An object has a key twice."""


def object_of_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of key–value pairs, as ``object_pairs_hook`` of :mod:`json`.

    Raises:
        RepeatedKey: If a key occurs twice.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in content if keys.count(key) > 1)
        raise RepeatedKey(f"an object has the key {twice!r} twice, and which value is meant is unknown; keep one")
    return content


def parse_json(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        RepeatedKey: If an object has a key twice.
        ValueError: If the text is not JSON.

    Example:
        >>> parse_json('{"source": "Ja.", "target": "Yes."}')
        {'source': 'Ja.', 'target': 'Yes.'}
    """
    return json.loads(text, object_pairs_hook=object_of_unique_keys)
