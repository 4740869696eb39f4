"""``--keep``: results go into the model's folder, and from there into its card."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from st_xling.evaluation.results import EvaluationResult
    from st_xling.mining.thresholds import PublishedThreshold


logger = logging.getLogger(__name__)


def check_keep(arguments: argparse.Namespace, *, publishes: bool = False) -> None:
    """Raise where results could not be saved, before they are made; nothing without ``--keep``.

    Args:
        arguments: Of the command line.
        publishes: Thresholds will be kept as well.
    Raises:
        ValueError: If the model is no local folder, nothing can be written there, or what it has so far is broken.
    """
    if arguments.keep:
        from st_xling.evaluation.results import read_saved_results
        from st_xling.mining.thresholds import load_published_thresholds

        folder = Path(arguments.model)
        check_folder(folder, "--keep")
        read_saved_results(folder)
        if publishes:
            load_published_thresholds(folder)


def keep(arguments: argparse.Namespace, task: str, result: EvaluationResult) -> None:
    """Save results with the model, as :func:`check_keep` has found possible; nothing without ``--keep``.

    Args:
        arguments: With the command line.
        task: One of :data:`~st_xling.evaluation.results.TASKS`.
        result: Metrics, rows and signature.
    """
    if arguments.keep:
        keep_in(arguments, Path(arguments.model), task, result)


def keep_in(arguments: argparse.Namespace, folder: Path, task: str, result: EvaluationResult) -> None:
    """The same for the folder of one of several models."""
    from st_xling.evaluation.results import SavedResults, save_results
    from st_xling.hub.card import shown_command

    path = save_results(folder, SavedResults.of(task, result, shown_command(arguments.command_line)))
    print(f"kept: {path}", file=sys.stderr)
    renew_card(folder)


def check_folder(folder: Path, option: str) -> None:
    """Raise unless ``folder`` is a local one that can be written in."""
    if not folder.is_dir():
        raise ValueError(
            f"{option} writes into the model's folder: there is no folder {folder}; give a local one, such as a copy "
            "of the Hub's (hf download), or leave the option out."
        )
    try:
        with tempfile.TemporaryFile(dir=folder):  # asked of the file system itself: rights do not tell all
            pass
    except OSError as error:
        raise ValueError(
            f"{option} writes into the model's folder: {folder} cannot be written in ({error.strerror}); take a copy "
            "of it, or leave the option out."
        ) from error


def publish(folder: Path, thresholds: Mapping[str, PublishedThreshold]) -> None:
    """Put thresholds into the model's ``mining.json``, and say so; nothing if there are none."""
    if thresholds:
        from st_xling.mining.thresholds import publish_thresholds

        print(f"thresholds for {', '.join(thresholds)}: {publish_thresholds(folder, thresholds)}", file=sys.stderr)


def renew_card(folder: Path, *, made_here: bool = False) -> None:
    """Make the model's card again, now that there is more to tell; one that others wrote is left, and so is any that
    cannot be made: what is kept stands, and it is said what to do.

    Args:
        folder: Of the model.
        made_here: This command has made the folder, so that no card there is of others.
    """
    from st_xling.hub import write_card
    from st_xling.hub.card_facts import has_card_of_others

    if has_card_of_others(folder) and not made_here:
        logger.warning(
            "%s is not of our making and stays; to replace it: st-xling card %s", folder / "README.md", folder
        )
        return
    try:
        path = write_card(folder)
        if not made_here:  # else the folder is not yet where it will stand
            print(f"card: {path}", file=sys.stderr)
    except ValueError as error:
        logger.warning("the card stays as it was: %s", error)
