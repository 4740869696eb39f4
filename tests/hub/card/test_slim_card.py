"""The card of a model whose vocabulary was cut: what became of it, and what it was made from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from huggingface_hub import ModelCard

from st_xling.cli import main
from st_xling.hub import card_text


def test_the_card_tells_of_the_cut(copy_of: Callable[[str], Path], tmp_path: Path) -> None:
    source, out = copy_of("encoder"), tmp_path / "small"
    words = ["slim", str(source), "--langs", "de,en", "--text", "phrasebook:de?size=60", "--hold-out", "10"]
    assert main([*words, "--out", str(out)]) == 0
    card = (out / "README.md").read_text(encoding="utf-8")
    assert card == card_text(out)
    slim = json.loads((out / "results.json").read_text(encoding="utf-8"))["slim"]
    tokens, held_out = slim["report"]["size"]["tokens"], slim["report"]["parity"]["held_out"]
    assert f"| tokens | {tokens['before']:,} | {tokens['after']:,} |" in card
    back = held_out["retrieval"]["de-en"]["back"]
    row = f"| retrieval en to de, held-out text, % | {100 * back['before']:.1f} | {100 * back['after']:.1f} |"
    assert row in card
    assert f"| held-out text | {held_out['texts']} | {held_out['cosine_mean']:.5f} |" in card
    assert slim["signature"] in card and "st-xling slim" in card and "The same model as `encoder`" in card
    assert ModelCard(card).data.language == ["de", "en"]
    assert "of German and English into" in card and "French" not in card


def test_a_source_on_the_hub_is_the_base_model(copy_of: Callable[[str], Path], tmp_path: Path) -> None:
    source, out = copy_of("encoder"), tmp_path / "small"
    words = ["slim", str(source), "--langs", "de,en", "--text", "phrasebook:de?size=40", "--out", str(out)]
    assert main(words) == 0
    results = out / "results.json"
    figures = json.loads(results.read_text(encoding="utf-8"))
    figures["slim"]["source"] = "user/large"  # as the command writes it of a Hub id
    results.write_text(json.dumps(figures), encoding="utf-8")
    data = ModelCard(card_text(out)).data
    assert (data.base_model, data.base_model_relation) == ("user/large", "quantized")
    shutil.rmtree(out / "training")  # a foreign model has no run
    assert "## Training" not in card_text(out) and "## Cut vocabulary" in card_text(out)
