"""What ``--data`` may say: SQuAD's form, labeled files, InsuranceQA, the phrasebook, parallel text."""

import gzip
import json
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from st_xling.data.phrasebook import phrase_passages
from st_xling.data.reranking.insurance_qa import read_insurance_qa
from st_xling.data.reranking.specs import load_pair_specs, load_pool_specs, load_xpi_specs
from tests.data.reranking.aligned_sentences import (
    ANSWERS,
    CHINESE,
    ENGLISH,
    PASSAGES,
    POOLS,
    QUERIES,
    TRUTHS,
    question,
    squad,
    write_translation,
    write_v2,
)
from tests.retrieval_files import beir

BOTH = ["en=phrasebook?size=20", "zh=phrasebook?size=20"]
CODES = ("en", "zh", "ar")


def questions(folder: Path, articles: int = 10) -> list[str]:
    specs = []
    for code in CODES:
        written = []
        for row in range(articles):
            paragraphs = []
            for part in range(2):
                about_paragraph = question(f"i{row}.{part}", f"q{row}.{part} {code}", f"p{row}")
                paragraphs.append((f"p{row}.{part} {code}", [about_paragraph]))
            written.append((f"t{row}", paragraphs))
        path = squad(folder / f"{code}.json", written)
        specs.append(f"{code}={path}")
    return specs


def labeled(folder: Path, ending: str, labels: list[int], *, codes: tuple[str, ...] = CODES) -> list[str]:
    specs = []
    for code in codes:
        rows = [(f"q{row // 2} {code}", f'"p{row} {code}', label) for row, label in enumerate(labels)]
        if ending.startswith(".jsonl"):
            text = "".join(json.dumps({"query": q, "passage": p, "label": label}) + "\n" for q, p, label in rows)
        else:
            text = "query\tpassage\tlabel\n" * (code == "zh") + "".join(f"{q}\t{p}\t{label}\n" for q, p, label in rows)
        path = folder / f"pairs.{code}{ending}"
        content = text.encode()
        if ending.endswith(".gz"):
            content = gzip.compress(content)
        path.write_bytes(content)
        specs.append(f"{code}={path}")
    return specs


def test_articles_are_held_out_of_questions(tmp_path: Path) -> None:
    specs = questions(tmp_path)
    data = load_pair_specs(specs, test_share=0.2, negatives_per_positive=2)
    assert data.train.languages == CODES and len(data.train) == 7 * 2 * 3
    assert data.dev is not None and len(data.dev) == 2 and len(data.dev[0].passages) == 2
    test = load_pool_specs(specs, split="test")
    assert load_pool_specs(specs, split="dev") == data.dev and len(test) == 4
    # Another seed draws other languages, of the part that was held out all the same.
    drawn = load_pool_specs(specs, split="test", seed=5)
    assert [pool.query.split()[0] for pool in drawn] == [pool.query.split()[0] for pool in test]
    trained = {text.split(".")[0] for text in data.train.passages["en"]}
    shown = [{text.split(".")[0] for text in pools[0].passages} for pools in (data.dev, test)]
    assert len(trained) == 7 and len(shown[0]) == 1 and len(shown[1]) == 2 and len(trained.union(*shown)) == 10
    assert len(load_pool_specs(specs)) == 20 and len(load_pool_specs(specs, max_candidates=7)[0].passages) == 7
    assert {pool.query_language for pool in load_pool_specs(specs, query_languages=["zh"])} == {"zh"}
    assert load_pair_specs(specs, dev_share=0).dev is None
    # A development set of its own is taken whole.
    (tmp_path / "dev").mkdir()
    data = load_pair_specs(specs, dev=questions(tmp_path / "dev", articles=3)[:2])
    assert len(data.train) == 40 and data.dev is not None and len(data.dev) == 6
    assert set(data.dev[0].passage_languages) == {"en", "zh"}


@pytest.mark.parametrize("ending", [".jsonl.gz", ".tsv"])
def test_labeled_files_keep_their_negatives(tmp_path: Path, ending: str) -> None:
    data = load_pair_specs(labeled(tmp_path, ending, [1, 0] * 10), dev_share=0.2)
    assert len(data.train) == 16 and sum(data.train.labels) == 8 and data.train.passages["ar"][0][0] == '"'
    assert data.dev is not None and len(data.dev) == 2 and {len(pool.passages) for pool in data.dev} == {2}
    assert not {pool.query[:2] for pool in data.dev} & {query[:2] for query in data.train.queries["en"]}
    with_more = load_pair_specs(labeled(tmp_path, ending, [1, 0] * 10), dev_share=0, negatives_per_positive=3)
    assert len(with_more.train) == 20 + 30


