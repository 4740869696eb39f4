"""Publish a model's folder on the Hub: card, results, thresholds and pictures with the weights, in one commit."""

from __future__ import annotations

import json
import logging
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from st_xling._version import __version__
from st_xling.hub.card import card_text, write_card
from st_xling.hub.card_facts import CARD, CARD_FILE, RUN_FILE, CardOptions, has_card_of_others
from st_xling.hub.eval_results import EVAL_RESULTS_FILE
from st_xling.models.sidecar import RECORDS
from st_xling.utils.io import read_json_object
from st_xling.utils.paths import shared_json

logger = logging.getLogger(__name__)

# Files of sentence-transformers and transformers, in the folder of a model or of a module.
_STOCK = re.compile(
    r"(adapter_)?model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json|modules\.json"
    r"|(\w+_)?config(_sentence_transformers)?\.json|(tokenizer|special_tokens_map|added_tokens|vocab)\.json"
    r"|(vocab|merges)\.txt|chat_template\.jinja|bpe\.codes|(sentencepiece(\.bpe)?|spiece|spm|tokenizer)\.model"
)
_SIDECARS = {CARD, "LICENSE", *RECORDS, "int8_ranges.json", "card.json", "training/log.jsonl", EVAL_RESULTS_FILE}
# The model itself, a module such as 1_Pooling or query_1_Pooling, or a module of a router.
_MODULE = re.compile(r"|(\d+_Router/)?([A-Za-z][\w-]*?_)?\d+_[A-Z]\w*")
_PICTURE = re.compile(r"pictures/\w[\w.-]*\.(png|svg)")
# Work files of training and evaluation, whose absence needs no warning.
_WORK = re.compile(r"\..*|(training|eval)/.*|.*_results\.csv")
# Files of an earlier push that may no longer belong to the model: its weights, and what belongs to a card of ours.
_WEIGHTS = ["model*.safetensors", "*/model*.safetensors", "*.index.json"]
_OF_THE_CARD = ["pictures/*", EVAL_RESULTS_FILE]
# Time limit of a push: this many seconds, and the time that its files take at the slowest speed.
_PATIENCE_S = 120.0
_SLOWEST_BYTES_PER_S = 32 * 1024


class HubError(OSError):
    """The Hub could not be reached, refused a request, or took too long."""


@dataclass(frozen=True)
class PushReport:
    """Files that a push published, or would publish.

    Attributes:
        repo_id: Repository on the Hub.
        files: Path relative to the model's folder → size in bytes, the card first.
        url: Address of the commit; ``None`` after a dry run.
    """

    repo_id: str
    files: dict[str, int]
    url: str | None = None


def is_published(path: str) -> bool:
    """Return whether the file at ``path``, relative to the model's folder, is part of a published model.

    Example:
        >>> [is_published(path) for path in ("2_Dense/model.safetensors", "training/checkpoint-5/model.safetensors")]
        [True, False]
    """
    if path in _SIDECARS or _PICTURE.fullmatch(path):
        return True
    folder, _, name = path.rpartition("/")
    return bool(_MODULE.fullmatch(folder) and _STOCK.fullmatch(name))


def published_files(folder: str | Path) -> dict[str, int]:
    """Return path → size of the files of a model's folder that are published, the card first.

    Checkpoints and other work files of training are not published. Neither are unknown files, which a warning names.

    Args:
        folder: Folder written by ``st-xling train`` or ``save_pretrained``.

    Raises:
        ValueError: If there is no model with safetensors weights, its training has not ended, modules are missing or of
            other packages, a configuration names the code of others, adapters need a model that is only on this
            machine, or files are links out of the folder.
    """
    folder = Path(folder)
    if read_json_object(folder / RUN_FILE).get("finished") is False:
        raise ValueError(f"the training in {folder} has not ended; resume it: st-xling train … --resume.")
    files = _file_sizes(folder)
    published = {path: size for path, size in files.items() if is_published(path)}
    if "modules.json" not in published or not any(path.endswith(".safetensors") for path in published):
        raise ValueError(
            f"no model to publish in {folder}: expected modules.json and model.safetensors, as st-xling train and "
            "save_pretrained write them."
        )
    _check_modules(folder, published)
    _check_loads_elsewhere(folder, published)
    unknown = [path for path in files if path not in published and not _WORK.fullmatch(path)]
    if unknown:
        logger.warning("not published, since not part of a model: %s (in %s)", ", ".join(unknown), folder)
    return published


