"""Words without a partner: reasons by tables of similarities, numbers and spelling; text, page, command."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import pytest
import torch

from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.mining import GuardOptions, explain, explain_pairs, mine_texts, score_texts
from st_xling.models import tiny_encoder
from tests.mining.guards.batches import static_model

PARTNERS = {"Hund": ["dog"], "schläft": ["sleeps"], "heute": ["today"], "Haus": ["house"], "狗": ["dog"]}


def partners(a, b):
    """Words that mean the same; to an encoder all numbers are alike."""
    return a == b or b in PARTNERS.get(a, ()) or a in PARTNERS.get(b, ()) or (a[0].isdigit() and b[0].isdigit())


@pytest.fixture
def words_of_a_table(monkeypatch):
    """Similarity 0.9 of the pairs of a small dictionary and of equal words, 0.1 of all others."""

    def similarities(model, sources, targets, **options):
        split = [
            [explain.split_words(one) if isinstance(one, str) else one for one in side] for side in (sources, targets)
        ]
        alike = [[[0.9 if partners(a, b) else 0.1 for b in target] for a in source] for source, target in zip(*split)]
        return [torch.tensor(rows).reshape(len(source), len(target)) for rows, source, target in zip(alike, *split)]

    monkeypatch.setattr(explain, "word_similarities", similarities)


def marks(pair):
    return {word.text: word.reason for word in pair.marked}


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Der Hund schläft heute.", "The dog sleeps today.", {}),
        ("Der Hund schläft heute.", "The dog sleeps.", {"heute": "missing"}),
        ("Der Hund schläft.", "The dog sleeps today.", {"today": "added"}),
        ("Der Hund ist da.", "It is the dog.", {}),  # words of function need no partner
        ("Das Haus 12 schläft", "house 13 sleeps", {"12": "number", "13": "number"}),
        ("Haus 12 schläft", "house sleeps", {"12": "missing"}),  # it may be spelled out
        ("Haus 1987", "house", {"1987": "number"}),
        ("Haus 1.234,5 16:30", "house 1,234.5 4:30", {}),
        ("Haus 1.234,5 heute 7", "house 1,234.6 today 7", {"1.234,5": "number", "1,234.6": "number"}),
        ("Der Hund schläft heute", "The dog schläft heute", {"schläft": "untranslated", "heute": "untranslated"}),
        ("Hund ist Anna Schneider", "dog is Anna Schneider", {}),
        ("Hund problem hotel", "dog problem hotel", {}),
        ("狗睡高橋 iPhone", "dog 高橋 iPhone", {"高": "untranslated", "橋": "untranslated", "睡": "missing"}),
        (
            "狗 睡 in the house 觉",
            "dog in the house",
            {"in": "untranslated", "the": "untranslated"}
            | dict.fromkeys("睡觉", "missing")
            | {"house": "untranslated"},
        ),
        ("", "The dog sleeps", {"sleeps": "added"}),
        ("…", "!", {}),
        ("Hund", "dog", {}),
        ("Hund", "house", {"Hund": "missing", "house": "added"}),
        (
            "alte Hund",
            "house today",
            dict.fromkeys(("alte", "Hund"), "missing") | dict.fromkeys(("house", "today"), "added"),
        ),
    ],
)
def test_reasons(words_of_a_table, source, target, expected):
    (pair,) = explain_pairs(
        static_model(), [source], [target], source_language="de", target_language="en", layer=1
    ).pairs
    assert marks(pair) == expected
    # Of the other way round the same words.
    (turned,) = explain_pairs(
        static_model(), [target], [source], source_language="en", target_language="de", layer=1
    ).pairs
    other = {"missing": "added", "added": "missing"}
    assert marks(turned) == {word: other.get(reason, reason) for word, reason in expected.items()}


def test_shares_and_the_weakest_word(words_of_a_table):
    sources, targets = (
        ["Der Hund schläft heute.", "Der Hund schläft.", "", "…"],
        ["The dog sleeps.", "The house sleeps today.", "dog", "!"],
    )
    report = explain_pairs(static_model(), sources, targets, layer=1)
    assert [pair.shares for pair in report.pairs] == [
        pytest.approx(both) for both in ((2 / 3, 1.0), (1 / 2, 1 / 3), (1.0, 1.0), (1.0, 1.0))
    ]
    assert report.words == {"missing": 2, "added": 2} and report.summary().startswith("2 of 4 pairs")
    assert [number for number, _ in report.chosen()] == [1, 2] and len(report.chosen(every=True)) == 4
    assert [number for number, _ in report.chosen(worst=1)] == [2]
    first = report.pairs[0]
    assert first.weakest.text == "heute" and "heute (" in first.summary()
    assert report.pairs[3].weakest is None and "weakest" not in report.pairs[3].summary()
    assert first.as_dict()["marks"] == [
        {
            "side": "source",
            "position": 3,
            "text": "heute",
            "similarity": pytest.approx(first.weakest.similarity, abs=1e-4),
            "nearest": "The",
            "reason": "missing",
        }
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Er  kam ,sah\tund siegte !",
        "هذا الكلب كبير جدا",
        "他说 hello，走了。",
        "cafe\u0301 \u0301x 🙂 <b>&amp;",
        "",
        " \u0301 Haus",
    ],
)
def test_marks_stand_in_the_text_as_it_is(words_of_a_table, text):
    (pair,) = explain_pairs(static_model(), [text], ["something else 🙂"], layer=1).pairs
    assert ["".join(piece for piece, _ in pieces) for pieces in pair._pieces()] == [text, "something else 🙂"]
    assert pair.lines()[1] == "[something else|added] 🙂" and "\x1b[" in pair.lines(colours=True)[1]
    if "\u0301 " not in text:
        assert re.sub(r"\[([^\]|]*)\|missing\]", r"\1", pair.lines()[0]) == text


class Page(HTMLParser):
    """Tags, and all that a browser would load."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.loads, self.words = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loads += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        self.words += data


