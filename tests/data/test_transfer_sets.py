"""XNLI, PAWS-X and tagged words in every published layout; faults with file and line."""

import json
from pathlib import Path

import pytest

from st_xling.data import ParallelTextError
from st_xling.data.transfer_sets import UPOS, Example, Rows, read_pairs, read_tagged
from tests.retrieval_files import lines

ROWS = [
    ("ar", "neutral", "وقال، ماما، لقد عدت للمنزل.", "اتصل بأمه حالما أوصلته حافلة المدرسة."),
    ("ar", "entailment", "وقال، ماما، لقد عدت للمنزل.", "أخبر أمه أنه قد عاد للمنزل."),
    ("th", "contradiction", 'และเขาพูดว่า "ม๊า ผมอยู่บ้าน', "เขาไม่ได้พูดอะไรสักคำ 🙂"),
    ("zh", "-", "他说，妈妈，我回来了。", "他没说一句话。"),
    ("zh", "neutral", "他说，妈妈，我回来了。", "校车把他放下后，他立即给他妈妈打了电话。"),
]
HEADER = "language\tgold_label\tsentence1_binary_parse\tsentence1\tsentence2\tpromptID\tlabel1\tmatch"


def expected(*rows: tuple[str, str, str, str]) -> Rows:
    """An open quote is text, and a row without a majority keeps its place."""
    return [None if label == "-" else Example([first, second], [label]) for _, label, first, second in rows]


def test_layouts_of_xnli(tmp_path: Path) -> None:
    published = [HEADER, *(f"{code}\t{label}\t( x )\t{a}\t{b}\t7\t{label}\tTrue" for code, label, a, b in ROWS)]
    names = ("language", "gold_label", "sentence1", "sentence2")
    keyed = [json.dumps({**dict(zip(names, row)), "pairID": 1}, ensure_ascii=False) for row in ROWS]
    for path in (lines(tmp_path / "xnli.test.tsv", published), lines(tmp_path / "xnli.test.jsonl.gz", keyed)):
        for code, rows in (("ar", ROWS[:2]), ("tha", ROWS[2:3]), ("zh", ROWS[3:])):
            assert read_pairs(path, "XNLI", language=code) == expected(*rows)
        with pytest.raises(ParallelTextError, match=r"expected labeled pairs in 'sw'; the file has ar, th, zh"):
            read_pairs(path, "XNLI", language="sw")
    plain = lines(tmp_path / "dev-ar.tsv.gz", [f"{a}\t{b}\t{label}" for _, label, a, b in ROWS])
    assert read_pairs(plain, "XNLI", language="ar") == expected(*ROWS)
    translated = ["premise\thypo\tlabel", "Es regnet.\tTrocken.\tcontradictory"]
    [row] = read_pairs(lines(tmp_path / "multinli.train.de.tsv", translated), "XNLI")
    assert row == Example(["Es regnet.", "Trocken."], ["contradiction"])
    # MultiNLI's lines end early where later annotators are missing.
    ragged = ["gold_label\tsentence1\tsentence2\tlabel1\tlabel2", "neutral\ta\tb\tneutral"]
    assert read_pairs(lines(tmp_path / "multinli.txt", ragged), "XNLI") == [Example(["a", "b"], ["neutral"])]


def test_layouts_of_pawsx(tmp_path: Path) -> None:
    rows = [("1", "Le chat dort.", "Le chat est endormi.", "1"), ("2", "NS", "Le « chat » dort.", "0")]
    rows.append(("3", "El cafe\u0301 está frío.", "Está frío el cafe\u0301.", "1"))
    header = "id\tsentence1\tsentence2\tlabel"
    keyed = [json.dumps(dict(zip(header.split("\t"), (*row[:3], int(row[3]))))) for row in rows]
    for path in (
        lines(tmp_path / "test_2k.tsv", [header, *map("\t".join, rows)]),
        lines(tmp_path / "plain.tsv", ["\t".join(row[1:]) for row in rows]),
        lines(tmp_path / "test.jsonl", keyed),
    ):
        first, none, last = read_pairs(path, "PAWS-X", language="fr")
        assert first == Example([*rows[0][1:3]], ["1"]) and last == Example([*rows[2][1:3]], ["1"])
        assert none is None  # NS was never translated


