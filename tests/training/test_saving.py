"""What a finished run leaves on disk, and what of it stands when it is saved again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from st_xling.evaluation import KeptFigures, keep_figures, read_kept_figures
from st_xling.training.run_folder import RunFolder
from st_xling.training.saving import save_run


def save(folder: RunFolder, model: Any, steps: int) -> None:
    save_run(model, folder, {"recipe": {}}, history=[{"loss": 1.0}], figures={"steps": steps}, leak=None)


def test_kept_figures_stand_while_the_model_does(make_model: Callable[..., Any], tmp_path: Path) -> None:
    folder, model = RunFolder(tmp_path / "run"), make_model(hidden_size=8, layers=1)
    folder.claim({"recipe": {}})
    save(folder, model, 4)
    figures = KeptFigures(
        "tatoeba", {"mean_accuracy": 0.5}, "tatoeba|data:x@0", "st-xling evaluate tatoeba run", "0.1.0"
    )
    keep_figures(folder.path, figures)
    folder.claim({"recipe": {}}, resume=True)  # of a run that had ended: nothing is left to train
    save(folder, model, 4)
    assert read_kept_figures(folder.path) == [figures]
    training = json.loads((folder.path / "results.json").read_text(encoding="utf-8"))["training"]
    assert training["steps"] == 4 and training["machine"]["cores"] >= 1
    folder.start_over({"recipe": {}})
    save(folder, model, 8)
    assert read_kept_figures(folder.path) == []


def test_figures_of_an_unfinished_model_do_not_stand(make_model: Callable[..., Any], tmp_path: Path) -> None:
    folder, model = RunFolder(tmp_path / "run"), make_model(hidden_size=8, layers=1)
    folder.claim({"recipe": {}})
    save(folder, model, 4)
    keep_figures(
        folder.path, KeptFigures("xsim", {"error": 0.5}, "xsim|data:x@0", "st-xling evaluate xsim run", "0.1.0")
    )
    folder.write_manifest({"recipe": {}, "finished": False})  # it went on from here
    save(folder, model, 8)
    assert read_kept_figures(folder.path) == []
