"""All that a card is made of, read from a model's folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from st_xling.evaluation.results import RESULTS_FILE, KeptFigures, read_kept_figures
from st_xling.hub.card.found import look_around
from st_xling.hub.card.judged import Judged
from st_xling.hub.card.model_kind import ModelKind, model_kind
from st_xling.hub.card.options import CardOptions, read_card_file
from st_xling.hub.card.rows_of_figures import judged
from st_xling.hub.card.run_command import flag_values, shown_command
from st_xling.hub.card.sources import DataSource, data_sources, spec_languages
from st_xling.mining.published import PublishedThreshold, published_thresholds
from st_xling.utils.io import check_shape, read_json_object
from st_xling.utils.languages import UNKNOWN

_PAIR = re.compile(r"(?:\w+:)?([a-z]{2,3})-([a-z]{2,3})(?:-\d+)?|(?:queries|others):([a-z]{2,3})(?:[-:].*)?")
_SPEC_FLAGS = ("--data", "--parallel", "--others", "--xpi-data")

# What the sections of a card read; a file may hold more.
_CHANGES = {...: {"before": float, "after": float}}
_RUN_SHAPE = {
    **dict.fromkeys(("model", "version", "command"), str),
    "processes": int,
    "tiny": dict,
    "data": {...: {"rows": int, "sha8": str}},
    "recipe": {
        **dict.fromkeys(("name", "summary", "strategy"), str),
        **dict.fromkeys(("retrieval", "model", "training"), dict),
        "losses": {...: dict},
        "xpi": {"name": str},
    },
}
_LEAK_COUNTS = {"rows": int, "leaked": int}
_RESULTS_SHAPE = {
    "training": {
        "steps": int,
        "best_dev": float,
        "machine": {"versions": dict, "accelerators": [str], "memory_gib": float, "processor": str, "system": str},
    },
    "leak": {"sets": {...: {...: _LEAK_COUNTS}}, "train": {...: _LEAK_COUNTS}, "signature": str},
    "slim": {
        **dict.fromkeys(("source", "relation", "signature", "command"), str),
        "langs": [str],
        "report": {
            "size": _CHANGES,
            "parity": {...: {"texts": int, "unknown_share": dict, "retrieval": {...: _CHANGES}}},
        },
    },
}


@dataclass(frozen=True)
class CardFacts:
    """A model's folder, read.

    Attributes:
        folder: The folder.
        kind: What the model is.
        options: What the user says.
        found: What was seen where the run was made, see :func:`look_around`.
        run: ``training/run.json``, or empty.
        results: ``results.json``, or empty.
        evaluations: Kept figures.
        thresholds: For mining, by pair of languages.
    """

    folder: Path
    kind: ModelKind
    options: CardOptions
    found: Mapping[str, Any]
    run: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    evaluations: tuple[KeptFigures, ...] = ()
    thresholds: Mapping[str, PublishedThreshold] = field(default_factory=dict)

    @cached_property
    def judged(self) -> list[tuple[KeptFigures, Judged]]:
        """Kept figures with their rows."""
        found = []
        for kept in self.evaluations:
            try:
                found.append((kept, judged(kept)))
            except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
                raise ValueError(
                    f"{self.folder / RESULTS_FILE}: expected figures of {kept.task} as st-xling evaluate keeps them "
                    f"({type(error).__name__}: {error}); evaluate again, or remove them."
                ) from error
        return found

    @cached_property
    def sources(self) -> list[DataSource]:
        """What the model was trained on."""
        return data_sources(self.run, hub=self.found.get("data") or {}, licences=self.options.data_licenses)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Codes that the user says, or those of the training data as far as names and specs tell."""
        if self.options.languages:
            return self.options.languages
        if self.slim:
            return tuple(self.slim["langs"])
        pairs = [match for source in self.sources if (match := _PAIR.fullmatch(source.name))]
        named = [code for match in pairs for code in match.groups() if code]
        specs = [spec for flag in _SPEC_FLAGS for spec in flag_values(self.run.get("command"), flag)]
        codes = [code for code in dict.fromkeys([*named, *spec_languages(specs)]) if code != UNKNOWN]
        return tuple(sorted(codes, key=lambda code: (code == "en", codes.index(code))))

    @property
    def base_model(self) -> str | None:
        """Hub id of what training, or the cut of the vocabulary, started from."""
        if self.options.base_model or not self.slim:
            return self.options.base_model or self.found.get("base_model")
        return self.slim["source"] if "/" in self.slim["source"] else None

    @property
    def slim(self) -> Mapping[str, Any]:
        """What ``st-xling slim`` says of the cut, or empty."""
        return self.results.get("slim") or {}

    @property
    def is_retriever(self) -> bool:
        """Whether queries and passages are embedded each in their own way."""
        return self.kind.kind == "separate" or "retrieval" in self.recipe

    @property
    def is_paraphrase_identifier(self) -> bool:
        """Whether pairs of sentences are compared, rather than query and passage."""
        return self.kind.kind == "cross-encoder" and self.recipe.get("strategy") == "xpi"

    @property
    def recipe(self) -> dict[str, Any]:
        return dict(self.run.get("recipe") or {})

    @property
    def commands(self) -> list[str]:
        """All that the card shows, as it shows them."""
        given = [self.run.get("command"), self.slim.get("command"), *(kept.command for kept in self.evaluations)]
        return [shown_command(command, repo_id=self.options.repo_id) for command in given if command]


def read_facts(folder: str | Path, *, options: CardOptions | None = None) -> CardFacts:
    """Read a model's folder.

    Args:
        folder: As ``st-xling train`` leaves it, or any that sentence-transformers saved.
        options: What the user says now, over what ``card.json`` says.
    Raises:
        ValueError: No folder, no model in it, files of ours that are broken.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"a card is made of a model's folder: there is no folder {folder}; give a local one.")
    kind = model_kind(folder)
    earlier, found = read_card_file(folder)
    run = _read(folder / "training" / "run.json", _RUN_SHAPE)
    return CardFacts(
        folder,
        kind,
        earlier if options is None else options.over(earlier),
        look_around(run) if found is None else found,
        run,
        _read(folder / RESULTS_FILE, _RESULTS_SHAPE),
        tuple(read_kept_figures(folder)),
        published_thresholds(folder),
    )


def _read(path: Path, shape: Any) -> Any:
    content = read_json_object(path)
    check_shape(content, shape, path)
    return content
