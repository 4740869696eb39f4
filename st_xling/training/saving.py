"""A finished run on disk: model, log and figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sentence_transformers.base.model import BaseModel

from st_xling.models.sidecar import keep_sidecar_files
from st_xling.training.machine import machine_facts
from st_xling.training.run_folder import RunFolder
from st_xling.utils.io import read_json_object, write_atomic, write_json

if TYPE_CHECKING:
    from st_xling.data.leak_report import LeakReport


def save_run(
    model: BaseModel,
    folder: RunFolder,
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
    write_log(folder, history)
    folder.save_model(model)
    checked = {} if leak is None else {"leak": leak.as_dict()}
    write_json(folder.path / "results.json", {"training": {**figures, "machine": machine_facts()}, **checked, **kept})
    folder.finish()
    keep_sidecar_files(model, folder.path)


def write_log(folder: RunFolder, history: list[dict[str, Any]]) -> None:
    """The host's log, one line a logged step."""
    lines = [json.dumps(entry, ensure_ascii=False) for entry in history]
    write_atomic(folder.training / "log.jsonl", ("\n".join(lines) + "\n").encode("utf-8"))


def _evaluations(folder: RunFolder) -> dict[str, Any]:
    if not folder.read_manifest().get("finished"):
        return {}
    found = read_json_object(folder.path / "results.json").get("evaluations")
    return {} if found is None else {"evaluations": found}
