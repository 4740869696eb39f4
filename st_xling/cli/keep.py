"""``--keep``: save results, thresholds and the card with the model."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from st_xling.evaluation.results import EvaluationResult
    from st_xling.mining.thresholds import PublishedThreshold

logger = logging.getLogger(__name__)


def check_keep(context: typer.Context, *, publishes: bool = False) -> None:
    """Check before the evaluation that ``--keep`` can save its results.

    Args:
        context: Context of the command.
        publishes: Thresholds will be saved as well.
    Raises:
        ValueError: If the model is not a local folder, it is not writable, or saved results in it are broken.
    """
    if context.params["keep"]:
        from st_xling.evaluation.results import read_saved_results
        from st_xling.mining.thresholds import load_published_thresholds

        folder = Path(context.params["model"])
        check_folder(folder, "--keep")
        read_saved_results(folder)
        if publishes:
            load_published_thresholds(folder)


def keep_results(context: typer.Context, task: str, result: EvaluationResult, folder: Path | None = None) -> None:
    """Save results with the model if ``--keep`` is given, and update its card.

    Args:
        context: Context of the command.
        task: One of :data:`~st_xling.hub.card_facts.TASKS`.
        result: Metrics, rows and signature.
        folder: Folder of the model, by default ``MODEL``.
    """
    if context.params["keep"]:
        from st_xling.evaluation.results import SavedResults, save_results
        from st_xling.hub.card import shown_command

        folder = folder or Path(context.params["model"])
        path = save_results(folder, SavedResults.of(task, result, shown_command(context.obj.line)))
        print(f"saved: {path}", file=sys.stderr)
        update_model_card(folder)


def check_folder(folder: Path, option: str) -> None:
    """Raise ``ValueError`` unless ``folder`` is a writable local folder."""
    if not folder.is_dir():
        raise ValueError(
            f"{option} writes into the model's folder: there is no folder {folder}; give a local one, such as a copy "
            "of the Hub's (hf download), or leave the option out."
        )
    try:
        with tempfile.TemporaryFile(dir=folder):  # permissions alone do not tell
            pass
    except OSError as error:
        raise ValueError(
            f"{option} writes into the model's folder: {folder} is not writable ({error.strerror}); use a copy of it, "
            "or leave the option out."
        ) from error


def publish_thresholds(folder: Path, thresholds: Mapping[str, PublishedThreshold]) -> None:
    """Write thresholds, if there are any, into the model's ``mining.json``."""
    if thresholds:
        from st_xling.mining.thresholds import publish_thresholds

        print(f"thresholds for {', '.join(thresholds)}: {publish_thresholds(folder, thresholds)}", file=sys.stderr)


def update_model_card(folder: Path, *, is_new: bool = False) -> None:
    """Write the model's card again, unless someone else wrote the one that is there.

    Args:
        folder: Folder of the model.
        is_new: This command has made the folder, so that a card in it is ours.
    """
    from st_xling.hub import write_card
    from st_xling.hub.card_facts import has_card_of_others

    if has_card_of_others(folder) and not is_new:
        card = folder / "README.md"
        logger.warning("%s was not written by st-xling and is kept; to replace it: st-xling card %s", card, folder)
        return
    try:
        path = write_card(folder)
        if not is_new:  # a new folder is moved to its place afterwards
            print(f"card: {path}", file=sys.stderr)
    except ValueError as error:
        logger.warning("the card was not updated: %s", error)
