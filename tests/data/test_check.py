"""What no reader may let through: half of a surrogate pair, which JSON can spell and no encoder can read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from st_xling.data.reranking.insurance_qa import read_insurance_qa
from st_xling.data.reranking.question_answering import read_question_answering
from st_xling.data.reranking.specs import load_pair_specs
from st_xling.data.retrieval import load_query_passage_specs, read_queries
from st_xling.data.retrieval.files import read_passages
from st_xling.data.transfer_sets import read_pairs
from st_xling.reranking.rerank_files import TextRecords
from tests.data.reranking.aligned_sentences import question, squad, write_translation
from tests.retrieval_files import lines

HALF = "Was \\ud83d"
"""A message that was cut off in the middle of an emoji, as JSON spells it."""

PASSAGE = {"docid": "1", "title": "", "text": "HALF"}
SQUAD = [("t", [("Hanoi.", [question("a", "HALF", "Hanoi")]), ("Spree.", [question("b", "Was?", "Spree")])])]

# What the file has, how it is read, and where the fault is.
BROKEN: dict[str, tuple[list[Any], Callable[[Path], Any], str]] = {
    "labeled pairs": (
        [{"query": "HALF", "passage": "ja", "label": 1}],
        lambda path: load_pair_specs([f"de={path}"]),
        ":1: bad JSON .query",
    ),
    "XNLI": (
        [{"gold_label": "neutral", "sentence1": "ja", "sentence2": "HALF"}],
        lambda path: read_pairs(path, "XNLI"),
        ":1: bad JSON .sentence2",
    ),
    "passages": (
        [{"_id": "b", "text": "ja"}, {"_id": "a", "text": "HALF"}],
        lambda path: read_passages([path]),
        ":2: ",
    ),
    "queries": ([{"_id": "a", "text": "HALF"}], read_queries, ":1: bad JSON .text"),
    "queries with passages": (
        [{"query_id": "1", "query": "Was?", "positive_passages": [PASSAGE]}],
        lambda path: load_query_passage_specs([f"de={path.rename(path.with_name('train.jsonl')).parent}"]),
        "train.jsonl:1: bad JSON .a passage",
    ),
    "texts to rank": ([{"id": "a", "text": "HALF"}], lambda path: TextRecords(path, "queries"), ":1: bad line"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_half_a_surrogate_pair_has_a_place(kind: str, tmp_path: Path) -> None:
    """Messages that a platform cut off inside an emoji ended hours later in a traceback of the tokenizer."""
    rows, read, where = BROKEN[kind]
    path = lines(tmp_path / "rows.jsonl", [json.dumps(row).replace("HALF", HALF) for row in rows])
    with pytest.raises(ValueError, match=rf"{where}(.|\n)*half a surrogate pair"):
        read(path)


def test_faulty_passages_and_queries_can_be_skipped(tmp_path: Path) -> None:
    rows = ['{"_id": "b", "text": "ja"}', json.dumps({"_id": "a", "text": "HALF"}).replace("HALF", HALF)]
    path = lines(tmp_path / "rows.jsonl", rows)
    assert list(read_passages([path], skip_bad_lines=True)) == ["ja"]
    assert read_queries(path, skip_bad_lines=True) == {"b": "ja"}


def test_half_a_surrogate_pair_in_a_document_has_a_place(tmp_path: Path) -> None:
    """Of JSON that is one document there is no line to name."""
    path = squad(tmp_path / "train.json", SQUAD)
    path.write_text(path.read_text(encoding="utf-8").replace("HALF", HALF), encoding="utf-8")
    for read in (read_question_answering, lambda paths: load_query_passage_specs([f"en={paths['en']}"])):
        with pytest.raises(ValueError, match=r"train.json: .*data\[0\].paragraphs\[0\]: .*half a surrogate pair"):
            read({"en": path})
    folder = write_translation(tmp_path / "zh")
    (folder / "pool" / "answers.json.gz").unlink()
    answers = {str(label): {"zh": "HALF" if label == 13 else "好"} for label in range(11, 20)}
    (folder / "pool" / "answers.json").write_text(json.dumps(answers).replace("HALF", HALF), encoding="utf-8")
    with pytest.raises(ValueError, match="zh: .*half a surrogate pair in 'Was .*ud83d"):
        read_insurance_qa({"zh": folder})
