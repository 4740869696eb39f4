"""Models that are centered by language: each text by the mean of its language, wherever that is named."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from st_xling.cli import main
from st_xling.data.phrasebook import mining_phrases
from st_xling.evaluation import BuccEvaluator
from st_xling.evaluation.bucc import publishable_thresholds
from st_xling.mining import EmbeddingStore, FilterOptions, encode, mine_texts, score_texts
from st_xling.mining.thresholds import publish_thresholds
from st_xling.models import load_encoder
from st_xling.models.encoding import encode as embed
from st_xling.models.normalization import Centering, apply_centering
from st_xling.reranking import search_texts
from tests.mining.pipeline.test_text_mining import write

TEXTS = mining_phrases("de", "en", split="test", size=60, gold=20)
LANGUAGES = {"source_language": "deu", "target_language": "en"}
OFF = FilterOptions(disable=["all"])
NAMED = FilterOptions(**LANGUAGES, disable=["all"])


@pytest.fixture(scope="module")
def bare(make_model: Callable[..., Any]) -> Any:
    return make_model()


@pytest.fixture(scope="module")
def centering() -> Centering:
    generator = torch.Generator().manual_seed(0)
    means = {code: 0.05 * torch.randn(16, generator=generator) for code in ("de", "en", "joint")}
    return Centering(means.pop("joint"), means)


@pytest.fixture(scope="module")
def model(bare: Any, centering: Centering, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("centered") / "encoder"
    apply_centering(bare, centering).save_pretrained(str(path))
    return str(path)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("texts")
    return {"source": write(folder / "source", TEXTS.source), "target": write(folder / "target", TEXTS.target)}


@pytest.fixture(scope="module")
def stores(model: str, texts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of both texts, by the mean of each language and, ``…-joint``, by the joint one."""
    folder = tmp_path_factory.mktemp("stores")
    for name, language in (("source", "de"), ("target", "en")):
        encode(model, texts[name], folder / name, language=language)
        encode(model, texts[name], folder / f"{name}-joint")
    return {path.name: path for path in folder.iterdir()}


def mined(texts: dict[str, Path], **options: Any) -> tuple[bytes, Any]:
    out = io.BytesIO()
    report = mine_texts(**texts, out=out, **options)
    return out.getvalue(), report


def given(stores: dict[str, Path], kind: str = "") -> dict[str, Any]:
    return {f"{name}_embeddings": stores[name + kind] for name in ("source", "target")}


def test_a_store_by_definition(
    model: str, bare: Any, centering: Centering, texts: dict[str, Path], tmp_path: Path
) -> None:
    """Each vector at unit length, less its language's mean, at unit length; the model is the one that was saved."""
    store = encode(model, texts["source"], tmp_path / "s", language="deu", shard_rows=20)
    for row, vector in zip(store[:], embed(bare, list(TEXTS.source))):
        shifted = vector / np.linalg.norm(vector) - centering.languages["de"].numpy()
        np.testing.assert_allclose(row, shifted / np.linalg.norm(shifted), atol=1e-5)
    assert "|center:language|language:de|" in store.signature
    joint = encode(model, texts["source"], tmp_path / "joint")
    assert store.manifest.model.fingerprint == joint.manifest.model.fingerprint
    assert "|center:" not in joint.signature and np.abs(joint[:] - store[:]).max() > 0.001
    with pytest.raises(ValueError, match="language was de, is now en"):
        encode(model, texts["source"], tmp_path / "s", language="en", shard_rows=20)


