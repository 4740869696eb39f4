"""What came out, beside the paper's own values: means over seeds, differences with intervals, pictures."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.evaluation.reranking import examples_text
from st_xling.hub.markdown import code, fenced, plain
from st_xling.reproduce.paper import Cell, Paper, Table
from st_xling.utils.io import read_json_object, write_atomic, write_json
from st_xling.utils.tables import format_table

_PAPER = "paper: "
"""Before labels of rows that are the paper's own values."""


def report(paper: Paper, out: Path, failed: Mapping[str, str], *, whole: bool = False) -> dict[str, Any]:
    """Tables with what stands in ``results/``, as JSON; cells of steps that failed or did not run are empty.

    Args:
        paper: Whose tables.
        out: Folder in which they were run.
        failed: Id of a step → why it failed.
        whole: All tables of the paper in which there is anything, not only those that were asked for.
    """
    tables = paper.all_tables if whole else paper.tables
    steps = {step.id: step for table in tables.values() for step in table.steps()}
    lost = {steps[key].name: why for key, why in failed.items()}
    contents = {name: _table(table, paper, out, lost, whole) for name, table in tables.items()}
    labels: set[str] = set()
    if whole:
        # A single row of several has run for another table.
        contents = {
            name: content
            for name, content in contents.items()
            if (_has_values(content) or "picture" in content)
            and (name in paper.tables or len(content.get("rows", ())) >= min(2, len(tables[name].cells)))
        }
        made = {name: _made(tables[name], content) for name, content in contents.items()}
        steps = {step.id: step for table in made.values() for step in table.steps()}
        if any(table.cells != tables[name].cells for name, table in made.items()):
            labels = {label for table in made.values() for label in table.cells}
    words = ["st-xling", "reproduce", paper.source, *contents, "--scale", paper.scale, "--model", paper.model_name]
    words += ["--precision", "fp32"] if paper.float32 else []
    words += ["--seeds", ",".join(map(str, paper.seeds)), *(["--rows", *sorted(labels)] if labels else [])]
    return {
        **{"paper": paper.name, "title": paper.title, "scale": paper.scale, "model": paper.model_name},
        **{"precision": "float32" if paper.float32 else None, "seeds": list(paper.seeds)},
        **{"st-xling": __version__, "command": shlex.join(words)},
        "tables": contents,
        "failed": lost,
        "commands": [paper.shown(step) for step in steps.values()],
    }


def _made(table: Table, content: Mapping[str, Any]) -> Table:
    """The table, with the rows that have values."""
    return replace(table, cells={label: row for label, row in table.cells.items() if label in content.get("rows", {})})


def _has_values(content: Mapping[str, Any]) -> bool:
    return any(_known(values) for row in content.get("rows", {}).values() for values in row.values())


def _table(table: Table, paper: Paper, out: Path, failed: dict[str, str], whole: bool) -> dict[str, Any]:
    content: dict[str, Any] = {"title": table.title, "note": table.note, "decimals": table.decimals}
    picture = f"pictures/{paper.file_name}-{re.sub('[^A-Za-z0-9]+', '-', table.name).strip('-')}.png"
    if table.copy is not None:
        (step,), file = table.copy
        if (out / step.folder / file).is_file():
            shutil.copyfile(out / step.folder / file, out / picture)
            content["picture"] = picture
        return content
    signatures: set[str] = set()
    rows = {
        label: {column: _values(cell, table.factor, out, signatures, failed) for column, cell in row.items()}
        for label, row in table.cells.items()
    }
    if whole:  # rows that nobody has asked for yet
        rows = {label: row for label, row in rows.items() if any(map(_known, row.values()))}
    content |= {"rows": rows, "paper": table.paper, "signatures": sorted(signatures)}
    content["differences"] = [
        {
            "row": first,
            "from": second,
            "columns": {column: difference(rows[first][column], rows[second][column]) for column in rows[first]},
        }
        for first, second in table.compare
        if first in rows and second in rows
    ]
    gaps = [gap for entry in content["differences"] for gap in entry["columns"].values() if gap]
    if table.picture and (gaps if table.picture == "gain" else _has_values(content)):
        draw(content, table.picture, out / picture)
        content["picture"] = picture
    if table.examples:
        firsts = {label: next(iter(row.values())).steps[0].id for label, row in table.cells.items() if label in rows}
        results = {label: read_json_object(out / "results" / f"{key}.json") for label, key in firsts.items()}
        examples = {label: result["reranking"]["examples"] for label, result in results.items() if result}
        content |= {"examples": examples_text(examples)} if examples else {}
    return content


