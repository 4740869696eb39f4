"""Facts of a card: the user's options in ``card.json``, and the records in a model's folder."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub.utils import validate_repo_id

from st_xling.data.spec import split_spec
from st_xling.evaluation.results import RESULTS_FILE, read_saved_results
from st_xling.mining.thresholds import load_published_thresholds
from st_xling.models.pair_filter import load_pair_filter
from st_xling.models.sidecar import saved_card_metadata
from st_xling.utils.built_sizes import BUILT_MODELS
from st_xling.utils.io import check_shape, read_json_object
from st_xling.utils.languages import UNKNOWN, check_language_code, hub_language, is_strict_code, split_pair
from st_xling.utils.paths import without_places
from st_xling.utils.text import home_path

CARD = "README.md"
CARD_FILE = "card.json"
RUN_FILE = "training/run.json"
PHRASEBOOK_LICENSE = "apache-2.0"

_MODEL_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
#: Options that name text to train on → its role, which a retriever's data sets have before their names.
_ROLES = {"data": "queries", "parallel": "parallel", "mono": "others"}

# Content of card.json: the options that the user has given, and the names in the run that are ids on the Hub.
_CARD_SHAPE = {
    "given": {
        "title": str,
        "repo_id": str,
        "license": str,
        "data_licenses": {...: str},
        "languages": [str],
        "base_model": str,
        "limits": str,
    },
    "hub_ids": {"base_model": str, "data": [str]},
}
# What a card reads of the records of a run, and what it expects to find there.
_RUN_SHAPE = {
    "command": str,
    "model": str,
    "recipe": {"name": str, "losses": dict},
    "data": {...: {"rows": int}},
    "sources": [{"option": str, "spec": str, "names": [str]}],
}
_RESULTS_SHAPE = {
    "training": dict,
    "slim": dict,
    "postprocess": dict,
    "add-language": dict,
    "merge": dict,
    "before_after": dict,
    "leak": dict,
}

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

_KIND_WORDS = {
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
        changes = {name: value for name, value in vars(self).items() if value is not None}
        changes["data_licenses"] = {**earlier.data_licenses, **self.data_licenses}
        return dataclasses.replace(earlier, **changes)


@dataclass(frozen=True)
class CardDataset:
    """A data set that a model was trained on, as the card's table shows it.

    Attributes:
        name: Name of the data set in the run.
        rows: Number of rows; ``None``: not recorded.
        sha8: Fingerprint; ``None``: not recorded.
        specs: Specs that it was read from.
        hub_id: Id on the Hub; ``None`` for files, and for a data set that was read from several specs.
        license: License, ``"unknown"`` by default.
    """

    name: str
    rows: int | None
    sha8: str | None
    specs: list[str]
    hub_id: str | None
    license: str


class _TrainingSource(NamedTuple):
    """Text that the user named for training: its role, its spec, and the data sets that were read from it."""

    role: str
    spec: str
    names: list[str]


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
        given: The user's options, for ``card.json``.
        hub_ids: Names in the run that are ids on the Hub, for ``card.json``; see :func:`_find_hub_ids`.
        run: ``training/run.json``, or empty, and its ``recipe``.
        results: ``results.json``, or empty; in it the reports of ``slim``, ``postprocess``, ``add-language``, ``merge``
            and ``before_after``, or empty.
        evaluations: Saved results, oldest first.
        thresholds: Thresholds for mining, by pair of languages.
        settings: ``config_sentence_transformers.json``.
        prompts: Name → text before each text; empty ones are omitted.
        default_prompt: Name of the prompt that ``encode`` uses by itself, or ``None``.
        kind: ``"encoder"``, ``"separate"`` (one encoder for queries and one for passages) or ``"cross-encoder"``.
        adapters: True if the weights are adapters on a base model (``train --lora-keep``), so that PEFT is needed.
        is_retriever: True if queries and passages are embedded differently.
        compares_sentences: True if it is a cross-encoder of pairs of sentences, rather than of query and passage.
        is_filter: True if it is a filter of translations.
        pair_filter: Calibration and threshold of a filter; ``None``: it was not calibrated.
        dimension: Dimension of the embeddings; ``None`` for a cross-encoder.
        max_tokens: Length that texts are cut to; ``None`` without a limit.
        tasks: Tasks of ``encode``, one for each language with its own mean for centering; without the default one.
        license: The user's license, or that of the model that this one was cut from or post-processed.
        base_model: Hub id of the model that training, the cut of the vocabulary or post-processing started from.
        sources: Training data sets.
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
        card = read_json_object(self.folder / CARD_FILE)
        run = read_json_object(self.folder / RUN_FILE)
        _check_card_file(card, self.folder / CARD_FILE)
        earlier = CardOptions(**card.get("given") or {})
        self.given = earlier if options is None else options.over(earlier)
        check_shape(run, _RUN_SHAPE, self.folder / RUN_FILE)
        self.hub_ids: dict[str, Any] = card.get("hub_ids") or _find_hub_ids(run)
        self.run: dict[str, Any] = without_places(run)
        self.recipe: dict[str, Any] = dict(self.run.get("recipe") or {})
        self.results: dict[str, Any] = without_places(read_json_object(self.folder / RESULTS_FILE))
        check_shape(self.results, _RESULTS_SHAPE, self.folder / RESULTS_FILE)
        self.slim: dict[str, Any] = self.results.get("slim") or {}
        self.postprocess: dict[str, Any] = self.results.get("postprocess") or {}
        self.added: dict[str, Any] = self.results.get("add-language") or {}
        self.merge: dict[str, Any] = self.results.get("merge") or {}
        self.before_after: dict[str, Any] = self.results.get("before_after") or {}
        self.evaluations = read_saved_results(self.folder)
        self.thresholds = load_published_thresholds(self.folder)

        self.settings: dict[str, Any] = read_json_object(self.folder / "config_sentence_transformers.json")
        self.prompts = {name: text for name, text in (self.settings.get("prompts") or {}).items() if text}
        default_prompt = self.settings.get("default_prompt_name")
        self.default_prompt = default_prompt if default_prompt in self.prompts else None
        self.kind = "separate" if (self.folder / "router_config.json").is_file() else "encoder"
        if self.settings.get("model_type") == "CrossEncoder":
            self.kind = "cross-encoder"
        self.adapters = (self.folder / "adapter_config.json").is_file()
        self.is_retriever = self.kind == "separate" or "retrieval" in self.recipe
        self.pair_filter = load_pair_filter(self.folder) if self.kind == "cross-encoder" else None
        strategy = self.recipe.get("strategy")
        self.is_filter = self.kind == "cross-encoder" and strategy == "filter"
        self.compares_sentences = self.is_filter or (self.kind == "cross-encoder" and strategy == "xpi")
        self.dimension = None if self.kind == "cross-encoder" else _dimension(self.folder)
        self.max_tokens = _max_tokens(self.folder)
        self.tasks = _language_tasks(self.folder)

        self.license = self.given.license
        self.base_model = self.given.base_model
        self._complete_by_origin()
        self.sources = [self._training_data(name, facts) for name, facts in (self.run.get("data") or {}).items()]
        all_specs: list[str] = []
        for source in self.sources:
            all_specs += source.specs
        self.only_phrasebook = _is_phrasebook(all_specs)
        self.languages = self._language_codes()
        self.hub_languages = list(dict.fromkeys(map(hub_language, self.languages)))
        self.kind_words = self._describe_kind()
        # The name of the repository without its owner.
        self.title = self.given.title or str(self.given.repo_id or "").rpartition("/")[2] or self._default_title()

    def _complete_by_origin(self) -> None:
        """Complete license and base model, where the user gave none, by the model that this one was made from."""
        report = self.slim or self.postprocess or self.added
        if not report:
            self.base_model = self.base_model or self.hub_ids["base_model"]
            return
        source_card = report.get("source_card") or {}
        source = report["source"] if "/" in report["source"] else source_card.get("base_model") or ""
        self.license = self.license or source_card.get("license")
        self.base_model = self.base_model or (source if _MODEL_ID.fullmatch(source) else None)

    def _training_data(self, name: str, facts: Mapping[str, Any]) -> CardDataset:
        specs = []
        for source in _training_sources(self.run):
            label = name.removeprefix(f"{source.role}:")
            # A source without names shares its data sets with others, such as those of a cross-encoder.
            is_source = label in source.names if source.names else ":" not in label
            if is_source:
                specs.append(source.spec)
        is_on_hub = len(specs) == 1 and specs[0] in self.hub_ids["data"]
        known_license = PHRASEBOOK_LICENSE if _is_phrasebook(specs) else "unknown"
        return CardDataset(
            name=name,
            rows=facts.get("rows"),
            sha8=facts.get("sha8"),
            specs=specs,
            hub_id=split_spec(specs[0]).location if is_on_hub else None,
            license=self.given.data_licenses.get(name) or known_license,
        )

    def _language_codes(self) -> list[str]:
        """Return the user's codes, else those in the names and specs of the training data, with English last."""
        if codes := self.given.languages or self.slim.get("langs") or self.added.get("langs"):
            return list(codes)
        data_codes: list[str] = []
        for data in self.sources:
            data_codes += _languages_in_name(data.name)
        for source in _training_sources(self.run):
            data_codes += split_spec(source.spec).languages
        distinct = [code for code in dict.fromkeys(data_codes) if code != UNKNOWN]
        return [code for code in distinct if code != "en"] + [code for code in distinct if code == "en"]

    def _describe_kind(self) -> str:
        if self.is_filter:
            return "filter of translations (cross-encoder)"
        if self.compares_sentences:
            return "cross-lingual paraphrase identifier (cross-encoder)"
        if self.is_retriever and self.kind == "encoder":
            return "cross-lingual retriever with one encoder for queries and passages"
        return _KIND_WORDS[self.kind]

    def _default_title(self) -> str:
        kind = self.kind_words.split(" with ")[0].split(" (")[0]
        recipe = f" ({self.recipe['name']})" if self.recipe.get("name") else ""
        codes = f", {'-'.join(self.languages)}" if 0 < len(self.languages) <= 6 else ""
        return f"{kind[0].upper()}{kind[1:]}{codes}{recipe}"


