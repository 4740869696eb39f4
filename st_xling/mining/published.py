"""``mining.json`` of a model: from which score on the pairs that it mines are worth keeping, by pair of languages.

.. code-block:: json

    {"version": 1, "pairs": {"de-en": {"threshold": 1.06, "precision": 0.97, "recall": 0.92, "f1": 0.94,
                                       "margin": "ratio", "k": 4, "retrieval": "max", "signature": "bucc|…"}}}

``options`` stands there too where sentences were embedded otherwise than the model does by itself: the parts of a
signature, such as ``{"prompt": "query: ", "layer": "7"}``.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.mining.margins import MARGINS
from st_xling.mining.mine import RETRIEVALS
from st_xling.utils.io import read_json_object, update_json_object
from st_xling.utils.languages import canonical_language
from st_xling.utils.loaded import loaded, name_of

logger = logging.getLogger(__name__)

#: Name of the file in a model's folder, or in its repository.
MINING_FILE = "mining.json"
VERSION = 1

#: Options of a model that signatures do not name, by what holds then; of others there is none.
OWN = {"dtype": "float32", "layer": "the last", "pooling": "the model's", "dim": "all"}

_PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")

# A pair's margin is the same in both directions; what a retrieval starts from is not.
_MIRRORED = {"forward": "backward", "backward": "forward"}


def languages_of(pair: str) -> tuple[str, str]:
    """Both codes of a pair such as ``de-en`` in one spelling, so that ``deu-eng`` is the same.

    Raises:
        ValueError: If it is no such pair.
    Example:
        >>> languages_of("de-en"), languages_of("deu-eng")
        (('deu', 'eng'), ('deu', 'eng'))
    """
    match = _PAIR.fullmatch(pair)
    if match is None:
        raise ValueError(f"a pair must be two language codes joined by a hyphen, such as de-en: got {pair!r}.")
    return canonical_language(match[1]), canonical_language(match[2])


def pair_of(source_language: str, target_language: str) -> str:
    """The pair of two languages, without region or script: a pair of languages has but one threshold.

    Example:
        >>> pair_of("de_AT", "en-GB")
        'de-en'
    """
    codes = (code.strip().lower().replace("_", "-").split("-")[0] for code in (source_language, target_language))
    return "-".join(codes)


@dataclass(frozen=True, kw_only=True)
class PublishedThreshold:
    """A threshold, what it yielded, and how the pairs were mined: for other ways to mine it means nothing.

    Attributes:
        threshold: A pair is kept when its score is at least this; finite.
        precision: Correct share of these pairs, in [0, 1]; ``None`` where nobody knows.
        recall: Found share of the translations, likewise.
        f1: Their harmonic mean, likewise.
        margin: As for :func:`~st_xling.mining.mine`.
        k: As for :func:`~st_xling.mining.mine`.
        retrieval: As for :func:`~st_xling.mining.mine`.
        signature: Of the metrics: what they were measured on.
        options: How sentences were embedded: parts of a signature by name, such as ``prompt`` and ``layer``.
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
    options: Mapping[str, str] = field(default_factory=dict)

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
        texts = [self.signature, *(self.options.values() if isinstance(self.options, dict) else [None])]
        if not all(isinstance(text, str) for text in texts):
            faults.append(f"signature and options must be text: got {self.signature!r}, {self.options!r}")
        if faults:
            raise ValueError("; ".join(faults) + ".")

    def as_dict(self) -> dict[str, Any]:
        """As the file has it."""
        return {name: value for name, value in asdict(self).items() if name != "options" or value}


