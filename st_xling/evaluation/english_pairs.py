"""Aligned text with English on one side, from whatever the command line's ``--data`` names, for Tatoeba and xsim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.phrasebook_spec import phrasebook_name
from st_xling.data.spec_options import SAMPLE_OPTIONS, Sample, read_options, sample_rows, split_options
from st_xling.evaluation.languages import resolve_languages
from st_xling.utils.languages import UNKNOWN, canonical_language

if TYPE_CHECKING:
    from datasets import Dataset

ENGLISH = ("en", "eng")


@dataclass(frozen=True)
class EnglishPairs:
    """What the specs gave.

    Attributes:
        pairs: Three-letter code → texts in that language, and their English.
        name: Of the data, for a signature: ``tatoeba``, ``phrasebook-test``, or the files' names.
    """

    pairs: dict[str, tuple[list[str], list[str]]]
    name: str


def load_english_pairs(
    specs: Iterable[str | Path], languages: str | Iterable[str] | None = None, *, skip_bad_lines: bool = False
) -> EnglishPairs:
    """Reads test text.

    Args:
        specs: Each a folder of ``tatoeba.xxx-eng.xxx`` files (``?size=500&seed=0`` behind it: a seeded sample of each
            language's pairs), or what :func:`~st_xling.data.load_data_specs` takes,
            such as ``de-en=test.tsv`` or ``phrasebook:de,fr``, of which the test split is read where it names none.
        languages: Group, code or several, as :func:`~st_xling.evaluation.resolve_languages`; all by default.
        skip_bad_lines: Drop faulty lines of pair files, with a warning; never those of a Tatoeba set.
    Raises:
        ValueError: Text of two languages of which neither is English, or without known languages; a language that
            comes twice or is asked for and not there.
        FileNotFoundError, ValueError: As ``read_tatoeba`` and ``load_data_specs``.
    """
    from st_xling.data import load_data_specs

    given = [str(spec) for spec in specs]
    wanted = None if languages is None else resolve_languages(languages)
    if len(given) == 1 and _is_tatoeba(given[0]):
        return EnglishPairs(_read_tatoeba(given[0], wanted), "tatoeba")
    pairs: dict[str, tuple[list[str], list[str]]] = {}
    for spec in given:
        if _is_tatoeba(spec):
            found = _read_tatoeba(spec, None)
        else:
            read = load_data_specs([spec], split="test", skip_bad_lines=skip_bad_lines)
            found = dict(_with_english(name, rows) for name, rows in read.items())
        if twice := [code for code in found if code in pairs]:
            raise ValueError(f"expected one test set a language: got another for {', '.join(twice)} in {spec!r}.")
        pairs |= found
    if absent := [code for code in wanted or () if code not in pairs]:
        raise ValueError(f"expected languages out of {', '.join(pairs)}: got {', '.join(absent)}; leave these out.")
    return EnglishPairs({code: pairs[code] for code in wanted or pairs}, _name(given))


def _is_tatoeba(spec: str) -> bool:
    path = Path(split_options(spec)[0]).expanduser()
    return path.is_dir() and any(path.glob("tatoeba.*-eng.*"))


def _read_tatoeba(spec: str, languages: Sequence[str] | None) -> dict[str, tuple[list[str], list[str]]]:
    """A folder's test sets; ``?size=500&seed=0`` behind it: a seeded sample of each language's pairs."""
    from st_xling.data import read_tatoeba

    folder, query = split_options(spec)
    sample = Sample.pop(read_options(query, SAMPLE_OPTIONS, spec=spec), spec)
    read = read_tatoeba(Path(folder).expanduser(), languages)
    return {
        code: _texts(sample_rows(rows, sample.size, seed=sample.seed, where=f"{folder} ({code})"))
        for code, rows in read.items()
    }


def _texts(rows: Dataset) -> tuple[list[str], list[str]]:
    return list(rows["source"]), list(rows["target"])


def _with_english(name: str, rows: Dataset) -> tuple[str, tuple[list[str], list[str]]]:
    """The other language's code, its texts and the English ones."""
    sides = [rows.unique(f"{side}_language") for side in ("source", "target")]
    shown = "-".join("/".join(codes) for codes in sides)
    codes = [canonical_language(codes[0]) for codes in sides if len(codes) == 1]
    if len(codes) != 2 or UNKNOWN in codes or sum(code in ENGLISH for code in codes) != 1:
        raise ValueError(
            f"expected one language with English, named as in de-en=PATH: {name} is {shown}; other pairs are judged by "
            "st-xling evaluate precision."
        )
    first, second = _texts(rows)
    return (codes[1], (second, first)) if codes[0] in ENGLISH else (codes[0], (first, second))


def _name(specs: Sequence[str]) -> str:
    """Of the data; the signature's hash tells the rest."""
    if all(map(_is_tatoeba, specs)):
        return "tatoeba"
    locations = [spec.partition("=")[2] or spec for spec in specs]
    return phrasebook_name(specs, split="test") or "+".join(Path(each.partition("?")[0]).name for each in locations)
