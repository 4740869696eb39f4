"""Alignment scores by their definition, gold files, the phrasebook's gold, and the command."""

import json

import pytest

from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import alignment_scores, evaluate_alignment, read_links
from st_xling.evaluation.alignment import GoldLinks, format_links
from st_xling.models import load_encoder


def test_scores_are_och_and_neys():
    links = [[(0, 0), (1, 1), (2, 2)], [(0, 1)]]
    gold = [GoldLinks({(0, 0)}, {(0, 0), (1, 1)}), GoldLinks({(0, 0)}, {(0, 0)})]
    scores = alignment_scores(links, gold)
    assert (scores["precision"], scores["recall"]) == (2 / 4, 1 / 2)
    assert scores["error_rate"] == pytest.approx(1 - (1 + 2) / (4 + 2))
    with pytest.raises(ValueError, match="no sure link"):
        alignment_scores(links[:1], [[]])


def test_gold_is_read_as_it_is_written(tmp_path):
    path = tmp_path / "gold"
    path.write_text("0-0 2?1 3p1\n\n1-10\n")
    gold = read_links(path)
    assert gold == [({(0, 0)}, {(0, 0), (2, 1), (3, 1)}), (set(), set()), ({(1, 10)}, {(1, 10)})]
    assert format_links(gold[0].possible) == "0-0 2-1 3-1"
    path.write_text("1-1 2?1\n")
    assert read_links(path, first=1) == [({(0, 0)}, {(0, 0), (1, 0)})]
    path.write_text("1-1\n0-0\n")
    with pytest.raises(ValueError, match="line 2.*from 1.*0-0"):
        read_links(path, first=1)


def test_the_command_writes_links_and_scores_them(saved_encoder, tmp_path, capsys):
    phrases = parallel_phrases("de", "en", split="test", size=40)
    pairs = tmp_path / "pairs.tsv"
    gold = tmp_path / "gold"
    out = tmp_path / "links"
    lines = [f"{' '.join(row['source_tokens'])}\t{' '.join(row['target_tokens'])}\n" for row in phrases]
    pairs.write_text("".join(lines))
    gold.write_text("".join(format_links(map(tuple, links)) + "\n" for links in phrases["alignment"]))
    words = ["align-words", f"de-en={pairs}", "--model", str(saved_encoder), "--tokenized", "--gold", str(gold)]
    assert main([*words, "--every-layer", "--out", str(out), "--json", str(tmp_path / "json")]) == 0
    results = json.loads((tmp_path / "json").read_text())
    assert list(results["alignment"]) == ["1", "2"] and results["pairs"] == 40
    written = [links.sure for links in read_links(out)]
    best = results["alignment"][str(results["best_layer"])]
    assert alignment_scores(written, read_links(gold)) == best
    assert results["signature"] in capsys.readouterr().out
    assert main([*words[:5], "--out", "-"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 40 and "alignment|method:itermax|layers:1|" in printed.err
    for wrong, fact in (("0-0\n", "40 and 1"), ("0-90\n" * 40, "--gold-from-1")):
        gold.write_text(wrong)
        assert main(words) == 2 and fact in capsys.readouterr().err


def test_tokens_end_at_spaces_alone(saved_encoder, tmp_path, capsys):
    """``10 000`` with a no-break space is one token, so that there is no third one to link."""
    pairs = tmp_path / "pairs.tsv"
    gold = tmp_path / "gold"
    pairs.write_text("10\u00a0000 Hunde\t10,000 dogs\n", encoding="utf-8")
    words = ["align-words", f"de-en={pairs}", "--model", str(saved_encoder), "--gold", str(gold), "--tokenized"]
    gold.write_text("1-1\n")
    assert main(words) == 0
    gold.write_text("2-1\n")
    assert main(words) == 2 and "links (2, 1)" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["tsv", "tsv with a header", "moses"])
def test_an_empty_line_keeps_its_place(kind, saved_encoder, tmp_path, capsys):
    """Links are read next to the text, line by line: a corpus with an empty line was refused, by the advice to pass an
    option that the command does not have."""
    rows = [("", ""), ("Hund", "dog"), ("Katze", ""), ("Baum", "tree"), ("\u200b", "nothing")]
    if kind == "moses":
        for code, side in zip(("de", "en"), zip(*rows)):
            (tmp_path / f"c.{code}").write_text("".join(f"{text}\n" for text in side), encoding="utf-8")
        spec = str(tmp_path / "c")
    else:
        text = "".join(f"{source}\t{target}\n" for source, target in rows)
        header = "source\ttarget\n" if kind.endswith("header") else ""
        (tmp_path / "c.tsv").write_text(header + text, encoding="utf-8")
        spec = f"de-en={tmp_path / 'c.tsv'}"
    gold = tmp_path / "gold"
    out = tmp_path / "links"
    figures = tmp_path / "json"
    words = ["align-words", spec, "--model", str(saved_encoder), "--tokenized", "--out", str(out)]
    assert main(words) == 0, capsys.readouterr().err
    assert out.read_text() == "\n0-0\n\n0-0\n\n"
    assert "2 pairs" in (printed := capsys.readouterr().out) and "3 lines with an empty side" in printed
    for lines in ("0-5\n0-0\n0-5\n0-0\n0-5\n", "0-0\n0-0\n"):  # for every line, or for the pairs alone
        gold.write_text(lines)
        assert main([*words, "--overwrite", "--gold", str(gold), "--json", str(figures)]) == 0
        assert [scores["f1"] for scores in json.loads(figures.read_text())["alignment"].values()] == [1.0]


def test_other_faults_of_a_corpus_for_links(saved_encoder, tmp_path, capsys):
    """They are named, without advice that does not hold here."""
    (tmp_path / "c.tsv").write_text("Hund\tdog\n\t\nKatze\n", encoding="utf-8")
    words = ["align-words", f"de-en={tmp_path / 'c.tsv'}", "--model", str(saved_encoder), "--out", "-"]
    assert main(words) == 2
    assert "c.tsv:3: wrong column count" in (printed := capsys.readouterr().err) and "skip" not in printed


def test_sure_links_are_part_of_the_signature(make_model):
    model = make_model()
    with_possible = [GoldLinks({(0, 0)}, {(0, 0), (1, 1)})]
    all_sure = [[(0, 0), (1, 1)]]
    signatures = [
        evaluate_alignment(model, ["Es regnet"], ["It rains"], gold).signature for gold in (with_possible, all_sure)
    ]
    assert signatures[0] != signatures[1]


@pytest.mark.slow
def test_a_real_encoder_knows_words(real_encoder):
    """German by each pair separately; all languages of the phrasebook also by counts over the 40 pairs of each."""
    model = load_encoder(real_encoder, device="cpu")
    all_links = []
    all_gold = []
    for language in ("de", "es", "fr", "vi", "zh"):
        phrases = parallel_phrases(language, "en", split="test", size=40)
        gold = [list(map(tuple, links)) for links in phrases["alignment"]]
        sides = phrases["source_tokens"], phrases["target_tokens"]
        if language == "de":
            assert evaluate_alignment(model, *sides, gold, layers=[8]).layers[8]["error_rate"] < 0.1
        all_links += evaluate_alignment(model, *sides, gold, layers=[8], method="corpus").links[8]
        all_gold += gold
    assert alignment_scores(all_links, all_gold)["error_rate"] < 0.12
