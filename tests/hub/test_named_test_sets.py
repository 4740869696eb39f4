"""``--data tatoeba`` and ``de-en=ntrex``, from a Hub in the layout of mteb's copies."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from st_xling.data import test_sets
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.test_sets import HUB_TEST_SETS, hub_pairs
from tests.hub.hub_server import Hub

pytest_plugins = ["tests.hub.publishing"]
Run = Callable[..., Any]


@pytest.fixture
def texts() -> dict[str, list[str]]:
    german = parallel_phrases("de", "en", size=8, seed=1)
    french = parallel_phrases("fr", "en", size=8, seed=1)
    return {"de": list(german["source"]), "fr": list(french["source"]), "en": list(german["target"])}


def tatoeba(texts: dict[str, list[str]]) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {"sentence1": [], "sentence2": [], "lang": []}
    for language, code in (("de", "deu"), ("fr", "fra")):
        columns["sentence1"] += texts[language]
        columns["sentence2"] += texts["en"]
        columns["lang"] += [f"{code}-eng"] * len(texts["en"])
    return columns


def ntrex(texts: dict[str, list[str]]) -> dict[str, list[str]]:
    columns = {"deu_Latn": texts["de"], "eng_Latn": texts["en"], "fra_Latn": texts["fr"]}
    return columns | {"zho_Hans": texts["de"], "zho_Hant": texts["fr"]}


def put(hub: Hub, name: str, columns: dict[str, list[str]]) -> None:
    """Publish a test set at the commit that is read."""
    test_set = HUB_TEST_SETS[name]
    buffer = BytesIO()
    Dataset.from_dict(columns).to_parquet(buffer)
    hub.put(test_set.dataset, {f"data/{test_set.split}-00000-of-00001.parquet": buffer.getvalue()}, "datasets")


def test_commands_read_test_sets_by_name(my_encoder: Path, hub: Hub, client: Run, texts: dict[str, list[str]]) -> None:
    put(hub, "tatoeba", tatoeba(texts))
    put(hub, "ntrex", ntrex(texts))
    done = client("evaluate", "tatoeba", my_encoder, "--data", "tatoeba")
    assert done.status == 0 and "tatoeba|languages:deu,fra|" in done.stdout, done.stderr
    done = client("evaluate", "precision", my_encoder, "--data", "fr-de=ntrex")
    assert done.status == 0 and "pairs:fr-de" in done.stdout, done.stderr
    missing = client("evaluate", "tatoeba", my_encoder, "--data", "de-en=flores")
    assert missing.status == 2 and HUB_TEST_SETS["flores"].dataset in missing.stderr


def test_languages_of_a_set(texts: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {"tatoeba": Dataset.from_dict(tatoeba(texts)), "ntrex": Dataset.from_dict(ntrex(texts))}
    monkeypatch.setattr(test_sets, "_load_hub_table", tables.__getitem__)
    assert hub_pairs("tatoeba", "de", "en").to_dict() == {"de": texts["de"], "en": texts["en"]}
    assert hub_pairs("ntrex", "fr", "deu_Latn").to_dict() == {"fr": texts["fr"], "deu_Latn": texts["de"]}
    for name, source, target, message in (
        ("tatoeba", "de", "fr", "one language with English out of deu, fra"),
        ("tatoeba", "nl", "en", "out of deu, fra"),
        ("ntrex", "zh", "en", "zho_Hans, zho_Hant"),
        ("ntrex", "de", None, "de-en=ntrex"),
    ):
        with pytest.raises(ValueError, match=message):
            hub_pairs(name, source, target)
