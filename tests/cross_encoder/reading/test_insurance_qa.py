"""InsuranceQA v2 and its Chinese translation: small files in the published layouts; the paper's pairs and pools."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from st_xling.cross_encoder import load_pair_specs, load_pool_specs, read_insurance_qa

ENGLISH = ["Does auto insurance cover hail ?", "What is term life ?", "Who needs renters insurance ?", "Why me ?"]
CHINESE = ["汽车保险是否覆盖冰雹？", "什么是定期人寿保险？", "谁需要租房保险？", "为什么是我？"]
TRUTHS = [["11"], ["12", "13"], ["19"], ["14"]]
POOLS = [["15", "11", "16"], ["13", "17", "12", "18"], ["11", "12", "13"], ["18", "14"]]
"""No pool of the third question holds its ground truth, 19."""
ANSWERS = {str(label): f"answer {label} , in words" for label in range(11, 20)}


def write_v2(folder: Path, *, part: str = "train", pool: int = 500) -> Path:
    """The English release: every word by its index in a vocabulary."""
    words = sorted({word for text in [*ENGLISH, *ANSWERS.values()] for word in text.split()})
    index = {word: f"idx_{number}" for number, word in enumerate(words)}

    def encoded(text: str) -> str:
        return " ".join(index[word] for word in text.split())

    folder.mkdir(exist_ok=True)
    (folder / "vocabulary").write_text("".join(f"{index[word]}\t{word}\n" for word in words), encoding="utf-8")
    answers = "".join(f"{label}\t{encoded(text)}\n" for label, text in ANSWERS.items())
    (folder / "InsuranceQA.label2answer.token.encoded.gz").write_bytes(gzip.compress(answers.encode()))
    rows = zip(ENGLISH, TRUTHS, POOLS)
    lines = [f"life\t{encoded(text)}\t{' '.join(truths)}\t{' '.join(found)}\n" for text, truths, found in rows]
    name = f"InsuranceQA.question.anslabel.token.{pool}.pool.solr.{part}.encoded"
    (folder / name).write_text("".join(lines), encoding="utf-8")
    return folder


def write_translation(folder: Path, *, part: str = "train") -> Path:
    """``insuranceqa-corpus-zh``: both languages beside each other."""
    (folder / "pool").mkdir(parents=True, exist_ok=True)
    rows: dict[str, Any] = {
        str(row): {"zh": zh, "en": en, "domain": "life", "answers": truths, "negatives": ["15", "16", "17", "18"]}
        for row, (zh, en, truths) in enumerate(zip(CHINESE, ENGLISH, TRUTHS))
    }
    answers = {label: {"zh": f"第{label}号回答", "en": text} for label, text in ANSWERS.items()}
    for name, content in ((part, rows), ("answers", answers)):
        path = folder / "pool" / f"{name}.json.gz"
        path.write_bytes(gzip.compress(json.dumps(content, ensure_ascii=False).encode()))
    return folder


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