def test_each_side_takes_the_mean_of_its_language(
    model: str, texts: dict[str, Path], stores: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    """From the model as from stores; without names as ever by the joint mean, which a warning says."""
    by_language, report = mined(texts, model=model, filters=NAMED)
    assert by_language == mined(texts, **given(stores), filters=NAMED)[0]
    assert by_language == mined(texts, **given(stores), filters=OFF)[0]
    assert "|center:language|" in report.signature and "center" not in caplog.text
    joint, report = mined(texts, model=model, filters=OFF)
    assert joint == mined(texts, **given(stores, "-joint"), filters=NAMED)[0] != by_language
    assert "|center:" not in report.signature
    assert "means of de, en: text of no named language is centered by their joint mean" in caplog.text


def test_own_and_joint_means_are_not_mixed(texts: dict[str, Path], model: str) -> None:
    """With one language named, both sides take the joint mean, as with none."""
    one_language = FilterOptions(source_language="de", disable=["all"])
    pairs, report = mined(texts, model=model, filters=one_language)
    pairs_without_languages, _ = mined(texts, model=model, filters=OFF)
    assert pairs == pairs_without_languages and "|center:" not in report.signature


def test_the_commands_take_the_languages(
    model: str, texts: dict[str, Path], stores: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--source-language", "de", "--target-language", "en"]
    assert main(["encode", model, str(texts["source"]), "--out", str(tmp_path / "s"), "--language", "de"]) == 0
    np.testing.assert_array_equal(EmbeddingStore.open(tmp_path / "s")[:], EmbeddingStore.open(stores["source"])[:])
    files = list(map(str, texts.values()))
    out = tmp_path / "pairs.tsv"
    assert main(["mine", *files, "--model", model, *named, "--disable-filter", "all", "--out", str(out)]) == 0
    assert out.read_bytes() == mined(texts, **given(stores), filters=OFF)[0]
    assert "text is centered by the mean of its language: source de, target en" in capsys.readouterr().err


def test_pairs_are_scored_so_by_the_languages_of_their_file(model: str, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", list(map("\t".join, zip(TEXTS.source, TEXTS.target))))
    scored = []
    for pairs, filters, centering in (
        (f"de-en={path}", None, "|center:language|"),
        (path, NAMED, "|center:language|"),
        (path, OFF, ""),
    ):
        out = io.BytesIO()
        assert centering in score_texts(pairs, out, model=model, filters=filters).signature
        scored.append([line.split(b"\t")[0] for line in out.getvalue().splitlines()])
    assert scored[0] == scored[1] != scored[2]


def test_thresholds_hold_for_the_way_to_center(
    model: str, texts: dict[str, Path], stores: dict[str, Path], tmp_path: Path
) -> None:
    """One found by evaluation or calibration by language is taken by mining so, and not by the joint mean."""
    other_texts = mining_phrases("de", "en", split="train", size=60, gold=20)
    known_pairs = write(tmp_path / "known.tsv", [f"{text}\t{text}" for text in other_texts.target])
    _, report = mined(texts, model=model, filters=NAMED, calibrate_with=known_pairs)
    assert report.calibration.options == {"center": "language"}
    again = mined(texts, **given(stores), model=model, filters=NAMED, calibrate_with=known_pairs)[1]
    assert again.calibration == report.calibration
    folder = shutil.copytree(model, tmp_path / "model")
    evaluator = BuccEvaluator({"de-en": (TEXTS.source, TEXTS.target, TEXTS.gold)}, threshold=1.01)
    thresholds = publishable_thresholds(evaluator, evaluator.evaluate(load_encoder(str(folder), device="cpu")))
    publish_thresholds(folder, thresholds)
    _, report = mined(texts, model=str(folder), filters=NAMED, threshold="published")
    assert report.threshold == 1.01
    with pytest.raises(ValueError, match="that of de-en is for center language, not default"):
        mined(texts, **given(stores, "-joint"), model=str(folder), filters=NAMED, threshold="published")


def test_what_does_not_go_together(
    model: str, make_model: Callable[..., Any], texts: dict[str, Path], stores: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="mean of: got 'sw', and it has de, en; leave it out"):
        encode(model, texts["source"], tmp_path / "s", language="sw")
    with pytest.raises(ValueError, match="mean of: got 'de', and it has none"):
        encode(make_model(), texts["source"], tmp_path / "s", language="de")
    joint = {"source_embeddings": stores["source-joint"]}
    with pytest.raises(ValueError, match="center 'none' and 'language' for .*source-joint and the model"):
        mined(texts, model=model, filters=NAMED, **joint)
    with pytest.raises(ValueError, match="center 'none' and 'language' for .*source-joint and .*target"):
        mined(texts, target_embeddings=stores["target"], **joint)
    with pytest.raises(ValueError, match="mean of its language, fr: got .*source, centered by that of de"):
        mined(texts, **given(stores), filters=FilterOptions(disable=["language"], source_language="fr"))


def test_search_refuses_centered_passages(stores: dict[str, Path], model: str, tmp_path: Path) -> None:
    rows = [json.dumps({"id": str(number), "text": text}) for number, text in enumerate(TEXTS.source)]
    passages = write(tmp_path / "p.jsonl", rows)
    with pytest.raises(ValueError, match="joint mean.*without --language"):
        search_texts(["Was?"], encoder=model, store=stores["source"], passages=passages)
