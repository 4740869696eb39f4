"""A model's folder to its card, and back into the folder."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub.constants import REPOCARD_NAME

from st_xling.hub.card.body import card_body
from st_xling.hub.card.facts import CardFacts, read_facts
from st_xling.hub.card.metadata import card_metadata
from st_xling.hub.card.options import CardOptions, write_card_file
from st_xling.hub.card.pictures import draw_pictures
from st_xling.hub.card.run_command import absolute_paths
from st_xling.hub.card.validate import check_card
from st_xling.utils.io import write_atomic

logger = logging.getLogger(__name__)


def write_card(folder: str | Path, *, options: CardOptions | None = None) -> Path:
    """Write the ``README.md`` of a model from what its folder tells; the same folder gives the same bytes.

    Pictures of the figures are drawn into ``pictures/``; what ``options`` say is kept in ``card.json``, over what an
    earlier call said. A warning names words of commands that mean nothing on another machine.

    Args:
        folder: As ``st-xling train`` leaves it, or any that sentence-transformers saved.
        options: Words and facts of the user.
    Returns:
        The card.
    Raises:
        ValueError: No model there, files of ours that are broken, a data set of another name.
        OSError: When it cannot be written; the card that was there then stands.
    """
    facts = read_facts(folder, options=options)
    _check_data_names(facts)
    with _telling(facts.folder):
        write_card_file(facts.folder, facts.options, dict(facts.found))
        draw_pictures(facts)
        text = _text(facts)
    path = facts.folder / REPOCARD_NAME
    write_atomic(path, text.encode("utf-8"))
    if places := absolute_paths(facts.commands):
        logger.warning("commands of %s name places on this machine: %s", path, ", ".join(places))
    return path


def card_text(folder: str | Path) -> str:
    """The card of a folder as it stands, without writing anything."""
    facts = read_facts(folder)
    with _telling(facts.folder):
        return _text(facts)


@contextlib.contextmanager
def _telling(folder: Path) -> Iterator[None]:
    """Say of files whose parts are of the right kind, and do not make up a whole, that this is where to look."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(
            f"no card can be made of {folder}: results.json and training/run.json must be as st-xling wrote them "
            f"({type(error).__name__}: {error}); restore them."
        ) from error


def _text(facts: CardFacts) -> str:
    data = card_metadata(facts)
    text = f"---\n{data.to_yaml()}\n---\n\n{card_body(facts)}"
    check_card(text, data)
    return text


def _check_data_names(facts: CardFacts) -> None:
    known = facts.run.get("data") or {}
    wrong = [name for name in facts.options.data_licenses if known and name not in known]
    if wrong:
        raise ValueError(
            f"licences are given to data that were trained on: got {', '.join(wrong)}; there are {', '.join(known)}."
        )
