"""``python -m tests.hub_cards.orderings``: write the table of orderings in ``hub_cards/README.md`` again.

``hub_cards/orderings.yaml`` names, for each ordering that a paper claims, the page of ours, its table, two rows and a
column. Everything else is read from the page, and from the paper's values in ``st_xling/reproduce/papers``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from scipy.stats import ttest_ind_from_stats

from st_xling.evaluation.compare.statistics import holm
from st_xling.hub.card import plain
from st_xling.reproduce.paper_files import read_paper
from st_xling.reproduce.reports import table_heading
from st_xling.utils.io import write_atomic
from tests.hub_cards.make import CARDS

INDEX = CARDS / "README.md"

#: Level of the tests.
LEVEL = 0.05

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_HEAD = ("ordering", "start", "seeds", "paper", "here", "p", "Holm", "status")


@dataclass(frozen=True)
class Ordering:
    """One ordering, with what our page and the paper have of it.

    Attributes:
        section: Heading: a paper, or "Not in the papers".
        label: The claim, "A above B, measure".
        page: Name of our page; empty where there is none.
        start: Model that the page starts from.
        seeds: Number of seeds of the difference.
        paper: The paper's difference, or ``None``.
        difference: Ours, or ``None``.
        p: Of the t-test over seeds, or ``None`` where there is one seed.
        cannot_show: Why the set-up cannot show it; empty where it can.
        not_shown: Why the figures do not show it, whatever they are; empty where they may.
        is_counted: True if the values are counts, in which there is no chance.
    """

    section: str
    label: str
    page: str
    start: str
    seeds: int
    paper: float | None
    difference: float | None
    p: float | None
    cannot_show: str
    not_shown: str
    is_counted: bool

    def status(self, corrected: float | None) -> str:
        """Return the one word for the result, given Holm's p of the whole table."""
        if self.cannot_show:
            return f"cannot show at this size: {self.cannot_show}"
        if self.not_shown:
            return f"not shown: {self.not_shown}"
        if self.difference is None:
            raise ValueError(f"{self.label}: expected a page, or a reason why there is none.")
        if self.is_counted and self.difference > 0:
            return "shown"
        if self.p is None:
            return "not shown (one seed)"
        if self.p >= LEVEL:
            return "not shown"
        word = "shown" if self.difference > 0 else "reversed"
        if corrected is not None and corrected >= LEVEL:
            word += ", not after correction"
        return word


def orderings() -> list[Ordering]:
    """Return all orderings, as ``hub_cards/orderings.yaml`` lists them."""
    sections = yaml.safe_load((CARDS / "orderings.yaml").read_text(encoding="utf-8"))
    return [read_ordering(section, entry) for section, entries in sections.items() for entry in entries]


def read_ordering(section: str, entry: dict[str, Any]) -> Ordering:
    """Return an ordering with its values.

    Raises:
        ValueError: If the page has no such table, row or column.
    """
    name = entry.get("page", "")
    difference = p = None
    seeds = 0
    start = "–"
    if name:
        text = page_text(name)
        start = re.findall(r"from <code>(.*?)</code>", text)[0]
        seeds = len(seeds_of(name))
        table = str(entry["table"])
        if "columns" in entry:
            difference = difference_of_columns(name, table, entry["row"], entry["columns"])
            seeds = 0
        else:
            first, second = entry["rows"]
            difference, p, of_seeds = read_difference(name, table, first, second, entry["column"])
            seeds = of_seeds or seeds
        difference *= entry.get("factor", 1)
    paper = None
    if "paper" in entry:
        paper = paper_difference(entry["paper"], name.partition("-")[0], str(entry.get("table")))
        paper *= entry.get("factor", 1)
    return Ordering(
        section=section,
        label=entry["ordering"],
        page=name,
        start=start,
        seeds=seeds,
        paper=paper,
        difference=difference,
        p=p,
        cannot_show=entry.get("cannot_show", ""),
        not_shown=entry.get("not_shown", ""),
        is_counted=entry.get("counted", False),
    )


@cache
def page_text(name: str) -> str:
    """Return the text of a page."""
    return (CARDS / "reproduce" / f"{name}.md").read_text(encoding="utf-8")


def seeds_of(name: str) -> list[str]:
    """Return the seeds of a page."""
    return re.findall(r", seeds ([\d, ]+), st-xling", page_text(name))[0].split(", ")


def tables_of_page(name: str, table: str) -> Iterator[dict[str, dict[str, str]]]:
    """Yield values and differences below a table's heading: row → column → cell."""
    heading = plain(table_heading(table, "")).strip()
    section = re.search(rf"^## {re.escape(heading)} .*?\n(.*?)(?=^## |\Z)", page_text(name), re.DOTALL | re.MULTILINE)
    if section is None:
        raise ValueError(f"expected table {table} on the page {name}.")
    for block in re.findall(r"(?:^\|.*\n)+", section[1], re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in block.splitlines()]
        columns = head[-len(rows[0]) + 1 :] if rows else []
        yield {unescaped(row[0]): dict(zip(map(unescaped, columns), row[1:])) for row in rows}


