"""Text of several languages, row by row, from files that may be larger than memory.

======================================  ===========================================================================
``de=news.de.txt.gz``                   a text a line, plain or packed; blank lines are skipped
``de=passages.jsonl``                   JSON lines with ``text``; plain or packed
``de=book.epub``                        a document (EPUB, DOCX, ODT, HTML) or subtitles (SRT, VTT): its paragraphs
``de=phrasebook?size=2000``             the built-in corpus, one language
``de-en=pairs.tsv``, ``phrasebook:de``  parallel text, as :func:`~st_xling.data.spec.parse_data_spec` takes it
======================================  ===========================================================================

Each takes ``?size=2000&seed=0``, a seeded sample of its rows, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.check import FaultLog, numbered_lines
from st_xling.data.columns import Layout, NumberedRow
from st_xling.data.documents import is_document, read_document
from st_xling.data.formats import json_objects, titled_text
from st_xling.data.pair_source import PairReader, PairSource
from st_xling.data.pairs import pair_dataset
from st_xling.data.phrasebook import phrase_sentences
from st_xling.data.read import load_data_specs
from st_xling.data.spec import parse_spec, phrase_sample, split_spec, unique_name
from st_xling.utils.file_endings import JSON_ENDINGS, PARALLEL_ENDINGS
from st_xling.utils.languages import UNKNOWN, canonical_code
from st_xling.utils.text import describe_missing, is_blank, unpacked_ending

if TYPE_CHECKING:
    from datasets import Dataset

LanguageTexts = tuple[tuple[str, str], ...]
"""Language and text, once or, in parallel text, twice."""


def language_texts(spec: str, *, skip_bad_lines: bool = False) -> Iterator[LanguageTexts]:
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
            yield (row["source_language"], row["source"]), (row["target_language"], row["target"])


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
    languages_of_texts: list[str] = []
    are_named = True
    for spec in specs:
        first_row = next(language_texts(spec, skip_bad_lines=skip_bad_lines), ())
        languages_of_texts += [language for language, _ in first_row]
        # A file whose spec names no languages may have others in later rows.
        are_named = are_named and bool(split_spec(spec).languages)
    codes = set(map(canonical_code, languages_of_texts))
    missing = [code for code in dict.fromkeys(languages) if code.strip() and canonical_code(code) not in codes]
    if are_named and missing:
        raise ValueError(
            f"every language must have text: got none of {', '.join(missing)} (there is text of: "
            f"{', '.join(sorted(set(languages_of_texts))) or 'none'}); add text of it, or remove it from --languages."
        )


def read_all_others(specs: Iterable[str], *, skip_bad_lines: bool = False) -> dict[str, Dataset]:
    """Load the texts of several ``XX=PATH``, each under another name; see :func:`load_texts`."""
    datasets: dict[str, Dataset] = {}
    for spec in specs:
        texts = load_texts(spec, skip_bad_lines=skip_bad_lines)
        parts = split_spec(spec)
        name = f"{parts.languages[0]}:{Path(parts.location).name}"
        datasets[unique_name(name, datasets)] = texts
    return datasets


def load_texts(spec: str, *, skip_bad_lines: bool = False, stream: bool = False) -> Any:
    """Load the texts of ``LANGUAGE=LOCATION``, with the columns of parallel text, whose source and target are alike.

    Args:
        spec: JSON lines (``.jsonl``, perhaps packed) with ``text``, a document, or any other file with a text a line;
            blank lines are skipped; each with ``?size=…&seed=…`` for a sample of its texts. Or the phrasebook, with
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
        sentences = phrase_sentences(language, **phrase_sample(parsed, split="train", seed=1))
        return pair_dataset((text, text, language, language) for text in sentences)
    if not parsed.path.is_file():
        raise FileNotFoundError(describe_missing(parsed.path))
    ending = unpacked_ending(parsed.path)
    if ending in PARALLEL_ENDINGS and ending not in JSON_ENDINGS:
        raise ValueError(f"expected a text a line, got {parsed.path}; name both languages, as in {language}-en=PATH")
    where = str(parsed.path)
    layout = Layout((0, 0), (language, language), width=1)
    reader = PairReader(partial(text_rows, where), layout, (where, where))
    source = PairSource((reader,), where, (parsed.path,))
    return source.load(skip_bad_lines, parsed.sample, stream=stream)


def text_rows(path: str | Path, faults: FaultLog) -> Iterator[NumberedRow]:
    """Read the texts of a file of one language.

    These are its lines that are not blank, ``text`` (``contents``) of its JSON objects behind their ``title``, if they
    have one, or the paragraphs of a document.
    """
    if is_document(path):
        yield from ((number, [text]) for number, text in enumerate(read_document(path).texts, 1))
        return
    if unpacked_ending(path) not in JSON_ENDINGS:
        for number, line in numbered_lines(path, faults):
            if not is_blank(line):
                yield number, [line]
        return
    for number, row in json_objects(path, faults):
        text = titled_text(row)
        if text is None:
            faults.add(path, number, "no text", "expected a key text with words in it")
        else:
            yield number, [text]