def _values(cell: Cell, factor: float, out: Path, signatures: set[str], failed: dict[str, str]) -> list[float | None]:
    """A value for each seed, ``None`` where its step has not run; one alone where all seeds share the step."""
    values: dict[str, float | None] = {}
    for step in cell.steps:
        values[step.id] = None
        content = read_json_object(out / "results" / f"{step.id}.json")
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
    """Numbers at a path, in which ``*`` is every key.

    Raises:
        ValueError: Nothing is there; the message has the keys that are.
    """
    if not path:
        if not isinstance(content, (int, float)):
            raise ValueError(f"a result should be a number: got {content!r}")
        return [float(content)]
    if path[0] == "*" and isinstance(content, dict):
        return [number for part in content.values() for number in _at(part, path[1:])]
    if not isinstance(content, dict) or path[0] not in content:
        keys = ", ".join(content) if isinstance(content, dict) else content
        raise ValueError(f"a result has no {'.'.join(path)!r}; it has: {keys}")
    return _at(content[path[0]], path[1:])


def difference(first: Sequence[float | None], second: Sequence[float | None]) -> dict[str, float | None] | None:
    """Mean difference of two rows by seed, its 95 % interval and p, by Student's t for pairs.

    Args:
        first: A value for each seed, ``None`` where there is none; or one for all seeds.
        second: The same of the other row.

    Returns:
        ``mean``, ``low``, ``high``, ``p`` (the latter ``None`` with less than two seeds), of the seeds that both have;
        ``n``, how many those are, ``of`` how many; ``None`` where no seed has both.
    """
    from scipy.stats import t, ttest_1samp

    n = max(len(first), len(second))
    sides = [list(side) * (n if len(side) == 1 else 1) for side in (first, second)]
    gaps = [a - b for a, b in zip(*sides) if a is not None and b is not None]
    if not gaps:
        return None
    mean = statistics.fmean(gaps)
    found: dict[str, float | None] = {"mean": mean, "low": None, "high": None, "p": None, "n": len(gaps), "of": n}
    if len(gaps) < 2:
        return found
    half = float(t.ppf(0.975, len(gaps) - 1)) * statistics.stdev(gaps) / math.sqrt(len(gaps))
    p = float(ttest_1samp(gaps, 0.0).pvalue) if half else float(mean == 0)
    return found | {"low": mean - half, "high": mean + half, "p": p}


def shown(values: Sequence[float | None] | None, decimals: int) -> str:
    """Mean ± sample standard deviation of those that are there, and of how many where some are not.

    Example:
        >>> shown([1.0, 2.0, 3.0], 1), shown([4.25], 2), shown([1.0, 2.0, None], 1), shown([], 1)
        ('2.0 ± 1.0', '4.25', '1.5 ± 0.7 (n 2)', '-')
    """
    known = _known(values)
    if not known:
        return "-"
    mean = f"{statistics.fmean(known):.{decimals}f}"
    deviation = f" ± {statistics.stdev(known):.{decimals}f}" if len(known) > 1 else ""
    return mean + deviation + _of_fewer(len(known), len(values or ()))


def _of_fewer(n: int, seeds: int) -> str:
    return f" (n {n})" if n < seeds else ""


