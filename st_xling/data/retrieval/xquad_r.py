"""XQuAD-R, the sentences of LAReQA: which of them, in whatever language, answers a question?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from st_xling.data.retrieval.held_passages import HeldPassages
from st_xling.data.retrieval.qrels import Qrels
from st_xling.data.retrieval.retrieval_set import RetrievalSet, checked_set
from st_xling.data.squad_form import read_squad


def read_xquad_r(
    paths: Mapping[str, str | Path], *, query_languages: Iterable[str] | None = None
) -> list[RetrievalSet]:
    """A set for each language: its sentences, and the questions of all languages.

    Files are SQuAD's form with ``sentence_breaks`` beside each ``context``. Every sentence of every paragraph is a
    candidate, repeats included; relevant is the one in which the first answer begins. Questions that share an id are
    translations of each other, so in a mixed pool (:func:`~st_xling.evaluation.retrieval.mixed_pool`) a question has
    one relevant sentence in each language, and mean average precision there is LAReQA's measure of language-agnostic
    retrieval. Candidates are the sentences alone; LAReQA's own encoders were also shown the paragraph around them.

    Args:
        paths: Language → ``.json`` or ``.json.gz``.
        query_languages: Of the questions; by default all languages of ``paths``.
    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file without sentences, sentences that do not lie in their paragraph, answers in no sentence, all
            faults of a file together; an id twice in a file; a language of queries that has no file.
    Source:
        Roy et al. 2020 (LAReQA), sections 2 and 3.
    """
    files = {language: read_squad(path, sentences=True) for language, path in paths.items()}
    asked = list(files) if query_languages is None else list(dict.fromkeys(query_languages))
    absent = [code for code in asked if code not in files]
    if absent:
        raise ValueError(f"expected queries in {', '.join(files)}, which have a file: got {', '.join(absent)}.")
    queries = {code: {question.identity: question.text for question in file.questions} for code, file in files.items()}
    twice = [file.path for code, file in files.items() if len(queries[code]) < len(file.questions)]
    if twice:
        raise ValueError(f"every question needs an id of its own: {', '.join(twice)} has ids twice, or none.")
    sets = []
    for language, file in files.items():
        names = [
            (f"{number}/{place}", context[start:end])
            for number, (context, breaks) in enumerate(zip(file.paragraphs, file.sentences))
            for place, (start, end) in enumerate(breaks)
        ]
        relevant: Qrels = {}
        for question in file.questions:
            if question.sentence is not None:
                relevant[question.identity] = {f"{question.paragraph}/{question.sentence}": 1}
        sets.append(
            checked_set(
                language, HeldPassages(names), {code: queries[code] for code in asked}, relevant, where=file.path
            )
        )
    return sets
