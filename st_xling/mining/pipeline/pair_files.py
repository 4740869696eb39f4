"""Write files of scored pairs: tab-separated, JSON lines, or TMX for translators' tools."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

from st_xling._version import __version__
from st_xling.mining.text import tsv_line
from st_xling.utils.options import PairFormat, check_choice
from st_xling.utils.resumable import Output
from st_xling.utils.text import SCORED_COLUMNS, file_ending, unpacked_name

# What XML 1.0 cannot hold, even as a reference.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Languages = tuple[str | None, str | None]


def resolve_format(format: PairFormat | None, out: Output, languages: Languages) -> PairFormat:
    """Return the format, by the ending of ``out`` if ``None``; ``ValueError`` for TMX without languages."""
    if format is None:
        ending = file_ending(unpacked_name(out)) if isinstance(out, (str, Path)) else ""
        format = "jsonl" if ending in (".jsonl", ".ndjson") else "tmx" if ending == ".tmx" else "tsv"
    check_choice("format", format, PairFormat)
    if format == "tmx" and None in languages:
        raise ValueError(
            "TMX names the languages of its texts: set source_language and target_language (--source-language, "
            "--target-language)."
        )
    return format


class PairWriter:
    """Write scored pairs to a binary stream; use it as a context manager.

    Args:
        stream: The stream; it stays open.
        format: ``"tsv"``, ``"jsonl"`` or ``"tmx"``; see :func:`~st_xling.mining.mine_texts`.
        languages: Languages of source and target, for TMX.
        margins: Whether each pair has a margin besides its score.
    """

    def __init__(
        self, stream: IO[bytes], format: PairFormat, *, languages: Languages = (None, None), margins: bool = False
    ) -> None:
        self._stream, self._format, self._languages, self._margins = stream, format, languages, margins

    def __enter__(self) -> PairWriter:
        if self._format == "tsv":
            self._line("\t".join([*SCORED_COLUMNS, *(["margin"] if self._margins else [])]))
        elif self._format == "tmx":
            self._line('<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">')
            self._line(
                f'<header creationtool="st-xling" creationtoolversion="{__version__}" segtype="sentence" '
                f'o-tmf="st-xling" adminlang="en" srclang={quoteattr(str(self._languages[0]))} datatype="plaintext"/>'
            )
            self._line("<body>")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._format == "tmx" and kind is None:
            self._line("</body>\n</tmx>")

    def write(
        self,
        score: float,
        ids: tuple[Sequence[str], Sequence[str]],
        texts: tuple[str, str],
        margin: float | None = None,
    ) -> None:
        """Write a pair.

        Args:
            score: Score.
            ids: Ids of both sentences; several, if a sentence occurs several times or the text is of several.
            texts: Source and target.
            margin: Margin score, if the score is a cross-encoder's.
        """
        if self._format == "tsv":
            cells = [repr(score), *map(",".join, ids), *texts]
            self._line(tsv_line(cells if margin is None else [*cells, repr(margin)]))
        elif self._format == "jsonl":
            record: dict[str, Any] = {"score": score if math.isfinite(score) else None}
            record |= {"source_ids": ids[0], "target_ids": ids[1], "source": texts[0], "target": texts[1]}
            self._line(json.dumps(record if margin is None else {**record, "margin": margin}, ensure_ascii=False))
        else:
            sides = "".join(
                f"<tuv xml:lang={quoteattr(str(language))}><seg>{escape(_NOT_XML.sub('', text))}</seg></tuv>"
                for language, text in zip(self._languages, texts)
            )
            self._line(f'<tu><prop type="score">{score!r}</prop>{sides}</tu>')

    def _line(self, line: str) -> None:
        self._stream.write(line.encode("utf-8") + b"\n")