def publish_thresholds(folder: str | Path, thresholds: Mapping[str, PublishedThreshold]) -> Path:
    """Add thresholds to the ``mining.json`` of a model's folder; one of the same languages is replaced, others stay.

    Args:
        folder: Of the model.
        thresholds: By pair of language codes, such as ``de-en``: the source language first.
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
        pairs = {pair: entry for pair, entry in content.get("pairs", {}).items() if languages_of(pair) not in new}
        return {"version": VERSION, "pairs": {**pairs, **dict(new.values())}}

    update_json_object(path, merged)
    return path


def published_thresholds(model: Any) -> dict[str, PublishedThreshold]:
    """The thresholds of a model by pair of languages; none if it has no ``mining.json``.

    Args:
        model: Folder, or Hub id, or a model that was loaded from either. Of the Hub one file is downloaded, of the
            model's revision; without a network the cached one counts, if there is one.
    Raises:
        ValueError: If the file is broken, or there is neither such a folder nor such a model on the Hub.
    """
    name = str(model) if isinstance(model, Path) else name_of(model)
    if name is None:
        return {}
    path = Path(name) / MINING_FILE if Path(name).is_dir() else _downloaded(name, loaded(model).options.get("revision"))
    return {} if path is None else _parsed(read_json_object(path), path)


def _is_number(value: Any) -> bool:
    # An integer of JSON may have any number of digits, so that math.isfinite, which makes it a float, may overflow.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _parsed(content: dict[str, Any], path: Path) -> dict[str, PublishedThreshold]:
    """What the file holds; all its faults in one error."""
    thresholds, faults, pairs = {}, [], content.get("pairs", {})
    if content and content.get("version") != VERSION:
        faults.append(f"version must be {VERSION}, got {content.get('version')!r} (of a later st-xling?)")
    elif not isinstance(pairs, dict):
        faults.append(f"pairs must be an object, got {pairs!r}")
    for pair, entry in pairs.items() if not faults else ():
        try:
            languages_of(pair)
            thresholds[pair] = PublishedThreshold(**entry)
        except (ValueError, TypeError) as error:  # a TypeError names keys that are missing or unknown
            faults.append(f"{pair}: {str(error).removeprefix('PublishedThreshold.__init__() ').rstrip('.')}")
    if faults:
        raise ValueError(f"{path}: expected thresholds by pair of languages: {'; '.join(faults)}. Mend or remove it.")
    return thresholds


def _downloaded(model: str, revision: str | None) -> Path | None:
    """The file of a model on the Hub, as it is cached; ``None`` if there is none."""
    from huggingface_hub import errors as hub
    from huggingface_hub import hf_hub_download

    from st_xling.utils.hub_requests import limited_requests

    # A name alone may be, as it is for sentence-transformers, one of its own models.
    names, is_there = [model, *([] if "/" in model else [f"sentence-transformers/{model}"])], False
    for name in names:
        try:
            with limited_requests():
                return Path(hf_hub_download(name, MINING_FILE, revision=revision))
        except hub.LocalEntryNotFoundError:  # a kind of the next one
            is_there = True
            logger.warning(
                "thresholds of %s are not known: %s is not in the cache, and the Hub cannot be asked.",
                name,
                MINING_FILE,
            )
        except hub.EntryNotFoundError:
            is_there = True
        except (hub.RepositoryNotFoundError, hub.HFValidationError) as error:
            fault = error
    if not is_there:
        raise ValueError(f"expected a folder or the Hub id of a model, got {model!r}; check the spelling.") from fault
    return None


class Fit(NamedTuple):
    """The published threshold that holds for what is to be mined, and under which pair; or neither, and why.

    Attributes:
        pair: As in the file, possibly the other way round.
        threshold: What holds.
        why_not: Words on what is missing, or differs.
    """

    pair: str
    threshold: PublishedThreshold | None
    why_not: str = ""


def fitting_threshold(
    published: Mapping[str, PublishedThreshold],
    source_language: str,
    target_language: str,
    *,
    options: Mapping[str, str],
    **way: Any,
) -> Fit:
    """The threshold of these languages, if it was found by mining in the same way.

    One of the pair the other way round holds as well, since a margin has no direction: as it is for the retrievals
    ``max`` and ``intersect``, that of ``forward`` for ``backward`` and the reverse. Whatever else differs, the scores
    are others, and the threshold does not hold.

    Args:
        published: By pair, from :func:`published_thresholds`.
        source_language: Such as ``"de"``, ``"deu"`` or ``"de-AT"``.
        target_language: Likewise.
        options: How the text is embedded, as of :class:`PublishedThreshold`.
        way: ``margin``, ``k`` and ``retrieval`` of the call that is to mine.
    """
    if not published:
        return Fit("", None, "it has none")
    source, target = map(canonical_language, pair_of(source_language, target_language).split("-"))
    mirrored = {**way, "retrieval": _MIRRORED.get(way["retrieval"], way["retrieval"])}
    unlike = []
    for languages, requested in (((source, target), way), ((target, source), mirrored)):
        for pair, threshold in published.items():
            if languages_of(pair) != languages:
                continue
            there = {**{name: getattr(threshold, name) for name in requested}, **threshold.options}
            here = {**requested, **options}
            differences = [
                f"{name} {there.get(name, OWN.get(name, 'none'))}, not {here.get(name, OWN.get(name, 'none'))}"
                for name in dict.fromkeys([*here, *there])
                if there.get(name) != here.get(name)
            ]
            if not differences:
                return Fit(pair, threshold)
            unlike.append(f"that of {pair} is for {', '.join(differences)}")
    others = f"it has one for {', '.join(published)}, none for {source_language}-{target_language}"
    return Fit("", None, "; ".join(unlike) or others)
