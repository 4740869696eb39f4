"""Results next to the paper's own values: means over seeds, differences with intervals."""

from __future__ import annotations

import re
import shlex
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from st_xling._version import __version__
from st_xling.evaluation.pictures import draw_points
from st_xling.evaluation.reranking import examples_text
from st_xling.hub.card import code, fenced, plain
from st_xling.reproduce.paper import Cell, Paper, Table
from st_xling.utils.io import read_json_object, write_atomic, write_json
from st_xling.utils.languages import language_name
from st_xling.utils.tables import format_table

#: Before labels of rows that are the paper's own values.
_PAPER = "paper: "


def report(paper: Paper, out: Path, failed: Mapping[str, str], *, whole: bool = False) -> dict[str, Any]:
    """Return tables with the values in ``results/``, as JSON; rows without any are omitted.

    Args:
        paper: The paper.
        out: Folder in which its steps ran.
        failed: Id of a step → why it failed.
        whole: All tables of which more than one row has values, not only those that were asked for.
    """
    tables = paper.all_tables if whole else paper.tables
    steps = {step.id: step for table in tables.values() for step in table.steps()}
    failed = {**failed}
    contents = {name: _table(table, out, failed) for name, table in tables.items()}
    contents = {
        name: content for name, content in contents.items() if len(content["rows"]) > (name not in paper.tables)
    }
    labels = {label: None for content in contents.values() for label in content["rows"]}
    words = ["st-xling", "reproduce", paper.source, *contents, "--scale", paper.scale, "--model", paper.model_name]
    words += ["--precision", "fp32"] if paper.float32 else []
    words += ["--seeds", ",".join(map(str, paper.seeds))]
    if any(label not in labels for name in contents for label in tables[name].cells):
        words += ["--rows", *labels]
    return {
        "paper": paper.name,
        "file_name": paper.file_name,
        "title": paper.title,
        "scale": paper.scale,
        "model": paper.model_name,
        "precision": "float32" if paper.float32 else None,
        "seeds": list(paper.seeds),
        "st-xling": __version__,
        "command": shlex.join(words),
        "tables": contents,
        "failed": failed,
        "commands": [paper.shown(step) for step in steps.values() if (out / step.result).exists()],
    }


def _table(table: Table, out: Path, failed: dict[str, str]) -> dict[str, Any]:
    signatures: set[str] = set()
    factor = table.entry.get("factor", 100.0)
    rows = {
        label: {column: _values(cell, factor, out, signatures, failed) for column, cell in row.items()}
        for label, row in table.cells.items()
    }
    rows = {label: row for label, row in rows.items() if any(map(_known, row.values()))}
    content: dict[str, Any] = {"title": table.title, "note": table.note, "decimals": table.entry.get("decimals", 1)}
    content |= {"rows": rows, "paper": table.entry.get("paper", {}), "signatures": sorted(signatures)}
    content["differences"] = {
        f"{first} − {f'({second})' if ' + ' in second else second}": {
            column: difference(rows[first][column], rows[second][column]) for column in rows[first]
        }
        for first, second in table.compare
        if first in rows and second in rows
    }
    if table.entry.get("picture") and rows:
        content["picture"] = {label: _first_result(table, label, out)["components"] for label in rows}
    if table.entry.get("examples") and rows:
        results = {label: _first_result(table, label, out) for label in rows}
        content["examples"] = examples_text({label: own["reranking"]["examples"] for label, own in results.items()})
    return content


def _first_result(table: Table, label: str, out: Path) -> dict[str, Any]:
    """Return the result of a row's first column and seed."""
    return read_json_object(out / next(iter(table.cells[label].values())).steps[0].result)


