"""Data specs of re-ranking: what ``--data`` takes for cross-encoders and their test pools.

``xx=QUESTIONS.json``           SQuAD's form, such as XQuAD
``xx=PAIRS.jsonl``, ``.tsv``    query, passage and label, aligned by row
``xx=FOLDER``                   InsuranceQA; as test pools also a retrieval set
``xx=phrasebook?size=600``      generated questions and passages
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from st_xling.data.check import FaultLog
from st_xling.data.formats import named_cells
from st_xling.data.holdout import hold_out
from st_xling.data.leak import load_evaluation_specs
from st_xling.data.read import load_data_specs
from st_xling.data.reranking.insurance_qa import PooledQuestions, is_insurance_qa, read_insurance_qa
from st_xling.data.reranking.pairs import AlignedPairs, listed_rows, same_text_classes, with_negatives
from st_xling.data.reranking.pools import CandidatePools, WithoutRelevant, pool_texts, pools_of_pairs, read_retrieval
from st_xling.data.reranking.question_answering import (
    QuestionAnswering,
    deal,
    phrase_questions,
    read_question_answering,
)
from st_xling.data.reranking.strategies import parallel_pools, xpi_pairs_from_parallel
from st_xling.data.spec import PHRASEBOOK_OPTIONS, DataSpec, parse_spec, split_spec
from st_xling.utils.text import describe_missing, file_ending, is_blank, unpacked_name

if TYPE_CHECKING:
    from st_xling.data.leak import Texts

FORMS = (
    "xx=QUESTIONS.json (SQuAD form) or xx=PAIRS.jsonl or xx=PAIRS.tsv (query, passage, label) or "
    "xx=phrasebook?size=600 or xx=FOLDER (InsuranceQA), once a language; also with ?size=600&seed=0"
)
"""The forms of a spec, for help and messages."""

Pairs = QuestionAnswering | PooledQuestions | AlignedPairs
"""Content of files of questions or pairs in several languages."""

Split = Literal["train", "dev", "test"]

_TABLES = (".jsonl", ".tsv")
_COLUMNS = ("query", "passage", "label")
_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "False": 0, "True": 1}
_OPTIONS = {"split": PHRASEBOOK_OPTIONS["split"]}


def is_pair_spec(spec: str) -> bool:
    """Return whether ``spec`` names one language, as ``en=xquad.en.json`` does, and ``de-en=pairs.tsv`` does not."""
    return len(split_spec(spec).languages) == 1


@dataclass(frozen=True)
class PairData:
    """Pairs read from specs.

    Attributes:
        train: Pairs to train on, negatives included: :class:`AlignedPairs`, or for XPI a data set of labeled pairs.
        dev: Pools to choose the best checkpoint by; ``None`` if none were to be held out.
    """

    train: Any
    dev: CandidatePools | None


def load_pair_specs(
    specs: Iterable[str],
    *,
    dev: Iterable[str] | None = None,
    dev_share: float = 0.1,
    test_share: float = 0.0,
    negatives_per_positive: int | None = None,
    seed: int = 0,
) -> PairData:
    """Load the aligned pairs that the specs name, and set pools aside to choose the best checkpoint by.

    Args:
        specs: ``en=xquad.en.json`` and the like, all of one form, one for each language; ``en=phrasebook`` is its
            training split.
        dev: Specs of the development set, then used whole, with nothing held out of ``specs`` for it; of the
            phrasebook its development split.
        dev_share: Else the share of the articles (SQuAD form) or queries (labeled files) held out; 0 for none.
        test_share: A share held out of both, which :func:`load_pool_specs` finds with the same shares and seed.
        negatives_per_positive: Drawn for each relevant pair, of InsuranceQA from the question's pool; by default 1, or
            none where the files label negatives.
        seed: Seed of shares and negatives.
    Raises:
        FileNotFoundError: If a file is not there.
        ValueError: For malformed specs, faulty files, shares that leave nothing; as the readers of each form.
    """
    data = read_pair_specs(parse_pair_specs(specs))
    dev = list(dev or ())
    parts = cut_pairs(data, 0.0 if dev else dev_share, test_share, seed)
    train = parts["train"]
    if negatives_per_positive is None:
        negatives_per_positive = 0 if isinstance(train, AlignedPairs) and 0 in train.labels else 1
    if isinstance(train, AlignedPairs):
        pairs = with_negatives(train, negatives_per_positive=negatives_per_positive, seed=seed)
    else:
        pairs = train.aligned_pairs(negatives_per_positive=negatives_per_positive, seed=seed)
    if dev:
        return PairData(pairs, load_pool_specs(dev, phrasebook_split="dev", seed=seed))
    return PairData(pairs, pools_of(parts["dev"], seed=seed) if "dev" in parts else None)


def load_pool_specs(
    specs: Iterable[str],
    *,
    split: Split | None = None,
    phrasebook_split: Split = "test",
    dev_share: float = 0.1,
    test_share: float = 0.2,
    query_languages: Iterable[str] | None = None,
    passage_languages: Iterable[str] | None = None,
    max_candidates: int | None = None,
    without_relevant: WithoutRelevant = "exclude",
    seed: int = 0,
) -> CandidatePools:
    """Load test pools of the same specs, or of one ``xx=FOLDER`` with a retrieval set whose passages are in ``xx``.

    Args:
        specs: As :func:`load_pair_specs`, or one folder, see
            :func:`~st_xling.data.reranking.pools.read_retrieval`.
        split: The part to take, cut as :func:`load_pair_specs` cuts with the same shares and seed; by default all. Of
            the phrasebook and InsuranceQA, whose splits are there already: the split, where the specs name none.
        phrasebook_split: Of these two, where neither ``split`` nor the specs name one.
        dev_share, test_share: Of the cut.
        query_languages: To draw from (folder: to read); by default all.
        passage_languages: To share the candidates among; by default all.
        max_candidates: Draw so many for each query; relevant ones stay.
        without_relevant: What becomes of queries without a relevant candidate.
        seed: Of the cut, the languages and the draws.
    Raises:
        FileNotFoundError, ValueError: As :func:`load_pair_specs`.
    """
    parsed = parse_pair_specs(specs)
    of_pools: dict[str, Any] = {
        "query_languages": query_languages,
        "max_candidates": max_candidates,
        "without_relevant": without_relevant,
        "seed": seed,
    }
    # One folder that is not InsuranceQA holds a retrieval set.
    if len(parsed) == 1 and not _has_splits(parsed) and (one := next(iter(parsed.values()))).path.is_dir():
        if split or passage_languages:
            raise ValueError(f"{one.path} is a test set: it takes no split and no passage languages.")
        return read_retrieval(
            one.path, language=next(iter(parsed)), sample=one.sample, **of_pools, **one.reader_options
        )
    data = read_pair_specs(parsed, split=split or phrasebook_split)
    # What comes without splits of its own is cut as in training, so that the part is the one that was held out there.
    if split is not None and not _has_splits(parsed):
        parts = cut_pairs(data, dev_share, test_share, seed)
        if split not in parts:
            raise ValueError(f"expected a split out of {', '.join(parts)}: got {split!r}; give it a share above 0.")
        data = parts[split]
    return pools_of(data, passage_languages=passage_languages, **of_pools)


def load_xpi_specs(
    specs: Iterable[str],
    *,
    dev: Iterable[str] | None = None,
    size: int | None = None,
    negatives_per_positive: int | None = None,
    skip_bad_lines: bool = False,
    seed: int = 0,
) -> PairData:
    """Load the parallel text that the specs name and make XPI's mixed-language set of it.

    Args:
        specs: As :func:`~st_xling.data.read.load_data_specs` takes them.
        dev: Specs of the development set; else rows are held out, as :func:`~st_xling.data.holdout.hold_out` does.
        size: Rows to draw.
        negatives_per_positive: By default 1.
        skip_bad_lines: Drop faulty lines, with a warning.
        seed: Seed of all draws.
    Raises:
        FileNotFoundError, ValueError: As the functions named.
    """
    data = load_data_specs(specs, skip_bad_lines=skip_bad_lines)
    if dev:
        held_out = load_data_specs(dev, split="dev", skip_bad_lines=skip_bad_lines)
    else:
        data, held_out = hold_out(data)
    each = 1 if negatives_per_positive is None else negatives_per_positive
    train = xpi_pairs_from_parallel(data, size=size, negatives_per_positive=each, seed=seed)
    return PairData(train, parallel_pools(held_out, seed=seed) if held_out else None)


def load_judging_texts(specs: Iterable[str], *, skip_bad_lines: bool = False) -> dict[str, Texts]:
    """Load the queries and relevant passages of test pools, and the texts of other evaluation sets.

    Args:
        specs: ``zh=xquad.zh.json`` and the like, each read for itself (see
            :func:`load_pool_specs`); or what
            :func:`~st_xling.data.leak.load_evaluation_specs` takes.
        skip_bad_lines: Drop faulty lines of pair files, with a warning.
    Returns:
        Name → sentences or pairs.
    Raises:
        FileNotFoundError, ValueError: As the functions named.
    """
    texts: dict[str, Texts] = {}
    others = []
    for spec in specs:
        if not is_pair_spec(spec):
            others.append(spec)
            continue
        [(language, parsed)] = parse_pair_specs([spec]).items()
        # One candidate at the most: what is relevant stays, and of the rest nothing is looked for.
        pools = load_pool_specs([spec], max_candidates=1, without_relevant="keep")
        texts |= {f"{language}={parsed.path.name} {kind}": column for kind, column in pool_texts(pools).items()}
    return {**(load_evaluation_specs(others, skip_bad_lines=skip_bad_lines) if others else {}), **texts}


def parse_pair_specs(specs: Iterable[str]) -> dict[str, DataSpec]:
    """Return the parsed specs by language.

    Raises:
        ValueError: If a spec is malformed, a language named twice, options are unknown or differ between languages,
            whose rows would then not be aligned, or there is no spec.
    """
    parsed: dict[str, DataSpec] = {}
    for spec in specs:
        one = parse_spec(spec, _OPTIONS, languages=1, forms=FORMS)
        if one.languages[0] in parsed:
            raise ValueError(f"expected {FORMS}: got the language a second time in {spec!r}.")
        parsed[one.languages[0]] = one
    if not parsed:
        raise ValueError(f"expected at least one data spec, got none; pass {FORMS}.")
    first, *others = parsed.values()
    if any(other.options != first.options for other in others):
        got = ", ".join(one.text for one in parsed.values())
        raise ValueError(f"the same pairs in every language take the same ?size, split and seed: got {got}.")
    return parsed


def _has_splits(parsed: Mapping[str, DataSpec]) -> bool:
    """Return whether the data has splits of its own: the phrasebook, InsuranceQA."""
    return any(one.is_phrasebook or is_insurance_qa(one.path) for one in parsed.values())


def read_pair_specs(parsed: Mapping[str, DataSpec], *, split: str = "train") -> Pairs:
    """Read what the specs name, in every language; errors as the readers of each form.

    Args:
        parsed: Of :func:`parse_pair_specs`; ``?size=N&seed=S`` draws so many questions, each with all its rows.
        split: Of the phrasebook and InsuranceQA, where the specs name none; files have none.
    """
    first = next(iter(parsed.values()))
    if all(one.is_phrasebook for one in parsed.values()):
        return phrase_questions(first, parsed, split=split)
    paths = {language: one.path for language, one in parsed.items()}
    sample, where = first.sample, ", ".join(spec.text for spec in parsed.values())
    if all(map(is_insurance_qa, paths.values())):
        pooled = read_insurance_qa(paths, split=first.options.get("split", split))
        return pooled.select(sample.places(len(pooled), where))
    if "split" in first.options:
        raise ValueError(f"{where}: split is for folders of InsuranceQA; leave it out.")
    for path in paths.values():
        if not path.is_file():
            raise FileNotFoundError(describe_missing(path))
    endings = {_kind(path) for path in paths.values()}
    if endings == {".json"}:
        questions = read_question_answering(paths)
        if sample.size is None:
            return questions
        return questions.only_questions(sample.places(len(questions.question_ids), where))
    if not endings <= set(_TABLES):
        raise ValueError(f"expected {FORMS}, all of one form: got files ending in {', '.join(sorted(endings))}.")
    pairs = read_labeled(paths)
    if sample.size is None:
        return pairs
    # Whole queries, numbered in the order of the file: half of a query's candidates would be another test.
    classes = same_text_classes(list(pairs.queries.values()))
    return pairs.select(np.flatnonzero(np.isin(classes, sample.places(int(classes.max()) + 1, where))))


def cut_pairs(data: Pairs, dev_share: float, test_share: float, seed: int) -> Mapping[str, Pairs]:
    """Divide into a training, development and test part, by article or by query; those of a share above 0.

    Args:
        data: What the files hold.
        dev_share: Of the articles, or of the queries that read alike in no language.
        test_share: The same; dealt first, so that it stays what it is however the rest is cut.
        seed: Of the shuffle.
    Raises:
        ValueError: Shares below 0, or that leave nothing to train on; fewer articles or queries than parts.
    """
    shares = {"train": 1 - dev_share - test_share, "dev": dev_share, "test": test_share}
    if min(shares.values()) < 0 or shares["train"] < 1e-9:
        raise ValueError(
            f"dev_share and test_share must be 0 or more and leave something: got {dev_share} and {test_share}."
        )
    shares = {name: share for name, share in shares.items() if share > 0}
    if isinstance(data, QuestionAnswering):
        return data.split(shares, seed=seed)
    classes = same_text_classes(list(data.queries.values()))
    parts = deal(len(np.unique(classes)), shares, seed)
    return {name: data.select(np.flatnonzero(np.isin(classes, numbers))) for name, numbers in parts.items()}


def pools_of(data: Pairs, **options: Any) -> CandidatePools:
    """Make pools of pairs of any form; options as of :func:`~st_xling.data.reranking.pools.candidate_pools`."""
    if not isinstance(data, AlignedPairs):
        return data.pools(**options)
    pools = pools_of_pairs(data, candidates="own", **options)
    # Rows that are no candidate lists (one passage a query) leave nothing to rank: then every passage is a candidate.
    if 2 * sum(len(pool.passages) > 1 for pool in pools) < len(pools):
        pools = pools_of_pairs(data, candidates="all", **options)
    return pools


def read_labeled(paths: Mapping[str, str | Path]) -> AlignedPairs:
    """Read the same pairs from one file a language; line ``i`` of each has the same meaning.

    JSON lines have the keys ``query``, ``passage`` and ``label``; tab-separated lines these three columns, under a
    header of these names or none, and quotes are text. A label is 0 or 1.

    Args:
        paths: Language → file.
    Raises:
        FileNotFoundError: A file is not there.
        ValueError: Faulty lines, those of all files together; files that differ in length (the message names languages
            and lengths) or in labels. No line is skipped: the rest would not be aligned.
    """
    faults = FaultLog(can_skip=False)
    read = {language: list(_labeled_rows(Path(path), faults)) for language, path in paths.items()}
    faults.finalize()
    # Rows of all files must be there and mean the same: a line more or less would shift all that follow.
    lengths = {len(rows) for rows in read.values()}
    if len(lengths) > 1 or 0 in lengths:
        got = ", ".join(f"{len(rows)} in {language} ({paths[language]})" for language, rows in read.items())
        raise ValueError(f"expected the same pairs in every language, row by row: got {got}; align the files first.")
    columns = {language: list(zip(*rows)) for language, rows in read.items()}
    first, *others = columns
    for language in others:
        apart = np.flatnonzero(np.array(columns[first][2]) != np.array(columns[language][2])).tolist()
        if apart:
            raise ValueError(
                f"{paths[first]} and {paths[language]} differ in the labels of rows {listed_rows(apart)}, counted "
                "from 0: a pair and its translation have one label; are the rows aligned?"
            )
    queries, passages = ({language: column[place] for language, column in columns.items()} for place in (0, 1))
    return AlignedPairs(queries, passages, columns[first][2])


def _kind(path: str | Path) -> str:
    """Return the ending of a file, whatever it is packed with."""
    return file_ending(unpacked_name(path))


def _labeled_rows(path: Path, faults: FaultLog) -> Iterator[tuple[str, str, int]]:
    for number, row in named_cells(path, [[name] for name in _COLUMNS], 3, faults):
        *texts, label = row
        bad = [name for name, text in zip(_COLUMNS, texts) if not isinstance(text, str) or is_blank(text)]
        if str(label) not in _LABELS:
            faults.add(path, number, "label outside {0, 1}", f"got {label!r}")
        if bad:
            faults.add(path, number, "empty side", ", ".join(bad))
        elif str(label) in _LABELS:
            yield texts[0], texts[1], _LABELS[str(label)]
