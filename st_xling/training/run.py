"""One training run, from data to a saved model; kinds of models differ in the four hooks of :class:`Run`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.model import BaseModel
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from st_xling._version import __version__
from st_xling.models import load_encoder, tiny_encoder
from st_xling.models.load import as_own
from st_xling.training.callbacks import StderrProgress
from st_xling.training.leak_check import OnLeak
from st_xling.training.mixture import TextReport
from st_xling.training.options import read_options
from st_xling.training.run_folder import EndReplaced, RunFolder
from st_xling.training.saving import save_run
from st_xling.utils import distributed

if TYPE_CHECKING:
    from st_xling.data.leak import LeakReport, Texts

# XLM-R has 250,002 pieces, 24 layers, 1,024 dimensions and 512 positions.
_LARGEST_TINY = {"vocabulary": 1_000_000, "layers": 200, "hidden_size": 16_384, "heads": 16_384, "max_length": 65_536}


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training; ``checkpoint`` is the last complete one, or ``None``."""

    def __init__(self, folder: Path, checkpoint: Path | None) -> None:
        super().__init__(f"training in {folder} was interrupted")
        self.folder, self.checkpoint = folder, checkpoint


@dataclass(frozen=True)
class TrainingResult:
    """What a run of an encoder or retriever leaves behind.

    Attributes:
        model: The trained model: the best by the development score, or the last one.
        folder: Where it was saved.
        seconds: Wall time of training, with that of the parts before the run was resumed.
        steps: Optimiser steps of the whole run.
        history: The trainer's log: losses, components, development scores.
        texts: Source and target side: texts, truncated texts, longest.
        best: Best development score, if there was a development set.
    """

    model: SentenceTransformer
    folder: Path
    seconds: float
    steps: int
    history: list[dict[str, Any]] = field(repr=False)
    texts: tuple[TextReport, TextReport] = field(repr=False)
    best: float | None = None

    def figures(self) -> dict[str, Any]:
        """What ``results.json`` says of it."""
        return {"seconds": round(self.seconds, 1), "steps": self.steps, "best_dev": self.best}


class RunOptions(TypedDict, total=False):
    """Options that training by every kind of recipe takes, by keyword.

    Attributes:
        model: Hub id, folder, a loaded model, or ``"tiny"`` (the default): a small model built from the data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        evaluator: Evaluates the model during training by its ``primary_metric``; the best checkpoint is kept.
        evaluation: Name → texts that the model will be evaluated on later; like the evaluator's, they are looked for
            in the training data.
        on_leak: What to do about training rows with such text: ``"report"`` (the default), ``"drop"`` or ``"fail"``.
        resume: Go on from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, recorded with the run.
        provenance: Where the text came from, recorded with the run: ``option``, ``spec`` and ``names`` of each source.
    """

    model: Any
    tiny: Mapping[str, Any] | None
    evaluator: Any
    evaluation: Mapping[str, Texts] | None
    on_leak: OnLeak
    resume: bool
    overwrite: bool
    command: str | None
    provenance: Sequence[Mapping[str, Any]]


