"""CoNLL-U: words and tags, ranges and empty nodes; broken ids and words by file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from st_xling.data import ParallelTextError
from st_xling.data.transfer_sets import UPOS, read_conllu
from tests.retrieval_files import raw


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


RELEASED = "de:Anna\tB-PER\nde:Lüdemann\tI-PER\nde:in\tO\n\nde:10:30\tO\nde:Köln\tB-LOC\n"
