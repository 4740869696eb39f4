"""InsuranceQA v2 and its Chinese translation: questions with pools of answers, aligned by number and label."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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

_Release = tuple[Mapping[str, str], list[tuple[str, list[str], list[str]]]]
"""Content of one folder in one language: label → answer; each question with the labels of its truths and its pool."""


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
    encoded = {code: folder for code, folder in folders.items() if _find(folder, _ANSWERS) is not None}
    part = PARTS[split]
    read = {
        code: _read_encoded(folder, part) if code in encoded else _read_translated(folder, part, code)
        for code, folder in folders.items()
    }
    # The pools are those of v2 where it is there: the translation lists negatives that no search has ranked.
    _, first = read[next(iter(encoded or folders))]
    for code, (_, other) in read.items():
        apart = sum(set(one[1]) != set(two[1]) for one, two in zip(first, other))
        if len(other) != len(first) or apart:
            raise ValueError(
                f"expected the same questions in every folder: {folders[code]} has {len(other):,}, of which {apart:,} "
                f"have other ground truths, next to {len(first):,}; take the releases of one version."
            )
    # Answers of no pool cost memory and are never shown.
    labels = dict.fromkeys(label for place in (2, 1) for question in first for label in question[place])
    numbers = {label: number for number, label in enumerate(labels)}
    for code, (answers, _) in read.items():
        if lacking := [label for label in labels if label not in answers]:
            raise ValueError(f"{folders[code]} has no answer for {len(lacking):,} labels, such as {lacking[0]}.")
    truths, pools = ([[numbers[label] for label in dict.fromkeys(row[place])] for row in first] for place in (1, 2))
    return AlignedQuestions(
        {code: [text for text, _, _ in questions] for code, (_, questions) in read.items()},
        {code: [answers[label] for label in labels] for code, (answers, _) in read.items()},
        truths,
        pools,
    )


def _read_encoded(folder: Path, part: str) -> _Release:
    """Read v2, whose texts are indices of words."""
    faults = FaultLog(can_skip=False, what="InsuranceQA")
    tables = (("vocabulary", 2), (_ANSWERS, 2), (_POOLS.format(part=part), 4))
    words, answers, questions = (
        [cells for _, cells in fixed_columns(_required(folder, name), width, faults)] for name, width in tables
    )
    faults.finalize()
    vocabulary = dict(words)

    def decoded(text: str) -> str:
        return " ".join(vocabulary.get(index, index) for index in text.split())

    return {label: decoded(text) for label, text in answers}, [
        (decoded(question), truths.split(), pool.split()) for _, question, truths, pool in questions
    ]


def _read_translated(folder: Path, part: str, language: str) -> _Release:
    asked = read_json(_required(folder, f"pool/{part}.json", f"{part}.json"))
    answers = read_json(_required(folder, *_JSON_ANSWERS))
    try:
        questions = [
            (row[language], list(map(str, row["answers"])), list(map(str, [*row["answers"], *row["negatives"]])))
            for _, row in sorted(asked.items(), key=lambda item: int(item[0]))
        ]
        texts = {label: row[language] for label, row in answers.items()}
        for text in (*texts.values(), *(question for question, _, _ in questions)):
            if not is_unicode(text):
                raise ValueError(f"half a surrogate pair in {text!r}")
        return texts, questions
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder}: expected objects with {language!r}, answers, negatives, got {error!r}") from error


def _find(folder: Path, *names: str) -> Path | None:
    """Find the first of some files that is there, perhaps packed."""
    return next(filter(Path.is_file, (plain_or_packed(folder / name) for name in names)), None)


def _required(folder: Path, *names: str) -> Path:
    if found := _find(folder, *names):
        return found
    raise FileNotFoundError(f"expected {' or '.join(names)} (perhaps packed) in {folder}; is the release whole?")