def test_the_page_needs_nothing_else_and_takes_text_as_text(words_of_a_table):
    report = explain_pairs(static_model(), ["<script>Hund", "Hund"], ["<b>house", "dog"], layer=1)
    page = Page(report.page(title="a & b"))
    assert "script" not in page.tags and page.tags.count("section") == 1 and not page.loads
    assert "script" in page.words and "a & b" in page.words and report.signature in page.words
    assert page.tags.count("mark") > len(explain.REASONS) and "@import" not in report.page()
    assert Page(report.page(every=True)).tags.count("section") == 2
    assert "<mark class=missing>" in report.pairs[0]._repr_html_()


def test_a_word_beyond_the_models_length_is_not_marked(make_model):
    text = "Der Hund schläft unter einem sehr großen runden Tisch"
    (pair,) = explain_pairs(make_model(max_length=8), [text], [text]).pairs
    last = pair.source_words[-1]
    assert math.isnan(last.similarity) and last.nearest is None and last.reason is None


@pytest.fixture
def files(tmp_path, saved_encoder):
    """Pairs, what ``mine`` and ``score`` make of them, and pairs by name."""
    rows = parallel_phrases("de", "en", size=12)
    pairs = [("Ein Satz mit 3 Worten.", "A sentence of 4 words."), *zip(rows["source"], rows["target"])]
    (tmp_path / "pairs.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")
    for side, name in enumerate(("de", "en")):
        (tmp_path / f"news.{name}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    options = {"model": str(saved_encoder), "k": 2}
    off = GuardOptions().with_flags(off=["all"])
    for ending in ("tsv", "jsonl"):
        out = tmp_path / f"mined.{ending}"
        mine_texts(tmp_path / "news.de", tmp_path / "news.en", out, format=ending, guards=off, **options)
        score_texts(tmp_path / "pairs.tsv", tmp_path / f"scored.{ending}", format=ending, **options)
    return tmp_path


@pytest.mark.parametrize(
    "name", ["pairs.tsv", "mined.tsv", "mined.jsonl", "scored.tsv", "scored.jsonl", "scored.tsv?size=5"]
)
def test_the_command_reads_what_mine_and_score_write(files, name, saved_encoder, capsys):
    words = ["explain", f"de-en={files / name}", "--model", str(saved_encoder)]
    out = files / "deep" / "page.html"
    assert main([*words, "--every-pair", "--html", str(out), "--json", "-"]) == 0
    printed = capsys.readouterr()
    results = json.loads(printed.out)
    known = {(row["source"], row["target"]) for row in parallel_phrases("de", "en", size=12)}
    explained = results["explain"]["pairs"]
    pairs = [(pair["source"], pair["target"]) for pair in explained]
    texts = {text for pair in known for text in pair} | {"Ein Satz mit 3 Worten.", "A sentence of 4 words."}
    assert {text for pair in pairs for text in pair} <= texts
    assert len(pairs) in (5, 13) or "mined" in name
    assert "|languages:de,en|" in results["signature"] and results["signature"] in printed.err
    assert Page(out.read_text(encoding="utf-8")).tags.count("section") == len(pairs)
    assert main([*words, "--worst", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("words with a partner") == 1 and "\x1b" not in printed
    if name == "pairs.tsv":
        assert {mark["text"] for mark in explained[0]["marks"] if mark["reason"] == "number"} == {"3", "4"}
        assert main(["explain", str(files / name), *words[2:]]) == 0
        assert "|languages:de,en|" in capsys.readouterr().out  # identified


def test_bad_input(files, tmp_path, saved_encoder, capsys):
    static_model().save_pretrained(str(tmp_path / "static"))
    (tmp_path / "empty.tsv").write_text("", encoding="utf-8")
    (tmp_path / "blank.tsv").write_text("Hund\t\n", encoding="utf-8")
    for words, fact in (
        (["pairs.tsv", "static"], "StaticEmbedding|token"),
        (["empty.tsv", saved_encoder], "empty.tsv"),
        (["blank.tsv", saved_encoder], "blank.tsv"),
        (["nothing.tsv", saved_encoder], "nothing.tsv"),
        (["pairs.tsv", saved_encoder, "--layer", "9"], "1..2.*9"),
        (["pairs.tsv", saved_encoder, "--threshold", "1"], r"\(0, 1\).*1"),
        (["pairs.tsv", saved_encoder, "--worst", "0"], "--worst.*0"),
        (["pairs.tsv", saved_encoder, "--html", tmp_path / "pairs.tsv"], "--html.*would replace the input"),
    ):
        path, model, *options = map(str, words)
        assert main(["explain", str(tmp_path / path), "--model", str(tmp_path / model), *options]) == 2
        assert re.search(fact, capsys.readouterr().err)
    (tmp_path / "copied.tsv").write_text("Hund walking slowly\tdog walking slowly\n", encoding="utf-8")
    assert main(["explain", f"tlh-en={tmp_path / 'copied.tsv'}", "--model", str(saved_encoder)]) == 0
    assert re.search("script alone.*tlh", capsys.readouterr().err)
    with pytest.raises(ValueError, match="1 and 2"):
        explain_pairs(tiny_encoder(["Hund", "dog"], vocabulary=50), ["Hund"], ["dog", "house"])