def _values(cell: Cell, factor: float, out: Path, signatures: set[str], failed: dict[str, str]) -> list[float | None]:
    """Return a value for each seed, ``None`` where its step has not run; one alone where all seeds share the step."""
    values: dict[str, float | None] = {}
    for step in cell.steps:
        values[step.id] = None
        content = read_json_object(out / step.result)
        if not content:
            continue
        signatures.update([content["signature"]] if isinstance(content.get("signature"), str) else ())
        try:
            found = [number for path in cell.paths for number in _at(content, path.split("."))]
        except ValueError as error:
            failed[step.id] = str(error)
        else:
            values[step.id] = factor * statistics.fmean(found)
    return list(values.values())


def _known(values: Sequence[float | None] | None) -> list[float]:
    return [value for value in values or () if value is not None]


def _at(content: Any, path: Sequence[str]) -> list[float]:
    """Return the numbers at a path, in which ``*`` is every key; raise ``ValueError`` if nothing is there."""
    if not path and isinstance(content, (int, float)):
        return [float(content)]
    if path and path[0] == "*" and isinstance(content, dict):
        return [number for part in content.values() for number in _at(part, path[1:])]
    if not path or not isinstance(content, dict) or path[0] not in content:
        keys = ", ".join(content) if isinstance(content, dict) else content
        raise ValueError(f"a result has no number at {'.'.join(path)!r}; it has: {keys}")
    return _at(content[path[0]], path[1:])


def difference(first: Sequence[float | None], second: Sequence[float | None]) -> dict[str, float | None] | None:
    """Compute the mean difference of two rows by seed, its 95 % interval and p, by Student's t for pairs.

    Args:
        first: A value for each seed, ``None`` where there is none; or one for all seeds.
        second: The same of the other row.

    Returns:
        ``mean``, ``low``, ``high``, ``p`` (the latter ``None`` with less than two seeds), of the ``n`` seeds of all
        ``of`` that both have; ``None`` where no seed has both.
    """
    from scipy.stats import ttest_1samp

    n = max(len(first), len(second))
    sides = [list(side) * (n if len(side) == 1 else 1) for side in (first, second)]
    gaps = [a - b for a, b in zip(*sides) if a is not None and b is not None]
    if not gaps:
        return None
    mean = statistics.fmean(gaps)
    low = high = p = None
    if len(set(gaps)) > 1:
        test = ttest_1samp(gaps, 0.0)
        low, high, p = map(float, (*test.confidence_interval(0.95), test.pvalue))
    elif len(gaps) > 1:  # a test would divide by no deviation
        low, high, p = mean, mean, float(mean == 0)
    return {"mean": mean, "low": low, "high": high, "p": p, "n": len(gaps), "of": n}


def shown(values: Sequence[float | None] | None, decimals: int) -> str:
    """Format mean ± sample standard deviation of the known values, and their number where some are missing.

    Example:
        >>> shown([1.0, 2.0, 3.0], 1), shown([4.25], 2), shown([1.0, 2.0, None], 1), shown([], 1)
        ('2.0 ± 1.0', '4.25', '1.5 ± 0.7 (n 2)', '-')
    """
    known = _known(values)
    if not known:
        return "-"
    mean = f"{statistics.fmean(known):.{decimals}f}"
    deviation = f" ± {statistics.stdev(known):.{decimals}f}" if len(known) > 1 else ""
    return mean + deviation + _of_seeds(len(known), len(values or ()))


def _of_seeds(known: int, all_seeds: int) -> str:
    return f" (n {known})" if known < all_seeds else ""


