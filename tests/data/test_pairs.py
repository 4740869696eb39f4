"""``?size=N&seed=S``: the same rows from every form of a corpus, whole or streamed, in the order of the file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from datasets import Dataset

from st_xling.data import load_data_specs, sample_rows
from st_xling.data.pairs import Sample
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
    places = Sample(7, 3).places(len(ROWS), "a")
    assert len(set(places)) == 7 and places == sorted(places)
    wanted = [ROWS[place] for place in places]
    (whole,) = load_data_specs([f"{corpus[form]}?size=7&seed=3"]).values()
    assert pairs(whole) == wanted
    (stream,) = load_data_specs([f"{corpus[form]}?size=7&seed=3"], stream=True).values()
    assert pairs(stream) == pairs(stream) == wanted
    assert stream.info.splits["train"].num_examples == 7


def test_samples_of_a_seed_are_nested_and_those_of_another_are_not() -> None:
    small, large, other = (set(Sample(*asked).places(1000, "a")) for asked in ((50, 0), (300, 0), (50, 1)))
    assert small < large and small != other
    # Every row is as likely as any other: 50 of 1,000 in 2,000 seeds are 100 a row, sd 9.7.
    counts = [0] * 20
    for seed in range(2000):
        for place in Sample(1, seed).places(20, "a"):
            counts[place] += 1
    assert min(counts) > 60 and max(counts) < 140


def test_more_than_there_is(corpus: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    for stream in (False, True):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            (loaded,) = load_data_specs([f"{corpus['tsv']}?size=50"], stream=stream).values()
        assert pairs(loaded) == ROWS
        assert [
            record.message for record in caplog.records if "50 rows" in record.message and "40 rows" in record.message
        ]
    (loaded,) = load_data_specs([corpus["tsv"]]).values()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert sample_rows(loaded, 40) is loaded
    assert not caplog.records


def test_refusals(corpus: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected size=N with seed=4"):
        load_data_specs([f"{corpus['tsv']}?seed=4"])
    data = Dataset.from_dict({"source": ["a", "b"], "target": ["c", "d"]})
    assert sample_rows(data, None) is data
    # A data set of the Hub is refused as a stream, and read whole is not.
    Dataset.from_dict({"de": [s for s, _ in ROWS], "en": [t for _, t in ROWS]}).save_to_disk(str(tmp_path / "set"))
    with pytest.raises(ValueError, match="set: a sample of size=3 needs the number of rows"):
        load_data_specs([f"{tmp_path / 'set'}?size=3"], stream=True)
    assert len(load_data_specs([f"{tmp_path / 'set'}?size=3"])["de-en"]) == 3


def test_faulty_lines_are_dropped_before_the_draw(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("x\n" + "".join(f"{source}\t{target}\n" for source, target in ROWS), encoding="utf-8")
    specs = [f"de-en={path}?size=9&seed=1"]
    wanted = [ROWS[place] for place in Sample(9, 1).places(len(ROWS), "a")]
    for stream in (False, True):
        (loaded,) = load_data_specs(specs, skip_bad_lines=True, stream=stream).values()
        assert pairs(loaded) == wanted
