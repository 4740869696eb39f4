"""``mining.json`` of a model: from which score on the pairs that it mines are worth keeping, by pair of languages.

.. code-block:: json

    {"version": 1, "pairs": {"de-en": {"threshold": 1.06, "precision": 0.97, "recall": 0.92, "f1": 0.94,
                                       "margin": "ratio", "k": 4, "retrieval": "max", "signature": "bucc|…"}}}

``prompt`` stands there too where sentences were embedded with one.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from st_xling.mining.margins import MARGINS
from st_xling.mining.mine import RETRIEVALS
from st_xling.mining.thresholds.language_pairs import languages_of
from st_xling.utils.io import read_json_object, update_json_object

logger = logging.getLogger(__name__)

#: Name of the file in a model's folder, or in its repository.
MINING_FILE = "mining.json"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class PublishedThreshold:
    """A threshold, what it yielded, and how the pairs were mined: for other ways to mine it means nothing.

    Attributes:
        threshold: A pair is kept when its score is at least this; finite.
        precision: Correct share of the kept pairs, in [0, 1]; ``None`` where nobody knows.
        recall: Found share of the translations, likewise.
        f1: Their harmonic mean, likewise.
        margin: As for :func:`~st_xling.mining.mine`.
        k: As for :func:`~st_xling.mining.mine`.
        retrieval: As for :func:`~st_xling.mining.mine`.
        signature: Of the figures: what they were measured on.
        prompt: Put before every sentence that was embedded.
    Raises:
        ValueError: For values out of these ranges, all at once.
    """

    threshold: float
    precision: float | None
    recall: float | None
    f1: float | None
    margin: str
    k: int
    retrieval: str
    signature: str
    prompt: str | None = None

    def __post_init__(self) -> None:
        faults = []
        if not _is_number(self.threshold):
            faults.append(f"threshold must be a finite number: got {self.threshold!r}")
        for name in ("precision", "recall", "f1"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 <= value <= 1):
                faults.append(f"{name} must lie in [0, 1]: got {value!r}")
        for name, known in (("margin", MARGINS), ("retrieval", RETRIEVALS)):
            if getattr(self, name) not in known:
                faults.append(f"{name} must be one of {', '.join(known)}: got {getattr(self, name)!r}")
        if not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 1:
            faults.append(f"k must be a whole number of at least 1: got {self.k!r}")
        if not isinstance(self.signature, str) or not isinstance(self.prompt, str | None):
            faults.append(f"signature and prompt must be text: got {self.signature!r}, {self.prompt!r}")
        if faults:
            raise ValueError("; ".join(faults) + ".")

    def as_dict(self) -> dict[str, Any]:
        """As the file has it."""
        return {name: value for name, value in asdict(self).items() if name != "prompt" or value is not None}


def publish_thresholds(folder: str | Path, thresholds: Mapping[str, PublishedThreshold]) -> Path:
    """Add thresholds to the ``mining.json`` of a model's folder; one of the same languages is replaced, others stay.

    Args:
        folder: Of the model.
        thresholds: By pair of language codes, such as ``de-en``: the source side first.
    Returns:
        The file.
    Raises:
        ValueError: If there is no such folder, a pair is not two codes, or the file that is there is broken.
        OSError: When it cannot be written; what was there then stands.
    """
    path = Path(folder) / MINING_FILE
    if not path.parent.is_dir():
        raise ValueError(f"thresholds are published in a model's folder: there is no folder {folder}.")
    new = {languages_of(pair): (pair, threshold.as_dict()) for pair, threshold in thresholds.items()}

    def merged(content: dict[str, Any]) -> dict[str, Any]:
        _parsed(content, path)
        pairs = {pair: found for pair, found in content.get("pairs", {}).items() if languages_of(pair) not in new}
        return {"version": VERSION, "pairs": {**pairs, **dict(new.values())}}

    update_json_object(path, merged)
    return path


def published_thresholds(model: str | Path) -> dict[str, PublishedThreshold]:
    """The thresholds of a model by pair of languages; none if it has no ``mining.json``.

    Args:
        model: Folder, or Hub id: one file is then downloaded; without a network the cached one counts, if there is one.
    Raises:
        ValueError: If the file is broken, or there is neither such a folder nor such a model on the Hub.
    """
    path = Path(model) / MINING_FILE if Path(model).is_dir() else _downloaded(str(model))
    return {} if path is None else _parsed(read_json_object(path), path)


def _is_number(value: Any) -> bool:
    # An integer of JSON may have any number of digits, so that math.isfinite, which makes it a float, may overflow.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _parsed(content: dict[str, Any], path: Path) -> dict[str, PublishedThreshold]:
    """What the file holds; all its faults in one error."""
    if not content:
        return {}
    faults = list(_form_faults(content))
    found = {}
    for pair, entry in content["pairs"].items() if not faults else ():
        try:
            languages_of(pair)
            found[pair] = _entry(entry)
        except ValueError as error:
            faults.append(f"{pair}: {str(error).rstrip('.')}")
    if faults:
        raise ValueError(f"{path}: expected thresholds by pair of languages: {'; '.join(faults)}. Mend or remove it.")
    return found


def _form_faults(content: dict[str, Any]) -> Iterator[str]:
    if content.get("version") != VERSION:
        yield f"version must be {VERSION}, got {content.get('version')!r} (of a later st-xling?)"
    elif unknown := sorted(content.keys() - {"version", "pairs"}):
        yield f"got unknown {', '.join(unknown)}"
    elif not isinstance(content.get("pairs"), dict):
        yield f"pairs must be an object, got {content.get('pairs')!r}"


def _entry(entry: Any) -> PublishedThreshold:
    if not isinstance(entry, dict):
        raise ValueError(f"expected an object, got {entry!r}")
    names = {field.name for field in fields(PublishedThreshold)}
    missing, unknown = sorted(names - {"prompt"} - entry.keys()), sorted(entry.keys() - names)
    if missing or unknown:
        what = [f"{word} {', '.join(keys)}" for word, keys in (("missing", missing), ("unknown", unknown)) if keys]
        raise ValueError(" and ".join(what))
    return PublishedThreshold(**entry)


def _downloaded(model: str) -> Path | None:
    """The file of a model on the Hub, as it is cached; ``None`` if there is none."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    from st_xling.utils.hub_requests import limited_requests

    # A name alone may be, as it is for the host, one of its own models.
    names, is_there = [model, *([] if "/" in model else [f"sentence-transformers/{model}"])], False
    for name in names:
        try:
            with limited_requests():
                return Path(hf_hub_download(name, MINING_FILE))
        except LocalEntryNotFoundError:  # a kind of the next one
            is_there = True
            logger.warning(
                "thresholds of %s are not known: %s is not in the cache, and the Hub cannot be asked.",
                name,
                MINING_FILE,
            )
        except EntryNotFoundError:
            is_there = True
        except (RepositoryNotFoundError, HFValidationError) as error:
            fault = error
    if not is_there:
        raise ValueError(f"expected a folder or the Hub id of a model, got {model!r}; check the spelling.") from fault
    return None
