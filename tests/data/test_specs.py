"""Data specs: what may be typed, of files and of the phrasebook, and the names under which it comes back."""

from pathlib import Path

import pytest

from st_xling.data import COLUMNS, DataSpec, load_data_specs, load_evaluation_specs, parse_data_spec
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.spec import data_name, parse_spec, split_spec

INVALID_OPTIONS = [
    *((f"size={size}", f"a number above 0, got 'size={size}'") for size in ("0", "-4", "1.5", "1_000", "٣")),
    *((f"size=3&seed={seed}", f"from 0 up, got 'seed={seed}'") for seed in ("x", "-3")),
]


@pytest.mark.parametrize(
    ("text", "paths", "languages", "options"),
    [
        ("corpus.tsv", ("corpus.tsv",), (), {}),
        ("de-en=a.x,a.y", ("a.x", "a.y"), ("de", "en"), {}),
        ("fr-en=user/set?name=en-fr&split=test", ("user/set",), ("fr", "en"), {"name": "en-fr", "split": "test"}),
        ("x.tsv?columns=2,0", ("x.tsv",), (), {"columns": (2, 0)}),
        ("x.csv?columns=de,en", ("x.csv",), (), {"columns": ("de", "en")}),
        ("day=01/x.tsv?size=5", ("day=01/x.tsv",), (), {"size": 5}),
        ("./de-en=x.tsv", ("./de-en=x.tsv",), (), {}),
        ("what?.tsv", ("what?.tsv",), (), {}),
        ("fr-de=phrasebook", ("phrasebook",), ("fr", "de"), {}),
        ("my/phrasebook", ("my/phrasebook",), (), {}),
        ("phrasebook.tsv", ("phrasebook.tsv",), (), {}),
    ],
)
def test_forms(text, paths, languages, options):
    spec = parse_data_spec(text)
    assert spec == DataSpec(text, ",".join(paths), languages, options=options)
    assert spec.paths == paths and spec.is_phrasebook == (paths == ("phrasebook",))


CODES = "de zh-Hans-CN de|en deu_Latn|eng_Latn pt-BR|en de|en-GB en-GB|pt-BR zh-Hans-CN|zh-Hant-TW"


@pytest.mark.parametrize("codes", CODES.split())
def test_languages_before_the_location(codes: str) -> None:
    for location in ("x.tsv", "a=b.tsv", "phrasebook"):
        assert split_spec(f"{codes.replace('|', '-')}={location}?size=5") == (
            tuple(codes.split("|")),
            location,
            "size=5",
        )
    assert split_spec("queries=x.tsv").languages == ("en",)


def test_parallel_text_has_two_languages(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.tsv").write_text("Hund\tdog\n", encoding="utf-8")
    with pytest.raises(ValueError, match="expected two languages before =, got 'de=x.tsv'; write de-en=x.tsv"):
        load_data_specs(["de=x.tsv"])
    (tmp_path / "de=x.tsv").write_text("Hund\tdog\n", encoding="utf-8")
    assert len(load_data_specs(["de=x.tsv"])["de=x"]) == 1


def test_phrasebook_form() -> None:
    spec = parse_data_spec("phrasebook:de,fr?size=8000&split=dev&seed=3")
    assert spec.listed == ("de", "fr") and spec.options == {"size": 8000, "split": "dev", "seed": 3}
    for_mining = parse_spec("phrasebook?gold=2&queries=en,vi", {}, phrasebook=("gold", "queries"))
    assert for_mining.listed == () and for_mining.options == {"gold": 2, "queries": ["en", "vi"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "name what to read"),
        ("a,b,c", "one path, or two joined by a comma"),
        ("x.tsv?colums=0,1", r"expected the options columns, name, split, size, seed, once each, got 'colums=0,1'"),
        ("x.tsv?columns=0", r"expected columns=0,2 or de,en, got 'columns=0'"),
        ("de-en=phrasebook:de", "one language a spec"),
        ("phrasebook?gold=5", "expected the options size, split, seed"),
        *((f"x.tsv?{options}", reason) for options, reason in INVALID_OPTIONS),
        *((f"phrasebook?{options}", reason) for options, reason in INVALID_OPTIONS),
        ("phrasebook?split=training", "expected split=train, dev or test, got 'split=training'"),
        ("phrasebook:", "expected phrasebook:de,fr"),
        ("phrasebook:deu", "language must be one of en, de, fr, es, vi, zh: got 'deu'"),
    ],
)
def test_malformed(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_data_spec(text)


def test_all_specs_are_parsed_before_any_is_read() -> None:
    """Not after the hour that the first corpus takes."""
    with pytest.raises(ValueError, match="got ''; name what to read"):
        load_data_specs(["missing.tsv", ""])
    with pytest.raises(ValueError, match="at least one data spec, got none"):
        load_data_specs([])


def test_names(tmp_path):
    files = {"de-en.tsv": "Hund\tdog\n", "mixed.tsv": "Hund\tdog\n", "a.fr": "chien\n", "a.en": "dog\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = tmp_path / "de-en.tsv"
    other = tmp_path / "mixed.tsv"
    prefix = tmp_path / "a"
    specs = [f"{path}", f"{path}", f"{prefix}", f"{prefix}.fr,{prefix}.en", f"nl-en={other}", f"{other}"]
    loaded = load_data_specs([*specs, f"de-en={other}?columns=0,1"])
    assert list(loaded) == ["de-en", "de-en-2", "fr-en", "fr-en-2", "nl-en", "mixed", "de-en-3"]
    assert all(dataset.column_names == list(COLUMNS) and len(dataset) == 1 for dataset in loaded.values())


def test_phrasebook() -> None:
    loaded = load_data_specs(["phrasebook:de,fr?size=20", "fr-de=phrasebook?size=10&split=dev", "phrasebook:de"])
    sizes = {name: len(dataset) for name, dataset in loaded.items()}
    assert sizes == {"de-en": 20, "fr-en": 20, "fr-de": 10, "de-en-2": 4000}
    assert all(dataset.column_names == list(COLUMNS) for dataset in loaded.values())
    assert loaded["de-en"]["source"][:] == loaded["de-en-2"]["source"][:20]
    loaded = load_data_specs(["phrasebook?size=2"])
    assert len(loaded) == 5 and all(name.endswith("-en") and len(dataset) == 2 for name, dataset in loaded.items())


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


def test_name_of_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set of the Hub is named by its id, files without the folders of this machine."""
    assert data_name(["phrasebook:de", "zh-en=phrasebook?size=9"], split="test") == "phrasebook-test"
    specs = ["de=phrasebook?queries=de,en&split=dev", "en=phrasebook"]
    assert data_name(specs, split="test") == "phrasebook-dev+phrasebook-test"
    assert data_name(["phrasebook", "de-en=pairs.tsv"], split="test") == "phrasebook-test+pairs.tsv"
    assert data_name(["de-en=user/bücher?size=5"], split="test") == "user/bücher"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user").mkdir()
    for ending in ("de", "en"):
        (tmp_path / "user" / f"bücher.{ending}").write_text("a\n", encoding="utf-8")
    assert data_name(["de-en=user/bücher"], split="test") == "bücher"
    assert data_name(["de-en=user/bücher.de,user/bücher.en"], split="test") == "bücher.de+bücher.en"
    assert data_name(["xx=."], split="test") == tmp_path.name
    assert data_name(["de-en=a|b.tsv"], split="test") == "a_b.tsv"