def _cells(table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows, ours before the paper's; columns of the paper alone where none is of both."""
    columns, of_paper = ({key: None for row in table[kind].values() for key in row} for kind in ("rows", "paper"))
    columns |= {} if columns.keys() & of_paper.keys() else of_paper
    rows = [
        [label, *(shown(row.get(column), table["decimals"]) for column in columns)]
        for label, row in table["rows"].items()
    ]
    rows += [
        [f"{_PAPER}{label}", *("-" if row.get(column) is None else str(row[column]) for column in columns)]
        for label, row in table["paper"].items()
    ]
    return ["", *map(str, columns)], rows


def _differences(table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    def text(gap: Mapping[str, Any] | None) -> str:
        if gap is None:
            return "-"
        mean, low, high = (
            "" if gap[name] is None else f"{gap[name]:+.{table['decimals']}f}" for name in ("mean", "low", "high")
        )
        interval = "" if gap["p"] is None else f" [{low}, {high}], p {gap['p']:.2g}"
        return mean + interval + _of_seeds(gap["n"], gap["of"])

    rows = [[label, *map(text, columns.values())] for label, columns in table["differences"].items()]
    return ["difference", *next(iter(table["rows"].values()))], rows


def text(content: Mapping[str, Any]) -> str:
    """Format the tables for a terminal."""
    parts = []
    for name, table in content["tables"].items():
        parts.append(f"{_heading(name, table)}\n{format_table(*_cells(table))}")
        parts += [format_table(*_differences(table))] if table["differences"] else []
        parts += [table.get("examples", ""), "\n".join(table["signatures"]), table["note"]]
    return "\n\n".join(filter(None, parts))


def _heading(name: str, table: Mapping[str, Any]) -> str:
    kind = name if " " in name else f"table {name}"
    return f"{kind[:1].upper()}{kind[1:]}: {table['title']}"


def markdown(content: Mapping[str, Any]) -> str:
    """Format the same as a page: tables, signatures, and the commands below."""
    seeds = ", ".join(map(str, content["seeds"]))
    start = code(content["model"]) + (f", in {content['precision']}" if content["precision"] else "")
    parts = [
        f"# {plain(content['title'])}",
        f"Scale `{content['scale']}`, from {start}, seeds {seeds}, st-xling {content['st-xling']}. "
        f"Values are mean ± standard deviation over seeds (n: of how many, where not of all); rows that begin with "
        f"“{_PAPER.strip()}” are the paper's own values, of other data and larger models. Differences are paired by "
        "seed, with 95 % intervals and p by Student's t, not corrected for their number.",
        fenced(content["command"], "bash"),
    ]
    for name, table in content["tables"].items():
        parts += [f"## {plain(_heading(name, table))}", _pipes(*_cells(table))]
        parts += [_pipes(*_differences(table))] if table["differences"] else []
        parts += [f"![{plain(table['title'])}]({picture_path(content, name)})"] if "picture" in table else []
        parts += [fenced(table["examples"])] if "examples" in table else []
        parts += [plain(table["note"]), _details("signatures", table["signatures"])]
    parts += ["## Failed"] if content["failed"] else []
    parts += ["\n".join(f"- {plain(name)}: {plain(why)}" for name, why in content["failed"].items())]
    return "\n\n".join(filter(None, [*parts, _details("commands", content["commands"], "bash")])) + "\n"


def _details(summary: str, lines: Sequence[str], language: str = "") -> str:
    shown = fenced("\n".join(lines), language)
    return f"<details><summary>{summary}</summary>\n\n{shown}\n\n</details>" if lines else ""


def _pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, [":---", *["---:"] * (len(head) - 1)], *([plain(row[0]), *row[1:]] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def picture_path(content: Mapping[str, Any], table: str) -> str:
    """Return the path of a table's picture from the page."""
    return f"pictures/{content['file_name']}-{re.sub(r'[^A-Za-z0-9]+', '-', table).strip('-')}.png"


def write_report(paper: Paper, out: Path, failed: Mapping[str, str]) -> None:
    """Write page, pictures and JSON file of all tables that have been made so far."""
    content = report(paper, out, failed, whole=True)
    for name, table in content["tables"].items():
        if shown := table.get("picture"):
            panels = {label: _sides(components["points"]) for label, components in shown.items()}
            first = next(iter(shown.values()))
            languages = [language_name(code) for code in first["languages"]]
            is_of_sentences = first["of"] == "sentences"
            draw_points(panels, out / picture_path(content, name), languages=languages, joined=is_of_sentences)
    write_json(out / f"{paper.file_name}.json", content)
    write_atomic(out / f"{paper.file_name}.md", markdown(content).encode("utf-8"))


def _sides(points: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(points["source"]), np.array(points["target"])
