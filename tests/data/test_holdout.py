"""Development pairs: by target text, the same for every language and tomorrow; no set is emptied."""

from typing import Any

import pytest
from datasets import Dataset

from st_xling.data.holdout import MOST_SHARE, hold_out, hold_out_streams
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.text_cells import exact_keys, leak_key

KEY_OF_THE_MAT = 1_112_516_103_709_547_882


def corpus(language: str, size: int = 800, seed: int = 0) -> Dataset:
    return parallel_phrases(language, "en", size=size, seed=seed).select_columns(["source", "target"])


def pair(*targets: str) -> Dataset:
    return Dataset.from_dict({"source": [f"Quelle {number}" for number in range(len(targets))], "target": targets})


def key(text: str) -> int:
    return int(exact_keys([leak_key(text)])[0])


@pytest.fixture(scope="module")
def data() -> dict[str, Dataset]:
    # Chinese has other rows than German and French, which share theirs.
    return {"de-en": corpus("de"), "fr-en": corpus("fr", 500), "zh-en": corpus("zh", seed=3)}


def test_every_row_is_on_one_side_in_its_order(data: dict[str, Dataset]) -> None:
    train, dev = hold_out(data)
    assert train.keys() == dev.keys() == data.keys()
    for name, dataset in data.items():
        held = set(dev[name]["target"])
        rows = list(zip(dataset["source"], dataset["target"]))
        assert list(zip(train[name]["source"], train[name]["target"])) == [row for row in rows if row[1] not in held]
        assert list(zip(dev[name]["source"], dev[name]["target"])) == [row for row in rows if row[1] in held]
    assert 0.25 * MOST_SHARE < len(dev["de-en"]) / len(data["de-en"]) < 4 * MOST_SHARE  # about as many as asked for
    assert 130 < len(hold_out(data, pairs=200, share=0.5)[1]["de-en"]) < 270


def test_the_same_tomorrow_and_in_any_order(data: dict[str, Dataset]) -> None:
    """The keys are the text's own: fixed here against a change of hash, which would leak old development pairs."""
    assert key("The key is under the mat.") == KEY_OF_THE_MAT
    backwards = {name: data[name].select(range(len(data[name]) - 1, -1, -1)) for name in reversed(data)}
    (_, dev), (_, again) = hold_out(data), hold_out(backwards)
    for name in data:
        assert sorted(dev[name]["target"]) == sorted(again[name]["target"])


def test_case_and_punctuation_do_not_cross_sides(data: dict[str, Dataset]) -> None:
    _, dev = hold_out(data)
    shouted = pair(*(f"{text.upper()}!!" for text in data["de-en"]["target"]))
    train, loud = hold_out({**data, "sv-en": shouted})
    judged = {leak_key(text) for part in dev.values() for text in part["target"]}
    assert len(loud["sv-en"]) > 0
    assert not judged & {leak_key(text) for text in train["sv-en"]["target"]}


def test_no_set_is_emptied_and_nothing_leaks() -> None:
    """A set of nothing but held-out sentences keeps them for training, and then all languages train on them."""
    limit = MOST_SHARE * 2**64
    below = next(text for text in (f"Sentence {n}." for n in range(10_000)) if key(text) < limit / 2)
    other = next(text for text in (f"Phrase {n}." for n in range(10_000)) if key(text) < limit / 2)
    kept = [text for text in (f"Line {n}." for n in range(60)) if key(text) > limit][:40]
    data = {"de-en": pair(below, other, *kept), "th-en": pair(below), "ar-en": pair(below, below)}
    train, dev = hold_out(data, pairs=500, share=MOST_SHARE)
    assert {name: len(part) for name, part in train.items()} == {"de-en": 41, "th-en": 1, "ar-en": 2}
    assert {name: part["target"][:] for name, part in dev.items()} == {"de-en": [other]}
    for rows in (["Hello!"], []):
        train, dev = hold_out({"de-en": pair(*rows)})
        assert len(train["de-en"]) == len(rows) and dev == {}
    assert hold_out({}) == ({}, {})