def _cells(table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Head and rows, ours before the paper's; columns of the paper alone where none is of both."""
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
    head = ["difference", *(next(iter(table["differences"]))["columns"])]
    rows = []
    for entry in table["differences"]:
        rows.append([_gap_label(entry)])
        for gap in entry["columns"].values():
            if gap is None:
                rows[-1].append("-")
                continue
            text = f"{gap['mean']:+.{table['decimals']}f}"
            if gap["p"] is not None:
                text += (
                    f" [{gap['low']:+.{table['decimals']}f}, {gap['high']:+.{table['decimals']}f}], p {gap['p']:.2g}"
                )
            rows[-1].append(text + _of_fewer(gap["n"], gap["of"]))
    return head, rows


def _gap_label(entry: Mapping[str, Any]) -> str:
    """Such as ``DAP − (TR + TLM)``."""
    second = f"({entry['from']})" if " + " in entry["from"] else entry["from"]
    return f"{entry['row']} − {second}"


def text(content: Mapping[str, Any]) -> str:
    """The tables for a terminal."""
    parts = []
    for name, table in content["tables"].items():
        parts.append(_heading(name, table))
        if "rows" in table:
            parts[-1] += "\n" + format_table(*_cells(table))
            if table["differences"]:
                parts.append(format_table(*_differences(table)))
            parts += [table["examples"]] if "examples" in table else []
            parts += ["\n".join(table["signatures"])] if table["signatures"] else []
        if "picture" in table:
            parts.append(f"picture: {table['picture']}")
        parts += [table["note"]] if table["note"] else []
    return "\n\n".join(parts)


def _heading(name: str, table: Mapping[str, Any]) -> str:
    kind = name if " " in name else f"table {name}"
    return f"{kind[:1].upper()}{kind[1:]}: {table['title']}"


def markdown(content: Mapping[str, Any]) -> str:
    """The same as a page: tables, pictures, signatures, and the commands below."""
    seeds = ", ".join(map(str, content["seeds"]))
    start = code(content["model"]) + (f", in {content['precision']}" if content["precision"] else "")
    parts = [
        f"# {plain(content['title'])}",
        f"Scale `{content['scale']}`, from {start}, seeds {seeds}, st-xling {content['st-xling']}. "
        f"Values are mean ± standard deviation over seeds (n: of how many, where not of all); rows that begin with "
        f"“{_PAPER.strip()}” are the paper's own values, of other data and larger models. Differences are paired by "
        "seed, with 95 % intervals and p by Student's t, not corrected for their number.",
    ]
    parts.append(fenced(content["command"], "bash"))
    for name, table in content["tables"].items():
        parts.append(f"## {plain(_heading(name, table))}")
        if "rows" in table:
            parts.append(_pipes(*_cells(table)))
            parts += [_pipes(*_differences(table))] if table["differences"] else []
            parts += [fenced(table["examples"])] if "examples" in table else []
        if "picture" in table:
            parts.append(f"![{plain(table['title'])}]({table['picture']})")
        parts += [plain(table["note"])] if table["note"] else []
        if table.get("signatures"):
            parts.append(
                f"<details><summary>signatures</summary>\n\n{fenced(chr(10).join(table['signatures']))}\n\n</details>"
            )
    if content["failed"]:
        parts.append("## Failed")
        parts.append("\n".join(f"- {plain(name)}: {plain(why)}" for name, why in content["failed"].items()))
    parts.append(
        f"<details><summary>commands</summary>\n\n{fenced(chr(10).join(content['commands']), 'bash')}\n\n</details>"
    )
    return "\n\n".join(parts) + "\n"


def _pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, [":---", *["---:"] * (len(head) - 1)], *([plain(row[0]), *row[1:]] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_report(paper: Paper, out: Path, failed: Mapping[str, str]) -> None:
    """Write page and JSON file of all tables that have been made so far."""
    content = report(paper, out, failed, whole=True)
    write_json(out / f"{paper.file_name}.json", content)
    write_atomic(out / f"{paper.file_name}.md", markdown(content).encode("utf-8"))


def draw(table: Mapping[str, Any], kind: str, path: Path) -> None:
    """Draw a table: ``bars``, rows by column; ``lines``, columns over rows; ``gain``, differences by column."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from st_xling.evaluation.pictures import save_figure

    rows = {label: {column: _known(cell) for column, cell in row.items()} for label, row in table["rows"].items()}
    columns = list(next(iter(rows.values())))
    figure = Figure(figsize=(max(5.0, 1.0 + 0.22 * len(columns) * len(rows)), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()

    def bars(series: Mapping[str, Sequence[float]], errors: Mapping[str, Sequence[float]]) -> None:
        width = 0.8 / len(series)
        for place, (label, heights) in enumerate(series.items()):
            at = [index + (place - (len(series) - 1) / 2) * width for index in range(len(heights))]
            axes.bar(at, heights, width, yerr=errors[label], label=label, capsize=2)
        axes.set_xticks(range(len(columns)), columns, rotation=30 if len(columns) > 4 else 0)

    def mean(values: Sequence[float]) -> float:
        return statistics.fmean(values) if values else math.nan

    def deviation(values: Sequence[float]) -> float:
        return statistics.stdev(values) if len(values) > 1 else 0.0

    if kind == "gain":
        gaps = {_gap_label(entry): entry["columns"] for entry in table["differences"]}
        heights = {label: [gap["mean"] if gap else math.nan for gap in row.values()] for label, row in gaps.items()}
        halves = {
            label: [gap["high"] - gap["mean"] if gap and gap["high"] is not None else 0.0 for gap in row.values()]
            for label, row in gaps.items()
        }
        bars(heights, halves)
        axes.axhline(0.0, color="black", linewidth=0.8)
    elif kind == "lines":
        for column in columns:
            values = [row[column] for row in rows.values()]
            axes.errorbar(
                list(rows), list(map(mean, values)), list(map(deviation, values)), marker="o", capsize=2, label=column
            )
    else:
        bars(
            {label: [mean(row[column]) for column in columns] for label, row in rows.items()},
            {label: [deviation(row[column]) for column in columns] for label, row in rows.items()},
        )
    figure.suptitle(table["title"], fontsize=9)
    figure.legend(frameon=False, fontsize=8, loc="outside right center")
    save_figure(figure, path)
