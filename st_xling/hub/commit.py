"""One commit that brings a repository of the Hub from what it holds to what a folder holds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling._version import __version__
from st_xling.hub.hub_errors import HubError, no_login, talking_to_hub

if TYPE_CHECKING:
    from huggingface_hub import HfApi

#: Seconds that a step of a push may take besides the sending of files, and that the Hub may think about a commit.
PATIENCE_S = 60.0
#: Bytes a second; a slower upload is given up.
SLOWEST = 32 * 1024
#: From the paths on the Hub and a reader of one of them (its text), those that are to go.
Stale = Callable[[Sequence[str], Callable[[str], str]], Sequence[str]]


@dataclass(frozen=True)
class Destination:
    """Where to, and how.

    Attributes:
        repo_id: ``user/name``.
        repo_type: ``"model"`` or ``"space"``.
        private: Whether a new repository is private; ``None``: as the account has it.
        revision: Branch, made from ``main`` if it is not there; ``None``: ``main``.
        create_pr: Open a pull request instead of changing the branch.
        space_sdk: Of a Space.
    """

    repo_id: str
    repo_type: str = "model"
    private: bool | None = None
    revision: str | None = None
    create_pr: bool = False
    space_sdk: str | None = None

    def check(self) -> None:
        """Raise ``ValueError`` for what can be known to fail before the Hub is asked."""
        from huggingface_hub.utils import validate_repo_id

        validate_repo_id(self.repo_id)
        if "/" not in self.repo_id:
            raise ValueError(f"expected the name of a repository, user/name: got {self.repo_id!r}; add whose it is.")
        if self.create_pr and self.revision not in (None, "main"):
            raise ValueError(f"a pull request is opened against main: got revision {self.revision!r}; leave it out.")


@dataclass(frozen=True)
class Commit:
    """What became of it.

    Attributes:
        repo_id: Where.
        url: Of the commit, or of the pull request.
        oid: The commit's hash.
        deleted: Paths that it removed.
        changed: Whether there was anything to change; if not, ``url`` and ``oid`` are the last commit's.
    """

    repo_id: str
    url: str
    oid: str
    deleted: tuple[str, ...]
    changed: bool


def commit(
    contents: Mapping[str, Path | bytes],
    destination: Destination,
    *,
    message: str | None = None,
    stale: Stale = lambda paths, read: (),
    token: str | None = None,
    endpoint: str | None = None,
) -> Commit:
    """Make ``contents`` and nothing older stand at ``destination``, in one commit; the repository is made if need be.

    Args:
        contents: Path in the repository → file or bytes.
        destination: Where to.
        message: First line of the commit.
        stale: Chooses what is deleted.
        token: ``None``: the host's login (``hf auth login``, or ``HF_TOKEN``).
        endpoint: Address of the Hub; ``None``: ``HF_ENDPOINT``, or the public one.

    Raises:
        HubError: No login, no permission, another commit in between, a limit, a fault or a broken connection. The
            branch then stands as it did, except where the connection broke during the very last request.
        ValueError: A private repository is asked for and it is public; the Hub refuses the card's metadata.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token

    destination.check()
    secret = token or get_token()
    if not secret:
        raise HubError(no_login())
    api = HfApi(endpoint=endpoint, token=secret, library_name="st-xling", library_version=__version__)
    name = destination.repo_id
    with talking_to_hub("creating", name, token=secret, total_s=PATIENCE_S):
        repo_id, parent, there = _prepare(api, destination)
    where: dict[str, Any] = {"repo_id": repo_id, "repo_type": destination.repo_type}
    with talking_to_hub("reading", name, token=secret, total_s=PATIENCE_S):
        gone = tuple(sorted(set(stale(there, _reader(api, where, parent))) - contents.keys()))
    additions = [CommitOperationAdd(path, source) for path, source in contents.items()]
    where = {**where, "revision": destination.revision, "create_pr": destination.create_pr}
    sending_s = PATIENCE_S + sum(each.upload_info.size for each in additions) / SLOWEST
    with talking_to_hub("uploading to", name, token=secret, total_s=sending_s):
        # A .gitignore on the Hub would otherwise keep files back silently.
        api.preupload_lfs_files(additions=additions, gitignore_content="# none", free_memory=False, **where)
    # The client sends a commit once. A second one would meet the first, so that one may take its time.
    with talking_to_hub("committing to", name, token=secret, request_s=PATIENCE_S, total_s=sending_s):
        done = api.create_commit(
            operations=[*additions, *(CommitOperationDelete(path) for path in gone)],
            commit_message=message or f"Push with st-xling {__version__}",
            parent_commit=parent,
            **where,
        )
    return Commit(repo_id, done.pr_url or done.commit_url, done.oid, gone, changed=done.oid != parent)


def _prepare(api: HfApi, destination: Destination) -> tuple[str, str, list[str]]:
    """The repository's whole name, its last commit, and the paths there."""
    made = api.create_repo(
        destination.repo_id,
        repo_type=destination.repo_type,
        private=destination.private,
        exist_ok=True,
        space_sdk=destination.space_sdk,
    )
    repo_id, branch = made.repo_id, destination.revision
    if destination.private and api.repo_info(repo_id, repo_type=destination.repo_type).private is False:
        raise ValueError(
            f"{repo_id} is public, and --private does not change that: make it private in its settings on the Hub, "
            "or push to another name. Nothing was published."
        )
    if branch is not None and branch != "main" and not branch.startswith("refs/"):
        api.create_branch(repo_id, branch=branch, repo_type=destination.repo_type, exist_ok=True)
    info = api.repo_info(repo_id, repo_type=destination.repo_type, revision=branch)
    if not info.sha:
        raise LookupError("no commit is named")
    return repo_id, info.sha, [file.rfilename for file in getattr(info, "siblings", None) or ()]


def _reader(api: HfApi, where: Mapping[str, Any], revision: str) -> Callable[[str], str]:
    def read(path: str) -> str:
        with tempfile.TemporaryDirectory(prefix="st-xling-") as folder:
            found = api.hf_hub_download(filename=path, revision=revision, local_dir=folder, **where)
            return Path(found).read_text(encoding="utf-8")

    return read