@pytest.mark.parametrize(
    ("name", "content", "faults"),
    [
        ("bad.tsv", "a\tb\tneutral|a\tb|a\tb\tmaybe|a\t \tneutral", "2 column count, 3 unknown label, 4 empty side"),
        ("a.jsonl", '{"gold_label": "neutral", "text": "a"}|{', "1 no such key, 2 bad JSON"),
        ("long.txt", "gold_label\tsentence1\tsentence2|neutral\ta\tb\tc|neutral\ta", "2 column count, 3 column count"),
        ("none.tsv", "", "None no rows"),
    ],
)
def test_faults_come_together(name: str, content: str, faults: str, tmp_path: Path) -> None:
    with pytest.raises(ParallelTextError) as error:
        read_pairs(lines(tmp_path / name, filter(None, content.split("|"))), "XNLI")
    shown = [f"{fault.line} {fault.kind.removeprefix('bad ')}" for fault in error.value.faults]
    assert ", ".join(shown).replace("JSON", "bad JSON") == faults


def word(number: str, form: str, tag: str = "NOUN") -> str:
    return "\t".join([number, form, "_", tag, *("_" for _ in range(6))])


FRENCH = [
    "# text = Accès aux États-Unis",
    word("1", "Accès"),
    word("2-3", "aux", "_"),
    word("2", "à", "ADP"),
    word("3", "les", "DET"),
    word("3.1", "tous", "_"),
    word("4", "États-Unis", "PROPN"),
]


def test_treebanks_and_files_of_xtreme(tmp_path: Path) -> None:
    """Ranges and empty nodes of treebanks are skipped; a form may have a blank, and a word be a number sign."""
    treebank = [*FRENCH, "", "# newdoc", "", word("0.1", "_", "_"), word("1", "10 000", "NUM"), word("2", "#", "SYM")]
    rows = read_tagged(lines(tmp_path / "fr.conllu.gz", [line + "\r" for line in treebank]))
    accès = Example(["Accès", "à", "les", "États-Unis"], ["NOUN", "ADP", "DET", "PROPN"])
    assert rows == [accès, Example(["10 000", "#"], ["NUM", "SYM"])]
    xtreme = ["va\tVERB", "aux\tADP", "", "#\tSYM", "#foo\tX", ""]
    rows = read_tagged(lines(tmp_path / "test-fr.tsv", xtreme))
    assert rows == [Example(["va", "aux"], ["VERB", "ADP"]), Example(["#", "#foo"], ["SYM", "X"])]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (word("1", "a", "NN"), "bad word: expected a form and a universal tag, got 'a' 'NN'"),
        (word("1", " "), "bad word"),
        ("1\ta\t_\tNOUN", "bad column count: expected 10 or 2, got 4"),
    ],
)
def test_broken_words(content: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(ParallelTextError) as error:
        read_tagged(lines(tmp_path / "xx.conllu", [*FRENCH, "", content, ""]))
    [broken] = error.value.faults
    assert f"{broken.kind}: {broken.detail}".startswith(fault) and broken.line == len(FRENCH) + 2
    with pytest.raises(ParallelTextError, match="expected sentences"):
        read_tagged(lines(tmp_path / "none.conllu", ["# nothing"]))


def test_real_files(real_data: Path) -> None:
    pairs_by_language = {
        code: read_pairs(real_data / "xnli" / f"dev-{code}.tsv.gz", "XNLI") for code in ("en", "th", "ar")
    }
    labels = [[row and row.labels for row in rows] for rows in pairs_by_language.values()]
    assert len(labels[0]) == 2490 and labels[0] == labels[1] == labels[2]
    french = read_pairs(real_data / "pawsx" / "dev-fr.tsv.gz", "PAWS-X")
    assert (len(french), french.count(None)) == (2000, 8)
    german = read_tagged(real_data / "ud_pud" / "de.conllu.gz")
    assert len(german) == 1000 and {tag for row in german if row for tag in row.labels} <= set(UPOS)
