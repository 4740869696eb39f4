"""The pivot last: rows, languages and names turn together; sides in other languages than named are reported."""

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from st_xling.data import COLUMNS, load_data_specs, load_pairs, orient
from st_xling.data.sides import check_sides

TEXTS = {
    "en": "I bought three old books.",
    "zh": "我买了三本旧书。",
    "de": "Ich kaufte drei alte Bücher.",
    "th": "แมวดำ",
}


def rows(*pairs: str, stream: bool = False) -> Any:
    sides = list(zip(*(pair.split("|") for pair in pairs)))
    texts = [[TEXTS.get(code[:2], "?") for code in side] for side in sides]
    languages = [list(side) for side in sides]
    data = Dataset.from_dict(dict(zip(COLUMNS, texts + languages)))
    return data.to_iterable_dataset() if stream else data


def cells(data: Any) -> list[tuple[str, ...]]:
    return [tuple(row[column] for column in COLUMNS) for row in data]


@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_set_is_turned_and_renamed(stream: bool) -> None:
    data = {"en-de": rows("en|de", "en|de", stream=stream), "zh-en": rows("zh|en", stream=stream)}
    before = {name: cells(part) for name, part in data.items()}
    oriented, messages = orient(data)
    assert list(oriented) == ["de-en", "zh-en"]
    assert cells(oriented["de-en"]) == [(TEXTS["de"], TEXTS["en"], "de", "en")] * 2
    assert cells(oriented["zh-en"]) == before["zh-en"]
    assert all(part.column_names == list(COLUMNS) for part in oriented.values())
    assert {name: cells(part) for name, part in data.items()} == before  # what was given is as it was
    assert messages == ["de-en: 2 rows turned, so that en is the target"]


def test_names_stay_apart_and_unknown_languages_stay() -> None:
    """A corpus that is turned must not replace another of its new name."""
    names = {"de-en": "de|en", "en-de": "en|de", "en-de-2": "en|de", "news": "en|de"}
    oriented, _ = orient({name: rows(pair) for name, pair in names.items()})
    assert list(oriented) == ["de-en", "de-en-2", "de-en-3", "news"]
    oriented, messages = orient({"x": rows("und|und")})
    assert cells(oriented["x"])[0][2:] == ("und", "und") and messages == []


@pytest.mark.parametrize("stream", [False, True])
def test_mixed_rows_turn_one_by_one(stream: bool) -> None:
    oriented, messages = orient({"mixed": rows("en|de", "zh|en", "de|th", "eng|zh", stream=stream)})
    assert messages[0].startswith("mixed: 2 rows turned") and messages[1].endswith("languages: en, th, eng")
    assert ["-".join(pair[2:]) for pair in cells(oriented["mixed"])] == ["de-en", "zh-en", "de-th", "zh-eng"]
    assert cells(oriented["mixed"])[3][:2] == (TEXTS["zh"], TEXTS["en"])
    assert orient(oriented)[1] == messages[1:]


def test_rows_of_a_stream_that_turn_late_have_no_negatives() -> None:
    """The first rows say nothing of them."""
    sources = [*(f"de{n}" for n in range(1001)), "en"]
    columns = [sources, ["en"] * 1001 + ["de"], ["de"] * 1001 + ["en"], ["en"] * 1001 + ["de"]]
    data = Dataset.from_dict({**dict(zip(COLUMNS, columns)), "negative": ["no"] * 1002}).to_iterable_dataset()
    with pytest.raises(ValueError, match="x: a row begins with en, and its negatives"):
        list(orient({"x": data})[0]["x"])


