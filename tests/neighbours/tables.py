"""Data sets and cards: files of pairs, data sets as they are published, cards, results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from st_xling.hub import push_dataset
from st_xling.mining import tsv_line
from tests.neighbours.environment import Environment
from tests.neighbours.meeting import difference, meeting
from tests.neighbours.translation_memories import score_to

#: Sentences that table readers take for something else: an opening quotation mark, two, missing values, numbers, dates,
#: truth values, a tab, a backslash.
PAIRS = [
    ('"Komm, sagte er.', '"Come, he said.'),
    ('"Komm."', '"Come."'),
    ("Na", "NA"),
    ("null", "None"),
    ("007", "1e5"),
    ("2024-01-02", "02.01.2024"),
    ("ja", "true"),
    ("ein\tTab", "a\\tb"),
    ("#Hashtag", "a, b; c|d"),
    ('Sie sagte: "Nein"', 'She said: "No"'),
]
#: Reads a file of pairs, and returns its sources with their targets.
Reader = Callable[[str], Any]


def reads_tsv(
    tool: str, *, tried: str, remedy: str = "", pairs: list[tuple[str, str]] = PAIRS
) -> Callable[[Reader], Reader]:
    """Register a reader as a meeting: it reads a TSV file of scored pairs, as ``st-xling score`` writes it."""

    def register(reader: Reader) -> Reader:
        @meeting(
            tool,
            tried=tried,
            expected="the same texts; tabs and backslashes escaped",
            users="who looks at mined pairs",
            remedy=remedy,
            name=reader.__name__,
        )
        def attempt(folder: Path, environment: Environment) -> str | None:
            path = score_to(folder, pairs, "tsv")
            cells = [tsv_line(pair).split("\t") for pair in pairs]
            return difference(environment.call(reader, path), cells)

        return reader

    return register


def reads_jsonl(tool: str, *, tried: str) -> Callable[[Reader], Reader]:
    """Register a reader as a meeting: it reads scored pairs as JSON lines."""

    def register(reader: Reader) -> Reader:
        @meeting(
            tool,
            tried=tried,
            expected="the same texts",
            users="who looks at mined pairs",
            name=reader.__name__,
        )
        def attempt(folder: Path, environment: Environment) -> str | None:
            path = score_to(folder, PAIRS, "jsonl")
            return difference(environment.call(reader, path), PAIRS)

        return reader

    return register


@reads_tsv(
    "pandas==3.1.1",
    tried="read_csv(path, sep='\\t') of our pairs",
    remedy="quoting=3, keep_default_na=False, dtype=str; or JSON lines",
)
def pandas_reads_tsv(path: str) -> Any:
    import pandas

    table = pandas.read_csv(path, sep="\t")
    return table[["source", "target"]].astype(object).where(table.notna(), None).values.tolist()


@reads_tsv("pandas==3.1.1", tried="the same with quoting=3, keep_default_na=False, dtype=str")
def pandas_reads_tsv_as_it_is(path: str) -> Any:
    import csv

    import pandas

    table = pandas.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False, dtype=str)
    return table[["source", "target"]].values.tolist()


@reads_jsonl("pandas==3.1.1", tried="read_json(path, lines=True) of our pairs")
def pandas_reads_jsonl(path: str) -> Any:
    import pandas

    table = pandas.read_json(path, lines=True)
    return table[["source", "target"]].astype(str).values.tolist()


@reads_tsv(
    "polars==2.1.0",
    tried="read_csv(path, separator='\\t') of our pairs",
    remedy="quote_char=None, infer_schema=False; or JSON lines",
)
def polars_reads_tsv(path: str) -> Any:
    import polars

    return polars.read_csv(path, separator="\t").select("source", "target").rows()


@reads_tsv("polars==2.1.0", tried="the same with quote_char=None, infer_schema=False")
def polars_reads_tsv_as_it_is(path: str) -> Any:
    import polars

    table = polars.read_csv(path, separator="\t", quote_char=None, infer_schema=False)
    return table.select("source", "target").rows()


@reads_jsonl("polars==2.1.0", tried="read_ndjson(path) of our pairs")
def polars_reads_jsonl(path: str) -> Any:
    import polars

    return polars.read_ndjson(path).select("source", "target").rows()


@reads_tsv(
    "duckdb==2.0.0",
    tried="select from 'pairs.tsv'",
    remedy="read_csv('pairs.tsv', delim='\\t', header=true, quote='', all_varchar=true); or JSON lines",
    # With the first pair, DuckDB would find out that quotation marks are text.
    pairs=PAIRS[1:],
)
def duckdb_reads_tsv(path: str) -> Any:
    import duckdb

    return duckdb.sql(f"select source, target from '{path}'").fetchall()


@reads_jsonl("duckdb==2.0.0", tried="select from 'pairs.jsonl'")
def duckdb_reads_jsonl(path: str) -> Any:
    import duckdb

    rows = duckdb.sql(f"select source, target from '{path}'").fetchall()
    return [[str(source), str(target)] for source, target in rows]


def write_data_set(folder: Path) -> Path:
    """Write a data set as ``st-xling push`` would publish it."""
    out = folder / "published"
    with redirect_stdout(StringIO()):
        push_dataset(
            score_to(folder, PAIRS, "tsv"),
            "user/pairs",
            source_language="de",
            target_language="en",
            license="cc-by-4.0",
            dry_run=True,
            out=out,
        )
    return out


def load_data_set(folder: str) -> Any:
    import datasets

    datasets.disable_progress_bars()
    rows = datasets.load_dataset(folder, split="train")
    return [[row["source"], row["target"]] for row in rows]


@meeting(
    "datasets==5.2.0",
    tried="load_dataset of a published data set",
    expected="the same texts, tabs and backslashes as they were",
    users="who trains on a data set of ours",
    above_ours=True,
)
def datasets_loads_data_set(folder: Path, tool: Environment) -> str | None:
    return difference(tool.call(load_data_set, write_data_set(folder)), PAIRS)


def read_parquet_with_polars(folder: str) -> Any:
    import polars

    return polars.read_parquet(f"{folder}/**/*.parquet").select("source", "target").rows()


@meeting(
    "polars==2.1.0",
    tried="read_parquet of a published data set",
    expected="the same texts, tabs and backslashes as they were",
    users="who looks at a published data set",
)
def polars_reads_data_set(folder: Path, tool: Environment) -> str | None:
    return difference(tool.call(read_parquet_with_polars, write_data_set(folder)), PAIRS)


def read_card(path: str) -> Any:
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(path)
    return [card.data.license, card.data.language, card.data.task_categories]


@meeting(
    "huggingface_hub==2.4.0",
    tried="reads the card of a published data set",
    expected="license, languages and where the data are",
    users="who publishes pairs",
    above_ours=True,
)
def hub_reads_data_set_card(folder: Path, tool: Environment) -> str | None:
    fields = tool.call(read_card, write_data_set(folder) / "README.md")
    return difference(fields, ["cc-by-4.0", ["de", "en"], ["translation", "sentence-similarity"]])
