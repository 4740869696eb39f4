"""A metric's folder to the Hub, as a Space that ``evaluate.load`` finds and that people can try."""

from __future__ import annotations

from pathlib import Path

from st_xling import metrics
from st_xling.hub.files import PublishedFile
from st_xling.hub.push import Destination, PushReport, commit

_APP = Path(metrics.__file__).with_name("space_app.py")


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
        ValueError: No such metric; a repository of another name.
        HubError: The Hub, or the way to it, failed.
    """
    folder, module = Path(metrics.path(name)), f"{name}.py"
    owner, _, last = repo_id.rpartition("/")
    if last != name:
        raise ValueError(
            f"evaluate.load looks for {module} in a Space called {name}: got {repo_id!r}; "
            f"push to {owner or 'user'}/{name}."
        )
    destination = Destination(repo_id, "space", private, revision, create_pr, "gradio")
    destination.check()
    parts: dict[str, tuple[Path | bytes, str]] = {
        "README.md": (folder / "README.md", "the metric's card, with the Space's settings"),
        "app.py": (_APP, "the page to try it on"),
        module: (folder / module, "the metric"),
        "requirements.txt": (f"evaluate>=0.4\n{requirement or 'st-xling'}\n".encode(), "what the Space installs"),
        "tests.py": (folder / "tests.py", "cases worked out by hand"),
    }
    contents = {path: source for path, (source, _) in parts.items()}
    files = tuple(
        PublishedFile(path, len(source if isinstance(source, bytes) else source.read_bytes()), what)
        for path, (source, what) in parts.items()
    )
    if dry_run:
        return PushReport(repo_id, files)
    message = message or f"Push the metric {name}"
    return commit(contents, files, destination, message=message, token=token, endpoint=endpoint)
