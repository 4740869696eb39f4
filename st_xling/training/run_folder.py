"""The folder of one training run: the model on top, everything needed to go on in ``training/``.

=====================================  ==========================================================
``modules.json``, ``model.safetensors``…  the trained model, for ``SentenceTransformer(folder)``
``README.md``, ``pictures/``           its card, and the pictures there; ``card.json``: what the user says for it
``results.json``                       figures, with their signatures
``mining.json``                        thresholds for mining, by pair of languages
``training/run.json``                  recipe, data, command; ``finished`` once the model stands
``training/checkpoint-N/``             the host's checkpoint and ``loss.safetensors``
``training/log.jsonl``                 one line a logged step
``training/base/``                     training by adapters: the model below them
``training/start/``                    while several processes read it: the tiny encoder that they start from
=====================================  ==========================================================
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

from st_xling.utils.io import write_json

logger = logging.getLogger(__name__)


class RunFolder:
    """Checks, manifest and checkpoints of a run's folder.

    Args:
        path: Where the run lives.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.training = self.path / "training"
        self.manifest_path = self.training / "run.json"
        self.start = self.training / "start"
        self.base = self.training / "base"

    def claim(self, manifest: dict[str, Any], *, resume: bool = False, overwrite: bool = False) -> Path | None:
        """Make the folder this run's own; an earlier run to be replaced stands until :meth:`start_over`.

        Args:
            manifest: What identifies the run; a resumed run must agree with it.
            resume: Go on from the last complete checkpoint, if there is one.
            overwrite: Replace an earlier run of ours.

        Returns:
            The checkpoint to go on from, or ``None`` to start.

        Raises:
            ValueError: The folder holds something else, a run that may not be overwritten, or another run to resume.
        """
        self.check_free(resume=resume, overwrite=overwrite)
        ours = self.manifest_path.is_file()
        if ours and resume:
            self._check_same_run(manifest)
            return self.last_checkpoint()
        if not ours:
            self.start_over(manifest)
        return None

    def check_free(self, *, resume: bool = False, overwrite: bool = False) -> None:
        """Raise ``ValueError`` if :meth:`claim` would, whatever the run: to be asked before its data are read."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"--out must be a folder: {self.path} is a file; choose another name.")
        ours = self.manifest_path.is_file()
        if not ours and self.path.is_dir() and any(self.path.iterdir()):
            raise ValueError(
                f"--out must be empty or a run of ours: {self.path} holds something else; choose another folder."
            )
        if ours and not (resume or overwrite):
            hint = "it is complete" if self.read_manifest().get("finished") else "it can be continued with --resume"
            raise ValueError(f"{self.path} holds an earlier run ({hint}); use --overwrite to replace it.")

    def start_over(self, manifest: dict[str, Any]) -> None:
        """An empty folder with ``manifest``."""
        if self.path.exists():
            shutil.rmtree(self.path)
        self.training.mkdir(parents=True)
        self.write_manifest({**manifest, "finished": False})

    def forget_start(self) -> None:
        """Remove the encoder that the processes have read."""
        shutil.rmtree(self.start, ignore_errors=True)

    def read_manifest(self) -> dict[str, Any]:
        return json.loads(self.manifest_path.read_text(encoding="utf-8"))

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        write_json(self.manifest_path, manifest)

    def last_checkpoint(self) -> Path | None:
        """The newest checkpoint that was written to its end; later, half-written ones are removed."""
        return newest_checkpoint(self.training)

    def _check_same_run(self, manifest: dict[str, Any]) -> None:
        written = {"processes": 1, **self.read_manifest()}
        plain = json.loads(json.dumps(manifest))
        ignored = {"finished", "command", "version"}
        unlike = [
            name for key in plain if key not in ignored for name in _differences(written.get(key), plain[key], key)
        ]
        if unlike:
            raise ValueError(
                f"--resume must repeat the run that {self.path} holds: {', '.join(unlike)} differ; it was started with "
                f"{written.get('command') or 'other options'}."
            )


def _differences(left: Any, right: Any, name: str) -> list[str]:
    """Dotted names of what two manifests do not agree on."""
    if not (isinstance(left, dict) and isinstance(right, dict)):
        return [] if left == right else [name]
    return [part for key in {**left, **right} for part in _differences(left.get(key), right.get(key), f"{name}.{key}")]


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest whole ``checkpoint-N`` in ``folder``; half-written ones after it are removed."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rsplit("-", 1)[1]))
    for checkpoint in reversed(found):
        if _is_complete(checkpoint):
            return checkpoint
        logger.warning("%s was cut off while being written; going on from an earlier one.", checkpoint)
        shutil.rmtree(checkpoint)
    return None


def _is_complete(checkpoint: Path) -> bool:
    # The host writes trainer_state.json last.
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