def test_streams_hold_out_what_data_sets_do(data: dict[str, Dataset]) -> None:
    """A run with ``--stream`` was to be comparable with one without."""
    streams = {name: dataset.to_iterable_dataset() for name, dataset in data.items()}
    (train, dev), (whole_train, whole_dev) = hold_out_streams(streams), hold_out(data)
    assert dev.keys() == whole_dev.keys()
    for name in data:
        assert list(dev[name]) == list(whole_dev[name])
        assert list(train[name]) == list(whole_train[name]) == list(train[name])  # twice


def test_held_out_text_is_passed_over_wherever_it_comes(data: dict[str, Dataset]) -> None:
    """Only the first rows are judged by, but the same sentence may come again in the last, or in another stream."""
    once = data["de-en"].select(range(400))
    streams = {"de-en": once.to_iterable_dataset(), "fr-en": data["fr-en"].to_iterable_dataset()}
    train, dev = hold_out_streams(streams, rows=100, share=0.2)
    judged = {row["target"] for part in dev.values() for row in part}
    assert len(judged) > 5 and all(len(part) <= 100 for part in dev.values())
    trained = [row["target"] for part in train.values() for row in part]
    assert len(trained) > 800 - 3 * len(judged) and not judged & set(trained)


def test_a_single_data_set_needs_no_name(data: dict[str, Dataset]) -> None:
    """The same rows as by name, since the hash of a text decides; of a stream, a stream and a data set."""
    pairs = data["de-en"]
    train, dev = hold_out(pairs, share=0.1)
    by_name = hold_out({"de-en": pairs}, share=0.1)
    assert isinstance(train, Dataset) and train[:] == by_name[0]["de-en"][:] and dev[:] == by_name[1]["de-en"][:]
    stream, same = hold_out(pairs.to_iterable_dataset(), share=0.1)
    assert [row["target"] for row in stream] == train["target"][:] and same["target"][:] == dev["target"][:]
    streams, held = hold_out({name: part.to_iterable_dataset() for name, part in data.items()}, share=0.1)
    assert list(streams) == list(data) and held["de-en"]["target"][:] == dev["target"][:]


def test_a_single_data_set_too_small_to_spare_a_row() -> None:
    """Its development rows are an empty data set with the same columns."""
    small = pair("It rains.", "I know.")
    train, dev = hold_out(small)
    assert train[:] == small[:] and len(dev) == 0 and dev.column_names == small.column_names
    _, of_stream = hold_out(small.to_iterable_dataset())
    assert len(of_stream) == 0 and of_stream.column_names == small.column_names


def test_another_column_of_targets(data: dict[str, Dataset]) -> None:
    pairs = data["de-en"]
    renamed = pairs.rename_columns({"source": "anchor", "target": "positive"})
    assert hold_out(renamed, column="positive")[1]["positive"][:] == hold_out(pairs)[1]["target"][:]
    stream, dev = hold_out(renamed.to_iterable_dataset(), column="positive")
    assert {leak_key(row["positive"]) for row in stream}.isdisjoint(map(leak_key, dev["positive"])) and len(dev) > 0


@pytest.mark.parametrize(("pairs", "options", "error"), [
    (pair("It rains."), {"share": 0.0}, "share must be above 0 and at most 1: got 0.0"),
    (pair("It rains."), {"share": 2.0}, "got 2.0"),
    (pair("It rains."), {"share": float("nan")}, "got nan"),
    (pair("It rains."), {"pairs": 0}, "pairs must be at least 1: got 0"),
    (pair("It rains."), {"column": "en"}, "by the text of their column en: got source, target; name another"),
    (["It rains."], {}, "rows are held out from data sets: got list; load pairs by load_pairs"),
])  # fmt: skip
def test_what_cannot_be_split(pairs: Any, options: dict[str, Any], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        hold_out(pairs, **options)
