"""Load a model from a folder or the Hub, and save it with its card, results, thresholds and pictures."""

from __future__ import annotations

from pathlib import Path

from sentence_transformers import CrossEncoder, SentenceTransformer

from st_xling.hub.push import UNSAFE_SUFFIXES, hub_errors
from st_xling.models.load import load_sentence_transformer
from st_xling.models.sidecar import save_with_sidecar_files
from st_xling.utils.io import read_json_object


def load(
    name_or_path: str | Path,
    *,
    revision: str | None = None,
    token: str | None = None,
    device: str | None = None,
    cache_folder: str | Path | None = None,
) -> SentenceTransformer | CrossEncoder:
    """Load a model, as sentence-transformers does.

    Args:
        name_or_path: Folder, or ``user/name`` on the Hub.
        revision: Branch, tag or commit on the Hub.
        token: ``None``: the login of huggingface_hub.
        device: Where to put it; ``None``: as sentence-transformers chooses.
        cache_folder: For files of the Hub; ``None``: the Hub's own cache.

    Raises:
        ValueError: Nothing loadable there; a revision of a folder.
        HubError: If the Hub cannot be reached or refuses a request.
    """
    folder = _folder(name_or_path, revision, token, cache_folder)
    kind = CrossEncoder if _is_cross_encoder(folder) else SentenceTransformer
    return load_sentence_transformer(kind, str(folder), device=device)


def save(
    model: SentenceTransformer | CrossEncoder,
    path: str | Path,
    *,
    source: str | Path,
    revision: str | None = None,
    token: str | None = None,
    cache_folder: str | Path | None = None,
) -> None:
    """Save a model as ``save_pretrained`` does, with card, results, thresholds and pictures of its source.

    They are only copied as long as ``model`` is the model of ``source``.

    Args:
        model: The model.
        path: Folder to save to.
        source: Folder, or ``user/name`` on the Hub, that it was loaded from.
        revision: As of :func:`load`.
        token: Likewise.
        cache_folder: Likewise.

    Raises:
        ValueError: Nothing at ``source``; a revision of a folder.
        HubError: If the Hub cannot be reached or refuses a request.
    Example:
        >>> save(load("user/my-encoder"), "copy", source="user/my-encoder")     # doctest: +SKIP
    """
    save_with_sidecar_files(model, path, _folder(source, revision, token, cache_folder))


def _folder(name_or_path: str | Path, revision: str | None, token: str | None, cache_folder: str | Path | None) -> Path:
    folder = Path(name_or_path)
    if not folder.is_dir():
        return _fetch(str(name_or_path), revision, token, cache_folder)
    if revision is not None:
        raise ValueError(f"a folder has no revisions: got revision {revision!r} of {folder}; leave it out.")
    return folder


def _fetch(name: str, revision: str | None, token: str | None, cache_folder: str | Path | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        with hub_errors("fetching", name):
            found = snapshot_download(
                name,
                revision=revision,
                token=token,
                cache_dir=cache_folder,
                ignore_patterns=[*(f"*{suffix}" for suffix in UNSAFE_SUFFIXES), "onnx/*", "openvino/*"],
            )
    except HFValidationError as error:
        raise ValueError(f"expected a folder or a name on the Hub, user/name: {name!r} is neither.") from error
    except LocalEntryNotFoundError as error:
        raise ValueError(f"{name!r} is no folder, not in the cache, and the Hub cannot be asked for it.") from error
    return Path(found)


def _is_cross_encoder(folder: Path) -> bool:
    settings = read_json_object(folder / "config_sentence_transformers.json")
    if "model_type" in settings or (folder / "modules.json").is_file():
        return settings.get("model_type") == "CrossEncoder"
    heads = read_json_object(folder / "config.json").get("architectures") or ()
    return any("ForSequenceClassification" in str(name) for name in heads)
