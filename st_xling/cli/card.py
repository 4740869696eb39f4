"""``st-xling card``: the model card of a folder, made again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

EXAMPLE = """\
examples:
  st-xling card my-encoder --license apache-2.0 --data-license de-en=cc-by-2.0
  st-xling card my-encoder --repo user/my-encoder --limits "Short sentences only." --validate

The card is made of what the folder holds: the run's recipe and data, figures kept by st-xling evaluate … --keep,
thresholds, pictures. What is said here is kept in card.json; say it with an empty text to take it back.
"""

_TEXTS = ("license", "license_name", "license_link", "title", "base_model", "purpose", "intended_use", "limits")


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    card = commands.add_parser(
        "card",
        help="write a model's card: figures, commands, data, pictures",
        description="Write README.md of a model's folder, as the Hub reads it.",
        epilog=EXAMPLE,
    )
    card.add_argument("model", type=Path, metavar="MODEL", help="folder")
    card.add_argument("--license", metavar="ID", help="of the model, as the Hub spells it: apache-2.0, cc-by-4.0, …")
    card.add_argument("--license-name", metavar="NAME", help="with --license other: what it is called")
    card.add_argument("--license-link", metavar="LINK", help="with --license other: where to read it")
    card.add_argument(
        "--data-license", action="append", default=[], metavar="NAME=ID", help="of a training data set; may be repeated"
    )
    card.add_argument("--title", metavar="TEXT", help="name of the model")
    card.add_argument("--repo", metavar="OWNER/NAME", help="where it lies on the Hub")
    card.add_argument("--languages", metavar="LIST", help="codes, such as de,fr,en (default: those of the data)")
    card.add_argument("--base-model", metavar="ID", help="Hub id of what training started from")
    card.add_argument("--purpose", metavar="TEXT", help="the sentence under the title")
    card.add_argument("--intended-use", metavar="TEXT", help="instead of the generated section")
    card.add_argument("--limits", metavar="TEXT", help="instead of the generated section")
    card.add_argument("--author", action="append", metavar="NAME", help="may be repeated")
    card.add_argument("--citation", metavar="FILE", help="BibTeX of the model")
    card.add_argument("--validate", action="store_true", help="also ask the Hub's validator (HF_ENDPOINT)")
    card.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the card and say where it is."""
    from st_xling.hub.card import CardOptions, validate_online, write_card

    texts = {name: getattr(arguments, name) for name in _TEXTS}
    options = CardOptions(
        **texts,
        repo_id=arguments.repo,
        data_licenses=_data_licenses(arguments.data_license),
        languages=_list(arguments.languages),
        authors=None if arguments.author is None else tuple(filter(None, arguments.author)),
        citation=arguments.citation and Path(arguments.citation).read_text(encoding="utf-8"),
    )
    path = write_card(arguments.model, options=options)
    print(f"the card is {path}")
    if arguments.validate:
        validate_online(path)
        print("the Hub's validator has nothing against it")


def _data_licenses(given: list[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, licence = text.rpartition("=")
        if not equals or not name:
            raise ValueError(f"--data-license takes NAME=LICENCE, such as de-en=cc-by-2.0: got {text!r}.")
        found[name] = licence
    return found


def _list(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(code.strip() for code in text.split(",") if code.strip())
