"""Text to train retrievers on: sets, tables, SQuAD's form, data sets of the Hub, the phrasebook, text alone."""

import json
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


def passage(title: str, text: str) -> dict[str, Any]:
    return {"docid": "7", "title": title, "text": text, "score": 9.5}


LISTED: dict[str, list[dict[str, Any]]] = {
    "FlagEmbedding": [
        {"query": "q1", "pos": ["p1", "也对。"], "neg": ["n1", "m1", "l1"], "prompt": "x"},
        {"query": "q2", "pos": ["p2"], "neg": ["ผิด", "m2"]},
    ],
    "sentence-transformers": [
        {"anchor": "q1", "positive": ["p1", "也对。"], "negative": ["n1", "m1"]},
        {"anchor": "q2", "positive": "p2", "negative": ["ผิด", "m2"]},
    ],
    "DPR": [
        {
            "question": "q1", "answers": ["a"], "positive_ctxs": [passage("", "p1"), passage("", "也对。")],
            "negative_ctxs": [passage("", "other")], "hard_negative_ctxs": [passage("", "n1"), passage("", "m1")],
        },
        {
            "question": "q2", "answers": [], "positive_ctxs": [passage("", "p2")],
            "negative_ctxs": [passage("", "ผิด"), passage("", "m2")], "hard_negative_ctxs": [],
        },
    ],
    "Tevatron": [
        {"query_id": 1, "query": "q1", "positive_passages": [passage("", "p1"), passage("", "也对。")],
         "negative_passages": [passage("", "n1"), passage("", "m1")]},
        {"query_id": 2, "query": "q2", "positive_passages": [passage("", "p2")],
         "negative_passages": [passage("", "ผิด"), passage("", "m2")]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
@pytest.mark.parametrize("form", LISTED)
def test_lists_of_passages(form: str, ending: str, tmp_path: Path) -> None:
    """Rows as FlagEmbedding and DPR publish them were refused as tables, and as files in SQuAD's form."""
    path = tmp_path / f"train.{ending}"
    if ending == "jsonl":
        json_lines(path, LISTED[form])
    elif ending == "json":
        path.write_text(json.dumps(LISTED[form], indent=1), encoding="utf-8")
    elif form == "sentence-transformers":
        pytest.skip("a column of Parquet has one type")
    else:
        Dataset.from_list(LISTED[form]).to_parquet(str(path))
    pairs = load_query_passage_specs([f"en={path}"])["en"]
    assert pairs.column_names[4:] == ["negative_1", "negative_2"]
    assert list(zip(pairs["source"], pairs["target"], pairs["negative_1"], pairs["negative_2"])) == [
        ("q1", "p1", "n1", "m1"), ("q1", "也对。", "n1", "m1"), ("q2", "p2", "ผิด", "m2"),
    ]  # fmt: skip
    assert len(load_query_passage_specs([f"en={path}?size=2"])["en"]) == 2


def test_lists_of_unequal_lengths(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As many negatives as every row has, which is said; a row without any is a fault, one without a passage, too."""
    rows: list[dict[str, Any]] = [
        {"query": "q1", "pos": ["p1"], "neg": ["n1", "m1"]},
        {"query": "q2", "pos": ["p2"], "neg": ["n2"]},
        {"query": "q3", "pos": ["p3"], "neg": []},
        {"query": "q4", "pos": [], "neg": ["n4"]},
        {"query": "q5", "pos": [{"title": "Titel", "text": "p5"}], "neg": ["n5"]},
        {"query": "q6", "pos": [7], "neg": ["n6"]},
    ]
    path = json_lines(tmp_path / "train.jsonl", rows)
    with pytest.raises(
        ValueError, match=r"(?s)3 faults.*:3: no negatives.*:4: no query or passage.*:6: no query or pass"
    ):
        load_query_passage_specs([f"en={path}"])
    pairs = load_query_passage_specs([f"en={path}"], skip_bad_lines=True)["en"]
    assert list(zip(pairs["target"], pairs["negative_1"])) == [("p1", "n1"), ("p2", "n2"), ("Titel p5", "n5")]
    assert "hard negatives read of each query: 1, the fewest that one has, of up to 2" in caplog.text
    chosen = load_query_passage_specs([f"en={path}?columns=query,pos"], skip_bad_lines=True)["en"]
    assert chosen["target"][:] == ["p1", "p2", "p3", "Titel p5"] and chosen.column_names[4:] == []


def test_a_json_file_of_rows_is_no_squad(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An array of queries and passages was read as questions in SQuAD's form; rows with the label 0 are no pairs."""
    rows = [{"query": "q1", "passage": "p1", "label": 1}, {"query": "q1", "passage": "p2", "label": 0}]
    path = tmp_path / "train.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    assert load_query_passage_specs([f"en={path}"])["en"]["target"][:] == ["p1"]
    assert "1 row with label 0 left out" in caplog.text


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
        ("en={folder}/q.dat", "expected a file ending in"),
        ("en={folder}/q.txt", "the nearest name there is q."),
        ("en={folder}/q.jsonl?split=dev", "takes no split"),
        ("q.jsonl", "which names no language"),
    ],
)
def test_what_is_refused(spec: str, message: str, tmp_path: Path) -> None:
    lines(tmp_path / "q.dat", ["x"])
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
