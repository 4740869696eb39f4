"""``st-xling evaluate bucc`` and ``xsim``: what they print is what the library finds."""

from __future__ import annotations

import json

import pytest
from sentence_transformers import SentenceTransformer

from st_xling import __version__
from st_xling.cli import main
from st_xling.data import read_bucc
from st_xling.data.phrasebook import mining_phrases
from st_xling.evaluation import BuccEvaluator, bucc_table, xsim_by_language


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two language pairs, each with a training and a test part, in the BUCC layout."""
    made = tmp_path_factory.mktemp("bucc")
    for language in ("de", "vi"):
        for split, part in (("training", "dev"), ("test", "test")):
            texts = mining_phrases(language, "en", split=part, size=30, gold=10)
            stem = f"{language}-en.{split}"
            sides = ((language, texts.source), ("en", texts.target))
            for code, lines in sides:
                rows = [f"{code}-{number}\t{line}\n" for number, line in enumerate(lines)]
                (made / f"{stem}.{code}").write_text("".join(rows), encoding="utf-8")
            gold = [f"{language}-{source}\ten-{target}\n" for source, target in texts.gold]
            (made / f"{stem}.gold").write_text("".join(gold), encoding="utf-8")
    return made


def test_bucc_prints_table_and_signature(saved_encoder, folder, tmp_path, capsys):
    figures = tmp_path / "deep" / "figures.json"
    words = ["evaluate", "bucc", str(saved_encoder), "--data", str(folder), "--pairs", "de-en", "vi-en"]
    assert main([*words, "--json", str(figures)]) == 0
    out = capsys.readouterr().out
    evaluator = BuccEvaluator(
        {pair: read_bucc(folder, pair, "test") for pair in ("de-en", "vi-en")},
        train={pair: read_bucc(folder, pair, "training") for pair in ("de-en", "vi-en")},
    )
    expected = evaluator(SentenceTransformer(str(saved_encoder), device="cpu"))
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written["bucc"].keys() == expected.keys()
    assert written["bucc"]["bucc_f1"] == pytest.approx(expected["bucc_f1"])
    assert written["signature"] == evaluator.signature
    assert out.splitlines() == [*bucc_table(expected).splitlines(), evaluator.signature]


def test_bucc_options(saved_encoder, folder, tmp_path, capsys):
    """What is typed reaches the library; a threshold that keeps nothing is written as null."""
    figures = tmp_path / "figures.json"
    words = f"evaluate bucc {saved_encoder} --data {folder} --pairs de-en,vi-en --json {figures}".split()
    options = ["--k", "2", "--margin", "distance", "--retrieval", "intersect", "--split", "training"]
    assert main([*words, *options, "--threshold", "inf"]) == 0
    signature = capsys.readouterr().out.splitlines()[-1]
    start = "bucc|pairs:de-en,vi-en|margin:distance|k:2|retrieval:intersect|threshold:given|split:training|"
    assert signature.startswith(start)
    written = json.loads(figures.read_text(encoding="utf-8"), parse_constant=pytest.fail)["bucc"]
    assert written["bucc_de-en_threshold"] is None and written["bucc_de-en_n_mined"] == 0
    assert main([*words, "--threshold", "tune"]) == 0
    assert "|threshold:tuned on this gold|split:test|" in capsys.readouterr().out


def test_xsim(saved_encoder, tmp_path, capsys):
    texts = mining_phrases("de", "en", split="test", size=12, gold=12)
    sides = [[pile[row] for row in rows] for pile, rows in zip((texts.source, texts.target), zip(*texts.gold))]
    for code, lines in zip(("deu", "eng"), sides):
        (tmp_path / f"tatoeba.deu-eng.{code}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    figures = tmp_path / "figures.json"
    words = f"evaluate xsim {saved_encoder} --data {tmp_path} --languages de --json {figures}".split()
    assert main([*words, "--k", "3"]) == 0
    model = SentenceTransformer(str(saved_encoder), device="cpu")
    report = xsim_by_language(model, {"deu": (sides[0], sides[1])}, k=3, name="tatoeba")
    assert capsys.readouterr().out.splitlines() == [*report.table().splitlines(), report.signature]
    assert json.loads(figures.read_text()) == json.loads(json.dumps(report.as_dict()))
    assert report.signature.endswith(f"|st-xling:{__version__}")
