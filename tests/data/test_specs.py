"""Data specs: what may be typed, of files and of the phrasebook, and the names under which it comes back."""

from __future__ import annotations

import pytest

from st_xling.data import COLUMNS, DataSpec, ParallelTextError, load_data_specs, load_evaluation_specs, parse_data_spec
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.phrasebook_spec import is_phrasebook, parse_phrasebook, phrasebook_name

PLACES, NO_SIZES = ("x.tsv", "phrasebook"), ("0", "-4", "1.5", "1_000", "٣")


@pytest.mark.parametrize(
    ("text", "location", "pair", "options"),
    [
        ("corpus.tsv", "corpus.tsv", (None, None), {}),
        ("de-en=data/corpus.tsv.gz", "data/corpus.tsv.gz", ("de", "en"), {}),
        ("a.de,a.en", ("a.de", "a.en"), (None, None), {}),
        ("de-en=a.x,a.y", ("a.x", "a.y"), ("de", "en"), {}),
        ("user/set", "user/set", (None, None), {}),
        ("fr-en=user/set?name=en-fr&split=test", "user/set", ("fr", "en"), {"name": "en-fr", "split": "test"}),
        ("x.tsv?columns=2,0", "x.tsv", (None, None), {"columns": (2, 0)}),
        ("x.csv?columns=de,en", "x.csv", (None, None), {"columns": ("de", "en")}),
        ("odd=name.tsv", "odd=name.tsv", (None, None), {}),
        ("what?.tsv", "what?.tsv", (None, None), {}),
        ("phrasebook", "phrasebook", (None, None), {}),
        ("fr-de=phrasebook", "phrasebook", ("fr", "de"), {}),
        ("phrasebook?size=10", "phrasebook", (None, None), {"size": 10}),
    ],
)
def test_forms(text, location, pair, options):
    assert parse_data_spec(text) == DataSpec(text, location, *pair, options=options)


def test_phrasebook_form() -> None:
    spec = parse_data_spec("phrasebook:de,fr?size=8000&split=dev&seed=3")
    assert spec.languages == ("de", "fr") and spec.options == {"size": 8000, "split": "dev", "seed": 3}
    found = parse_phrasebook("phrasebook?gold=2&queries=en,vi", options=("gold", "queries"))
    assert found.languages == () and found.options == {"gold": 2, "queries": ["en", "vi"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "name what to read"),
        ("de-en=", "name what to read"),
        ("a,b,c", "one path, or two joined by a comma"),
        ("a.de,", "one path, or two joined by a comma"),
        ("x.tsv?colums=0,1", r"expected the options columns, name, split, size, seed, once each, got 'colums=0,1'"),
        ("x.tsv?split=a&split=b", "once each"),
        ("x.tsv?columns=0", r"expected columns=0,2 or de,en, got 'columns=0'"),
        ("de-en=phrasebook:de", "one language a spec"),
        ("phrasebook?rows=5", r"the options size, split, seed, once each, got 'rows=5' in 'phrasebook\?rows=5'"),
        ("phrasebook?gold=5", "expected the options size, split, seed"),
        ("phrasebook?size=5&size=6", "once each, got 'size=6'"),
        ("phrasebook?size", "once each, got 'size'"),
        *((f"{place}?size={size}", f"a number above 0, got 'size={size}'") for place in PLACES for size in NO_SIZES),
        *((f"{place}?size=3&seed={no}", f"from 0 up, got 'seed={no}'") for place in PLACES for no in ("x", "-3")),
        ("phrasebook?split=training", "expected split=train, dev or test, got 'split=training'"),
        ("phrasebook:", "expected phrasebook:de,fr"),
        ("phrasebook:de,,fr", "expected phrasebook:de,fr"),
        ("phrasebook:deu", "language must be one of en, de, fr, es, vi, zh: got 'deu'; did you mean 'de'"),
        ("phrasebook:de,fr,de", "expected each language once: got de,fr,de"),
    ],
)
def test_malformed(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_data_spec(text)
    if text.startswith("phrasebook"):
        with pytest.raises(ValueError, match=reason):
            parse_phrasebook(text)


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "de-en.tsv").write_text("Hund\tdog\n", encoding="utf-8")
    (tmp_path / "mixed.tsv").write_text("Hund\tdog\nKatze\n", encoding="utf-8")
    (tmp_path / "a.fr").write_text("chien\n", encoding="utf-8")
    (tmp_path / "a.en").write_text("dog\n", encoding="utf-8")
    return tmp_path


