"""The model's options on every command that loads one, from command line to vectors and signatures."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from st_xling.data.phrasebook import mining_phrases
from tests.retrieval_files import json_lines

DATA = "phrasebook:de?size=12"
TASKS = {
    "tatoeba": ["--data", DATA],
    "bucc": ["--data", "phrasebook:de?size=30&gold=10", "--threshold", "1.0"],
    "retrieval": ["--data", "de=phrasebook?size=12", "--device", "cpu"],
}


@pytest.fixture(scope="module")
def prompted(make_model: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder with prompts, none of them the default."""
    model = make_model()
    model.prompts |= {"query": "query: ", "document": "passage: "}
    folder = tmp_path_factory.mktemp("models") / "prompted"
    model.save_pretrained(str(folder))
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_the_signature_says_what_was_judged(task: str, prompted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", task, str(prompted), *TASKS[task]]
    of_retrieval = "passage_prompt:passage: |" if task == "retrieval" else ""
    all_options = ["--layer", "1", "--pooling", "cls", "--truncate-dim", "8", "--dtype", "bfloat16"]
    assert main([*words, *all_options, "--prompt-name", "query", "--trust-remote-code"]) == 0
    signature = capsys.readouterr().out.splitlines()[-1]
    options = f"|dim:8|layer:1|pooling:cls|prompt:query: |{of_retrieval}dtype:bfloat16|trust_remote_code:yes|data:"
    assert signature.startswith(f"{task}|") and options in signature
    assert main(words) == 0
    prompts = "|prompt:query: |passage_prompt:passage: |" if task == "retrieval" else "|"
    assert f"{prompts}data:phrasebook-" in capsys.readouterr().out.splitlines()[-1]


def test_two_prompts_of_one_model(prompted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Passages are encoded with a prompt, queries searched with another: the model is the same."""
    texts = mining_phrases("de", "en", split="test", size=20, gold=15).target
    store = str(tmp_path / "store")
    passages = str(tmp_path / "en.jsonl")
    json_lines(Path(passages), ({"id": f"en{row}", "text": text} for row, text in enumerate(texts)))
    encoded = ["encode", str(prompted), passages, "--text-format", "jsonl", "--out", store]
    assert main([*encoded, "--prompt-name", "document"]) == 0
    words = ["search", "Hund", "--model", str(prompted), "--store", store, "--passages", passages, "--top-k", "1"]
    capsys.readouterr()
    assert main([*words, "--prompt-name", "query", "--json", "-"]) == 0
    [hit] = json.loads(capsys.readouterr().out)["search"][0]["hits"]
    model = SentenceTransformer(str(prompted), device="cpu")
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
        assert f"|center:{how}@de-en@" in signature
        assert "|center:joint|" not in signature
    assert main([*words, "language", "--center-text", "fr-en=phrasebook?size=9"]) == 2
    assert "has none for de" in capsys.readouterr().err
    assert main([*words, "language"]) == 2
    assert "--center-text" in capsys.readouterr().err
    assert main([*words[:-1], *means]) == 2
    assert "--center joint or --center language" in capsys.readouterr().err