def test_files_of_relevant_pairs_get_negatives_and_all_candidates(tmp_path: Path) -> None:
    data = load_pair_specs(labeled(tmp_path, ".tsv", [1] * 20), dev_share=0.3)
    assert data.train.labels == [1] * 14 + [0] * 14
    assert data.dev is not None and [(len(pool.passages), sum(pool.labels)) for pool in data.dev] == [(2, 2)] * 3
    for code in ("th", "fr"):  # one passage a query
        rows = zip(QUERIES[code], PASSAGES[code])
        (tmp_path / f"{code}.tsv").write_text("".join(f"{q}\t{p}\t1\n" for q, p in rows), encoding="utf-8")
    pools = load_pool_specs([f"{code}={tmp_path / code}.tsv" for code in ("th", "fr")])
    assert len(pools) == 4 and all(len(pool.passages) == 4 and sum(pool.labels) == 1 for pool in pools)
    assert "candidates:all" in pools.signature


def test_each_query_of_a_retrieval_set_makes_a_pool_in_each_language(tmp_path: Path) -> None:
    """Thai passages; questions in Arabic and French, of which one has no relevant passage."""
    queries = {"ar": QUERIES["ar"], "fr": QUERIES["fr"][:2]}
    queries_by_id = {}
    for code, texts in queries.items():
        queries_by_id[code] = {f"q{row}": text for row, text in enumerate(texts)}
    beir(
        tmp_path,
        {f"p{row}": text for row, text in enumerate(PASSAGES["th"])},
        queries_by_id,
        [("q0", "p0", 1), ("q0", "p3", 2), ("q1", "p1", 1), ("q1", "p2", 0), ("q2", "p2", 1)],
    )
    pools = load_pool_specs([f"th={tmp_path}"])
    assert [pool.query for pool in pools] == [*QUERIES["ar"][:3], *QUERIES["fr"][:2]]
    assert pools[0].labels == [1, 0, 0, 1] and pools[4].labels == [0, 1, 0, 0]
    assert pools[0].passages == PASSAGES["th"] and set(pools[3].passage_languages) == {"th"}
    assert pools.without_relevant == 1
    assert pools.signature == "queries:ar,fr|passages:th|candidates:all|seed:0|without_relevant:exclude"
    assert len(load_pool_specs([f"th={tmp_path}"], query_languages=["ar"])) == 3
    capped = load_pool_specs([f"th={tmp_path}"], max_candidates=2, seed=4)
    assert [sum(pool.labels) for pool in capped] == [2, 1, 1, 2, 1] and {len(pool.passages) for pool in capped} == {2}
    with pytest.raises(ValueError, match="takes no split"):
        load_pool_specs([f"th={tmp_path}"], split="test")


def test_faults_of_labeled_files_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "en.tsv"
    path.write_text("q\tp\t2\nq\t \t1\nq\tp\nq\tp\t0\n")
    faults = r"(?s)3 faults.*:1: label outside \{0, 1\} \(got '2'\).*:2: empty side.*:3: bad col"
    with pytest.raises(ValueError, match=faults):
        load_pair_specs([f"en={path}"])
    # A header whose first names are others: which column is the query, nobody knows.
    path.write_text("passage\tquestion\tlabel\nThe cat sat.\tWho sat?\t1\n")
    with pytest.raises(ValueError, match=":1: label .*got 'label'"):
        load_pair_specs([f"en={path}"])
    (first,) = labeled(tmp_path, ".jsonl", [1, 0] * 4, codes=("en",))
    for labels, fact in (
        ([1, 0, 1], r"row by row: got 8 in en .*, 3 in ar .*pairs.ar.tsv\)"),
        ([1, 0, 1, 1, 1, 0, 1, 0], "differ in the label of row 3"),
    ):
        with pytest.raises(ValueError, match=fact):
            load_pair_specs([first, *labeled(tmp_path, ".tsv", labels, codes=("ar",))])


def test_xpi_reads_parallel_text_and_holds_rows_out(tmp_path: Path) -> None:
    path = tmp_path / "zh-en.tsv"
    path.write_text("".join(f"句子 {row}\tsentence {row}\n" for row in range(2000)), encoding="utf-8")
    data = load_xpi_specs([str(path)], size=400)
    assert len(data.train) == 800 and sum(data.train["label"]) == 400
    assert data.dev is not None and 20 <= len(data.dev) <= 60
    trained = {text.split()[1] for column in ("query", "passage") for text in data.train[column]}
    assert not trained & {pool.query.split()[1] for pool in data.dev}
    whole = load_xpi_specs([str(path)], dev=[str(path)], negatives_per_positive=0)
    assert len(whole.train) == 2000 and whole.dev is not None and len(whole.dev) == 500


