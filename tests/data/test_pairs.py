"""``?size=N&seed=S``: the same rows from every form of a corpus, whole or streamed, in the order of the file."""

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from st_xling.data import load_data_specs
from st_xling.data.pairs import Sample, append_columns, dataset_in_memory
from tests.data.test_read import cells as pairs
from tests.data.test_read import write

ROWS = [(f"Satz {number} „ä“", f"sentence {number}") for number in range(40)]
FORMS = ("tsv", "tsv.gz", "csv", "jsonl", "parquet", "moses")


@pytest.fixture
def corpus(tmp_path: Path) -> dict[str, str]:
    """Form → spec of the same pairs."""
    return {form: f"de-en={write(tmp_path, form, ROWS)}" for form in FORMS}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows_in_order(corpus: dict[str, str], form: str) -> None:
    rows = Sample(7, 3).places(len(ROWS), "a")
    assert len(set(rows)) == 7 and rows == sorted(rows)
    wanted = [ROWS[row] for row in rows]
    (in_memory,) = load_data_specs([f"{corpus[form]}?size=7&seed=3"]).values()
    assert pairs(in_memory) == wanted
    (stream,) = load_data_specs([f"{corpus[form]}?size=7&seed=3"], stream=True).values()
    assert pairs(stream) == pairs(stream) == wanted
    assert stream.info.splits["train"].num_examples == 7


@pytest.mark.parametrize("stream", [False, True])
def test_faulty_lines_are_dropped_before_the_draw(stream: bool, tmp_path: Path) -> None:
    """So that a file and the same file with a broken line give the same sample."""
    path = tmp_path / "a.tsv"
    path.write_text("x\n" + "".join(f"{source}\t{target}\n" for source, target in ROWS), encoding="utf-8")
    (loaded,) = load_data_specs([f"de-en={path}?size=9&seed=1"], skip_bad_lines=True, stream=stream).values()
    assert pairs(loaded) == [ROWS[place] for place in Sample(9, 1).places(len(ROWS), "a")]


def test_samples_of_a_seed_are_nested_and_those_of_another_are_not() -> None:
    small, large, other = (set(Sample(*asked).places(1000, "a")) for asked in ((50, 0), (300, 0), (50, 1)))
    assert small < large and small != other


def test_more_than_there_is(corpus: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    for stream in (False, True):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            (loaded,) = load_data_specs([f"{corpus['tsv']}?size=50"], stream=stream).values()
        assert pairs(loaded) == ROWS
        assert [
            record.message for record in caplog.records if "50 rows" in record.message and "40 rows" in record.message
        ]
    with pytest.raises(ValueError, match="expected size=N with seed=4"):
        load_data_specs([f"{corpus['tsv']}?seed=4"])


def test_a_column_of_more_than_two_gibibytes_of_text() -> None:
    """``datasets`` joins the chunks of a column for its fingerprint, and failed after hours of mining negatives. The
    chunks here are one, many times."""
    chunk = pa.array(["a" * 2**26])
    large = dataset_in_memory(pa.table({"negative": pa.chunked_array([chunk] * 32)}))
    pairs = append_columns(dataset_in_memory(pa.table({"source": [str(row) for row in range(32)]})), large)
    assert pairs.column_names == ["source", "negative"]
    assert pairs[31]["source"] == "31" and len(pairs[31]["negative"]) == 2**26