def unescaped(text: str) -> str:
    """Return a label as the files of papers have it."""
    return re.sub(r"\\(.)", r"\1", text).replace("&#45;", "-")


def read_difference(
    name: str, table: str, first: str, second: str, column: str
) -> tuple[float, float | None, int | None]:
    """Return the difference of two rows on a page, its p and the number of its seeds, where not all have both.

    Where the page does not test the difference by pairs of seeds, it is that of the two means, and p is from Welch's
    t-test of their deviations; where there is one seed, there is no p.
    """
    rows: dict[str, dict[str, str]] = {}
    for cells in tables_of_page(name, table):
        rows |= cells
    subtrahend = f"({second})" if " + " in second else second
    if f"{first} − {subtrahend}" in rows:
        cell = rows[f"{first} − {subtrahend}"][column]
        p = re.findall(rf"p ({_NUMBER}(?:e-\d+)?)", cell)
        n = re.findall(r"\(n (\d+)\)", cell)
        return float(re.findall(_NUMBER, cell)[0]), float(p[0]) if p else None, int(n[0]) if n else None
    minuend = f"({first})" if " + " in first else first
    if f"{second} − {minuend}" in rows:
        difference, p_value, of_seeds = read_difference(name, table, second, first, column)
        return -difference, p_value, of_seeds
    for label in (first, second):
        if column not in rows.get(label, {}):
            raise ValueError(f"expected row {label!r} and column {column!r} in table {table} of the page {name}.")
    # "53.0 ± 4.7 (n 3)": mean, deviation and number of seeds, the last two where there are several.
    (mean, *deviation), (other_mean, *other_deviation) = (
        [float(number) for number in re.findall(_NUMBER, rows[label][column])] for label in (first, second)
    )
    if not deviation or not other_deviation:
        return mean - other_mean, None, 1
    n = len(seeds_of(name))
    p_value = ttest_ind_from_stats(mean, deviation[0], n, other_mean, other_deviation[0], n, equal_var=False).pvalue
    return mean - other_mean, float(p_value), n


def difference_of_columns(name: str, table: str, row: str, columns: Sequence[str]) -> float:
    """Return the difference of two columns of one row on a page."""
    rows: dict[str, dict[str, str]] = {}
    for cells in tables_of_page(name, table):
        rows |= cells
    first, second = (float(rows[row][column]) for column in columns)
    return first - second


def paper_difference(entry: dict[str, Any], paper: str, table: str) -> float:
    """Return the difference of two rows among the values that a paper prints."""
    values = read_paper(entry.get("of", paper))["tables"][str(entry.get("table", table))]["paper"]
    if "columns" in entry:
        first, second = (values[entry["row"]][column] for column in entry["columns"])
    else:
        first, second = (values[row][entry["column"]] for row in entry["rows"])
    return float(first) - float(second)


def signed(value: float | None) -> str:
    """Return a difference in points, with its sign."""
    if value is None:
        return ""
    text = f"{value:+.1f}".replace("-", "−")
    return "0.0" if text in ("+0.0", "−0.0") else text


def corrected_p(rows: Sequence[Ordering]) -> list[float | None]:
    """Return Holm's p for each ordering, over all that have a p: also those of whose p nothing is concluded."""
    with_p = [row for row in rows if row.p is not None]
    corrected = dict(zip(map(id, with_p), holm([row.p for row in with_p]).tolist()))
    return [corrected.get(id(row)) for row in rows]


def markdown() -> str:
    """Return the tables, one for each paper."""
    rows = orderings()
    lines: list[str] = []
    section = ""
    for row, corrected in zip(rows, corrected_p(rows)):
        if row.section != section:
            section = row.section
            lines += [
                "",
                f"### {section}",
                "",
                f"| {' | '.join(_HEAD)} |",
                "| :--- | :--- |" + " ---: |" * 5 + " :--- |",
            ]
        here = signed(row.difference)
        if row.page:
            here = f"[{here}](reproduce/{row.page}.md)"
        seeds = str(row.seeds) if row.seeds else ""
        p = "" if row.p is None else f"{row.p:.2g}"
        holm_p = "" if corrected is None else f"{corrected:.2g}"
        cells = (row.label, f"`{row.start}`" if row.page else "", seeds, signed(row.paper), here, p, holm_p)
        lines.append(f"| {' | '.join([*cells, row.status(corrected)])} |")
    return "\n".join(lines).strip() + "\n"


def with_orderings(index: str) -> str:
    """Return the text of ``hub_cards/README.md`` with the tables in it."""
    start, end = "<!-- orderings -->\n", "<!-- end of orderings -->\n"
    before, _, rest = index.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n{markdown()}\n{end}{after}"


if __name__ == "__main__":
    write_atomic(INDEX, with_orderings(INDEX.read_text(encoding="utf-8")).encode("utf-8"))
