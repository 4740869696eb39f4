"""``st-xling train xpi`` and ``xpr-…``: translated query-passage pairs, or parallel text, to a cross-encoder."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from st_xling.data.reranking.candidate_pool import CandidatePools
    from st_xling.training.leak_check import OnLeak
    from st_xling.training.reranker import CrossEncoderRecipe, CrossEncoderResult

_OF_ENCODERS = ("stream", "pivot", "mono", "pooling", "mini_batch_size", "memory_budget")
_OWN = ("xpi_data", "xpi_dev", "xpi_steps", "xpi_epochs", "dev_share", "test_share")


def add_arguments(train: argparse.ArgumentParser) -> None:
    """Add what only cross-encoders' recipes take."""
    group = train.add_argument_group("recipes of cross-encoders (xpi, xpr-merged, xpr-cascade, xpr-mixed)")
    group.add_argument(
        "--xpi-data", action="append", metavar="SPEC", help="parallel text: XPI first, then the recipe with a new head"
    )
    group.add_argument("--xpi-dev", action="append", metavar="SPEC", help="development pairs of XPI, or none")
    group.add_argument("--xpi-steps", type=int, metavar="N", help="steps of XPI (--set xpi.training.… for the rest)")
    group.add_argument("--xpi-epochs", type=float, metavar="N", help="epochs of XPI")
    group.add_argument("--dev-share", type=float, metavar="SHARE", help="articles or queries held out (default 0.1)")
    group.add_argument("--test-share", type=float, metavar="SHARE", help="… and left out, to be tested on later")


def takes(recipe: str) -> bool:
    """Whether a recipe's name or file is a cross-encoder's; ``ValueError`` for a name that no recipe has."""
    from st_xling.training.recipe import recipe_kind

    return recipe_kind(recipe) == "reranker"


def refuse(arguments: argparse.Namespace) -> None:
    """Raise ``ValueError`` for what only cross-encoders' recipes take."""
    _refuse(arguments, _OWN, "is for the recipes of cross-encoders: got the recipe of an encoder")


def run(
    arguments: argparse.Namespace, overrides: dict[str, Any], tiny: dict[str, Any], *, on_leak: OnLeak = "report"
) -> CrossEncoderResult:
    """Train, in this process.

    Args:
        arguments: Of ``st-xling train``.
        overrides: The recipe's keys that the flags set, dotted.
        tiny: Options of ``--tiny``, checked.
        on_leak: What to do about text that will judge the model.
    """
    from st_xling.data.reranking.judging_texts import load_judging_texts
    from st_xling.data.reranking.pair_specs import load_pair_specs
    from st_xling.data.reranking.strategies import STRATEGIES
    from st_xling.training.reranker import XPI, load_cross_encoder_recipe, train_cross_encoder
    from st_xling.training.run_folder import RunFolder

    _refuse(arguments, _OF_ENCODERS, "is for encoders: got the recipe of a cross-encoder")
    RunFolder(arguments.out, resume=arguments.resume, overwrite=arguments.overwrite, start=arguments.model).check()
    before = {"max_steps": arguments.xpi_steps, "num_train_epochs": arguments.xpi_epochs}
    overrides = {f"xpi.training.{key}": value for key, value in before.items() if value is not None} | overrides
    recipe = load_cross_encoder_recipe(
        arguments.recipe, tiny=arguments.model == "tiny", xpi=bool(arguments.xpi_data), overrides=overrides
    )
    given: dict[str, Any] = {}
    if recipe.strategy == XPI:
        given["stages"], given["evaluator"] = _xpi(recipe, arguments.data, arguments.dev, arguments)
    else:
        shares = {"dev_share": arguments.dev_share, "test_share": arguments.test_share}
        dev = _dev(arguments.dev, "--dev")
        data = load_pair_specs(
            arguments.data,
            dev=dev or None,
            negatives_per_positive=recipe.negatives.per_positive,
            hard_negatives=recipe.negatives.hard,
            # Not the recipe's seed: what is held out stays the same, whatever the seed of the training.
            **({"dev_share": 0.0} if dev == [] else {})
            | {key: share for key, share in shares.items() if share is not None},
        )
        _tell(recipe.name, len(data.train), data.dev)
        given["stages"] = STRATEGIES[recipe.strategy](data.train, seed=recipe.training.seed)
        given["evaluator"] = _evaluator(data.dev)
    if recipe.xpi is not None:
        [given["xpi"]], given["xpi_evaluator"] = _xpi(recipe.xpi, arguments.xpi_data, arguments.xpi_dev, arguments)
    return train_cross_encoder(
        recipe,
        out=arguments.out,
        model=arguments.model,
        tiny=tiny,
        evaluation=load_judging_texts(arguments.check_leak, skip_bad_lines=arguments.skip_bad_lines),
        on_leak=on_leak,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        command=arguments.command_line,
        **given,
    )


def _xpi(
    recipe: CrossEncoderRecipe, specs: list[str], dev: list[str] | None, arguments: argparse.Namespace
) -> tuple[list[Any], Any]:
    """The one stage of XPI, and what judges it."""
    from st_xling.data.reranking.xpi_specs import load_xpi_specs

    held = _dev(dev, "--dev")
    data = load_xpi_specs(
        specs,
        dev=held or None,
        size=recipe.sentences.size,
        negatives_per_positive=recipe.negatives.per_positive,
        mono_positives=recipe.sentences.mono_positives,  # type: ignore[arg-type]
        skip_bad_lines=arguments.skip_bad_lines,
    )
    pools = None if held == [] else data.dev
    _tell(recipe.name, len(data.train), pools)
    return [data.train], _evaluator(pools)


def _dev(given: list[str] | None, flag: str) -> list[str] | None:
    """Specs; ``[]`` for ``none``, ``None`` where the flag is not given."""
    if given == ["none"]:
        return []
    if given and "none" in given:
        raise ValueError(f"{flag} none means no development pairs: got {', '.join(given)}; leave one out.")
    return given


def _evaluator(pools: CandidatePools | None) -> Any:
    from st_xling.evaluation import RerankingEvaluator

    return None if not pools else RerankingEvaluator(pools, name="dev", write_csv=False)


def _tell(name: str, pairs: int, pools: CandidatePools | None) -> None:
    print(f"{name}: {pairs:,} pairs, {len(pools or ()):,} queries for development", file=sys.stderr)


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name) not in (None, False, [])]
    if given:
        raise ValueError(f"{given[0]} {why} {arguments.recipe}; leave it out.")
