"""Passages, queries, qrels and whole sets: published layouts, streaming, faults together."""

from __future__ import annotations

from pathlib import Path

import pytest

from st_xling.data import ParallelTextError
from st_xling.data.retrieval import (
    Passages,
    load_query_passage_specs,
    load_retrieval_specs,
    query_passages,
    read_qrels,
    read_queries,
    read_retrieval_set,
)
from tests.retrieval_files import ENGLISH, OTHERS, beir, json_lines, lines, raw, translated


def test_passages_stream_in_order_and_again(tmp_path: Path) -> None:
    rows = [{"docid": f"{row}#0", "title": f" Title {row} ", "text": f"body {row}"} for row in range(10)]
    first = json_lines(tmp_path / "docs-0.jsonl.gz", rows[:4])
    passages = Passages([first, json_lines(tmp_path / "docs-1.jsonl", rows[4:])])
    whole = [f"Title {row} body {row}" for row in range(10)]
    assert len(passages) == 10 and list(passages.ids) == [f"{row}#0" for row in range(10)]
    assert passages[0:3] + passages[3:8] + passages[8:20] == whole and list(passages) == whole
    assert passages[2:4] == whole[2:4] and passages[-1] == whole[9] and passages[5] == whole[5]
    assert dict(passages.records())["7#0"] == whole[7]
    with pytest.raises(ValueError, match="in order: got a slice with step 2"):
        passages[0:4:2]


def test_passages_change_under_the_reader(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "corpus.jsonl", [{"_id": f"p{row}", "text": "x"} for row in range(5)])
    passages = Passages(path)
    json_lines(path, [{"_id": "p0", "text": "x"}])
    with pytest.raises(ValueError, match="changed while they were read: got 1 of 5"):
        list(passages)


def test_faulty_passages_are_reported_together_or_left_out(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "corpus.jsonl",
        [
            '{"_id": "a", "text": "one"}',
            "no json",
            '{"_id": "a", "text": "two"}',
            '{"_id": "b"}',
            '{"id": 7, "contents": "ok"}',
        ],
    )
    with pytest.raises(ParallelTextError, match=r"(?s)expected passages.*3 faults.*:2: bad JSON.*:4: no id or text.*"):
        Passages(path)
    kept = Passages(path, skip_bad_lines=True)
    assert list(kept.ids) == ["a", "7"] and list(kept) == ["one", "ok"]
    with pytest.raises(ValueError, match="expected passages in .*: got none"):
        Passages(raw(tmp_path / "empty.jsonl", b""))


def test_qrels_of_trec_and_beir(tmp_path: Path) -> None:
    trec = lines(tmp_path / "qrels.txt", ["q1 0 d1 1", "q1\tQ0\td2\t0", "q2 0 d3 2"])
    plain = lines(tmp_path / "qrels.tsv", ["query-id\tcorpus-id\tscore", "q1\td1\t1", "q 2\td 3\t2"])
    assert read_qrels(trec) == {"q1": {"d1": 1}, "q2": {"d3": 2}}
    assert read_qrels(plain) == {"q1": {"d1": 1}, "q 2": {"d 3": 2}}


def test_unknown_passages_are_counted_and_listed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = lines(
        tmp_path / "qrels.txt", ["q 0 here 1", "q 0 gone 1", "q 0 away 1", "q 0 unjudged 0", "q here", "q 0 here 2"]
    )
    with pytest.raises(
        ParallelTextError, match=r"(?s)4 faults.*:2: unknown passage \(gone is not in.*away.*two grades"
    ):
        read_qrels(path, passages={"here"})
    assert read_qrels(path, passages={"here"}, skip_bad_lines=True) == {"q": {"here": 1}}
    assert "2 unknown passage" in caplog.text


