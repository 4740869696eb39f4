"""Retrieval sets: queries, passages and judgments together, of folders, of XQuAD-R and of the phrasebook."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from st_xling.data.check import ParallelTextError
from st_xling.data.locations import HUB_ID
from st_xling.data.pairs import Sample
from st_xling.data.phrasebook import phrase_passages
from st_xling.data.retrieval.files import (
    Passages,
    Qrels,
    chosen_languages,
    is_downloaded_set,
    load_downloaded_set,
    load_hub_retrieval_set,
    read_folder,
)
from st_xling.data.spec import OPTIONS, DataSpec, parse_spec, phrase_sample
from st_xling.data.squad_form import read_squad
from st_xling.data.test_sets import HUB_RETRIEVAL_SETS
from st_xling.utils.text import home_path, unpacked_ending

logger = logging.getLogger(__name__)

FORM = (
    "xx=FOLDER, xx the language of the passages, perhaps with ?split=dev&queries=en,de&size=500&seed=0, "
    "xx=FILE.json of XQuAD-R, xx=HUB_ID?name=CONFIGURATION, or xx=phrasebook?split=test&size=300&queries=en,de"
)

OF_SETS = ("split", "queries", "name")
"""Options of a folder or a data set of the Hub, besides ``size`` and ``seed``."""


@dataclass(frozen=True)
class RetrievalSet:
    """Passages of one language, queries of one or several, and which passages are relevant.

    Attributes:
        language: Of the passages.
        passages: The corpus.
        queries: Language → query id → text, of queries that are judged.
        relevant: Query id → passage id → grade above 0; an id means the same query in every language. A query whose
            grades are all 0 has no relevant passage: it counts, as 0.
        n_without_relevant: Queries that were skipped, as they are not judged, or as their relevant passages are not in
            the corpus.
    """

    language: str
    passages: Passages
    queries: dict[str, dict[str, str]]
    relevant: Qrels = field(repr=False)
    n_without_relevant: int = 0

    @property
    def sha256(self) -> str:
        """Changes with any passage, query or judgment, and with the order of the passages."""
        digest = hashlib.sha256(f"{self.language}\n{self.passages.sha256}\n".encode())
        for language, queries in sorted(self.queries.items()):
            for name, text in sorted(queries.items()):
                digest.update(f"{language}\t{name}\t{text}\t{sorted(self.relevant[name].items())}\n".encode())
        return digest.hexdigest()


def read_retrieval_set(
    folder: str | Path,
    *,
    language: str,
    split: str = "test",
    query_languages: Iterable[str] | None = None,
    name: str | None = None,
    skip_bad_lines: bool = False,
) -> RetrievalSet:
    """Read a folder in the layout of BEIR, Mr.TyDi or MIRACL; see :func:`read_folder` for the files.

    Args:
        folder: The folder, or what :func:`~st_xling.data.retrieval.files.load_hub_retrieval_set` reads from the Hub,
            also downloaded into a folder.
        language: Language of the passages, which the files do not name.
        split: Split of queries and qrels.
        query_languages: To read, where queries are there in several languages; by default all of them. On the Hub the
            one language of the queries, by default that of the passages.
        name: Beginning of the configurations on the Hub.
        skip_bad_lines: Skip faulty lines, with a warning; relevant passages that are not in the corpus too.

    Raises:
        FileNotFoundError: A file is missing.
        ParallelTextError: Faulty lines, a file's together; relevant passages that are not in the corpus.
        ValueError: A query language that is not there, or whose queries have no relevant passage.
    """
    path = home_path(str(folder))
    is_id = "/" in str(folder) and HUB_ID.fullmatch(str(folder))
    is_on_hub = not path.exists() and (is_id or str(folder) in HUB_RETRIEVAL_SETS)
    if is_on_hub or is_downloaded_set(path):
        query_language, *others = [language] if query_languages is None else query_languages
        if others:
            raise ValueError(f"{folder}, a data set of the Hub, takes one language of queries.")
        load = load_hub_retrieval_set if is_on_hub else load_downloaded_set
        parts = load(str(folder), language, query_language, name=name, split=split, skip_bad_lines=skip_bad_lines)
    else:
        parts = read_folder(folder, language, query_languages, split=split, skip_bad_lines=skip_bad_lines)
    where = f"{folder}, split {split!r}"
    has_all_queries = query_languages is None
    return checked_set(language, *parts, where=where, skip_bad_lines=skip_bad_lines, has_all_queries=has_all_queries)


def checked_set(
    language: str,
    passages: Passages,
    queries: dict[str, dict[str, str]],
    relevant: Qrels,
    *,
    where: str,
    skip_bad_lines: bool = False,
    has_all_queries: bool = True,
) -> RetrievalSet:
    """Make a set of its parts, without the queries that are not judged, which are counted.

    Args:
        language: Language of the passages.
        passages: The corpus.
        queries: Language → query id → text.
        relevant: Qrels.
        where: What is read, for messages.
        skip_bad_lines: Skip relevant passages that are not in the corpus, with a warning.
        has_all_queries: Whether the queries of all languages were read, so that judged queries that are not there are
            missing from the files.

    Raises:
        ParallelTextError: If relevant passages are not in the corpus, unless ``skip_bad_lines``.
        ValueError: If the queries of a language have no relevant passage at all.
    """
    relevant_passages = set(chain.from_iterable(relevant.values()))
    unknown = {passage for passage in relevant_passages if passage not in passages.ids}
    if unknown:
        fact = f"{where}: {len(unknown):,} relevant passages are not in the corpus, such as {min(unknown)}"
        if not skip_bad_lines:
            raise ParallelTextError(f"{fact}; complete the corpus, or pass --skip-bad-lines to skip them.")
        logger.warning("%s: skipped", fact)
    judged: Qrels = {}
    for query, grades in relevant.items():
        known_grades = {passage: grade for passage, grade in grades.items() if passage not in unknown}
        if known_grades or not grades:
            judged[query] = known_grades
    missing = judged.keys() - set(chain.from_iterable(queries.values()))
    if missing and has_all_queries:
        logger.warning(
            "%s: %s queries of the qrels are not among the queries, such as %s; they do not count",
            where,
            f"{len(missing):,}",
            min(missing),
        )
    judged_queries = {}
    empty = []
    skipped = 0
    for code, texts in queries.items():
        judged_queries[code] = {query: text for query, text in texts.items() if query in judged}
        skipped += len(texts) - len(judged_queries[code])
        if not any(judged[query] for query in judged_queries[code]):
            empty.append(f"{code} ({len(texts):,} queries)")
    if empty:
        raise ValueError(
            f"queries need relevant passages: {where} has none for {', '.join(empty)}; check that the ids of queries "
            "and qrels agree and that the split is right, or leave these languages out."
        )
    return RetrievalSet(language, passages, judged_queries, judged, skipped)


def sample_queries(data: RetrievalSet, sample: Sample, where: str) -> RetrievalSet:
    """Draw a seeded sample of a set's queries, each in every language that it is there in; all passages stay.

    Args:
        data: The set.
        sample: Its ``size`` counts queries by id: one that is there in three languages is one.
        where: What is sampled, for messages.
    """
    if sample.size is None:
        return data
    ids = list(dict.fromkeys(chain.from_iterable(data.queries.values())))
    chosen = {ids[index] for index in sample.places(len(ids), where)}
    queries = {}
    for code, texts in data.queries.items():
        queries[code] = {query: text for query, text in texts.items() if query in chosen}
    relevant = {query: grades for query, grades in data.relevant.items() if query in chosen}
    return replace(data, queries=queries, relevant=relevant)


def read_xquad_r(
    paths: Mapping[str, str | Path], *, query_languages: Iterable[str] | None = None
) -> list[RetrievalSet]:
    """Read a set for each language: its sentences, and the questions of all languages.

    Files are SQuAD's form with ``sentence_breaks`` next to each ``context``. Every sentence of every paragraph is a
    candidate, repeats included; relevant is the one in which the first answer begins. Questions that share an id are
    translations of each other, so in a mixed pool (of ``RetrievalEvaluator``) a question has one relevant
    sentence in each language, and mean average precision there is LAReQA's measure of language-agnostic
    retrieval. Candidates are the sentences alone; LAReQA's own encoders were also shown the paragraph around them.

    Args:
        paths: Language → ``.json``, plain or packed.
        query_languages: Of the questions; by default all languages of ``paths``.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file without sentences, sentences that do not lie in their paragraph, answers in no sentence, all
            faults of a file together; an id twice in a file; a language of queries that has no file.
    Source:
        Roy et al. 2020 (LAReQA), sections 2 and 3.
    """
    files = {language: read_squad(path, sentences=True) for language, path in paths.items()}
    codes = chosen_languages(query_languages, files, "XQuAD-R")
    queries = {}
    for code, file in files.items():
        queries[code] = {question.identity: question.text for question in file.questions}
    twice = [file.path for code, file in files.items() if len(queries[code]) < len(file.questions)]
    if twice:
        raise ValueError(f"every question needs an id of its own: {', '.join(twice)} has ids twice, or none.")
    chosen_queries = {code: queries[code] for code in codes}
    sets = []
    for language, file in files.items():
        sentences = []
        for number, (paragraph, breaks) in enumerate(zip(file.paragraphs, file.sentences)):
            for index, (start, end) in enumerate(breaks):
                sentences.append((f"{number}/{index}", paragraph[start:end]))
        relevant = {}
        for question in file.questions:
            if question.sentence is not None:
                relevant[question.identity] = {f"{question.paragraph}/{question.sentence}": 1}
        sets.append(checked_set(language, Passages(sentences), chosen_queries, relevant, where=file.path))
    return sets


def phrase_set(
    book: DataSpec, language: str, *, split: str, query_languages: Iterable[str] | None = None
) -> RetrievalSet:
    """Load passages in one language, with the same questions in one or several, of the phrasebook.

    Sets of one split, size and seed in several languages mean the same under the same ids, so that in a pool of them
    mixed each question has an equally relevant passage in each language.

    Args:
        book: Spec of the phrasebook, with ``size``, ``split``, ``seed`` and ``queries``.
        language: Language of the passages.
        split: Split of a spec that names none.
        query_languages: Languages of the questions if it names none; by default that of the passages.
    """
    codes = list(dict.fromkeys(book.options.get("queries") or query_languages or [language]))
    phrases = phrase_passages([language, *codes], **phrase_sample(book, split=split, passages=True))
    return RetrievalSet(
        language=language,
        passages=Passages(zip(phrases.ids, phrases.passages[language])),
        queries={code: dict(zip(phrases.ids, phrases.questions[code])) for code in codes},
        relevant={identity: {identity: 1} for identity in phrases.ids},
    )


def load_retrieval_specs(
    specs: Iterable[str],
    *,
    split: str = "test",
    query_languages: Iterable[str] | None = None,
    skip_bad_lines: bool = False,
) -> list[RetrievalSet]:
    """Load the sets that specs name; all are parsed before the first is read.

    Args:
        specs: ``xx=FOLDER``, with ``?split=`` and ``queries=`` behind it where a set needs its own, and ``size=`` and
            ``seed=`` for a sample of its queries; ``xx=FILE.json``, sentences of XQuAD-R, whose questions are read from
            all such files together (see :func:`read_xquad_r`); or ``xx=phrasebook``, with ``?split=``, ``size=``,
            ``seed=`` and ``queries=``.
        split: Of sets that name none.
        query_languages: Likewise; by default all that a folder has, and the phrasebook's in the language of the
            passages.
        skip_bad_lines: As :func:`read_retrieval_set`.

    Raises:
        ValueError: A spec of another form; and as :func:`read_retrieval_set`.
    """
    codes = None if query_languages is None else list(query_languages)
    parsed = [parse_retrieval_spec(spec) for spec in specs]
    # Files of XQuAD-R are read together, since each contains the questions of one language only.
    squads = [spec for spec in parsed if is_squad(spec.location)]
    files = {spec.languages[0]: spec.location for spec in squads}
    if len(files) < len(squads) or any(spec.reader_options for spec in squads):
        got = ", ".join(spec.text for spec in squads)
        raise ValueError(f"XQuAD-R has one file a language, without {', '.join(OF_SETS)}: got {got}.")
    sentence_sets: dict[str, RetrievalSet] = {}
    if files:
        sentence_sets = {data.language: data for data in read_xquad_r(files, query_languages=codes)}
    sets = []
    for spec in parsed:
        (code,) = spec.languages
        if spec.is_phrasebook:
            sets.append(phrase_set(spec, code, split=split, query_languages=codes))
            continue
        if is_squad(spec.location):
            data = sentence_sets[code]
        else:
            data = read_retrieval_set(
                spec.location,
                language=code,
                split=spec.options.get("split", split),
                query_languages=spec.options.get("queries", codes),
                name=spec.options.get("name"),
                skip_bad_lines=skip_bad_lines,
            )
        sets.append(sample_queries(data, spec.sample, spec.text))
    return sets


def is_squad(place: str) -> bool:
    """Return whether a place names a file in SQuAD's form, perhaps packed."""
    return unpacked_ending(place) == ".json"


def parse_retrieval_spec(spec: str, *, options: Iterable[str] = OF_SETS, forms: str = FORM) -> DataSpec:
    """Parse a spec of one language, that of the passages.

    Args:
        spec: As :func:`load_retrieval_specs` takes it.
        options: Names of the options taken, besides ``size`` and ``seed``.
        forms: What the reader takes, for messages.

    Example:
        >>> parse_retrieval_spec("fi=miracl?split=dev").options
        {'split': 'dev'}
    """
    known_options = {name: OPTIONS[name] for name in options}
    return parse_spec(spec, known_options, phrasebook=("size", "split", "seed", "queries"), languages=1, forms=forms)
