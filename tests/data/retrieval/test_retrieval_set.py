"""Retrieval sets: passages, queries and qrels in the published layouts, XQuAD-R, the phrasebook; faults together."""

from pathlib import Path
from typing import Any

import pytest

from st_xling.data import ParallelTextError, retrieval
from st_xling.data.retrieval.files import read_passages
from st_xling.evaluation.retrieval_search import retrieval_pools
from tests.retrieval_files import ENGLISH, OTHERS, beir, json_lines, lines, raw, translated
from tests.xquad_r_files import TEXTS, write_xquad_r


def test_passages_are_in_order(tmp_path: Path) -> None:
    rows = [{"docid": f"{row}#0", "title": f" Title {row} ", "text": f"body {row}"} for row in range(10)]
    first = json_lines(tmp_path / "docs-0.jsonl.gz", rows[:4])
    passages = read_passages([first, json_lines(tmp_path / "docs-1.jsonl", rows[4:])])
    whole = [f"Title {row} body {row}" for row in range(10)]
    assert len(passages) == 10 and list(passages.ids) == [f"{row}#0" for row in range(10)]
    assert passages[0:3] + passages[3:20] == list(passages) == whole
    assert passages[2:4] == whole[2:4] and passages[-1] == whole[9] and passages[5] == whole[5]
    same = retrieval.Passages((f"{row}#0", text) for row, text in enumerate(whole))
    assert (same.ids, same.sha256, list(same)) == (passages.ids, passages.sha256, whole)


def test_faulty_passages_are_reported_together_or_left_out(tmp_path: Path) -> None:
    faulty = ["no json", '{"_id": "a", "text": "two"}', '{"_id": "b"}']
    path = lines(tmp_path / "corpus.jsonl", ['{"_id": "a", "text": "one"}', *faulty, '{"id": 7, "contents": "ok"}'])
    with pytest.raises(ParallelTextError, match=r"(?s)expected passages.*3 faults.*:2: bad JSON.*:4: no id or text.*"):
        read_passages([path])
    kept = read_passages([path], skip_bad_lines=True)
    assert list(kept.ids) == ["a", "7"] and list(kept) == ["one", "ok"]
    with pytest.raises(ValueError, match="expected passages in .*: got none"):
        read_passages([raw(tmp_path / "empty.jsonl", b"")])


def test_qrels_of_trec_and_beir(tmp_path: Path) -> None:
    trec = lines(tmp_path / "qrels.txt", ["q1 0 d1 1", "q1\tQ0\td2\t0", "q2 0 d3 2"])
    plain = lines(tmp_path / "qrels.tsv", ["query-id\tcorpus-id\tscore", "q1\td1\t1", "q 2\td 3\t2"])
    assert retrieval.read_qrels(trec) == {"q1": {"d1": 1}, "q2": {"d3": 2}}
    assert retrieval.read_qrels(plain) == {"q1": {"d1": 1}, "q 2": {"d 3": 2}}


def test_a_query_of_grade_0_is_judged(tmp_path: Path) -> None:
    """A query for which everything judged is irrelevant was left out of the mean, which was too good."""
    trec = lines(tmp_path / "qrels.txt", ["q1 0 d1 1", "q2 0 d1 0", "q2 0 d2 -1"])
    assert retrieval.read_qrels(trec) == {"q1": {"d1": 1}, "q2": {}}
    passages = {"p": "there"}
    queries = {"en": {"a": "one", "b": "two", "c": "never judged"}}
    folder = beir(tmp_path / "set", passages, queries, [("a", "p", 1), ("b", "p", 0)])
    retrieval_set = retrieval.read_retrieval_set(folder, language="en")
    assert retrieval_set.queries == {"en": {"a": "one", "b": "two"}} and retrieval_set.n_without_relevant == 1
    assert list(retrieval.query_passages(retrieval_set)["source"]) == ["one"]  # no pair to train on