def test_queries_of_tsv_and_json_lines(tmp_path: Path) -> None:
    topics = lines(tmp_path / "topics.tsv", ['1\tWhat is "this"?', "2\t什么时候？"])
    assert read_queries(topics) == {"1": 'What is "this"?', "2": "什么时候？"}
    assert read_queries(json_lines(tmp_path / "q.jsonl", [{"_id": 3, "text": "متى؟"}])) == {"3": "متى؟"}
    bad = lines(tmp_path / "bad.tsv", ["1\tone", "1\ttwo", "no tab", "2\t "])
    with pytest.raises(ParallelTextError, match=r"(?s)3 faults.*:2: id twice.*:3: wrong columns.*:4: no id or text"):
        read_queries(bad)


def test_beir_with_queries_by_language(tmp_path: Path) -> None:
    found = read_retrieval_set(translated(tmp_path / "set"), language="xx")
    assert found.language == "xx" and list(found.passages) == OTHERS
    assert found.queries["en"]["q3"] == ENGLISH[3] and found.relevant["q3"] == {"p3": 1}
    assert read_retrieval_set(tmp_path / "set", language="xx", query_languages=["en"]).queries.keys() == {"en"}
    with pytest.raises(ValueError, match="has queries in en, xx: asked for fr"):
        read_retrieval_set(tmp_path / "set", language="xx", query_languages=["fr"])


def test_plain_beir_with_a_folder_of_qrels(tmp_path: Path) -> None:
    json_lines(tmp_path / "corpus.jsonl", [{"_id": "d", "title": "T", "text": "text"}])
    json_lines(tmp_path / "queries.jsonl", [{"_id": "q", "text": "asked"}, {"_id": "r", "text": "unanswered"}])
    lines(tmp_path / "qrels" / "dev.tsv", ["query-id\tcorpus-id\tscore", "q\td\t1", "elsewhere\td\t1"])
    found = read_retrieval_set(tmp_path, language="en", split="dev")
    assert found.queries == {"en": {"q": "asked"}} and found.n_without_relevant == {"en": 1} and found.n_absent == 1
    with pytest.raises(FileNotFoundError, match=r"expected qrels of split 'test'.*qrels/test.tsv"):
        read_retrieval_set(tmp_path, language="en")


def test_mr_tydi_and_miracl(tmp_path: Path) -> None:
    tydi = tmp_path / "mrtydi-v1.1-finnish"
    json_lines(tydi / "collection" / "docs.jsonl.gz", [{"id": "1#0", "contents": "Helsinki\n\npääkaupunki"}])
    lines(tydi / "topic.test.tsv", ["0\tMikä on Suomen pääkaupunki?"])
    lines(tydi / "qrels.test.txt", ["0 Q0 1#0 1"])
    found = read_retrieval_set(tydi, language="fi")
    assert list(found.passages) == ["Helsinki\n\npääkaupunki"] and found.relevant == {"0": {"1#0": 1}}
    miracl = tmp_path / "miracl"
    for part in range(11):  # docs-10 comes after docs-9
        folder = miracl / "miracl-corpus-v1.0-fi"
        json_lines(folder / f"docs-{part}.jsonl.gz", [{"docid": f"{part}#0", "title": "", "text": f"osa {part}"}])
    lines(miracl / "miracl-v1.0-fi" / "topics" / "topics.miracl-v1.0-fi-dev.tsv", ["5\tMissä?"])
    lines(miracl / "miracl-v1.0-fi" / "qrels" / "qrels.miracl-v1.0-fi-dev.tsv", ["5\tQ0\t10#0\t1", "5\tQ0\t2#0\t0"])
    [found] = load_retrieval_specs([f"fi={miracl}?split=dev"])
    assert list(found.passages) == [f"osa {part}" for part in range(11)] and found.relevant == {"5": {"10#0": 1}}
    apart = f"fi={miracl / 'miracl-v1.0-fi'}?split=dev&corpus={miracl / 'miracl-corpus-v1.0-fi'}"
    assert load_retrieval_specs([apart])[0].sha256 == found.sha256


