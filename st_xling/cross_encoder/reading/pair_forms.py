"""The forms of ``--data`` for aligned pairs: one file a language, ``en=xquad.en.json``; or ``en=phrasebook``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from st_xling.cross_encoder.pairs.aligned import AlignedPairs
from st_xling.cross_encoder.reading.labelled_files import ENDINGS, read_labelled
from st_xling.cross_encoder.reading.phrase_questions import are_phrasebooks, phrase_questions
from st_xling.cross_encoder.reading.question_answering import QuestionAnswering
from st_xling.cross_encoder.reading.question_files import read_question_answering
from st_xling.data.lines import describe_missing
from st_xling.data.readers import file_ending

FORMS = (
    "xx=QUESTIONS.json (SQuAD form) or xx=PAIRS.jsonl or xx=PAIRS.tsv (query, passage, label) or "
    "xx=phrasebook?size=600, once a language"
)
"""The forms of a spec, for help and messages."""

# "de-en=" names a pair of languages; a region is in capitals, a script begins with one.
_SPEC = re.compile(r"([a-z]{2,3}(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}))?)=(.+)", re.DOTALL)


def is_pair_spec(spec: str) -> bool:
    """Whether ``spec`` names one language, as ``en=xquad.en.json`` does, and ``de-en=pairs.tsv`` does not."""
    return _SPEC.fullmatch(spec) is not None


def parse_pair_specs(specs: Iterable[str]) -> dict[str, Path]:
    """Language → path; a ``ValueError`` for a spec of another form, a language named twice, or no spec at all."""
    paths: dict[str, Path] = {}
    for spec in specs:
        match = _SPEC.fullmatch(spec)
        if not match or match[1] in paths:
            fault = "the language a second time in" if match else "none of these in"
            raise ValueError(f"expected {FORMS}: got {fault} {spec!r}.")
        paths[match[1]] = Path(match[2]).expanduser()
    if not paths:
        raise ValueError(f"expected at least one data spec, got none; pass {FORMS}.")
    return paths


def read_pair_specs(specs: Iterable[str], *, split: str = "train") -> QuestionAnswering | AlignedPairs:
    """What the specs name, in every language; errors as the readers of each form.

    Args:
        specs: As :func:`parse_pair_specs`.
        split: Of the phrasebook, where the specs name none; files have none.
    """
    paths = parse_pair_specs(specs)
    if are_phrasebooks(paths):
        return phrase_questions({language: str(path) for language, path in paths.items()}, split=split)
    for path in paths.values():
        if not path.is_file():
            raise FileNotFoundError(describe_missing(path))
    endings = {file_ending(path) for path in paths.values()}
    if endings <= {".json", ".json.gz"}:
        return read_question_answering(paths)
    if endings <= set(ENDINGS):
        return read_labelled(paths)
    raise ValueError(f"expected {FORMS}, all of one form: got files ending in {', '.join(sorted(endings))}.")
