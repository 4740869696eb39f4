"""XNLI, PAWS-X and CoNLL-U in every published layout; faults with file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from st_xling.data import ParallelTextError
from st_xling.data.transfer_sets import UPOS, read_conllu, read_pawsx, read_xnli
from tests.retrieval_files import lines, raw

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


def word(number: str, form: str, tag: str = "NOUN", head: str = "_") -> str:
    return "\t".join([number, form, "_", tag, "_", "_", head, "_", "_", "_"])


def write(path: Path, lines: list[str]) -> Path:
    return raw(path, "\n".join(lines).encode())


FRENCH = [
    "# text = Accès aux États-Unis",
    word("1", "Accès", "NOUN", "0"),
    word("2-3", "aux", "_"),
    word("2", "à", "ADP", "4"),
    word("3", "les", "DET", "4"),
    word("3.1", "tous", "_"),
    word("4", "États-Unis", "PROPN", "1"),
]
CHINESE = [word("1", "猫", "NOUN", "2"), word("2", "睡觉", "VERB", "0"), word("3", "。", "PUNCT", "2")]


def test_ranges_and_empty_nodes_are_passed_over(tmp_path: Path) -> None:
    for name in ("fr.conllu", "fr.conllu.gz"):
        found = read_conllu(write(tmp_path / name, [*FRENCH, "", *CHINESE]))  # no line end at the end
        assert found.words == [["Accès", "à", "les", "États-Unis"], ["猫", "睡觉", "。"]]
        assert found.tags == [["NOUN", "ADP", "DET", "PROPN"], ["NOUN", "VERB", "PUNCT"]]
        assert (found.rows, found.total) == ([0, 1], 2)
        assert found.select([1]).words == [["猫", "睡觉", "。"]] and found.select([1]).rows == [1]


def test_windows_lines_comments_and_no_trees(tmp_path: Path) -> None:
    path = tmp_path / "ar.conllu"
    lines = ["# newdoc", "", "", word("0.1", "_", "_"), word("1", "كتبت", "VERB"), word("2", "10 000", "NUM"), "", ""]
    path.write_bytes("\r\n".join(lines).encode())
    assert read_conllu(path).words == [["كتبت", "10 000"]]


@pytest.mark.parametrize(
    ("lines", "line", "kind"),
    [
        ([word("1", "a"), word("3", "b")], 2, "broken id: expected word 2, got 3"),
        ([word("1-2", "ab", "_"), word("1", "a")], 1, "broken id: expected the words of 1-2, got 1"),
        ([word("0.1", "a", "_")], 1, "broken id: expected words"),
        ([word("1", "a", "NN")], 1, "bad word: expected a form and a universal tag, got 'a' 'NN'"),
        ([word("1", "a", "_")], 1, "bad word"),
        ([word("1", " ")], 1, "bad word"),
        (["1\ta\t_\tNOUN"], 1, "bad column count: expected 10, got 4"),
    ],
)
def test_broken_sentences(lines: list[str], line: int, kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "xx.conllu", [*FRENCH, "", *lines, "", *CHINESE, ""])
    with pytest.raises(ParallelTextError) as error:
        read_conllu(path)
    [fault] = [fault for fault in error.value.faults if f"{fault.kind}: {fault.detail}".startswith(kind)]
    assert (fault.path, fault.line) == (str(path), len(FRENCH) + 1 + line)


def test_nothing_at_all(tmp_path: Path) -> None:
    with pytest.raises(ParallelTextError, match="expected sentences"):
        read_conllu(write(tmp_path / "none.conllu", ["# nothing"]))


def test_fused_forms_take_the_tag_nearest_the_root(tmp_path: Path) -> None:
    german = [
        word("1-2", "Zum", "_"),
        word("1", "Zu", "ADP", "3"),
        word("2", "dem", "DET", "3"),
        word("3", "Glück", "NOUN", "4"),
        word("4-5", "gibts", "_"),
        word("4", "gibt", "VERB", "0"),
        word("5", "es", "PRON", "4"),
    ]
    found = read_conllu(write(tmp_path / "de.conllu", [*german, "", *CHINESE]), fused=True, language="de")
    assert found.words == [["Zum", "Glück", "gibts"], ["猫", "睡觉", "。"]]
    assert found.tags == [["ADP", "NOUN", "VERB"], ["NOUN", "VERB", "PUNCT"]]
    assert len(found) == found.total == 2
    # Equally near: the order of tags decides, and Italian has another one than the rest.
    equal = [
        word("1", "va", "VERB", "0"),
        word("2-3", "altrove", "_"),
        word("2", "altro", "ADV", "1"),
        word("3", "ve", "NUM", "1"),
    ]
    for language, tag in (("it", "ADV"), ("de", "NUM")):
        assert read_conllu(write(tmp_path / "x.conllu", equal), fused=True, language=language).tags == [["VERB", tag]]
    # Without a tree all words are equally near.
    assert read_conllu(
        write(tmp_path / "y.conllu", [word("1-2", "au", "_"), word("1", "à", "ADP"), word("2", "le", "DET")]),
        fused=True,
    ).tags == [["ADP"]]
    # A cycle of heads ends.
    cycle = [word("1-2", "au", "_"), word("1", "à", "ADP", "2"), word("2", "le", "DET", "1")]
    assert read_conllu(write(tmp_path / "z.conllu", cycle), fused=True).tags == [["ADP"]]


def test_real_treebanks(real_data: Path) -> None:
    """As many surface tokens as the treebank has: words, less those in ranges, and one for each range."""
    for language in ("de", "tr", "en"):
        path = real_data / "ud_pud" / f"{language}.conllu.gz"
        plain, fused = read_conllu(path), read_conllu(path, fused=True, language=language)
        assert len(plain) == len(fused) == 1000
        lines = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
        spans = [list(map(int, cells[0].split("-"))) for cells in lines if cells[0][:1].isdigit() and "-" in cells[0]]
        inside = sum(end - start + 1 for start, end in spans)
        assert sum(map(len, fused.words)) == sum(map(len, plain.words)) - inside + len(spans)
        assert len(spans) > 0
    assert {tag for tags in plain.tags for tag in tags} == set(UPOS)
