"""``st-xling train ir`` and ``ir-…``: questions with their passages, and parallel text, to a retriever."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from st_xling.training import TrainingResult
    from st_xling.training.leak_check import OnLeak

_OF_OTHERS = (
    "stream",
    "pivot",
    "mono",
    "lora",
    "lora_keep",
    "mini_batch_size",
    "memory_budget",
)
_OWN = ("parallel", "others", "encoders")


def add_arguments(train: argparse.ArgumentParser) -> None:
    """Add what only retrievers' recipes take."""
    group = train.add_argument_group(
        "recipes of retrievers (ir, ir-semacl, ir-langcl, ir-semacl-langcl)",
        "--data queries=PATH: queries with passages (and hard negatives: columns negative_1, negative_2, …, or "
        "?columns=query,answer,negative), or a folder in the layout of BEIR, Mr.TyDi (?negatives=1) or MIRACL, or "
        "queries=phrasebook?size=2000; --dev xx=DIR: such folders, or xx=phrasebook, to choose the best checkpoint by",
    )
    group.add_argument("--parallel", action="append", metavar="SPEC", help="parallel text, as --data of other recipes")
    group.add_argument(
        "--others",
        action="append",
        metavar="XX=PATH",
        help="text without translations: lines, passages (.jsonl) or phrasebook",
    )
    group.add_argument(
        "--encoders",
        choices=("shared", "separate"),
        help="separate (default): one for queries, one for passages; or one for both",
    )


def takes(recipe: str) -> bool:
    """Whether a recipe's name or file is a retriever's."""
    from st_xling.training.retriever import is_retrieval_recipe

    return is_retrieval_recipe(recipe)


def refuse(arguments: argparse.Namespace) -> None:
    """Raise ``ValueError`` for what only retrievers' recipes take."""
    _refuse(arguments, _OWN, "is for the recipes of retrievers (ir, …): got")


def run(
    arguments: argparse.Namespace, overrides: dict[str, Any], tiny: dict[str, Any], *, on_leak: OnLeak
) -> TrainingResult:
    """Train, in this process.

    Args:
        arguments: Of ``st-xling train``.
        overrides: The recipe's keys that the flags set, dotted.
        tiny: Options of ``--tiny``, checked.
        on_leak: What to do about text that judges the model.
    """
    from st_xling.data import load_data_specs, load_evaluation_specs
    from st_xling.data.retrieval import load_query_passage_specs
    from st_xling.data.retrieval.others import read_all_others
    from st_xling.data.retrieval.question_tables import negative_columns
    from st_xling.training.retriever import RetrievalSources, load_retrieval_recipe, train_retrieval
    from st_xling.training.run_folder import RunFolder

    _refuse(arguments, _OF_OTHERS, "is not for retrievers: got the recipe")
    RunFolder(arguments.out, resume=arguments.resume, overwrite=arguments.overwrite, start=arguments.model).check()
    chosen = {} if arguments.encoders is None else {"retrieval.encoders": arguments.encoders}
    recipe = load_retrieval_recipe(arguments.recipe, tiny=arguments.model == "tiny", overrides=chosen | overrides)
    skip = {"skip_bad_lines": arguments.skip_bad_lines}
    sources = RetrievalSources(
        queries=load_query_passage_specs(arguments.data, **skip),
        parallel=load_data_specs(arguments.parallel, **skip) if arguments.parallel else {},
        others=read_all_others(arguments.others or (), **skip),
    )
    for role in ("queries", "parallel", "others"):
        for name, part in getattr(sources, role).items():
            wrong = len(negative_columns(part.column_names))
            more = f", each with {wrong} hard negatives" if wrong else ""
            print(f"{role} {name}: {len(part):,} {'sentences' if role == 'others' else 'pairs'}{more}", file=sys.stderr)
    return train_retrieval(
        recipe,
        sources,
        arguments.out,
        model=arguments.model,
        tiny=tiny,
        evaluator=_evaluator(arguments),
        evaluation=load_evaluation_specs(arguments.check_leak, **skip),
        on_leak=on_leak,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        command=arguments.command_line,
    )


def _evaluator(arguments: argparse.Namespace) -> Any:
    """What ``--dev`` asks for; without it the last checkpoint is kept."""
    if not arguments.dev or arguments.dev == ["none"]:
        return None
    from st_xling.data.retrieval import load_retrieval_specs
    from st_xling.evaluation.retrieval import RetrievalEvaluator

    sets = load_retrieval_specs(arguments.dev, split="dev", skip_bad_lines=arguments.skip_bad_lines)
    return RetrievalEvaluator(sets, name="dev", write_csv=False)


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name) not in (None, False, [])]
    if given:
        raise ValueError(f"{given[0]} {why} {arguments.recipe}; leave it out.")