def test_names(corpus):
    path = corpus / "de-en.tsv"
    other = corpus / "mixed.tsv"
    other.write_text("Hund\tdog\n", encoding="utf-8")
    specs = [f"{path}", f"{path}", f"{corpus}/a", f"{corpus}/a.fr,{corpus}/a.en", f"nl-en={other}", f"{other}"]
    loaded = load_data_specs([*specs, f"de-en={other}?columns=0,1"])
    assert list(loaded) == ["de-en", "de-en-2", "fr-en", "fr-en-2", "nl-en", "mixed", "de-en-3"]
    assert all(dataset.column_names == list(COLUMNS) and len(dataset) == 1 for dataset in loaded.values())


def test_all_specs_are_parsed_before_any_is_read(corpus):
    with pytest.raises(ValueError, match="name what to read"):
        load_data_specs([str(corpus / "missing.tsv"), ""])
    with pytest.raises(ValueError, match="at least one data spec"):
        load_data_specs([])


def test_skip_bad_lines(corpus):
    with pytest.raises(ParallelTextError, match=r"mixed\.tsv:2: wrong column count"):
        load_data_specs([str(corpus / "mixed.tsv")])
    assert len(load_data_specs([str(corpus / "mixed.tsv")], skip_bad_lines=True)["mixed"]) == 1


def test_phrasebook() -> None:
    loaded = load_data_specs(["phrasebook:de,fr?size=20", "fr-de=phrasebook?size=10&split=dev", "phrasebook:de"])
    sizes = {name: len(dataset) for name, dataset in loaded.items()}
    assert sizes == {"de-en": 20, "fr-en": 20, "fr-de": 10, "de-en-2": 4000}
    assert all(dataset.column_names == list(COLUMNS) for dataset in loaded.values())
    assert loaded["de-en"]["source"][:] == loaded["de-en-2"]["source"][:20]
    loaded = load_data_specs(["phrasebook?size=2"])
    assert len(loaded) == 5 and all(name.endswith("-en") and len(dataset) == 2 for name, dataset in loaded.items())


@pytest.mark.parametrize("text", ["phrasebook.tsv", "phrasebooks", "my/phrasebook", "phrase", "de=phrasebook", ""])
def test_other_names_are_files(text: str) -> None:
    assert not is_phrasebook(text)


def test_the_split_is_the_readers_unless_the_spec_names_one() -> None:
    for split in ("train", "dev", "test"):
        read = load_data_specs(["phrasebook:de?size=3", "de-en=phrasebook?size=3&split=dev"], split=split)
        wanted = [parallel_phrases("de", "en", split=part, size=3)["source"][:] for part in (split, "dev")]
        assert [part["source"][:] for part in read.values()] == wanted
    assert {len(load_data_specs(["phrasebook:de"], split=split)["de-en"]) for split in ("dev", "test")} == {1000}


def test_evaluation_texts_are_the_test_split() -> None:
    texts = load_evaluation_specs(["phrasebook:de?size=4", "de=phrasebook?size=4&queries=de,en"])
    test = parallel_phrases("de", "en", split="test", size=4)
    assert texts["de-en"]["source"][:] == test["source"][:]
    assert list(texts) == ["de-en", "de, queries de", "de, queries en"]
    assert all(text.endswith("?") for text in texts["de, queries en"])
    with pytest.raises(ValueError, match="expected the options size, split, seed, queries"):
        load_evaluation_specs(["de=phrasebook?columns=1,2"])


def test_name_of_the_data() -> None:
    assert phrasebook_name(["phrasebook:de", "zh-en=phrasebook?size=9"], split="test") == "phrasebook-test"
    named = ["de=phrasebook?queries=de,en&split=dev", "en=phrasebook"]
    assert phrasebook_name(named, split="test") == "phrasebook-dev-test"
    assert phrasebook_name(["phrasebook", "de-en=pairs.tsv"], split="test") is None
    assert phrasebook_name([], split="test") is None
