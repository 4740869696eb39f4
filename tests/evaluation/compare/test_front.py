"""Before and after a training, and the mixtures of both: what is measured, chosen, saved and shown."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import TatoebaEvaluator
from st_xling.evaluation.compare import front, load_comparison_data, measure_axes, merge_models
from st_xling.evaluation.retrieval import RetrievalEvaluator
from st_xling.models import tiny_encoder

DATA = ["phrasebook:de,fr?size=30"]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [*parallel_phrases("de", "en", size=300)["source"], *parallel_phrases("de", "en", size=300)["target"]]
    model = tiny_encoder(texts, vocabulary=300, hidden_size=32, layers=1, heads=2, seed=0)
    model.save_pretrained(str(folder := tmp_path_factory.mktemp("models") / "start"))
    return folder


@pytest.fixture(scope="module")
def trained(start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on German; its card has the table of before and after, with French as another language."""
    out = tmp_path_factory.mktemp("runs") / "trained"
    line = f"train realign --model {start} --data phrasebook:de?size=400 --dev none --max-steps 30 --batch-size 32"
    line += f" --learning-rate 3e-3 --keep-like en=phrasebook?size=50 --cache {out.parent / 'cache'} --out {out}"
    words = line.split()
    for spec in DATA:
        words += ["--measure", spec]
    assert main(words) == 0
    return out


def test_the_card_shows_what_a_training_gained_and_lost(start: Path, trained: Path) -> None:
    """For whoever reads a card: a gain in the new language says nothing of what was lost elsewhere."""
    content = json.loads((trained / "results.json").read_text(encoding="utf-8"))["before_after"]
    changes = {change["axis"]: change for change in content["changes"]}
    assert list(changes) == ["translation", "translation, other languages", "retrieval", "retrieval, mixed pool"]
    assert changes["translation"]["labels"] == ["deu"] and changes["translation, other languages"]["labels"] == ["fra"]
    learned = changes["translation"]
    assert learned["after"] > learned["before"] and learned["low"] <= learned["difference"] <= learned["high"]
    assert learned["p"] < 0.05

    data = load_comparison_data(DATA)
    for folder, key in ((start, "before"), (trained, "after")):
        model = SentenceTransformer(str(folder))
        for evaluator, axis in (
            (TatoebaEvaluator({"deu": data.pairs["deu"]}), "translation"),
            (RetrievalEvaluator(data.sets), "retrieval"),
        ):
            figures = evaluator(model)
            assert changes[axis][key] == pytest.approx(figures[evaluator.primary_metric])
    card = (trained / "README.md").read_text(encoding="utf-8")
    assert f"| translation: accuracy | {100 * learned['before']:.1f} | {100 * learned['after']:.1f} |" in card
    assert content["signature"].split("|")[0] == "axes" and content["signature"] in card
    assert "2 of 50 other texts" in card and "with weight 20." in card


def test_the_weight_is_chosen_measured_once_and_saved(
    start: Path, trained: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """A second call measures no weight again; the saved model is the mixture, with picture and card."""
    data = load_comparison_data(DATA)
    out = tmp_path / "merged"
    original = front.measure_axes
    calls: list[str] = []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(options["name"])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(front, "measure_axes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        merge_models(str(start), str(trained), data, out, weights=[0.5, 1.0], most_lost=100)
    assert calls == ["weight-0", "weight-0.5", "weight-1"]
    measured = sorted(path.name for path in (out / "training" / "weights").iterdir())
    times = {name: (out / "training" / "weights" / name).stat().st_mtime_ns for name in measured}

    line = f"merge {start} {trained} --weights 0.5,1 --most-lost 100 --out {out} --json {tmp_path / 'merge.json'}"
    words = line.split()
    for spec in DATA:
        words += ["--data", spec]
    assert main(words) == 0
    for name, time in times.items():
        assert (out / "training" / "weights" / name).stat().st_mtime_ns == time
    report = json.loads((tmp_path / "merge.json").read_text(encoding="utf-8"))["merge"]
    best = max(report["front"], key=lambda point: point["translation"])
    assert report["weight"] == best["weight"] > 0
    assert set(best["kept"]) == {"MRR@100, German", "MRR@100, French", "MRR@100, English"}
    model = SentenceTransformer(str(out))
    again = measure_axes(model, data, name="again")
    assert again.value("translation") == pytest.approx(best["translation"])
    assert json.loads((out / "results.json").read_text(encoding="utf-8"))["merge"]["weight"] == report["weight"]
    assert (out / "pictures" / "front.png").is_file()
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "Merged with its start" in card and "pictures/front.png" in card and str(tmp_path) not in card


def point(weight: float, translation: float, lost: float) -> Any:
    return {"weight": weight, "translation": translation, "most_lost": lost}


def test_the_rule_of_the_choice() -> None:
    """The most translation for what may be lost, exactly as much included; of equal ones the smaller share."""
    points = [point(0, 0.8, 0), point(0.25, 0.84, 0.3), point(0.5, 0.86, 0.5 + 1e-12), point(1, 0.9, 2)]
    assert [front.choose_weight(points, lost)["weight"] for lost in (0, 0.4, 0.5, 2)] == [0, 0.25, 0.5, 1]
    assert front.choose_weight([point(0, 0.8, 0), point(1, 0.8, 0)], 1)["weight"] == 0


def test_what_a_weight_cannot_be_chosen_by(start: Path, tmp_path: Path) -> None:
    """Named before the models are loaded."""
    pairs = load_comparison_data(DATA[:1])
    alone = type(pairs)(pairs=pairs.pairs)
    out = tmp_path / "merged"
    for options, match in (
        ({"weights": [2.0]}, "from 0 to 1"),
        ({"most_lost": -1.0}, "--most-lost"),
        ({"old_languages": ["de", "fr"]}, "got pairs of German, French alone"),
        ({}, "neither passages nor old languages"),
        ({"old_languages": ["es"]}, "neither passages nor old languages"),
    ):
        with pytest.raises(ValueError, match=match):
            merge_models("no-such-start", "no-such-model", alone, out, **options)
    with pytest.raises(ValueError, match="got no pairs"):
        merge_models("no-such-start", "no-such-model", type(pairs)(sets=pairs.sets), out)
    report = merge_models(str(start), str(start), alone, out, weights=[1.0], old_languages=["fr"])
    assert report.weight == 0 and "no other weight" in report.table()
    np.testing.assert_allclose(report.content["front"][1]["most_lost"], 0, atol=1e-9)
