"""The phrasebook in specs: one parser, whose errors say what was expected, and the splits that are read unasked."""

from __future__ import annotations

import pytest

from st_xling.data import load_data_specs, load_evaluation_specs, parse_data_spec
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.phrasebook_spec import is_phrasebook, parse_phrasebook, phrasebook_name


def test_languages_and_options() -> None:
    found = parse_phrasebook("phrasebook:de,zh?size=5&split=dev&seed=3")
    assert found.languages == ("de", "zh") and found.options == {"size": 5, "split": "dev", "seed": 3}
    found = parse_phrasebook("phrasebook?gold=2&queries=en,vi", options=("gold", "queries"))
    assert found.languages == () and found.options == {"gold": 2, "queries": ["en", "vi"]}


@pytest.mark.parametrize("text", ["phrasebook.tsv", "phrasebooks", "my/phrasebook", "phrase", "de=phrasebook", ""])
def test_other_names_are_files(text: str) -> None:
    assert not is_phrasebook(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "phrasebook?rows=5",
            r"expected the options size, split, seed, once each, got 'rows=5' in 'phrasebook\?rows=5'",
        ),
        ("phrasebook?size=5&size=6", "once each, got 'size=6'"),
        ("phrasebook?size", "once each, got 'size'"),
        ("phrasebook?size=0", "expected size=8000, a number above 0, got 'size=0'"),
        ("phrasebook?size=-4", "a number above 0, got 'size=-4'"),
        ("phrasebook?seed=x", "expected seed=0, a whole number from 0 up, got 'seed=x'"),
        ("phrasebook?seed=-3", "from 0 up, got 'seed=-3'"),
        ("phrasebook?size=1_000", "a number above 0, got 'size=1_000'"),
        ("phrasebook?split=training", "expected split=train, dev or test, got 'split=training'"),
        ("phrasebook?gold=5", "expected the options size, split, seed"),
        ("phrasebook:", "expected phrasebook:de,fr"),
        ("phrasebook:de,,fr", "expected phrasebook:de,fr"),
        ("phrasebook:deu", "language must be one of en, de, fr, es, vi, zh: got 'deu'; did you mean 'de'"),
        ("phrasebook:de,fr,de", "expected each language once: got de,fr,de"),
    ],
)
def test_errors(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_phrasebook(text)
    with pytest.raises(ValueError, match=reason):
        parse_data_spec(text)


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
    assert (
        phrasebook_name(["de=phrasebook?queries=de,en&split=dev", "en=phrasebook"], split="test")
        == "phrasebook-dev-test"
    )
    assert phrasebook_name(["phrasebook", "de-en=pairs.tsv"], split="test") is None
    assert phrasebook_name([], split="test") is None
