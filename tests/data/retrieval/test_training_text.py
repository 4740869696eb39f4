"""Text to train retrievers on: sets, tables, SQuAD's form, data sets of the Hub, the phrasebook, text alone."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
from datasets import Dataset

from st_xling.data.retrieval import load_query_passage_specs, load_retrieval_specs
from tests.data.reranking.aligned_sentences import question, squad
from tests.data.test_layouts import table
from tests.retrieval_files import ENGLISH, OTHERS, json_lines, lines, translated


def squad_file(path: Path) -> Path:
    unanswered = {"id": "Why?", "question": "Why?", "answers": []}
    cities = [question("a", "What is Hanoi?", "a capital"), unanswered]
    rivers = [question("b", "What flows?", "The Spree"), question("c", "Which river?", "Spree")]
    return squad(path, [("x", [("Hanoi is a capital.", cities), ("The Spree flows.", rivers)])])


def test_answered_questions_of_squads_form(tmp_path: Path) -> None:
    pairs = load_query_passage_specs([f"queries={squad_file(tmp_path / 'train.json')}"])["en"]
    assert list(zip(pairs["source"], pairs["target"])) == [
        ("What is Hanoi?", "Hanoi is a capital."),
        ("What flows?", "The Spree flows."),
        ("Which river?", "The Spree flows."),
    ]
    assert set(pairs["source_language"]) == set(pairs["target_language"]) == {"en"}


def test_named_columns_of_files_and_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = json_lines(tmp_path / "train.jsonl", [{"query": "q", "answer": "a", "passage": "p"}])
    assert load_query_passage_specs([f"en={path}"])["en"]["target"][:] == ["p"]
    assert load_query_passage_specs([f"en={path}?columns=query,answer"])["en"]["target"][:] == ["a"]
    hub = {("user/questions", "train"): Dataset.from_list([{"query": "q", "answer": "a"}])}
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_: SimpleNamespace(name="parquet"))
    monkeypatch.setattr(datasets, "load_dataset", lambda place, *_, split, **options: hub[place, split])
    pairs = load_query_passage_specs(["queries=user/questions?columns=query,answer&split=train"])["en"]
    assert (pairs["source"][:], pairs["target"][:]) == (["q"], ["a"])


WRONG = [("q1", "p1", "n1", "m1"), ("问？", "答。", "错。", "也错。")]


def written(path: Path, rows: Any = WRONG) -> Path:
    """The rows as a table, whose columns tab- and comma-separated lines do not name."""
    names = ["query", "passage", "negative_1", "negative_2"] if path.suffix in (".jsonl", ".parquet") else []
    return table(path.parent, path.suffix[1:], names, rows, name=path.stem)


@pytest.mark.parametrize("ending", ["jsonl", "tsv"])
def test_hard_negatives_beside_the_passage(ending: str, tmp_path: Path) -> None:
    pairs = load_query_passage_specs([f"en={written(tmp_path / f'q.{ending}')}"])["en"]
    assert pairs.column_names[4:] == ["negative_1", "negative_2"]
    assert list(zip(pairs["source"], pairs["target"], pairs["negative_1"], pairs["negative_2"])) == WRONG
    if ending == "jsonl":
        chosen = load_query_passage_specs([f"en={tmp_path / f'q.{ending}'}?columns=query,passage,negative_2"])["en"]
        assert chosen.column_names[4:] == ["negative_1"] and chosen["negative_1"][:] == ["m1", "也错。"]


def test_rows_without_a_negative_are_faults(tmp_path: Path) -> None:
    path = written(tmp_path / "q.tsv", [*WRONG, ("q3", "p3", "n3", " "), ("q4", "", "n4", "m4")])
    with pytest.raises(ValueError, match=r":3: empty side .negative_2.(.|\n)*:4: empty side"):
        load_query_passage_specs([f"en={path}"])
    assert len(load_query_passage_specs([f"en={path}"], skip_bad_lines=True)["en"]) == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("en={folder}/squad.json?split=train", "takes no split"),
        ("en={folder}?columns=a,b", "takes no columns"),
        ("en={folder}/q.jsonl?columns=query,passage,wrong", "missing key .*'passage' and 'wrong', got query, passage"),
        ("en={folder}/q.docx", "expected a file ending in"),
        ("en={folder}/q.txt", "the nearest name there is q."),
        ("en={folder}/q.jsonl?split=dev", "takes no split"),
        ("q.jsonl", "which names no language"),
    ],
)
def test_what_is_refused(spec: str, message: str, tmp_path: Path) -> None:
    lines(tmp_path / "q.docx", ["x"])
    json_lines(tmp_path / "q.jsonl", [{"query": "q", "passage": "p"}])
    squad_file(tmp_path / "squad.json")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_query_passage_specs([spec.format(folder=tmp_path)])


def test_training_queries() -> None:
    pairs = load_query_passage_specs(["queries=phrasebook?size=6", "de=phrasebook?size=4&seed=5&queries=en,de"])
    assert {name: len(part) for name, part in pairs.items()} == {"en": 6, "de": 8}
    row = pairs["en"][0]
    assert row["source"].endswith("?") and not row["target"].endswith("?")
    assert set(pairs["de"]["source_language"]) == {"de", "en"} and set(pairs["de"]["target_language"]) == {"de"}
    test = load_query_passage_specs(["queries=phrasebook?size=6"], split="test")["en"]
    assert not set(test["source"]) & set(pairs["en"]["source"])


def test_query_passage_specs(tmp_path: Path) -> None:
    table = lines(tmp_path / "nq.tsv", ['Who said "no"?\tHe did.', "When?\tIn 1900."])
    objects = json_lines(tmp_path / "more.jsonl", [{"query": "Where?", "passage": "Here.", "id": 3}])
    folder = translated(tmp_path / "set")
    pairs = load_query_passage_specs([f"queries={table}", f"en={objects}", f"vi={folder}?queries=en"])
    assert list(pairs) == ["en", "en-2", "vi"]
    assert pairs["en"][0]["source"] == 'Who said "no"?' and pairs["en"][1]["target"] == "In 1900."
    assert pairs["en-2"][:]["target"] == ["Here."] and pairs["en-2"][0]["source_language"] == "en"
    assert pairs["vi"][:]["source"] == ENGLISH and pairs["vi"][:]["target"] == OTHERS


def test_a_sample_of_queries_keeps_all_passages_and_a_query_in_all_its_languages(tmp_path: Path) -> None:
    def numbered(prefix: str) -> str:
        return "".join(f'{{"_id": "{row}", "text": "{prefix} {row}"}}\n' for row in range(9))

    for name in ("corpus", "queries.de", "queries.en"):
        (tmp_path / f"{name}.jsonl").write_text(numbered(name), encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("".join(f"{row}\t{row}\t1\n" for row in range(9)))
    (found,) = load_retrieval_specs([f"de={tmp_path}?size=4&seed=2"])
    assert len(found.passages) == 9 and list(found.queries["de"]) == list(found.queries["en"])
    assert list(found.queries["de"]) == sorted(found.relevant) and len(found.relevant) == 4
    (pairs,) = load_query_passage_specs([f"de={tmp_path}?size=5&split=test"]).values()
    assert len(pairs) == 5 and all(a.split()[1] == b.split()[1] for a, b in zip(pairs["source"], pairs["target"]))
