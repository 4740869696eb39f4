"""What kind of model a folder holds, read from its configuration files alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from st_xling.utils.io import check_shape, read_json_object

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
        library_version: Of sentence-transformers, which saved it.
        languages: Tasks of ``encode``: those with a mean of their own.
    """

    kind: Kind
    dimension: int | None = None
    max_tokens: int | None = None
    similarity: str | None = None
    adapters: bool = False
    library_version: str | None = None
    languages: tuple[str, ...] = ()

    @property
    def is_encoder(self) -> bool:
        return self.kind in ("encoder", "separate")


def model_kind(folder: Path) -> ModelKind:
    """The kind of the model in ``folder``.

    Raises:
        ValueError: If there is no model of sentence-transformers or transformers.
    """
    modules_file = folder / "modules.json"
    if not modules_file.is_file():
        return _of_transformers(folder)
    host = read_json_object(folder / "config_sentence_transformers.json")
    check_shape(host, {"__version__": dict, "similarity_fn_name": str}, folder / "config_sentence_transformers.json")
    version = (host.get("__version__") or {}).get("sentence_transformers")
    adapters = any(folder.rglob("adapter_config.json")) and not _is_in_training(folder)
    if host.get("model_type") == "CrossEncoder":
        labels = _labels(folder)
        kind: Kind = "cross-encoder" if labels in (None, 1) else "classifier"
        return ModelKind(kind, max_tokens=_max_tokens(folder), adapters=adapters, library_version=version)
    separate = (folder / "router_config.json").is_file()
    return ModelKind(
        "separate" if separate else "encoder",
        dimension=_dimension(folder),
        max_tokens=_max_tokens(folder),
        similarity=host.get("similarity_fn_name") or "cosine",
        adapters=adapters,
        library_version=version,
        languages=_language_routes(folder),
    )


def _language_routes(folder: Path) -> tuple[str, ...]:
    """Routes of a router behind the encoder, but for the one that is taken without a task."""
    found = (read_json_object(path) for path in sorted(folder.glob("*_Router/router_config.json")))
    return tuple(
        route
        for config in found
        for route in config.get("structure") or ()
        if route != (config.get("parameters") or {}).get("default_route")
    )


def _of_transformers(folder: Path) -> ModelKind:
    config = read_json_object(folder / "config.json")
    check_shape(config, {"architectures": [str]}, folder / "config.json")
    heads = [str(name) for name in config.get("architectures") or ()]
    if any(name.endswith("ForTokenClassification") for name in heads):
        return ModelKind("tagger", max_tokens=_max_tokens(folder))
    raise ValueError(
        f"expected the folder of a model that sentence-transformers saved, with modules.json: got {folder}; "
        "train one, or save it with model.save_pretrained."
    )


def _is_in_training(folder: Path) -> bool:
    """Whether the only adapters are those of checkpoints."""
    return not any("training" not in path.relative_to(folder).parts for path in folder.rglob("adapter_config.json"))


def _parts(folder: Path) -> list[dict[str, Any]]:
    """Configurations of the modules, in order; of a router those of its last route, by which documents go."""
    configs = sorted(
        folder.glob("*_*/config.json"), key=lambda path: (len(path.parent.name.split("_")), path.parent.name)
    )
    return [read_json_object(path) for path in configs if "training" not in path.parts[-2]]


def _dimension(folder: Path) -> int | None:
    sizes = (
        part.get("out_features") or part.get("embedding_dimension") or part.get("word_embedding_dimension")
        for part in _parts(folder)
    )
    found = [size for size in sizes if isinstance(size, int)]
    if found:
        return found[-1]
    size = next((read_json_object(path).get("hidden_size") for path in _configs(folder)), None)
    return size if isinstance(size, int) else None


def _labels(folder: Path) -> int | None:
    sizes = [part["out_features"] for part in _parts(folder) if isinstance(part.get("out_features"), int)]
    if sizes:
        return sizes[-1]
    names = read_json_object(folder / "config.json").get("id2label")
    return len(names) if isinstance(names, dict) else None


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


def _configs(folder: Path) -> list[Path]:
    return [path for path in (folder / "config.json", *sorted(folder.glob("*/config.json"))) if path.is_file()]
