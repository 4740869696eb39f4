"""Data specs: ``[NAME=]LOCATION[?OPTION=VALUE&…]``, one grammar for all commands, parsed here; no file is read.

``NAME`` is one language (``de``), or two joined by a hyphen (``de-en``); ``queries`` means ``en``. Codes may have
a script and a region: ``zh_Hant``, ``deu_Latn``, ``en-GB``, ``pt_BR``, ``zh-Hans-CN``. After a hyphen a region is in
capitals, so that ``pt-BR-en`` and ``de-en-GB`` each have one reading. Codes are kept as
given and compared by language (see :mod:`st_xling.utils.languages`). Any other text before ``=`` belongs to
``LOCATION``; begin with ``./`` for a file whose name looks like ``NAME=``.

``LOCATION`` is a file, a folder, two line-aligned files joined by a comma, the common prefix of such files, the id of a
data set on the Hub, one of the test sets ``tatoeba``, ``ntrex`` and ``flores`` there, or the built-in ``phrasebook``,
also ``phrasebook:de,fr`` for several languages with English.

Options are joined by ``&``; ``?size=8000&seed=0``, a seeded sample, is taken by all. A ``?`` that is not followed by
``option=`` belongs to the name of the file.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.data.pairs import Sample
from st_xling.data.phrasebook import LANGUAGES, SPLITS, check_language
from st_xling.utils.languages import check_language_code, check_languages, is_strict_code, meant_pair, split_pair
from st_xling.utils.text import home_path

SPEC_FORMS = "[NAME=]LOCATION[?size=8000&seed=0&…]"
"""The grammar, for help and messages."""

PAIR_FORMS = (
    "PATH, xx-yy=PATH, PATH_SRC,PATH_TGT, HUB_ID?name=CONFIG&split=SPLIT, each also with ?size=8000&seed=0, "
    "or phrasebook:de,fr?size=8000"
)
"""The forms of parallel text, for messages."""

_QUERY = re.compile(r"(.*)\?(\w+=[^&?]*(?:&\w+=[^&?]*)*)", re.DOTALL)


class SpecOption(NamedTuple):
    """Option of a spec.

    Attributes:
        read: Converts the text after ``=``; raises ``ValueError`` for invalid text.
        example: A valid value, for messages.
    """

    read: Callable[[str], Any]
    example: str


def integer_at_least(least: int) -> Callable[[str], int]:
    """Return a reader of integers of ``least`` or more."""

    def read(value: str) -> int:
        # int() would also take "1_000", " 8" and digits of other scripts.
        if not re.fullmatch(r"-?[0-9]+", value) or int(value) < least:
            raise ValueError(value)
        return int(value)

    return read


def _read_split(value: str) -> str:
    if value not in SPLITS:
        raise ValueError(value)
    return value


def _read_columns(value: str) -> tuple[int, ...] | tuple[str, ...]:
    columns = tuple(value.split(","))
    if len(columns) < 2:
        raise ValueError(value)
    if all(map(str.isdecimal, columns)):
        return tuple(map(int, columns))
    return columns


def _read_list(value: str) -> list[str]:
    return value.split(",")


def _read_phrasebook_languages(value: str) -> list[str]:
    return list(map(check_language, value.split(",")))


OPTIONS = {
    "size": SpecOption(integer_at_least(1), "8000, a number above 0"),
    "seed": SpecOption(integer_at_least(0), "0, a whole number from 0 up"),
    "split": SpecOption(str, "train"),
    "name": SpecOption(str, "de-en, the configuration of a data set on the Hub"),
    "columns": SpecOption(_read_columns, "0,2 or de,en"),
    "queries": SpecOption(_read_list, "de,en, the languages of the queries"),
}
"""Options of files, folders and data sets; each reader takes ``size``, ``seed`` and some of the others."""

PHRASEBOOK_OPTIONS = {
    "size": OPTIONS["size"],
    "seed": OPTIONS["seed"],
    "split": SpecOption(_read_split, "train, dev or test"),
    "gold": SpecOption(integer_at_least(1), "100, a number above 0"),
    "queries": SpecOption(_read_phrasebook_languages, "de,en, out of en, de, fr, es, vi and zh"),
}
"""Options of the phrasebook; ``gold`` for mining, ``queries`` for retrieval."""

PAIR_OPTIONS = {name: OPTIONS[name] for name in ("columns", "name", "split")}
"""Options of parallel text, besides ``size`` and ``seed``."""


@dataclass(frozen=True)
class DataSpec:
    """Parsed data spec.

    Attributes:
        text: The spec as it was typed.
        location: A path, a Hub id, the prefix of line-aligned files, or ``"phrasebook"``.
        languages: Codes before ``=``: none, one or two.
        listed: Languages after ``phrasebook:``, each to be paired with English.
        options: Values of the options after ``?``.
    """

    text: str
    location: str
    languages: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_phrasebook(self) -> bool:
        return self.location == "phrasebook"

    @property
    def language_pair(self) -> tuple[str | None, str | None]:
        """The two languages before ``=``; ``None`` for both where none are named."""
        return (self.languages[0], self.languages[1]) if len(self.languages) == 2 else (None, None)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that commas join."""
        return tuple(self.location.split(","))

    @property
    def path_or_pair(self) -> str | tuple[str, str]:
        """The location, or two paths if a comma joins two."""
        paths = self.paths
        return (paths[0], paths[1]) if len(paths) == 2 else self.location

    @property
    def path(self) -> Path:
        return home_path(self.location)

    @property
    def sample(self) -> Sample:
        """Sample of the rows, from ``size`` and ``seed``."""
        return Sample(self.options.get("size"), self.options.get("seed", 0))

    @property
    def reader_options(self) -> dict[str, Any]:
        """The options but for ``size`` and ``seed``."""
        return {name: value for name, value in self.options.items() if name not in ("size", "seed")}


