"""A model's folder to the Hub: card, figures, thresholds and pictures with the weights, in one commit."""

from __future__ import annotations

import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from st_xling._version import __version__
from st_xling.hub.card import CardOptions, write_card
from st_xling.hub.card.facts import read_facts
from st_xling.hub.card.options import CARD_FILE
from st_xling.hub.commit import Commit, Destination, commit
from st_xling.hub.files import PublishedFile, published_files
from st_xling.hub.known_files import describe
from st_xling.models.sidecar import names

logger = logging.getLogger(__name__)

CARD, OTHERS_CARD = "README.md", "README.before.md"

_PLACE = re.compile(r"(?<![^\s=,:|'\"])(?!//)[/~][\w.~-]+(?:/[\w.~-]+)+")


@dataclass(frozen=True)
class PushReport:
    """What a push published, or would publish.

    Attributes:
        repo_id: Where.
        files: What stands there, of ours.
        commit: What became of it; ``None`` after a dry run.
    """

    repo_id: str
    files: tuple[PublishedFile, ...]
    commit: Commit | None

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

    What an earlier push of ours left there and this one does not publish, such as an old picture, is deleted in the
    same commit; files that others put there stay.

    Args:
        folder: What ``st-xling train`` wrote, or ``save_pretrained``.
        repo_id: ``user/name``; made if it is not there.
        private: Whether a new repository is private; ``None``: as the account has it.
        revision: Branch, made if it is not there.
        create_pr: Open a pull request instead of changing the branch.
        message: First line of the commit.
        token: ``None``: the host's login (``hf auth login``, or ``HF_TOKEN``).
        endpoint: Address of the Hub; ``None``: ``HF_ENDPOINT``, or the public one.
        dry_run: Change nothing, here or there, and ask nobody: only say what would be published.

    Raises:
        ValueError: Nothing that can be published (see :func:`published_files`); a file that the card does not name; a
            private repository that is public.
        HubError: The Hub, or the way to it, failed; pushing again goes on.
    """
    folder = Path(folder)
    destination = Destination(repo_id, private=private, revision=revision, create_pr=create_pr)
    destination.check()
    before = published_files(folder)  # faults are told before the card is drawn
    with tempfile.TemporaryDirectory(prefix="st-xling-") as beside:
        if dry_run:
            read_facts(folder)  # what is damaged is named where it lies, not in the copy
            folder = _twin(folder, before, Path(beside))
        else:
            _keep_words(folder)
        card = write_card(folder, options=CardOptions(repo_id=repo_id)).read_text(encoding="utf-8")
        files = published_files(folder)
        _tell_of_places(folder, files)
    check_described([file.path for file in files], card)
    if dry_run:
        return PushReport(repo_id, tuple(files), None)
    message = message or f"Push {folder.resolve().name} with st-xling {__version__}"
    contents: Mapping[str, Path | bytes] = {file.path: folder / file.path for file in files}
    done = commit(contents, destination, message=message, stale=left_over, token=token, endpoint=endpoint)
    return PushReport(repo_id, tuple(files), done)


def check_described(paths: Sequence[str], card: str) -> None:
    """Raise ``ValueError`` for a path that ``card`` does not name."""
    unnamed = [path for path in paths if path != CARD and not names(card, path)]
    if unnamed:
        raise ValueError(
            f"nothing is published that the card does not describe: it does not name {', '.join(unnamed)}; make it "
            "anew with st-xling card, or remove the file."
        )


def left_over(paths: Sequence[str], read: Callable[[str], str]) -> list[str]:
    """Files of an earlier push of ours: known by their paths, and named by the card that came with them."""
    if CARD not in paths:
        return []
    card = read(CARD)
    if "st-xling" not in card:
        return []
    return [path for path in paths if path != CARD and describe(path) is not None and names(card, path)]


def _keep_words(folder: Path) -> None:
    """Put a card that others wrote aside before ours takes its place."""
    card = folder / CARD
    if card.is_file() and not any((folder / trace).is_file() for trace in (CARD_FILE, "training/run.json")):
        shutil.copyfile(card, folder / OTHERS_CARD)
        logger.warning("%s is replaced by a card of ours; what it said is in %s", card, folder / OTHERS_CARD)


def _tell_of_places(folder: Path, files: Sequence[PublishedFile]) -> None:
    """Warn of places on this machine that published files name, which everybody will read."""
    found = {
        file.path: places
        for file in files
        if file.path.endswith(".json") and "tokenizer" not in file.path
        if (places := sorted(set(_PLACE.findall((folder / file.path).read_text(encoding="utf-8")))))
    }
    if found:
        told = "; ".join(f"{path}: {', '.join(places)}" for path, places in found.items())
        logger.warning("published files name places on this machine: %s; relative paths in commands avoid it", told)


def _twin(folder: Path, files: Sequence[PublishedFile], goal: Path) -> Path:
    """The same model elsewhere, for a card that is only tried; weights are not copied."""
    for file in files:
        copy = goal / folder.resolve().name / file.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.path.endswith(".safetensors"):
            copy.symlink_to((folder / file.path).resolve())
        else:
            shutil.copyfile(folder / file.path, copy)
    return goal / folder.resolve().name
