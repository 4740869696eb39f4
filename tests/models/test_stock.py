"""What is published needs sentence-transformers alone: models load where this package and peft cannot be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from st_xling.data.phrasebook import parallel_phrases
from st_xling.models.cross_encoder import tiny_cross_encoder
from st_xling.training import load_recipe, train
from tests.conftest import PAIRS

TEXTS = ["我买了三本旧书。", "I bought three old books.", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂", ""]
LONG = [(query, passage * 12) for query, passage in PAIRS]

SCRIPT = """
import json, sys
sys.modules["st_xling"] = sys.modules["peft"] = None
from sentence_transformers import CrossEncoder, SentenceTransformer
texts, pairs, results = *json.loads(sys.argv[1]), []
for folder in sys.argv[2:]:
    if "ranker" in folder:
        results.append(CrossEncoder(folder, device="cpu").predict(pairs, batch_size=4).tolist())
    else:
        results.append(SentenceTransformer(folder, device="cpu").encode(texts).tolist())
assert not any(name.startswith("st_xling.") for name in sys.modules)
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Any]:
    """Folder → model: trained whole and by adapters that are merged, and cross-encoders with both heads."""
    folder = tmp_path_factory.mktemp("stock")
    made: dict[Path, Any] = {}
    data, shape = {"zh-en": parallel_phrases("zh", "en", size=40)}, {"hidden_size": 32, "vocabulary": 300}
    for name, more in (("whole", {}), ("merged", {"training.lora.rank": 2})):
        recipe = load_recipe("dap", tiny=True, overrides={"training.max_steps": 2, **more})
        made[folder / name] = train(recipe, data, folder / name, model="tiny", tiny=shape).model
    for head, architecture in (("cls", "bert"), ("pooler", "xlm-roberta")):
        options: dict[str, Any] = {"layers": 1, "max_length": 48, "architecture": architecture, **shape}
        model = tiny_cross_encoder([text for pair in PAIRS for text in pair], head=head, **options)  # type: ignore[arg-type]
        model.save_pretrained(str(folder / f"ranker-{head}"))
        made[folder / f"ranker-{head}"] = model.to("cpu")
    return made


def test_models_load_without_this_package(models: dict[Path, Any], tmp_path: Path) -> None:
    words = [sys.executable, "-c", SCRIPT, json.dumps([TEXTS, LONG + PAIRS]), *map(str, models)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for (folder, model), found in zip(models.items(), json.loads(ran.stdout.splitlines()[-1])):
        ranker = "ranker" in folder.name
        expected = model.predict(LONG + PAIRS, batch_size=4) if ranker else model.eval().encode(TEXTS)
        torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=0, atol=1e-6)


def test_folders_hold_no_code_no_pickle_and_name_no_folder(models: dict[Path, Any]) -> None:
    for folder in models:
        published = [path for path in folder.rglob("*") if path.is_file() and "training" not in path.parts]
        assert {path.suffix for path in published} <= {".json", ".md", ".safetensors"}
        assert {"model.safetensors", "modules.json", "tokenizer.json"} <= {path.name for path in published}
        assert "adapter_config.json" not in {path.name for path in published}
        for path in published:
            assert path.read_bytes()[:2] not in (b"PK", b"\x80\x04", b"\x80\x02"), path  # torch.save, pickle
            if path.suffix != ".safetensors":
                text = path.read_text(encoding="utf-8")
                assert str(folder) not in text and "/st-xling-" not in text, path
        assert "st_xling" not in (folder / "modules.json").read_text(encoding="utf-8")
