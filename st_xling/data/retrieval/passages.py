"""A corpus of passages, read from files as it is needed, or held in memory where it was generated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from st_xling.data.faults import FaultLog
from st_xling.data.tables import TEXT_KEYS, json_objects, titled_text

_IDS = ("_id", "docid", "id")


class Passages(Sequence[str]):
    """The texts of a corpus in the order of its files, read again whenever they are asked for.

    A line is JSON: an id (``_id``, ``docid`` or ``id``), a text (``text``, or ``contents`` as in Mr.TyDi's index), and
    perhaps a ``title``, which is put before the text with a space between, as BEIR does. Slices that follow one
    another are read in one pass over the files; a slice that goes back starts them again. Only ids are in memory.

    Args:
        paths: JSON lines, plain or packed; one corpus in several files keeps their order.
        skip_bad_lines: Leave faulty lines out, with a warning, instead of raising.
    Raises:
        FileNotFoundError: If a file is missing.
        ParallelTextError: For all faulty lines together: bad JSON, no id, no text, an id twice.
        ValueError: For a corpus without passages.

    Attributes:
        ids: Id → row, in order.
        sha256: Of ids and texts.
    """

    def __init__(self, paths: str | Path | Iterable[str | Path], *, skip_bad_lines: bool = False) -> None:
        self.paths = [Path(paths)] if isinstance(paths, (str, Path)) else [Path(path) for path in paths]
        faults = FaultLog(skip_bad_lines=skip_bad_lines, what="passages")
        self._index(self._parsed(faults), faults)
        faults.finalize()
        if not self.ids:
            raise ValueError(f"expected passages in {', '.join(map(str, self.paths))}: got none.")

    @classmethod
    def in_memory(cls, records: Iterable[tuple[str, str]]) -> Passages:
        """A corpus of ids, no two alike, and texts; equal to one read from files with the same content."""
        passages = cls.__new__(cls)
        rows = [("", number, identity, text) for number, (identity, text) in enumerate(records)]
        passages.paths = []
        passages._index(rows, FaultLog(can_skip=False))
        assert len(passages.ids) == len(rows), "an id twice"
        passages._texts = [text for *_, text in rows]
        return passages

    def _index(self, rows: Iterable[tuple[str | Path, int, str, str]], faults: FaultLog) -> None:
        self.ids: dict[str, int] = {}
        digest = hashlib.sha256()
        for path, number, identity, text in rows:
            if identity in self.ids:
                faults.add(path, number, "id twice", identity)
                continue
            self.ids[identity] = len(self.ids)
            digest.update(f"{identity}\t{text}\n".encode("utf-8", "surrogatepass"))
        self.sha256 = digest.hexdigest()
        self._texts: list[str] | None = None
        # The row that the open reader of the files would give next.
        self._position, self._reader = 0, iter(())  # type: tuple[int, Iterator[tuple[str, str]]]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: Any) -> Any:
        if self._texts is not None:
            return self._texts[place]
        if not isinstance(place, slice):
            row = range(len(self))[place]
            return self[row : row + 1][0]
        start, stop, step = place.indices(len(self))
        if step != 1:
            raise ValueError(f"passages are read in order: got a slice with step {step}; take every row.")
        if start < self._position or self._position == 0:
            self._position, self._reader = 0, self.records()
        texts = []
        while self._position < max(start, stop):
            text = next(self._reader)[1]
            if self._position >= start:
                texts.append(text)
            self._position += 1
        return texts

    def __iter__(self) -> Iterator[str]:
        return (text for _, text in self.records())

    def records(self) -> Iterator[tuple[str, str]]:
        """Ids and texts in order, in one pass over the files."""
        if self._texts is not None:
            yield from zip(self.ids, self._texts)
            return
        row = 0
        for _, _, identity, text in self._parsed(FaultLog(skip_bad_lines=True)):
            if self.ids.get(identity) == row:  # the second of two equal ids has been reported, and is none of ours
                row += 1
                yield identity, text
        if row != len(self):
            raise ValueError(
                f"{', '.join(map(str, self.paths))} changed while they were read: got {row:,} of {len(self):,} "
                "passages; start again."
            )

    def _parsed(self, faults: FaultLog) -> Iterator[tuple[Path, int, str, str]]:
        for path in self.paths:
            for number, row in json_objects(path, faults):
                parsed = parse_passage(row)
                if parsed is None:
                    faults.add(path, number, "no id or text", f"expected {', '.join(_IDS)}; {' or '.join(TEXT_KEYS)}")
                else:
                    yield path, number, *parsed


def parse_passage(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Id and text, title included, of one object; ``None`` where either is missing or blank."""
    identity = next((row[key] for key in _IDS if row.get(key) not in (None, "")), None)
    text = titled_text(row)
    if text is None or isinstance(identity, bool) or not isinstance(identity, (str, int)):
        return None
    return str(identity), text