class SpecParts(NamedTuple):
    """The three parts of a spec, options unread."""

    languages: tuple[str, ...]
    location: str
    query: str

    @property
    def is_phrasebook(self) -> bool:
        return re.fullmatch("phrasebook(:.*)?", self.location, re.DOTALL) is not None


def split_spec(text: str) -> SpecParts:
    """Split a spec into its languages, location and options.

    Example:
        >>> split_spec("pt_BR-en=what?.tsv?size=8&seed=1")
        SpecParts(languages=('pt_BR', 'en'), location='what?.tsv', query='size=8&seed=1')
    """
    location, query = split_options(text)
    name, equals, named_location = location.partition("=")
    if name == "queries":
        name = "en"
    languages = (name,) if is_strict_code(name) else split_pair(name)
    if not equals or languages is None:
        return SpecParts((), location, query)
    return SpecParts(languages, named_location, query)


def check_spec_languages(text: str) -> None:
    """Raise ``ValueError`` if a spec names a language before ``=`` that nobody knows, or names one by another word.

    Example:
        >>> check_spec_languages("german-en=pairs.tsv")
        Traceback (most recent call last):
        ...
        ValueError: german-en=pairs.tsv names no known languages: got 'german-en'; did you mean 'de-en'?
    """
    parts = split_spec(text)
    for code in parts.languages:
        check_language_code(code, text)
    name, equals, _ = text.partition("=")
    is_plain = not equals or parts.languages or name == "queries"
    if is_plain or home_path(parts.location).exists():
        return
    meant = meant_pair(name)
    if meant is not None:
        raise ValueError(f"{text} names no known languages: got {name!r}; did you mean {meant!r}?")


def split_options(text: str) -> tuple[str, str]:
    """Split at the ``?`` before the options; a ``?`` without ``option=`` after it belongs to the name.

    Example:
        >>> split_options("what?.tsv?size=8&seed=1")
        ('what?.tsv', 'size=8&seed=1')
    """
    match = _QUERY.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")


def split_prompt_name(text: str) -> tuple[str, str]:
    """Split off the option ``prompt_name``, which names the prompt of a model that texts are read with.

    Returns:
        The spec without it, and the name; ``""`` where there is none.

    Raises:
        ValueError: If it is repeated or empty.

    Example:
        >>> split_prompt_name("de=queries.txt?size=8&prompt_name=query")
        ('de=queries.txt?size=8', 'query')
    """
    location, query = split_options(text)
    key = "prompt_name="
    options = query.split("&") if query else []
    others = [option for option in options if not option.startswith(key)]
    names = [option.removeprefix(key) for option in options if option.startswith(key)]
    if len(names) > 1 or "" in names:
        raise ValueError(f"expected prompt_name=query, once and with a name, got {text!r}")
    spec = f"{location}?{'&'.join(others)}" if others else location
    return spec, names[0] if names else ""


