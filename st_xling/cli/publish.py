"""``st-xling card`` and ``st-xling push``: a model's card made again; a model to the Hugging Face Hub."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.cli.options import JSON, command, write_results

if TYPE_CHECKING:
    from st_xling.hub.push import PushReport

_TEXTS = ("license", "license_name", "license_link", "title", "base_model", "purpose", "intended_use", "limits")


@command("card", JSON, model={"type": Path})
def card(arguments: argparse.Namespace) -> None:
    """Write a model's card: results, commands, data, pictures.

    Write README.md of a model's folder, as the Hub reads it.

    MODEL                   folder
    --license ID            licence of the model, as the Hub spells it: apache-2.0, cc-by-4.0, …
    --license-name NAME     with --license other: what it is called
    --license-link LINK     with --license other: where to read it
    --data-license NAME=ID  licence of a training data set (repeatable)
    --title TEXT            name of the model
    --repo OWNER/NAME       where it lies on the Hub
    --languages LIST        codes, such as de,fr,en (default: those of the data)
    --base-model ID         Hub id of what training started from
    --purpose TEXT          what it does, under the title
    --intended-use TEXT     what it is for, said above the limits
    --limits TEXT           instead of the generated ones
    --author NAME           who made the model (repeatable)
    --citation FILE         BibTeX of the model
    --validate              also ask the Hub's validator (HF_ENDPOINT)

    examples:
      st-xling card my-encoder --license apache-2.0 --data-license de-en=cc-by-2.0
      st-xling card my-encoder --repo user/my-encoder --limits "Short sentences only." --validate

    The card is made of what the folder holds: the run's recipe and data, results saved by st-xling evaluate … --keep,
    thresholds, pictures. What is said here is saved in card.json; say it with an empty text to take it back.
    """
    from st_xling.hub.card import CardOptions, validate_online, write_card

    licences = {}
    for text in arguments.data_license:
        name, equals, licence = text.rpartition("=")
        if not equals or not name:
            raise ValueError(f"--data-license takes NAME=LICENCE, such as de-en=cc-by-2.0: got {text!r}.")
        licences[name] = licence
    options = CardOptions(
        **{name: getattr(arguments, name) for name in _TEXTS},
        repo_id=arguments.repo,
        data_licenses=licences,
        languages=None if arguments.languages is None else tuple(arguments.languages),
        authors=tuple(filter(None, arguments.author)) if arguments.author else None,
        citation=arguments.citation and Path(arguments.citation).read_text(encoding="utf-8"),
    )
    path = write_card(arguments.model, options=options)
    print(f"the card is {path}")
    if arguments.validate:
        validate_online(path)
        print("the Hub's validator has nothing against it")
    write_results(arguments, {"card": {"path": str(path), "validated": arguments.validate}})


# Absent is not public: an organisation may make its repositories private by itself.
@command("push", JSON, private={"default": None})
def push(arguments: argparse.Namespace) -> None:
    """Publish a model on the Hub.

    Publish a model with its card, results, thresholds and pictures in one commit. Log in first: hf auth login.

    MODEL              folder of the model
    REPO               user/name on the Hub; made if it is not there
    --private          make the repository private
    --revision BRANCH  branch to push to; made from main if it is not there
    --pr               open a pull request instead
    --message MESSAGE  first line of the commit
    --dry-run          only list what would be published; asks nobody

    examples:
      st-xling push my-encoder user/my-encoder --dry-run
      st-xling push my-encoder user/my-encoder --private
    """
    from st_xling.hub.push import push_model

    options = {name: getattr(arguments, name) for name in ("private", "revision", "message", "dry_run")}
    options["create_pr"] = arguments.pr
    report = push_model(arguments.model, arguments.repo, **options)
    _print(report)
    write_results(arguments, {"push": dataclasses.asdict(report)})


def _print(report: PushReport) -> None:
    """Print the address of the commit, or the list of a dry run, to stdout."""
    if report.url is None:
        rows = [(file.path, _size(file.size), file.what) for file in report.files]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        for path, size, what in rows:
            print(f"{path:<{widths[0]}}  {size:>{widths[1]}}  {what}")
        print(f"would go to {report.repo_id}: {len(rows)} files, {_size(report.size)}")
        return
    print(f"{len(report.files)} files, {_size(report.size)}, are in {report.repo_id}", file=sys.stderr)
    print(report.url)


def _size(count: int) -> str:
    """Bytes for people: 1024 at a time."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
