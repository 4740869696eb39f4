"""The texts of later tests, for the leak check of a cross-encoder's run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.evaluation_texts import load_evaluation_specs
from st_xling.data.reranking.candidate_pool import pool_texts
from st_xling.data.reranking.pair_forms import is_pair_spec, parse_pair_specs
from st_xling.data.reranking.pool_specs import load_pool_specs

if TYPE_CHECKING:
    from st_xling.data.leak import Texts


def load_judging_texts(specs: Iterable[str], *, skip_bad_lines: bool = False) -> dict[str, Texts]:
    """Queries and relevant passages of test pools, and what an encoder would be tested on.

    Args:
        specs: ``zh=xquad.zh.json`` and the like, each read for itself (see
            :func:`~st_xling.data.reranking.pool_specs.load_pool_specs`); or what
            :func:`~st_xling.data.evaluation_texts.load_evaluation_specs` takes.
        skip_bad_lines: Drop faulty lines of pair files, with a warning.
    Returns:
        Name → sentences or pairs.
    Raises:
        FileNotFoundError, ValueError: As the functions named.
    """
    specs = list(specs)
    others = [spec for spec in specs if not is_pair_spec(spec)]
    found = load_evaluation_specs(others, skip_bad_lines=skip_bad_lines) if others else {}
    for spec in specs:
        if is_pair_spec(spec):
            [(language, path)] = parse_pair_specs([spec]).paths.items()
            # One candidate at the most: what is relevant stays, and of the rest nothing is looked for.
            pools = load_pool_specs([spec], max_candidates=1, without_relevant="keep")
            found |= {f"{language}={Path(path).name} {what}": texts for what, texts in pool_texts(pools).items()}
    return found
