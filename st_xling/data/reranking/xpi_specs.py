"""Data specs of XPI: parallel text, or labelled paraphrases in several languages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from st_xling.data.holdout import hold_out
from st_xling.data.reranking.candidate_pool import CandidatePools
from st_xling.data.reranking.labelled_files import ENDINGS
from st_xling.data.reranking.pair_forms import is_pair_spec, parse_pair_specs
from st_xling.data.reranking.pair_specs import load_pair_specs
from st_xling.data.reranking.parallel_pools import parallel_pools
from st_xling.data.reranking.phrase_questions import are_phrasebooks
from st_xling.data.reranking.xpi import MonoPositives, xpi_pairs, xpi_pairs_from_parallel
from st_xling.data.specs import load_data_specs
from st_xling.utils.text import file_ending

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class XpiData:
    """What the specs gave.

    Attributes:
        train: Labelled pairs of :func:`~st_xling.data.reranking.xpi.xpi_pairs`.
        dev: Pools to choose the best checkpoint by; ``None`` if none could be held out.
    """

    train: Dataset
    dev: CandidatePools | None


def load_xpi_specs(
    specs: Iterable[str],
    *,
    dev: Iterable[str] | None = None,
    dev_share: float = 0.1,
    size: int | None = None,
    negatives_per_positive: int | None = None,
    mono_positives: MonoPositives = "identical",
    skip_bad_lines: bool = False,
    seed: int = 0,
) -> XpiData:
    """Reads the text that the specs name and makes XPI's mixed-language set of it.

    Args:
        specs: Parallel text, as :func:`~st_xling.data.specs.load_data_specs` takes it; or labelled pairs of sentences,
            ``en=PAIRS.tsv``, once a language (query and passage are the two sentences). ``en=phrasebook`` and
            ``zh=phrasebook`` are parallel text too, ``zh-en=phrasebook``.
        dev: Specs of the development set, of the same form; else rows are held out, for parallel text as
            :func:`~st_xling.data.holdout.hold_out` does.
        dev_share: Share of the first sentences held out of labelled pairs.
        size: Rows of parallel text to draw.
        negatives_per_positive: By default 1; of labelled pairs none where the files label negatives.
        mono_positives: Of parallel text, see :func:`~st_xling.data.reranking.xpi.xpi_pairs_from_parallel`.
        skip_bad_lines: Drop faulty lines of parallel text, with a warning.
        seed: Of all draws.
    Raises:
        FileNotFoundError, ValueError: As the functions named.
    """
    specs, dev = _parallel_phrases(specs), _parallel_phrases(dev or ())
    labelled = {is_pair_spec(spec) for spec in (*specs, *dev)}
    if len(labelled) > 1:
        raise ValueError(
            "expected parallel text (xx-yy=PATH) or labelled pairs (xx=PATH), not both: "
            f"got {', '.join([*specs, *dev])}."
        )
    if labelled == {True}:
        other = [
            spec
            for spec in (*specs, *dev)
            if {*map(file_ending, parse_pair_specs([spec]).paths.values())} - set(ENDINGS)
        ]
        if other or size is not None:
            raise ValueError(
                f"paraphrases come as {', '.join(ENDINGS)}, and whole: got {', '.join(other) or f'size={size}'}; "
                "questions and their paragraphs are no paraphrases, train xpr-mixed on them."
            )
        pairs = load_pair_specs(specs, dev=dev, dev_share=dev_share, negatives_per_positive=0, seed=seed)
        drawn = int(0 not in pairs.train.labels) if negatives_per_positive is None else negatives_per_positive
        return XpiData(xpi_pairs(pairs.train, negatives_per_positive=drawn, seed=seed), pairs.dev)
    data = load_data_specs(specs, skip_bad_lines=skip_bad_lines)
    held = load_data_specs(dev, split="dev", skip_bad_lines=skip_bad_lines) if dev else {}
    if not dev:
        data, held = hold_out(data)
    train = xpi_pairs_from_parallel(
        data,
        size=size,
        negatives_per_positive=1 if negatives_per_positive is None else negatives_per_positive,
        mono_positives=mono_positives,
        seed=seed,
    )
    return XpiData(train, parallel_pools(held, seed=seed) if held else None)


def _parallel_phrases(specs: Iterable[str]) -> list[str]:
    """The same specs, but the phrasebook in single languages as pairs of each with the first."""
    specs = list(specs)
    if len(specs) < 2 or not all(map(is_pair_spec, specs)) or not are_phrasebooks(parse_pair_specs(specs).paths):
        return specs
    books = parse_pair_specs(specs).paths
    if len(set(books.values())) > 1:
        raise ValueError(
            f"phrases are the same in every language, so size, split and seed must be, too: got {', '.join(specs)}."
        )
    (first, _), *others = books.items()
    return [f"{language}-{first}={book}" for language, book in others]
