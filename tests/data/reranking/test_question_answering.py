"""Question answering as re-ranking: files in SQuAD's form, aligned, cut by article, paired, pooled; XQuAD itself."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from st_xling.data.reranking.question_answering import QuestionAnswering, read_question_answering
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES, question, squad


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Three articles in three languages: cat and books; rain; apples, and a paragraph that no question is about."""
    paths = {}
    spare = {"en": "Nobody asks about this.", "zh": "没有人问这个。", "th": "ไม่มีใครถามเรื่องนี้"}
    for code in ("en", "zh", "th"):
        asked = [question(f"id{row}", QUERIES[code][row], PASSAGES[code][row][:3]) for row in range(4)]
        told = PASSAGES[code]
        articles = [
            ("Pets & books", [(told[0], asked[:1]), (told[1], asked[1:2])]),
            ("Rain", [(told[2], asked[2:3])]),
            ("", [(told[3], asked[3:]), (spare[code], [])]),
        ]
        paths[code] = squad(tmp_path / f"{code}.json", articles)
    return paths


def test_files_that_run_parallel_are_aligned_by_place(files: dict[str, Path]) -> None:
    data = read_question_answering(files)
    assert list(data.questions) == ["en", "zh", "th"] and data.faults == {}
    assert data.questions["th"] == QUERIES["th"] and data.passages["zh"][:4] == PASSAGES["zh"]
    assert data.question_ids == ["id0", "id1", "id2", "id3"] and data.question_passages == [0, 1, 2, 3]
    assert data.passage_articles == [0, 0, 1, 2, 2]
    assert data.passage_ids[3:] == ["article 2/0", "article 2/1"], "a paragraph without questions is a candidate too"


def test_other_files_are_aligned_by_id_and_what_is_missing_is_counted(files: dict[str, Path], tmp_path: Path) -> None:
    content = json.loads(files["zh"].read_text(encoding="utf-8"))
    content["data"] = content["data"][::-1][:2]  # apples, rain
    path = tmp_path / "zh.json.gz"
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    data = read_question_answering({"en": files["en"], "zh": path})
    assert data.question_ids == ["id2", "id3"] and data.passages["zh"] == PASSAGES["zh"][2:]
    assert data.passages["en"] == PASSAGES["en"][2:] and data.questions["zh"] == QUERIES["zh"][2:]
    assert data.faults == {"en: question that is not in every file": 2}


def test_files_without_ids_are_aligned_by_place(tmp_path: Path) -> None:
    paths = {}
    for code in ("en", "ar"):
        qas = [{**question("", QUERIES[code][row], PASSAGES[code][row]), "id": None} for row in range(2)]
        paths[code] = squad(
            tmp_path / f"{code}.json", [("", [(PASSAGES[code][row], qas[row : row + 1])]) for row in range(2)]
        )
    data = read_question_answering(paths)
    assert data.question_ids == ["question 0", "question 1"] and data.questions["ar"] == QUERIES["ar"][:2]


def test_what_no_paragraph_answers_is_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def written(code: str, answers: list[str]) -> Path:
        qas = [question(f"id{row}", QUERIES[code][row], answer) for row, answer in enumerate(answers)]
        qas[3] = {**qas[3], "is_impossible": True, "answers": []}
        return squad(tmp_path / f"{code}.json", [("a", [(PASSAGES[code][row], [qas[row]]) for row in range(4)])])

    paths = {"en": written("en", ["cat", "books", "rained", ""]), "fr": written("fr", ["chat", "romans", "plu", ""])}
    data = read_question_answering(paths)
    assert data.question_ids == ["id0", "id2"] and len(data.passage_ids) == 4
    assert data.faults == {
        "fr: answer not in its paragraph": 1, "en: question without an answer": 1, "fr: question without an answer": 1,
    }  # fmt: skip
    assert "2 questions are left" in caplog.text and "1 x fr: answer not in its paragraph" in caplog.text


def test_paragraphs_are_aligned_one_to_one(tmp_path: Path) -> None:
    """MLQA cuts a paragraph in two in another language, and repeats some: the most questions win."""
    asked = [question(f"id{row}", f"q{row}?", "x") for row in range(5)]
    whole = squad(tmp_path / "en.json", [("t", [("x one", asked[:3]), ("x two", asked[3:4]), ("x TWO.", asked[4:])])])
    cut = squad(tmp_path / "de.json", [("t", [("x ein", asked[:2]), ("x eins", asked[2:3]), ("x zwei", asked[3:])])])
    data = read_question_answering({"en": whole, "de": cut})
    assert data.passages == {"en": ["x one", "x two"], "de": ["x ein", "x zwei"]}
    assert data.question_ids == ["id0", "id1", "id3", "id4"] and data.question_passages == [0, 0, 1, 1]
    assert data.faults == {"question whose paragraphs are not each other's translations": 1}


def test_every_paragraph_is_a_candidate_for_every_question(files: dict[str, Path]) -> None:
    pools = read_question_answering(files).pools(query_languages=["en", "th"], seed=1)
    assert len(pools) == 4 and {pool.query_language for pool in pools} <= {"en", "th"}
    for row, pool in enumerate(pools):
        assert len(pool.passages) == 5 and set(Counter(pool.passage_languages).values()) == {1, 2}
        assert pool.labels == tuple(int(place == row) for place in range(5)) and pool.query_id == f"id{row}"
        assert pool.passages[row] == PASSAGES[pool.passage_languages[row]][row]
    assert (
        pools.signature == "queries:en,th-sampled|passages:en,zh,th-even|candidates:all|seed:1|without_relevant:exclude"
    )


