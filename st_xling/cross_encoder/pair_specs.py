"""Data specs of re-ranking: what the command line's ``--data`` may say for the recipes ``xpr-*`` and for test pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from st_xling.cross_encoder.aligned import AlignedPairs, known_languages
from st_xling.cross_encoder.candidate_pools import WithoutRelevant, pools_of_pairs
from st_xling.cross_encoder.negatives import with_negatives
from st_xling.cross_encoder.pair_forms import parse_pair_specs, read_pair_specs
from st_xling.cross_encoder.pools import CandidatePools
from st_xling.cross_encoder.question_answering import QuestionAnswering
from st_xling.cross_encoder.retrieval_files import read_retrieval
from st_xling.cross_encoder.same_text import same_text_classes
from st_xling.cross_encoder.shares import share_counts

Split = Literal["train", "dev", "test"]


@dataclass(frozen=True)
class PairData:
    """What the specs gave.

    Attributes:
        train: Pairs to train on, negatives included.
        dev: Pools to choose the best checkpoint by; ``None`` if none were to be held out.
    """

    train: AlignedPairs
    dev: CandidatePools | None


def load_pair_specs(
    specs: Iterable[str],
    *,
    dev: Iterable[str] | None = None,
    dev_share: float = 0.1,
    test_share: float = 0.0,
    negatives_per_positive: int | None = None,
    hard_negatives: int = 0,
    seed: int = 0,
) -> PairData:
    """Reads the aligned pairs that the specs name, and sets pools aside to choose the best checkpoint by.

    Args:
        specs: ``en=xquad.en.json`` and the like, all of one form, one for each language.
        dev: Specs of the development set, then used whole, with nothing held out of ``specs`` for it.
        dev_share: Else the share of the articles (SQuAD form) or queries (labelled files) held out; 0 for none.
        test_share: A share left out of both, which :func:`load_pool_specs` finds with the same shares and seed.
        negatives_per_positive: Drawn for each relevant pair; by default 1, or none where the files label negatives.
        hard_negatives: How many of them come from the same article (SQuAD form).
        seed: Of shares and negatives.
    Raises:
        FileNotFoundError: A file is not there.
        ValueError: Malformed specs, faulty files, shares that leave nothing; as the readers of each form.
    """
    data = read_pair_specs(specs)
    dev = list(dev or ())
    parts = _parts(data, 0.0 if dev else dev_share, test_share, seed)
    train = parts["train"]
    drawn = 1 if negatives_per_positive is None else negatives_per_positive
    if isinstance(train, QuestionAnswering):
        pairs = train.aligned_pairs(negatives_per_positive=drawn, hard_negatives=hard_negatives, seed=seed)
    else:
        if negatives_per_positive is None and 0 in train.labels:
            drawn = 0
        pairs = with_negatives(train, negatives_per_positive=drawn, hard_negatives=hard_negatives, seed=seed)
    if dev:
        return PairData(pairs, load_pool_specs(dev, seed=seed))
    return PairData(pairs, _pools(parts["dev"], seed=seed) if "dev" in parts else None)


def load_pool_specs(
    specs: Iterable[str],
    *,
    split: Split | None = None,
    dev_share: float = 0.1,
    test_share: float = 0.2,
    query_languages: Iterable[str] | None = None,
    passage_languages: Iterable[str] | None = None,
    max_candidates: int | None = None,
    without_relevant: WithoutRelevant = "exclude",
    seed: int = 0,
) -> CandidatePools:
    """Test pools of the same specs, or of one ``xx=FOLDER`` with a retrieval set whose passages are in ``xx``.

    Args:
        specs: As :func:`load_pair_specs`, or one folder, see
            :func:`~st_xling.cross_encoder.retrieval_files.read_retrieval`.
        split: The part to take, cut as :func:`load_pair_specs` cuts with the same shares and seed; by default all.
        dev_share, test_share: Of the cut.
        query_languages: To toss among (folder: to read); by default all.
        passage_languages: To share the candidates among; by default all.
        max_candidates: Draw so many for each query; relevant ones stay.
        without_relevant: What becomes of queries without a relevant candidate.
        seed: Of the cut, the tosses and the draws.
    Raises:
        FileNotFoundError, ValueError: As :func:`load_pair_specs`.
    """
    specs = list(specs)
    paths = parse_pair_specs(specs)
    if len(paths) == 1 and (folder := next(iter(paths.values()))).is_dir():
        if split or passage_languages:
            raise ValueError(f"{folder} is a test set as it stands: it takes no split and no passage languages.")
        return read_retrieval(
            folder,
            language=next(iter(paths)),
            query_languages=query_languages,
            max_candidates=max_candidates,
            without_relevant=without_relevant,
            seed=seed,
        )
    data = read_pair_specs(specs)
    if split is not None:
        parts = _parts(data, dev_share, test_share, seed)
        if split not in parts:
            raise ValueError(f"expected a split out of {', '.join(parts)}: got {split!r}; give it a share above 0.")
        data = parts[split]
    return _pools(
        data,
        query_languages=query_languages,
        passage_languages=passage_languages,
        max_candidates=max_candidates,
        without_relevant=without_relevant,
        seed=seed,
    )


def _parts(
    data: QuestionAnswering | AlignedPairs, dev_share: float, test_share: float, seed: int
) -> Mapping[str, QuestionAnswering | AlignedPairs]:
    shares = {"train": 1 - dev_share - test_share, "dev": dev_share, "test": test_share}
    if min(shares.values()) < 0 or shares["train"] < 1e-9:
        raise ValueError(
            f"dev_share and test_share must be 0 or more and leave something: got {dev_share} and {test_share}."
        )
    shares = {name: share for name, share in shares.items() if share > 0}
    if isinstance(data, QuestionAnswering):
        return data.split(shares, seed=seed)
    classes = same_text_classes(list(data.queries.values()))
    names = list(shares)[::-1]
    counts = share_counts(len(np.unique(classes)), [shares[name] for name in names])
    order = np.random.default_rng(seed).permutation(sum(counts))
    dealt = dict(zip(names, np.split(order, np.cumsum(counts)[:-1])))
    return {name: data.select(np.flatnonzero(np.isin(classes, dealt[name]))) for name in shares}


def _pools(
    data: QuestionAnswering | AlignedPairs,
    *,
    seed: int,
    query_languages: Iterable[str] | None = None,
    passage_languages: Iterable[str] | None = None,
    max_candidates: int | None = None,
    without_relevant: WithoutRelevant = "exclude",
) -> CandidatePools:
    if isinstance(data, QuestionAnswering):
        return data.pools(
            query_languages=query_languages,
            passage_languages=passage_languages,
            max_candidates=max_candidates,
            without_relevant=without_relevant,
            seed=seed,
        )
    options: dict[str, Any] = {
        "query_languages": None if query_languages is None else known_languages(query_languages, data.languages),
        "passage_languages": None if passage_languages is None else known_languages(passage_languages, data.languages),
        "max_candidates": max_candidates,
        "without_relevant": without_relevant,
        "seed": seed,
    }
    pools = pools_of_pairs(data, candidates="own", **options)
    # Rows that are no candidate lists (one passage a query) leave nothing to rank: then every passage is a candidate.
    if 2 * sum(len(pool.passages) > 1 for pool in pools) < len(pools):
        pools = pools_of_pairs(data, candidates="all", **options)
    return pools
