"""Data specs of test pools: those that cross-encoders are trained by, or a folder with a retrieval set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from st_xling.data.reranking.candidate_pool import CandidatePools
from st_xling.data.reranking.candidate_pools import WithoutRelevant
from st_xling.data.reranking.pair_forms import parse_pair_specs, read_pair_specs
from st_xling.data.reranking.pair_parts import cut_pairs, pools_of
from st_xling.data.reranking.retrieval_files import read_retrieval
from st_xling.data.spec_options import Sample

Split = Literal["train", "dev", "test"]


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
    """Test pools of the same specs, or of one ``xx=FOLDER`` with a retrieval set whose passages are in ``xx``.

    Args:
        specs: As :func:`load_pair_specs`, or one folder, see
            :func:`~st_xling.data.reranking.retrieval_files.read_retrieval`.
        split: The part to take, cut as :func:`load_pair_specs` cuts with the same shares and seed; by default all. Of
            the phrasebook and InsuranceQA, whose splits are there already: the split, where the specs name none.
        phrasebook_split: Of these two, where neither ``split`` nor the specs name one.
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
    places = parse_pair_specs(specs)
    paths = places.paths
    if len(paths) == 1 and (folder := next(iter(paths.values()))).is_dir() and not places.has_splits:
        options = dict(places.options)
        sample = Sample.pop(options, specs[0])
        if options.keys() - {"split"}:
            raise ValueError(f"{specs[0]}: {', '.join(options)} is for folders of InsuranceQA; leave it out.")
        if split or passage_languages:
            raise ValueError(f"{folder} is a test set as it stands: it takes no split and no passage languages.")
        return read_retrieval(
            folder,
            language=next(iter(paths)),
            query_languages=query_languages,
            max_candidates=max_candidates,
            without_relevant=without_relevant,
            sample=sample,
            seed=seed,
            **options,
        )
    data = read_pair_specs(specs, split=split or phrasebook_split)
    if split is not None and not places.has_splits:
        parts = cut_pairs(data, dev_share, test_share, seed)
        if split not in parts:
            raise ValueError(f"expected a split out of {', '.join(parts)}: got {split!r}; give it a share above 0.")
        data = parts[split]
    return pools_of(
        data,
        query_languages=query_languages,
        passage_languages=passage_languages,
        max_candidates=max_candidates,
        without_relevant=without_relevant,
        seed=seed,
    )
