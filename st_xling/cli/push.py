"""``st-xling push``: a model, or a metric, to the Hugging Face Hub."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from st_xling.hub.push import PushReport


def add_parser(commands: Any) -> None:
    """Add the sub-command to the parsers of ``st-xling``."""
    push = commands.add_parser(
        "push",
        help="publish a model or a metric on the Hub",
        description="Publish a model with its card, figures, thresholds and pictures in one commit; or a metric as a "
        "Space. Log in first: hf auth login.",
        epilog="examples:\n  st-xling push my-encoder user/my-encoder --dry-run\n"
        "  st-xling push my-encoder user/my-encoder --private\n"
        "  st-xling push --metric bucc_mining user/bucc_mining",
    )
    push.add_argument("model", metavar="MODEL", help="folder of the model; with --metric, name of a metric")
    push.add_argument("repo", metavar="REPO", help="user/name on the Hub; made if it is not there")
    push.add_argument(
        "--metric", action="store_true", help="MODEL is bucc_mining, tatoeba or xpr_ranking: publish it as a Space"
    )
    push.add_argument(
        "--requirement", metavar="LINE", help="with --metric: where its Space gets st-xling from (default: PyPI)"
    )
    # Absent is not public: an organisation may make its repositories private by itself.
    push.add_argument("--private", action="store_true", default=None, help="make the repository private")
    push.add_argument("--revision", metavar="BRANCH", help="branch to push to; made from main if it is not there")
    push.add_argument("--pr", action="store_true", help="open a pull request instead")
    push.add_argument("--message", help="first line of the commit")
    push.add_argument("--dry-run", action="store_true", help="only list what would be published; asks nobody")
    push.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Publish; the address of the commit, or the list of a dry run, goes to stdout."""
    from st_xling.hub.push import push_model
    from st_xling.hub.spaces import push_metric

    if arguments.requirement is not None and not arguments.metric:
        raise ValueError("--requirement is for the Space of a metric: give --metric, or leave it out.")
    options = {
        "private": arguments.private,
        "revision": arguments.revision,
        "create_pr": arguments.pr,
        "message": arguments.message,
        "dry_run": arguments.dry_run,
    }
    if arguments.metric:
        report = push_metric(arguments.model, arguments.repo, requirement=arguments.requirement, **options)
    else:
        report = push_model(arguments.model, arguments.repo, **options)
    _print(report)


def _print(report: PushReport) -> None:
    done = report.commit
    if done is None:
        _print_files(report)
        return
    if not done.changed:
        print(f"{report.repo_id} holds all of it already; its last commit:", file=sys.stderr)
    else:
        gone = f"; deleted: {', '.join(done.deleted)}" if done.deleted else ""
        print(f"{len(report.files)} files, {_size(report.size)}, are in {report.repo_id}{gone}", file=sys.stderr)
    print(done.url)


def _print_files(report: PushReport) -> None:
    rows = [(file.path, _size(file.size), file.what) for file in report.files]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for path, size, what in rows:
        print(f"{path:<{widths[0]}}  {size:>{widths[1]}}  {what}")
    print(f"would go to {report.repo_id}: {len(rows)} files, {_size(report.size)}")


def _size(count: int) -> str:
    """Bytes for people: 1024 at a time."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
