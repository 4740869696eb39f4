"""Parallel text that data specs name, of files, of the Hub and of the phrasebook."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.orient import check_languages, language_pairs
from st_xling.data.pairs import COLUMNS, head, require_rows
from st_xling.data.parallel import read_parallel, stream_parallel
from st_xling.data.phrasebook_spec import paired_languages, read_phrase_pairs
from st_xling.data.sample import sample_rows
from st_xling.data.spec import OPTIONS, DataSpec, parse_spec, unique_name
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.text import file_ending

if TYPE_CHECKING:
    from datasets import Dataset

FORMS = (
    "PATH, xx-yy=PATH, PATH_SRC,PATH_TGT, HUB_ID?name=CONFIG&split=SPLIT, each also with ?size=8000&seed=0, "
    "or phrasebook:de,fr?size=8000"
)
"""The forms of parallel text, for messages."""

PAIR_OPTIONS = {name: OPTIONS[name] for name in ("columns", "name", "split")}


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
    parsed = parse_spec(spec, PAIR_OPTIONS, forms=FORMS)
    if len(parsed.languages) == 1:
        name, whole = parsed.languages[0], f"{spec.partition('=')[0]}={parsed.location}"
        if parsed.is_phrasebook or (Path(parsed.location).exists() and not Path(whole).exists()):
            raise ValueError(
                f"expected the two languages of parallel text before =, got {name} in {spec!r}; name both, as in "
                f"{name}-en={parsed.location}"
            )
        parsed = DataSpec(spec, whole, options=parsed.options)
    if parsed.languages:
        check_languages([(parsed.languages[0], parsed.languages[1])], spec)
    if len(parsed.paths) > 2 or not all(path.strip() for path in parsed.paths):
        raise ValueError(f"expected one path, or two joined by a comma, got {spec!r}; repeat --data for each corpus")
    return parsed


def load_data_specs(
    specs: Iterable[str],
    *,
    split: str = "train",
    skip_bad_lines: bool = False,
    stream: bool = False,
    identify: bool = False,
) -> dict[str, Any]:
    """Read all parallel text that the specs name.

    Args:
        specs: As ``parse_data_spec`` takes them; all are parsed before the first is read.
        split: Split of a phrasebook whose spec names none; files have none.
        skip_bad_lines: Skip faulty lines, with a warning, instead of raising.
        stream: Read the first rows only, and the others when they are asked for, see ``stream_parallel``.
        identify: Warn if a side is in another language than named: :func:`~st_xling.data.sides.check_sides`.
    Returns:
        The datasets, or streams, in order, by name: the languages (``de-en``), else the name of the file; ``-2``,
        ``-3`` is added where a name repeats. A phrasebook gives one dataset for each language.
    Raises:
        ValueError: If a spec is malformed or there is none; and as ``read_parallel``.
    """
    parsed = [parse_data_spec(spec) for spec in specs]
    if not parsed:
        raise ValueError(f"expected at least one data spec, got none; pass {FORMS}")
    loaded: dict[str, Any] = {}
    for spec in parsed:
        options: dict[str, Any] = {"skip_bad_lines": skip_bad_lines, **spec.reader_options}
        options |= dict(zip(("source_language", "target_language"), spec.languages))
        found: list[Any]
        if spec.is_phrasebook:
            found = _read_phrasebook(spec, split)
        elif stream:
            found = [stream_parallel(spec.path_or_pair, sample=spec.sample, **options)]
        else:
            size, seed = spec.sample
            found = [sample_rows(read_parallel(spec.path_or_pair, **options), size, seed=seed, where=spec.text)]
        for dataset in found:
            loaded[name := unique_name(_name(dataset, spec), loaded)] = dataset
            if identify and not spec.is_phrasebook:
                from st_xling.data.sides import check_sides

                check_sides({name: dataset})
    return loaded


def _read_phrasebook(spec: DataSpec, split: str) -> list[Dataset]:
    pairs = [spec.languages] if spec.languages else [(language, "en") for language in paired_languages(spec)]
    parallel = [read_phrase_pairs(spec, *pair, split=split).select_columns(list(COLUMNS)) for pair in pairs]
    return [require_rows(dataset, spec.text) for dataset in parallel]


def _name(dataset: Any, spec: DataSpec) -> str:
    pairs = language_pairs(require_rows(head(dataset, 1000), spec.text))
    check_languages(pairs, spec.text)
    if len(pairs) == 1 and UNKNOWN not in (pair := next(iter(pairs))):
        return "-".join(pair)
    path = Path(spec.paths[0])
    return path.name.removesuffix(file_ending(path)) or UNKNOWN
