"""Facts of a card: the user's words in ``card.json``, and what is recorded in a model's folder."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from st_xling.data.spec import paired_languages, parse_spec, split_spec
from st_xling.evaluation.results import RESULTS_FILE, SavedResults, read_saved_results
from st_xling.hub.markdown import one_line
from st_xling.mining.thresholds import PublishedThreshold, load_published_thresholds
from st_xling.models.sidecar import card_metadata, card_terms
from st_xling.utils.io import read_json_object
from st_xling.utils.languages import UNKNOWN as UNKNOWN_LANGUAGE
from st_xling.utils.languages import hub_language, is_code, is_strict_code, split_pair
from st_xling.utils.paths import without_places
from st_xling.utils.text import home_path

CARD, CARD_FILE, RUN_FILE = "README.md", "card.json", "training/run.json"
PHRASEBOOK_LICENSE = "apache-2.0"

_HUB_LICENSES = Path(__file__).with_name("licenses.txt").read_text(encoding="utf-8").splitlines()[1:]
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_MODEL_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_FILE = re.compile(r".*\.(?:tsv|csv|txt|jsonl?|parquet|arrow)(?:\.\w+)?")
#: Options that name text to train on → its role, which a retriever's data sets have before their names.
_ROLES = {"data": "queries", "parallel": "parallel", "others": "others", "mono": "mono"}


def check_license(license: str) -> None:
    """Raise ``ValueError`` unless ``license`` is one of the Hub's identifiers."""
    if license not in _HUB_LICENSES:
        raise ValueError(
            f"license must be an identifier of the Hub, such as apache-2.0 or mit, got {license!r}; for another one "
            "use other, and in a model's card license_name and license_link."
        )