def _check_modules(folder: Path, published: Iterable[str]) -> None:
    """Raise ``ValueError`` for modules of other packages or without files, and settings that name others' code."""
    for module in json.loads((folder / "modules.json").read_text(encoding="utf-8")):
        path = module["path"]
        kind = module["type"]
        if not kind.startswith("sentence_transformers."):
            raise ValueError(
                f"a published model needs sentence-transformers alone: {folder} needs the code of {kind}, which others "
                "could load with trust_remote_code only."
            )
        has_files = any(name.startswith(f"{path}/") for name in published)
        if path and not kind.endswith(".Normalize") and not has_files:
            raise ValueError(f"{folder} lacks the module {path}, which modules.json names; save the model again.")
    for path in published:
        is_config = path.endswith("config.json")
        code = _code_of_others(read_json_object(folder / path)) if is_config else None
        if code:
            raise ValueError(
                f"a published model needs sentence-transformers alone: {folder / path} needs the code of {code}, "
                "which others could load with trust_remote_code only."
            )


def _check_loads_elsewhere(folder: Path, published: Iterable[str]) -> None:
    """Raise ``ValueError`` for adapters of a model on this machine, and for links out of the folder."""
    base = str(read_json_object(folder / "adapter_config.json").get("base_model_name_or_path", ""))
    is_path = base.count("/") > 1 or base.startswith((".", "/", "~"))
    if base and (is_path or Path(base).exists()):
        raise ValueError(
            f"{folder} contains adapters of a model that is only on this machine, {base}: merge them (st-xling train … "
            "--lora), or train them on a model of the Hub."
        )
    inside = folder.resolve()
    linked = [path for path in published if not (folder / path).resolve().is_relative_to(inside)]
    if linked:
        raise ValueError(
            f"only files inside {folder} are published: {', '.join(linked)} link to files elsewhere; replace the links "
            "by copies."
        )


def _code_of_others(config: Any) -> str | None:
    """Return the first code outside of the library that a configuration names, at any depth; ``None``: it names none.

    ``auto_map`` and ``custom_pipelines`` of transformers name classes in files next to the model or in another
    repository; ``auto_mapping`` of PEFT names a module to import.
    """
    if isinstance(config, list):
        return next(filter(None, map(_code_of_others, config)), None)
    if not isinstance(config, dict):
        return None
    for key in ("auto_map", "custom_pipelines"):
        if config.get(key):
            return f"{key}: {json.dumps(config[key], ensure_ascii=False)}"
    mapping = config.get("auto_mapping")
    library = str(mapping.get("parent_library") or "") if isinstance(mapping, dict) else ""
    if library and library.partition(".")[0] not in ("transformers", "sentence_transformers"):
        return f"auto_mapping: {library}"
    return next(filter(None, map(_code_of_others, config.values())), None)


def _file_sizes(folder: Path) -> dict[str, int]:
    """Return path → size of all files in a folder, the card first."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    ordered = sorted(sizes, key=lambda path: (path != CARD, "/" in path, path))
    return {path: sizes[path] for path in ordered}


def push_model(folder: str | Path, repo_id: str, *, private: bool | None = None, dry_run: bool = False) -> PushReport:
    """Publish a model: write its card anew and upload all its files in one commit.

    Paths of this machine are removed from the published copies. Weights that are in the repository and not published
    again are deleted in the same commit, and so are pictures and ``.eval_results/st-xling.yaml``, if an earlier push of
    st-xling put them there. The card
    in ``folder`` is only replaced after the upload; a card that st-xling did not write is published as it is.

    Args:
        folder: Folder written by ``st-xling train`` or ``save_pretrained``.
        repo_id: ``user/name``; created if it does not exist.
        private: Whether a new repository is private; by default as the account is set up.
        dry_run: Only report what would be published, without asking the Hub.

    Raises:
        ValueError: If the folder cannot be published (see :func:`published_files`), or a private repository is asked
            for and the existing one is public.
        HubError: If the Hub cannot be reached, refuses a request, or takes more than 120 s and a second for each 32
            KiB.
    """
    check_repo_id(repo_id)
    folder = Path(folder)
    published = published_files(folder)
    writes_card = not has_card_of_others(folder)
    if writes_card:
        card_text(folder)  # errors name this folder, not its copy
    with tempfile.TemporaryDirectory(prefix="st-xling-") as parent:
        copy = Path(parent) / folder.resolve().name
        for name in published:
            _copy_published(folder / name, copy / name, is_record=name in RECORDS)
        if writes_card:
            write_card(copy, options=CardOptions(repo_id=repo_id))
        files = _file_sizes(copy)
        if dry_run:
            return PushReport(repo_id, files)
        message = f"Push {copy.name} with st-xling {__version__}"
        url = upload_folder(
            copy,
            repo_id,
            message=message,
            delete_patterns=_WEIGHTS,
            marked_patterns=_OF_THE_CARD,
            mark=CARD_FILE,
            private=private,
        )
    if writes_card:
        write_card(folder, options=CardOptions(repo_id=repo_id))
    return PushReport(repo_id, files, url)


def _copy_published(source: Path, target: Path, *, is_record: bool) -> None:
    """Copy a file without paths of this machine, which records contain; link to weights, which are large."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".safetensors":
        target.symlink_to(source.resolve())
    elif is_record:
        target.write_bytes(shared_json(source))
    else:
        shutil.copyfile(source, target)


