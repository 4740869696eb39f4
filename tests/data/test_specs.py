"""Data specs: what may be typed, and the names under which it comes back."""

import pytest

from st_xling.data import COLUMNS, DataSpec, ParallelTextError, load_data_specs, parse_data_spec


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


def test_phrasebook_form():
    spec = parse_data_spec("phrasebook:de,fr?size=8000&split=dev&seed=3")
    assert spec.languages == ("de", "fr")
    assert spec.options == {"size": 8000, "split": "dev", "seed": 3}


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
    ],
)
def test_malformed(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_data_spec(text)


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


def test_phrasebook():
    loaded = load_data_specs(["phrasebook:de,fr?size=20", "fr-de=phrasebook?size=10&split=dev", "phrasebook:de"])
    assert {name: len(dataset) for name, dataset in loaded.items()} == {
        "de-en": 20,
        "fr-en": 20,
        "fr-de": 10,
        "de-en-2": 4000,
    }
    assert all(dataset.column_names == list(COLUMNS) for dataset in loaded.values())
    assert loaded["de-en"]["source"][:] == loaded["de-en-2"]["source"][:20]


def test_phrasebook_in_all_its_languages():
    loaded = load_data_specs(["phrasebook?size=2"])
    assert len(loaded) > 1 and "en-en" not in loaded
    assert all(name.endswith("-en") and len(dataset) == 2 for name, dataset in loaded.items())
