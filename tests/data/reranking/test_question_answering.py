"""Question answering as re-ranking: files in SQuAD's form, aligned, cut by article, paired, pooled; XQuAD itself."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from st_xling.data.reranking.pools import candidate_pools
from st_xling.data.reranking.question_answering import read_question_answering
from st_xling.data.reranking.specs import cut
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES, question, squad


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Three articles in three languages: cat and books; rain; apples, and a paragraph that no question is about."""
    paths = {}
    spare = {"en": "Nobody asks about this.", "zh": "没有人问这个。", "th": "ไม่มีใครถามเรื่องนี้"}
    for code in ("en", "zh", "th"):
        questions = [question(f"id{row}", QUERIES[code][row], PASSAGES[code][row][:3]) for row in range(4)]
        passages = PASSAGES[code]
        articles = [
            ("Pets & books", [(passages[0], questions[:1]), (passages[1], questions[1:2])]),
            ("Rain", [(passages[2], questions[2:3])]),
            ("", [(passages[3], questions[3:]), (spare[code], [])]),
        ]
        paths[code] = squad(tmp_path / f"{code}.json", articles)
    return paths


def test_files_that_run_parallel_are_aligned_by_place(files: dict[str, Path]) -> None:
    data = read_question_answering(files)
    assert list(data.queries) == ["en", "zh", "th"] and data.queries["th"] == QUERIES["th"]
    assert data.passages["zh"][:4] == PASSAGES["zh"], "a paragraph without questions is a candidate too"
    assert data.relevant == [[0], [1], [2], [3]] and data.articles == [0, 0, 1, 2, 2]


def test_files_without_ids_are_aligned_by_place(tmp_path: Path) -> None:
    paths = {}
    for code in ("en", "ar"):
        questions = [{**question("", QUERIES[code][row], PASSAGES[code][row]), "id": None} for row in range(2)]
        del questions[1]["id"]
        paragraphs = [(PASSAGES[code][row], [questions[row]]) for row in range(2)]
        paths[code] = squad(tmp_path / f"{code}.json", [("", paragraphs)])
    data = read_question_answering(paths)
    assert data.queries["ar"] == QUERIES["ar"][:2] and data.passages["en"] == PASSAGES["en"][:2]


def test_ids_come_before_places(tmp_path: Path) -> None:
    """Two questions of a paragraph, which the translation has the other way round."""
    questions = [question(name, text, "x") for name, text in (("a", "Where?"), ("b", "Who?"))]
    reversed_questions = [question(name, text, "x") for name, text in (("b", "Wer?"), ("a", "Wo?"))]
    paths = {
        code: squad(tmp_path / f"{code}.json", [("t", [("x", qas)])])
        for code, qas in (("en", questions), ("de", reversed_questions))
    }
    data = read_question_answering(paths)
    assert data.queries == {"en": ["Where?", "Who?"], "de": ["Wo?", "Wer?"]}


def test_training_pairs_take_negatives_of_other_paragraphs(files: dict[str, Path]) -> None:
    """In all languages the same ones, behind the relevant pairs."""
    data = read_question_answering(files)
    pairs = data.aligned_pairs(negatives_per_positive=3)
    assert pairs.languages == ("en", "zh", "th") and pairs.labels == [1] * 4 + [0] * 12
    number = {text: row for row, text in enumerate(data.passages["zh"])}
    for row in range(4):
        positive = pairs.passages["zh"][row]
        drawn = pairs.passages["zh"][4 + 3 * row : 7 + 3 * row]
        assert positive == PASSAGES["zh"][row] and len({positive, *drawn}) == 4
        assert pairs.queries["th"][4 + 3 * row : 7 + 3 * row] == [QUERIES["th"][row]] * 3
        assert pairs.passages["th"][4 + 3 * row : 7 + 3 * row] == [data.passages["th"][number[text]] for text in drawn]
    with pytest.raises(ValueError, match="cannot draw 5 negatives"):
        data.aligned_pairs(negatives_per_positive=5)


