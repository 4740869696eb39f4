"""Recorded runs: what training and evaluation left in a model's folder, without weights, and the card of it."""

import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

RECORDED = Path(__file__).parent / "recorded"
KINDS = ("encoder", "retriever", "reranker")


def recorded(kind: str, goal: Path) -> Path:
    """A copy of a recorded run below ``goal``, with weights, tokenizer, log and pictures that say nothing."""
    folder = goal / kind
    shutil.copytree(RECORDED / kind, folder, ignore=shutil.ignore_patterns("README.md"))
    for settings in folder.rglob("sentence_bert_config.json"):
        save_file({"weights": np.zeros(1, dtype=np.float32)}, settings.with_name("model.safetensors"))
        settings.with_name("tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "training" / "log.jsonl").write_text("", encoding="utf-8")
    (folder / "pictures").mkdir()
    for name in ("accuracy_by_language", "score_histogram"):
        (folder / "pictures" / f"{name}.png").write_bytes(b"\x89PNG")
    return folder


def golden_card(kind: str) -> Path:
    """Where the card of such a run lies."""
    return RECORDED / kind / "README.md"
