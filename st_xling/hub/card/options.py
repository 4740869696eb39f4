"""What a user says for a model's card: kept in ``card.json``, so that the card can be made again."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from st_xling.utils.io import check_shape, read_json_object, write_json
from st_xling.utils.languages import is_code

CARD_FILE = "card.json"
_VERSION = 1
_SHAPE = {
    "said": {"data_licenses": {...: str}, "languages": [str], "authors": [str], ...: str},
    "found": {"base_model": str, "data": {...: {"id": str, "license": str}}},
}
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")


@dataclass(frozen=True)
class CardOptions:
    """Words and facts that no file of the model holds. ``None`` leaves what an earlier call said.

    Attributes:
        title: Name of the model; otherwise made of what it does.
        repo_id: Where it lies on the Hub, ``owner/name``; usage and commands then name it.
        license: Of the model, as the Hub spells it: ``apache-2.0``, ``cc-by-4.0``, … or ``other``.
        license_name: With ``other``: its name.
        license_link: With ``other``: where to read it.
        data_licenses: Name of a training data set, as the card's table has it → its licence. Added to earlier ones.
        languages: Codes; otherwise those of the training data.
        base_model: Hub id of the model that training started from, where it was a folder.
        purpose: The sentence under the title.
        intended_use: Instead of the generated text; paragraphs separated by blank lines.
        limits: The same, of the limits.
        authors: Who made the model.
        citation: BibTeX of the model itself.

    An empty text, or an empty list, takes back what was said.
    """

    title: str | None = None
    repo_id: str | None = None
    license: str | None = None
    license_name: str | None = None
    license_link: str | None = None
    data_licenses: dict[str, str] = field(default_factory=dict)
    languages: tuple[str, ...] | None = None
    base_model: str | None = None
    purpose: str | None = None
    intended_use: str | None = None
    limits: str | None = None
    authors: tuple[str, ...] | None = None
    citation: str | None = None

    def __post_init__(self) -> None:
        for name in ("repo_id", "base_model"):
            if given := getattr(self, name):
                _check_repo_id(name, given)
        for given in filter(None, [self.license, *self.data_licenses.values()]):
            if not _LICENCE.fullmatch(given):
                raise ValueError(
                    f"a licence is an identifier such as apache-2.0, cc-by-4.0, other or unknown: got {given!r}."
                )
        wrong = [given for given in self.languages or () if not is_code(given)]
        if wrong:
            raise ValueError(f"languages are codes such as de, deu or zh-CN: got {', '.join(map(repr, wrong))}.")

    def over(self, earlier: CardOptions) -> CardOptions:
        """These, and what ``earlier`` says where they are silent."""
        given = {name: value for name, value in self._fields().items() if value is not None}
        given["data_licenses"] = {**earlier.data_licenses, **self.data_licenses}
        return dataclasses.replace(earlier, **given)

    def as_dict(self) -> dict[str, Any]:
        """What is said, for JSON."""
        said = {name: value for name, value in self._fields().items() if value}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}

    def _fields(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}


def read_card_file(folder: Path) -> tuple[CardOptions, dict[str, Any] | None]:
    """What ``card.json`` says, and what was found about the run when the first card was made; nothing without a file.

    Raises:
        ValueError: A file that is not ours.
    """
    path = folder / CARD_FILE
    if not path.is_file():
        return CardOptions(), None
    try:
        content = read_json_object(path)
        check_shape(content, _SHAPE, path)
        if content["version"] != _VERSION:
            raise ValueError(f"version {content['version']!r}")
        said = {key: tuple(value) if isinstance(value, list) else value for key, value in content["said"].items()}
        return CardOptions(**cast(dict[str, Any], said)), content.get("found")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} must hold what st-xling card wrote (version {_VERSION}): {error}; repair or remove it."
        ) from error


def write_card_file(folder: Path, options: CardOptions, found: dict[str, Any]) -> None:
    """Keep both for the next card."""
    write_json(folder / CARD_FILE, {"version": _VERSION, "said": options.as_dict(), "found": found})


def _check_repo_id(name: str, given: str) -> None:
    try:
        validate_repo_id(given)
    except HFValidationError as error:
        raise ValueError(f"{name} must be an id on the Hub, such as owner/name: {error}") from error