def check_repo_id(repo_id: str) -> None:
    """Raise ``ValueError`` unless ``repo_id`` is ``user/name``."""
    from huggingface_hub.utils import validate_repo_id

    validate_repo_id(repo_id)
    if "/" not in repo_id:
        raise ValueError(f"expected the name of a repository, user/name: got {repo_id!r}; add the user.")


def upload_folder(
    folder: Path,
    repo_id: str,
    *,
    message: str,
    delete_patterns: list[str],
    marked_patterns: Sequence[str] = (),
    mark: str = "",
    repo_type: Literal["model", "dataset"] = "model",
    replace: bool = True,
    private: bool | None = None,
) -> str:
    """Upload all files of a folder in one commit, and return the address of the commit.

    Args:
        folder: The folder.
        repo_id: Repository; created if it does not exist.
        message: First line of the commit.
        delete_patterns: Files of an earlier push that are deleted unless they are uploaded again.
        marked_patterns: Others, deleted only where the repository has the file ``mark``: elsewhere they are not ours.
        mark: File that st-xling alone writes.
        repo_type: ``"model"`` or ``"dataset"``.
        replace: Allow a repository that has files.
        private: As of :func:`push_model`.

    Raises:
        ValueError: If a private repository is asked for and the existing one is public, or it may not be replaced.
        HubError: If the Hub cannot be reached, refuses a request, or takes too long.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    api = HfApi(token=True, library_name="st-xling", library_version=__version__)

    def upload() -> str:
        api.create_repo(repo_id, repo_type=repo_type, private=private, exist_ok=True)
        if private and not api.repo_info(repo_id, repo_type=repo_type).private:
            raise ValueError(
                f"{repo_id} is public, and --private does not change that: make it private in its settings on the "
                "Hub, or push to another name. Nothing was published."
            )
        present = api.list_repo_files(repo_id, repo_type=repo_type)
        others = [name for name in present if name != ".gitattributes"]
        if others and not replace:
            raise ValueError(
                f"{repo_id} has {len(others)} files, such as {others[0]}: to replace its data, pass overwrite=True or "
                "--overwrite, or push to another name. Nothing was published."
            )
        deleted = [*delete_patterns]
        if mark in present:
            deleted += marked_patterns
        commit = api.upload_folder(
            repo_id=repo_id,
            repo_type=repo_type,
            folder_path=folder,
            delete_patterns=deleted,
            commit_message=message,
        )
        return commit.commit_url

    limit_s = _PATIENCE_S + sum(_file_sizes(folder).values()) / _SLOWEST_BYTES_PER_S
    try:
        return _result_within(limit_s, upload)
    except Exception as error:  # connections break as errors of httpx, of hf_xet (RuntimeError), or of the system
        if isinstance(error, ValueError) and not isinstance(error, HfHubHTTPError):
            raise
        reason = " ".join(str(error).split()) or f"no answer within {limit_s:.0f} s"
        raise HubError(
            f"the push to {repo_id!r} failed: {reason.rstrip('.')}. Check the login (`hf auth login`), the name and "
            "the network, and try again; files that have arrived are kept."
        ) from error


def _result_within(limit_s: float, request: Callable[[], str]) -> str:
    """Return the result of a request, or raise its error; ``TimeoutError`` without a message after the time limit.

    The client would wait forever for a silent server. The thread is a daemon, which does not keep the process alive.
    """
    future: Future[str] = Future()

    def run() -> None:
        try:
            future.set_result(request())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="push", daemon=True).start()
    return future.result(limit_s)
