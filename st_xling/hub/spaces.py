"""A metric's folder to the Hub, as a Space that ``evaluate.load`` finds and that people can try."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from st_xling import metrics
from st_xling.hub.files import PublishedFile
from st_xling.hub.push import Destination, PushReport, commit

_WHAT = {
    "README.md": "the metric's card, with the Space's settings",
    "requirements.txt": "what the Space installs",
    "app.py": "the page to try it on",
    "tests.py": "cases worked out by hand",
}


def push_metric(
    name: str,
    repo_id: str,
    *,
    requirement: str | None = None,
    private: bool | None = None,
    revision: str | None = None,
    create_pr: bool = False,
    message: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
    dry_run: bool = False,
) -> PushReport:
    """Publish one of :data:`st_xling.metrics.NAMES` as a Space, in one commit.

    The Space, and whoever calls ``evaluate.load("user/name")``, needs this package installed: ``requirements.txt``
    names it, which the Space can follow only if the package is on PyPI, or ``requirement`` says where it is.

    Args:
        name: Of the metric.
        repo_id: ``user/name``, whose name must be the metric's: ``evaluate`` looks for ``name.py`` there.
        requirement: Line for this package, such as ``"st-xling @ git+https://example.org/st-xling"``; ``None``: its
            name, from PyPI.
        private, revision, create_pr, message, token, endpoint, dry_run: As for
            :func:`~st_xling.hub.push.push_model`.

    Raises:
        ValueError: No such metric; a repository of another name; a folder that is not a Space's.
        HubError: The Hub, or the way to it, failed.
    """
    folder = Path(metrics.path(name))
    space = f"{name}.py"
    if repo_id.rpartition("/")[2] != name:
        raise ValueError(
            f"evaluate.load looks for {space} in a Space called {name}: got {repo_id!r}; "
            f"push to {repo_id.rpartition('/')[0] or 'user'}/{name}."
        )
    settings = space_settings(folder)
    destination = Destination(repo_id, "space", private, revision, create_pr, settings["sdk"])
    destination.check()
    contents: Mapping[str, Path | bytes] = {
        path.name: _requirements(path, requirement) if path.name == "requirements.txt" else path
        for path in sorted(folder.iterdir())
        if path.name in {space, *_WHAT}
    }
    files = tuple(
        PublishedFile(path, len(_bytes(source)), _WHAT.get(path, "the metric")) for path, source in contents.items()
    )
    done = None
    if not dry_run:
        message = message or f"Push the metric {name}"
        done = commit(contents, destination, message=message, token=token, endpoint=endpoint)
    return PushReport(repo_id, files, done)


def space_settings(folder: Path) -> dict[str, Any]:
    """The front matter of a Space's ``README.md``.

    Raises:
        ValueError: It lacks what the Hub needs to build the Space, or ``evaluate`` to find it.
    """
    import yaml

    parts = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    settings = yaml.safe_load(parts[1]) if len(parts) == 3 and not parts[0] else {}
    missing = {"title", "sdk", "sdk_version", "app_file", "tags"} - settings.keys()
    if missing:
        raise ValueError(f"the front matter of {folder / 'README.md'} lacks {', '.join(sorted(missing))}.")
    if not {"evaluate", "metric"} <= set(settings["tags"]) or not (folder / settings["app_file"]).is_file():
        raise ValueError(f"{folder} is no Space of evaluate's: expected tags evaluate and metric, and its app_file.")
    return settings


def _requirements(path: Path, requirement: str | None) -> bytes:
    lines = path.read_text(encoding="utf-8").splitlines()
    return "".join(f"{requirement if requirement and line == 'st-xling' else line}\n" for line in lines).encode()


def _bytes(source: Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()