@dataclass(frozen=True)
class CardOptions:
    """Words and facts that no file of the model holds. ``None`` leaves what an earlier call said.

    Attributes:
        title: Name of the model; otherwise made of what it does.
        repo_id: Where it lies on the Hub, ``owner/name``; usage and commands then name it.
        license: Of the model, one of the Hub's identifiers: ``apache-2.0``, ``cc-by-4.0``, … or ``other``.
        license_name: With ``other``: its name.
        license_link: With ``other``: where to read it.
        data_licenses: Name of a training data set, as the card's table has it → its license. Added to earlier ones.
        languages: Codes; otherwise those of the training data.
        base_model: Hub id of the model that training started from, where it was a folder.
        intended_use: What it is for, above the limits; paragraphs separated by blank lines.
        limits: Instead of the generated ones.
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
    intended_use: str | None = None
    limits: str | None = None
    authors: tuple[str, ...] | None = None
    citation: str | None = None

    def __post_init__(self) -> None:
        for name in ("repo_id", "base_model"):
            try:
                validate_repo_id(getattr(self, name) or "owner/name")
            except HFValidationError as error:
                raise ValueError(f"{name} must be an id on the Hub, such as owner/name: {error}") from error
        if self.license:
            check_license(self.license)
        if wrong := [code for code in self.languages or () if not is_code(code)]:
            raise ValueError(f"languages are codes such as de, deu or zh-CN, got {', '.join(map(repr, wrong))}.")

    def over(self, earlier: CardOptions) -> CardOptions:
        """These, completed by ``earlier``."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        return dataclasses.replace(
            earlier, **{**said, "data_licenses": {**earlier.data_licenses, **self.data_licenses}}
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the options that are set, for JSON."""
        said = {name: value for name, value in vars(self).items() if value}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}


@dataclass(frozen=True)
class ModelKind:
    """A model's shape.

    Attributes:
        kind: ``"encoder"``; ``"separate"``: one encoder for queries and one for passages; ``"cross-encoder"``.
        dimension: Of the embeddings.
        max_tokens: Longer texts are cut.
        similarity: Function that the embeddings are compared by.
        adapters: Whether the weights are adapters on a base model, so that PEFT is needed.
        adapted: Name of that base model, where the adapters say it.
        library_version: Of sentence-transformers, which saved it.
        tasks: Of ``encode``: languages that are centered by a mean of their own.
        layers: Of the transformer.
        pooling: How its tokens become one vector.
        dtype: Of its weights.
        prompts: Name → text before each text; empty ones are omitted.
        default_prompt: Name of the one that ``encode`` puts there by itself.
    """

    kind: Literal["encoder", "separate", "cross-encoder"]
    dimension: int | None = None
    max_tokens: int | None = None
    similarity: str = "cosine"
    adapters: bool = False
    adapted: str | None = None
    library_version: str | None = None
    tasks: tuple[str, ...] = ()
    layers: int | None = None
    pooling: str | None = None
    dtype: str | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None

    @property
    def is_encoder(self) -> bool:
        return self.kind in ("encoder", "separate")


def model_kind(folder: Path) -> ModelKind:
    """Read the kind of the model in ``folder`` from its configuration files.

    Raises:
        ValueError: If there is no model of sentence-transformers, or it is a classifier of pairs.
    """
    if not (folder / "modules.json").is_file():
        raise ValueError(
            f"expected the folder of a model that sentence-transformers saved, with modules.json: got {folder}; "
            "train one, or save it with model.save_pretrained."
        )
    settings = read_json_object(folder / "config_sentence_transformers.json")
    # Modules in order; of a router, whose folders have longer names, its last route, by which documents go.
    configs = sorted(
        folder.glob("*_*/config.json"), key=lambda path: (len(path.parent.name.split("_")), path.parent.name)
    )
    modules = [read_json_object(path) for path in configs]
    # Checkpoints of a training may hold adapters that the model itself has merged.
    adapters = [
        path for path in folder.rglob("adapter_config.json") if "training" not in path.relative_to(folder).parts
    ]
    encoders = [folder / "config.json", *sorted(folder.glob("*/config.json"))]
    encoder: dict[str, Any] = next((c for c in map(read_json_object, encoders) if "num_hidden_layers" in c), {})
    shared: dict[str, Any] = {
        "layers": encoder.get("num_hidden_layers"),
        "dtype": encoder.get("dtype") or encoder.get("torch_dtype"),
        "max_tokens": _max_tokens(folder),
        "adapters": bool(adapters),
        "adapted": next((read_json_object(path).get("base_model_name_or_path") for path in adapters), None),
        "library_version": (settings.get("__version__") or {}).get("sentence_transformers"),
    }
    if settings.get("model_type") == "CrossEncoder":
        labels = len(read_json_object(folder / "config.json").get("id2label") or ())
        if (scores := _last_size(modules, "out_features") or labels or 1) > 1:
            raise ValueError(
                f"cards are for encoders, and cross-encoders with one score: {folder} has {scores} scores a pair; keep "
                "the card that sentence-transformers writes."
            )
        return ModelKind("cross-encoder", **shared)
    return ModelKind(
        "separate" if (folder / "router_config.json").is_file() else "encoder",
        dimension=_last_size(modules, "out_features", "embedding_dimension", "word_embedding_dimension")
        or encoder.get("hidden_size"),
        pooling=next((str(module["pooling_mode"]) for module in modules if "pooling_mode" in module), None),
        prompts={name: text for name, text in (settings.get("prompts") or {}).items() if text},
        default_prompt=settings.get("default_prompt_name"),
        similarity=settings.get("similarity_fn_name") or "cosine",
        tasks=_language_routes(folder),
        **shared,
    )


def _language_routes(folder: Path) -> tuple[str, ...]:
    """Return the routes of a router behind the encoder, but for the one that is taken without a task."""
    configs = [read_json_object(path) for path in sorted(folder.glob("*_Router/router_config.json"))]
    default = [(config.get("parameters") or {}).get("default_route") for config in configs]
    return tuple(route for config in configs for route in config.get("structure") or () if route not in default)


def _last_size(configs: list[dict[str, Any]], *keys: str) -> int | None:
    """Return the first of ``keys`` in the last configuration that has one."""
    sizes = (config[key] for config in reversed(configs) for key in keys if isinstance(config.get(key), int))
    return next(sizes, None)


def _max_tokens(folder: Path) -> int | None:
    for path in (folder, *sorted(folder.glob("document_*")), *sorted(folder.glob("*_Transformer"))):
        sizes = (
            read_json_object(path / "sentence_bert_config.json").get("max_seq_length"),
            read_json_object(path / "tokenizer_config.json").get("model_max_length"),
        )
        for size in sizes:
            if isinstance(size, int) and 0 < size < 10**6:  # transformers writes 10^30 for "no limit"
                return size
    return None


@dataclass(frozen=True)
class DataSource:
    """One training data set.

    Attributes:
        name: As the run's manifest has it.
        rows: So many were trained on; ``None`` where nobody knows.
        sha8: Fingerprint of the text.
        specs: What options of the command said of it; several where they were put together.
        hub_id: Of a data set of the Hub.
        license: The user's, that of the phrasebook, or ``"unknown"``.
    """

    name: str
    rows: int | None = None
    sha8: str | None = None
    specs: tuple[str, ...] = ()
    hub_id: str | None = None
    license: str = "unknown"


# Task → title, and the Hub's name for such tasks.
TASKS = {
    "tatoeba": ("Translation retrieval", "sentence-similarity"),
    "bucc": ("Bitext mining", "sentence-similarity"),
    "xsim": ("Similarity search by margin (xsim)", "sentence-similarity"),
    "precision": ("Translation matching", "sentence-similarity"),
    "reranking": ("Passage re-ranking", "text-ranking"),
    "retrieval": ("Passage retrieval", "text-retrieval"),
    "transfer-xnli": ("Zero-shot transfer: XNLI", "text-classification"),
    "transfer-pawsx": ("Zero-shot transfer: PAWS-X", "text-classification"),
    "transfer-pos": ("Zero-shot transfer: part-of-speech tagging", "token-classification"),
}


_KINDS = {
    "encoder": "cross-lingual sentence encoder",
    "separate": "cross-lingual retriever with an encoder for queries and one for passages",
    "cross-encoder": "cross-lingual re-ranker (cross-encoder)",
}


@dataclass(frozen=True)
class CardFacts:
    """A model's folder, read.

    Attributes:
        folder: The folder.
        kind: What the model is.
        said: The user's options, for ``card.json``.
        looked_up: ``base_model`` and ``data`` that are ids on the Hub, see :func:`_look_up`.
        run: ``training/run.json``, or empty.
        results: ``results.json``, or empty.
        evaluations: Saved results, oldest first.
        thresholds: For mining, by pair of languages.
    """

    folder: Path
    kind: ModelKind
    said: CardOptions
    looked_up: Mapping[str, Any]
    run: Mapping[str, Any]
    results: Mapping[str, Any]
    evaluations: list[SavedResults]
    thresholds: Mapping[str, PublishedThreshold]

    @property
    def recipe(self) -> dict[str, Any]:
        return dict(self.run.get("recipe") or {})

    @cached_property
    def options(self) -> CardOptions:
        """The user's options, completed from the card of the model's source or from one that others wrote."""
        options = CardOptions()
        report = self.slim or self.postprocess
        for term, text in (report.get("source_card") or self.looked_up.get("card") or {}).items():
            with contextlib.suppress(ValueError):  # cards of others may contain anything
                options = dataclasses.replace(options, **{term: text})
        return self.said.over(options)

    @property
    def slim(self) -> Mapping[str, Any]:
        """Report of ``st-xling slim``, or empty."""
        return self.results.get("slim") or {}

    @property
    def postprocess(self) -> Mapping[str, Any]:
        """Report of ``st-xling postprocess``, or empty."""
        return self.results.get("postprocess") or {}

    @property
    def is_retriever(self) -> bool:
        """True if queries and passages are embedded differently."""
        return self.kind.kind == "separate" or "retrieval" in self.recipe

    @property
    def compares_sentences(self) -> bool:
        """True if it is a cross-encoder of pairs of sentences, rather than of query and passage."""
        return self.kind.kind == "cross-encoder" and self.recipe.get("strategy") == "xpi"

    @property
    def kind_words(self) -> str:
        """Kind of the model, in lower case."""
        if self.compares_sentences:
            return "cross-lingual paraphrase identifier (cross-encoder)"
        if self.is_retriever and self.kind.kind == "encoder":
            return "cross-lingual retriever with one encoder for queries and passages"
        return _KINDS[self.kind.kind]

    @property
    def title(self) -> str:
        """Title: the user's, the name of its repository, or its kind with languages and recipe."""
        if self.options.title:
            return one_line(self.options.title)
        if self.options.repo_id:
            return self.options.repo_id.rpartition("/")[2]
        kind = self.kind_words.split(" with ")[0].split(" (")[0]
        recipe = f" ({one_line(self.recipe['name'])})" if self.recipe.get("name") else ""
        codes = f", {'-'.join(self.languages)}" if 0 < len(self.languages) <= 6 else ""
        return f"{kind[0].upper()}{kind[1:]}{codes}{recipe}"

    @property
    def base_model(self) -> str | None:
        """Hub id of what training, or the cut of the vocabulary, started from."""
        if not (report := self.slim or self.postprocess):
            adapted = self.kind.adapted if _MODEL_ID.fullmatch(self.kind.adapted or "") else None
            return self.options.base_model or self.looked_up.get("base_model") or adapted
        source = report["source"] if "/" in report["source"] else None
        return self.said.base_model or source or self.options.base_model

    @cached_property
    def sources(self) -> list[DataSource]:
        """Training data sets; a license of another name is a source of its own."""
        data, licenses, hub = self.run.get("data") or {}, self.options.data_licenses, self.looked_up.get("data") or {}
        sources = []
        for name, facts in data.items():
            specs = _specs_of(name, self.run)
            known = PHRASEBOOK_LICENSE if specs and all(split_spec(spec).is_phrasebook for spec in specs) else "unknown"
            hub_id = hub[specs[0]]["id"] if len(specs) == 1 and specs[0] in hub else None
            license = licenses.get(name) or known
            sources.append(DataSource(name, facts.get("rows"), facts.get("sha8"), specs, hub_id, license))
        return sources + [DataSource(name, license=text) for name, text in licenses.items() if name not in data]

    @property
    def only_phrasebook(self) -> bool:
        """True if all training text is the phrasebook's."""
        specs = [spec for source in self.sources for spec in source.specs]
        return bool(specs) and all(split_spec(spec).is_phrasebook for spec in specs)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The user's codes, or those in names of the training data and labels of its specs."""
        if self.options.languages:
            return self.options.languages
        if self.slim:
            return tuple(self.slim["langs"])
        codes = [code for source in self.sources for code in _named_languages(source.name)]
        for _, spec, _ in _training_sources(self.run):
            parts = split_spec(spec)
            if parts.is_phrasebook and not parts.languages:
                codes += [*paired_languages(parse_spec(spec, {})), "en"]
            codes += parts.languages
        codes = [code for code in dict.fromkeys(codes) if code != UNKNOWN_LANGUAGE]
        return tuple(sorted(codes, key=lambda code: (code == "en", codes.index(code))))

    @property
    def hub_languages(self) -> list[str]:
        """The same as the Hub spells them, each once."""
        return list(dict.fromkeys(map(hub_language, self.languages)))


