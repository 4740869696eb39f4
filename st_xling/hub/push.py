"""Publish a model's folder on the Hub: card, results, thresholds and pictures with the weights, in one commit."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path

from st_xling._version import __version__
from st_xling.hub.card import card_text, write_card
from st_xling.hub.card_facts import CARD, CardOptions, has_card_of_others
from st_xling.hub.files import PublishedFile, check_links, published_files
from st_xling.models.sidecar import RECORDS
from st_xling.utils.paths import shared_json

logger = logging.getLogger(__name__)

OTHERS_CARD = "README.before.md"
#: Files of an earlier push that may no longer belong to the model.
REPLACED = ("pictures/*", "model*.safetensors", "*/model*.safetensors", "*.index.json")
#: Time limit of a push: this many seconds, and the time that its files take at the slowest speed, in bytes a second.
PATIENCE_S = 120.0
SLOWEST = 32 * 1024

_NO_LOGIN = "no login for the Hub: run `hf auth login`, or set HF_TOKEN to a token that may write."
_ADVICE = {
    401: "run `hf auth login`, or set HF_TOKEN to a valid token",
    403: "use a token with write permission (`hf auth login`), or a name of your own",
    404: "check the name and the revision, or `hf auth login`",
    429: "wait some minutes and try again: files that have arrived are kept",
}


class HubError(OSError):
    """The Hub could not be reached, refused a request, or took too long."""


@dataclass(frozen=True)
class PushReport:
    """What a push published, or would publish.

    Attributes:
        repo_id: Repository on the Hub.
        files: The published files.
        url: Address of the commit or the pull request; ``None`` after a dry run.
    """

    repo_id: str
    files: tuple[PublishedFile, ...]
    url: str | None = None

    @property
    def size(self) -> int:
        """Size of all files together, in bytes."""
        return sum(file.size for file in self.files)


def push_model(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    create_pr: bool = False,
    message: str | None = None,
    token: str | None = None,
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
        create_pr: Open a pull request against ``main`` instead of committing to a branch.
        message: First line of the commit.
        token: Token with write permission; by default that of ``hf auth login`` or ``HF_TOKEN``.
        time_limit_s: Give up after this many seconds; by default 120, and a second for each 32 KiB.
        dry_run: Only report what would be published, without asking the Hub.
    Raises:
        ValueError: If the folder cannot be published (see :func:`published_files`), or a private repository is asked
            for and the existing one is public.
        HubError: If the Hub cannot be reached, refuses a request, or the time limit is reached.
    """
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.utils import validate_repo_id

    validate_repo_id(repo_id)
    if "/" not in repo_id:
        raise ValueError(f"expected the name of a repository, user/name: got {repo_id!r}; add the user.")
    if create_pr and revision not in (None, "main"):
        raise ValueError(f"a pull request is opened against main: got revision {revision!r}; leave it out.")
    folder = Path(folder)
    published = published_files(folder)  # check the folder before pictures are drawn
    check_links(folder, published)
    card_text(folder)
    with tempfile.TemporaryDirectory(prefix="st-xling-") as beside:
        copy = _copy(folder, published, Path(beside) / folder.resolve().name)
        write_card(copy, options=CardOptions(repo_id=repo_id))
        for path in RECORDS:
            if (copy / path).is_file():
                (copy / path).write_bytes(shared_json(copy / path))
        files = tuple(published_files(copy))
        if dry_run:
            return PushReport(repo_id, files)
        if not (token or get_token()):
            raise HubError(_NO_LOGIN)
        message = message or f"Push {folder.resolve().name} with st-xling {__version__}"
        api = HfApi(token=token, library_name="st-xling", library_version=__version__)
        limit = time_limit_s or PATIENCE_S + sum(file.size for file in files) / SLOWEST

        @hub_errors("pushing to", repo_id)
        def upload() -> str:
            api.create_repo(repo_id, private=private, exist_ok=True)
            if private and not api.repo_info(repo_id).private:
                raise ValueError(
                    f"{repo_id} is public, and --private does not change that: make it private in its settings on the "
                    "Hub, or push to another name. Nothing was published."
                )
            if revision not in (None, "main"):
                api.create_branch(repo_id, branch=str(revision), exist_ok=True)
            done = api.upload_folder(
                repo_id=repo_id,
                folder_path=copy,
                allow_patterns=[file.path for file in files],
                delete_patterns=list(REPLACED),
                commit_message=message,
                revision=revision,
                create_pr=create_pr,
            )
            return done.pr_url or done.commit_url

        url = _within(limit, upload, f"pushing to {repo_id!r}")
    if has_card_of_others(folder):
        shutil.copyfile(folder / CARD, folder / OTHERS_CARD)
        logger.warning("the card in %s was replaced; the earlier one is in %s", folder, OTHERS_CARD)
    write_card(folder, options=CardOptions(repo_id=repo_id))
    return PushReport(repo_id, files, url)


def _copy(folder: Path, files: Sequence[PublishedFile], goal: Path) -> Path:
    """Copy what is published; weights are linked."""
    for file in files:
        copy = goal / file.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.path.endswith(".safetensors"):
            copy.symlink_to((folder / file.path).resolve())
        else:
            shutil.copyfile(folder / file.path, copy)
    return goal


def _within(seconds: float, call: Callable[[], str], doing: str) -> str:
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

    threading.Thread(target=run, daemon=True).start()
    wait([future], timeout=seconds)
    if not future.done():
        raise HubError(f"{doing} was given up after {seconds:g} s: check the network, or raise time_limit_s.")
    return future.result()


@contextlib.contextmanager
def hub_errors(doing: str, name: str) -> Iterator[None]:
    """Raise :class:`HubError` with advice for what the Hub's client raises while ``doing`` something with ``name``."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    where = f"while {doing} {name!r}"
    try:
        yield
    except OfflineModeIsEnabled as error:
        raise HubError(f"HF_HUB_OFFLINE is set, which forbids {doing} {name!r}: unset it and try again.") from error
    except LocalTokenNotFoundError as error:
        raise HubError(_NO_LOGIN) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        advice = _ADVICE.get(status, "try again later" if status >= 500 else "see the message")
        said = error.server_message or error.response.reason_phrase
        raise HubError(f"the Hub refused {where} ({status} {said}): {advice}.") from error
    except (ValueError, FileNotFoundError):  # a wrong name, or nothing in the cache
        raise
    except Exception as error:  # connections break as errors of httpx, of hf_xet (RuntimeError), or of the system
        reason = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(". ")
        raise HubError(
            f"the connection to the Hub failed {where} ({reason}): check the network, and try again; files that have "
            "arrived are kept."
        ) from error