def _check_card_file(card: Mapping[str, Any], path: Path) -> None:
    """Raise ``ValueError`` for keys of ``card.json`` that are not ours, and values of another type."""
    check_shape(card, _CARD_SHAPE, path)
    for content, shape in ((card, _CARD_SHAPE), (card.get("given") or {}, _CARD_SHAPE["given"])):
        if unknown := [key for key in content if key not in shape]:
            raise ValueError(
                f"{path}: expected the keys {', '.join(shape)}, got {', '.join(unknown)}; remove the file, and give "
                "the options again (st-xling card)."
            )


def _max_tokens(folder: Path) -> int | None:
    """Return the length that texts are cut to: that of the first tokenizer with a limit, passages before queries."""
    folders = [folder, *sorted(folder.glob("document_*")), *sorted(folder.glob("*_Transformer"))]
    for path in folders:
        size = read_json_object(path / "tokenizer_config.json").get("model_max_length")
        # transformers writes 10^30 where there is no limit.
        if size and size < 10**6:
            return size
    return None


def _language_tasks(folder: Path) -> list[str]:
    """Return the routes of a model that centers each language by its own mean, without the default route."""
    configs = [read_json_object(path) for path in sorted(folder.glob("*_Router/router_config.json"))]
    defaults = [config["parameters"].get("default_route") for config in configs]
    routes: list[str] = []
    for config in configs:
        routes += config["structure"]
    return [route for route in routes if route not in defaults]


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


