"""Open our files and models with other tools, and make the table of the page "Works with".

    python -m tests.neighbours
    python -m tests.neighbours translation_memories po2tmx --save

NAME is a kind of file or a meeting. Each tool is installed from the package registry into an environment of its own,
which is kept for the next run. With --save the rows replace those of the page. The status is 1 if a result is another
than the page has.
"""

import argparse
import os
import sys
from pathlib import Path

from tests.neighbours.meeting import MEETINGS, Meeting, Row, hold
from tests.neighbours.table import GROUPS, load_meetings, load_rows, save_row


def main() -> int:
    """Run the command line."""
    load_meetings()
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser = argparse.ArgumentParser(
        prog="python -m tests.neighbours", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(GROUPS)}, or a meeting (default: all)")
    parser.add_argument("--save", action="store_true", help="put the rows into the page")
    parser.add_argument(
        "--environments",
        type=Path,
        default=cache / "st-xling" / "neighbours",
        help="folder of the installed tools (default: %(default)s)",
    )
    options = parser.parse_args()
    known = {*GROUPS, *(entry.name for entry in MEETINGS)}
    if unknown := set(options.names) - known:
        parser.error(f"NAME must be one of {', '.join(sorted(known))}: got {', '.join(sorted(unknown))}")

    saved = {row.name: row for row in load_rows()}
    changed = []
    for entry in chosen(options.names):
        row = hold(entry, GROUPS[entry.group], options.environments.absolute())
        print(describe(row), flush=True)
        if options.save:
            save_row(row)
        before = saved.get(row.name)
        if before is not None and (before.result, before.came) != (row.result, row.came):
            changed.append(row.name)
            print(f"  before: {before.result}: {before.came}")
    if changed:
        print(f"otherwise than before: {', '.join(changed)}")
    return int(bool(changed))


def chosen(names: list[str]) -> list[Meeting]:
    """Return the meetings of some names, all without names."""
    return [entry for entry in MEETINGS if not names or entry.name in names or entry.group in names]


def describe(row: Row) -> str:
    """Describe a row in lines."""
    lines = [f"{row.tool} {row.version}: {row.tried}: {row.result}", f"  expected: {row.expected}"]
    if row.result != "works":
        lines += [f"  came: {row.came}", f"  met by: {row.users}"]
        if row.remedy:
            lines.append(f"  remedy: {row.remedy}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
