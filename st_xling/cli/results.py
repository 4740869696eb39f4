"""Results of commands: print them, write them as JSON, save them with the model (``--keep``)."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from st_xling.utils.paths import shown_command

if TYPE_CHECKING:
    from st_xling.evaluation.results import EvaluationResult

logger = logging.getLogger(__name__)


def write_results(context: typer.Context, content: Any) -> None:
    """Write ``content`` to the file of ``--json``, or to stdout for ``-``."""
    # Before 0.29, typer has text here, of which it makes a path when it calls the command.
    name = context.params["json"]
    if name is not None and str(name) == "-":
        print(json.dumps(content, ensure_ascii=False, indent=2), file=context.obj.stdout)
    elif name is not None:
        from st_xling.utils.io import write_json

        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content)


def print_results(context: typer.Context, name: str, content: Any, signature: str, table: str) -> None:
    """Print a table of results with its signature, and write the results as JSON."""
    print(table, signature, sep="\n")
    write_results(context, {name: content, "signature": signature})


class FileReport(Protocol):
    """Report of a command that writes files."""

    @property
    def signature(self) -> str:
        """How the files were made."""

    def lines(self) -> Iterable[str]:
        """Return what is printed."""

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` writes."""


def print_report(
    context: typer.Context, report: FileReport, summary: str, also: Mapping[str, Any] | None = None
) -> None:
    """Print the lines of a report and its signature, and write it as JSON.

    ``print`` writes to stderr if stdout has the results.

    Args:
        context: The call.
        report: Metrics of the command.
        summary: What was written, in a few words.
        also: Other results for the JSON.
    """
    out = context.params["out"]
    print(*report.lines(), f"{summary}: {out}", report.signature, sep="\n")
    results = {**report.as_dict(), **(also or {})}
    content: dict[str, Any] = {str(context.info_name): results, "signature": report.signature}
    if context.params["json"]:
        content["command"] = shown_command(context.obj.line)
    write_results(context, content)


@contextmanager
def resumable(can_resume: bool = True) -> Iterator[None]:
    """Tell how to resume when the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        if can_resume:
            print("\nRun the same command again to resume.", file=sys.stderr)
        raise


@contextmanager
def output(context: typer.Context, out: str, work: str | None) -> Iterator[Any]:
    """Return ``--out`` as the library takes it; when the block is interrupted, tell how to resume."""
    has_work_folder = out != "-" or work is not None
    with resumable(has_work_folder):
        yield file_or_stdout(context, out)


def file_or_stdout(context: typer.Context, name: str) -> Any:
    """Return the path of an output, or the binary stream of stdout for ``-``."""
    return context.obj.stdout.buffer if name == "-" else Path(name)


def check_keep(folder: Path, *, publishes: bool = False) -> None:
    """Check before an evaluation that ``--keep`` can save its results.

    Args:
        folder: Folder of the model.
        publishes: Thresholds will be saved as well.

    Raises:
        ValueError: If the model is not a local folder, it is not writable, or saved results in it are broken.
    """
    from st_xling.evaluation.results import read_saved_results
    from st_xling.mining.thresholds import load_published_thresholds

    if not folder.is_dir():
        raise ValueError(
            f"--keep writes into the model's folder: there is no folder {folder}; give a local one, such as a copy of "
            "the Hub's (hf download), or leave the option out."
        )
    try:
        with tempfile.TemporaryFile(dir=folder):  # permissions alone do not tell
            pass
    except OSError as error:
        raise ValueError(
            f"--keep writes into the model's folder: {folder} is not writable ({error.strerror}); use a copy of it, or "
            "leave the option out."
        ) from error
    read_saved_results(folder)
    if publishes:
        load_published_thresholds(folder)


def keep_results(context: typer.Context, task: str, result: EvaluationResult, folder: Path) -> None:
    """Save results with the model, and update its card.

    Args:
        context: Context of the command.
        task: One of :data:`~st_xling.hub.card_facts.TASKS`.
        result: Metrics, rows and signature.
        folder: Folder of the model.
    """
    from st_xling.evaluation.results import SavedResults, save_results

    path = save_results(folder, SavedResults.of(task, result, shown_command(context.obj.line)))
    print(f"saved: {path}", file=sys.stderr)
    update_model_card(folder)


def update_model_card(folder: Path, *, is_new: bool = False, folder_name: str | None = None) -> None:
    """Write the model's card again, unless someone else wrote the one that is there.

    Args:
        folder: Folder of the model.
        is_new: This command has made the folder, so that a card in it is ours.
        folder_name: Name of the folder that it will be moved to, if that is another.
    """
    from st_xling.hub import write_card
    from st_xling.hub.card_facts import has_card_of_others

    if has_card_of_others(folder) and not is_new:
        card = folder / "README.md"
        logger.warning("%s was not written by st-xling and is kept; to replace it: st-xling card %s", card, folder)
        return
    try:
        path = write_card(folder, folder_name=folder_name)
        if not is_new:  # a new folder is moved to its place afterwards
            print(f"card: {path}", file=sys.stderr)
    except ValueError as error:
        logger.warning("the card was not updated: %s", error)


def new_card_writer(out: str) -> Callable[[Path], None]:
    """Return a function that writes the card of a new model in a temporary folder, which is then moved to ``out``."""
    folder_name = Path(out).resolve().name

    def write_card(folder: Path) -> None:
        update_model_card(folder, is_new=True, folder_name=folder_name)

    return write_card