def has_card_of_others(folder: Path) -> bool:
    """Return whether the folder has a card that we did not write."""
    return (folder / CARD).exists() and not any((folder / trace).is_file() for trace in (CARD_FILE, RUN_FILE))


def read_facts(folder: str | Path, *, options: CardOptions | None = None) -> CardFacts:
    """Read a model's folder.

    Args:
        folder: As ``st-xling train`` leaves it, or any that sentence-transformers saved.
        options: The user's options, which override those of ``card.json``.
    Raises:
        ValueError: No folder, no model in it, files of ours that are broken.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"expected the folder of a model: there is no folder {folder}; give one, such as a copy.")
    kind = model_kind(folder)
    earlier, looked_up = _read_card_file(folder / CARD_FILE)
    run, results = read_json_object(folder / RUN_FILE), read_json_object(folder / RESULTS_FILE)
    return CardFacts(
        folder,
        kind,
        earlier if options is None else options.over(earlier),
        _look_up(folder, run) if looked_up is None else looked_up,
        without_places(run),
        without_places(results),
        read_saved_results(folder),
        load_published_thresholds(folder),
    )


def _read_card_file(path: Path) -> tuple[CardOptions, dict[str, Any] | None]:
    """Read the options in ``card.json``, and what was looked up for the first card."""
    if not path.is_file():
        return CardOptions(), None
    content = read_json_object(path)
    said: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in content["said"].items()
    }
    return CardOptions(**said), content["found"]


def _training_sources(run: Mapping[str, Any]) -> list[tuple[str, str, list[str]]]:
    """Role, spec and names of the text that a model was trained on, not of that for evaluation."""
    sources = [(source["option"].lstrip("-").replace("-", "_"), source) for source in run.get("sources") or ()]
    return [(_ROLES[option], source["spec"], source["names"]) for option, source in sources if option in _ROLES]


def _specs_of(name: str, run: Mapping[str, Any]) -> tuple[str, ...]:
    """The specs that a training data set was read from."""
    recipe = run.get("recipe") or {}
    if "strategy" in recipe:  # the stages of a cross-encoder are made of all their specs together
        return tuple(spec for _, spec, _ in _training_sources(run))
    specs = []
    for role, spec, names in _training_sources(run):
        # Without names, several data sets of the role came from several specs, and cannot be distinguished.
        unnamed = not names and (":" not in name or name.startswith(f"{role}:"))
        if unnamed or name in [*names, *(f"{role}:{part}" for part in names)]:
            specs.append(spec)
    return tuple(specs)


def _named_languages(name: str) -> tuple[str, ...]:
    """Return the languages in the name of a data set: ``de-en-2``, ``parallel:de-en``, ``others:de:texts``."""
    role, *parts = name.split(":") if ":" in name else ("", name)
    part = re.sub(r"-\d{1,2}$", "", parts[0])
    if pair := split_pair(part):
        return pair
    return (part,) if role in ("queries", "others") and is_strict_code(part) else ()


def _look_up(folder: Path, run: Mapping[str, Any]) -> dict[str, Any]:
    """Find the names in a run that are ids of the Hub: that ``a/b`` is not a folder is only known where it was made.

    Returns:
        ``base_model``: where training started, or ``None``; ``data``: spec → its ``id``; ``card``: of a model that
        others made, license and base model in its card.
    """
    start = run.get("model")
    data = {}
    for _, spec, _ in _training_sources(run):
        location = split_spec(spec).location
        path = home_path(location)
        files = path.exists() or _FILE.fullmatch(location) or any(path.parent.glob(f"{path.name}.*"))
        if _HUB_ID.fullmatch(location) and not files:
            data[spec] = {"id": location}
    if isinstance(start, str) and Path(start).is_dir():  # such as a slim model: what that started from
        start = card_metadata(start).get("base_model")
    is_id = isinstance(start, str) and start not in ("tiny", "a loaded model") and _MODEL_ID.fullmatch(start)
    found = {"base_model": start if is_id and not Path(str(start)).exists() else None, "data": data}
    return found if run else {**found, "card": card_terms(folder)}
