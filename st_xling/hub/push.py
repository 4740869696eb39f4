"""A model's folder to the Hub: card, results, thresholds and pictures with the weights, in one commit."""

from __future__ import annotations

import contextlib
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.hub.card import card_text, write_card
from st_xling.hub.card_facts import CARD, CardOptions, has_card_of_others
from st_xling.hub.files import PublishedFile, describe, published_files
from st_xling.models.sidecar import RECORDS, names
from st_xling.utils.hub_requests import NoAnswer, limited_requests
from st_xling.utils.paths import shared_json

logger = logging.getLogger(__name__)

OTHERS_CARD = "README.before.md"
#: Seconds that a step of a push may take besides the sending of files, and that the Hub may think about a commit.
PATIENCE_S = 60.0
#: Bytes a second; a slower upload is given up.
SLOWEST = 32 * 1024
#: From the paths on the Hub and a reader of one of them (its text), those that are to go.
Stale = Callable[[Sequence[str], Callable[[str], str]], Sequence[str]]

_AGAIN = "try again later: what has arrived is kept"
_NO_LOGIN = "no login for the Hub: run `hf auth login`, or set HF_TOKEN to a token that may write."
_ADVICE = {
    401: "run `hf auth login`, or set HF_TOKEN to a valid token",
    403: "use a token with write permission (`hf auth login`), or a name of your own",
    404: "check the name and the revision, or `hf auth login`",
    412: "somebody else changed it in the meantime and nothing was published; look, and push again",
}
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{20,}")


