"""The folder of a slim model, seen whole or not at all."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from st_xling.utils.io import is_disk_full, read_json_object, sync_folder, write_json
from st_xling.utils.lock import LockedFolder

KEY = "slim"
"""Of ``results.json``, under which the figures stand, and by which an earlier slim model is known."""


class SlimFolder(LockedFolder):
    """A slim model's folder while it is made: nobody else makes it meanwhile, and what a killed run left is cleared.

    Beside ``out`` stands a work folder with a fixed name: in it ``NAME`` is what is being saved, ``NAME.old`` what was
    at ``out`` before. They are exchanged by two renames, old away, new in; a process that is killed in between leaves
    no ``out``, and whoever comes next puts the old one back. The work folder goes when the block ends.

    Args:
        out: The folder to be.
        source: Hub id or folder of the model that is cut.
        overwrite: Replace an earlier slim model.
    Raises:
        ValueError: On entering: a slim model may not be written to ``out``, or another process is at it.
    """

    def __init__(self, out: Path, source: str, *, overwrite: bool = False) -> None:
        out = Path(out)
        super().__init__(work_folder(out), what="the work folder of slim", instead="remove it")
        self.out, self._source, self._overwrite = out, source, overwrite
        self._old = self.path / f"{out.name}.old"

    def __enter__(self) -> SlimFolder:
        _check_place(self.out, self._source)
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None and (self.out.exists() or not self._old.exists()):
            shutil.rmtree(self.path, ignore_errors=True)
        super().__exit__(*exception)

    def _prepare(self) -> None:
        if self._old.is_dir() and _is_free(self.out):
            self._old.replace(self.out)
        elif self._old.is_dir() and KEY not in read_json_object(self.out / "results.json"):
            raise ValueError(
                f"{self._old} is the model that was at {self.out}, where something else is now: move one of them away."
            )
        for rest in self.path.iterdir():
            shutil.rmtree(rest)
        _check_content(self.out, self._overwrite)

    def write(
        self, model: SentenceTransformer, figures: dict[str, Any], complete: Callable[[Path], object] | None = None
    ) -> None:
        """Save model and figures in the work folder, then put them in place.

        Args:
            model: The slim one.
            figures: For ``results.json``. The manifest of the source's training is copied as well.
            complete: Called with the folder before it takes its place, such as to write the card.
        Raises:
            OSError: When it cannot be written; an earlier model then stands.
        """
        new, old = self.path / self.out.name, self._old  # the card is called by the folder's name
        try:
            model.save_pretrained(str(new))
            if any(getattr(module, "do_lower_case", False) for module in model.modules()):  # ST reads, never saves it
                for path in new.rglob("sentence_bert_config.json"):
                    write_json(path, {**read_json_object(path), "do_lower_case": True})
            write_json(new / "results.json", {KEY: json.loads(json.dumps(figures))})
            manifest = Path(self._source) / "training" / "run.json"
            if manifest.is_file():
                (new / "training").mkdir()
                shutil.copyfile(manifest, new / "training" / "run.json")
            if complete is not None:
                complete(new)
            if self.out.exists():
                self.out.replace(old)
            new.replace(self.out)
            sync_folder(self.out.parent)
        except BaseException as error:
            if old.exists() and not self.out.exists():
                old.replace(self.out)
            if is_disk_full(error):
                raise OSError(
                    errno.ENOSPC,
                    f"no space left for {self.out}, and what stood there before stands ({error}). Make room and run "
                    "the same command again",
                ) from error
            raise


def work_folder(out: Path) -> Path:
    """Where the slim model for ``out`` is made."""
    return out.with_name(f".{out.name}.slim")


def _is_free(out: Path) -> bool:
    return not out.exists() or (out.is_dir() and not any(out.iterdir()))


def _check_place(out: Path, source: str) -> None:
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder: {out} is a file; choose another name.")
    if not out.name:
        raise ValueError(f"--out must be a folder with a name of its own: got {out}; choose another name.")
    if Path(source).is_dir():
        given, goal = Path(source).resolve(), out.resolve()
        if given == goal or given in goal.parents or goal in given.parents:
            raise ValueError(f"--out must lie apart from the model, which stays as it is: got {out} for {source}.")


def _check_content(out: Path, overwrite: bool) -> None:
    if out.is_dir() and any(out.iterdir()):
        if KEY not in read_json_object(out / "results.json"):
            raise ValueError(
                f"--out must be empty or an earlier slim model: {out} holds something else; choose another."
            )
        if not overwrite:
            raise ValueError(f"{out} holds an earlier slim model; use --overwrite to replace it.")