def test_a_sample_counts_questions_and_keeps_their_candidates(tmp_path: Path) -> None:
    lines = [f"Frage {row // 3}\tAntwort {row}\t{int(row % 3 == 0)}\n" for row in range(30)]
    (tmp_path / "a.tsv").write_text("".join(lines), encoding="utf-8")
    pools = load_pool_specs([f"de={tmp_path / 'a.tsv'}?size=4&seed=3"])
    assert len(pools) == 4 and all(len(pool.passages) == 3 and sum(pool.labels) == 1 for pool in pools)
    pairs = load_pair_specs([f"de={tmp_path / 'a.tsv'}?size=4&seed=3"], dev_share=0).train
    assert {pool.query for pool in pools} == set(pairs.queries["de"]) and len(pairs) == 12
    numbers = [int(query.split()[1]) for query in pairs.queries["de"]]
    assert numbers == sorted(numbers)


def test_a_sample_of_questions_keeps_every_paragraph(tmp_path: Path) -> None:
    """Fewer candidates would be an easier test."""
    pools = load_pool_specs([f"{spec}?size=5&seed=1" for spec in questions(tmp_path)])
    assert len(pools) == 5 and {len(pool.passages) for pool in pools} == {20}


def test_training_holds_out_articles_and_its_dev_and_test_are_other_splits() -> None:
    data = load_pair_specs(BOTH, dev_share=0.25, negatives_per_positive=2)
    assert len(data.train) == 15 * 3 and data.dev is not None and len(data.dev) == 5
    with_dev = load_pair_specs(BOTH, dev=["en=phrasebook?size=6", "zh=phrasebook?size=6"])
    assert with_dev.dev is not None and len(with_dev.train) == 40
    questions = phrase_passages(["en", "zh"], split="dev", size=6).questions
    expected = [questions[pool.query_language][row] for row, pool in enumerate(with_dev.dev)]
    assert [pool.query for pool in with_dev.dev] == expected


def test_insurance_qa_and_its_translation(tmp_path: Path) -> None:
    """The pools of one, the Chinese of the other: same numbers, same labels."""
    v2 = write_v2(tmp_path / "V2")
    zh = write_translation(tmp_path / "zh")
    data = read_insurance_qa({"en": v2, "zh": zh})
    assert data.queries == {"en": ENGLISH, "zh": CHINESE} and data.candidates is not None
    label_of = {text: label for label, text in ANSWERS.items()}
    labels = [label_of[text] for text in data.passages["en"]]
    assert [[labels[number] for number in row] for row in data.candidates] == POOLS
    assert [[labels[number] for number in row] for row in data.relevant] == TRUTHS
    assert data.passages["zh"] == [f"第{label}号回答" for label in labels]
    specs = [f"en={v2}", f"zh={zh}"]
    pairs = load_pair_specs(specs, dev_share=0).train
    counts = Counter()
    for query, passage, label in zip(pairs.queries["en"], pairs.passages["en"], pairs.labels):
        row = ENGLISH.index(query)
        assert label_of[passage] in POOLS[row] and label == (label_of[passage] in TRUTHS[row])
        counts[row, label] += 1
    # One negative for each positive, as far as the pool has them; the third question has nothing to learn from.
    assert counts == {(0, 1): 1, (0, 0): 1, (1, 1): 2, (1, 0): 2, (3, 1): 1, (3, 0): 1}
    assert len(load_pair_specs(specs, dev_share=0, negatives_per_positive=9).train) == 3 + 4 + 2
    # A part that is held out keeps whole pools.
    data = load_pair_specs([f"zh={zh}"], dev_share=0.25)
    assert data.dev is not None and len(data.dev[0].passages) == (6 if "定期" in data.dev[0].query else 5)
    assert len(data.dev) == 1 and data.dev[0].query not in data.train.queries["zh"]


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ("life\t", "life ", r"pool.solr.train.encoded:1: wrong columns .expected 4, got 3"),
        ("15 11 16", "15 11 99", "no answer for 1 labels, such as 99"),
    ],
)
def test_faults_of_insurance_qa(tmp_path: Path, old: str, new: str, facts: str) -> None:
    folder = write_v2(tmp_path)
    path = folder / "InsuranceQA.question.anslabel.token.500.pool.solr.train.encoded"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=facts):
        read_insurance_qa({"en": folder})


