"""Facts of a card: the user's options in ``card.json``, and the records in a model's folder."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub.utils import validate_repo_id

from st_xling.data.spec import split_spec
from st_xling.evaluation.results import RESULTS_FILE, read_saved_results
from st_xling.mining.thresholds import load_published_thresholds
from st_xling.models.sidecar import card_metadata
from st_xling.utils.io import check_shape, read_json_object
from st_xling.utils.languages import UNKNOWN, check_language_code, hub_language, is_strict_code, split_pair
from st_xling.utils.paths import without_places
from st_xling.utils.text import home_path

CARD, CARD_FILE, RUN_FILE = "README.md", "card.json", "training/run.json"
PHRASEBOOK_LICENSE = "apache-2.0"

_MODEL_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
#: Options that name text to train on → its role, which a retriever's data sets have before their names.
_ROLES = {"data": "queries", "parallel": "parallel", "mono": "others"}

# What a card reads of the records of a run, and what it expects to find there.
_RUN_SHAPE = {
    "command": str,
    "model": str,
    "recipe": {"name": str, "losses": dict},
    "data": {...: {"rows": int}},
    "sources": [{"option": str, "spec": str, "names": [str]}],
}
_RESULTS_SHAPE = {"training": dict, "slim": dict, "postprocess": dict, "leak": dict}

# Task → title, and the Hub's name for such tasks.
TASKS = {
    "tatoeba": ("Translation retrieval", "sentence-similarity"),
    "bucc": ("Bitext mining", "sentence-similarity"),
    "xsim": ("Similarity search by margin (xsim)", "sentence-similarity"),
    "precision": ("Translation matching", "sentence-similarity"),
    "reranking": ("Passage re-ranking", "text-ranking"),
    "retrieval": ("Passage retrieval", "text-retrieval"),
    "transfer-xnli": ("Zero-shot transfer: natural language inference", "text-classification"),
    "transfer-pawsx": ("Zero-shot transfer: paraphrase identification", "text-classification"),
    "transfer-pos": ("Zero-shot transfer: part-of-speech tagging", "token-classification"),
}

_KINDS = {
    "encoder": "cross-lingual sentence encoder",
    "separate": "cross-lingual retriever with an encoder for queries and one for passages",
    "cross-encoder": "cross-lingual re-ranker (cross-encoder)",
}


@dataclass(frozen=True)
class CardOptions:
    """Facts that no file of the model contains. ``None`` keeps the value of an earlier call, an empty one removes it.

    Attributes:
        title: Name of the model; by default made of its kind, languages and recipe.
        repo_id: Repository on the Hub, ``owner/name``, which usage and commands then name.
        license: License of the model, as the Hub spells it: ``apache-2.0``, ``cc-by-4.0``, …
        data_licenses: Name of a training data set, as in the card's table → its license. Added to earlier ones.
        languages: Language codes; by default those of the training data.
        base_model: Hub id of the model that training started from, if that was a folder.
        limits: Markdown that replaces the generated limits.
    """

    title: str | None = None
    repo_id: str | None = None
    license: str | None = None
    data_licenses: dict[str, str] = field(default_factory=dict)
    languages: Sequence[str] | None = None
    base_model: str | None = None
    limits: str | None = None

    def __post_init__(self) -> None:
        for name in filter(None, (self.repo_id, self.base_model)):
            validate_repo_id(name)
        for code in self.languages or ():
            check_language_code(code, "the card")

    def over(self, earlier: CardOptions) -> CardOptions:
        """Return these options, completed by ``earlier``."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        given["data_licenses"] = {**earlier.data_licenses, **self.data_licenses}
        return dataclasses.replace(earlier, **given)


