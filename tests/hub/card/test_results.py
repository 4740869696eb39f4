"""Kept figures in a card: tables, signatures, commands, metadata and pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from st_xling.evaluation.results import KeptFigures, keep_figures
from st_xling.hub import CardOptions, card_text, write_card
from st_xling.hub.card.facts import read_facts
from st_xling.hub.card.metadata import card_metadata, eval_results
from st_xling.hub.card.rows_of_figures import judged
from st_xling.hub.card.validate import check_card
from st_xling.mining.published import PublishedThreshold, publish_thresholds


def interval(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - 0.1, "high": mean + 0.1}


def bucc(name: str, **pairs: dict[str, float]) -> dict[str, float]:
    averages = {f"{name}_{key}": 0.5 for key in ("precision", "recall", "f1")}
    return {f"{name}_{pair}_{key}": value for pair, found in pairs.items() for key, value in found.items()} | averages


COUNTS = {"precision": 0.75, "recall": 0.5, "f1": 0.6, "threshold": 1.0625, "n_mined": 4, "n_gold": 6, "n_correct": 3}
RANKED = {"acc@1": interval(0.5), "mrr": interval(0.625), "n_queries": 8, "n_without_relevant": 0}
HISTOGRAM = {"low": 0.9, "high": 1.3, "correct": [0, 0, 2, 3], "wrong": [40, 30, 2, 0]}
# Task → figures as --json has them, signature, and values that the metadata must have: (config, metric) → value.
FIGURES: dict[str, tuple[dict[str, Any], str, dict[tuple[str, str, str], float]]] = {
    "tatoeba": (
        {
            "tatoeba_deu_to_en_accuracy": 0.5,
            "tatoeba_deu_from_en_accuracy": 0.25,
            "tatoeba_to_en_accuracy": 0.5,
            "tatoeba_from_en_accuracy": 0.25,
            "tatoeba_mean_accuracy": 0.375,
        },
        "tatoeba|direction:both|data:tatoeba@01234567",
        {("deu", "accuracy", "to English"): 0.5, ("all", "accuracy", "from English"): 0.25},
    ),
    "bucc": (
        {
            **bucc("bucc", **{"de-en": COUNTS, "fr-en": {**COUNTS, "threshold": None}}),
            "histograms": {"de-en": HISTOGRAM},
        },
        "bucc|threshold:train|split:test|data:mine@01234567",
        {("de-en", "precision", "precision"): 0.75, ("de-en", "f1", "F1"): 0.6, ("all", "f1", "F1"): 0.5},
    ),
    "xsim": (
        {"deu": {"to_en_error": 0.125, "from_en_error": 0.25}, "all": {"to_en_error": 0.125, "from_en_error": 0.25}},
        "xsim|margin:ratio|data:tatoeba@01234567",
        {("deu", "xsim_error", "error to English"): 0.125},
    ),
    "precision": (
        {
            f"precision_{label}{way}_p@{n}": 0.5 + 0.1 * n
            for label in ("zh-vi_", "")
            for way in ("source_to_target", "target_to_source", "mean")
            for n in (1, 3)
        },
        "precision|at:1,3|data:precision@01234567",
        {("zh-vi", "precision_at_3", "P@3 →"): 0.8},
    ),
    "reranking": (
        {"overall": RANKED, "matrix": {"en": {"zh": RANKED}}, "counts": {}},
        "reranking|n:8|data:xquad@01234567",
        {("all", "accuracy_at_1", "acc@1"): 0.5, ("en → zh", "mrr", "MRR"): 0.625},
    ),
    "retrieval": (
        {
            name: {"figures": {"fi": {"MRR@100": value}, "mean": {"MRR@100": value}}, "n_queries": {"fi": 8}}
            for name, value in (("BM25", 0.25), ("mine", 0.5))
        },
        "retrieval|pool:separate|data:mrtydi@01234567",
        {("fi", "mrr_at_100", "MRR@100"): 0.5},
    ),
    "transfer-pos": (
        {
            "task": "pos",
            "languages": {"en": {"accuracy": 0.9, "f1": 0.8, "n": 5}, "de": {"accuracy": 0.7, "f1": 0.6, "n": 5}},
            "average": {"accuracy": 0.8, "f1": 0.7},
            "zero_shot_average": {"accuracy": 0.7, "f1": 0.6},
        },
        "transfer|task:pos|data:01234567",
        {("de", "f1", "F1"): 0.6},
    ),
}


def kept(task: str) -> KeptFigures:
    figures, signature, _ = FIGURES[task]
    return KeptFigures(task, figures, signature, f"st-xling evaluate {task} my-encoder --data x --keep --json f.json")


@pytest.fixture
def judged_folder(copy_of) -> Path:
    folder = copy_of("encoder")
    for task in FIGURES:
        keep_figures(folder, kept(task))
    return folder


@pytest.mark.parametrize("task", FIGURES)
def test_figures_reach_the_metadata_with_their_signature(task):
    found = {(r.dataset_config, r.metric_type, r.metric_name): r for r in eval_results(kept(task), judged(kept(task)))}
    for key, value in FIGURES[task][2].items():
        assert found[key].metric_value == pytest.approx(value)
    assert {result.metric_args["signature"] for result in found.values()} == {FIGURES[task][1]}
    assert not any("BM25" in key[2] for key in found)  # another system's figures are not the model's


def test_metadata_come_back_as_they_went_in(judged_folder):
    facts = read_facts(judged_folder)
    data, text = card_metadata(facts), card_text(judged_folder)
    back = ModelCard(text, ignore_metadata_errors=False)
    assert back.data.eval_results == data.eval_results and len(data.eval_results) > 20
    assert str(back) == text
    with pytest.raises(ValueError, match="do not read back"):
        check_card(text.replace("value: 0.75", "value: 0.76", 1), data)


def test_a_threshold_stands_beside_its_f1(judged_folder):
    results = card_metadata(read_facts(judged_folder)).eval_results
    [args] = [r.metric_args for r in results if r.dataset_config == "de-en" and r.metric_type == "f1"]
    assert args["threshold"] == 1.0625 and args["threshold_source"] == "train"
    assert {r.dataset_split for r in results if r.dataset_name.startswith("mine")} == {"test"}


def test_every_table_has_its_signature_and_a_command_to_paste(judged_folder):
    text = write_card(judged_folder, options=CardOptions(repo_id="me/encoder")).read_text(encoding="utf-8")
    for task, (_, signature, _) in FIGURES.items():
        assert f"Signature: `{signature}`" in text
        assert f"st-xling evaluate {task} me/encoder --data x\n" in text
    assert "| deu | 50.0 | 25.0 | 37.5 |" in text
    assert "| de-en | 75.0 | 50.0 | 60.0 | 1.0625 | 4 | 3 | 6 |" in text
    assert "| **all** | 50.0 (40.0–60.0) |" in text and 'SentenceTransformer("me/encoder")' in text


def test_pictures_are_drawn_alike_and_go_with_their_figures(judged_folder):
    write_card(judged_folder)
    pictures = [judged_folder / "pictures" / name for name in ("accuracy_by_language.png", "score_histogram.png")]
    drawn = [path.read_bytes() for path in pictures]
    assert all(content.startswith(b"\x89PNG") for content in drawn)
    text = write_card(judged_folder).read_text(encoding="utf-8")
    assert [path.read_bytes() for path in pictures] == drawn and all(f"(pictures/{p.name})" in text for p in pictures)
    results = json.loads((judged_folder / "results.json").read_text(encoding="utf-8"))
    (judged_folder / "results.json").write_text(json.dumps({**results, "evaluations": []}), encoding="utf-8")
    assert "score_histogram" not in write_card(judged_folder).read_text(encoding="utf-8")
    assert not any(path.exists() for path in pictures)


def test_published_thresholds_are_told(judged_folder):
    found = PublishedThreshold(
        threshold=1.06, precision=0.9, recall=None, f1=None, margin="ratio", k=4, retrieval="max", signature="bucc|x"
    )
    publish_thresholds(judged_folder, {"de-en": found})
    text = card_text(judged_folder)
    assert "| de-en | 1.0600 | 90.0 | – | – | ratio margin, k 4, max |" in text and "`bucc|x`" in text


def test_figures_of_another_form_are_told_as_they_are():
    odd = KeptFigures("tatoeba", {"score": 0.5, "more": {"deep": 2}, "word": "x"}, "odd", "st-xling evaluate tatoeba m")
    assert judged(odd).rows == {"score": [0.5], "more deep": [2.0]}


def test_the_evaluation_keeps_how_candidates_score(copy_of, capsys):
    from st_xling.cli import main

    folder = copy_of("encoder")
    assert main(["evaluate", "bucc", str(folder), "--data", "phrasebook:de?size=40&gold=10", "--keep"]) == 0
    [entry] = json.loads((folder / "results.json").read_text(encoding="utf-8"))["evaluations"]
    histogram = entry["figures"]["histograms"]["de-en"]
    assert (
        sum(histogram["correct"]) <= 10 <= sum(histogram["correct"] + histogram["wrong"])
        and len(histogram["correct"]) == len(histogram["wrong"]) == 40
    )
    assert (folder / "pictures" / "score_histogram.png").is_file()
    assert "pictures/score_histogram.png" in (folder / "README.md").read_text(encoding="utf-8")