class HubError(OSError):
    """The Hub, or the way to it, did not do what was asked.

    Attributes:
        status: The HTTP status; ``None`` where there was no answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Destination:
    """Where to, and how.

    Attributes:
        repo_id: ``user/name``.
        private: Whether a new repository is private; ``None``: as the account has it.
        revision: Branch, made from ``main`` if it is not there; ``None``: ``main``.
        create_pr: Open a pull request instead of changing the branch.
    """

    repo_id: str
    private: bool | None = None
    revision: str | None = None
    create_pr: bool = False

    def check(self) -> None:
        """Raise ``ValueError`` for what can be known to fail before the Hub is asked."""
        from huggingface_hub.utils import validate_repo_id

        validate_repo_id(self.repo_id)
        if "/" not in self.repo_id:
            raise ValueError(f"expected the name of a repository, user/name: got {self.repo_id!r}; add whose it is.")
        if self.create_pr and self.revision not in (None, "main"):
            raise ValueError(f"a pull request is opened against main: got revision {self.revision!r}; leave it out.")


@dataclass(frozen=True)
class PushReport:
    """What a push published, or would publish.

    Attributes:
        repo_id: Where.
        files: What stands there, of ours.
        url: Of the commit, or of the pull request; ``None`` after a dry run.
        deleted: Paths that the commit removed.
        changed: Whether there was anything to change; if not, ``url`` is the last commit's.
    """

    repo_id: str
    files: tuple[PublishedFile, ...]
    url: str | None = None
    deleted: tuple[str, ...] = ()
    changed: bool = True

    @property
    def size(self) -> int:
        """Of all files together, in bytes."""
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
    endpoint: str | None = None,
    dry_run: bool = False,
) -> PushReport:
    """Publish a model: its card is made anew, then all its files go to the Hub in one commit.

    Files of ours name others without the folders of this machine. The card in the folder is renewed once the commit
    stands: a push that fails leaves the folder as it was and the branch where it was; of a new repository it may leave
    an empty one, with what has been uploaded, so that pushing again goes on.

    What an earlier push of ours left there and this one does not publish, such as an old picture, is deleted in the
    same commit; files that others put there stay.

    Args:
        folder: What ``st-xling train`` wrote, or ``save_pretrained``.
        repo_id: ``user/name``; made if it is not there.
        private: Whether a new repository is private; ``None``: as the account has it.
        revision: Branch, made if it is not there.
        create_pr: Open a pull request instead of changing the branch.
        message: First line of the commit.
        token: ``None``: the login of huggingface_hub (``hf auth login``, or ``HF_TOKEN``).
        endpoint: Address of the Hub; ``None``: ``HF_ENDPOINT``, or the public one.
        dry_run: Change nothing, here or there, and ask nobody: only say what would be published.

    Raises:
        ValueError: Nothing that can be published (see :func:`published_files`); a private repository that is public.
        HubError: The Hub, or the way to it, failed.
    """
    folder = Path(folder)
    destination = Destination(repo_id, private=private, revision=revision, create_pr=create_pr)
    destination.check()
    published = published_files(folder)  # faults are named before the card is drawn
    card_text(folder)  # and where they lie, not in the copy
    with tempfile.TemporaryDirectory(prefix="st-xling-") as beside:
        copy = _copy(folder, published, Path(beside))
        write_card(copy, options=CardOptions(repo_id=repo_id))
        for path in RECORDS:
            if (copy / path).is_file():
                (copy / path).write_bytes(shared_json(copy / path))
        files = tuple(published_files(copy))
        contents = {file.path: copy / file.path for file in files}
        if dry_run:
            return PushReport(repo_id, files)
        message = message or f"Push {folder.resolve().name} with st-xling {__version__}"
        report = commit(contents, files, destination, message=message, stale=left_over, token=token, endpoint=endpoint)
    # What went wrong until here has changed nothing in the folder either.
    if has_card_of_others(folder):
        shutil.copyfile(folder / CARD, folder / OTHERS_CARD)
        logger.warning("a card of ours replaces that of %s; what it said is in %s", folder, OTHERS_CARD)
    write_card(folder, options=CardOptions(repo_id=repo_id))
    return report


def left_over(paths: Sequence[str], read: Callable[[str], str]) -> list[str]:
    """Files of an earlier push of ours: known by their paths, and named by the card that came with them."""
    card = read(CARD) if CARD in paths else ""
    if "st-xling" not in card:
        return []
    return [path for path in paths if path != CARD and describe(path) is not None and names(card, path)]


def _copy(folder: Path, files: Sequence[PublishedFile], goal: Path) -> Path:
    """The same model elsewhere, as it is published; weights are not copied."""
    for file in files:
        copy = goal / folder.resolve().name / file.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.path.endswith(".safetensors"):
            copy.symlink_to((folder / file.path).resolve())
        else:
            shutil.copyfile(folder / file.path, copy)
    return goal / folder.resolve().name


def commit(
    contents: Mapping[str, Path],
    files: tuple[PublishedFile, ...],
    destination: Destination,
    *,
    message: str,
    stale: Stale = lambda paths, read: (),
    token: str | None = None,
    endpoint: str | None = None,
) -> PushReport:
    """Make ``contents`` and nothing older stand at ``destination``, in one commit; the repository is made if need be.

    Args:
        contents: Path in the repository → file.
        files: The same, for the report.
        destination: Where to.
        message: First line of the commit.
        stale: Chooses what is deleted.
        token: As for :func:`push_model`.
        endpoint: As for :func:`push_model`.

    Raises:
        HubError: No login, no permission, another commit in between, a limit, a fault or a broken connection. The
            branch then stands as it did, except where the connection broke during the very last request.
        ValueError: A private repository is asked for and it is public; the Hub refuses the card's metadata.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token

    destination.check()
    secret = token or get_token()
    if not secret:
        raise HubError(_NO_LOGIN)
    api = HfApi(endpoint=endpoint, token=secret, library_name="st-xling", library_version=__version__)
    name = destination.repo_id
    with talking_to_hub("creating", name, token=secret, total_s=PATIENCE_S):
        repo_id, parent, there = _prepare(api, destination)
    where: dict[str, Any] = {"repo_id": repo_id}

    def read(path: str) -> str:
        with tempfile.TemporaryDirectory(prefix="st-xling-") as folder:
            file = api.hf_hub_download(filename=path, revision=parent, local_dir=folder, **where)
            return Path(file).read_text(encoding="utf-8")

    with talking_to_hub("reading", name, token=secret, total_s=PATIENCE_S):
        gone = tuple(sorted(set(stale(there, read)) - contents.keys()))
    additions = [CommitOperationAdd(path, source) for path, source in contents.items()]
    where |= {"revision": destination.revision, "create_pr": destination.create_pr}
    sending_s = PATIENCE_S + sum(each.upload_info.size for each in additions) / SLOWEST
    with talking_to_hub("uploading to", name, token=secret, total_s=sending_s):
        # A .gitignore on the Hub would otherwise keep files back silently.
        api.preupload_lfs_files(additions=additions, gitignore_content="# none", free_memory=False, **where)
    # The client sends a commit once. A second one would meet the first, so that one may take its time.
    with talking_to_hub("committing to", name, token=secret, request_s=PATIENCE_S, total_s=sending_s):
        done = api.create_commit(
            operations=[*additions, *(CommitOperationDelete(path) for path in gone)],
            commit_message=message,
            parent_commit=parent,  # the Hub refuses to bury a commit that came meanwhile
            **where,
        )
    return PushReport(repo_id, files, done.pr_url or done.commit_url, gone, changed=done.oid != parent)


def _prepare(api: Any, destination: Destination) -> tuple[str, str, list[str]]:
    """The repository's whole name, its last commit, and the paths there."""
    branch = destination.revision
    repo_id = api.create_repo(destination.repo_id, private=destination.private, exist_ok=True).repo_id
    if destination.private and api.repo_info(repo_id).private is False:
        raise ValueError(
            f"{repo_id} is public, and --private does not change that: make it private in its settings on the Hub, "
            "or push to another name. Nothing was published."
        )
    if branch is not None and branch != "main" and not branch.startswith("refs/"):
        api.create_branch(repo_id, branch=branch, exist_ok=True)
    info = api.repo_info(repo_id, revision=branch)
    if not info.sha:
        raise LookupError("no commit is named")
    return repo_id, info.sha, [file.rfilename for file in getattr(info, "siblings", None) or ()]


