"""What a model was trained on: names, rows, fingerprints, where it comes from and under which licence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_xling.data.moses import find_moses
from st_xling.data.parallel import READERS
from st_xling.data.phrasebook_spec import is_phrasebook
from st_xling.hub.card.run_command import flag_values
from st_xling.utils.text import file_ending

PHRASEBOOK_LICENCE = "apache-2.0"
UNKNOWN = "unknown"

_ROLES = {"queries": "--data", "parallel": "--parallel", "others": "--others"}
_LABEL = re.compile(r"[A-Za-z][\w-]*=(?=[^=])")
_BOOK_LANGUAGES = re.compile(r"phrasebook:([^?]*).*", re.DOTALL)
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True)
class DataSource:
    """One training data set.

    Attributes:
        name: As the run's manifest has it.
        rows: So many were trained on; ``None`` where nobody knows.
        sha8: Fingerprint of the text.
        specs: What the command line says of it; several where they were put together.
        hub_id: Of a data set of the Hub.
        licence: As the user says, as its own card says, that of the phrasebook, or ``"unknown"``.
    """

    name: str
    rows: int | None = None
    sha8: str | None = None
    specs: tuple[str, ...] = ()
    hub_id: str | None = None
    licence: str = UNKNOWN


def data_sources(
    run: Mapping[str, Any], *, hub: Mapping[str, Mapping[str, str]], licences: Mapping[str, str]
) -> list[DataSource]:
    """The data sets of a run's manifest.

    Args:
        run: What ``training/run.json`` holds.
        hub: What :func:`hub_data_sets` found.
        licences: Name → licence, as the user says; a name that the run does not have becomes a source of its own.
    """
    data = run.get("data") or {}
    specs = _specs_by_name(run)
    found = []
    for name, facts in data.items():
        given = specs.get(name, ())
        hub_id = hub[given[0]]["id"] if len(given) == 1 and given[0] in hub else None
        licence = licences.get(name) or _known_licence(given, hub)
        found.append(DataSource(name, facts.get("rows"), facts.get("sha8"), given, hub_id, licence))
    return found + [DataSource(name, licence=licence) for name, licence in licences.items() if name not in data]


def hub_data_sets(run: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Specs of a run that are data sets of the Hub → their ``id``, and ``license`` where a cached card says it.

    Asked once, where the run was made: whether ``a/b`` is a folder or an id can only be seen there.
    """
    specs = [spec for flag in (*_ROLES.values(), "--xpi-data") for spec in flag_values(run.get("command"), flag)]
    found = {}
    for spec in specs:
        location = _location(spec).partition("?")[0]
        if _HUB_ID.fullmatch(location) and not _is_file(location):
            licence = _cached_licence(location)
            found[spec] = {"id": location, **({} if licence is None else {"license": licence})}
    return found


def spec_languages(specs: Iterable[str]) -> list[str]:
    """Language codes that specs name before ``=``, or as languages of a phrasebook; each once."""
    codes: list[str] = []
    for spec in specs:
        before = re.match(r"([a-z]{2,3})(?:-([a-z]{2,3}))?=", spec)
        codes += [code for code in (before.groups() if before else ()) if code]
        location = _location(spec)
        if is_phrasebook(location) and (_BOOK_LANGUAGES.fullmatch(location) or not _LABEL.match(spec)):
            codes += [*_book_languages(location), *([] if _LABEL.match(spec) else ["en"])]
    return list(dict.fromkeys(code for code in codes if re.fullmatch(r"[a-z]{2,3}", code)))


def _specs_by_name(run: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    names, command = list(run.get("data") or {}), run.get("command")
    recipe = run.get("recipe") or {}
    if "strategy" in recipe:  # a cross-encoder: its stages are made of all specs together
        before = (recipe.get("xpi") or {}).get("name") if recipe["strategy"] != "xpi" else None
        return {name: tuple(flag_values(command, "--xpi-data" if name == before else "--data")) for name in names}
    if "retrieval" in recipe:
        return {
            name: specs
            for role, flag in _ROLES.items()
            for name, specs in _one_by_one(
                [name for name in names if name.startswith(f"{role}:")], flag_values(command, flag)
            ).items()
        }
    return _one_by_one(names, flag_values(command, "--data"))


def _one_by_one(names: list[str], specs: list[str]) -> dict[str, tuple[str, ...]]:
    """Each name with its spec, where specs give as many data sets as there are; otherwise all with all."""
    spread = [spec for spec in specs for _ in range(_count(spec))]
    if len(spread) == len(names):
        return {name: (spec,) for name, spec in zip(names, spread)}
    return {name: tuple(specs) for name in names}


def _count(spec: str) -> int:
    """How many data sets a spec gives: of a phrasebook one for each language that is paired with English."""
    location = _location(spec)
    return len(_book_languages(location)) if is_phrasebook(location) and not _LABEL.match(spec) else 1


def _book_languages(location: str) -> list[str]:
    from st_xling.data.phrasebook import LANGUAGES

    listed = _BOOK_LANGUAGES.fullmatch(location)
    return listed[1].split(",") if listed else [code for code in LANGUAGES if code != "en"]


def _location(spec: str) -> str:
    """What a spec reads, without the label before ``=``."""
    return _LABEL.sub("", spec, count=1) if _LABEL.match(spec) else spec


def _known_licence(specs: Iterable[str], hub: Mapping[str, Mapping[str, str]]) -> str:
    licences = {
        PHRASEBOOK_LICENCE if is_phrasebook(_location(spec)) else hub.get(spec, {}).get("license", UNKNOWN)
        for spec in specs
    }
    return licences.pop() if len(licences) == 1 else UNKNOWN


def _is_file(location: str) -> bool:
    path = Path(location).expanduser()
    return file_ending(path) in READERS or path.exists() or find_moses(path, None, None) is not None


def _cached_licence(hub_id: str) -> str | None:
    """What the data set's own card says, if reading the data set has brought it here."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.repocard import metadata_load

    path = try_to_load_from_cache(hub_id, "README.md", repo_type="dataset")
    if not isinstance(path, str):
        return None
    try:
        said = (metadata_load(path) or {}).get("license")
    except Exception:  # the card of a data set is not ours to judge
        return None
    licence = said[0] if isinstance(said, list) and len(said) == 1 else said
    return licence if isinstance(licence, str) and " " not in licence else None
