"""``evaluate retrieval --data de=user/set``: retrieval sets of the Hub in the layout of BEIR and mteb."""

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from st_xling.data import load_pairs
from st_xling.data.retrieval.retrieval_set import load_retrieval_specs
from st_xling.data.test_sets import HUB_RETRIEVAL_SETS
from st_xling.utils.text import ParallelTextError
from tests.hub.hub_server import Hub

pytest_plugins = ["tests.hub.publishing"]
Run = Callable[..., Any]

CORPUS = {"_id": ["p1", "p2"], "title": ["Hunde", ""], "text": ["Der Hund schläft.", "Die Katze trinkt."]}
QUERIES = {"_id": ["q1", "q2"], "text": ["Who sleeps?", "Who drinks?"]}
QRELS = {"query-id": ["q1", "q2", "q2"], "corpus-id": ["p1", "p2", "p1"], "score": [1, 1, 0]}
OWN_SPLITS = {"corpus": "corpus", "queries": "queries"}
PARTS = {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS}


def put(hub: Hub, repo: str, configs: dict[str, dict[str, Any]], splits: dict[str, str]) -> dict[str, bytes]:
    """Publish configurations, each with one split: that of its name in ``splits``, or ``dev``; returns the files."""
    files = {}
    card = ""
    for config, columns in configs.items():
        buffer = BytesIO()
        split = splits.get(config, "dev")
        Dataset.from_dict(columns).to_parquet(buffer)
        files[f"{config}/{split}.parquet"] = buffer.getvalue()
        card += f"- config_name: {config}\n  data_files:\n  - split: {split}\n    path: {config}/{split}.parquet\n"
    files["README.md"] = f"---\nconfigs:\n{card}---\n".encode()
    hub.put(repo, files, "datasets")
    return files


def test_a_set_of_the_hub_is_evaluated(my_encoder: Path, hub: Hub, client: Run) -> None:
    repo = HUB_RETRIEVAL_SETS["mlqa"].dataset
    configs = {f"eng-deu-{part}": columns for part, columns in PARTS.items()}
    put(hub, repo, configs, dict.fromkeys(configs, "test"))
    for spec in ("de=mlqa?queries=en", f"de={repo}?queries=en&name=eng-deu"):
        done = client("evaluate", "retrieval", my_encoder, "--data", spec)
        assert done.status == 0 and "1 warning" not in done.stderr, done.stderr
        assert "MRR@100" in done.stdout
    lacking = client("evaluate", "retrieval", my_encoder, "--data", "de=mlqa")
    assert lacking.status == 2 and "eng-deu" in lacking.stderr


def test_a_data_set_reads_no_file_of_this_machine(hub: Hub, tmp_path: Path) -> None:
    """The card of a data set may name any path as its data. ``datasets`` refuses files outside the repository; we rely
    on it for the Hub, and check folders ourselves."""
    secret = tmp_path / "notes.csv"
    secret.write_text("source,target\ngeheim,secret\n", encoding="utf-8")
    card = "".join(
        f"- config_name: {config}\n  data_files:\n  - split: test\n    path: {secret}\n"
        for config in ("default", "corpus", "queries", "qrels")
    )
    hub.put("user/pairs", {"README.md": f"---\nconfigs:\n{card}---\n".encode()}, "datasets")
    for stream in (False, True):
        with pytest.raises(ValueError, match="Data files don't belong to user/pairs"):
            load_pairs("user/pairs", stream=stream)
    with pytest.raises(ValueError, match="Data files don't belong to user/pairs"):
        load_retrieval_specs(["de=user/pairs"])


def test_a_set_of_one_language(hub: Hub) -> None:
    """As BEIR's are on the Hub: judgments in the default configuration, splits named by what they hold."""
    put(hub, "user/set", {"default": QRELS, "corpus": CORPUS, "queries": QUERIES}, OWN_SPLITS)
    (data,) = load_retrieval_specs(["de=user/set?split=dev&queries=en"])
    assert list(data.passages) == ["Hunde Der Hund schläft.", "Die Katze trinkt."]
    assert data.queries == {"en": {"q1": "Who sleeps?", "q2": "Who drinks?"}}
    assert data.relevant == {"q1": {"p1": 1}, "q2": {"p2": 1}}


def test_a_downloaded_set(hub: Hub, tmp_path: Path) -> None:
    """``hf download user/set`` and a folder: expected to be read as by its id, and anew when a file was replaced; a
    card that names files outside of the folder is refused."""
    files = put(hub, "user/set", {"default": QRELS, "corpus": CORPUS, "queries": QUERIES}, OWN_SPLITS)
    folder = tmp_path / "set"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    spec = f"de={folder}?split=dev&queries=en"
    (published,) = load_retrieval_specs(["de=user/set?split=dev&queries=en"])
    (downloaded,) = load_retrieval_specs([spec])
    assert downloaded.sha256 == published.sha256
    times = (folder / "corpus" / "corpus.parquet").stat()
    Dataset.from_dict({**CORPUS, "text": ["Hund.", "Katze."]}).to_parquet(folder / "corpus" / "corpus.parquet")
    os.utime(folder / "corpus" / "corpus.parquet", ns=(times.st_atime_ns, times.st_mtime_ns))
    (corrected,) = load_retrieval_specs([spec])
    assert list(corrected.passages) == ["Hunde Hund.", "Katze."]

    card = folder / "README.md"
    (folder / "corpus" / "corpus.parquet").rename(tmp_path / "elsewhere.parquet")
    card.write_text(card.read_text().replace("corpus/corpus.parquet", "../elsewhere.parquet"))
    with pytest.raises(ParallelTextError, match="inside the folder"):
        load_retrieval_specs([spec])


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
def test_which_configuration(languages: list[str], spec: str, prefix: str, hub: Hub) -> None:
    table: dict[str, dict[str, Any]] = {}
    for language in languages:
        table |= {f"{language}-{part}": columns for part, columns in PARTS.items()}
        table[f"{language}-corpus"] = {**CORPUS, "text": [f"{language}- {text}" for text in CORPUS["text"]]}
    put(hub, "user/set", table, {})
    if not prefix.endswith("-"):
        with pytest.raises(ValueError, match=prefix):
            load_retrieval_specs([spec])
        return
    (data,) = load_retrieval_specs([spec])
    assert data.passages[1].startswith(f"{prefix} ")


def test_faults_of_a_set(hub: Hub) -> None:
    queries = {"_id": ["q1", "q2", "q1", "q1"], "text": ["Who sleeps?", "", "Who sleeps?", "Who?"]}
    put(hub, "user/set", {"default": QRELS, "corpus": CORPUS, "queries": queries}, OWN_SPLITS)
    with pytest.raises(ParallelTextError, match=r"(?s)2 faults.*queries:2: no id or text.*queries:4: id twice \(q1"):
        load_retrieval_specs(["de=user/set?split=dev"])
    with pytest.raises(ValueError, match="one language of queries"):
        load_retrieval_specs(["de=user/set?split=dev&queries=en,fr"])
