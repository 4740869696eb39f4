"""Data specs of re-ranking: what ``--data`` takes for cross-encoders and their test pools.

``xx=QUESTIONS.json``           SQuAD's form, such as XQuAD
``xx=PAIRS.jsonl``, ``.tsv``    query, passage and label, aligned by row
``xx=FOLDER``                   InsuranceQA; as test pools also a retrieval set
``xx=phrasebook?size=600``      generated questions and passages
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from st_xling.data.batches import apportion
from st_xling.data.check import FaultLog
from st_xling.data.formats import named_cells
from st_xling.data.holdout import hold_out
from st_xling.data.read import load_data_specs
from st_xling.data.reranking.filter_pairs import filter_pairs_from_parallel
from st_xling.data.reranking.insurance_qa import is_insurance_qa, read_insurance_qa
from st_xling.data.reranking.pairs import AlignedPairs, same_text_classes, with_negatives
from st_xling.data.reranking.pools import AlignedQuestions, CandidatePools, candidate_pools, questions_of_pairs
from st_xling.data.reranking.question_answering import phrase_questions, read_question_answering
from st_xling.data.reranking.strategies import parallel_pools, xpi_pairs_from_parallel
from st_xling.data.retrieval import read_retrieval_set, sample_queries
from st_xling.data.spec import PHRASEBOOK_OPTIONS, DataSpec, parse_spec
from st_xling.utils.file_endings import JSON_LINES_ENDINGS
from st_xling.utils.text import describe_missing, is_blank, unpacked_ending

if TYPE_CHECKING:
    from datasets import Dataset

FORMS = (
    "xx=QUESTIONS.json (SQuAD form) or xx=PAIRS.jsonl or xx=PAIRS.tsv (query, passage, label) or "
    "xx=phrasebook?size=600 or xx=FOLDER (InsuranceQA), once a language; also with ?size=600&seed=0"
)
"""The forms of a spec, for help and messages."""

QuestionsOrPairs = AlignedQuestions | AlignedPairs
"""Content of files of questions or labeled pairs in several languages."""

Split = Literal["train", "dev", "test"]

TEST_SHARE = 0.2
"""Share that ``--split test`` evaluates, of files without splits of their own; training excludes it by the same."""

#: Rows of held-out text that a filter is developed and calibrated on.
_HELD_OUT_ROWS = 1000

_COLUMNS = ("query", "passage", "label")
_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "False": 0, "True": 1}
_OPTIONS = {"split": PHRASEBOOK_OPTIONS["split"]}


class PairData(NamedTuple):
    """Pairs read from specs.

    Attributes:
        train: Pairs to train on, negatives included: :class:`AlignedPairs`, or for XPI a data set of labeled pairs.
        dev: Pools to choose the best checkpoint by; ``None`` if none were to be held out.
    """

    train: Any
    dev: CandidatePools | None


class FilterData(NamedTuple):
    """Labeled pairs of a filter of translations.

    Attributes:
        train: Pairs to train on.
        dev: Held-out pairs to choose the best checkpoint by; ``None`` if none were to be held out.
        calibration: Other held-out pairs, for the threshold; ``None`` as well.
    """

    train: Dataset
    dev: Dataset | None
    calibration: Dataset | None


def load_pair_specs(
    specs: Iterable[str],
    *,
    dev: Iterable[str] | None = None,
    dev_share: float = 0.1,
    test_share: float = 0.0,
    fewest_dev: int = 0,
    negatives_per_positive: int | None = None,
) -> PairData:
    """Load the aligned pairs that the specs name, and set pools aside to choose the best checkpoint by.

    Args:
        specs: ``en=xquad.en.json`` and the like, all of one form, one for each language; ``en=phrasebook`` is its
            training split.
        dev: Specs of the development set, then used whole, with nothing held out of ``specs`` for it; of the
            phrasebook its development split.
        dev_share: Else the share of the articles (SQuAD form) or queries (labeled files) held out; 0 for none.
        fewest_dev: Fewer queries than that are not held out for development.
        test_share: A share held out of both, which :func:`load_pool_specs` finds if it is 0.2.
        negatives_per_positive: Drawn for each relevant pair, of InsuranceQA from the question's pool; by default 1, or
            none where the files label negatives.

    Raises:
        FileNotFoundError: If a file is not there.
        ValueError: For malformed specs, faulty files, shares that leave nothing; as the readers of each form.
    """
    dev = list(dev or ())
    data = _read_specs(_parse_specs(specs))
    if dev:
        dev_share = 0.0
    parts = cut(data, dev_share, test_share)
    pools = candidate_pools(_questions(parts["dev"])) if "dev" in parts else None
    if pools is not None and len(pools) < fewest_dev:
        parts = cut(data, 0.0, test_share)
        pools = None
    train = parts["train"]
    if negatives_per_positive is None:
        has_negatives = isinstance(train, AlignedPairs) and 0 in train.labels
        negatives_per_positive = 0 if has_negatives else 1
    if isinstance(train, AlignedPairs):
        pairs = with_negatives(train, negatives_per_positive=negatives_per_positive)
    else:
        pairs = train.aligned_pairs(negatives_per_positive=negatives_per_positive)
    if dev:
        return PairData(pairs, load_pool_specs(dev, own_split="dev"))
    return PairData(pairs, pools)


def load_pool_specs(
    specs: Iterable[str],
    *,
    split: Split | None = None,
    own_split: Split = "test",
    query_languages: Iterable[str] | None = None,
    max_candidates: int | None = None,
    seed: int = 0,
) -> CandidatePools:
    """Load test pools of the same specs, or of one ``xx=FOLDER`` with a retrieval set whose passages are in ``xx``.

    Args:
        specs: As :func:`load_pair_specs`; or one folder in a layout of
            :func:`~st_xling.data.retrieval.read_retrieval_set`. Every passage is then a candidate for every query, in
            every language in which the queries are there.
        split: The part to take, cut as :func:`load_pair_specs` cuts by default, with a test share of 0.2; by default
            all. Of the phrasebook and InsuranceQA, whose splits are there already, their split.
        own_split: Of these two, where neither ``split`` nor the specs name one.
        query_languages: To draw from (folder: to read); by default all.
        max_candidates: Draw so many for each query; relevant ones stay.
        seed: Seed of the languages and the draws; the cut is the one of training, whatever the seed.

    Raises:
        FileNotFoundError, ValueError: As :func:`load_pair_specs`.
    """
    parsed = _parse_specs(specs)
    first = next(iter(parsed.values()))
    has_splits = any(spec.is_phrasebook or is_insurance_qa(spec.path) for spec in parsed.values())
    if len(parsed) == 1 and not has_splits and first.path.is_dir():
        if split:
            raise ValueError(f"{first.path} is a test set: it takes no split.")
        return _retrieval_pools(first, query_languages, max_candidates=max_candidates, seed=seed)
    data = _read_specs(parsed, split=split or own_split)
    # Files, which have no splits, are cut as in training, so that the part is the one that was held out there.
    if split is not None and not has_splits:
        data = cut(data, 0.1, TEST_SHARE)[split]
    return candidate_pools(_questions(data), query_languages=query_languages, max_candidates=max_candidates, seed=seed)


def _questions(data: QuestionsOrPairs) -> AlignedQuestions:
    return questions_of_pairs(data) if isinstance(data, AlignedPairs) else data


def load_xpi_specs(
    specs: Iterable[str],
    *,
    dev: Iterable[str] | None = None,
    size: int | None = None,
    fewest_dev: int = 0,
    negatives_per_positive: int | None = None,
    skip_bad_lines: bool = False,
) -> PairData:
    """Load the parallel text that the specs name and make XPI's mixed-language set of it.

    Args:
        specs: As :func:`~st_xling.data.read.load_data_specs` takes them.
        dev: Specs of the development set; else rows are held out, as :func:`~st_xling.data.holdout.hold_out` does.
        size: Rows to draw.
        fewest_dev: Fewer rows than that are not held out for development.
        negatives_per_positive: Drawn for each row; by default 1.
        skip_bad_lines: Drop faulty lines, with a warning.

    Raises:
        FileNotFoundError, ValueError: As the functions named.
    """
    data, held_out = _load_parallel(specs, dev, fewest_dev=fewest_dev, skip_bad_lines=skip_bad_lines)
    if negatives_per_positive is None:
        negatives_per_positive = 1
    train = xpi_pairs_from_parallel(data, size=size, negatives_per_positive=negatives_per_positive)
    pools = parallel_pools(held_out) if held_out else None
    return PairData(train, pools)


def load_filter_specs(
    specs: Iterable[str],
    *,
    hard: Sequence[str],
    dev: Iterable[str] | None = None,
    holds_out: bool = True,
    size: int | None = None,
    fewest_dev: int = 0,
    negatives_per_positive: int | None = None,
    skip_bad_lines: bool = False,
    seed: int = 0,
) -> FilterData:
    """Load the parallel text that the specs name and make labeled pairs for a filter of it.

    Args:
        specs: As :func:`~st_xling.data.read.load_data_specs` takes them.
        hard: Kinds of hard pairs, see :func:`~st_xling.data.reranking.filter_pairs.filter_pairs_from_parallel`.
        dev: Specs of held-out text; else rows are held out, as :func:`~st_xling.data.holdout.hold_out` does.
        holds_out: Whether any text is held out.
        size: Rows to draw.
        fewest_dev: Fewer rows than that are not held out.
        negatives_per_positive: Sentences of other rows for each row; by default 1.
        skip_bad_lines: Drop faulty lines, with a warning.
        seed: Seed of all draws.

    Raises:
        FileNotFoundError, ValueError: As the functions named.
    """
    if holds_out:
        data, held_out = _load_parallel(specs, dev, fewest_dev=fewest_dev, skip_bad_lines=skip_bad_lines)
    else:
        data = load_data_specs(specs, skip_bad_lines=skip_bad_lines)
        held_out = {}
    make_pairs = partial(
        filter_pairs_from_parallel, negatives_per_positive=negatives_per_positive or 1, hard=hard, seed=seed
    )
    train = make_pairs(data, size=size)
    if not held_out:
        return FilterData(train, None, None)
    pairs = make_pairs(held_out, size=min(_HELD_OUT_ROWS, sum(map(len, held_out.values()))))
    half = len(pairs) // 2
    return FilterData(train, pairs.select(range(half)), pairs.select(range(half, len(pairs))))


def _load_parallel(
    specs: Iterable[str], dev: Iterable[str] | None, *, fewest_dev: int, skip_bad_lines: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Load parallel text and what is held out of it, by name; nothing is held out if that would be too little."""
    data = load_data_specs(specs, skip_bad_lines=skip_bad_lines)
    if dev:
        return data, load_data_specs(dev, split="dev", skip_bad_lines=skip_bad_lines)
    remaining, held_out = hold_out(data)
    if sum(map(len, held_out.values())) < fewest_dev:
        return data, {}
    return remaining, held_out