def is_phrasebook(text: str) -> bool:
    """Return whether a spec without languages before ``=`` names the phrasebook."""
    return text.startswith("phrasebook") and split_spec(text).is_phrasebook


def parse_spec(
    text: str,
    options: Mapping[str, SpecOption],
    *,
    phrasebook: Iterable[str] = ("size", "split", "seed"),
    languages: int | None = None,
    forms: str = SPEC_FORMS,
) -> DataSpec:
    """Parse a data spec; no file is read.

    Args:
        text: ``[NAME=]LOCATION[?OPTION=VALUE&…]``.
        options: Options of the reader, besides ``size`` and ``seed``: some of :data:`OPTIONS`.
        phrasebook: Names of the options that the phrasebook takes here, out of :data:`PHRASEBOOK_OPTIONS`.
        languages: How many must be named before ``=``; ``None``: none, one or two.
        forms: What the reader takes, for messages.

    Raises:
        ValueError: If the spec has no location, other languages, or options that are unknown, repeated or invalid.

    Example:
        >>> parse_spec("de=texts.txt.gz?size=10", {}).sample
        Sample(size=10, seed=0)
    """
    parts = split_spec(text)
    if not parts.location.strip():
        raise ValueError(f"expected {forms}, got {text!r}; name what to read")
    check_spec_languages(text)
    if languages is not None and len(parts.languages) != languages:
        raise ValueError(
            f"expected {forms}; got {text!r}, which names {' and '.join(parts.languages) or 'no language'}"
        )
    if not parts.is_phrasebook:
        sample_options = {name: OPTIONS[name] for name in ("size", "seed")}
        values = read_options(parts.query, {**options, **sample_options}, spec=text)
        if "seed" in values and "size" not in values:
            raise ValueError(f"expected size=N with seed={values['seed']}, which draws so many rows: got {text!r}")
        return DataSpec(text, parts.location, parts.languages, options=values)
    _, colon, names = parts.location.partition(":")
    listed = names.split(",") if colon else []
    if not all(listed) or (listed and parts.languages):
        raise ValueError(f"expected phrasebook:de,fr or de-en=phrasebook, one language a spec, got {text!r}")
    phrasebook_options = {name: PHRASEBOOK_OPTIONS[name] for name in phrasebook}
    values = read_options(parts.query, phrasebook_options, spec=text)
    return DataSpec(text, "phrasebook", parts.languages, tuple(map(check_language, listed)), values)


def parse_data_spec(spec: str) -> DataSpec:
    """Parse the spec of parallel text.

    Args:
        spec: As :mod:`st_xling.data.spec` describes. ``NAME`` is two languages. A single language is taken for the
            beginning of a path.

    Raises:
        ValueError: If the spec is malformed, names one language twice (``en-en=…``) or more than two paths, or names
            one language for a file that exists.

    Example:
        >>> parse_data_spec("de-en=corpus.de,corpus.en").paths
        ('corpus.de', 'corpus.en')
    """
    parsed = parse_spec(spec, PAIR_OPTIONS, forms=PAIR_FORMS)
    if len(parsed.languages) == 1:
        parsed = _take_language_for_path(parsed)
    if parsed.languages:
        check_languages([(parsed.languages[0], parsed.languages[1])], spec)
    if len(parsed.paths) > 2 or not all(path.strip() for path in parsed.paths):
        raise ValueError(f"expected one path, or two joined by a comma, got {spec!r}; repeat --data for each corpus")
    return parsed


def _take_language_for_path(parsed: DataSpec) -> DataSpec:
    """Return a spec of which what looks like one language before ``=`` begins a path, such as ``de=corpus.tsv``."""
    spec = parsed.text
    location = f"{spec.partition('=')[0]}={parsed.location}"
    names_file = Path(parsed.location).exists() and not Path(location).exists()
    if parsed.is_phrasebook or names_file:
        (language,) = parsed.languages
        raise ValueError(f"expected two languages before =, got {spec!r}; write {language}-en={parsed.location}")
    return DataSpec(spec, location, options=parsed.options)


