"""``st-xling card`` and ``st-xling push``: write a model's card, publish a model or a data set on the Hub."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import typer

from st_xling.cli import options as opts
from st_xling.cli.app import Command, app
from st_xling.cli.options import argument, listed, option, write_results

TEXTS = "Texts of the card"
DATASET = "For a file of pairs"


@app.command("card", cls=Command)
def card(
    context: typer.Context,
    model: Path = argument("MODEL", "Folder of the model.", default=...),
    license: str | None = option(
        "--license", metavar="ID", help="License, as the Hub spells it: apache-2.0, cc-by-4.0, …"
    ),
    license_name: str | None = option("--license-name", help="With --license other: its name."),
    license_link: str | None = option("--license-link", help="With --license other: its address."),
    data_license: list[str] | None = option(
        "--data-license", metavar="NAME=ID", help="License of a training data set (repeatable)."
    ),
    repo: str | None = option("--repo", metavar="OWNER/NAME", help="Repository of the model on the Hub."),
    languages: list[str] | None = listed("--languages", help="Codes, such as de,fr,en (default: those of the data)."),
    base_model: str | None = option(
        "--base-model", metavar="ID", help="Hub id of the model that training started from."
    ),
    json: Path | None = opts.JSON,
    title: str | None = option("--title", panel=TEXTS, help="Name of the model."),
    intended_use: str | None = option("--intended-use", panel=TEXTS, help="Intended use, above the limits."),
    limits: str | None = option("--limits", panel=TEXTS, help="Instead of the generated ones."),
    author: list[str] | None = option("--author", panel=TEXTS, help="Author of the model (repeatable)."),
    citation: str | None = option("--citation", metavar="FILE", panel=TEXTS, help="BibTeX of the model."),
) -> None:
    """Write a model's card: results, commands, data, pictures.

    Writes README.md into a model's folder, as the Hub reads it.

    \b
    examples:
      st-xling card my-encoder --license apache-2.0 --data-license de-en=cc-by-2.0
      st-xling card my-encoder --repo user/my-encoder --limits "Short sentences only."

    The card is made from the content of the folder: the run's recipe and data, results saved by st-xling evaluate …
    --keep, thresholds, pictures. Options are saved in card.json; remove one by an empty text.
    """
    _check_folder(model)
    from st_xling.hub.card import CardOptions, write_card

    licenses = {}
    for text in data_license or ():
        name, equals, each = text.rpartition("=")
        if not equals or not name:
            raise ValueError(f"--data-license expects NAME=ID, such as de-en=cc-by-2.0, got {text!r}.")
        licenses[name] = each
    options = CardOptions(
        license=license,
        license_name=license_name,
        license_link=license_link,
        title=title,
        base_model=base_model,
        intended_use=intended_use,
        limits=limits,
        repo_id=repo,
        data_licenses=licenses,
        # An empty list means that there are none; None leaves them to the training data.
        languages=None if context.params["languages"] is None else tuple(languages or ()),
        authors=tuple(filter(None, author)) if author else None,
        citation=citation and Path(citation).read_text(encoding="utf-8"),
    )
    path = write_card(model, options=options)
    print(f"the card is {path}")
    write_results(context, {"card": {"path": str(path)}})


@app.command("push", cls=Command)
def push(
    context: typer.Context,
    model: Path = argument("MODEL", "Folder of the model, or a file of pairs to publish as a data set.", default=...),
    repo: str = argument("REPO", "user/name on the Hub, created if missing.", default=...),
    # Unset is not public: an organization may make its repositories private by default.
    private: bool | None = option("--private", help="Make the repository private."),
    revision: str | None = option(
        "--revision", metavar="BRANCH", help="Branch to push to, created from main if missing."
    ),
    dry_run: bool = option(
        "--dry-run",
        default=False,
        help="Only list the files that would be published, or print the card of a data set, without any request.",
    ),
    json: Path | None = opts.JSON,
    source_language: str | None = option(
        "--source-language", metavar="CODE", panel=DATASET, help="Language of the sources, such as de."
    ),
    target_language: str | None = option(
        "--target-language", metavar="CODE", panel=DATASET, help="Language of the targets, such as en."
    ),
    license: str | None = option("--license", metavar="ID", panel=DATASET, help="License of the pairs."),
    results: Path | None = option(
        "--results", metavar="FILE", panel=DATASET, help="What mine, score or align-documents wrote with --json."
    ),
    overwrite: bool = option("--overwrite", default=False, panel=DATASET, help="Replace a data set that is there."),
) -> None:
    """Publish a model, or a data set of pairs, on the Hub.

    Publishes a model with its card, results, thresholds and pictures in one commit. Log in first: hf auth login.

    \b
    examples:
      st-xling push my-encoder user/my-encoder --dry-run
      st-xling push my-encoder user/my-encoder --private
      st-xling push pairs.tsv user/pairs --source-language de --target-language en --license cc-by-4.0

    A file of pairs becomes Parquet, with a card that has its languages, size, a histogram of the scores and pairs drawn
    at random; --results adds the model, threshold, filters and command that made it. load_dataset and train --data read
    such a data set.
    """
    if model.is_file():
        if revision:
            raise ValueError("--revision is for models; omit it for a file of pairs.")
        if not (source_language and target_language and license):
            raise ValueError("a data set needs --source-language, --target-language and --license.")
        from st_xling.hub.dataset import push_dataset

        dataset = push_dataset(
            model,
            repo,
            source_language=source_language,
            target_language=target_language,
            license=license,
            results=results,
            private=private,
            overwrite=overwrite,
            dry_run=dry_run,
        )
        if dataset.url is None:
            print(dataset.card)
            print(f"would go to {dataset.repo_id}: {dataset.rows:,} pairs")
        else:
            print(f"{dataset.rows:,} pairs are in {dataset.repo_id}", file=sys.stderr)
            print(dataset.url)
        write_results(context, {"push": dataclasses.asdict(dataset)})
        return
    _check_folder(model)
    from st_xling.hub.push import push_model

    report = push_model(model, repo, private=private, revision=revision, dry_run=dry_run)
    if report.url is None:
        width = max(len(file.path) for file in report.files)
        for file in report.files:
            print(f"{file.path:<{width}}  {_size(file.size):>9}")
        print(f"would go to {report.repo_id}: {len(report.files)} files, {_size(report.size)}")
    else:
        print(f"{len(report.files)} files, {_size(report.size)}, are in {report.repo_id}", file=sys.stderr)
        print(report.url)
    write_results(context, {"push": dataclasses.asdict(report)})


def _check_folder(model: Path) -> None:
    """Raise ``ValueError`` if there is no such folder, before torch is imported."""
    if not model.is_dir():
        raise ValueError(f"expected the folder of a model: there is no folder {model}; give one, such as a copy.")


def _size(count: int) -> str:
    """Format a number of bytes.

    Example:
        >>> _size(2048)
        '2.0 KiB'
    """
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