def test_pools_of_insurance_qa(tmp_path: Path) -> None:
    v2, zh = write_v2(tmp_path / "V2", part="test"), write_translation(tmp_path / "zh", part="test")
    pools = load_pool_specs([f"en={v2}", f"zh={zh}"])
    assert [pool.query in (ENGLISH[row], CHINESE[row]) for pool, row in zip(pools, (0, 1, 3))] == [True] * 3
    assert pools.without_relevant == 1 and [sum(pool.labels) for pool in pools] == [1, 2, 1]
    assert [len(pool.passages) for pool in pools] == [3, 4, 2]
    assert Counter(pools[1].passage_languages) == {"en": 2, "zh": 2}
    # The translation alone: its own answers and negatives.
    alone = load_pool_specs([f"zh={zh}"])
    assert alone[1].passages == [f"第{label}号回答" for label in (12, 13, 15, 16, 17, 18)]
    assert len(load_pool_specs([f"zh={zh}?size=2&seed=1"])) == 2


@pytest.mark.parametrize(
    ("specs", "options", "facts"),
    [
        ([], {}, "at least one data spec, got none; pass xx=QUESTIONS.json"),
        (["de-en=a.tsv"], {}, "got 'de-en=a.tsv', which names de and en"),
        (["en=a.json", "en=b.json"], {}, "a second time in 'en=b.json'"),
        (["en=phrasebook:de"], {}, "one language a spec"),
        (["ru=phrasebook"], {}, "language must be one of"),
        (["en=phrasebook?gold=1"], {}, "options size, split, seed, once each, got 'gold=1'"),
        (["en=phrasebook?size=5", "zh=phrasebook?size=6"], {}, "take the same .size, split and seed: got en=phrase"),
        (["en={two}", "zh={rows}"], {}, "got files ending in .json, .tsv"),
        (["en={folder}/em.json"], {}, "the nearest name there is en.json"),
        (["en={two}"], {"dev_share": 0.5, "test_share": 0.5}, "got 0.5 and 0.5"),
        (["en={two}"], {"dev_share": 0.3, "test_share": 0.3}, "cannot cut 2 into 3 parts"),
        (["en={two}?split=dev"], {}, "split is for folders of InsuranceQA"),
        (["en={v2}", "zh={zh}"], {}, "zh has 4, of which 1 have other ground truths, next to 4"),
    ],
)
def test_refusals(specs: list[str], options: dict[str, float], facts: str, tmp_path: Path) -> None:
    zh = write_translation(tmp_path / "zh")
    rows = json.loads(gzip.decompress((zh / "pool" / "train.json.gz").read_bytes()))
    rows["1"]["answers"] = ["12"]
    (zh / "pool" / "train.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    places = {
        "folder": tmp_path,
        "two": questions(tmp_path, articles=2)[0].partition("=")[2],
        "rows": labeled(tmp_path, ".tsv", [1, 0], codes=("zh",))[0].partition("=")[2],
        "v2": write_v2(tmp_path / "V2"),
        "zh": zh,
    }
    with pytest.raises((ValueError, FileNotFoundError), match=facts):
        load_pair_specs([spec.format(**places) for spec in specs], **options)


def test_development_text_of_xpi_is_another_split() -> None:
    """Of the phrasebook, the same sentences would be trained on and judged by."""
    dev = load_xpi_specs(["zh-en=phrasebook?size=40"], dev=["phrasebook:zh?size=10"]).dev
    explicit = load_xpi_specs(["zh-en=phrasebook?size=40"], dev=["phrasebook:zh?size=10&split=dev"]).dev
    assert dev is not None and explicit is not None and list(dev) == list(explicit)


def test_queries_of_the_corpus_take_no_memory_for_each_pair(tmp_path: Path) -> None:
    """Queries taken from the corpus, as in Quora, made a list of all passages each: 10,000 times 523,000."""
    texts = {f"p{row}": f"{row} naïve Fragen" for row in range(3000)}
    queries = {f"p{row}": texts[f"p{row}"] for row in range(200)}
    beir(tmp_path, texts, {"de": queries}, [(name, "p2999", 1) for name in queries])
    tracemalloc.start()
    pools = load_pool_specs([f"de={tmp_path}"], max_candidates=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(pools) == 200 and all(pool.query not in pool.passages for pool in pools)
    assert peak < 8 << 20  # lists of all passages took 50 MB
