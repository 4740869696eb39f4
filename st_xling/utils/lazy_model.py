"""How a model was loaded; one that is loaded when it is needed, and its prompts. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from st_xling.utils.io import read_json_object
from st_xling.utils.text import home_path

ST_CONFIG = "config_sentence_transformers.json"


@dataclass(frozen=True)
class Loaded:
    """How a model was loaded; the card data of our models have it, see :mod:`st_xling.models.load`.

    Attributes:
        name: Hub id or folder, as the user named it.
        options: Options that differ from the saved model, by their names in signatures.
    """

    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LazyModel:
    """A model that a function loads once its input is known to be right: loading takes seconds, or a download.

    Attributes:
        name: Hub id or folder.
        load: Loads it.
        revision: Branch, tag or commit of the Hub.
    """

    name: str
    load: Callable[[], Any]
    revision: str | None = None

    @property
    def loaded(self) -> Loaded:
        """How it will be loaded."""
        if self.revision is None:
            return Loaded(self.name)
        return Loaded(self.name, {"revision": self.revision})


def configured_prompts(name: str, revision: str | None = None) -> dict[str, str]:
    """Return the prompts of a model of sentence-transformers by name, as its folder or the Hub has them.

    Args:
        name: Hub id or folder.
        revision: Branch, tag or commit of the Hub.

    Raises:
        ValueError: If the configuration in the folder is damaged.
    """
    prompts = _configuration(name, revision).get("prompts")
    # Other programs write null where a model has no prompts.
    if not isinstance(prompts, dict):
        prompts = {}
    return {"query": "", "document": "", **prompts}


def _configuration(name: str, revision: str | None) -> dict[str, Any]:
    folder = home_path(name)
    if folder.is_dir():
        path = folder / ST_CONFIG
        return read_json_object(path) if path.is_file() else {}
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

    for repo in (name, f"sentence-transformers/{name}"):
        try:
            return read_json_object(Path(hf_hub_download(repo, ST_CONFIG, revision=revision)))
        except (EntryNotFoundError, HfHubHTTPError, OSError, ValueError):
            continue  # no such file, no such model, or no network: loading the model tells
    return {}