def _parse_specs(specs: Iterable[str]) -> dict[str, DataSpec]:
    """Return the parsed specs by language; raise ``ValueError`` for those that do not belong together."""
    parsed: dict[str, DataSpec] = {}
    for text in specs:
        spec = parse_spec(text, _OPTIONS, languages=1, forms=FORMS)
        (language,) = spec.languages
        if language in parsed:
            raise ValueError(f"expected {FORMS}: got the language a second time in {text!r}.")
        parsed[language] = spec
    if not parsed:
        raise ValueError(f"expected at least one data spec, got none; pass {FORMS}.")
    first, *others = parsed.values()
    if any(other.options != first.options for other in others):
        got = ", ".join(spec.text for spec in parsed.values())
        raise ValueError(f"the same pairs in every language take the same ?size, split and seed: got {got}.")
    return parsed


def _read_specs(parsed: Mapping[str, DataSpec], *, split: str = "train") -> QuestionsOrPairs:
    """Read what the specs name, in every language; ``?size=N&seed=S`` draws so many questions, each with all its rows.

    Args:
        parsed: Specs by language.
        split: Split of the phrasebook and InsuranceQA, where the specs name none; files have none.
    """
    first = next(iter(parsed.values()))
    if all(spec.is_phrasebook for spec in parsed.values()):
        return phrase_questions(first, parsed, split=split)
    paths = {language: spec.path for language, spec in parsed.items()}
    sample = first.sample
    where = ", ".join(spec.text for spec in parsed.values())
    endings = set(map(unpacked_ending, paths.values()))
    data: QuestionsOrPairs
    if all(map(is_insurance_qa, paths.values())):
        data = read_insurance_qa(paths, split=first.options.get("split", split))
    elif "split" in first.options:
        raise ValueError(f"{where}: split is for folders of InsuranceQA; leave it out.")
    elif missing := [path for path in paths.values() if not path.is_file()]:
        raise FileNotFoundError(describe_missing(missing[0]))
    elif endings == {".json"}:
        data = read_question_answering(paths)
    elif endings <= {".tsv", *JSON_LINES_ENDINGS}:
        data = read_labeled(paths)
    else:
        raise ValueError(f"expected {FORMS}, all of one form: got files ending in {', '.join(sorted(endings))}.")
    if sample.size is None:
        return data
    if isinstance(data, AlignedQuestions):
        return data.select(sample.places(len(data), where))
    # Whole queries, numbered in the order of the file: half of a query's candidates would be another test.
    classes = same_text_classes(data.queries.values())
    chosen = sample.places(int(classes.max()) + 1, where)
    return data.select(np.flatnonzero(np.isin(classes, chosen)).tolist())


