"""XNLI and PAWS-X in every published layout; faults with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from st_xling.data import ParallelTextError
from st_xling.data.transfer_sets import read_pawsx, read_xnli
from tests.retrieval_files import lines

ROWS = [
    ("ar", "neutral", "وقال، ماما، لقد عدت للمنزل.", "اتصل بأمه حالما أوصلته حافلة المدرسة."),
    ("ar", "entailment", "وقال، ماما، لقد عدت للمنزل.", "أخبر أمه أنه قد عاد للمنزل."),
    ("th", "contradiction", 'และเขาพูดว่า "ม๊า ผมอยู่บ้าน', "เขาไม่ได้พูดอะไรสักคำ 🙂"),
    ("zh", "-", "他说，妈妈，我回来了。", "他没说一句话。"),
    ("zh", "neutral", "他说，妈妈，我回来了。", "校车把他放下后，他立即给他妈妈打了电话。"),
]
HEADER = "language\tgold_label\tsentence1_binary_parse\tsentence1\tsentence2\tpromptID\tlabel1\tmatch"


def published(path: Path) -> Path:
    return lines(path, [HEADER, *(f"{code}\t{label}\t( x )\t{a}\t{b}\t7\t{label}\tTrue" for code, label, a, b in ROWS)])


def test_the_published_tsv_of_all_languages(tmp_path: Path) -> None:
    path = published(tmp_path / "xnli.test.tsv")
    arabic, thai, chinese = (read_xnli(path, language=code) for code in ("ar", "tha", "zh"))
    assert arabic.labels == ["neutral", "entailment"] and arabic.first == [ROWS[0][2]] * 2
    assert thai.first == [ROWS[2][2]]  # an open quote is text
    assert (chinese.labels, chinese.rows, chinese.total) == (["neutral"], [1], 2)  # the row without a majority is out
    with pytest.raises(ParallelTextError, match=r"expected labeled pairs in 'sw'; the file has ar, th, zh"):
        read_xnli(path, language="sw")


def test_json_lines_and_the_training_files(tmp_path: Path) -> None:
    names = ("language", "gold_label", "sentence1", "sentence2")
    rows = [json.dumps({**dict(zip(names, row)), "pairID": 1}, ensure_ascii=False) for row in ROWS]
    assert read_xnli(lines(tmp_path / "xnli.test.jsonl", rows), language="ar").second == [ROWS[0][3], ROWS[1][3]]
    assert len(read_xnli(lines(tmp_path / "all.jsonl.gz", rows))) == 4
    translated = lines(
        tmp_path / "multinli.train.de.tsv", ["premise\thypo\tlabel", "Es regnet.\tTrocken.\tcontradictory"]
    )
    assert read_xnli(translated).labels == ["contradiction"]
    faulty = lines(tmp_path / "faulty.jsonl", ['{"gold_label": "neutral", "text": "a"}', "{"])
    with pytest.raises(ParallelTextError) as error:
        read_xnli(faulty)
    assert [(fault.line, fault.kind) for fault in error.value.faults] == [(1, "no such key"), (2, "bad JSON")]


def test_three_columns(tmp_path: Path) -> None:
    path = lines(tmp_path / "dev-ar.tsv.gz", [f"{a}\t{b}\t{label}" for _, label, a, b in ROWS])
    pairs = read_xnli(path, language="ar")
    assert pairs.rows == [0, 1, 2, 4] and pairs.total == 5
    assert pairs.select([3]).second == [ROWS[4][3]]


def test_faults_come_together(tmp_path: Path) -> None:
    path = lines(tmp_path / "bad.tsv", ["a\tb\tneutral", "a\tb", "a\tb\tmaybe", "a\t \tneutral"])
    with pytest.raises(ParallelTextError) as error:
        read_xnli(path)
    assert [(fault.line, fault.kind) for fault in error.value.faults] == [
        (2, "bad column count"),
        (3, "unknown label"),
        (4, "empty side"),
    ]
    assert f"{path}:3: unknown label (expected one of entailment, neutral" in str(error.value)
    with pytest.raises(ParallelTextError, match="no rows"):
        read_xnli(lines(tmp_path / "empty.tsv", []))
    with pytest.raises(FileNotFoundError, match="none.tsv"):
        read_xnli(tmp_path / "none.tsv")


def test_pawsx_published_and_plain(tmp_path: Path) -> None:
    rows = [("1", "Le chat dort.", "Le chat est endormi.", "1"), ("2", "NS", "Le « chat » dort.", "0")]
    rows.append(("3", "El cafe\u0301 está frío.", "Está frío el cafe\u0301.", "1"))
    header = "id\tsentence1\tsentence2\tlabel"
    whole = read_pawsx(lines(tmp_path / "test_2k.tsv", [header, *map("\t".join, rows)]), language="fr")
    plain = read_pawsx(lines(tmp_path / "plain.tsv", ["\t".join(row[1:]) for row in rows]))
    assert whole == plain
    assert (plain.labels, plain.rows, plain.total) == (["1", "1"], [0, 2], 3)  # NS was never translated
    keyed = [dict(zip(header.split("\t"), (*row[:3], int(row[3])))) for row in rows]
    assert read_pawsx(lines(tmp_path / "test.jsonl", list(map(json.dumps, keyed)))) == plain
    with pytest.raises(ParallelTextError, match=r":1: unknown label \(expected one of 0, 1, got 'neutral'\)"):
        read_pawsx(lines(tmp_path / "wrong.tsv", ["a\tb\tneutral"]))


def test_a_ragged_header_file(tmp_path: Path) -> None:
    """MultiNLI's lines end early where later annotators are missing; more columns than the header are a fault."""
    path = lines(
        tmp_path / "multinli.txt", ["gold_label\tsentence1\tsentence2\tlabel1\tlabel2", "neutral\ta\tb\tneutral"]
    )
    assert len(read_xnli(path)) == 1
    path = lines(tmp_path / "long.txt", ["gold_label\tsentence1\tsentence2", "neutral\ta\tb\tc", "neutral\ta"])
    with pytest.raises(ParallelTextError) as error:
        read_xnli(path)
    assert [fault.line for fault in error.value.faults] == [2, 3]


def test_real_files(real_data: Path) -> None:
    found = {code: read_xnli(real_data / "xnli" / f"dev-{code}.tsv.gz") for code in ("en", "th", "ar")}
    assert {len(pairs) for pairs in found.values()} == {2490}
    assert found["en"].labels == found["th"].labels == found["ar"].labels
    french = read_pawsx(real_data / "pawsx" / "dev-fr.tsv.gz")
    assert (len(french), french.total) == (1992, 2000)