def read_options(query: str, allowed: Mapping[str, SpecOption], *, spec: str) -> dict[str, Any]:
    """Read the options after ``?``.

    Args:
        query: The text after ``?``; may be empty.
        allowed: The options that are taken.
        spec: The whole spec, for messages.

    Raises:
        ValueError: If an option is unknown, repeated, empty or invalid.

    Example:
        >>> read_options("size=8", OPTIONS, spec="pairs.tsv?size=8")
        {'size': 8}
    """
    options: dict[str, Any] = {}
    for item in filter(None, query.split("&")):
        key, _, value = item.partition("=")
        if key not in allowed or key in options or not value:
            raise ValueError(f"expected the options {', '.join(allowed)}, once each, got {item!r} in {spec!r}")
        try:
            options[key] = allowed[key].read(value)
        except ValueError as error:
            raise ValueError(f"expected {key}={allowed[key].example}, got {item!r} in {spec!r}") from error
    return options


def unique_name(name: str, taken: Container[str]) -> str:
    """Return ``name``, or the first of ``name-2``, ``name-3``, … that is not taken.

    Example:
        >>> unique_name("de-en", {"de-en", "de-en-2"})
        'de-en-3'
    """
    if name not in taken:
        return name
    numbered_names = (f"{name}-{number}" for number in count(2))
    return next(numbered for numbered in numbered_names if numbered not in taken)


def paired_languages(spec: DataSpec) -> tuple[str, ...]:
    """Return the languages of a phrasebook that are each paired with English: those listed, or all."""
    return spec.listed or tuple(code for code in LANGUAGES if code != "en")


def phrase_sample(spec: DataSpec, *, split: str, passages: bool = False, seed: int = 0) -> dict[str, Any]:
    """Return ``split``, ``size`` and ``seed`` of a spec of the phrasebook.

    Args:
        spec: The spec.
        split: Split of a spec that names none.
        passages: Use the size of sets of passages where the spec names none, not that of sentences.
        seed: Seed of a spec that names none.
    """
    split = spec.options.get("split", split)
    if split == "train":
        default_size = 2000 if passages else 4000
    else:
        default_size = 300 if passages else 1000
    return {
        "split": split,
        "size": spec.options.get("size", default_size),
        "seed": spec.options.get("seed", seed),
    }


def data_name(specs: Iterable[str], *, split: str) -> str:
    """Return the name of evaluated data for signatures and cards.

    A file or folder has its name without the folders above it, a data set of the Hub its id. Of more than three, the
    first is named and the others are counted.

    Args:
        specs: Data specs, at least one.
        split: Split of the phrasebook where a spec names none.

    Example:
        >>> data_name(["de-en=/data/news.tsv?size=8", "fr-en=user/news"], split="test")
        'news.tsv+user/news'
        >>> data_name(["phrasebook:de,fr"], split="test")
        'phrasebook-test'
        >>> data_name([f"xx-en={number}.tsv" for number in range(9)], split="test")
        '0.tsv+8'
    """
    names: dict[str, None] = {}
    for spec in specs:
        parts = split_spec(spec)
        if parts.is_phrasebook:
            options = parse_spec(spec, {}, phrasebook=PHRASEBOOK_OPTIONS).options
            names[f"phrasebook-{options.get('split', split)}"] = None
        else:
            names |= dict.fromkeys(map(_location_name, parts.location.split(",")))
    if len(names) > 3:
        return f"{next(iter(names))}+{len(names) - 1}"
    return "+".join(names)


def _location_name(location: str) -> str:
    """Return the name of a file or folder without the folders above it; an id of the Hub as it is."""
    path = home_path(location)
    looks_like_id = location.count("/") == 1 and not location.startswith((".", "/", "~"))
    is_id = looks_like_id and not path.exists()
    if is_id:
        # Moses text is named by what its two files have in common.
        is_id = not any(path.parent.glob(f"{glob.escape(path.name)}.*"))
    name = location if is_id else path.resolve().name
    return name.replace("|", "_")  # which separates the parts of a signature