def cut(data: QuestionsOrPairs, dev_share: float, test_share: float) -> dict[str, QuestionsOrPairs]:
    """Divide into a training, development and test part, by article or by query; those of a share above 0.

    By article, no paragraph, nor its neighbor, is in two parts. Equal data are always cut alike, so that an evaluation
    finds the part that the training held out.

    Args:
        data: Content of the files.
        dev_share: Share of the articles, or of the queries that read alike in no language.
        test_share: The same; dealt first, so that it stays what it is however the rest is cut.

    Raises:
        ValueError: Shares below 0, or that leave nothing to train on; fewer articles or queries than parts.
    """
    shares = {"train": 1 - dev_share - test_share, "dev": dev_share, "test": test_share}
    if min(shares.values()) < 0 or shares["train"] < 1e-9:
        raise ValueError(f"shares held out must be 0 or more and leave something: got {dev_share} and {test_share}.")
    shares = {name: share for name, share in shares.items() if share > 0}
    if isinstance(data, AlignedQuestions) and data.articles is not None:
        articles = np.unique(data.articles)
        parts = deal(len(articles), shares)
        return {name: data.of_articles(articles[numbers]) for name, numbers in parts.items()}
    classes = same_text_classes(data.queries.values())
    parts = deal(len(np.unique(classes)), shares)
    cut_data: dict[str, QuestionsOrPairs] = {}
    for name, numbers in parts.items():
        rows = np.flatnonzero(np.isin(classes, numbers))
        cut_data[name] = data.select(rows.tolist())
    return cut_data


