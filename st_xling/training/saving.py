"""A finished run on disk: model, log and figures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers.base.model import BaseModel

from st_xling.models.companions import keep_companions
from st_xling.training.machine import machine_facts
from st_xling.training.run_folder import RunFolder
from st_xling.utils.io import write_json

if TYPE_CHECKING:
    from st_xling.data.leak_report import LeakReport


def save_run(
    model: BaseModel,
    folder: RunFolder,
    manifest: dict[str, Any],
    *,
    history: list[dict[str, Any]],
    figures: dict[str, Any],
    leak: LeakReport | None,
) -> None:
    """Write log, model and ``results.json`` (with the machine's facts), then mark the run as finished.

    Where ``model`` is saved or pushed from then on, it takes along its card and what the card names. Evaluations that
    were kept stand if the run had ended before, since its model is the same.
    """
    kept = _evaluations(folder)
    lines = [json.dumps(entry, ensure_ascii=False) for entry in history]
    (folder.training / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_model(model, folder.path)
    checked = {} if leak is None else {"leak": leak.as_dict()}
    write_json(folder.path / "results.json", {"training": {**figures, "machine": machine_facts()}, **checked, **kept})
    folder.write_manifest({**manifest, "finished": True})
    keep_companions(model, folder.path)


def _evaluations(folder: RunFolder) -> dict[str, Any]:
    path = folder.path / "results.json"
    if not path.is_file() or not folder.read_manifest().get("finished"):
        return {}
    found = json.loads(path.read_text(encoding="utf-8")).get("evaluations")
    return {} if found is None else {"evaluations": found}


def save_model(model: BaseModel, folder: Path) -> None:
    """Save ``model`` into ``folder`` file by file from a folder beside, so that no half-written model is seen."""
    beside = folder / ".saving"
    shutil.rmtree(beside, ignore_errors=True)
    model.save_pretrained(str(beside))
    for path in sorted(beside.iterdir()):
        goal = folder / path.name
        if goal.is_dir():
            shutil.rmtree(goal)
        path.replace(goal)
    beside.rmdir()
