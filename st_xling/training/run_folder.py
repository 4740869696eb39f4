"""The folder of one training run: the model on top, everything needed to go on in ``training/``.

=====================================  ==========================================================
``modules.json``, ``model.safetensors``…  the trained model, for ``SentenceTransformer(folder)``
``README.md``, ``pictures/``           its card, and the pictures there; ``card.json``: what the user says for it
``results.json``                       metrics, with their signatures
``mining.json``                        thresholds for mining, by pair of languages
``training/run.json``                  recipe, data, command; ``files`` that the run wrote; ``finished`` once the model
                                       stands
``training/checkpoint-N/``             ST's checkpoint, ``loss.safetensors`` and ``done.json``, by which it is
                                       recognised as complete
``training/log.jsonl``                 one line a logged step
``training/negatives.parquet``         hard negatives that were mined before training
``training/base/``                     training by adapters: the model below them
``training/start/``                    while several processes read it: the tiny encoder that they start from
=====================================  ==========================================================
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from sentence_transformers.base.model import BaseModel

from st_xling.training.checkpoint import BASE, enough_room, forget_last_call, newest_checkpoint
from st_xling.utils import distributed
from st_xling.utils.io import TEMPORARY, file_sha256, read_json_object, write_json
from st_xling.utils.lock import lock_folder

logger = logging.getLogger(__name__)

Folder = TypeVar("Folder", bound="RunFolder")

NEGATIVES = "negatives.parquet"
#: What commands add to a model: true of its weights alone. ``card.json`` is the user's, and stays.
_PICTURES = ("accuracy_by_language", "score_histogram", "token_states", "cosines", "sentence_vectors")
_OF_THE_MODEL = ("README.md", "results.json", "mining.json", *(f"pictures/{name}.png" for name in _PICTURES))
# ``eval`` is of sentence-transformers' evaluators, ``runs`` of TensorBoard, ``hub`` what is pushed while training.
_OURS = re.compile(
    r"run\.json|log\.jsonl|negatives\.parquet|base|start|eval|runs|hub|token_states\.safetensors|"
    r"(checkpoint|stage)-\d+|\..*|.*\.tmp"
)
# Training arguments that a run may be resumed with other values of: how long, and what is said and kept meanwhile.
_MAY_CHANGE = {
    *("max_steps", "num_train_epochs", "save_total_limit", "dataloader_num_workers"),
    *("report_to", "run_name", "project", "trackio_space_id", "log_level", "logging_first_step"),
    *("push_to_hub", "hub_model_id", "hub_strategy", "hub_private_repo", "hub_always_push", "hub_revision"),
}
_NOT_THE_START = {"results.json", "card.json", "mining.json"}


class RunFolder:
    """The folder while a run is in it; as a context manager it is locked, by the main process, against other writers.

    A run that fails before its first checkpoint leaves the folder free, if it was.

    Args:
        path: Where the run lives.
        resume: Go on from the last complete checkpoint, if there is a run.
        overwrite: Remove an earlier run of ours before the new one is trained; files that it did not write stay.
        start: The model to start from, if it has a name.

    Raises:
        ValueError: On entering, or by :meth:`check`: the folder holds something else, or a run that may not be
            overwritten; another process writes there; it is the start model's own.
    """

    def __init__(
        self, path: str | Path, *, resume: bool = False, overwrite: bool = False, start: str | BaseModel | None = None
    ) -> None:
        self.path = Path(path)
        self.training = self.path / "training"
        self.manifest_path = self.training / "run.json"
        self.start = self.training / "start"
        self.base = self.training / BASE
        self.saving = self.path / ".saving"
        self._resume, self._overwrite = resume, overwrite and not resume
        named = isinstance(start, str) and start != "tiny" and Path(start).is_dir()
        self._start_model = str(start) if named else None
        self._lock: int | None = None
        self._created = self._resumes = self._replaces = self._changed = False

    def check(self) -> None:
        """Raise ``ValueError`` where entering would: before data are read."""
        if not distributed.is_main():
            return
        self._check_path()
        if self.path.is_dir():
            os.close(self._locked())

    def __enter__(self: Folder) -> Folder:
        distributed.run_on_main(self._open)
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if self._lock is None:
            return
        try:
            if kind is not None and not self._resumes and not self._has_work():
                self._undo()
        finally:
            os.close(self._lock)
            self._lock = None

    def claim(self, manifest: dict[str, Any], *, longer: bool = False) -> Path | None:
        """The checkpoint to go on from, or ``None`` to start.

        Args:
            manifest: What identifies the run; a resumed run must agree with it.
            longer: It may differ in how long it trains, and in what is reported, saved and published meanwhile.

        Raises:
            ValueError: Another run to resume.
        """
        if not self._resumes:
            return None
        self._check_same_run(self._with_start(manifest), _MAY_CHANGE if longer else set())
        return self.last_checkpoint()

    def begin(self, manifest: dict[str, Any]) -> None:
        """Write ``run.json``, once all that could be wrong has been looked at; an earlier run is removed before.

        A resumed run keeps its own, with the recipe's changes.
        """
        shutil.rmtree(self.start, ignore_errors=True)
        if self._resumes:
            written = self.read_manifest()
            if self._changed:
                commands = [*written.get("resumed_with", ()), manifest.get("command")]
                changes = {"recipe": manifest["recipe"], "resumed_with": commands, "finished": False}
                self.write_manifest({**written, **changes})
            return
        if self._replaces:
            self._remove_earlier_run()
        else:
            shutil.rmtree(self.training, ignore_errors=True)
        self.training.mkdir(exist_ok=True)
        self.write_manifest({**self._with_start(manifest), "files": [], "finished": False})

    def save_model(self, model: Any, *, also: Iterable[str] = ()) -> None:
        """Put a model on top, and remove what an earlier model of the run had there and this one has not.

        Args:
            model: With ``save_pretrained``.
            also: Other files of the run, relative to the folder: they go when the run is replaced.

        Raises:
            OSError: No room; the earlier model stands.
        """
        # 1. Written beside, so that an error or a kill leaves the earlier model.
        names = _save_beside(model, self.saving, self._last_stage())
        manifest = self.read_manifest()
        before, now = self._files(manifest.get("files")), sorted({*names, *also})
        if manifest.get("finished"):  # resumed after its end: results stand with the model, which is the same
            before = [name for name in before if name not in _OF_THE_MODEL]
        self.write_manifest({**manifest, "files": sorted({*before, *now})})
        # 2. Moved file by file; a run that is killed here is resumed, and moves them anew.
        _move(names, self.saving, self.path)
        # 3. What only the earlier model had.
        for name in set(before) - set(names):
            _remove(self.path, name)
        self.write_manifest({**manifest, "files": now})

    def finish(self, **facts: Any) -> None:
        """Mark the run as finished."""
        self.write_manifest({**self.read_manifest(), **facts, "finished": True})

    @property
    def is_finished(self) -> bool:
        return bool(self.read_manifest().get("finished"))

    def read_manifest(self) -> dict[str, Any]:
        """What ``run.json`` says, or ``ValueError`` if it is damaged."""
        remedy = "restore the file, or choose another --out"
        return read_json_object(self.manifest_path, missing_ok=False, remedy=remedy)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        write_json(self.manifest_path, manifest)

    def last_checkpoint(self) -> Path | None:
        """The newest complete checkpoint."""
        return newest_checkpoint(self.training)

    def _last_stage(self) -> Path:
        """Where the checkpoints are that the model comes from."""
        return self.training

    def _open(self) -> None:
        self._check_path()
        self._created = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = self._locked()
        earlier = self.manifest_path.is_file()
        self._resumes, self._replaces = earlier and self._resume, earlier and self._overwrite

    def _locked(self) -> int:
        """The descriptor of the folder's lock, once it has been looked at."""
        lock = lock_folder(self.path)
        try:
            self._look()
        except BaseException:
            os.close(lock)
            raise
        return lock

    def _check_path(self) -> None:
        if self.path.is_symlink() and not self.path.exists():
            raise ValueError(f"--out must be a folder: {self.path} is a link that leads nowhere; choose another name.")
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"--out must be a folder: {self.path} is a file; choose another name.")
        if self._start_model is not None:
            model, out = (Path(os.path.realpath(path)) for path in (self._start_model, self.path))
            if model == out or out / self.training.name in {model, *model.parents}:
                raise ValueError(
                    f"the model to start from must lie outside --out: {self._start_model} is part of the run in "
                    f"{self.path}; choose another --out."
                )

    def _look(self) -> None:
        """Raise ``ValueError`` unless the folder may be written in; called under the lock."""
        if not self.manifest_path.is_file():
            if not self._is_free():
                raise ValueError(
                    f"--out must be empty or a run of ours: {self.path} holds something else; choose another folder."
                )
        elif self._overwrite:
            self.read_manifest()
            others = [path.name for path in sorted(self.training.iterdir()) if not _OURS.fullmatch(path.name)]
            if others:
                raise ValueError(
                    f"--overwrite removes {self.training}, but {others[0]} there was written by no run; move it away."
                )
        elif not self._resume:
            hint = "it is complete" if self.read_manifest().get("finished") else "it can be continued with --resume"
            raise ValueError(f"{self.path} holds an earlier run ({hint}); use --overwrite to replace it.")

    def _is_free(self) -> bool:
        """Whether it holds nothing, or what a run leaves that was killed before it wrote its ``run.json``."""
        ours = self.start, self.saving
        files = (path for path in self.path.rglob("*") if not path.is_dir() or path.is_symlink())
        return all(TEMPORARY.fullmatch(path.name) or any(parent in ours for parent in path.parents) for path in files)

    def _has_work(self) -> bool:
        """Whether something would be lost with ``training``: a checkpoint, or a model."""
        if not self.manifest_path.is_file():
            return False
        manifest = self.read_manifest()
        return bool(manifest.get("finished") or manifest.get("files")) or self.last_checkpoint() is not None

    def _undo(self) -> None:
        shutil.rmtree(self.saving, ignore_errors=True)
        shutil.rmtree(self.start if self._replaces else self.training, ignore_errors=True)
        if self._created:
            with contextlib.suppress(OSError):  # something else is in it by now
                self.path.rmdir()

    def _remove_earlier_run(self) -> None:
        """Remove the files that ``run.json`` lists and all else in ``training``; ``run.json`` stays, to be replaced."""
        manifest = self.read_manifest()
        self.write_manifest({**manifest, "finished": False})
        for name in self._files(manifest.get("files")):
            _remove(self.path, name)
        for path in self.training.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path != self.manifest_path:
                path.unlink()

    def _files(self, listed: Any) -> list[str]:
        """Files on top that belong to the earlier run's model."""
        paths = [PurePosixPath(name) for name in {*(listed or ()), *_OF_THE_MODEL} if isinstance(name, str)]
        inside = (path for path in paths if not ({"..", "/"} & {*path.parts} or path.parts[:1] == ("training",)))
        return sorted(str(path) for path in inside if (self.path / path).is_file())

    def _with_start(self, manifest: dict[str, Any]) -> dict[str, Any]:
        if self._start_model is None:
            return manifest
        return {**manifest, "model_sha8": _model_files(Path(self._start_model))}

    def _check_same_run(self, manifest: dict[str, Any], may_change: set[str]) -> None:
        written = self.read_manifest()
        plain = json.loads(json.dumps(manifest))
        # Facts of a start, which another start may tell differently.
        ignored = {"finished", "command", "version", "sources"}
        keys = [key for key in plain if key not in ignored]
        values = [entry for key in keys for entry in _differences(written.get(key), plain[key], key)]
        if unlike := [name for name, *_ in values if name.removeprefix("recipe.training.") not in may_change]:
            raise ValueError(
                f"--resume must repeat the run that {self.path} holds: {', '.join(unlike)} differ; it was started with "
                f"{written.get('command') or 'other options'}."
            )
        if values:
            self._changed = True
            shown = ", ".join(f"{name.rpartition('.')[2]} {old} → {new}" for name, old, new in values)
            logger.info("--resume goes on otherwise than the run began: %s", shown)


