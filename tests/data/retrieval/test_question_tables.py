"""Queries with their passages beside them: tables, SQuAD's form, data sets of the Hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from st_xling.data.retrieval import load_query_passage_specs
from st_xling.data.retrieval.question_tables import read_question_table


def squad(path: Path) -> Path:
    def asked(text: str, answer: str | None) -> dict[str, Any]:
        return {
            "id": text,
            "question": text,
            "answers": [] if answer is None else [{"text": answer, "answer_start": 0}],
        }

    cities = {"context": "Hanoi is a capital.", "qas": [asked("What is Hanoi?", "a capital"), asked("Why?", None)]}
    rivers = {"context": "The Spree flows.", "qas": [asked("What flows?", "The Spree"), asked("Which river?", "Spree")]}
    path.write_text(json.dumps({"data": [{"title": "x", "paragraphs": [cities, rivers]}]}), encoding="utf-8")
    return path


def test_answered_questions_of_squads_form(tmp_path: Path) -> None:
    pairs = load_query_passage_specs([f"queries={squad(tmp_path / 'train.json')}"])["en"]
    assert list(zip(pairs["source"], pairs["target"])) == [
        ("What is Hanoi?", "Hanoi is a capital."),
        ("What flows?", "The Spree flows."),
        ("Which river?", "The Spree flows."),
    ]
    assert set(pairs["source_language"]) == set(pairs["target_language"]) == {"en"}


def test_named_columns_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "nq.jsonl"
    path.write_text('{"query": "q", "answer": "a", "passage": "p"}\n', encoding="utf-8")
    assert read_question_table(str(path), "en")["target"][:] == ["p"]
    assert load_query_passage_specs([f"en={path}?columns=query,answer"])["en"]["target"][:] == ["a"]


def test_a_data_set_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its id, as the host finds it where it is cached or, here, beside the working folder."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    place = tmp_path / "user" / "questions"
    place.mkdir(parents=True)
    (place / "train.jsonl").write_text('{"query": "q", "answer": "a"}\n', encoding="utf-8")
    asked: list[Any] = []
    load = datasets.load_dataset

    def found(path: str, *options: Any, **more: Any) -> Any:
        asked.append((path, more.get("split")))
        return load(str(tmp_path / path), *options, **more)

    monkeypatch.setattr(datasets, "load_dataset", found)
    spec = "queries=user/questions?columns=query,answer&split=train"
    pairs = load_query_passage_specs([spec])["en"]
    assert asked == [("user/questions", "train")]
    assert (pairs["source"][:], pairs["target"][:]) == (["q"], ["a"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("en={squad}?split=train", "is a file, which has no split"),
        ("en={squad}?columns=a,b", "is a file, which has no columns"),
        ("en={squad}?corpus=x", "is read with columns, name, split: got corpus"),
        ("en={folder}?columns=a,b", "is read with split, corpus, queries: got columns"),
        ("en={jsonl}?columns=query", "expected two columns"),
        ("en={folder}/q.docx", "expected a file that ends in"),
        ("en={folder}/no.json", "no.json"),
    ],
)
def test_what_is_refused(spec: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "q.docx").write_text("x", encoding="utf-8")
    (tmp_path / "q.jsonl").write_text('{"query": "q", "passage": "p"}\n', encoding="utf-8")
    given = spec.format(squad=squad(tmp_path / "train.json"), folder=tmp_path, jsonl=tmp_path / "q.jsonl")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_query_passage_specs([given])


def test_half_a_surrogate_pair_has_a_place(tmp_path: Path) -> None:
    path = squad(tmp_path / "train.json")
    path.write_text(path.read_text(encoding="utf-8").replace("What is Hanoi?", "What \\ud83d?"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"train.json:1: bad JSON \(source holds half a surrogate pair\)"):
        load_query_passage_specs([f"en={path}"])
    assert len(load_query_passage_specs([f"en={path}"], skip_bad_lines=True)["en"]) == 2
