"""The folder of a slim model, seen whole or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_xling.utils.io import read_json_object, write_json

KEY = "slim"
"""Of ``results.json``, under which the figures stand, and by which an earlier slim model is known."""


def check_out(out: Path, source: str, *, overwrite: bool = False) -> None:
    """Raise ``ValueError`` unless a slim model may be written to ``out``.

    Args:
        out: The folder to be.
        source: Hub id or folder of the model that is cut.
        overwrite: Replace an earlier slim model.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder: {out} is a file; choose another name.")
    if Path(source).is_dir():
        given, goal = Path(source).resolve(), out.resolve()
        if given == goal or given in goal.parents or goal in given.parents:
            raise ValueError(f"--out must lie apart from the model, which stays as it is: got {out} for {source}.")
    if out.is_dir() and any(out.iterdir()):
        if KEY not in read_json_object(out / "results.json"):
            raise ValueError(
                f"--out must be empty or an earlier slim model: {out} holds something else; choose another."
            )
        if not overwrite:
            raise ValueError(f"{out} holds an earlier slim model; use --overwrite to replace it.")


def write_slim(model: SentenceTransformer, out: Path, figures: dict[str, Any], *, source: str) -> None:
    """Save model and figures beside ``out``, then put them in its place.

    Args:
        model: The slim one.
        out: As :func:`check_out` has allowed.
        figures: For ``results.json``.
        source: Folder or Hub id of the model that was cut; the manifest of its training is copied.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        made = beside / "made"
        model.save_pretrained(str(made))
        if any(getattr(module, "do_lower_case", False) for module in model.modules()):  # read by the host, never saved
            for path in made.rglob("sentence_bert_config.json"):
                write_json(path, {**read_json_object(path), "do_lower_case": True})
        write_json(made / "results.json", {KEY: json.loads(json.dumps(figures))})
        manifest = Path(source) / "training" / "run.json"
        if manifest.is_file():
            (made / "training").mkdir()
            shutil.copyfile(manifest, made / "training" / "run.json")
        _put_in_place(made, out, beside / "earlier")
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _put_in_place(made: Path, out: Path, earlier: Path) -> None:
    """Rename; what was there comes back if that fails."""
    try:
        if out.exists():
            out.replace(earlier)
        made.replace(out)
    except BaseException:
        if earlier.exists() and not out.exists():
            earlier.replace(out)
        raise