def test_training_pairs_take_negatives_of_other_paragraphs(files: dict[str, Path]) -> None:
    data = read_question_answering(files)
    pairs = data.aligned_pairs(negatives_per_positive=3, seed=0)
    assert pairs.languages == ("en", "zh", "th") and pairs.labels == [1] * 4 + [0] * 12
    for row in range(4):
        own = pairs.passages["zh"][row]
        others = pairs.passages["zh"][4 + 3 * row : 7 + 3 * row]
        assert pairs.queries["th"][4 + 3 * row : 7 + 3 * row] == [QUERIES["th"][row]] * 3
        assert own == PASSAGES["zh"][row] and len({own, *others}) == 4
    with pytest.raises(ValueError, match="cannot draw 5 negatives"):
        data.aligned_pairs(negatives_per_positive=5)


def test_questions_that_read_the_same_have_both_paragraphs(tmp_path: Path) -> None:
    asked = [question("a", "When?", "noon"), question("b", "when", "night"), question("c", "Where?", "home")]
    path = squad(
        tmp_path / "en.json", [("t", [(f"At {text}.", [qa]) for text, qa in zip(["noon", "night", "home"], asked)])]
    )
    data = read_question_answering({"en": path})
    assert data.relevant() == [[0, 1], [0, 1], [2]]
    for seed in range(10):
        assert data.aligned_pairs(seed=seed).passages["en"][3:5] == ["At home.", "At home."]


def test_a_cut_by_shares_needs_articles(files: dict[str, Path]) -> None:
    data = read_question_answering(files)
    parts = data.split({"train": 0.5, "dev": 0.25, "test": 0.25}, seed=3)
    assert sorted(name for part in parts.values() for name in part.passage_ids) == sorted(data.passage_ids)
    with pytest.raises(ValueError, match="cannot cut 3 into 4 parts"):
        data.split(dict.fromkeys("abcd", 0.25))


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("{", "faulty.json: expected JSON, got"),
        ('{"data": [3]}', "faulty.json: expected questions in SQuAD's form, got in data: "),
        ('{"data": []}', "no question"),
        ('{"data": [{"paragraphs": [{"context": " ", "qas": []}]}]}', r"in data\[0\].paragraphs\[0\]: .*blank"),
        ('{"data": [{"paragraphs": [{"context": "c", "qas": [{"answers": []}]}]}]}', r"\[0\]: no 'question'"),
    ],
)
def test_faults_of_a_file_have_their_places(tmp_path: Path, content: str, facts: str) -> None:
    path = tmp_path / "faulty.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=facts):
        read_question_answering({"en": path})


def test_files_that_have_nothing_in_common_are_refused(tmp_path: Path) -> None:
    def written(code: str, *questions: dict[str, object]) -> Path:
        return squad(tmp_path / f"{code}.json", [("t", [("x", list(questions))])])

    one = written("en", question("a", "q", "x"))
    for code, other, facts in (
        ("de", [question("b", "q", "x"), question("c", "p", "x")], "1 ids in en, 2 ids in de, and no shared"),
        ("fr", [question("a", "q", "x"), question("a", "p", "x")], "got 1 ids for 2 questions"),
        ("es", [question("a", "q", "y")], "no question is left of .*es: answer not in its paragraph 1"),
    ):
        with pytest.raises(ValueError, match=facts):
            read_question_answering({"en": one, code: written(code, *other)})
    with pytest.raises(FileNotFoundError, match="the nearest name there is e[ns].json"):
        read_question_answering({"en": tmp_path / "em.json"})


@pytest.fixture(scope="module")
def xquad(real_data: Path) -> QuestionAnswering:
    if not (real_data / "xquad").is_dir():
        pytest.skip(f"no xquad in {real_data}")
    return read_question_answering({code: real_data / "xquad" / f"xquad.{code}.json" for code in ("en", "zh", "ar")})


def test_xquad_has_the_counts_of_table_2(xquad: QuestionAnswering) -> None:
    assert (len(xquad.question_ids), len(xquad.passage_ids), len(set(xquad.passage_articles))) == (1190, 240, 48)
    assert xquad.faults == {}
    parts = xquad.split({"train": 0.7, "dev": 0.1, "test": 0.2}, seed=0)
    assert [len(set(part.passage_articles)) for part in parts.values()] == [33, 5, 10]
    assert parts["test"] == xquad.split({"train": 0.8, "test": 0.2}, seed=0)["test"]
    texts = [set(part.passages["ar"]) for part in parts.values()]
    assert sum(map(len, texts)) == len(set().union(*texts)) == 240
    pools = xquad.pools(query_languages=["en", "zh"], passage_languages=["en", "zh"])
    assert len(pools) == 1190 and pools.without_relevant == 0
    assert all(Counter(pool.passage_languages) == {"en": 120, "zh": 120} and sum(pool.labels) == 1 for pool in pools)
    assert 500 < sum(pool.query_language == "zh" for pool in pools) < 690
