"""What a finished run leaves on disk, of this machine, and what of it stands when it is saved again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from st_xling.evaluation import SavedResults, read_saved_results, save_results
from st_xling.training.run import save_run
from st_xling.training.run_folder import RunFolder


def run(path: Path, model: Any, steps: int, **options: Any) -> None:
    with RunFolder(path, **options) as folder:
        folder.claim({"recipe": {}})
        folder.begin({"recipe": {}})
        save_run(model, folder, history=[{"loss": 1.0}], figures={"steps": steps}, leak=None)


def test_kept_figures_stand_while_the_model_does(make_model: Callable[..., Any], tmp_path: Path) -> None:
    out, model = tmp_path / "run", make_model(hidden_size=8, layers=1)
    run(out, model, 4)
    figures = SavedResults(
        "tatoeba", {"mean_accuracy": 0.5}, "tatoeba|data:x@0", "st-xling evaluate tatoeba run", [], []
    )
    save_results(out, figures)
    run(out, model, 4, resume=True)  # it had ended: nothing is left to train
    assert read_saved_results(out) == [figures]
    training = json.loads((out / "results.json").read_text(encoding="utf-8"))["training"]
    assert training["steps"] == 4 and training["machine"]["cores"] >= 1
    run(out, model, 8, overwrite=True)
    assert read_saved_results(out) == []


def test_figures_of_an_unfinished_model_do_not_stand(make_model: Callable[..., Any], tmp_path: Path) -> None:
    out, model = tmp_path / "run", make_model(hidden_size=8, layers=1)
    run(out, model, 4)
    save_results(out, SavedResults("xsim", {"error": 0.5}, "xsim|data:x@0", "st-xling evaluate xsim run", [], []))
    RunFolder(out).update(finished=False)  # it went on from here
    run(out, model, 8, resume=True)
    assert read_saved_results(out) == []
