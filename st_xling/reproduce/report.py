"""Results next to the paper's own values: means over seeds, differences with intervals, pictures."""

from __future__ import annotations

import math
import re
import shlex
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.evaluation.pictures import save_figure
from st_xling.evaluation.reranking import examples_text
from st_xling.hub.card import code, fenced, plain
from st_xling.reproduce.paper import Cell, Paper, Table
from st_xling.utils.io import read_json_object, write_atomic, write_json
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
    lost = {steps[key].name: why for key, why in failed.items()}
    contents = {name: _table(table, paper, out, lost) for name, table in tables.items()}
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
        "title": paper.title,
        "scale": paper.scale,
        "model": paper.model_name,
        "precision": "float32" if paper.float32 else None,
        "seeds": list(paper.seeds),
        "st-xling": __version__,
        "command": shlex.join(words),
        "tables": contents,
        "failed": lost,
        "commands": [paper.shown(step) for step in steps.values() if (out / step.result).exists()],
    }


def _table(table: Table, paper: Paper, out: Path, failed: dict[str, str]) -> dict[str, Any]:
    signatures: set[str] = set()
    rows = {
        label: {column: _values(cell, table.factor, out, signatures, failed) for column, cell in row.items()}
        for label, row in table.cells.items()
    }
    rows = {label: row for label, row in rows.items() if any(map(_known, row.values()))}
    content: dict[str, Any] = {"title": table.title, "note": table.note, "decimals": table.decimals}
    content |= {"rows": rows, "paper": table.paper, "signatures": sorted(signatures)}
    content["differences"] = {
        f"{first} − {f'({second})' if ' + ' in second else second}": {
            column: difference(rows[first][column], rows[second][column]) for column in rows[first]
        }
        for first, second in table.compare
        if first in rows and second in rows
    }
    if table.picture and rows:
        content["picture"] = f"pictures/{paper.file_name}-{re.sub('[^A-Za-z0-9]+', '-', table.name).strip('-')}.png"
        draw(content, table.picture, out / content["picture"])
    if table.examples and rows:
        firsts = {label: next(iter(table.cells[label].values())).steps[0] for label in rows}
        results = {label: read_json_object(out / step.result) for label, step in firsts.items()}
        content["examples"] = examples_text({label: own["reranking"]["examples"] for label, own in results.items()})
    return content


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
            failed[step.name] = str(error)
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
    if len(gaps) < 2:
        return {"mean": mean, "low": None, "high": None, "p": None, "n": len(gaps), "of": n}
    if len(set(gaps)) == 1:  # a test would divide by no deviation
        return {"mean": mean, "low": mean, "high": mean, "p": float(mean == 0), "n": len(gaps), "of": n}
    test = ttest_1samp(gaps, 0.0)
    low, high = map(float, test.confidence_interval(0.95))
    return {"mean": mean, "low": low, "high": high, "p": float(test.pvalue), "n": len(gaps), "of": n}


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
        parts += [table["examples"]] if "examples" in table else []
        parts += ["\n".join(table["signatures"])] if table["signatures"] else []
        parts += [f"picture: {table['picture']}"] if "picture" in table else []
        parts += [table["note"]] if table["note"] else []
    return "\n\n".join(parts)


def _heading(name: str, table: Mapping[str, Any]) -> str:
    kind = name if " " in name else f"table {name}"
    return f"{kind[:1].upper()}{kind[1:]}: {table['title']}"


def markdown(content: Mapping[str, Any]) -> str:
    """Format the same as a page: tables, pictures, signatures, and the commands below."""
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
        parts += [fenced(table["examples"])] if "examples" in table else []
        parts += [f"![{plain(table['title'])}]({table['picture']})"] if "picture" in table else []
        parts += [plain(table["note"])] if table["note"] else []
        parts += [_details("signatures", fenced("\n".join(table["signatures"])))] if table["signatures"] else []
    if content["failed"]:
        lines = [f"- {plain(name)}: {plain(why)}" for name, why in content["failed"].items()]
        parts += ["## Failed", "\n".join(lines)]
    parts.append(_details("commands", fenced("\n".join(content["commands"]), "bash")))
    return "\n\n".join(parts) + "\n"


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"


def _pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, [":---", *["---:"] * (len(head) - 1)], *([plain(row[0]), *row[1:]] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_report(paper: Paper, out: Path, failed: Mapping[str, str]) -> None:
    """Write page and JSON file of all tables that have been made so far."""
    content = report(paper, out, failed, whole=True)
    write_json(out / f"{paper.file_name}.json", content)
    write_atomic(out / f"{paper.file_name}.md", markdown(content).encode("utf-8"))


def draw(table: Mapping[str, Any], kind: str, path: Path) -> None:
    """Draw a table: ``bars``, rows by column; ``lines``, columns over rows; with the deviations over seeds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = table["rows"]
    columns = list(next(iter(rows.values())))
    figure = Figure(figsize=(max(5.0, 1.0 + 0.22 * len(columns) * len(rows)), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for place, label in enumerate(columns if kind == "lines" else rows):
        cells = [row[label] for row in rows.values()] if kind == "lines" else [*rows[label].values()]
        known = [_known(cell) for cell in cells]
        means = [statistics.fmean(values) if values else math.nan for values in known]
        deviations = [statistics.stdev(values) if len(values) > 1 else 0.0 for values in known]
        if kind == "lines":
            axes.errorbar(list(rows), means, deviations, marker="o", capsize=2, label=label)
        else:
            width = 0.8 / len(rows)
            at = [index + (place - (len(rows) - 1) / 2) * width for index in range(len(columns))]
            axes.bar(at, means, width, yerr=deviations, label=label, capsize=2)
            axes.set_xticks(range(len(columns)), columns, rotation=30 if len(columns) > 4 else 0)
    figure.suptitle(table["title"], fontsize=9)
    figure.legend(frameon=False, fontsize=8, loc="outside right center")
    save_figure(figure, path)