def test_spellings_of_the_pivot() -> None:
    for code in ("en", "eng", "en-GB"):
        assert cells(orient({"x": rows(f"{code}|de")}, pivot="eng")[0]["x"])[0][2:] == ("de", code)
    oriented, messages = orient({"x": rows("en|de")}, pivot=None)
    assert cells(oriented["x"])[0][2:] == ("en", "de") and messages == []
    assert "several languages" not in orient({"x": rows("en|de"), "y": rows("en|de")})[1][-1]
    assert "en, de" in orient({"x": rows("zh|en"), "y": rows("en|de")}, pivot=None)[1][-1]


def test_one_language_twice(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x: expected two languages, got zh-cmn"):
        orient({"x": rows("de|en", "zh|cmn")})
    late = rows(*["de|en"] * 1001, "en|eng", stream=True)
    with pytest.raises(ValueError, match="x: expected two languages, got en-eng"):
        list(orient({"x": late})[0]["x"])
    # The prefix of a spec, the name of a file, and the rows of one, each by the spec's own text.
    (tmp_path / "en-en.tsv").write_text("a\tb\n", encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text(
        '{"source": "a", "target": "b", "source_language": "de", "target_language": "deu"}\n', encoding="utf-8"
    )
    for spec in ("en-en=missing.tsv", "zh-cmn=phrasebook", str(tmp_path / "en-en.tsv"), str(tmp_path / "rows.jsonl")):
        with pytest.raises(ValueError, match=f"{spec}: expected two languages"):
            load_data_specs([spec])


GERMAN = ["Wir haben gestern lange über das Wetter gesprochen.", "Die Kinder spielen jeden Tag im großen Garten."]
ENGLISH = ["We talked about the weather for a long time yesterday.", "The children play in the large garden every day."]
DUTCH = ["Wij hebben gisteren lang over het weer gesproken.", "De kinderen spelen elke dag in de tuin achter het huis."]


def spec(folder: Path, source: list[str], target: list[str], rows: int = 20) -> str:
    path = folder / "c.tsv"
    lines = ""
    for row in range(rows):
        for source_text, target_text in zip(source, target):
            lines += f"{source_text} {row}\t{target_text} {row}\n"
    path.write_text(lines, "utf-8")
    return f"de-en={path}"


@pytest.mark.parametrize("stream", [False, True])
def test_swapped_sides_are_an_error(tmp_path: Path, stream: bool) -> None:
    """They were named, and then trained on all the same: the pivot was on the wrong side, and the card wrong."""
    swapped = spec(tmp_path, ENGLISH, GERMAN)
    with pytest.raises(ValueError, match="source looks like en, expected de; target looks like de, .* as en-de"):
        load_data_specs([swapped], stream=stream, identify=True)
    (loaded,) = load_data_specs([swapped], stream=stream).values()
    assert cells(loaded)[0][:2] == (f"{ENGLISH[0]} 0", f"{GERMAN[0]} 0")


def test_another_language_is_reported(tmp_path: Path) -> None:
    (warning,) = check_sides(load_data_specs([spec(tmp_path, DUTCH, ENGLISH)]))
    assert "de-en: source looks like nl, expected de" in warning and "swapped" not in warning


def test_sides_that_are_right_unknown_or_too_short_pass(tmp_path: Path) -> None:
    short = ["Taxi!", "Tom"]
    for source, target, rows in ((GERMAN, ENGLISH, 20), (ENGLISH, GERMAN, 1), (short, short, 20)):
        assert check_sides(load_data_specs([spec(tmp_path, source, target, rows)])) == []
    unknown = load_pairs(tmp_path / "c.tsv", source_language="tlh", target_language="en")
    assert check_sides({"x": unknown, "empty": unknown.select([])}) == []


def test_sides_of_real_text(real_data: Path) -> None:
    for path in sorted((real_data / "parallel").glob("*-en.dev.tsv.gz"))[:6]:
        ((name, loaded),) = load_data_specs([str(path)]).items()
        assert check_sides({name: loaded}) == []
        swapped = loaded.rename_columns({"source": "target", "target": "source"})
        with pytest.raises(ValueError, match="swapped"):
            check_sides({name: swapped})
