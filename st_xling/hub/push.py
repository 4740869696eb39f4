"""Publish a model's folder on the Hub: card, results, thresholds and pictures with the weights, in one commit."""

from __future__ import annotations

import json
import logging
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from st_xling._version import __version__
from st_xling.hub.card import card_text, write_card
from st_xling.hub.card_facts import CARD, CardOptions, has_card_of_others
from st_xling.models.sidecar import RECORDS
from st_xling.utils.io import read_json_object
from st_xling.utils.paths import shared_json

logger = logging.getLogger(__name__)

# Weights in formats that run code when they are read, or that other frameworks alone read.
_UNSAFE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npz", ".h5", ".msgpack", ".ot")
# Checkpoints, bases, sorted texts of a run. What others may see of it is in run.json and log.jsonl.
_WORK_FOLDERS = ("training", "eval")
# Files of sentence-transformers and transformers, in the folder of a model or of a module.
_STOCK = {
    *("config.json", "config_sentence_transformers.json", "sentence_bert_config.json", "modules.json"),
    *("router_config.json", "model.safetensors", "model.safetensors.index.json", "generation_config.json"),
    *("adapter_model.safetensors", "adapter_config.json", "preprocessor_config.json", "processor_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"),
    *("vocab.txt", "vocab.json", "merges.txt", "bpe.codes", "sentencepiece.bpe.model", "sentencepiece.model"),
    *("spiece.model", "spm.model", "tokenizer.model"),
}
_SIDECARS = {
    *("README.md", "LICENSE", "results.json", "int8_ranges.json", "mining.json", "card.json"),
    *("training/run.json", "training/log.jsonl"),
}
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
# The model itself, a module such as 1_Pooling or query_1_Pooling, or a module of a router.
_MODULE = re.compile(r"|(\d+_Router/)?([A-Za-z][\w-]*?_)?\d+_[A-Z]\w*")
_PICTURE = re.compile(r"pictures/\w[\w.-]*\.(png|svg)")
OTHERS_CARD = "README.before.md"
# Files of an earlier push that may no longer belong to the model.
_REPLACED = ["pictures/*", "model*.safetensors", "*/model*.safetensors", "*.index.json"]
# Time limit of a push: this many seconds, and the time that its files take at the slowest speed, in bytes a second.
_PATIENCE_S = 120.0
_SLOWEST = 32 * 1024
_ADVICE = {
    401: "run `hf auth login`, or set HF_TOKEN to a valid token",
    403: "use a token with write permission (`hf auth login`), or a name of your own",
    404: "check the name and the revision, or `hf auth login`",
    429: "wait some minutes and try again: files that have arrived are kept",
}


class HubError(OSError):
    """The Hub could not be reached, refused a request, or took too long."""


@dataclass(frozen=True)
class PublishedFile:
    """A file of a published model: its path relative to the model's folder, and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class PushReport:
    """Files that a push published, or would publish.

    Attributes:
        repo_id: Repository on the Hub.
        files: The published files.
        url: Address of the commit; ``None`` after a dry run.
    """

    repo_id: str
    files: tuple[PublishedFile, ...]
    url: str | None = None

    @property
    def size(self) -> int:
        """Size of all files together, in bytes."""
        return sum(file.size for file in self.files)


def is_published(path: str) -> bool:
    """Return whether the file at ``path``, relative to the model's folder, is part of a published model.

    Example:
        >>> [is_published(path) for path in ("2_Dense/model.safetensors", "training/checkpoint-5/model.safetensors")]
        [True, False]
    """
    if path in _SIDECARS or _PICTURE.fullmatch(path):
        return True
    folder, _, name = path.rpartition("/")
    return bool(_MODULE.fullmatch(folder)) and (name in _STOCK or bool(_SHARD.fullmatch(name)))


def published_files(folder: str | Path) -> list[PublishedFile]:
    """List the files of a model's folder that are published, the card first.

    Checkpoints and other work files of training are not published. Neither are unknown files, which a warning names.

    Args:
        folder: Folder written by ``st-xling train`` or ``save_pretrained``.
    Raises:
        ValueError: If there is no model, its training has not ended, weights are not safetensors, modules are missing,
            of other packages or need other code, adapters need a model that is only on this machine, or files are
            links out of the folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"expected the folder of a model: {folder} is none; give what st-xling train wrote.")
    if read_json_object(folder / "training" / "run.json").get("finished") is False:
        raise ValueError(f"the training in {folder} has not ended; resume it: st-xling train … --resume.")
    files = _files(folder)
    known = [file for file in files if is_published(file.path)]
    unknown = [
        file.path
        for file in files
        if file not in known and not file.path.startswith((".", *(f"{name}/" for name in _WORK_FOLDERS)))
    ]
    if unsafe := [path for path in unknown if path.endswith(_UNSAFE_SUFFIXES)]:
        raise ValueError(
            f"only safetensors weights are published: {folder} contains {', '.join(unsafe)}; load the model and save "
            "it again with save_pretrained, into another folder, or remove what is not needed."
        )
    _check_modules(folder, [file.path for file in known])
    _check_links(folder, known)
    # A trainer of sentence-transformers leaves tables of its evaluations.
    if unknown := [path for path in unknown if not path.endswith("_results.csv")]:
        logger.warning("not published, since not part of a model: %s (in %s)", ", ".join(unknown), folder)
    return known


