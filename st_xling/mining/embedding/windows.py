"""A text in windows of neighbouring sentences, each of which becomes one shard."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from st_xling.mining.stores.writer import StoreWriter
from st_xling.mining.text.mining_text import Row
from st_xling.mining.text.survey import TextSurvey, hash_sentence


@dataclass(frozen=True)
class Window:
    """Sentences that are embedded together: what is in a batch depends on them and on nothing else.

    Attributes:
        number: Of the shard, counted from 0 in this text.
        rows: Lines with their sentences.
    """

    number: int
    rows: Sequence[Row]

    @cached_property
    def sentences(self) -> list[str]:
        return [row.sentence for row in self.rows]

    @cached_property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for sentence in self.sentences:
            hash_sentence(digest, sentence)
        return digest.hexdigest()

    def place(self, row: int) -> str:
        """File and line of a row of this window."""
        return f"{self.rows[row].path}:{self.rows[row].line}"


def windows(rows: Iterable[Row], size: int, survey: TextSurvey) -> Iterator[Window]:
    """Windows of ``size`` rows; the last may be smaller.

    Raises:
        ValueError: After the last one, when the text is not the one that was surveyed.
    """
    stream, digest, number = iter(rows), hashlib.sha256(), 0
    while part := list(islice(stream, size)):
        for row in part:
            hash_sentence(digest, row.sentence)
        yield Window(number, part)
        number += 1
    if digest.hexdigest() != survey.sha256:
        raise ValueError(
            f"{', '.join(survey.files)}: the text was edited while it was embedded; once it stands still, run the same "
            "command again."
        )


def unwritten(parts: Iterable[Window], writer: StoreWriter) -> Iterator[Window]:
    """The windows from the first that the store does not hold whole, from this very text."""
    done = list(writer.shards)
    for window in parts:
        if window.number < len(done):
            if done[window.number].text_sha256 == window.sha256:
                continue
            del done[window.number :]
            writer.keep(window.number)  # the text was edited under an earlier writer, and back
        yield window