def save_folder(model: Any, folder: Path) -> None:
    """Save a model for the run to start from later; the folder is renamed at the end, so where it is, it is complete.

    Raises:
        OSError: No room; the checkpoints next to ``folder`` stay.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(f".{folder.name}")
    _save_beside(model, beside, folder.parent)
    beside.rename(folder)


def _save_beside(model: Any, beside: Path, checkpoints: Path) -> list[str]:
    shutil.rmtree(beside, ignore_errors=True)
    try:
        with enough_room(beside.parent, checkpoints):
            forget_last_call(model)
            model.save_pretrained(str(beside))
            for code in beside.glob("*/*.py"):  # ST leaves it beside its settings, and reads it here
                shutil.copy(code, beside / code.name)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return sorted(path.relative_to(beside).as_posix() for path in beside.rglob("*") if path.is_file())


def _move(names: Iterable[str], source: Path, goal: Path) -> None:
    for name in names:
        (goal / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).replace(goal / name)
    shutil.rmtree(source)


def _remove(folder: Path, name: str) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty
        while path.parent != folder:
            path = path.parent
            path.rmdir()


def _model_files(folder: Path) -> str:
    """Eight digits for the weights, the vocabulary and the settings in a model's folder; its card may change."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        own = name.parts[0] not in ("training", "pictures", "predictions") and not name.parts[0].startswith(".")
        if own and path.is_file() and path.suffix != ".md" and name.as_posix() not in _NOT_THE_START:
            digest.update(f"{name.as_posix()}\n{file_sha256(path)}\n".encode())
    return digest.hexdigest()[:8]


def _differences(left: Any, right: Any, name: str) -> list[tuple[str, Any, Any]]:
    """Dotted name and both values of what two manifests do not agree on."""
    if not (isinstance(left, dict) and isinstance(right, dict)):
        return [] if left == right else [(name, left, right)]
    return [part for key in {**left, **right} for part in _differences(left.get(key), right.get(key), f"{name}.{key}")]