def test_mr_tydi_with_passages_beside_the_queries(tmp_path: Path) -> None:
    passage = {"docid": "1#0", "title": "Hanoi", "text": "là thủ đô."}
    json_lines(tmp_path / "corpus.jsonl.gz", [passage])
    row = {"query_id": "9", "query": "Thủ đô?", "positive_passages": [passage], "negative_passages": []}
    json_lines(tmp_path / "train.jsonl.gz", [row])
    found = read_retrieval_set(tmp_path, language="vi", split="train")
    assert found.queries == {"vi": {"9": "Thủ đô?"}} and found.relevant == {"9": {"1#0": 1}}
    pairs = load_query_passage_specs([f"vi={tmp_path}"])["vi"]
    assert pairs[:] == query_passages(found)[:] and pairs[0]["target"] == "Hanoi là thủ đô."
    unknown = {**row, "positive_passages": [{**passage, "docid": "2#0"}]}
    json_lines(tmp_path / "test.jsonl", [unknown])
    with pytest.raises(ParallelTextError, match=r"unknown passage \(2#0, of query 9"):
        read_retrieval_set(tmp_path, language="vi")


def test_languages_without_relevant_passages(tmp_path: Path) -> None:
    asked = {"de": {"a": "Wo?"}, "en": {"b": "Where?"}, "fr": {"c": "Où ?"}}
    folder = beir(tmp_path / "set", {"p": "hier"}, asked, [("a", "p", 1), ("b", "p", 0)])
    with pytest.raises(ValueError, match=r"has none for en \(1 queries\), fr \(1 queries\)"):
        read_retrieval_set(folder, language="de")


def test_query_passage_specs(tmp_path: Path) -> None:
    table = lines(tmp_path / "nq.tsv", ['Who said "no"?\tHe did.', "When?\tIn 1900."])
    objects = json_lines(tmp_path / "more.jsonl", [{"query": "Where?", "passage": "Here.", "id": 3}])
    folder = translated(tmp_path / "set")
    pairs = load_query_passage_specs([f"queries={table}", f"en={objects}", f"xx={folder}?queries=en"])
    assert list(pairs) == ["en", "en-2", "xx"]
    assert pairs["en"][0]["source"] == 'Who said "no"?' and pairs["en"][1]["target"] == "In 1900."
    assert pairs["en-2"][:]["target"] == ["Here."] and pairs["en-2"][0]["source_language"] == "en"
    assert pairs["xx"][:]["source"] == ENGLISH and pairs["xx"][:]["target"] == OTHERS
    for bad in ("nq.tsv", f"en={tmp_path / 'more.txt'}", f"en={table}?split=dev", "en=a?where=b"):
        with pytest.raises(ValueError, match=r"expected|leave these out"):
            load_query_passage_specs([bad])


def test_a_sample_of_queries_keeps_all_passages_and_a_query_in_all_its_languages(tmp_path: Path) -> None:
    from st_xling.data.retrieval import load_query_passage_specs, load_retrieval_specs, read_others

    def lines(prefix: str) -> str:
        return "".join(f'{{"_id": "{row}", "text": "{prefix} {row}"}}\n' for row in range(9))

    for name in ("corpus", "queries.de", "queries.en"):
        (tmp_path / f"{name}.jsonl").write_text(lines(name), encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("".join(f"{row}\t{row}\t1\n" for row in range(9)))
    (found,) = load_retrieval_specs([f"de={tmp_path}?size=4&seed=2"])
    assert len(found.passages) == 9 and list(found.queries["de"]) == list(found.queries["en"])
    assert list(found.queries["de"]) == sorted(found.relevant) and len(found.relevant) == 4
    (pairs,) = load_query_passage_specs([f"de={tmp_path}?size=5&split=test"]).values()
    assert len(pairs) == 5 and all(a.split()[1] == b.split()[1] for a, b in zip(pairs["source"], pairs["target"]))
    others = read_others(f"{tmp_path}/corpus.jsonl?size=3&seed=1", language="sw")
    assert len(others) == 3 and others["source"][:] == sorted(others["source"][:])
    for spec in (f"de={tmp_path}?size=0", f"de={tmp_path}?seed=1", f"de={tmp_path}?size=2&seed=-1"):
        with pytest.raises(ValueError, match=r"size=|seed="):
            load_retrieval_specs([spec])
        with pytest.raises(ValueError, match=r"size=|seed="):
            load_query_passage_specs([spec])
