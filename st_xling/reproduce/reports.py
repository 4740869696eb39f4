"""Results next to the paper's own values: means over seeds, differences with intervals."""

from __future__ import annotations

import itertools
import re
import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from st_xling._version import __version__
from st_xling.evaluation.measures import resample
from st_xling.evaluation.pictures import draw_points, has_matplotlib
from st_xling.evaluation.reranking import examples_text
from st_xling.hub.card import code, fenced, plain
from st_xling.reproduce.paper import Paper, Table, TableCell
from st_xling.utils.io import read_json_object, write_atomic, write_json
from st_xling.utils.languages import language_name
from st_xling.utils.tables import format_table

#: Before labels of rows that are the paper's values.
_PAPER_PREFIX = "paper: "


def report(paper: Paper, out: Path, failed: Mapping[str, str], *, all_tables: bool = False) -> dict[str, Any]:
    """Return tables with the values in ``results/``, as JSON; rows without any are omitted.

    Args:
        paper: The paper.
        out: Folder in which its steps ran.
        failed: Id of a step → why it failed.
        all_tables: Include each other table of which more than one row has values, not only those of ``paper.tables``.
    """
    failed = {**failed}
    tables = paper.all_tables if all_tables else paper.tables
    steps = {}
    for table in tables.values():
        steps.update({step.id: step for step in table.steps()})
    contents = {}
    for name, table in tables.items():
        content = _table_content(table, out, failed)
        min_rows = 1 if name in paper.tables else 2
        if len(content["rows"]) >= min_rows:
            contents[name] = content
    commands = [paper.shown(step) for step in steps.values() if (out / step.result).exists()]
    return {
        "paper": paper.name,
        "file_name": paper.file_name,
        "title": paper.title,
        "scale": paper.scale,
        "model": paper.model_name,
        "precision": "float32" if paper.float32 else None,
        "seeds": list(paper.seeds),
        "changes": dict(paper.changes),
        "recipes": paper.recipes(),
        "st-xling": __version__,
        "command": _command(paper, tables, contents),
        "tables": contents,
        "failed": failed,
        "commands": commands,
    }


