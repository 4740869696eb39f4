"""The folder of one training run: the model on top, everything needed to resume in ``training/``.

=====================================  ==========================================================
``modules.json``, ``model.safetensors``…  the trained model, for ``SentenceTransformer(folder)``
``README.md``, ``pictures/``           its card, and the pictures there; ``card.json``: the user's options for it
``results.json``                       metrics, with their signatures
``mining.json``                        thresholds for mining, by pair of languages
``training/run.json``                  recipe, data, command; ``steps``: the files of the model; ``finished`` once it
                                       is saved
``training/checkpoint-N/``             ST's checkpoint, ``loss.safetensors`` and ``done.json``, by which it is
                                       recognized as complete and undamaged
``training/log.jsonl``                 one line a logged step
``training/negatives.parquet``         hard negatives that were mined before training
``training/base/``                     training by adapters: the model below them
=====================================  ==========================================================
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from sentence_transformers.base.model import BaseModel
from torch import nn

from st_xling.models.backbones import backbone
from st_xling.models.heads import VocabularyHead, write_with_head
from st_xling.models.sidecar import OF_THE_WEIGHTS
from st_xling.utils import distributed
from st_xling.utils.built_sizes import BUILT_MODELS
from st_xling.utils.io import (
    LOCK,
    TEMPORARY,
    file_crc32,
    locked,
    naming_full_disk,
    read_json_object,
    temporary_path,
    write_json,
)
from st_xling.utils.paths import existing_paths
from st_xling.utils.resumable import ResumableFolder, changed_values, remove_file

logger = logging.getLogger(__name__)

DONE = "done.json"
"""Written when all other files of a checkpoint are, with their checksums and the seconds of training so far."""
BASE = "base"
NEGATIVES = "negatives.parquet"
# ``eval`` is of sentence-transformers' evaluators, ``runs`` of TensorBoard.
_OURS = re.compile(r"log\.jsonl|negatives\.parquet|base|eval|runs|(checkpoint|stage)-\d+|\..*")
# Training arguments that a run may be resumed with other values of: how long, and what is said and kept meanwhile.
_MAY_CHANGE = {
    *("max_steps", "num_train_epochs", "save_total_limit", "dataloader_num_workers"),
    *("report_to", "run_name", "project", "trackio_space_id", "log_level", "logging_first_step"),
}


class SavableModel(Protocol):
    """A model that can be saved to a folder."""

    def save_pretrained(self, folder: str, /) -> Any:
        """Write its files."""


class RunFolder:
    """The folder while a run is in it; as a context manager it is locked, by the main process, against other writers.

    A run that fails before its first checkpoint leaves the folder free, if it was.

    Args:
        path: Where the run lives.
        resume: Resume from the last complete checkpoint, if there is a run.
        overwrite: Remove an earlier run of ours before the new one is trained; files that it did not write stay.
        start: The model to start from, if it has a name.
        inputs: What else the run reads: specs, paths, Hub ids, or lists of them.
        stages: Number of stages, each with its checkpoints.

    Raises:
        ValueError: On entering, or by :meth:`check`: the folder contains something else, or a run that may not be
            overwritten; another process writes there; an input is part of it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        resume: bool = False,
        overwrite: bool = False,
        start: str | BaseModel | None = None,
        inputs: Sequence[Any] = (),
        stages: int = 1,
    ) -> None:
        self.path = Path(path)
        self.stages = stages
        self.training = self.path / "training"
        self.base = self.training / BASE
        self._folder = ResumableFolder(self.path, name="--out", instead="choose another", record="training/run.json")
        self._resume = resume
        self._overwrite = overwrite and not resume
        self._inputs = list(inputs)
        if isinstance(start, str) and start not in BUILT_MODELS:
            self._inputs.append(start)
        self._lock: contextlib.ExitStack | None = None
        # Known once the folder is open: whether a run in it is resumed, or replaced; and if its options changed.
        self._resumes = False
        self._replaces = False
        self._changed = False

    def check(self) -> None:
        """Raise ``ValueError`` where entering would: before data are read."""
        if not distributed.is_main():
            return
        if self.path.is_dir():
            with locked(self.path):
                self._check_contents()
        elif os.path.lexists(self.path):
            raise ValueError(f"--out must be a folder: {self.path} is a file or a broken link; choose another name.")

    def __enter__(self) -> RunFolder:
        distributed.run_on_main(self._open)
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if self._lock is None:
            return
        try:
            if kind is not None and not self._resumes and not self._has_work():
                self._folder.remove_temporary()
                if not self._replaces:
                    shutil.rmtree(self.training, ignore_errors=True)
        finally:
            self._lock.__exit__(kind, None, None)
            self._lock = None

    def claim(self, manifest: dict[str, Any], *, longer: bool = False) -> Path | None:
        """The checkpoint to resume from, or ``None`` to start.

        Args:
            manifest: What identifies the run; a resumed run must agree with it.
            longer: It may differ in how long it trains, and in what is reported, saved and published meanwhile.

        Raises:
            ValueError: Another run to resume.
        """
        if not self._resumes:
            return None
        written = self.read_manifest()
        plain = json.loads(json.dumps(manifest))  # as it is read from a file: lists for tuples
        # Facts of a start, which another start may tell differently.
        skipped = {"finished", "command", "version", "sources", "start"}
        written_weights = written.get("start")
        weights = plain.get("start")
        if written_weights is not None and weights is not None:
            if written_weights != weights:
                raise ValueError(
                    f"--resume must repeat the run that {self.path} holds: the model {plain['model']} has other "
                    "weights or files than when that run was started. Restore it, or start again with --overwrite."
                )
            skipped.add("model")  # the same model, by whatever path
        changes: list[tuple[str, Any, Any]] = []
        for key, value in plain.items():
            if key not in skipped:
                changes += changed_values(written.get(key), value, key)
        may_change = _MAY_CHANGE if longer else set()
        if differing := [name for name, *_ in changes if name.removeprefix("recipe.arguments.") not in may_change]:
            raise ValueError(
                f"--resume must repeat the run that {self.path} holds: {', '.join(differing)} differ; it was started "
                f"with {written.get('command') or 'other options'}."
            )
        if changes:
            self._changed = True
            shown = ", ".join(f"{name.rpartition('.')[2]} {old} → {new}" for name, old, new in changes)
            logger.info("--resume continues with other options than the run began with: %s", shown)
        return self._intact_checkpoint()

    def check_teacher(self, fingerprint: str, options: Mapping[str, Any]) -> None:
        """Raise ``ValueError`` if the run that is resumed has learned from another teacher.

        :meth:`claim` would notice it too, but only once the new teacher has encoded all texts.

        Args:
            fingerprint: Fingerprint of the teacher.
            options: The recipe's section ``data.teacher``.
        """
        if not self._resumes:
            return
        manifest = self.read_manifest()
        section = manifest.get("recipe", {}).get("data", {}).get("teacher") or {}
        # Options change the fingerprint, too; the path of the same teacher may be another.
        changed = [name for name, value in options.items() if name != "model" and section.get(name) != value]
        if section and changed:
            names = ", ".join(f"recipe.data.teacher.{name}" for name in changed)
            raise ValueError(
                f"--resume must repeat the run that {self.path} holds: {names} differ; it was started with "
                f"{manifest.get('command') or 'other options'}."
            )
        taught = manifest.get("teacher") or {}
        expected = taught.get("fingerprint", "")
        if expected and not fingerprint.startswith(expected):
            raise ValueError(
                f"--resume must repeat the run that {self.path} holds: the teacher has other weights or files than "
                f"{taught.get('model')} had when that run was started. Restore it, or start again with --overwrite."
            )

    def begin(self, manifest: dict[str, Any]) -> None:
        """Write ``run.json``, once all that could be wrong has been looked at; an earlier run is removed before.

        A resumed run keeps its own, with the recipe's changes.
        """
        self._folder.remove_temporary()
        if self._resumes:
            if self._changed:
                commands = [*self._folder.task.get("resumed_with", ()), manifest.get("command")]
                self.update(recipe=manifest["recipe"], resumed_with=commands, finished=False)
            return
        if self._replaces:
            self._remove_earlier_run()
        self._folder.start({**manifest, "finished": False})

    def save_model(self, model: SavableModel, head: VocabularyHead | None = None) -> None:
        """Save a model on top, and remove what an earlier one of the run had there.

        Args:
            model: Model.
            head: Vocabulary head that is saved with it.

        Raises:
            OSError: No room; the earlier model stays.
        """
        temporary = temporary_path(self.path / "model")
        _save_model(model, temporary, head)
        # Resumed after its end, the model is the same, and its results stay with it.
        outdated_files = () if self.is_finished else OF_THE_WEIGHTS
        self._folder.install("model", temporary, also=outdated_files)

    def update(self, **facts: Any) -> None:
        """Add facts to ``run.json``."""
        self._folder.load()
        self._folder.task.update(facts)
        self._folder.write_record()

    @property
    def is_finished(self) -> bool:
        return bool(self.read_manifest().get("finished"))

    def read_manifest(self) -> dict[str, Any]:
        """The facts in ``run.json``, or an error if it is damaged or missing."""
        if not self._folder.load():
            raise FileNotFoundError(f"{self._folder.record} is missing.")
        return self._folder.task

    def stage(self, number: int) -> Path:
        """Folder of the checkpoints of a stage, counted from 0."""
        return self.training if self.stages == 1 else self.training / f"stage-{number + 1}"

    def finished_stages(self) -> int:
        """Number of stages before the last whose model is saved."""
        finished = 0
        while finished < self.stages - 1 and (self.stage(finished) / "model").is_dir():
            finished += 1
        return finished

    def last_checkpoint(self) -> Path | None:
        """The newest complete checkpoint of the stage that was interrupted, or the model of the stage before it."""
        number = self.finished_stages()
        checkpoint = newest_checkpoint(self.stage(number))
        if checkpoint is None and number > 0:
            return self.stage(number - 1) / "model"
        return checkpoint

    def _intact_checkpoint(self) -> Path | None:
        """The newest undamaged checkpoint of the stage that was interrupted, or the model of the stage before it.

        Raises:
            ValueError: A damaged model that adapters or a stage start from, or no checkpoint that is undamaged.
        """
        number = self.finished_stages()
        checkpoint = intact_checkpoint(self.stage(number))
        start_folders = [self.stage(number) / BASE]
        if number > 0:
            start_folders.append(self.stage(number - 1) / "model")
        for folder in start_folders:
            if folder.is_dir():
                check_intact(folder)
        if checkpoint is None and number > 0:
            return start_folders[-1]
        return checkpoint

    def _open(self) -> None:
        self.check()
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._folder)
            has_earlier_run = self._check_contents()
            self._lock = stack.pop_all()
        self._resumes = has_earlier_run and self._resume
        self._replaces = has_earlier_run and self._overwrite

    def _check_contents(self) -> bool:
        """Return whether there is an earlier run; raise ``ValueError`` unless the folder may be written in."""
        has_earlier_run = self._folder.load()
        self._check_inputs()
        if not has_earlier_run:
            if other := next(self._other_files(), None):
                raise ValueError(
                    f"--out must be empty or a run of ours: {self.path} contains {other}; choose another folder."
                )
        elif not self._overwrite and not self._resume:
            hint = "it is complete" if self._folder.task.get("finished") else "it can be continued with --resume"
            raise ValueError(f"{self.path} holds an earlier run ({hint}); use --overwrite to replace it.")
        return has_earlier_run

    def _other_files(self) -> Iterator[Path]:
        """Files other than those of a run that was killed before it wrote its ``run.json``."""
        for path in self.path.rglob("*"):
            is_ours = path.name == LOCK or any(map(TEMPORARY.fullmatch, path.parts))
            is_folder = path.is_dir() and not path.is_symlink()
            if not is_ours and not is_folder:
                yield path.relative_to(self.path)

    def _check_inputs(self) -> None:
        """Raise ``ValueError`` if an input is the folder itself, or a file or folder that the run replaces in it."""
        out = os.path.realpath(self.path)
        ours = [os.path.realpath(self.training)]
        for step in self._folder.listed.values():
            ours += [os.path.realpath(self.path / name) for name in step["files"]]
        for real, name in existing_paths(self._inputs).items():
            ancestors = {real, *map(str, Path(real).parents)}
            if real == out or not ancestors.isdisjoint(ours):
                raise ValueError(
                    f"--out must not replace an input: {name} is part of the run in {self.path}; choose another --out."
                )

    def _has_work(self) -> bool:
        """Return whether something would be lost with ``training``: a checkpoint, or a model."""
        work = self._folder.task.get("finished") or self._folder.listed
        return self._folder.record.is_file() and (bool(work) or self.last_checkpoint() is not None)

    def _remove_earlier_run(self) -> None:
        """Remove the files that ``run.json`` lists and what is ours in ``training``; ``run.json`` stays until then."""
        self.update(finished=False)
        self._folder.clear()
        for name in OF_THE_WEIGHTS:
            remove_file(self.path, name)
        for path in self.training.iterdir():
            if not _OURS.fullmatch(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def save_folder(model: SavableModel, folder: Path) -> None:
    """Save a model for the run to start from later; the folder is there once it is complete."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(folder)
    _save_model(model, temporary)
    write_json(temporary / DONE, {"files": checksums(temporary)})
    temporary.rename(folder)


def _save_model(model: SavableModel, folder: Path, head: VocabularyHead | None = None) -> None:
    try:
        with naming_full_disk(folder.parent):
            _reset_tokenizers(model)
            model.save_pretrained(str(folder))
            if head is not None:
                assert isinstance(model, nn.Module)  # an encoder
                write_with_head(folder, backbone(model), head)
            for code in folder.glob("*/*.py"):  # ST leaves it next to its settings, and reads it here
                shutil.copy(code, folder / code.name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _reset_tokenizers(model: SavableModel) -> None:
    """Remove truncation and padding of the last call from the tokenizers of a model.

    Fast tokenizers save both in ``tokenizer.json``, from where they come back as settings: files would depend on what
    was last encoded, and a resumed run would end with others than an undisturbed one.
    """
    modules = [model, *model.modules()] if isinstance(model, nn.Module) else [model]
    for module in modules:
        backend = getattr(getattr(module, "tokenizer", None), "backend_tokenizer", None)
        if backend is not None:
            backend.no_truncation()
            backend.no_padding()


def is_complete(checkpoint: Path) -> bool:
    """Return whether a checkpoint is complete."""
    return (checkpoint / DONE).is_file()


def checksums(folder: Path) -> dict[str, int]:
    """CRC-32 of the files in a folder, by their relative paths; ``done.json``, which holds them, is left out."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in (DONE, LOCK)]
    return {path.relative_to(folder).as_posix(): file_crc32(path) for path in paths}


def damaged_file(folder: Path) -> str | None:
    """Name of the first file of a checkpoint or a saved model that is not as it was written; ``None`` if all are.

    A folder without checksums, such as a checkpoint of another trainer, counts as undamaged.
    """
    if not (folder / DONE).is_file():
        return None
    try:
        expected = read_json_object(folder / DONE).get("files")
    except (ValueError, OSError):
        return DONE
    if not isinstance(expected, dict):
        return None
    for name, checksum in expected.items():
        path = folder / name
        try:
            if file_crc32(path) != checksum:
                return name
        except OSError:  # missing, or not readable
            return name
    return None


def check_intact(folder: Path) -> None:
    """Raise ``ValueError`` with the name of a damaged file."""
    if name := damaged_file(folder):
        raise ValueError(
            f"{folder / name} is damaged: it is not as it was written. Restore it, or start again with --overwrite."
        )


def intact_checkpoint(folder: Path) -> Path | None:
    """The newest complete ``checkpoint-N`` whose files are as they were written; damaged ones are named.

    Raises:
        ValueError: There are complete checkpoints, and each is damaged.
    """
    damaged: list[str] = []
    for checkpoint in filter(is_complete, reversed(_checkpoints_by_step(folder))):
        name = damaged_file(checkpoint)
        if name is None:
            if damaged:
                logger.warning("%s: damaged, so %s is used instead", ", ".join(damaged), checkpoint.name)
            return checkpoint
        damaged.append(f"{checkpoint.name}/{name}")
    if damaged:
        raise ValueError(
            f"every checkpoint in {folder} is damaged ({', '.join(damaged)}). Restore one, or start again with "
            "--overwrite."
        )
    return None


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest complete ``checkpoint-N`` in the folder of a run, or of one of its stages."""
    return next(filter(is_complete, reversed(_checkpoints_by_step(folder))), None)


def step_of(checkpoint: Path) -> int:
    """The optimizer steps made up to it."""
    return int(checkpoint.name.rpartition("-")[2])


def remove_earlier(checkpoint: Path, *, keep: int | None, best: str | Path | None = None) -> None:
    """Remove complete checkpoints of fewer steps beyond those to be kept, and all incomplete ones of fewer steps.

    transformers' own removal goes by the folders' times, and by their names where these are close.

    Args:
        checkpoint: The newest, complete.
        keep: How many to keep, it and the best one included; ``None``: all.
        best: Never removed.
    """
    if keep is None:
        return
    # The newest is what a run resumes from, the best what it ends with: neither counts for removal.
    protected = {checkpoint.name, Path(best or checkpoint).name}
    before = [path for path in _checkpoints_by_step(checkpoint.parent) if step_of(path) < step_of(checkpoint)]
    earlier = [path for path in before if path.name not in protected]
    room = max(0, keep - len(protected))
    spared = [path for path in reversed(earlier) if is_complete(path)][:room]
    for path in set(earlier).difference(spared):
        shutil.rmtree(path, ignore_errors=True)


def _checkpoints_by_step(folder: Path) -> list[Path]:
    checkpoints = [path for path in folder.glob("*") if re.fullmatch(r"checkpoint-\d+", path.name)]
    return sorted(checkpoints, key=step_of)
