"""The model's options on every command that loads one, from command line to vectors and signatures."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from st_xling.data.phrasebook import mining_phrases
from st_xling.mining import EmbeddingStore
from st_xling.models import load_encoder

DATA = "phrasebook:de?size=12"
TASKS = {
    "tatoeba": ["--data", DATA],
    "bucc": ["--data", "phrasebook:de?size=30&gold=10", "--threshold", "1.0"],
    "retrieval": ["--data", "de=phrasebook?size=12", "--device", "cpu"],
}


@pytest.fixture(scope="module")
def prompted(make_model: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder with prompts of its own, none of them the default."""
    model = make_model()
    model.prompts |= {"query": "query: ", "document": "passage: "}
    folder = tmp_path_factory.mktemp("models") / "prompted"
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    news = mining_phrases("de", "en", split="test", size=20, gold=15)
    for name, texts in (("de", news.source), ("en", news.target)):
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        rows = "".join(f"{json.dumps({'id': f'{name}{row}', 'text': text})}\n" for row, text in enumerate(texts))
        (folder / f"{name}.jsonl").write_text(rows, encoding="utf-8")
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_the_signature_says_what_was_judged(task: str, prompted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", task, str(prompted), *TASKS[task]]
    of_retrieval = "passage_prompt:passage: |" if task == "retrieval" else ""
    all_options = ["--layer", "1", "--pooling", "cls", "--truncate-dim", "8", "--dtype", "bfloat16"]
    assert main([*words, *all_options, "--prompt-name", "query", "--trust-remote-code"]) == 0
    signature = capsys.readouterr().out.splitlines()[-1]
    assert f"|dim:8|layer:1|pooling:cls|prompt:query: |{of_retrieval}dtype:bfloat16|trust_remote_code:yes|data:" in (
        signature
    ) and signature.startswith(f"{task}|")
    assert main(words) == 0
    prompts = "|prompt:query: |passage_prompt:passage: |" if task == "retrieval" else "|"
    assert f"{prompts}data:phrasebook-" in capsys.readouterr().out.splitlines()[-1]


def vectors(model: Path, text: Path, out: Path, *options: str) -> np.ndarray:
    assert main(["encode", str(model), str(text), "--out", str(out), *options, "--device", "cpu"]) == 0
    return np.asarray(EmbeddingStore.open(out)[:])


def test_stores(prompted: Path, files: Path, tmp_path: Path) -> None:
    """Each option does to a store what it does to the loaded model."""
    texts = (files / "de").read_text(encoding="utf-8").splitlines()
    options: dict[str, dict[str, Any]] = {
        "--layer=1": {"layer": 1},
        "--pooling=max": {"pooling": "max"},
        "--truncate-dim=5": {"truncate_dim": 5},
        "--prompt=so: ": {"prompt": "so: "},
        "--prompt-name=query": {"prompt_name": "query"},
        "--dtype=bfloat16": {"dtype": "bfloat16"},
    }
    plain = vectors(prompted, files / "de", tmp_path / "plain")
    for row, (word, loaded) in enumerate(options.items()):
        found = vectors(prompted, files / "de", tmp_path / str(row), word)
        expected = load_encoder(str(prompted), device="cpu", **loaded).encode(texts, normalize_embeddings=True)
        np.testing.assert_allclose(found, np.float32(expected), atol=1e-2 if "dtype" in loaded else 1e-5)
        assert found.shape != plain.shape or np.abs(found - plain).max() > 1e-5


def test_two_prompts_of_one_model(
    prompted: Path, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Passages are encoded with a prompt, queries searched with another: the model is the same."""
    store, passages = str(tmp_path / "store"), str(files / "en.jsonl")
    encoded = ["encode", str(prompted), passages, "--text-format", "jsonl", "--out", store]
    assert main([*encoded, "--prompt-name", "document"]) == 0
    words = ["search", "Hund", "--model", str(prompted), "--store", store, "--passages", passages, "--top-k", "1"]
    capsys.readouterr()
    assert main([*words, "--prompt-name", "query", "--json", "-"]) == 0
    [hit] = json.loads(capsys.readouterr().out)["search"][0]["hits"]
    model = SentenceTransformer(str(prompted), device="cpu")
    texts = (files / "en").read_text(encoding="utf-8").splitlines()
    cosines = model.similarity(model.encode_query(["Hund"]), model.encode_document(texts))[0]
    assert hit["cosine"] == pytest.approx(float(cosines.max()), abs=1e-5)
    assert main([*words, "--layer", "1"]) == 2
    assert "queries must be encoded by the model of the store" in capsys.readouterr().err


@pytest.mark.parametrize("task", TASKS)
def test_any_evaluation_can_be_centered(task: str, saved_encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", task, str(saved_encoder), *TASKS[task], "--center"]
    means = ["--center-text", "de-en=phrasebook?size=60"]
    for how in ("language", "joint"):
        assert main([*words, how, *means]) == 0
        signature = capsys.readouterr().out.splitlines()[-1]
        assert f"|center:{how}@de-en@" in signature and "|center:joint|" not in signature
    assert main([*words, "language", "--center-text", "fr-en=phrasebook?size=9"]) == 2
    assert "has none for de" in capsys.readouterr().err
    assert main([*words, "language"]) == 2 and "--center-text" in capsys.readouterr().err
    assert main([*words[:-1], *means]) == 2 and "--center joint or --center language" in capsys.readouterr().err
