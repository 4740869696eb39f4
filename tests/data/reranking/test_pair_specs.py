"""What the command line's ``--data`` may say: SQuAD's form, labelled files, folders, parallel text; what it may not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from st_xling.data.reranking.specs import is_pair_spec, load_pair_specs, load_pool_specs, load_xpi_specs
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES, question, squad

CODES = ("en", "zh", "ar")


def questions(folder: Path, articles: int = 10) -> list[str]:
    specs = []
    for code in CODES:
        told = [
            (
                f"t{row}",
                [
                    (f"p{row}.{part} {code}", [question(f"i{row}.{part}", f"q{row}.{part} {code}", f"p{row}")])
                    for part in range(2)
                ],
            )
            for row in range(articles)
        ]
        specs.append(f"{code}={squad(folder / f'{code}.json', told)}")
    return specs


def labelled(folder: Path, ending: str, labels: list[int], *, codes: tuple[str, ...] = CODES) -> list[str]:
    specs = []
    for code in codes:
        rows = [(f"q{row // 2} {code}", f'"p{row} {code}', label) for row, label in enumerate(labels)]
        if ending.startswith(".jsonl"):
            text = "".join(json.dumps({"query": q, "passage": p, "label": label}) + "\n" for q, p, label in rows)
        else:
            text = "query\tpassage\tlabel\n" * (code == "zh") + "".join(f"{q}\t{p}\t{label}\n" for q, p, label in rows)
        path = folder / f"pairs.{code}{ending}"
        path.write_bytes(gzip.compress(text.encode()) if ending.endswith(".gz") else text.encode())
        specs.append(f"{code}={path}")
    return specs


def test_a_pair_spec_names_one_language() -> None:
    assert all(map(is_pair_spec, ["en=x.json", "zh-CN=x.tsv", "sr-Latn=x", "swa=a=b"]))
    assert not any(map(is_pair_spec, ["de-en=x.tsv", "x.tsv", "phrasebook:de", "en=", "English=x"]))


def test_articles_are_held_out_of_questions(tmp_path: Path) -> None:
    specs = questions(tmp_path)
    data = load_pair_specs(specs, dev_share=0.2, test_share=0.3, negatives_per_positive=2, hard_negatives=1, seed=5)
    assert data.train.languages == CODES and len(data.train) == 5 * 2 * 3
    assert data.dev is not None and len(data.dev) == 4 and len(data.dev[0].passages) == 4
    test = load_pool_specs(specs, split="test", dev_share=0.2, test_share=0.3, seed=5)
    again = load_pool_specs(specs, split="dev", dev_share=0.2, test_share=0.3, seed=5)
    assert again == data.dev and len(test) == 6
    trained = {text.split(".")[0] for text in data.train.passages["en"]}
    shown = [{text.split(".")[0] for text in pools[0].passages} for pools in (data.dev, test)]
    assert len(trained) == 5 and len(shown[0]) == 2 and len(shown[1]) == 3 and len(trained.union(*shown)) == 10
    assert len(load_pool_specs(specs)) == 20 and len(load_pool_specs(specs, max_candidates=7)[0].passages) == 7
    assert set(load_pool_specs(specs, query_languages=["zh"], passage_languages=["ar"])[0].passage_languages) == {"ar"}
    assert load_pair_specs(specs, dev_share=0).dev is None


def test_a_development_set_of_its_own_is_taken_whole(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    data = load_pair_specs(questions(tmp_path), dev=questions(tmp_path / "dev", articles=3)[:2])
    assert len(data.train) == 40 and data.dev is not None and len(data.dev) == 6
    assert set(data.dev[0].passage_languages) == {"en", "zh"}


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".tsv", ".tsv.gz"])
def test_labelled_files_keep_their_negatives(tmp_path: Path, ending: str) -> None:
    data = load_pair_specs(labelled(tmp_path, ending, [1, 0] * 10), dev_share=0.2)
    assert len(data.train) == 16 and sum(data.train.labels) == 8 and data.train.passages["ar"][0][0] == '"'
    assert data.dev is not None and len(data.dev) == 2 and {len(pool.passages) for pool in data.dev} == {2}
    assert not {pool.query[:2] for pool in data.dev} & {query[:2] for query in data.train.queries["en"]}
    more = load_pair_specs(labelled(tmp_path, ending, [1, 0] * 10), dev_share=0, negatives_per_positive=3)
    assert len(more.train) == 20 + 30


def test_files_of_relevant_pairs_get_negatives_and_all_candidates(tmp_path: Path) -> None:
    data = load_pair_specs(labelled(tmp_path, ".tsv", [1] * 20), dev_share=0.3)
    assert data.train.labels == [1] * 14 + [0] * 14
    assert data.dev is not None and [(len(pool.passages), sum(pool.labels)) for pool in data.dev] == [(2, 2)] * 3
    single = load_pool_specs(labelled(tmp_path, ".jsonl", [1, 1, 0, 1]), without_relevant="keep")
    assert "candidates:own" in single.signature


def test_rows_with_one_passage_a_query_have_every_passage_as_candidate(tmp_path: Path) -> None:
    specs = []
    for code in ("th", "fr"):
        path = tmp_path / f"{code}.tsv"
        path.write_text("".join(f"{q}\t{p}\t1\n" for q, p in zip(QUERIES[code], PASSAGES[code])), encoding="utf-8")
        specs.append(f"{code}={path}")
    pools = load_pool_specs(specs)
    assert len(pools) == 4 and all(len(pool.passages) == 4 and sum(pool.labels) == 1 for pool in pools)
    assert "candidates:all" in pools.signature


def test_a_folder_is_a_retrieval_set(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "p", "text": "猫"}\n{"_id": "o", "text": "狗"}\n')
    (tmp_path / "queries.en.jsonl").write_text('{"_id": "q", "text": "cat"}\n')
    (tmp_path / "qrels.tsv").write_text("q\tp\t1\n")
    pools = load_pool_specs([f"zh={tmp_path}"])
    assert [(pool.query, pool.passages, pool.labels) for pool in pools] == [("cat", ("猫", "狗"), (1, 0))]
    with pytest.raises(ValueError, match="takes no split"):
        load_pool_specs([f"zh={tmp_path}"], split="test")


def test_faults_of_labelled_files_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "en.tsv"
    path.write_text("q\tp\t2\nq\t \t1\nq\tp\nq\tp\t0\n")
    with pytest.raises(
        ValueError, match=r"3 faults(?s:.*):1: label outside \{0, 1\} \(got '2'\)(?s:.*):2: empty side(?s:.*):3: wrong"
    ):
        load_pair_specs([f"en={path}"])
    first, second = labelled(tmp_path, ".jsonl", [1, 0] * 4, codes=("en", "zh"))
    short = labelled(tmp_path, ".tsv", [1, 0, 1], codes=("ar",))
    with pytest.raises(ValueError, match=r"row by row: got 8 in en .*, 3 in ar .*pairs.ar.tsv\)"):
        load_pair_specs([first, *short])
    other = labelled(tmp_path, ".tsv", [1, 0, 1, 1, 1, 0, 1, 0], codes=("ar",))
    with pytest.raises(ValueError, match="differ in the labels of rows 3, counted from 0"):
        load_pair_specs([first, second, *other])


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([], "at least one data spec, got none; pass xx=QUESTIONS.json"),
        (["de-en=a.tsv"], "got none of these in 'de-en=a.tsv'"),
        (["en=a.json", "en=b.json"], "got the language a second time in 'en=b.json'"),
    ],
)
def test_malformed_specs_are_refused(specs: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_pair_specs(specs)


def test_specs_of_two_forms_and_odd_shares_are_refused(tmp_path: Path) -> None:
    asked, rows = questions(tmp_path, articles=2), labelled(tmp_path, ".tsv", [1, 0])
    with pytest.raises(ValueError, match=r"all of one form: got files ending in .json, .tsv"):
        load_pair_specs([asked[0], rows[1]])
    with pytest.raises(FileNotFoundError, match="the nearest name there is en.json"):
        load_pair_specs([f"en={tmp_path}/em.json"])
    with pytest.raises(ValueError, match="leave something: got 0.5 and 0.5"):
        load_pair_specs(asked, dev_share=0.5, test_share=0.5)
    with pytest.raises(ValueError, match="cannot cut 2 into 3 parts"):
        load_pair_specs(asked, dev_share=0.3, test_share=0.3)
    with pytest.raises(ValueError, match="a split out of train, test: got 'dev'"):
        load_pool_specs(asked, split="dev", dev_share=0)
    with pytest.raises(ValueError, match="need the group of each"):
        load_pair_specs(labelled(tmp_path, ".jsonl", [1] * 20), hard_negatives=1)


def test_xpi_reads_parallel_text_and_holds_rows_out(tmp_path: Path) -> None:
    path = tmp_path / "zh-en.tsv"
    path.write_text("".join(f"句子 {row}\tsentence {row}\n" for row in range(2000)), encoding="utf-8")
    data = load_xpi_specs([str(path)], size=400, seed=1)
    assert len(data.train) == 800 and sum(data.train["label"]) == 400
    assert data.dev is not None and 20 <= len(data.dev) <= 60
    trained = {text.split()[1] for column in ("query", "passage") for text in data.train[column]}
    assert not trained & {pool.query.split()[1] for pool in data.dev}
    whole = load_xpi_specs([str(path)], dev=[str(path)], negatives_per_positive=0)
    assert len(whole.train) == 2000 and whole.dev is not None and len(whole.dev) == 500


def test_xpi_reads_labelled_paraphrases(tmp_path: Path) -> None:
    data = load_xpi_specs(labelled(tmp_path, ".tsv", [1, 0] * 20), dev_share=0.25)
    assert len(data.train) == 30 and sum(data.train["label"]) == 15 and data.dev is not None and len(data.dev) == 5
    assert len(load_xpi_specs(labelled(tmp_path, ".tsv", [1] * 40), dev_share=0).train) == 80
    with pytest.raises(ValueError, match="questions and their paragraphs are no paraphrases"):
        load_xpi_specs(questions(tmp_path))
    with pytest.raises(ValueError, match="not both: got"):
        load_xpi_specs(["de-en=a.tsv", "en=b.tsv"])
    with pytest.raises(ValueError, match="got size=5"):
        load_xpi_specs(labelled(tmp_path, ".tsv", [1, 0] * 20), size=5)


def test_a_sample_counts_questions_and_keeps_their_candidates(tmp_path: Path) -> None:
    lines = [f"Frage {row // 3}\tAntwort {row}\t{int(row % 3 == 0)}\n" for row in range(30)]
    (tmp_path / "a.tsv").write_text("".join(lines), encoding="utf-8")
    pools = load_pool_specs([f"de={tmp_path / 'a.tsv'}?size=4&seed=3"])
    assert len(pools) == 4 and all(len(pool.passages) == 3 and sum(pool.labels) == 1 for pool in pools)
    pairs = load_pair_specs([f"de={tmp_path / 'a.tsv'}?size=4&seed=3"], dev_share=0).train
    assert {pool.query for pool in pools} == set(pairs.queries["de"]) and len(pairs) == 12
    numbers = [int(query.split()[1]) for query in pairs.queries["de"]]
    assert numbers == sorted(numbers)
    xpi = load_xpi_specs([f"{code}={tmp_path / 'a.tsv'}?size=5" for code in ("de", "en")], dev_share=0)
    assert len(set(xpi.train["query"])) == 5


def test_a_sample_of_questions_keeps_every_paragraph(real_data: Path) -> None:
    specs = [f"{code}={real_data}/xquad/xquad.{code}.json?size=20&seed=1" for code in ("en", "zh")]
    pools = load_pool_specs(specs)
    assert len(pools) == 20 and {len(pool.passages) for pool in pools} == {240}
    with pytest.raises(ValueError, match="same .size"):
        load_pool_specs([specs[0], specs[1].replace("20", "21")])