class CardFacts:
    """The content of a model's folder.

    Args:
        folder: As ``st-xling train`` leaves it, or any that sentence-transformers saved.
        options: The user's options, which override those of ``card.json``.
        folder_name: Name of the folder that the model will be moved to, if that is another.
    Raises:
        ValueError: If there is no model, or its records are damaged.

    Attributes:
        folder_name: Name of the model's folder, which usage names until the model has one on the Hub.
        said: The user's options, for ``card.json``.
        found: Ids on the Hub, see :func:`_find_ids`.
        run: ``training/run.json``, or empty, and its ``recipe``.
        results: ``results.json``, or empty; in it the reports of ``slim`` and ``postprocess``, or empty.
        evaluations: Saved results, oldest first.
        thresholds: Thresholds for mining, by pair of languages.
        settings: ``config_sentence_transformers.json``.
        prompts: Name → text before each text; empty ones are omitted.
        default_prompt: Name of the prompt that ``encode`` uses by itself, or ``None``.
        kind: ``"encoder"``, ``"separate"`` (one encoder for queries and one for passages) or ``"cross-encoder"``.
        adapters: True if the weights are adapters on a base model (``train --lora-keep``), so that PEFT is needed.
        is_retriever: True if queries and passages are embedded differently.
        compares_sentences: True if it is a cross-encoder of pairs of sentences, rather than of query and passage.
        dimension: Dimension of the embeddings; ``None`` for a cross-encoder.
        max_tokens: Length that texts are cut to; ``None`` without a limit.
        tasks: Tasks of ``encode``, for languages that are centered by a mean of their own; without the default one.
        license: The user's license, or that of the model that this one was cut from or post-processed.
        base_model: Hub id of the model that training, the cut of the vocabulary or post-processing started from.
        sources: Training data sets: name, rows, fingerprint, the specs that each was read from, id on the Hub and
            license.
        only_phrasebook: True if all training text is the phrasebook's.
        languages: The user's codes, or those in names of the training data and before ``=`` in its specs.
        hub_languages: The same as the Hub spells them, each once.
        kind_words: Kind of the model, in lower case.
        title: The user's title, the name of the repository, or the kind with languages and recipe.
    """

    def __init__(
        self, folder: str | Path, *, options: CardOptions | None = None, folder_name: str | None = None
    ) -> None:
        self.folder = Path(folder)
        self.folder_name = folder_name or self.folder.resolve().name
        if not (self.folder / "modules.json").is_file():
            raise ValueError(
                f"expected the folder of a model that sentence-transformers saved, with modules.json: got {folder}; "
                "train one, or save it with model.save_pretrained."
            )
        card, run = read_json_object(self.folder / CARD_FILE), read_json_object(self.folder / RUN_FILE)
        earlier = CardOptions(**card.get("said", {}))
        self.said = earlier if options is None else options.over(earlier)
        check_shape(run, _RUN_SHAPE, self.folder / RUN_FILE)
        self.found: dict[str, Any] = card.get("found") or _find_ids(run)
        self.run: dict[str, Any] = without_places(run)
        self.recipe: dict[str, Any] = dict(self.run.get("recipe") or {})
        self.results: dict[str, Any] = without_places(read_json_object(self.folder / RESULTS_FILE))
        check_shape(self.results, _RESULTS_SHAPE, self.folder / RESULTS_FILE)
        self.slim: dict[str, Any] = self.results.get("slim") or {}
        self.postprocess: dict[str, Any] = self.results.get("postprocess") or {}
        self.evaluations = read_saved_results(self.folder)
        self.thresholds = load_published_thresholds(self.folder)
        self.settings: dict[str, Any] = read_json_object(self.folder / "config_sentence_transformers.json")
        self.prompts = {name: text for name, text in (self.settings.get("prompts") or {}).items() if text}
        name = self.settings.get("default_prompt_name")
        self.default_prompt = name if name in self.prompts else None

        self.kind = "separate" if (self.folder / "router_config.json").is_file() else "encoder"
        if self.settings.get("model_type") == "CrossEncoder":
            self.kind = "cross-encoder"
        self.adapters = (self.folder / "adapter_config.json").is_file()
        self.is_retriever = self.kind == "separate" or "retrieval" in self.recipe
        self.compares_sentences = self.kind == "cross-encoder" and self.recipe.get("strategy") == "xpi"
        self.dimension = None if self.kind == "cross-encoder" else _dimension(self.folder)
        places = [self.folder, *sorted(self.folder.glob("document_*")), *sorted(self.folder.glob("*_Transformer"))]
        sizes = [read_json_object(place / "tokenizer_config.json").get("model_max_length") for place in places]
        # transformers writes 10^30 where there is no limit.
        self.max_tokens: int | None = next((size for size in sizes if size and size < 10**6), None)
        configs = [read_json_object(path) for path in sorted(self.folder.glob("*_Router/router_config.json"))]
        default = [config["parameters"].get("default_route") for config in configs]
        self.tasks = [route for config in configs for route in config["structure"] if route not in default]

        self.license, self.base_model = self.said.license, self.said.base_model
        if report := self.slim or self.postprocess:
            source_card = report.get("source_card") or {}
            source = report["source"] if "/" in report["source"] else source_card.get("base_model") or ""
            self.license = self.license or source_card.get("license")
            self.base_model = self.base_model or (source if _MODEL_ID.fullmatch(source) else None)
        else:
            self.base_model = self.base_model or self.found["base_model"]
        self.sources = [self._source(name, facts) for name, facts in (self.run.get("data") or {}).items()]
        self.only_phrasebook = _is_phrasebook([spec for source in self.sources for spec in source["specs"]])
        self.languages = self._languages()
        self.hub_languages = list(dict.fromkeys(map(hub_language, self.languages)))
        self.kind_words = _KINDS[self.kind]
        if self.compares_sentences:
            self.kind_words = "cross-lingual paraphrase identifier (cross-encoder)"
        elif self.is_retriever and self.kind == "encoder":
            self.kind_words = "cross-lingual retriever with one encoder for queries and passages"
        self.title = self.said.title or str(self.said.repo_id or "").rpartition("/")[2]
        if not self.title:
            kind = self.kind_words.split(" with ")[0].split(" (")[0]
            recipe = f" ({self.recipe['name']})" if self.recipe.get("name") else ""
            codes = f", {'-'.join(self.languages)}" if 0 < len(self.languages) <= 6 else ""
            self.title = f"{kind[0].upper()}{kind[1:]}{codes}{recipe}"

    def _source(self, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        specs = []
        for role, spec, names in _training_sources(self.run):
            label = name.removeprefix(f"{role}:")
            # A source without names shares its data sets with others, such as those of a cross-encoder.
            if label in names if names else ":" not in label:
                specs.append(spec)
        known = PHRASEBOOK_LICENSE if _is_phrasebook(specs) else "unknown"
        hub_id = split_spec(specs[0]).location if len(specs) == 1 and specs[0] in self.found["data"] else None
        license = self.said.data_licenses.get(name) or known
        read = {"rows": facts.get("rows"), "sha8": facts.get("sha8"), "specs": specs}
        return {"name": name, **read, "hub_id": hub_id, "license": license}

    def _languages(self) -> list[str]:
        if given := self.said.languages or self.slim.get("langs"):
            return list(given)
        codes = [code for source in self.sources for code in _named_languages(source["name"])]
        codes += [code for _, spec, _ in _training_sources(self.run) for code in split_spec(spec).languages]
        codes = [code for code in dict.fromkeys(codes) if code != UNKNOWN]
        return sorted(codes, key=lambda code: (code == "en", codes.index(code)))


def _dimension(folder: Path) -> int | None:
    """Return the dimension of the embeddings: that of the last module whose settings have one."""
    dimension = None
    # Modules in order; of a router, whose folders have longer names, its last route, by which documents go.
    for path in sorted(folder.glob("*_*/config.json"), key=lambda path: (path.parent.name.count("_"), path)):
        config = read_json_object(path)
        for key in ("word_embedding_dimension", "embedding_dimension", "out_features"):
            dimension = config.get(key) or dimension
    return dimension


def has_card_of_others(folder: Path) -> bool:
    """Return whether the folder has a card that we did not write."""
    return (folder / CARD).exists() and not any((folder / trace).is_file() for trace in (CARD_FILE, RUN_FILE))


def _training_sources(run: Mapping[str, Any]) -> list[tuple[str, str, list[str]]]:
    """Role, spec and names of the text that a model was trained on, not of that for evaluation."""
    sources = run.get("sources") or ()
    return [(_ROLES[each["option"]], each["spec"], each["names"]) for each in sources if each["option"] in _ROLES]


def _is_phrasebook(specs: Sequence[str]) -> bool:
    return bool(specs) and all(split_spec(spec).is_phrasebook for spec in specs)


def _named_languages(name: str) -> tuple[str, ...]:
    """Return the languages in the name of a data set: ``de-en-2``, ``parallel:de-en``, ``others:de:texts``."""
    role, *parts = name.split(":") if ":" in name else ("", name)
    part = re.sub(r"-\d{1,2}$", "", parts[0])
    if pair := split_pair(part):
        return pair
    return (part,) if role in ("queries", "others") and is_strict_code(part) else ()


def _find_ids(run: Mapping[str, Any]) -> dict[str, Any]:
    """Find the names in a run that are ids of the Hub: that ``a/b`` is not a folder is only known where it was made.

    Returns:
        ``base_model``: where training started, or ``None``; ``data``: specs of data sets of the Hub.
    """
    start = str(run.get("model") or "tiny")
    if Path(start).is_dir():  # such as a slim model: what that started from
        start = str(card_metadata(start).get("base_model") or "tiny")
    is_id = _MODEL_ID.fullmatch(start) and start != "tiny" and not Path(start).exists()
    data = []
    for _, spec, _ in _training_sources(run):
        location = split_spec(spec).location
        path = home_path(location)
        is_local = path.exists() or any(path.parent.glob(f"{path.name}.*"))  # corpus means corpus.de and corpus.en
        if "/" in location and _MODEL_ID.fullmatch(location) and not is_local:
            data.append(spec)
    return {"base_model": start if is_id else None, "data": data}
