"""A corpus of passages that is in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class HeldPassages(Sequence[str]):
    """Texts with ids, where :class:`~st_xling.data.retrieval.passages.Passages` would read them from files.

    Args:
        records: Ids, no two alike, and texts.

    Attributes:
        ids: Id → row, in order.
        sha256: Of ids and texts, as that of files with the same content.
    """

    def __init__(self, records: Iterable[tuple[str, str]]) -> None:
        rows = list(records)
        self.ids = {identity: row for row, (identity, _) in enumerate(rows)}
        assert len(self.ids) == len(rows), "an id twice"
        self._texts = [text for _, text in rows]
        digest = hashlib.sha256()
        for identity, text in rows:
            digest.update(f"{identity}\t{text}\n".encode("utf-8", "surrogatepass"))
        self.sha256 = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, place: Any) -> Any:
        return self._texts[place]

    def records(self) -> Iterator[tuple[str, str]]:
        """Ids and texts in order."""
        return zip(self.ids, self._texts)
