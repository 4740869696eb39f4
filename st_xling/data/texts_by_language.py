"""Text of several languages, row by row, from files that may be larger than memory.

======================================  ===========================================================================
``de=news.de.txt.gz``                   a text a line, plain or packed; blank lines are skipped
``de=passages.jsonl``                   JSON lines with ``text``; plain or packed
``de=phrasebook?size=2000``             the built-in corpus, one language
``de-en=pairs.tsv``, ``phrasebook:de``  parallel text, as :func:`~st_xling.data.read.parse_data_spec` takes it
======================================  ===========================================================================

Each takes ``?size=2000&seed=0``, a seeded sample of its rows, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.check import FaultLog, numbered_lines
from st_xling.data.columns import Layout, Row
from st_xling.data.formats import json_objects, titled_text
from st_xling.data.pairs import pair_dataset
from st_xling.data.phrasebook import phrase_sentences
from st_xling.data.read import Part, Source, load_data_specs
from st_xling.data.spec import parse_spec, phrase_sample, split_spec, unique_name
from st_xling.utils.languages import UNKNOWN, canonical_code
from st_xling.utils.text import describe_missing, file_ending, is_blank, unpacked_name

if TYPE_CHECKING:
    from datasets import Dataset

Texts = tuple[tuple[str, str], ...]
"""Language and text, once or, in parallel text, twice."""


def language_texts(spec: str, *, skip_bad_lines: bool = False) -> Iterator[Texts]:
    """Yield the texts of each row that a spec names, with their languages: one, or the two of a pair.

    Args:
        spec: See the top of this file.
        skip_bad_lines: Skip faulty lines, with a warning, instead of raising.
    Raises:
        ValueError: If the spec is malformed, or its languages are not known.
        FileNotFoundError: If there is no such file.
    """
    if len(split_spec(spec).languages) == 1:
        for row in load_texts(spec, skip_bad_lines=skip_bad_lines, stream=True):
            yield ((row["source_language"], row["source"]),)
        return
    for pairs in load_data_specs([spec], skip_bad_lines=skip_bad_lines, stream=True).values():
        for row in pairs:
            if UNKNOWN in (row["source_language"], row["target_language"]):
                raise ValueError(f"the languages of {spec!r} are not known; put them before it, as in de-en={spec}")
            yield tuple((row[f"{side}_language"], row[side]) for side in ("source", "target"))


def check_language_texts(specs: Sequence[str], languages: Sequence[str], *, skip_bad_lines: bool = False) -> None:
    """Raise ``ValueError`` for specs without a known language, and languages that no spec names, from their first rows.

    What is wrong with later rows is found when they are read.

    Args:
        specs: As :func:`language_texts` takes them.
        languages: Languages that must have text.
        skip_bad_lines: Skip faulty lines.
    """
    if not any(code.strip() for code in languages):
        raise ValueError("languages are needed: got none; name those that the model shall keep, such as de,en.")
    named: list[str] = []
    is_known = True
    for spec in specs:
        parts = split_spec(spec)
        first = next(language_texts(spec, skip_bad_lines=skip_bad_lines), ())
        named += [language for language, _ in first]
        # Without languages in its name a file may have others in later rows.
        is_known = is_known and bool(parts.languages)
    codes = {canonical_code(language) for language in named}
    missing = [code for code in dict.fromkeys(languages) if code.strip() and canonical_code(code) not in codes]
    if is_known and missing:
        raise ValueError(
            f"every language must have text: got none of {', '.join(missing)} (there is text of: "
            f"{', '.join(sorted(set(named))) or 'none'}); add text of it, or remove it from --languages."
        )


def read_all_others(specs: Iterable[str], *, skip_bad_lines: bool = False) -> dict[str, Dataset]:
    """Load each of several ``XX=PATH``, under a name of its own; see :func:`load_texts`."""
    datasets: dict[str, Dataset] = {}
    for spec in specs:
        texts, parts = load_texts(spec, skip_bad_lines=skip_bad_lines), split_spec(spec)
        datasets[unique_name(f"{parts.languages[0]}:{Path(parts.location).name}", datasets)] = texts
    return datasets


def load_texts(spec: str, *, skip_bad_lines: bool = False, stream: bool = False) -> Any:
    """Load the texts of ``LANGUAGE=LOCATION``, with the columns of parallel text, whose source and target are alike.

    Args:
        spec: JSON lines (``.jsonl``, perhaps packed) with ``text``, or any other file with a text a line; blank lines
            are skipped; either with ``?size=…&seed=…`` for a sample of its texts. Or the phrasebook, with
            ``?size=…&split=…&seed=…``, whose seed is 1 where it names none: other meanings than parallel text.
        skip_bad_lines: Skip faulty lines, with a warning, instead of raising.
        stream: Return a stream of a file.
    Raises:
        FileNotFoundError, ParallelTextError: If there is no such file, or it has faulty lines or no text.
        ValueError: For an unknown language or option.
    """
    parsed = parse_spec(spec, {}, languages=1, forms="xx=PATH, xx the language of the text")
    (language,) = parsed.languages
    if parsed.is_phrasebook:
        book = phrase_sentences(language, **phrase_sample(parsed, split="train", seed=1))
        return pair_dataset((text, text, language, language) for text in book)
    if not parsed.path.is_file():
        raise FileNotFoundError(describe_missing(parsed.path))
    if file_ending(unpacked_name(parsed.path)) in (".tsv", ".csv", ".parquet", ".tmx"):
        raise ValueError(f"expected a text a line, got {parsed.path}; name both languages, as in {language}-en=PATH")
    where = str(parsed.path)
    part = Part(partial(text_rows, where), Layout((0, 0), (language, language), width=1), (where, where))
    source = Source((part,), where, (parsed.path,))
    return (source.stream if stream else source.read)(skip_bad_lines, parsed.sample)


def text_rows(path: str | Path, faults: FaultLog) -> Iterator[Row]:
    """Read the texts of a file of one language: its lines that are not blank, or ``text`` (``contents``) of its JSON
    objects behind their ``title``, if they have one."""
    if file_ending(unpacked_name(path)) not in (".jsonl", ".ndjson", ".json"):
        yield from ((number, [line]) for number, line in numbered_lines(path, faults) if not is_blank(line))
        return
    for number, row in json_objects(path, faults):
        if (text := titled_text(row)) is None:
            faults.add(path, number, "no text", "expected a key text with words in it")
        else:
            yield number, [text]
