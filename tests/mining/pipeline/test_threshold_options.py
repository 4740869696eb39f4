"""A published threshold holds for the model as it was used then: prompt, layer, dimensions, type of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from st_xling.data.phrasebook import mining_phrases
from st_xling.evaluation import BuccEvaluator
from st_xling.evaluation.bucc import publishable_thresholds
from st_xling.mining import FilterOptions, encode, mine_texts
from st_xling.mining.published import publish_thresholds
from st_xling.models import load_encoder

USED = {"prompt": "query: ", "layer": 1, "truncate_dim": 8, "dtype": "bfloat16"}


@pytest.fixture(scope="module")
def folder(make_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a threshold of the model used otherwise; two texts."""
    folder = tmp_path_factory.mktemp("published")
    make_model().save_pretrained(str(folder / "model"))
    dev, test = (mining_phrases("de", "en", split=split, size=30, gold=20) for split in ("dev", "test"))
    corpora = [(part.source, part.target, part.gold) for part in (dev, test)]
    evaluator = BuccEvaluator({"de-en": corpora[1]}, train={"de-en": corpora[0]})
    metrics = evaluator(load_encoder(str(folder / "model"), device="cpu", **USED))  # type: ignore[arg-type]
    thresholds, _ = publishable_thresholds(evaluator, metrics)
    assert thresholds["de-en"].options == {"dim": "8", "layer": "1", "prompt": "query: ", "dtype": "bfloat16"}
    publish_thresholds(folder / "model", thresholds)
    for name, texts in (("de", test.source), ("en", test.target)):
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return folder


def mined(folder: Path, out: Path, **options: Any) -> Any:
    filters = FilterOptions(source_language="de", target_language="en")
    return mine_texts(folder / "de", folder / "en", out, threshold="published", filters=filters, **options)


def test_it_holds_for_the_same_use(folder: Path, tmp_path: Path) -> None:
    """Of a loaded model, and of stores that were written by one."""
    model = load_encoder(str(folder / "model"), device="cpu", **USED)  # type: ignore[arg-type]
    report = mined(folder, tmp_path / "out", model=model)
    assert report.published is not None
    assert "|dim:8|layer:1|prompt:query: |dtype:bfloat16|margin:" in report.signature
    for name in ("de", "en"):
        store = encode(model, folder / name, tmp_path / f"{name}.store")
        assert "|prompt:query: |truncated:8|layer:1|computed:bfloat16|" in store.signature
    stores = {f"{side}_embeddings": tmp_path / f"{name}.store" for side, name in (("source", "de"), ("target", "en"))}
    assert mined(folder, tmp_path / "again", model=model, **stores).published is not None


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("prompt", "prompt query: , not none"),
        ("layer", "layer 1, not the last"),
        ("truncate_dim", "dim 8, not all"),
        ("dtype", "dtype bfloat16, not float32"),
    ],
)
def test_it_is_refused_for_another(left_out: str, message: str, folder: Path, tmp_path: Path) -> None:
    used: dict[str, Any] = {name: value for name, value in USED.items() if name != left_out}
    with pytest.raises(ValueError, match=message):
        mined(folder, tmp_path / "out", model=load_encoder(str(folder / "model"), device="cpu", **used))
    with pytest.raises(ValueError, match="that of de-en is for .*layer 1, not the last"):
        mined(folder, tmp_path / "out", model=str(folder / "model"))
