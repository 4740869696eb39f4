"""multilingual-e5-small cut to German and English: what stays, what is said, and that it mines as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from st_xling.data import load_pairs
from st_xling.mining import mine
from st_xling.models import load_encoder


@pytest.mark.slow
def test_a_pretrained_encoder(
    real_data: Path, real_encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(real_encoder)
    text = real_data / "parallel" / "de-en.tsv.gz"
    words = ["slim", str(source), "--languages", "de,en", "--data", f"de-en={text}?size=2000", "--parity-rows", "40"]
    words += ["--parity", f"de-en={real_data / 'parallel' / 'de-en.dev.tsv.gz'}"]
    assert main([*words, "--out", str(tmp_path / "small")]) == 0
    assert "other text" in capsys.readouterr().out
    report = json.loads((tmp_path / "small" / "results.json").read_text(encoding="utf-8"))["slim"]["report"]
    tokens, other = report["size"]["tokens"], report["parity"]["other"]
    assert tokens["before"] > 250_000 and tokens["after"] < 25_000
    # 2,000 sentences have few of the words that others use: some are cut differently, and embed nearly the same.
    assert 0.2 < other["same_share"] < 1 and other["cosine_min"] > 0.8
    card = ModelCard.load(tmp_path / "small" / "README.md")
    assert (card.data.license, card.data.base_model) == ("mit", "intfloat/multilingual-e5-small")
    assert "prompt_name='query'" in card.text
    small, large = (load_encoder(str(folder), device="cpu") for folder in (tmp_path / "small", source))
    assert (small.prompts, small.default_prompt_name) == (large.prompts, large.default_prompt_name)
    dev = load_pairs(real_data / "parallel" / "de-en.dev.tsv.gz")
    pairs = []
    for model in (small, large):
        assert isinstance(model, SentenceTransformer)
        vectors = [model.encode(dev[side][:40], prompt_name="query") for side in ("source", "target")]
        found = mine(*vectors)
        pairs.append(set(zip(found.source_indices.tolist(), found.target_indices.tolist())))
    assert len(pairs[0] & pairs[1]) >= 0.95 * len(pairs[1]) > 30
