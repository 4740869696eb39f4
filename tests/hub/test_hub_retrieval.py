"""``evaluate retrieval --data de=user/set``: retrieval sets of the Hub in the layout of BEIR and mteb."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset

from st_xling.data.retrieval.retrieval_set import load_retrieval_specs
from st_xling.data.test_sets import HUB_RETRIEVAL_SETS
from st_xling.utils.text import ParallelTextError
from tests.hub.hub_server import Hub

pytest_plugins = ["tests.hub.publishing"]
Run = Callable[..., Any]

CORPUS = {"_id": ["p1", "p2"], "title": ["Hunde", ""], "text": ["Der Hund schläft.", "Die Katze trinkt."]}
QUERIES = {"_id": ["q1", "q2"], "text": ["Who sleeps?", "Who drinks?"]}
QRELS = {"query-id": ["q1", "q2", "q2"], "corpus-id": ["p1", "p2", "p1"], "score": [1, 1, 0]}
PARTS = {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS}


@pytest.mark.slow
def test_a_set_of_the_hub_is_evaluated(my_encoder: Path, hub: Hub, client: Run) -> None:
    repo, revision = HUB_RETRIEVAL_SETS["mlqa"].dataset, HUB_RETRIEVAL_SETS["mlqa"].revision
    files: dict[str, bytes | None] = {}
    configs = []
    for part, columns in PARTS.items():
        buffer = BytesIO()
        Dataset.from_dict(columns).to_parquet(buffer)
        files[f"eng-deu-{part}/test-00000-of-00001.parquet"] = buffer.getvalue()
        configs.append(
            f"- config_name: eng-deu-{part}\n  data_files:\n  - split: test\n    path: eng-deu-{part}/test-*\n"
        )
    files["README.md"] = f"---\nconfigs:\n{''.join(configs)}---\n".encode()
    hub.put(repo, files, "dataset")
    held = hub.model(repo, "dataset")
    held.refs[revision] = held.refs["main"]
    for spec in ("de=mlqa?queries=en", f"de={repo}?queries=en&name=eng-deu"):
        done = client("evaluate", "retrieval", my_encoder, "--data", spec)
        assert done.status == 0 and "1 warning" not in done.stderr, done.stderr
        assert "MRR@100" in done.stdout
    lacking = client("evaluate", "retrieval", my_encoder, "--data", "de=mlqa")
    assert lacking.status == 2 and "eng-deu" in lacking.stderr


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Configurations of a set on the Hub, by name; may be changed."""
    held: dict[str, dict[str, Any]] = {}
    monkeypatch.setattr(datasets, "get_dataset_config_names", lambda *place, **options: list(held))
    splits = {"corpus": ["corpus"], "queries": ["queries"]}
    monkeypatch.setattr(
        datasets, "get_dataset_split_names", lambda repo, config, **options: splits.get(config, ["train", "dev"])
    )

    def load(repo: str, config: str, *, split: str, revision: str | None) -> Dataset:
        assert (repo, revision) == ("user/set", None)
        assert split == splits.get(config, ["dev"])[0]
        return Dataset.from_dict(held[config])

    monkeypatch.setattr(datasets, "load_dataset", load)
    return held


def test_a_set_of_one_language(table: dict[str, dict[str, Any]]) -> None:
    """As BEIR's are on the Hub: judgments in the default configuration, splits named by what they hold."""
    table |= {"default": QRELS, "corpus": CORPUS, "queries": QUERIES}
    (data,) = load_retrieval_specs(["de=user/set?split=dev&queries=en"])
    assert list(data.passages) == ["Hunde Der Hund schläft.", "Die Katze trinkt."]
    assert data.queries == {"en": {"q1": "Who sleeps?", "q2": "Who drinks?"}}
    assert data.relevant == {"q1": {"p1": 1}, "q2": {"p2": 1}}


@pytest.mark.parametrize(
    ("languages", "spec", "prefix"),
    [
        (["de", "fr"], "deu=user/set?split=dev", "de-"),
        (["deu_Latn", "fra_Latn"], "fr=user/set?split=dev", "fra_Latn-"),
        (["deu-deu", "eng-deu", "deu-eng"], "de=user/set?split=dev&queries=en", "eng-deu-"),
        (["deu-deu", "eng-deu", "deu-eng"], "de=user/set?split=dev", "deu-deu-"),
        (["de", "fr"], "nl=user/set?split=dev", "configurations of de, fr"),
    ],
)
def test_which_configuration(languages: list[str], spec: str, prefix: str, table: dict[str, dict[str, Any]]) -> None:
    for language in languages:
        table |= {f"{language}-{part}": columns for part, columns in PARTS.items()}
        table[f"{language}-corpus"] = {**CORPUS, "text": [f"{language}- {text}" for text in CORPUS["text"]]}
    if not prefix.endswith("-"):
        with pytest.raises(ValueError, match=prefix):
            load_retrieval_specs([spec])
        return
    (data,) = load_retrieval_specs([spec])
    assert data.passages[1].startswith(f"{prefix} ")


def test_faults_of_a_set(table: dict[str, dict[str, Any]]) -> None:
    table |= {"default": QRELS, "corpus": CORPUS, "queries": {"_id": ["q1", "q2"], "text": ["Who sleeps?", ""]}}
    with pytest.raises(ParallelTextError, match="queries:2: no id or text"):
        load_retrieval_specs(["de=user/set?split=dev"])
    with pytest.raises(ValueError, match="one language of queries"):
        load_retrieval_specs(["de=user/set?split=dev&queries=en,fr"])