def deal(total: int, shares: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Divide the numbers below ``total``, shuffled, by shares that sum to 1; each part gets one at least.

    Largest remainders round up. The last part is dealt first, so that it stays what it is, but for rounding, however
    the rest is cut.

    Raises:
        ValueError: If there are fewer numbers than parts.
    """
    names = list(shares)[::-1]
    if total < len(names):
        raise ValueError(f"cannot cut {total} into {len(names)} parts of at least one; ask for fewer parts.")
    exact = np.array([total * shares[name] for name in names])
    counts = np.maximum(1, apportion(total, [shares[name] for name in names]))
    while counts.sum() > total:  # a part whose share is below 1 was rounded up to 1
        excess = np.where(counts > 1, counts - exact, -np.inf)
        counts[np.argmax(excess)] -= 1
    order = np.random.default_rng(0).permutation(total)
    parts = dict(zip(names, np.split(order, np.cumsum(counts)[:-1])))
    return {name: parts[name] for name in shares}


class _OtherPassages(Sequence[Sequence[int]]):
    """Rows of all passages for each query, but of the one that is the query itself.

    They are made when they are asked for: Quora's 10,000 queries with 523,000 passages would fill the memory.

    Args:
        passages: Number of passages.
        own_rows: For each query the passage that is the query itself, or ``None``.
    """

    def __init__(self, passages: int, own_rows: Sequence[int | None]) -> None:
        self._passages = passages
        self._own_rows = own_rows

    def __len__(self) -> int:
        return len(self._own_rows)

    def __getitem__(self, query: Any) -> Any:
        own_row = self._own_rows[query]
        return [row for row in range(self._passages) if row != own_row]


def _retrieval_pools(
    spec: DataSpec, query_languages: Iterable[str] | None, *, max_candidates: int | None, seed: int
) -> CandidatePools:
    """Make every passage of a retrieval set a candidate for every query, in every language of the queries."""
    (language,) = spec.languages
    retrieval_set = read_retrieval_set(
        spec.path, language=language, query_languages=query_languages, **spec.reader_options
    )
    retrieval_set = sample_queries(retrieval_set, spec.sample, spec.text)
    passages = {language: list(retrieval_set.passages)}
    rows_by_id = retrieval_set.passages.ids
    pools_by_language = []
    skipped = retrieval_set.n_without_relevant
    for code, queries in retrieval_set.queries.items():
        answered = {query: text for query, text in queries.items() if retrieval_set.relevant[query]}
        skipped += len(queries) - len(answered)
        relevant = []
        # The query itself, where queries were taken from the corpus, is no candidate.
        own_rows = []
        for query in answered:
            relevant_ids = retrieval_set.relevant[query]
            relevant.append([rows_by_id[passage] for passage in relevant_ids])
            own_row = None if query in relevant_ids else rows_by_id.get(query)
            own_rows.append(own_row)
        candidates: _OtherPassages | None = None
        if any(row is not None for row in own_rows):
            candidates = _OtherPassages(len(rows_by_id), own_rows)
        questions = AlignedQuestions({code: list(answered.values())}, passages, relevant, candidates)
        pools_by_language.append(candidate_pools(questions, max_candidates=max_candidates, seed=seed))
    # No language is drawn: a query that is there in three languages makes three pools.
    _, _, without_queries = pools_by_language[-1].signature.partition("|")
    signature = f"queries:{','.join(retrieval_set.queries)}|{without_queries}"
    return CandidatePools(tuple(chain(*pools_by_language)), skipped, signature)


def read_labeled(paths: Mapping[str, str | Path]) -> AlignedPairs:
    """Read the same pairs from one file a language; line ``i`` of each has the same meaning.

    JSON lines have the keys ``query``, ``passage`` and ``label``; tab-separated lines these three columns, under a
    header of these names or none, and quotes are text. A label is 0 or 1.

    Args:
        paths: Language → file.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: Faulty lines, those of all files together; files that differ in length or in labels. No line is
            skipped: the rest would not be aligned.
    """
    faults = FaultLog(can_skip=False)
    rows_by_language = {language: list(_labeled_rows(Path(path), faults)) for language, path in paths.items()}
    faults.finalize()
    # Rows of all files must be there and mean the same: a line more or less would shift all that follow.
    counts = {len(rows) for rows in rows_by_language.values()}
    if len(counts) > 1 or 0 in counts:
        got = ", ".join(f"{len(rows)} in {language} ({paths[language]})" for language, rows in rows_by_language.items())
        raise ValueError(f"expected the same pairs in every language, row by row: got {got}; align the files first.")
    queries = {}
    passages = {}
    labels = {}
    for language, rows in rows_by_language.items():
        queries[language] = [row.query for row in rows]
        passages[language] = [row.passage for row in rows]
        labels[language] = [row.label for row in rows]
    for row_number, row_labels in enumerate(zip(*labels.values())):
        if len(set(row_labels)) > 1:
            raise ValueError(
                f"{', '.join(map(str, paths.values()))} differ in the label of row {row_number}, counted from 0: a "
                "pair and its translation have one label; are the rows aligned?"
            )
    return AlignedPairs(queries, passages, next(iter(labels.values())))


class _LabeledRow(NamedTuple):
    """A row of a file of labeled pairs."""

    query: str
    passage: str
    label: int


def _labeled_rows(path: Path, faults: FaultLog) -> Iterator[_LabeledRow]:
    for number, row in named_cells(path, [[name] for name in _COLUMNS], 3, faults):
        *texts, label = row
        empty = [name for name, text in zip(_COLUMNS, texts) if not isinstance(text, str) or is_blank(text)]
        if str(label) not in _LABELS:
            faults.add(path, number, "label outside {0, 1}", f"got {label!r}")
        if empty:
            faults.add(path, number, "empty side", ", ".join(empty))
        elif str(label) in _LABELS:
            yield _LabeledRow(texts[0], texts[1], _LABELS[str(label)])