def _command(paper: Paper, tables: Mapping[str, Table], contents: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the command that makes the tables with values, and only their rows with values."""
    words = ["st-xling", "reproduce", paper.source, *contents, "--scale", paper.scale, "--model", paper.model_name]
    if paper.float32:
        words += ["--precision", "fp32"]
    for name, value in paper.changes.items():
        words += ["--set", f"{name}={value}"]
    words += ["--seeds", ",".join(map(str, paper.seeds))]
    labels: dict[str, None] = {}
    all_labels: set[str] = set()
    for name, content in contents.items():
        labels.update(dict.fromkeys(content["rows"]))
        all_labels.update(tables[name].cells)
    if not all_labels <= labels.keys():
        words += ["--rows", *labels]
    return shlex.join(words)


def _table_content(table: Table, out: Path, failed: dict[str, str]) -> dict[str, Any]:
    """Return a table's values; ids of steps whose result lacks a value are added to ``failed``, with the reason."""
    signatures: set[str] = set()
    factor = table.entry.get("factor", 100.0)
    rows = {}
    for label, cells in table.cells.items():
        row = {column: _seed_values(cell, factor, out, signatures, failed) for column, cell in cells.items()}
        if any(map(_known_values, row.values())):
            rows[label] = row

    differences = {}
    for first, second in table.compare:
        if first in rows and second in rows:
            subtrahend = f"({second})" if " + " in second else second
            gaps = {column: difference(rows[first][column], rows[second][column]) for column in rows[first]}
            for column, gap in gaps.items():
                if gap is not None and table.cells[first][column].over_sentences:
                    gap["sentences"] = _interval_of_cells(table.cells[first][column], table.cells[second][column], out)
            differences[f"{first} − {subtrahend}"] = gaps
    content: dict[str, Any] = {
        "title": table.title,
        "note": table.note,
        "decimals": table.entry.get("decimals", 1),
        "rows": rows,
        "paper": table.entry.get("paper", {}),
        "signatures": sorted(signatures),
        "differences": differences,
    }
    results = _first_results(table, rows, out)
    if table.entry.get("picture") and results:
        content["picture"] = {label: result["components"] for label, result in results.items()}
    if table.entry.get("examples") and results:
        content["examples"] = examples_text(
            {label: result["reranking"]["examples"] for label, result in results.items()}
        )
    return content


def _first_results(table: Table, labels: Iterable[str], out: Path) -> dict[str, dict[str, Any]]:
    """Return, for each row whose first column has one, its result of the first seed that is done."""
    results = {}
    for label in labels:
        first_cell = next(iter(table.cells[label].values()))
        contents = [read_json_object(out / step.result) for step in first_cell.steps]
        if done := [content for content in contents if content]:
            results[label] = done[0]
    return results


def _seed_values(
    cell: TableCell, factor: float, out: Path, signatures: set[str], failed: dict[str, str]
) -> list[float | None]:
    """Return a value for each seed, ``None`` where its step has not run; only one where all seeds share the step."""
    values: dict[str, float | None] = {}
    for step in cell.steps:
        values[step.id] = None
        content = read_json_object(out / step.result)
        if not content:
            continue
        if isinstance(content.get("signature"), str):
            signatures.add(content["signature"])
        numbers: list[float] = []
        try:
            for path in cell.paths:
                numbers += _numbers_at(content, path.split("."))
        except ValueError as error:
            failed[step.id] = str(error)
        else:
            values[step.id] = factor * statistics.fmean(numbers)
    return list(values.values())


def _known_values(values: Sequence[float | None] | None) -> list[float]:
    return [value for value in values or () if value is not None]


def _numbers_at(content: Any, path: Sequence[str]) -> list[float]:
    """Return the numbers at a path, in which ``*`` is every key; raise ``ValueError`` if nothing is there."""
    if not path and isinstance(content, (int, float)):
        return [float(content)]
    if path and path[0] == "*" and isinstance(content, dict):
        numbers: list[float] = []
        for value in content.values():
            numbers += _numbers_at(value, path[1:])
        return numbers
    if not path or not isinstance(content, dict) or path[0] not in content:
        keys = ", ".join(content) if isinstance(content, dict) else content
        raise ValueError(f"a result has no number at {'.'.join(path)!r}; it has: {keys}")
    return _numbers_at(content[path[0]], path[1:])


def difference(first: Sequence[float | None], second: Sequence[float | None]) -> dict[str, Any] | None:
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
    if len(first) == 1:
        first = list(first) * n
    if len(second) == 1:
        second = list(second) * n
    gaps = [a - b for a, b in zip(first, second) if a is not None and b is not None]
    if not gaps:
        return None
    mean = statistics.fmean(gaps)
    low = high = p = None
    if len(set(gaps)) > 1:
        test = ttest_1samp(gaps, 0.0)
        interval = test.confidence_interval(0.95)
        low, high = float(interval.low), float(interval.high)
        p = float(test.pvalue)
    elif len(gaps) > 1:  # a test would divide by no deviation
        low = high = mean
        p = float(mean == 0)
    return {"mean": mean, "low": low, "high": high, "p": p, "n": len(gaps), "of": n}


def _interval_of_cells(first: TableCell, second: TableCell, out: Path) -> list[float] | None:
    """Return the interval of :func:`sentence_interval` for two cells in points, ``None`` where a result lacks it."""
    counts: list[list[Mapping[str, Mapping[str, Any]]]] = []
    for cell in (first, second):
        results = [read_json_object(out / step.result).get("sentences") for step in cell.steps]
        if not all(results):  # seeds that have not run
            return None
        counts.append([result for result in results if result])
    pairs = [pair for pair in counts[0][0] if f"_{pair}_" in first.paths[0]]
    low, high = sentence_interval(*counts, pairs=pairs)
    return [100 * low, 100 * high]


def sentence_interval(
    first: Sequence[Mapping[str, Mapping[str, Any]]],
    second: Sequence[Mapping[str, Mapping[str, Any]]],
    *,
    pairs: Sequence[str] = (),
    samples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a difference of F1 over test sentences, the mean of runs and of corpora.

    Source sentences are drawn anew, the same for all runs. It says what other test sentences could give, where the
    t-test over seeds says what other seeds could.

    Args:
        first: ``sentences`` of the results of runs, see :class:`~st_xling.evaluation.bucc.BuccResult`.
        second: The same of the other row, as many, or one run for all.
        pairs: Language pairs; by default all.
        samples: Number of samples.
        seed: Seed of the draw.

    Raises:
        ValueError: Without runs, or if they are not of the same sentences.
    """
    if not first or not second:
        raise ValueError(f"expected runs of both rows: got {len(first)} and {len(second)}.")
    pairs = list(pairs or first[0])
    sizes = [first[0][pair]["n"] for pair in pairs]
    gold = [first[0][pair]["gold"] for pair in pairs]
    for run in [*first, *second]:
        if [run.get(pair, {}).get("gold") for pair in pairs] != gold:
            raise ValueError("expected runs over the same test sentences.")

    def f1(runs: Sequence[Mapping[str, Mapping[str, Any]]], times: list[np.ndarray]) -> np.ndarray:
        values = []
        for run in runs:
            for pair, times_of_pair in zip(pairs, times):
                counts: dict[str, np.ndarray] = {}
                for name in ("correct", "mined", "gold"):
                    pairs_of_sentence = np.bincount(run[pair][name], minlength=times_of_pair.shape[1])
                    counts[name] = times_of_pair @ pairs_of_sentence
                values.append(2 * counts["correct"] / np.maximum(counts["mined"] + counts["gold"], 1))
        return np.mean(values, axis=0)

    low, high = resample(sizes, lambda times: f1(first, times) - f1(second, times), samples=samples, seed=seed)
    return float(low), float(high)


def shown(values: Sequence[float | None] | None, decimals: int) -> str:
    """Format mean ± sample standard deviation of the known values, and their number where some are missing.

    Example:
        >>> shown([1.0, 2.0, 3.0], 1), shown([4.25], 2), shown([1.0, 2.0, None], 1), shown([], 1)
        ('2.0 ± 1.0', '4.25', '1.5 ± 0.7 (n 2)', '-')
    """
    known = _known_values(values)
    if not known:
        return "-"
    mean = f"{statistics.fmean(known):.{decimals}f}"
    deviation = f" ± {statistics.stdev(known):.{decimals}f}" if len(known) > 1 else ""
    return mean + deviation + _of_seeds(len(known), len(values or ()))


def _of_seeds(n: int, all_seeds: int) -> str:
    return f" (n {n})" if n < all_seeds else ""


def _value_cells(table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows, ours before the paper's; the paper's columns only where no column is in both."""
    columns = _all_keys(table["rows"].values())
    paper_columns = _all_keys(table["paper"].values())
    if not columns.keys() & paper_columns.keys():
        columns |= paper_columns
    rows = []
    for label, row in table["rows"].items():
        rows.append([label, *(shown(row.get(column), table["decimals"]) for column in columns)])
    for label, row in table["paper"].items():
        values = [row.get(column) for column in columns]
        rows.append([f"{_PAPER_PREFIX}{label}", *("-" if value is None else str(value) for value in values)])
    return ["", *map(str, columns)], rows


def _all_keys(rows: Iterable[Mapping[str, Any]]) -> dict[str, None]:
    """Return the keys of all rows, each once, in their order."""
    return dict.fromkeys(itertools.chain.from_iterable(rows))


def _difference_cells(table: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the differences."""
    rows = []
    for label, columns in table["differences"].items():
        rows.append([label, *(_shown_difference(gap, table["decimals"]) for gap in columns.values())])
    return ["difference", *next(iter(table["rows"].values()))], rows


def _shown_difference(gap: Mapping[str, Any] | None, decimals: int) -> str:
    if gap is None:
        return "-"
    text = f"{gap['mean']:+.{decimals}f}"
    if gap["p"] is not None:
        text += f" [{gap['low']:+.{decimals}f}, {gap['high']:+.{decimals}f}], p {gap['p']:.2g}"
    if gap.get("sentences"):
        low, high = gap["sentences"]
        text += f", sentences [{low:+.{decimals}f}, {high:+.{decimals}f}]"
    return text + _of_seeds(gap["n"], gap["of"])


def text(content: Mapping[str, Any]) -> str:
    """Format the tables for a terminal."""
    parts = []
    for name, table in content["tables"].items():
        parts.append(f"{table_heading(name, table['title'])}\n{format_table(*_value_cells(table))}")
        if table["differences"]:
            parts.append(format_table(*_difference_cells(table)))
        parts += [table.get("examples", ""), "\n".join(table["signatures"]), table["note"]]
    parts.append(_about_scale(content))
    return "\n\n".join(filter(None, parts))


def _about_scale(content: Mapping[str, Any]) -> str:
    """Return a sentence about values that mean nothing, as they stand next to the paper's; else nothing."""
    if content["scale"] != "tiny":
        return ""
    return (
        "The scale tiny only checks that all steps run: it trains for seconds on generated sentences. Do not compare "
        "its values with the paper's, nor its rows with one another."
    )


def table_heading(name: str, title: str) -> str:
    """Return the heading of a table or figure, such as ``Table 1: Accuracy``.

    Example:
        >>> table_heading("figure 4", "layers of RTL's head")
        "Figure 4: layers of RTL's head"
    """
    kind = name if " " in name else f"table {name}"
    return f"{kind[:1].upper()}{kind[1:]}: {title}"


def markdown(content: Mapping[str, Any]) -> str:
    """Format the same as a page: tables, signatures, and the commands below."""
    seeds = ", ".join(map(str, content["seeds"]))
    start = code(content["model"])
    if content["precision"]:
        start += f", in {content['precision']}"
    recipes = "".join(f", {name} {fingerprint}" for name, fingerprint in content["recipes"].items())
    if recipes:
        recipes = f"; recipes by fingerprint: {recipes.removeprefix(', ')}"
    sentences = ""
    if any(gap and gap.get("sentences") for gap in _all_gaps(content)):
        sentences = "; “sentences” is the 95 % interval of a bootstrap over test sentences"
    parts = [
        f"# {plain(content['title'])}",
        f"Scale `{content['scale']}`, from {start}, seeds {seeds}, st-xling {content['st-xling']}{recipes}. "
        f"Values are mean ± standard deviation over seeds (n: of how many, where not of all); rows that begin with "
        f"“{_PAPER_PREFIX.strip()}” are the paper's own values, of other data and larger models. Differences are "
        "paired by seed, with 95 % intervals and p by Student's t, not corrected for their number"
        f"{sentences}.",
        _about_scale(content),
        _changes_in_words(content["changes"]),
        fenced(content["command"], "bash"),
    ]
    for name, table in content["tables"].items():
        parts += [f"## {plain(table_heading(name, table['title']))}", _markdown_table(*_value_cells(table))]
        if table["differences"]:
            parts.append(_markdown_table(*_difference_cells(table)))
        if "picture" in table and has_matplotlib():
            parts.append(f"![{plain(table['title'])}]({picture_path(content, name)})")
        if "examples" in table:
            parts.append(fenced(table["examples"]))
        parts += [plain(table["note"]), _details("signatures", table["signatures"])]
    if content["failed"]:
        parts.append("## Failed")
        parts.append("\n".join(f"- {plain(name)}: {plain(why)}" for name, why in content["failed"].items()))
    parts.append(_details("commands", content["commands"], "bash"))
    return "\n\n".join(filter(None, parts)) + "\n"


def _all_gaps(content: Mapping[str, Any]) -> Iterable[Mapping[str, Any] | None]:
    """Return the differences of all tables."""
    columns = [gaps for table in content["tables"].values() for gaps in table["differences"].values()]
    return itertools.chain.from_iterable(gaps.values() for gaps in columns)


def _changes_in_words(changes: Mapping[str, str]) -> str:
    """Return a sentence about settings that are not those of the scale; empty where there are none."""
    if not changes:
        return ""
    settings = ", ".join(f"{plain(name)} {code(value)}" for name, value in changes.items())
    return f"These settings are not those of the scale today: {settings}."


def _details(summary: str, lines: Sequence[str], language: str = "") -> str:
    if not lines:
        return ""
    block = fenced("\n".join(lines), language)
    return f"<details><summary>{summary}</summary>\n\n{block}\n\n</details>"


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, [":---", *["---:"] * (len(head) - 1)]]
    lines += [[plain(label), *values] for label, *values in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def picture_path(content: Mapping[str, Any], table: str) -> str:
    """Return the path of a table's picture from the page."""
    return f"pictures/{content['file_name']}-{re.sub(r'[^A-Za-z0-9]+', '-', table).strip('-')}.png"


def write_report(paper: Paper, out: Path, failed: Mapping[str, str]) -> None:
    """Write page, pictures and JSON file of all tables that have been made so far."""
    content = report(paper, out, failed, all_tables=True)
    for name, table in content["tables"].items():
        pictures = table.get("picture")
        if not pictures:
            continue
        panels = {}
        for label, components in pictures.items():
            points = components["points"]
            panels[label] = (np.array(points["source"]), np.array(points["target"]))
        first = next(iter(pictures.values()))
        languages = [language_name(code) for code in first["languages"]]
        is_of_sentences = first["of"] == "sentences"
        draw_points(panels, out / picture_path(content, name), languages=languages, joined=is_of_sentences)
    write_json(out / f"{paper.file_name}.json", content)
    write_atomic(out / f"{paper.file_name}.md", markdown(content).encode("utf-8"))
