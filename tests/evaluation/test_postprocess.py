"""``postprocess``, by the command: the table is what the saved model does; int8; an earlier folder; bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import quantize_embeddings

from st_xling.cli import main
from st_xling.data import load_data_specs
from st_xling.evaluation import PrecisionEvaluator

DATA = "phrasebook:de?size=80"
EVAL = "phrasebook:de?split=test&size=40"


def test_what_is_saved(saved_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    figures = tmp_path / "figures.json"
    words = ["postprocess", str(saved_encoder), "--data", DATA, "--eval", EVAL, "--out", str(out)]
    assert main([*words, "--center", "language", "--dim", "6", "--int8", "--json", str(figures)]) == 0
    report = json.loads(figures.read_text(encoding="utf-8"))["postprocess"]
    assert json.loads((out / "results.json").read_text(encoding="utf-8")) == {"postprocess": report}
    assert list(report["stages"]) == ["as it was", "centered", "6 dimensions", "int8"]
    assert [stage["bytes"] for stage in report["stages"].values()][1:] == [64, 24, 6]
    printed = capsys.readouterr().out
    assert printed.count("\n") == 6 and "postprocess|steps:centered,6-dimensions,int8|" in printed
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "fitted on text: centered; 6 dimensions; int8. Nothing was trained." in card
    assert "| 6 dimensions | " in card
    loaded = SentenceTransformer(str(out), device="cpu")
    evaluator = PrecisionEvaluator(load_data_specs([EVAL]), at=[1], name="")
    metrics = evaluator(loaded)
    ways = [metrics[f"de-en_{way}_p@1"] for way in ("source_to_target", "target_to_source")]
    assert report["stages"]["6 dimensions"]["accuracy"]["de-en"] == pytest.approx(ways)
    ranges = np.array(json.loads((out / "int8_ranges.json").read_text()))
    vectors = loaded.encode(["Das Buch ist alt."], task="de")
    assert ranges.shape == (2, 6) and quantize_embeddings(vectors, "int8", ranges=ranges).dtype == np.int8
    # What stands there is replaced only where that is asked for; the model's own centering is kept, and built upon.
    again = ["postprocess", str(out), "--data", DATA, "--out", str(tmp_path / "more"), "--remove-languages"]
    assert main([*again, "--whiten"]) == 0 and (tmp_path / "more" / "README.md").is_file()
    alone = [*words[:-1], str(tmp_path / "bytes"), "--int8", "--center", "none", "--json", str(figures)]
    assert main(alone) == 0 and list(json.loads(figures.read_text())["postprocess"]["stages"]) == ["as it was", "int8"]
    assert main([*words, "--center", "joint"]) == 2 and "--overwrite" in capsys.readouterr().err
    assert main([*words, "--center", "joint", "--overwrite"]) == 0


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ([], ["nothing to do"]),
        (["--dim", "400"], ["got 400"]),
        (["--dim", "0", "--int8"], ["got 0"]),
        (["--dim", "4", "--truncate-dim", "8"], ["--dim", "8"]),
        (["--whiten", "--data", "phrasebook:de?size=4"], ["got"]),
    ],
    ids=str,
)
def test_bad_input(
    options: list[str], facts: list[str], saved_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["postprocess", str(saved_encoder), "--out", str(tmp_path / "out"), *options]
    words += [] if "--data" in options else ["--data", DATA]
    assert main([*words, "--eval", EVAL]) == 2
    error = capsys.readouterr().err
    assert all(fact in error for fact in facts) and not (tmp_path / "out").exists()
