"""Text of several languages, row by row, from files that may be larger than memory.

======================================  ===========================================================================
``de=news.de.txt.gz``                   a text a line, plain or packed; blank lines are skipped
``de=passages.jsonl``                   JSON lines with ``text``; plain or packed
``de=phrasebook?size=2000``             the embedded corpus, one language
``de-en=pairs.tsv``, ``phrasebook:de``  parallel text, as :func:`~st_xling.data.read.parse_data_spec` takes it
======================================  ===========================================================================

Each takes ``?size=2000&seed=0``, a seeded sample of its rows, in their order; a file is read once to count them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_xling.data.check import FaultLog, is_unicode, numbered_lines
from st_xling.data.formats import json_objects, titled_text
from st_xling.data.pairs import stream_rows
from st_xling.data.phrasebook_spec import read_phrase_sentences
from st_xling.data.read import load_data_specs
from st_xling.data.spec import parse_spec, split_spec
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.text import describe_missing, estimate_lines, file_ending, is_blank, unpacked_name

Row = tuple[tuple[str, str], ...]
"""Language and text, once or, in parallel text, twice."""


@dataclass(frozen=True)
class LanguageTexts:
    """One source of text; reading starts anew with every loop over it.

    Attributes:
        name: Of the language or languages, for tables.
        languages: Those that are known beforehand; empty where rows alone say it.
        rows: How many rows there are, where that is known or can be estimated.
        source: What is read: a data set with the columns of parallel text, the path of a file, or texts.
        skip_bad_lines: Leave faulty lines out, with a warning.
        places: Of a file, the texts to take, counted from 0; ``None`` for all.
    """

    name: str
    languages: tuple[str, ...]
    rows: int | None
    source: Any
    skip_bad_lines: bool = False
    places: frozenset[int] | None = None

    def __iter__(self) -> Iterator[Row]:
        if not isinstance(self.source, (Path, list)):
            for row in self.source:
                yield tuple((row[f"{side}_language"], row[side]) for side in ("source", "target"))
            return
        texts = self.source if isinstance(self.source, list) else read_texts(self.source, self.skip_bad_lines)
        for number, text in enumerate(texts):
            if self.places is None or number in self.places:
                yield ((self.languages[0], text),)


def language_texts(specs: Iterable[str], *, skip_bad_lines: bool = False) -> list[LanguageTexts]:
    """Return the sources that specs name; only what tells their languages and size is read.

    Args:
        specs: See the top of this file.
        skip_bad_lines: Skip faulty lines, with a warning, instead of raising.

    Raises:
        ValueError: If a spec is malformed, or its languages are not known.
        FileNotFoundError: If there is no such file.
    """
    found = []
    for spec in specs:
        if len(split_spec(spec).languages) == 1:
            found.append(one_language(spec, skip_bad_lines=skip_bad_lines, no_tables=True))
        else:
            found += _parallel(spec, skip_bad_lines)
    return found


def one_language(spec: str, *, skip_bad_lines: bool = False, no_tables: bool = False) -> LanguageTexts:
    """Return the texts of ``LANGUAGE=LOCATION``: a file that :func:`read_texts` reads, or the phrasebook.

    The phrasebook's seed is 1 unless the spec names one: other meanings than parallel text. Nothing is read but to
    count the rows of a sample. With ``no_tables`` a file of columns is an error.
    """
    parsed = parse_spec(spec, {}, languages=1, forms="xx=PATH, xx the language of the text")
    (language,) = parsed.languages
    if parsed.is_phrasebook:
        book = read_phrase_sentences(parsed, language, split="train", seed=1)
        return LanguageTexts(language, (language,), len(book), book)
    path = Path(parsed.location).expanduser()
    if not path.is_file():
        raise FileNotFoundError(describe_missing(path))
    if no_tables and file_ending(unpacked_name(path)) in (".tsv", ".csv", ".parquet"):
        raise ValueError(
            f"expected a text a line after {language}=, got {path}: it has columns; for parallel text name both "
            f"languages, as in {language}-en={path}"
        )
    if parsed.sample.size is None:
        return LanguageTexts(language, (language,), estimate_lines(path), path, skip_bad_lines)
    places = frozenset(parsed.sample.places(sum(1 for _ in read_texts(path, skip_bad_lines)), spec))
    return LanguageTexts(language, (language,), len(places), path, skip_bad_lines, places)


def _parallel(spec: str, skip_bad_lines: bool) -> list[LanguageTexts]:
    found = []
    for name, rows in load_data_specs([spec], skip_bad_lines=skip_bad_lines, stream=True).items():
        size = len(rows) if hasattr(rows, "__len__") else stream_rows(rows)
        first = next(iter(rows))
        codes = (first["source_language"], first["target_language"])
        if UNKNOWN in codes:
            raise ValueError(f"the languages of {spec!r} are not known; put them before it, as in de-en={spec}")
        # Only a name that was made of the languages says that they are those of every row.
        known = codes if name.startswith("-".join(codes)) else ()
        found.append(LanguageTexts(name, known, size, rows))
    return found


def read_texts(path: Path, skip_bad_lines: bool = False) -> Iterator[str]:
    """The texts of a file of one language: its lines that are not blank, or ``text`` (``contents``) of its JSON lines
    behind their ``title``, if they have one."""
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="text")
    if file_ending(unpacked_name(path)) != ".jsonl":
        yield from (line for _, line in numbered_lines(path, faults) if not is_blank(line))
    else:
        for number, row in json_objects(path, faults):
            text = titled_text(row)
            if text is None:
                faults.add(path, number, "no text", "expected a key text with words in it")
            elif not is_unicode(text):
                faults.add(path, number, "bad JSON", "text holds half a surrogate pair")
            else:
                yield text
    faults.finalize()
