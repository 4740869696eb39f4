"""The demo, on little text: what it writes, what it prints, and a model that needs nothing of ours."""

import json

import pytest

from st_xling.cli import main
from st_xling.demo import LANGUAGES, DemoSize, demo_table, run_demo


def test_results_have_the_promised_keys_and_move_in_the_right_direction(demo):
    folder, results = demo
    assert json.loads((folder / "results.json").read_text(encoding="utf-8")) == results
    for language in LANGUAGES:
        for way in ("to_en", "from_en"):
            before = results["tatoeba"]["before"][language][way]
            after = results["tatoeba"]["after"][language][way]
            assert 0 <= before < 0.25  # chance is one in sixty
            assert before + 0.1 < after <= 1
    mining = results["mining"]
    assert set(mining["languages"]) == set(LANGUAGES)
    for measures in mining["languages"].values():
        assert measures["precision"] == pytest.approx(measures["correct"] / measures["mined"])
        assert measures["recall"] == pytest.approx(measures["correct"] / 30)
    assert mining["f1"] == pytest.approx(
        sum(measures["f1"] for measures in mining["languages"].values()) / len(LANGUAGES)
    )
    table = demo_table(results)
    for signature in (mining["signature"], results["tatoeba"]["signature"]):
        assert "st-xling:" in signature and "data:" in signature and signature in table
    assert {line.split()[0] for line in table.splitlines() if line} >= set(LANGUAGES)


def test_the_command_prints_the_results_and_how_to_use_the_model(demo, monkeypatch, capsys):
    """Of a run that is done: the command and the function are the same but for the printing."""
    folder, results = demo
    monkeypatch.setattr("st_xling.demo.run_demo", lambda out, **options: results)
    assert main(["demo", "--out", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(demo_table(results)) and f"SentenceTransformer({str(folder)!r})" in printed


def test_the_folder_holds_model_card_and_picture(demo):
    folder, _ = demo
    assert (folder / "pictures" / "cosines.png").read_bytes().startswith(b"\x89PNG")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "sentence-transformers" in card and "### Bitext mining" in card and "| zh-en |" in card
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    assert all(module["type"].startswith("sentence_transformers.") for module in modules)
    assert not [path for path in folder.iterdir() if path.suffix in {".bin", ".pkl", ".pt", ".pth"}]


def test_the_card_says_what_a_stranger_has_to_know(demo):
    """Everyone's first card claimed an F1 of BUCC for generated text, called random weights "a model that was loaded in
    Python", and had columns of dashes."""
    folder, _ = demo
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "bucc (" not in card.lower() and "type: bucc" not in card and "phrasebook-60x30-seed0" in card
    assert "It was trained from random weights." in card and "loaded in Python" not in card
    assert "Text was made by a small grammar" in card and "knows only the text that it was trained on" in card
    assert (
        "phrasebook-test: 5 languages, 60 sentences each" in card
        and "5 language pairs, 30 gold pairs each" in card
        and "| – | – |" not in card
    )
    assert f'SentenceTransformer("{folder.name}")' in card
    assert "test de" in card  # in the leak check


def test_an_earlier_demo_is_not_overwritten_unasked(demo):
    folder, _ = demo
    with pytest.raises(ValueError, match="holds an earlier run .*--overwrite"):
        run_demo(folder, size=DemoSize(train=20, test=10, mining=10, gold=2, epochs=1.0))
