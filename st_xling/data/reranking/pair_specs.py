"""Data specs of re-ranking: what the command line's ``--data`` may say for the recipes ``xpr-*``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from st_xling.data.reranking.aligned import AlignedPairs
from st_xling.data.reranking.candidate_pool import CandidatePools
from st_xling.data.reranking.negatives import with_negatives
from st_xling.data.reranking.pair_forms import read_pair_specs
from st_xling.data.reranking.pair_parts import cut_pairs, pools_of
from st_xling.data.reranking.pool_specs import load_pool_specs


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
        specs: ``en=xquad.en.json`` and the like, all of one form, one for each language; ``en=phrasebook`` is its
            training split.
        dev: Specs of the development set, then used whole, with nothing held out of ``specs`` for it; of the
            phrasebook its development split.
        dev_share: Else the share of the articles (SQuAD form) or queries (labelled files) held out; 0 for none.
        test_share: A share left out of both, which :func:`load_pool_specs` finds with the same shares and seed.
        negatives_per_positive: Drawn for each relevant pair, of InsuranceQA from the question's pool; by default 1, or
            none where the files label negatives.
        hard_negatives: How many of them come from the same article (SQuAD form).
        seed: Of shares and negatives.
    Raises:
        FileNotFoundError: A file is not there.
        ValueError: Malformed specs, faulty files, shares that leave nothing; as the readers of each form.
    """
    data = read_pair_specs(specs)
    dev = list(dev or ())
    parts = cut_pairs(data, 0.0 if dev else dev_share, test_share, seed)
    train = parts["train"]
    drawn = 1 if negatives_per_positive is None else negatives_per_positive
    if not isinstance(train, AlignedPairs):
        pairs = train.aligned_pairs(negatives_per_positive=drawn, hard_negatives=hard_negatives, seed=seed)
    else:
        if negatives_per_positive is None and 0 in train.labels:
            drawn = 0
        pairs = with_negatives(train, negatives_per_positive=drawn, hard_negatives=hard_negatives, seed=seed)
    if dev:
        return PairData(pairs, load_pool_specs(dev, phrasebook_split="dev", seed=seed))
    return PairData(pairs, pools_of(parts["dev"], seed=seed) if "dev" in parts else None)
