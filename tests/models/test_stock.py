"""What is published needs sentence-transformers alone: a trained model loads where this package cannot be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from st_xling.data.phrasebook import parallel_phrases
from st_xling.training import TrainingResult, load_recipe, train

TEXTS = ["我买了三本旧书。", "I bought three old books.", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂", ""]

SCRIPT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "st_xling":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
try:
    import st_xling
except ModuleNotFoundError:
    pass
else:
    sys.exit("the blocker does not block")
import numpy as np
from sentence_transformers import SentenceTransformer
folder, texts, goal = sys.argv[1], sys.argv[2:-1], sys.argv[-1]
model = SentenceTransformer(folder, device="cpu")
np.save(goal, model.encode(texts))
assert not any(name.split(".")[0] == "st_xling" for name in sys.modules)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    recipe = load_recipe(
        "dap", tiny=True, overrides={"training.max_steps": 2, "training.per_device_train_batch_size": 8}
    )
    data = {"zh-en": parallel_phrases("zh", "en", size=40)}
    shape = {"hidden_size": 32, "vocabulary": 300}
    return train(recipe, data, tmp_path_factory.mktemp("stock") / "model", tiny=shape)


def test_loads_without_this_package(trained: TrainingResult, tmp_path: Path) -> None:
    goal = tmp_path / "embeddings.npy"
    arguments = [sys.executable, "-c", SCRIPT, str(trained.folder), *TEXTS, str(goal)]
    ran = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    np.testing.assert_allclose(np.load(goal), trained.model.encode(TEXTS), rtol=0, atol=1e-6)


def test_the_folder_holds_no_code_and_no_pickle(trained: TrainingResult) -> None:
    published = [path for path in trained.folder.rglob("*") if path.is_file() and "training" not in path.parts]
    published = [path for path in published if trained.folder / "training" not in path.parents]
    assert {path.suffix for path in published} == {".json", ".md", ".safetensors"}
    assert {"model.safetensors", "modules.json", "tokenizer.json"} <= {path.name for path in published}
    for path in published:
        assert path.read_bytes()[:2] not in (b"PK", b"\x80\x04", b"\x80\x02"), path  # torch.save, pickle


def test_the_folder_names_no_folder(trained: TrainingResult) -> None:
    """Neither where it was trained nor where the encoder was put together."""
    for path in trained.folder.iterdir():
        if path.suffix in (".json", ".md"):
            text = path.read_text(encoding="utf-8")
            assert str(trained.folder) not in text and "st-xling-" not in text, path.name
