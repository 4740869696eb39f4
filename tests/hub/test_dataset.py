"""Pairs that are pushed as a data set, what strangers then load, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from datasets import load_dataset
from huggingface_hub import DatasetCard

from st_xling.data import load_data_specs, load_pairs
from st_xling.hub import push_dataset
from tests.hub.hub_server import Hub

pytest_plugins = ["tests.hub.publishing"]
Run = Callable[..., Any]

PAIRS = [
    ("Der Hund\tschläft.", "The dog is sleeping."),
    ('"Ja" | nein', r"C:\new"),
    ("我买了三本旧书。", "Three old books."),
]
SIGNATURE = "mine|model:me@1234|filters:numbers|threshold:1.06|st-xling:0"
RESULTS = {
    "mine": {"threshold": 1.06, "rejected": {"numbers": 3}},
    "signature": SIGNATURE,
    "command": "st-xling mine a b",
}
LANGUAGES = {"source_language": "deu_Latn", "target_language": "en"}
WORDS = ("--source-language", "de", "--target-language", "en", "--license", "cc-by-4.0")


@pytest.fixture(params=["tsv", "jsonl"])
def scored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of ``mine``, written by its writer."""
    from st_xling.mining.pipeline.work import WrittenPair, pair_writer

    path = tmp_path / ("pairs" if request.param == "tsv" else "pairs.jsonl")
    with path.open("wb") as stream, pair_writer(stream, request.param) as write:
        for row, texts in enumerate(PAIRS):
            write(WrittenPair(1.25 - row / 8, ([str(row), "9"], [f"t{row}"]), texts))
    return path


@pytest.mark.parametrize("format", ["tsv", "jsonl"])
def test_pairs_of_documents_keep_their_places(format: Literal["tsv", "jsonl"], tmp_path: Path) -> None:
    """Whoever trains on paragraphs needs to know which pairs are neighbors; the data set had only texts and scores."""
    from st_xling.mining.pipeline.work import DocumentPlace, WrittenPair, pair_writer

    path = tmp_path / f"pairs.{format}"
    with path.open("wb") as stream, pair_writer(stream, format, places=True) as write:
        for row, texts in enumerate(PAIRS):
            place = DocumentPlace("a\tb/book.de", 2 * row + 1)
            write(WrittenPair(0.5, ([str(row)], [str(row)]), texts, place=place))
    push_dataset(path, "me/pairs", license="mit", **LANGUAGES, dry_run=True, out=tmp_path / "out")
    published = load_dataset("parquet", data_files=str(tmp_path / "out" / "data" / "*.parquet"), split="train")
    assert published["document"][:] == ["a\tb/book.de"] * 3 and published["position"][:] == [1, 3, 5]
    assert list(zip(published["source"][:], published["target"][:])) == PAIRS


def expected(row: int) -> dict[str, Any]:
    texts = dict(zip(("source", "target"), PAIRS[row]))
    return {**texts, "source_language": "de", "target_language": "en", "score": 1.25 - row / 8}


def test_pairs_come_back_as_they_were(scored: Path, hub: Hub, client: Run) -> None:
    done = client("push", scored, "tester/pairs", *WORDS)
    assert done.status == 0, done.stderr
    head = hub.repo("tester/pairs", "datasets").head
    assert done.stdout == f"https://huggingface.co/datasets/tester/pairs/commit/{head}\n"
    files = hub.files("tester/pairs", kind="datasets")
    assert sorted(files) == [".gitattributes", "README.md", "data/train-00000-of-00001.parquet", "pictures/scores.png"]
    assert load_dataset("tester/pairs", split="train").to_list() == [expected(row) for row in range(3)]
    # README: ``--data tester/pairs`` trains on them.
    (trained_on,) = load_data_specs(["tester/pairs"]).values()
    assert list(zip(trained_on["source"], trained_on["target"])) == PAIRS
    assert set(trained_on["source_language"]) == {"de"}


def test_other_content_is_only_replaced_if_asked_for(hub: Hub, client: Run, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("eins\tone\n", encoding="utf-8")
    hub.put("tester/pairs", {"data/old.parquet": b"old", "notes.md": b"kept"}, kind="datasets")
    refused = client("push", path, "tester/pairs", *WORDS)
    assert refused.status == 2 and "tester/pairs has 2 files" in refused.stderr and "--overwrite" in refused.stderr
    assert hub.files("tester/pairs", kind="datasets")["data/old.parquet"] == b"old"
    assert client("push", path, "tester/pairs", *WORDS, "--overwrite").status == 0
    names = {".gitattributes", "README.md", "data/train-00000-of-00001.parquet", "notes.md"}
    assert hub.files("tester/pairs", kind="datasets").keys() == names


def test_the_card_says_how_the_pairs_were_made(scored: Path, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text(json.dumps(RESULTS))
    report = push_dataset(scored, "me/pairs", license="cc-by-4.0", results=results, **LANGUAGES, dry_run=True)
    card = DatasetCard(report.card)
    assert (report.rows, report.url) == (3, None)
    assert (card.data.language, card.data.license) == (["de", "en"], "cc-by-4.0")
    for text in ("German–English", "3 pairs", "me@1234", "1.06", "rejected by numbers", "st-xling mine a b", SIGNATURE):
        assert text in report.card
    assert '"Ja" &#124; nein' in report.card and "| 1.125 |" in report.card
    assert "How they were made" not in push_dataset(scored, "me/p", license="mit", **LANGUAGES, dry_run=True).card


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    other = tmp_path / "other.json"
    path.write_text("eins\tone\n", encoding="utf-8")
    other.write_text('{"bucc": {}, "signature": "bucc|"}')
    options: Any = {**LANGUAGES, "dry_run": True}
    with pytest.raises(ValueError, match="the JSON that st-xling mine.*other.json"):
        push_dataset(path, "me/pairs", license="mit", results=other, **options)
    with pytest.raises(ValueError, match="add the user"):
        push_dataset(path, "pairs", license="mit", **options)


def test_quotes_in_tables_of_others_are_text(hub: Hub) -> None:
    rows = [('"Ja', "Yes"), ("Nein", "No"), ('Halb "so', "Half as"), ('wild"', "bad")]
    text = "source\ttarget\n" + "".join(f"{source}\t{target}\n" for source, target in rows)
    hub.put("tester/table", {"data/train.tsv": text.encode()}, "datasets")
    loaded = load_pairs("tester/table", source_language="de", target_language="en")
    assert list(zip(loaded["source"], loaded["target"])) == rows


def test_a_dry_run_can_be_looked_at(scored: Path, hub: Hub, client: Run, tmp_path: Path) -> None:
    """It printed the card and threw it away with its picture."""
    out = tmp_path / "new" / "look"
    done = client("push", scored, "tester/pairs", *WORDS, "--dry-run", "--out", out)
    assert done.status == 0 and hub.requests == [], done.stderr
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert files == ["README.md", "data/train-00000-of-00001.parquet", "pictures/scores.png"]
    card = (out / "README.md").read_text(encoding="utf-8")
    assert card.strip() in done.stdout and "(pictures/scores.png)" in card and "--prompt 'query: '" in card
    assert len(load_pairs(out / "data" / "train-00000-of-00001.parquet")) == 3
    again = client("push", scored, "tester/pairs", *WORDS, "--dry-run", "--out", out)
    assert "must be a new or empty folder" in again.error
    assert sorted(path.name for path in out.parent.iterdir()) == ["look"]
