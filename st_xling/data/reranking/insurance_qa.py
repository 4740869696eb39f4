"""InsuranceQA v2 and its Chinese translation: questions with pools of answers, aligned by number and label."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.data.check import FaultLog, is_unicode
from st_xling.data.formats import fixed_columns
from st_xling.data.reranking.pools import AlignedQuestions
from st_xling.data.squad_form import read_json
from st_xling.utils.text import plain_or_packed

PARTS = {"train": "train", "dev": "valid", "test": "test"}
"""Our name of a split → that of its file."""

_ANSWERS = "InsuranceQA.label2answer.token.encoded"
_JSON_ANSWERS = ("pool/answers.json", "answers.json")
_POOLS = "InsuranceQA.question.anslabel.token.500.pool.solr.{part}.encoded"  # pools of 500 answers, as in the paper


class _Question(NamedTuple):
    """A question with the labels of its right answers and of its pool."""

    text: str
    truths: list[str]
    pool: list[str]


class _Release(NamedTuple):
    """Content of one folder in one language; ``answers`` maps labels to texts."""

    answers: Mapping[str, str]
    questions: list[_Question]


def is_insurance_qa(folder: Path) -> bool:
    """Return whether a folder is in one of the two layouts that :func:`read_insurance_qa` reads."""
    return folder.is_dir() and _find(folder, _ANSWERS, *_JSON_ANSWERS) is not None


def read_insurance_qa(folders: Mapping[str, Path], *, split: str = "train") -> AlignedQuestions:
    """Read the questions of one split, each with its pool of 500 answers.

    Two layouts are known by their files. InsuranceQA v2 (English): ``vocabulary``,
    ``InsuranceQA.label2answer.token.encoded`` and ``InsuranceQA.question.anslabel.token.500.pool.solr.train.encoded``,
    whose lines are domain, question, ground truths and pool. Its translation (``insuranceqa-corpus-zh``):
    ``pool/train.json`` with ``zh``, ``en``, ``answers`` and ``negatives``, and ``pool/answers.json``. Each file may be
    packed. Both number questions and answers alike, so ``en`` may come from the first and ``zh`` from the second.

    A question's candidates are the pool of the first folder in v2's layout, else the translation's answers and
    negatives. A ground truth that the pool lacks is no candidate: the search that made the pool missed it.

    Args:
        folders: Language → folder.
        split: ``train``, ``dev`` or ``test``.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: For faulty lines or objects, labels that are not listed, a language that the folder lacks,
            and folders that differ in their questions' ground truths.
    Source:
        Feng et al. 2015 (InsuranceQA); Chen et al. 2020 (XPR), section V-A-2.
    """
    encoded = [code for code, folder in folders.items() if _find(folder, _ANSWERS) is not None]
    part = PARTS[split]
    releases = {}
    for code, folder in folders.items():
        if code in encoded:
            releases[code] = _read_encoded(folder, part)
        else:
            releases[code] = _read_translated(folder, part, code)

    # The pools are those of v2 where it is there: the translation lists negatives that no search has ranked.
    first_code = encoded[0] if encoded else next(iter(folders))
    questions = releases[first_code].questions
    for code, release in releases.items():
        pairs = zip(questions, release.questions)
        different = sum(set(question.truths) != set(other.truths) for question, other in pairs)
        if len(release.questions) != len(questions) or different:
            raise ValueError(
                f"expected the same questions in every folder: {folders[code]} has {len(release.questions):,}, of "
                f"which {different:,} have other ground truths, next to {len(questions):,}; take the releases of "
                "one version."
            )

    # Answers of no pool cost memory and are never shown.
    pool_labels = itertools.chain.from_iterable(question.pool for question in questions)
    truth_labels = itertools.chain.from_iterable(question.truths for question in questions)
    labels = list(dict.fromkeys(itertools.chain(pool_labels, truth_labels)))
    numbers = {label: number for number, label in enumerate(labels)}
    for code, release in releases.items():
        if lacking := [label for label in labels if label not in release.answers]:
            raise ValueError(f"{folders[code]} has no answer for {len(lacking):,} labels, such as {lacking[0]}.")

    def passage_numbers(question_labels: list[str]) -> list[int]:
        return [numbers[label] for label in dict.fromkeys(question_labels)]

    queries = {}
    passages = {}
    for code, release in releases.items():
        queries[code] = [question.text for question in release.questions]
        passages[code] = [release.answers[label] for label in labels]
    truths = [passage_numbers(question.truths) for question in questions]
    pools = [passage_numbers(question.pool) for question in questions]
    return AlignedQuestions(queries, passages, truths, pools)


def _read_encoded(folder: Path, part: str) -> _Release:
    """Read v2, whose texts are indices of words."""
    faults = FaultLog(can_skip=False, what="InsuranceQA")

    def table(name: str, width: int) -> list[Any]:
        return [cells for _, cells in fixed_columns(_required(folder, name), width, faults)]

    words = table("vocabulary", 2)
    answers = table(_ANSWERS, 2)
    questions = table(_POOLS.format(part=part), 4)
    faults.finalize()
    vocabulary = dict(words)

    def decoded(text: str) -> str:
        return " ".join(vocabulary.get(index, index) for index in text.split())

    return _Release(
        {label: decoded(text) for label, text in answers},
        [_Question(decoded(text), truths.split(), pool.split()) for _, text, truths, pool in questions],
    )


def _read_translated(folder: Path, part: str, language: str) -> _Release:
    rows = read_json(_required(folder, f"pool/{part}.json", f"{part}.json"))
    answers = read_json(_required(folder, *_JSON_ANSWERS))
    try:
        questions = []
        for _, row in sorted(rows.items(), key=lambda item: int(item[0])):
            truths = [str(label) for label in row["answers"]]
            negatives = [str(label) for label in row["negatives"]]
            questions.append(_Question(row[language], truths, [*truths, *negatives]))
        texts = {label: row[language] for label, row in answers.items()}
        for text in (*texts.values(), *(question.text for question in questions)):
            if not is_unicode(text):
                raise ValueError(f"half a surrogate pair in {text!r}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder}: expected objects with {language!r}, answers, negatives, got {error!r}") from error
    return _Release(texts, questions)


def _find(folder: Path, *names: str) -> Path | None:
    """Find the first of some files that is there, perhaps packed."""
    for name in names:
        path = plain_or_packed(folder / name)
        if path.is_file():
            return path
    return None


def _required(folder: Path, *names: str) -> Path:
    path = _find(folder, *names)
    if path is None:
        raise FileNotFoundError(f"expected {' or '.join(names)} (perhaps packed) in {folder}; is the release whole?")
    return path