@contextlib.contextmanager
def talking_to_hub(
    doing: str,
    name: str,
    *,
    token: str | None = None,
    request_s: float | None = None,
    total_s: float | None = None,
) -> Iterator[None]:
    """Turn what the Hub's client raises into :class:`HubError`, in bounded time, and keep secrets out of its log.

    Args:
        doing: What is being done, e.g. ``"uploading to"``.
        name: The repository, as the user wrote it.
        token: A secret that no message may hold.
        request_s: As of :func:`~st_xling.utils.hub_requests.limited_requests`.
        total_s: Likewise.

    Raises:
        HubError: For an answer that says no or is none, a broken connection, no connection at all, silence.
    """
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    where = f"while {doing} {name!r}"
    try:
        with limited_requests(request_s=request_s, total_s=total_s), _clean_log(token):
            yield
    except HubError:
        raise
    except NoAnswer as error:
        raise HubError(f"the Hub was given up {where} ({error}): check the network and {_AGAIN}.") from error
    except OfflineModeIsEnabled as error:
        raise HubError(f"HF_HUB_OFFLINE is set, which forbids {doing} {name!r}: unset it and try again.") from error
    except LocalTokenNotFoundError as error:
        raise HubError(_NO_LOGIN) from error
    except Exception as error:
        cause = _cause(error)
        if cause is None:
            raise
        if isinstance(cause, HfHubHTTPError):
            status = int(cause.response.status_code)
            said = _clean(f"{status} {cause.server_message or cause.response.reason_phrase}", token)
            advice = _ADVICE.get(status, _AGAIN if status >= 500 else "see what it says")
            if status == 429:
                advice = f"{_wait(cause.response.headers)}: what has arrived is kept"
            raise HubError(f"the Hub refused {where} ({said}): {advice}.", status) from error
        reason = _clean(f"{type(cause).__name__}: {cause}", token)
        if cause is error and not (_is_transport(error) or isinstance(error, RuntimeError)):
            advice = f"check HF_ENDPOINT and proxies, and {_AGAIN}"
            raise HubError(f"the Hub's answer makes no sense {where} ({reason}): {advice}.") from error
        raise HubError(
            f"the connection to the Hub broke {where} ({reason}): check the network and {_AGAIN}."
        ) from error


def _wait(headers: Mapping[str, str]) -> str:
    """How long to wait, from ``Retry-After`` or the rate limit's own header."""
    after = headers.get("retry-after", "")
    window = re.search(r";\s*t\s*=\s*(\d+)", headers.get("ratelimit", ""))
    seconds = after if after.isdigit() else window[1] if window else None
    return "try again in some minutes" if seconds is None else f"try again in {seconds} s"


def _cause(error: Exception) -> BaseException | None:
    """The refusal, broken connection or unreadable answer behind an error; ``None`` if it is none of the Hub's."""
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    unreadable = (LookupError, TypeError, AttributeError, JSONDecodeError, UnicodeDecodeError)
    words = ("improperly formatted", "Malformed response")
    if isinstance(error, (HfHubHTTPError, *unreadable)) or any(word in str(error) for word in words):
        return error
    # Parallel uploads wrap what they meet.
    cause: BaseException | None = error
    while cause is not None and not (isinstance(cause, HfHubHTTPError) or _is_transport(cause)):
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, LocalEntryNotFoundError) and not isinstance(cause, HfHubHTTPError):
        return None
    if isinstance(error, ValueError):
        return None
    # hf_xet, which uploads where it is installed, raises a plain RuntimeError for what happens on its way.
    return error if cause is None and isinstance(error, RuntimeError) else cause


def _is_transport(error: BaseException) -> bool:
    # The client is httpx, httpx2 or hf_xet's Rust, by version; none of them raises OSError where a connection breaks.
    modules = {kind.__module__.split(".")[0] for kind in type(error).__mro__}
    broken = isinstance(error, (ConnectionError, TimeoutError))
    return broken or bool(modules & {"httpx", "httpx2", "httpcore", "hf_xet"})


@contextlib.contextmanager
def _clean_log(token: str | None) -> Iterator[None]:
    """The client logs whole addresses when it tries again; those of uploads are signed."""
    from huggingface_hub.utils import http_backoff

    def clean(record: logging.LogRecord) -> bool:
        record.msg, record.args = _clean(record.getMessage(), token), ()
        return True

    log = logging.getLogger(http_backoff.__module__)
    log.addFilter(clean)
    try:
        yield
    finally:
        log.removeFilter(clean)


def _clean(text: str, token: str | None) -> str:
    """One line without the token, or anything that looks like one."""
    if token:
        text = text.replace(token, "…")
    # Addresses of uploads are signed: whoever has them can write.
    text = re.sub(r"(https?://[^\s?'\"]+)\?[^\s'\"]*", r"\1?…", _TOKEN.sub("…", text))
    return " ".join(text.split()).rstrip(".")
