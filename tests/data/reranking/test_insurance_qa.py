"""InsuranceQA v2 and its Chinese translation: the paper's pairs and pools."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from st_xling.data.reranking.insurance_qa import read_insurance_qa
from st_xling.data.reranking.specs import load_pair_specs, load_pool_specs
from tests.data.reranking.insurance_files import ANSWERS, CHINESE, ENGLISH, POOLS, TRUTHS, write_translation, write_v2


def test_v2_with_its_translation(tmp_path: Path) -> None:
    """The pools of one, the Chinese of the other: same numbers, same labels."""
    v2, zh = write_v2(tmp_path / "V2"), write_translation(tmp_path / "zh")
    found = read_insurance_qa({"en": v2, "zh": zh})
    assert found.queries == {"en": ENGLISH, "zh": CHINESE} and found.languages == ("en", "zh")
    assert [[found.passage_ids[number] for number in row] for row in found.candidates] == POOLS
    assert [[found.passage_ids[number] for number in row] for row in found.relevant] == TRUTHS
    for number, label in enumerate(found.passage_ids):
        assert (found.passages["en"][number], found.passages["zh"][number]) == (ANSWERS[label], f"第{label}号回答")


def test_training_pairs_come_from_the_pools(tmp_path: Path) -> None:
    specs = [f"en={write_v2(tmp_path / 'V2')}", f"zh={write_translation(tmp_path / 'zh')}"]
    pairs = load_pair_specs(specs, dev_share=0).train
    rows = list(zip(pairs.queries["en"], pairs.passages["en"], pairs.labels))
    label_of = {text: label for label, text in ANSWERS.items()}
    for query, passage, label in rows:
        row = ENGLISH.index(query)
        assert label_of[passage] in POOLS[row] and label == (label_of[passage] in TRUTHS[row])
    counts = Counter((ENGLISH.index(query), label) for query, _, label in rows)
    # One negative for each positive, as far as the pool has them; the third question has nothing to learn from.
    assert counts == {(0, 1): 1, (0, 0): 1, (1, 1): 2, (1, 0): 2, (3, 1): 1, (3, 0): 1}
    assert len(load_pair_specs(specs, dev_share=0, negatives_per_positive=9).train) == 3 + 4 + 2
    assert [*pairs.queries["zh"][:1], *pairs.passages["zh"][:1]] == [CHINESE[0], "第11号回答"]


def test_pools_are_the_papers(tmp_path: Path) -> None:
    v2, zh = write_v2(tmp_path / "V2", part="test"), write_translation(tmp_path / "zh", part="test")
    pools = load_pool_specs([f"en={v2}", f"zh={zh}"])
    assert [pool.query_id for pool in pools] == ["test/0", "test/1", "test/3"] and pools.without_relevant == 1
    assert [list(pool.passage_ids) for pool in pools] == [POOLS[0], POOLS[1], POOLS[3]]
    assert [sum(pool.labels) for pool in pools] == [1, 2, 1]
    assert Counter(pools[1].passage_languages) == {"en": 2, "zh": 2}
    # The translation alone: its own answers and negatives.
    alone = load_pool_specs([f"en={zh}", f"zh={zh}"])
    assert len(alone) == 4 and list(alone[1].passage_ids) == ["12", "13", "15", "16", "17", "18"]
    assert len(load_pool_specs([f"zh={zh}?size=2&seed=1"])) == 2


def test_a_held_out_part_keeps_whole_pools(tmp_path: Path) -> None:
    data = load_pair_specs([f"zh={write_translation(tmp_path)}"], dev_share=0.25)
    assert data.dev is not None and [len(pool.passages) for pool in data.dev] == [
        6 if "定期" in data.dev[0].query else 5
    ]
    assert data.dev[0].query not in data.train.queries["zh"]


@pytest.mark.parametrize(
    ("name", "old", "new", "facts"),
    [
        ("vocabulary", "idx_3\t", "idx_999\t", "unknown word .idx_3 is not in vocabulary"),
        ("pool", "life\t", "life ", "pool.solr.train.encoded:1: wrong column count .expected 4, got 3"),
        ("pool", "15 11 16", "15 11 99", "answer for every label, got none for 1, such as 99"),
    ],
)
def test_faults_of_v2(tmp_path: Path, name: str, old: str, new: str, facts: str) -> None:
    folder = write_v2(tmp_path)
    path = folder / (
        name if name == "vocabulary" else "InsuranceQA.question.anslabel.token.500.pool.solr.train.encoded"
    )
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=facts):
        read_insurance_qa({"en": folder})


def test_refusals(tmp_path: Path) -> None:
    v2, zh = write_v2(tmp_path / "V2"), write_translation(tmp_path / "zh")
    with pytest.raises(FileNotFoundError, match=r"token\.100\.pool\.solr\.train"):
        load_pair_specs([f"en={v2}?pool=100"])
    with pytest.raises(ValueError, match="pool=500"):
        load_pair_specs([f"zh={zh}?pool=500"])
    with pytest.raises(ValueError, match="each number in 'de'"):
        load_pair_specs([f"de={zh}"])
    with pytest.raises(ValueError, match="same .size"):
        load_pair_specs([f"en={v2}?size=2", f"zh={zh}"])
    with pytest.raises(FileNotFoundError, match=r"valid\.json"):
        load_pool_specs([f"zh={zh}"], split="dev")
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ValueError, match="pool is for folders of InsuranceQA"):
        load_pair_specs([f"en={tmp_path / 'a.json'}?pool=500"])
    rows = json.loads(gzip.decompress((zh / "pool" / "train.json.gz").read_bytes()))
    rows["1"]["answers"] = ["12"]
    (zh / "pool" / "train.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    with pytest.raises(ValueError, match="zh has 4, of which 1 have other ground truths, beside 4"):
        load_pair_specs([f"en={v2}", f"zh={zh}"])
