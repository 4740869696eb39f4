"""Datasets through ``load_dataset``: folders here, since tests ask nothing of the network."""

import json

import pytest

from st_xling.data import ParallelTextError, read_hub, read_parallel


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    import datasets
    import huggingface_hub.constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "set"
    path.mkdir()
    return path


def write(folder, rows, name="train.jsonl"):
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def first(dataset):
    row = dataset[0]
    return tuple(row.values())


@pytest.mark.parametrize("dataset_id", ["nobody/no-such-corpus", "nocorpus"])
def test_unknown_id(dataset_id):
    with pytest.raises(
        ValueError, match=f"id of a dataset on the Hub, got {dataset_id}; the Hub says: .*Check the"
    ) as e:
        read_parallel(dataset_id)
    assert e.value.__cause__ is not None


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"source": "Hund", "target": "dog", "score": 1.0}, ("Hund", "dog", "und", "und")),
        ({"tgt": "dog", "src": "Hund"}, ("Hund", "dog", "und", "und")),
        ({"sentence1": "Hund", "sentence2": "dog"}, ("Hund", "dog", "und", "und")),
        ({"translation": {"de": "Hund", "en": "dog"}}, ("Hund", "dog", "de", "en")),
        ({"id": "1", "translation": {"de": "Hund", "en": "dog"}}, ("Hund", "dog", "de", "en")),
        ({"de": "Hund", "en": "dog"}, ("Hund", "dog", "de", "en")),
    ],
)
def test_columns_are_found(folder, row, expected):
    write(folder, [row])
    assert first(read_parallel(folder)) == expected


def test_direction_and_columns_are_asked_for(folder):
    write(folder, [{"translation": {"de": "Hund", "en": "dog", "fr": "chien"}}])
    asked = read_parallel(folder, source_language="en", target_language="fr")
    assert first(asked) == ("dog", "chien", "en", "fr")
    assert first(read_parallel(folder, columns=("fr", "de"))) == ("chien", "Hund", "fr", "de")
    with pytest.raises(ParallelTextError, match="missing key"):
        read_parallel(folder)


def test_translation_feature_of_a_saved_dataset(folder):
    from datasets import Dataset, Features, Translation

    features = Features({"translation": Translation(languages=["de", "en"])})
    saved = Dataset.from_dict({"translation": [{"de": "Hund", "en": "dog"}]}, features=features)
    saved.save_to_disk(folder / "disk")
    (folder / "parquet").mkdir()
    saved.to_parquet(folder / "parquet" / "train.parquet")
    assert first(read_hub(folder / "disk")) == ("Hund", "dog", "de", "en")
    assert first(read_parallel(folder / "parquet")) == ("Hund", "dog", "de", "en")


def test_splits(folder):
    write(folder, [{"source": "a", "target": "b"}], "test.jsonl")
    assert first(read_parallel(folder))[0] == "a"  # the only one
    write(folder, [{"source": "c", "target": "d"}], "validation.jsonl")
    with pytest.raises(ValueError, match="expected a split to choose, got none for"):
        read_parallel(folder)
    assert first(read_parallel(folder, split="validation"))[0] == "c"
    with pytest.raises(ValueError, match="with split dev; the Hub says"):
        read_parallel(folder, split="dev")


def test_faulty_rows_are_gathered(folder, caplog):
    write(folder, [{"source": "a", "target": "b"}, {"source": "", "target": "d"}, {"source": "e", "target": None}])
    with pytest.raises(
        ParallelTextError, match=r":2: empty side \(source\)(.|\n)*:3: non-string value \(target is null"
    ):
        read_parallel(folder)
    assert len(read_parallel(folder, skip_bad_lines=True)) == 1
    assert "dropped" in caplog.text