def _files(folder: Path) -> list[PublishedFile]:
    """List the files of a folder, the card first."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    names = sorted(paths, key=lambda name: (name != CARD, "/" in name, name))
    return [PublishedFile(name, paths[name].stat().st_size) for name in names]


def _check_modules(folder: Path, known: list[str]) -> None:
    """Raise ``ValueError`` if others could not load the model with sentence-transformers alone."""
    if "modules.json" not in known or not any(name.endswith(".safetensors") for name in known):
        raise ValueError(
            f"no model to publish in {folder}: expected modules.json and model.safetensors, as st-xling train and "
            "save_pretrained write them."
        )
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    if lacking := [
        f"{module['path']} ({module['type'].rpartition('.')[2]})"
        for module in modules
        if module["path"]
        and not module["type"].endswith(".Normalize")
        and not any(name.startswith(f"{module['path']}/") for name in known)
    ]:
        raise ValueError(
            f"{folder} lacks modules that modules.json names: {', '.join(lacking)}; save the model again, with folders "
            "in place of links."
        )
    foreign = [module["type"] for module in modules if not module["type"].startswith("sentence_transformers.")]
    configs = [name for name in known if name.endswith("config.json")]
    foreign += [f"{name} (auto_map)" for name in configs if read_json_object(folder / name).get("auto_map")]
    if foreign:
        raise ValueError(
            f"a published model needs sentence-transformers alone: {folder} needs the code of {', '.join(foreign)}, "
            "which others could load with trust_remote_code only."
        )
    base = str(read_json_object(folder / "adapter_config.json").get("base_model_name_or_path", ""))
    if base and (base.count("/") > 1 or base.startswith((".", "/", "~")) or Path(base).exists()):
        raise ValueError(
            f"{folder} contains adapters of a model that is only on this machine, {base}: merge them (st-xling train … "
            "--lora), or train them on a model of the Hub."
        )


def _check_links(folder: Path, files: list[PublishedFile]) -> None:
    """Raise ``ValueError`` for links out of ``folder``, except into the Hub's cache, whose snapshots are all links."""
    from huggingface_hub import constants

    allowed = [folder.resolve(), Path(constants.HF_HUB_CACHE).resolve()]
    if folder.parent.name == "snapshots":  # of a cache in another place
        allowed.append(folder.resolve().parent.parent)
    places = {file.path: (folder / file.path).resolve() for file in files}
    if linked := [name for name, place in places.items() if not any(place.is_relative_to(at) for at in allowed)]:
        raise ValueError(
            f"only files inside {folder} are published: {', '.join(linked)} link to files elsewhere; replace the links "
            "by copies."
        )


