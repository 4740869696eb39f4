"""What kind of model a folder holds, read from its configuration files alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from st_xling.utils.io import read_json_object

Kind = Literal["encoder", "separate", "cross-encoder", "classifier", "tagger"]


@dataclass(frozen=True)
class ModelKind:
    """A model's shape.

    Attributes:
        kind: ``"encoder"``; ``"separate"``: one encoder for queries and one for passages; ``"cross-encoder"``: one
            score a pair; ``"classifier"``: several a pair; ``"tagger"``: labels of words, for transformers alone.
        dimension: Of the embeddings.
        max_tokens: Longer texts are cut.
        similarity: Function that the embeddings are compared by.
        adapters: Whether the weights are adapters on a base model, so that PEFT is needed.
        adapted: Name of that base model, where the adapters say it.
        labels: That a classifier or tagger gives, if it names them.
        library_version: Of sentence-transformers, which saved it.
        tasks: Of ``encode``: languages that are centered by a mean of their own.
        layers: Of the transformer.
        pooling: How its tokens become one vector.
        dtype: Of its weights.
        prompts: Name → what stands before a text; those that say nothing are left out.
        default_prompt: Name of the one that ``encode`` puts there by itself.
    """

    kind: Kind
    dimension: int | None = None
    max_tokens: int | None = None
    similarity: str = "cosine"
    adapters: bool = False
    adapted: str | None = None
    labels: tuple[str, ...] = ()
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
    """The kind of the model in ``folder``.

    Raises:
        ValueError: If there is no model of sentence-transformers or transformers.
    """
    if not (folder / "modules.json").is_file():
        return _tagger(folder)
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
        config = read_json_object(folder / "config.json")
        labels = _last_size(modules, "out_features") or len(_labels(config)) or 1
        return ModelKind("cross-encoder" if labels == 1 else "classifier", labels=_labels(config), **shared)
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


def _tagger(folder: Path) -> ModelKind:
    config = read_json_object(folder / "config.json")
    if any(str(name).endswith("ForTokenClassification") for name in config.get("architectures") or ()):
        return ModelKind("tagger", max_tokens=_max_tokens(folder), labels=_labels(config))
    raise ValueError(
        f"expected the folder of a model that sentence-transformers saved, with modules.json: got {folder}; "
        "train one, or save it with model.save_pretrained."
    )


def _labels(config: dict[str, Any]) -> tuple[str, ...]:
    names = config.get("id2label")
    return tuple(map(str, names.values())) if isinstance(names, dict) else ()


def _language_routes(folder: Path) -> tuple[str, ...]:
    """Routes of a router behind the encoder, but for the one that is taken without a task."""
    configs = (read_json_object(path) for path in sorted(folder.glob("*_Router/router_config.json")))
    return tuple(
        route
        for config in configs
        for route in config.get("structure") or ()
        if route != (config.get("parameters") or {}).get("default_route")
    )


def _last_size(configs: list[dict[str, Any]], *keys: str) -> int | None:
    """The first of ``keys`` in the last configuration that has one."""
    for config in reversed(configs):
        for key in keys:
            if isinstance(config.get(key), int):
                return config[key]
    return None


def _max_tokens(folder: Path) -> int | None:
    for path in (folder, *sorted(folder.glob("document_*")), *sorted(folder.glob("*_Transformer"))):
        for name, key in (
            ("sentence_bert_config.json", "max_seq_length"),
            ("tokenizer_config.json", "model_max_length"),
        ):
            size = read_json_object(path / name).get(key)
            if isinstance(size, int) and 0 < size < 10**6:  # transformers writes 10^30 for "no limit"
                return size
    return None