def test_other_files_are_aligned_by_id(
    files: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = json.loads(files["zh"].read_text(encoding="utf-8"))
    content["data"] = content["data"][::-1][:2]  # apples, rain
    path = tmp_path / "zh.json.gz"
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    data = read_question_answering({"en": files["en"], "zh": path})
    assert data.queries["zh"] == QUERIES["zh"][2:] and data.passages["zh"] == PASSAGES["zh"][2:]
    assert data.queries["en"] == QUERIES["en"][2:] and data.passages["en"] == PASSAGES["en"][2:]
    assert "2 x question that is not in every file" in caplog.text


def test_what_no_paragraph_answers_is_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def written(code: str, answers: list[str]) -> Path:
        qas = [question(f"id{row}", QUERIES[code][row], answer) for row, answer in enumerate(answers)]
        qas[3] = {**qas[3], "is_impossible": True, "answers": []}
        return squad(tmp_path / f"{code}.json", [("a", [(PASSAGES[code][row], [qas[row]]) for row in range(4)])])

    paths = {"en": written("en", ["cat", "books", "rained", ""]), "fr": written("fr", ["chat", "romans", "plu", ""])}
    data = read_question_answering(paths)
    assert data.queries["en"] == QUERIES["en"][:3:2] and len(data.passages["fr"]) == 4
    assert "2 questions are left" in caplog.text and "1 x fr: answer not in its paragraph" in caplog.text
    assert "1 x en: question without an answer, 1 x fr: question without an answer" in caplog.text


def test_paragraphs_are_aligned_one_to_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """MLQA cuts a paragraph in two in another language, and repeats some: the first counts."""
    questions = [question(f"id{row}", f"q{row}?", "x") for row in range(5)]
    english = squad(
        tmp_path / "en.json", [("t", [("x one", questions[:3]), ("x two", questions[3:4]), ("x TWO.", questions[4:])])]
    )
    german = squad(
        tmp_path / "de.json", [("t", [("x ein", questions[:2]), ("x eins", questions[2:3]), ("x zwei", questions[3:])])]
    )
    data = read_question_answering({"en": english, "de": german})
    assert data.passages == {"en": ["x one", "x two"], "de": ["x ein", "x zwei"]}
    assert data.queries["de"] == ["q0?", "q1?", "q3?", "q4?"] and data.relevant == [[0], [0], [1], [1]]
    assert "1 x question whose paragraphs are not each other's translations" in caplog.text


def test_questions_that_read_the_same_have_both_paragraphs(tmp_path: Path) -> None:
    questions = [question("a", "When?", "noon"), question("b", "when", "night"), question("c", "Where?", "home")]
    path = squad(
        tmp_path / "en.json", [("t", [(f"At {text}.", [qa]) for text, qa in zip(["noon", "night", "home"], questions)])]
    )
    data = read_question_answering({"en": path})
    assert data.relevant == [[0, 1], [1, 0], [2]]
    for seed in range(10):
        assert data.aligned_pairs(seed=seed).passages["en"][3:5] == ["At home.", "At home."]


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

    english = written("en", question("a", "q", "x"))
    for code, other, facts in (
        ("de", [question("b", "q", "x"), question("c", "p", "x")], "share question ids: .*en.json shares none"),
        ("fr", [question("a", "q", "x"), question("a", "p", "x")], "an id of its own for every question"),
        ("es", [question("a", "q", "y")], "no question is left of .*1 x es: answer not in its paragraph"),
    ):
        with pytest.raises(ValueError, match=facts):
            read_question_answering({"en": english, code: written(code, *other)})
    with pytest.raises(FileNotFoundError, match="the nearest name there is e[ns].json"):
        read_question_answering({"en": tmp_path / "em.json"})


def test_xquad_has_the_counts_of_table_2(real_data: Path) -> None:
    xquad = read_question_answering({code: real_data / "xquad" / f"xquad.{code}.json" for code in ("en", "zh", "ar")})
    assert (len(xquad), len(xquad.passages["ar"]), len(set(xquad.articles or ()))) == (1190, 240, 48)
    parts = cut(xquad, 0.1, 0.2)
    assert [len(set(part.articles)) for part in parts.values()] == [33, 5, 10]
    assert parts["test"] == cut(xquad, 0.0, 0.2)["test"]
    texts = [set(part.passages["ar"]) for part in parts.values()]
    assert sum(map(len, texts)) == len(set().union(*texts)) == 240
    pools = candidate_pools(xquad, query_languages=["en", "zh"])
    assert len(pools) == 1190 and pools.without_relevant == 0
    assert all(set(Counter(pool.passage_languages).values()) == {80} and sum(pool.labels) == 1 for pool in pools)
    assert 500 < sum(pool.query_language == "zh" for pool in pools) < 690