def push_model(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    time_limit_s: float | None = None,
    dry_run: bool = False,
) -> PushReport:
    """Publish a model: write its card anew and upload all its files in one commit.

    Paths of this machine are removed from the published copies. Pictures and weights of an earlier push that are not
    published again are deleted in the same commit. The card in ``folder`` is only replaced after the upload.

    Args:
        folder: Folder written by ``st-xling train`` or ``save_pretrained``.
        repo_id: ``user/name``; created if it does not exist.
        private: Whether a new repository is private; by default as the account is set up.
        revision: Branch, created if it does not exist.
        time_limit_s: Give up after this many seconds; by default 120, and a second for each 32 KiB.
        dry_run: Only report what would be published, without asking the Hub.
    Raises:
        ValueError: If the folder cannot be published (see :func:`published_files`), or a private repository is asked
            for and the existing one is public.
        HubError: If the Hub cannot be reached, refuses a request, or the time limit is reached.
    """
    check_repo_id(repo_id)
    folder = Path(folder)
    published = published_files(folder)
    card_text(folder)  # errors name this folder, not its copy
    with tempfile.TemporaryDirectory(prefix="st-xling-") as parent:
        copy = Path(parent) / folder.resolve().name
        for file in published:
            path, source = copy / file.path, folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".safetensors":
                path.symlink_to(source.resolve())
            elif file.path in RECORDS:
                path.write_bytes(shared_json(source))
            else:
                shutil.copyfile(source, path)
        write_card(copy, options=CardOptions(repo_id=repo_id))
        files = tuple(_files(copy))
        if dry_run:
            return PushReport(repo_id, files)
        url = upload_folder(
            copy,
            repo_id,
            message=f"Push {copy.name} with st-xling {__version__}",
            delete_patterns=_REPLACED,
            private=private,
            revision=revision,
            time_limit_s=time_limit_s,
        )
    if has_card_of_others(folder):
        shutil.copyfile(folder / CARD, folder / OTHERS_CARD)
        logger.warning("the card in %s was replaced; the earlier one is in %s", folder, OTHERS_CARD)
    write_card(folder, options=CardOptions(repo_id=repo_id))
    return PushReport(repo_id, files, url)


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
    repo_type: Literal["model", "dataset"] = "model",
    replace: bool = True,
    private: bool | None = None,
    revision: str | None = None,
    time_limit_s: float | None = None,
) -> str:
    """Upload all files of a folder in one commit, and return the address of the commit.

    Args:
        folder: The folder.
        repo_id: Repository; created if it does not exist.
        message: First line of the commit.
        delete_patterns: Files of an earlier push that are deleted unless they are uploaded again.
        repo_type: ``"model"`` or ``"dataset"``.
        replace: Allow a repository that has files.
        private: As of :func:`push_model`, like the others.
    Raises:
        ValueError: If a private repository is asked for and the existing one is public, or it may not be replaced.
        HubError: If the Hub cannot be reached, refuses a request, or the time limit is reached.
    """
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError

    if not get_token():
        raise HubError("no login for the Hub: run `hf auth login`, or set HF_TOKEN to a token that may write.")
    api = HfApi(library_name="st-xling", library_version=__version__)

    def upload() -> str:
        api.create_repo(repo_id, repo_type=repo_type, private=private, exist_ok=True)
        if private and not api.repo_info(repo_id, repo_type=repo_type).private:
            raise ValueError(
                f"{repo_id} is public, and --private does not change that: make it private in its settings on the "
                "Hub, or push to another name. Nothing was published."
            )
        there = [] if replace else api.list_repo_files(repo_id, repo_type=repo_type)
        if others := [name for name in there if name != ".gitattributes"]:
            raise ValueError(
                f"{repo_id} has {len(others)} files, such as {others[0]}: to replace its data, pass overwrite=True or "
                "--overwrite, or push to another name. Nothing was published."
            )
        if revision not in (None, "main"):
            api.create_branch(repo_id, repo_type=repo_type, branch=str(revision), exist_ok=True)
        return api.upload_folder(
            repo_id=repo_id,
            repo_type=repo_type,
            folder_path=folder,
            delete_patterns=delete_patterns,
            commit_message=message,
            revision=revision,
        ).commit_url

    limit = time_limit_s or _PATIENCE_S + sum(file.size for file in _files(folder)) / _SLOWEST
    try:
        return _within(limit, upload)
    except HfHubHTTPError as error:  # some of which are a ValueError, too
        status = error.response.status_code
        said = error.server_message or error.response.reason_phrase
        advice = _ADVICE.get(status, "try again later" if status >= 500 else "see the message")
        raise HubError(f"the Hub refused the push to {repo_id!r} ({status} {said}): {advice}.") from error
    except (ValueError, HubError):
        raise
    except Exception as error:  # connections break as errors of httpx, of hf_xet (RuntimeError), or of the system
        reason = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(". ")
        raise HubError(
            f"the connection to the Hub failed while pushing to {repo_id!r} ({reason}): check the network and "
            "HF_HUB_OFFLINE, and try again; files that have arrived are kept."
        ) from error


def _within(seconds: float, call: Callable[[], str]) -> str:
    """Return what ``call`` returns, or raise :class:`HubError` after ``seconds``.

    The client limits single requests at most, so a server that answers byte by byte would hold it for hours. The thread
    is a daemon: it does not keep the process alive.
    """
    future: Future[str] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not future.done():
        raise HubError(f"the push was given up after {seconds:g} s: check the network, or raise time_limit_s.")
    return future.result()
