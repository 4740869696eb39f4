"""``st-xling evaluate``: one task a file."""

from __future__ import annotations

from typing import Any

from st_xling.cli import (
    evaluate_bucc,
    evaluate_precision,
    evaluate_reranking,
    evaluate_retrieval,
    evaluate_tatoeba,
    evaluate_xsim,
)


def add_parser(commands: Any) -> None:
    """Add the sub-command and its tasks to the parsers of ``st-xling``."""
    evaluate = commands.add_parser(
        "evaluate",
        help="judge an encoder or a cross-encoder",
        description="Judge a model by one task: a table, and a signature that says what was measured. Each task's "
        "--help has examples; --keep keeps figures with the model, for its card.",
    )
    tasks = evaluate.add_subparsers(title="what to judge by", required=True, metavar="TASK")
    for task in (
        evaluate_tatoeba,
        evaluate_precision,
        evaluate_bucc,
        evaluate_xsim,
        evaluate_reranking,
        evaluate_retrieval,
    ):
        task.add_parser(tasks)