class Run:
    """A run, called once.

    Args:
        recipe: Of this kind of model.
        out: Folder of the run, see :class:`RunFolder`.
        options: See :class:`RunOptions`.

    Raises:
        ValueError: From calling it: data, model or options that do not fit; an occupied folder; shared text, if it is
            to fail; several processes, where the kind trains in one.
        TrainingInterrupted: Ctrl-C.
    """

    single_process = ""
    """What is trained, for the message of a kind that trains in one process; empty: in several too."""

    def __init__(
        self,
        recipe: Any,
        out: str | Path,
        *,
        model: Any = "tiny",
        tiny: Mapping[str, Any] | None = None,
        evaluator: Any = None,
        evaluation: Mapping[str, Texts] | None = None,
        on_leak: OnLeak = "report",
        resume: bool = False,
        overwrite: bool = False,
        command: str | None = None,
        provenance: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.recipe, self.model, self.tiny = recipe, model, check_tiny(tiny, model)
        self.evaluator, self.evaluation, self.on_leak = evaluator, evaluation, on_leak
        self.command, self.provenance = command, [dict(entry) for entry in provenance]
        self.resumes, self.overwrites = resume, overwrite
        self.folder = RunFolder(out, resume=resume, overwrite=overwrite, start=model)
        self.manifest: dict[str, Any] = {}
        self.leak: LeakReport | None = None

    def __call__(self) -> Any:
        distributed.init_distributed()
        if self.single_process:
            distributed.require_one_process(self.single_process)
        self.check()
        with self.folder as folder:
            distributed.run_on_all(self.prepare_data)
            self.manifest = {
                "version": __version__,
                "command": self.command,
                "recipe": self.recipe.as_dict(),
                "model": model_name(self.model),
                "tiny": self.tiny,
                "dev": dev_data(self.evaluator),
                "processes": distributed.process_count(),
                "sources": self.provenance,
                **self.describe_data(),
            }
            # Only now is it known whether a resumed run is the same: recipe and data are part of it.
            checkpoint = distributed.run_on_main(lambda: folder.claim(self.manifest))
            self.build(checkpoint)
            # From here on the folder is this run's: whatever could be wrong has been looked at.
            distributed.run_on_main(lambda: folder.begin(self.manifest))
            try:
                result = self.fit(checkpoint)
            except KeyboardInterrupt as stop:
                last = folder.last_checkpoint(compare=False) if distributed.is_main() else None
                raise TrainingInterrupted(folder.path, last) from stop
            distributed.run_on_main(
                lambda: save_run(result.model, folder, history=result.history, figures=result.figures(), leak=self.leak)
            )
        return result

    def check(self) -> None:
        """Raise ``ValueError`` for what can be seen before the folder is opened."""

    def prepare_data(self) -> None:
        """Put the data together, and look through it for text that evaluates the model: sets ``leak``."""
        raise NotImplementedError

    def describe_data(self) -> dict[str, Any]:
        """What identifies the data in ``run.json``; a run that is resumed must agree with it."""
        raise NotImplementedError

    def build(self, checkpoint: Path | None) -> None:
        """Make model and trainer ready, from ``checkpoint`` if there is one."""
        raise NotImplementedError

    def fit(self, checkpoint: Path | None) -> Any:
        """Train; what comes of it has ``model``, ``history`` (the log) and ``figures()``, for ``results.json``."""
        raise NotImplementedError

    def load_start(
        self, texts: Callable[[], Iterable[str]], model: Any = None, *, pooling: bool = True
    ) -> SentenceTransformer:
        """The encoder to start from: as it is, loaded, or a tiny one with the vocabulary of ``texts``.

        Args:
            texts: Of the training data.
            model: In place of the run's.
            pooling: Whether it pools as the recipe says; otherwise as it comes.
        """
        model, options = self.model if model is None else model, self.recipe.model
        if not isinstance(model, str):
            return model
        shape = {"pooling": options.pooling if pooling else None, "max_length": options.max_length}
        if model != "tiny":
            return as_own(load_encoder(model, **shape))
        shape = {name: value for name, value in shape.items() if value is not None}
        encoder = tiny_encoder(texts(), **{"seed": self.recipe.training.seed, **shape, **self.tiny})
        encoder.model_card_data.base_model = None
        return encoder

    def load_checkpoint(self, folder: Path) -> SentenceTransformer:
        """The encoder of a checkpoint, with pooling and length as they were chosen at the start."""
        encoder = load_encoder(str(folder))
        encoder.model_card_data.base_model = self.base_model
        return encoder

    @property
    def base_model(self) -> str | None:
        """What the card calls the model that was started from."""
        return None if self.model == "tiny" else model_name(self.model)


def fit_trainer(
    trainer: Any, folder: RunFolder, checkpoint: Path | None, texts: tuple[TextReport, TextReport], *, name: str
) -> TrainingResult:
    """Train, from ``checkpoint`` if there is one; ``name`` stands before the progress bar."""
    run_trainer(trainer, folder, checkpoint, name=name)
    return TrainingResult(
        model=trainer.model,
        folder=folder.path,
        seconds=trainer.seconds,
        steps=trainer.state.global_step,
        history=trainer.state.log_history,
        texts=texts,
        best=trainer.state.best_metric,
    )


def run_trainer(trainer: Any, folder: RunFolder, checkpoint: Path | None, *, name: str) -> None:
    """``trainer.train`` under one progress bar on stderr, instead of transformers' two that write to stdout."""
    progress = StderrProgress(name)
    for callback in (progress, EndReplaced(folder)):
        trainer.add_callback(callback)
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    try:
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    finally:
        progress.close()


def check_tiny(options: Mapping[str, Any] | None, model: Any = "tiny") -> dict[str, Any]:
    """Options of :func:`tiny_encoder`, or ``ValueError`` with the nearest valid name or the type that was expected.

    Args:
        options: By name.
        model: What a run starts from; only ``"tiny"`` takes any.
    """
    tiny = read_options(tiny_encoder, dict(options or {}), "tiny")
    for name, most in _LARGEST_TINY.items():
        if tiny.get(name, 0) > most:  # beyond all that text can fill or memory holds: libraries abort
            raise ValueError(f"tiny.{name} must be at most {most:,}: got {tiny[name]:,}; take a model of the Hub.")
    if tiny and model != "tiny":
        raise ValueError(f"tiny options shape the model 'tiny' only: got {', '.join(tiny)} for another model.")
    return tiny


def model_name(model: str | BaseModel) -> str:
    """How the card and the run's manifest call the model that was started from."""
    if isinstance(model, str):
        return model
    return str(getattr(model.model_card_data, "base_model", None) or "a loaded model")


def dev_data(evaluator: Any) -> str | None:
    """What evaluates the run, without our version, which may change before a run is resumed."""
    signature = getattr(evaluator, "signature", None)
    return None if signature is None else "|".join(p for p in signature.split("|") if not p.startswith("st-xling:"))