def test_judged_queries_that_are_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Qrels of another split, or a file of queries that was cut, went unnoticed: the mean was over what was left."""
    queries = {"en": {"a": "one"}, "de": {"a": "eins", "b": "zwei"}}
    folder = beir(tmp_path / "set", {"p": "there"}, queries, [(name, "p", 1) for name in ("a", "b", "x", "y")])
    retrieval.read_retrieval_set(folder, language="en")
    assert "2 queries of the qrels are not among the queries, such as x" in caplog.text
    caplog.clear()
    retrieval.read_retrieval_set(folder, language="en", query_languages=["en"])  # b is asked in German alone
    assert "not among the queries" not in caplog.text


def test_faulty_qrels(tmp_path: Path) -> None:
    path = lines(tmp_path / "qrels.txt", ["q 0 here 1", "q 0 unjudged 0", "q here", "q 0 here 2"])
    with pytest.raises(ParallelTextError, match=r"(?s)2 faults.*:3: wrong columns.*:4: two grades"):
        retrieval.read_qrels(path)
    assert retrieval.read_qrels(path, skip_bad_lines=True) == {"q": {"here": 1}}


def test_queries_of_tsv_and_json_lines(tmp_path: Path) -> None:
    topics = lines(tmp_path / "topics.tsv", ['1\tWhat is "this"?', "2\t什么时候？"])
    assert retrieval.read_queries(topics) == {"1": 'What is "this"?', "2": "什么时候？"}
    headed = lines(tmp_path / "headed.tsv", ["query_id\tquery", "1\tWo?"])
    assert retrieval.read_queries(headed) == {"1": "Wo?"}  # the header was a query, too
    assert retrieval.read_queries(json_lines(tmp_path / "q.jsonl", [{"_id": 3, "text": "متى؟"}])) == {"3": "متى؟"}
    bad = lines(tmp_path / "bad.tsv", ["1\tone", "1\ttwo", "no tab", "2\t "])
    with pytest.raises(ParallelTextError, match=r"(?s)3 faults.*:2: id twice.*:3: wrong columns.*:4: no id or text"):
        retrieval.read_queries(bad)


def test_beir_with_queries_by_language(tmp_path: Path) -> None:
    retrieval_set = retrieval.read_retrieval_set(translated(tmp_path / "set"), language="xx")
    assert retrieval_set.language == "xx" and list(retrieval_set.passages) == OTHERS
    assert retrieval_set.queries["en"]["q3"] == ENGLISH[3] and retrieval_set.relevant["q3"] == {"p3": 1}
    chosen = retrieval.read_retrieval_set(tmp_path / "set", language="xx", query_languages=["en"])
    assert chosen.queries.keys() == {"en"}
    with pytest.raises(ValueError, match="has queries in en, xx: asked for fr"):
        retrieval.read_retrieval_set(tmp_path / "set", language="xx", query_languages=["fr"])


def test_plain_beir_with_a_folder_of_qrels(tmp_path: Path) -> None:
    json_lines(tmp_path / "corpus.jsonl", [{"_id": "d", "title": "T", "text": "text"}])
    json_lines(tmp_path / "queries.jsonl", [{"_id": "q", "text": "asked"}, {"_id": "r", "text": "unanswered"}])
    lines(tmp_path / "qrels" / "dev.tsv", ["query-id\tcorpus-id\tscore", "q\td\t1", "elsewhere\td\t1"])
    retrieval_set = retrieval.read_retrieval_set(tmp_path, language="en", split="dev")
    assert retrieval_set.queries == {"en": {"q": "asked"}} and retrieval_set.n_without_relevant == 1
    with pytest.raises(FileNotFoundError, match=r"expected qrels of split 'test'.*qrels/test.tsv"):
        retrieval.read_retrieval_set(tmp_path, language="en")


def test_mr_tydi_and_miracl(tmp_path: Path) -> None:
    tydi = tmp_path / "mrtydi-v1.1-finnish"
    json_lines(tydi / "collection" / "docs.jsonl.gz", [{"id": "1#0", "contents": "Helsinki\n\npääkaupunki"}])
    lines(tydi / "topic.test.tsv", ["0\tMikä on Suomen pääkaupunki?"])
    lines(tydi / "qrels.test.txt", ["0 Q0 1#0 1"])
    retrieval_set = retrieval.read_retrieval_set(tydi, language="fi")
    assert list(retrieval_set.passages) == ["Helsinki\n\npääkaupunki"] and retrieval_set.relevant == {"0": {"1#0": 1}}
    miracl = tmp_path / "miracl"
    for part in range(11):  # docs-10 comes after docs-9
        folder = miracl / "miracl-corpus-v1.0-fi"
        json_lines(folder / f"docs-{part}.jsonl.gz", [{"docid": f"{part}#0", "title": "", "text": f"osa {part}"}])
    lines(miracl / "miracl-v1.0-fi" / "topics" / "topics.miracl-v1.0-fi-dev.tsv", ["5\tMissä?"])
    lines(miracl / "miracl-v1.0-fi" / "qrels" / "qrels.miracl-v1.0-fi-dev.tsv", ["5\tQ0\t10#0\t1", "5\tQ0\t2#0\t0"])
    [retrieval_set] = retrieval.load_retrieval_specs([f"fi={miracl}?split=dev"])
    assert list(retrieval_set.passages) == [f"osa {part}" for part in range(11)]
    assert retrieval_set.relevant == {"5": {"10#0": 1}}


def test_mr_tydi_with_passages_beside_the_queries(tmp_path: Path) -> None:
    passage = {"docid": "1#0", "title": "Hanoi", "text": "là thủ đô."}
    json_lines(tmp_path / "corpus.jsonl.gz", [passage])
    row = {"query_id": "9", "query": "Thủ đô?", "positive_passages": [passage], "negative_passages": []}
    json_lines(tmp_path / "train.jsonl.gz", [row])
    retrieval_set = retrieval.read_retrieval_set(tmp_path, language="vi", split="train")
    assert retrieval_set.queries == {"vi": {"9": "Thủ đô?"}} and retrieval_set.relevant == {"9": {"1#0": 1}}
    pairs = retrieval.load_query_passage_specs([f"vi={tmp_path}"])["vi"]
    assert pairs[:] == retrieval.query_passages(retrieval_set)[:] and pairs[0]["target"] == "Hanoi là thủ đô."


def test_unknown_passages(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    queries = {"de": {"a": "Wo?", "b": "Wer?"}}
    folder = beir(tmp_path / "set", {"p": "hier"}, queries, [("a", "p", 1), ("a", "gone", 1), ("b", "away", 1)])
    with pytest.raises(ParallelTextError, match="2 relevant passages are not in the corpus, such as away"):
        retrieval.read_retrieval_set(folder, language="de")
    retrieval_set = retrieval.read_retrieval_set(folder, language="de", skip_bad_lines=True)
    assert retrieval_set.relevant == {"a": {"p": 1}} and retrieval_set.n_without_relevant == 1
    assert "such as away" in caplog.text


def test_languages_without_relevant_passages(tmp_path: Path) -> None:
    queries = {"de": {"a": "Wo?"}, "en": {"b": "Where?"}, "fr": {"c": "Où ?"}}
    folder = beir(tmp_path / "set", {"p": "hier"}, queries, [("a", "p", 1), ("b", "p", 0)])
    with pytest.raises(ValueError, match=r"has none for en \(1 queries\), fr \(1 queries\)"):
        retrieval.read_retrieval_set(folder, language="de")


def test_sentences_of_every_language_answer_questions_in_any(tmp_path: Path) -> None:
    sets = retrieval.read_xquad_r({code: write_xquad_r(tmp_path, code) for code in TEXTS})
    assert [(sentences.language, list(sentences.passages)) for sentences in sets] == [
        (code, TEXTS[code][0]) for code in TEXTS
    ]
    for sentences in sets:
        assert {code: list(queries.values()) for code, queries in sentences.queries.items()} == {
            code: TEXTS[code][1] for code in TEXTS
        }
        assert sentences.relevant == {"q0": {"0/0": 1}, "q1": {"0/2": 1}}
    [pool] = retrieval_pools(sets, mixed=True)
    assert len(pool.queries) == 4 and len(list(pool.passages)) == len(pool.passage_ids) == 6
    assert {query.id: set(query.relevant) for query in pool.queries}["zh:q1"] == {"en:0/2", "zh:0/2"}


def test_specs_of_xquad_r(tmp_path: Path) -> None:
    specs = [f"{code}={write_xquad_r(tmp_path, code)}" for code in TEXTS]
    sets = retrieval.load_retrieval_specs([f"{spec}?size=1&seed=1" for spec in specs], query_languages=["zh"])
    assert [list(sentences.queries) for sentences in sets] == [["zh"], ["zh"]]
    assert sets[0].queries == sets[1].queries and len(sets[0].queries["zh"]) == 1
    assert len(sets[0].passages) == 3 and sets[0].relevant.keys() == sets[0].queries["zh"].keys()
    with pytest.raises(ValueError, match="one file a language"):
        retrieval.load_retrieval_specs([specs[0], specs[0]])


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"sentence_breaks": None}, r"got in data\[0\].paragraphs\[0\]: "),
        ({"sentence_breaks": [[0, 15], [10, 20]]}, r"got \[10, 20\]"),
        ({"sentence_breaks": [[0, 1500]]}, r"got \[0, 1500\]"),
        ({"sentence_breaks": [[5, 15]]}, r"answer_start: expected a place in a sentence, got 4"),
    ],
)
def test_faults_of_xquad_r(tmp_path: Path, changes: dict[str, Any], fact: str) -> None:
    with pytest.raises(ValueError, match=fact):
        retrieval.read_xquad_r({"en": write_xquad_r(tmp_path, "en", **changes)})


def test_xquad_r_itself(real_data: Path) -> None:
    """Candidates by language as LAReQA counts them; a relevant sentence in every language for every question."""
    folder = real_data / "xquad_r"
    sets = retrieval.read_xquad_r({code: folder / f"{code}.json.gz" for code in ("ar", "en", "zh")})
    assert {found.language: len(found.passages) for found in sets} == {"ar": 1222, "en": 1180, "zh": 1196}
    queries = retrieval_pools(sets, mixed=True)[0].queries
    assert len(queries) == 3 * 1190 and all(len(query.relevant) == 3 for query in queries)


def test_specs_of_the_phrasebook() -> None:
    sets = retrieval.load_retrieval_specs(
        ["de=phrasebook?size=4&queries=de,en", "zh=phrasebook?split=dev&size=3&seed=2"]
    )
    assert [retrieval_set.language for retrieval_set in sets] == ["de", "zh"]
    assert {code: list(queries) for code, queries in sets[0].queries.items()} == {
        code: [f"test-0-{number}" for number in range(4)] for code in ("de", "en")
    }
    assert list(sets[1].queries) == ["zh"] and sets[1].relevant["dev-2-1"] == {"dev-2-1": 1}
    (chosen,) = retrieval.load_retrieval_specs(["de=phrasebook?size=2"], split="dev", query_languages=["fr", "en"])
    assert list(chosen.queries) == ["fr", "en"] and list(chosen.passages.ids) == ["dev-0-0", "dev-0-1"]
    for spec in ("de-en=set", "set"):
        with pytest.raises(ValueError, match=f"expected xx=FOLDER.*got '{spec}', which names (de and en|no language)"):
            retrieval.load_retrieval_specs([spec])
