"""The forms of ``--data`` for aligned pairs: a file a language, ``en=xquad.en.json``; a folder; ``en=phrasebook``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from st_xling.data.phrasebook_spec import is_phrasebook
from st_xling.data.readers import file_ending
from st_xling.data.reranking.aligned import AlignedPairs
from st_xling.data.reranking.insurance_qa import PARTS, PooledQuestions, is_insurance_qa, read_insurance_qa
from st_xling.data.reranking.labelled_files import ENDINGS, read_labelled
from st_xling.data.reranking.phrase_questions import are_phrasebooks, phrase_questions
from st_xling.data.reranking.question_answering import QuestionAnswering
from st_xling.data.reranking.question_files import read_question_answering
from st_xling.data.reranking.same_text import same_text_classes
from st_xling.data.sample import SAMPLE_OPTIONS, Sample
from st_xling.data.spec_options import SpecOption, read_options, split_options, whole_above
from st_xling.utils.text import describe_missing

FORMS = (
    "xx=QUESTIONS.json (SQuAD form) or xx=PAIRS.jsonl or xx=PAIRS.tsv (query, passage, label) or "
    "xx=phrasebook?size=600 or xx=FOLDER (InsuranceQA), once a language; also with ?size=600&seed=0"
)
"""The forms of a spec, for help and messages."""

# "de-en=" names a pair of languages; a region is in capitals, a script begins with one.
_SPEC = re.compile(r"([a-z]{2,3}(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}))?)=(.+)", re.DOTALL)


def is_pair_spec(spec: str) -> bool:
    """Whether ``spec`` names one language, as ``en=xquad.en.json`` does, and ``de-en=pairs.tsv`` does not."""
    return _SPEC.fullmatch(spec) is not None


Pairs = QuestionAnswering | PooledQuestions | AlignedPairs
"""What files of aligned pairs hold."""


class PairPlaces(NamedTuple):
    """Where aligned pairs lie.

    Attributes:
        paths: Language → file or folder; of the phrasebook with what follows ``?``, which it reads itself.
        options: What follows ``?`` of files and folders, the same for every language.
    """

    paths: dict[str, Path]
    options: dict[str, Any]

    @property
    def has_splits(self) -> bool:
        """Whether what is there comes in splits of its own: the phrasebook, InsuranceQA."""
        return are_phrasebooks(self.paths) or any(map(is_insurance_qa, self.paths.values()))


def parse_pair_specs(specs: Iterable[str]) -> PairPlaces:
    """Languages, places and options.

    Raises:
        ValueError: A spec of another form, a language named twice, options that are not known or differ between
            languages, whose rows would then not be aligned; no spec at all.
    """
    paths: dict[str, Path] = {}
    options: dict[str, dict[str, Any]] = {}
    for spec in specs:
        match = _SPEC.fullmatch(spec)
        if not match or match[1] in paths:
            fault = "the language a second time in" if match else "none of these in"
            raise ValueError(f"expected {FORMS}: got {fault} {spec!r}.")
        place, query = (match[2], "") if is_phrasebook(match[2]) else split_options(match[2])
        paths[match[1]] = Path(place).expanduser()
        options[spec] = read_options(query, _OPTIONS, spec=spec)
    if not paths:
        raise ValueError(f"expected at least one data spec, got none; pass {FORMS}.")
    shared = next(iter(options.values()))
    if any(other != shared for other in options.values()):
        raise ValueError(f"the same pairs in every language take the same ?size, seed, …: got {', '.join(options)}.")
    return PairPlaces(paths, shared)


def read_pair_specs(specs: Iterable[str], *, split: str = "train") -> Pairs:
    """What the specs name, in every language; errors as the readers of each form.

    Args:
        specs: As :func:`parse_pair_specs`; ``?size=N&seed=S`` draws so many questions, each with all its rows.
        split: Of the phrasebook and InsuranceQA, where the specs name none; files have none.
    """
    specs = list(specs)
    places = parse_pair_specs(specs)
    paths, options = places.paths, dict(places.options)
    if are_phrasebooks(paths):
        return phrase_questions({language: str(path) for language, path in paths.items()}, split=split)
    sample = Sample.pop(options, ", ".join(specs))
    if all(map(is_insurance_qa, paths.values())):
        found = read_insurance_qa(paths, **{"split": split, **options})
        return found.select(sample.places(len(found), ", ".join(specs)))
    if options:
        raise ValueError(f"{', '.join(specs)}: {', '.join(options)} is for folders of InsuranceQA; leave it out.")
    for path in paths.values():
        if not path.is_file():
            raise FileNotFoundError(describe_missing(path))
    endings = {file_ending(path) for path in paths.values()}
    if endings <= {".json", ".json.gz"}:
        questions = read_question_answering(paths)
        if sample.size is None:
            return questions
        return questions.only_questions(sample.places(len(questions.question_ids), ", ".join(specs)))
    if endings <= set(ENDINGS):
        return _sampled_queries(read_labelled(paths), sample, ", ".join(specs))
    raise ValueError(f"expected {FORMS}, all of one form: got files ending in {', '.join(sorted(endings))}.")


def _sampled_queries(pairs: AlignedPairs, sample: Sample, where: str) -> AlignedPairs:
    """Whole queries: half of a query's candidates would be another test."""
    if sample.size is None:
        return pairs
    classes = same_text_classes(list(pairs.queries.values()))
    # Numbered in the order of the file, so that the sample does not hang on how texts are numbered.
    _, first, inverse = np.unique(classes, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))[inverse]
    return pairs.select(np.flatnonzero(np.isin(order, sample.places(len(first), where))))


def _split(value: str) -> str:
    if value not in PARTS:
        raise ValueError(value)
    return value


_OPTIONS = {
    **SAMPLE_OPTIONS,
    "split": SpecOption(_split, "train, dev or test"),
    "pool": SpecOption(whole_above(0), "500, a number above 0"),
}