def _training_sources(run: Mapping[str, Any]) -> list[_TrainingSource]:
    """Return the text that a model was trained on, not that for evaluation."""
    sources = [source for source in run.get("sources") or () if source["option"] in _ROLES]
    return [_TrainingSource(_ROLES[source["option"]], source["spec"], source["names"]) for source in sources]


def _is_phrasebook(specs: Sequence[str]) -> bool:
    return bool(specs) and all(split_spec(spec).is_phrasebook for spec in specs)


def _languages_in_name(name: str) -> tuple[str, ...]:
    """Return the languages in the name of a data set: ``de-en-2``, ``parallel:de-en``, ``others:de:texts``."""
    role, *labels = name.split(":") if ":" in name else ("", name)
    # Later data sets of the same languages are numbered.
    languages = re.sub(r"-\d{1,2}$", "", labels[0])
    if pair := split_pair(languages):
        return pair
    is_language = role in ("queries", "others") and is_strict_code(languages)
    return (languages,) if is_language else ()


def _find_hub_ids(run: Mapping[str, Any]) -> dict[str, Any]:
    """Find the names in a run that are ids on the Hub: that ``a/b`` is not a folder is only known where it was made.

    Returns:
        ``base_model``: where training started, or ``None``; ``data``: specs of data sets of the Hub.
    """
    start = str(run.get("model") or "tiny")
    if Path(start).is_dir():  # such as a slim model: what that started from
        start = str(saved_card_metadata(start).get("base_model") or "tiny")
    is_id = _MODEL_ID.fullmatch(start) and start not in BUILT_MODELS and not Path(start).exists()

    data = []
    for source in _training_sources(run):
        location = split_spec(source.spec).location
        path = home_path(location)
        is_local = path.exists() or any(path.parent.glob(f"{path.name}.*"))  # corpus means corpus.de and corpus.en
        if "/" in location and _MODEL_ID.fullmatch(location) and not is_local:
            data.append(source.spec)
    return {"base_model": start if is_id else None, "data": data}
