"""One training run: what is common to all kinds of models, from the start model to the saved folder."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.base.model import BaseModel
from sentence_transformers.sentence_transformer.modules import Pooling
from sentence_transformers.util.file_io import is_sentence_transformer_model

from st_xling._version import __version__
from st_xling.data.leak import LeakReport, Texts, drop_leaks, leaks, refuse_leaks
from st_xling.data.reranking.pools import pool_texts
from st_xling.models import load_encoder, static_encoder, tiny_encoder
from st_xling.models.encoding import name_unused_prompts
from st_xling.models.heads import VocabularyHead
from st_xling.models.load import limit_length, loading, mark_loaded, pooling_of_bare, set_pooling
from st_xling.models.pair_filter import PairFilter
from st_xling.models.sidecar import model_fingerprint, saved_fingerprint
from st_xling.training.arguments import CrossLingualTrainingArguments
from st_xling.training.development import DevelopmentScore, development_score
from st_xling.training.options import ModelOptions
from st_xling.training.recipe import BaseRecipe
from st_xling.training.recipe_files import check_keys, read_options
from st_xling.training.run_folder import RunFolder
from st_xling.training.trainer import CrossLingualTrainer, GuardedTrainer, named_prompt, run_trainer, set_default_prompt
from st_xling.utils import distributed
from st_xling.utils.built_sizes import BUILT_MODELS
from st_xling.utils.io import read_json_object, write_atomic, write_json
from st_xling.utils.options import Pooling as PoolingMode
from st_xling.utils.options import check_choice

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)

OnLeak = Literal["report", "drop", "fail"]
Evaluators: TypeAlias = BaseEvaluator | list[BaseEvaluator]
"""What evaluates a model during training: an evaluator, ours or of sentence-transformers, or several."""
_LIBRARIES = ("torch", "transformers", "sentence-transformers")


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training; ``checkpoint`` is the last complete one, or ``None``."""

    def __init__(self, folder: Path, checkpoint: Path | None) -> None:
        super().__init__(f"training in {folder} was interrupted")
        self.folder = folder
        self.checkpoint = checkpoint


@dataclass(frozen=True)
class TrainingResult:
    """Result of a run of an encoder, retriever or cross-encoder.

    Attributes:
        model: The trained model: the best by the development score (of the last stage), or the last one.
        folder: Where it was saved.
        seconds: Wall time of training, with that of the parts before the run was resumed.
        steps: Optimizer steps of the whole run.
        history: The trainer's log: losses, components, development scores.
        best: Best development score, if there was a development set.
        development: The same with the number of pairs or queries, if the evaluator is one of ours.
        stages: Of a cross-encoder: name, pairs, steps, seconds, best development score, pairs cut and skipped.
        vocabulary_head: Head of masked language modeling that is saved with the model, if the arguments say so.
        pair_filter: Of a filter of translations: its calibration and threshold.
    """

    model: Any
    folder: Path
    seconds: float
    steps: int
    history: list[dict[str, Any]] = field(repr=False)
    best: float | None = None
    development: DevelopmentScore | None = None
    stages: Sequence[Mapping[str, Any]] = ()
    vocabulary_head: VocabularyHead | None = field(default=None, repr=False)
    pair_filter: PairFilter | None = None

    def figures(self) -> dict[str, Any]:
        """Figures for ``results.json``."""
        figures: dict[str, Any] = {"seconds": round(self.seconds, 1), "steps": self.steps, "best_dev": self.best}
        if self.development is not None:
            figures |= self.development.facts()
        if self.stages:
            figures["stages"] = list(self.stages)
        if self.pair_filter is not None:
            figures["filter"] = self.pair_filter.as_dict()
        return figures


AnyRunResult = TypeVar("AnyRunResult", bound="RunResult")


class RunResult(Protocol):
    """Result of a run, of any kind of model."""

    @property
    def model(self) -> BaseModel:
        """The trained model."""

    @property
    def history(self) -> list[dict[str, Any]]:
        """The log."""

    def figures(self) -> dict[str, Any]:
        """Return the figures for ``results.json``."""


@dataclass(eq=False, kw_only=True)
class Run:
    """Context of one run, which goes from preparing data through :meth:`claim` and building a trainer to :meth:`fit`.

    Attributes:
        recipe: Recipe of the kind of model.
        out: Folder of the run.
        model: Hub id, folder, a loaded model, or ``"tiny"`` or ``"static"``: a small model built from the data.
        stages: Number of stages, each with its checkpoints.
        inputs: Models and files that the run reads besides ``model`` and the sources of its data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        static: Options of :func:`~st_xling.models.static_encoder`, for ``model="static"``.
        evaluator: Evaluates the model during training.
        evaluation: Name → texts that the model will be evaluated on later; like the evaluator's, they are looked for
            in the training data.
        on_leak: What to do about training rows with such text.
        resume: Resume from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, recorded with the run.
        provenance: Where the text came from, recorded with the run: ``option``, ``spec`` and ``names`` of each source.
        load_options: ``revision`` and ``trust_remote_code`` of
            :func:`~st_xling.models.load.load_sentence_transformer`, for a model that is loaded.

    Raises:
        ValueError: Options that do not fit each other.
    """

    recipe: BaseRecipe
    out: str | Path
    model: str | BaseModel
    stages: int = 1
    inputs: Sequence[str | None] = ()
    tiny: Mapping[str, Any] | None = None
    static: Mapping[str, Any] | None = None
    evaluator: Evaluators | None = None
    evaluation: Mapping[str, Texts] | None = None
    on_leak: OnLeak = "report"
    resume: bool = False
    overwrite: bool = False
    command: str | None = None
    provenance: Sequence[Mapping[str, Any]] = ()
    load_options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self.tiny = check_tiny(self.tiny, self.model)
        self.static = check_static(self.static, self.model)
        self.load_options = dict(self.load_options or {})
        self.folder = RunFolder(
            self.out,
            resume=self.resume,
            overwrite=self.overwrite,
            start=self.model,
            inputs=[*self.inputs, *(entry.get("spec") for entry in self.provenance)],
            stages=self.stages,
        )
        self.manifest: dict[str, Any] = {}
        self._start: str | None = None
        self.leak: LeakReport | None = None

    def opened(self, single_process: str = "") -> RunFolder:
        """Return the folder, to be entered.

        Args:
            single_process: Kind of model, if it is trained in one process only.
        """
        distributed.init_distributed()
        if single_process and (count := distributed.process_count()) > 1:
            raise ValueError(f"{single_process} are trained in one process: got {count}; start one.")
        return self.folder

    def check_leaks(self, data: Mapping[str, Dataset]) -> Mapping[str, Dataset]:
        """Compare training data with what evaluates the run, log what they share, and return the data to train on.

        Raises:
            LeakError: Something is shared, and ``on_leak`` is ``"fail"``.
            ValueError: Dropping would leave a data set empty, or ``on_leak`` needs evaluation data and there are none.
        """
        check_choice("on_leak", self.on_leak, OnLeak)
        texts = {**evaluation_texts(self.evaluator), **(self.evaluation or {})}
        if not texts and self.on_leak == "report":
            return data
        if not texts:
            raise ValueError(f"on_leak={self.on_leak!r} needs evaluation data to check against: got none; add some.")
        report = leaks(data, texts, progress=True)
        # Only training data lose rows: what evaluates the model stays as it is.
        if self.on_leak == "drop" and report.leaking:
            data = drop_leaks(data, report)
            report = dataclasses.replace(report, dropped=True)
        needs_decision = report.leaking and self.on_leak == "report"
        level = logging.WARNING if needs_decision else logging.INFO
        table, _, signature = report.table().rpartition("\n")
        logger.log(level, "%s", table)
        logger.debug("%s", signature)  # in results.json and the card, for whoever compares two reports
        if self.on_leak == "fail":
            refuse_leaks(report)
        self.leak = report
        return data

    def claim(
        self,
        described: Mapping[str, Any],
        *,
        recipe: BaseRecipe | None = None,
        sources: Sequence[Mapping[str, Any]] | None = None,
        longer: bool = False,
    ) -> Path | None:
        """Return the checkpoint to resume from, or ``None`` to start.

        Args:
            described: Description of the data; a run that is resumed must agree with it.
            recipe: The recipe, if preparing the data has changed it; ``None``: that of the run.
            sources: Where the text came from, if preparing it has changed names; ``None``: ``provenance``.
            longer: Whether a run that is resumed may have other steps or epochs than it was started with.
        """
        if recipe is None:
            recipe = self.recipe
        if sources is None:
            sources = self.provenance
        signature = getattr(self.evaluator, "identity", None) or ""
        # Without our version, which may change before a run is resumed.
        signature_parts = [part for part in signature.split("|") if not part.startswith("st-xling:")]
        self.manifest = {
            "version": __version__,
            "command": self.command,
            "recipe": recipe.as_dict(),
            "model": model_name(self.model),
            "start": self._start_fingerprint(),
            "load_options": self.load_options,
            "tiny": self.tiny,
            "static": self.static,
            "dev": "|".join(signature_parts) or None,
            "processes": distributed.process_count(),
            "sources": [dict(entry) for entry in sources],
            **described,
        }
        return distributed.run_on_main(lambda: self.folder.claim(self.manifest, longer=longer))

    def fit(self, train: Callable[[], AnyRunResult]) -> AnyRunResult:
        """Train and save. From here on the folder is this run's.

        Args:
            train: Returns a result as :func:`save_run` takes it.

        Raises:
            TrainingInterrupted: Ctrl-C.
        """
        if self.manifest["start"] is None:  # a model of the Hub may have been fetched since
            self.manifest["start"] = self._start_fingerprint()
        distributed.run_on_main(lambda: self.folder.begin(self.manifest))
        try:
            result = train()
        except KeyboardInterrupt as stop:
            checkpoint = self.folder.last_checkpoint() if distributed.is_main() else None
            raise TrainingInterrupted(self.folder.path, checkpoint) from stop
        distributed.run_on_main(lambda: save_run(result, self.folder, self.leak))
        return result

    def _start_fingerprint(self) -> str | None:
        """Fingerprint of the weights of the model to start from; ``None`` if it is not known."""
        if self._start is None and not self.builds_model:
            if isinstance(self.model, str):
                self._start = saved_fingerprint(self.model, revision=self._load_option("revision"))
            else:
                self._start = model_fingerprint(self.model)
        return self._start

    @property
    def builds_model(self) -> bool:
        """Whether the run starts from a model with random weights, which is built from its data."""
        return isinstance(self.model, str) and self.model in BUILT_MODELS

    def _load_option(self, name: str) -> Any:
        return (self.load_options or {}).get(name)

    def load_start(
        self,
        texts: Callable[[], Iterable[str]],
        *,
        seed: int,
        pooling: PoolingMode | None = None,
        max_length: int | None = None,
        bare: ModelOptions | None = None,
    ) -> SentenceTransformer:
        """Load the encoder to start from, or build a tiny or static one with the vocabulary of ``texts``.

        Args:
            texts: Texts of the training data.
            seed: Of the weights of one that is built.
            pooling: Pooling of every model; ``None``: a model of sentence-transformers keeps its own.
            max_length: Maximum number of tokens of every model; ``None``: a model keeps its own.
            bare: Pooling and length of a bare transformer, where they are ``None`` above.

        Raises:
            ValueError: No module for a pooling; a length that the positions do not reach; either of a static model.
        """
        bare = ModelOptions() if bare is None else bare
        if self.model == "static":
            if pooling or max_length:
                raise ValueError(
                    f"the model 'static' averages all tokens of a text: got model.pooling {pooling}, model.max_length "
                    f"{max_length}; leave them out."
                )
            encoder = build_for_all(lambda: static_encoder(texts(), **{"seed": seed, **(self.static or {})}))
            self.announce(encoder)
            return encoder
        if self.model == "tiny":
            encoder = self._build_tiny(texts, seed, pooling or bare.pooling, max_length or bare.max_length)
            self.announce(encoder)
            return encoder
        chosen_pooling: str | None = pooling
        chosen_length = max_length
        if isinstance(self.model, str):
            with loading(self.model):
                is_ready = is_sentence_transformer_model(self.model, revision=self._load_option("revision"))
            encoder = mark_loaded(load_encoder(self.model, **(self.load_options or {})))
            if not is_ready:
                chosen_pooling = pooling or pooling_of_bare(encoder, bare.pooling)
                chosen_length = max_length or bare.max_length
            if not Path(self.model).exists():  # a Hub id, which adapters name as their base
                encoder.model_card_data.base_model = self.model
        else:
            assert isinstance(self.model, SentenceTransformer)
            encoder = self.model
        if chosen_pooling not in (None, shape_of(encoder)["pooling"]):
            set_pooling(encoder, chosen_pooling)
        if chosen_length is not None:
            limit_length(encoder, chosen_length)
        self.announce(encoder)
        return encoder

    def _build_tiny(
        self, texts: Callable[[], Iterable[str]], seed: int, pooling: PoolingMode | None, max_length: int | None
    ) -> SentenceTransformer:
        """Build the model ``"tiny"``; options of the user come before those of the recipe, and defaults last."""
        options: dict[str, Any] = {"seed": seed}
        if pooling is not None:
            options["pooling"] = pooling
        if max_length is not None:
            options["max_length"] = max_length
        options.update(self.tiny or {})
        encoder = build_for_all(lambda: tiny_encoder(texts(), **options))
        encoder.model_card_data.base_model = None
        return encoder

    def announce(self, model: BaseModel) -> None:
        """Log the model that will be trained: class, size, weights, pooling and length."""
        architecture = type(getattr(model[0], "auto_model", model[0])).__name__
        count = sum(parameter.numel() for parameter in model.parameters())
        weights = "random weights" if self.builds_model else "pretrained"
        description = f"{architecture}, {count:,} parameters, {weights}"
        if isinstance(model, SentenceTransformer):
            shape = shape_of(model)
            description += f"; {shape['pooling'] or 'no'} pooling"
            if math.isfinite(shape["max_length"] or math.inf):
                description += f", at most {shape['max_length']} tokens"
        logger.info("model %s: %s", model_name(self.model), description)

    def load_checkpoint(self, folder: Path) -> SentenceTransformer:
        """The encoder of a checkpoint, with pooling and length as they were chosen at the start."""
        trust = bool(self._load_option("trust_remote_code"))
        encoder = mark_loaded(load_encoder(str(folder), trust_remote_code=trust))
        encoder.model_card_data.base_model = self.base_model
        return encoder

    @property
    def base_model(self) -> str | None:
        """Name of the model that training started from, for the card; ``None`` if it has none."""
        if isinstance(self.model, str):
            return None if self.builds_model else self.model
        card: Any = self.model.model_card_data
        return card.base_model


def set_prompts(
    encoder: SentenceTransformer, columns: Mapping[str, str], arguments: CrossLingualTrainingArguments
) -> dict[str, str]:
    """Give an encoder the prompts that it is trained with, so that it is saved and evaluated with them.

    Where the arguments have none, training uses those that the model has for its texts.

    Args:
        encoder: To be trained; a prompt for all columns becomes its default.
        columns: Text columns → the name that their prompt has in the model: ``query``, ``document``, or the column.
        arguments: With ``prompts`` or ``prompt_name``.

    Returns:
        Column → prompt, as sentence-transformers' trainer takes them.
    """
    prompts = arguments.prompts
    if prompts is None and arguments.prompt_name:
        prompts = named_prompt(encoder, arguments.prompt_name)
    if prompts is None:
        default = encoder.prompts.get(encoder.default_prompt_name or "", "")
        of_model = {column: encoder.prompts.get(name) or default for column, name in columns.items()}
        if not any(of_model.values()):
            name_unused_prompts(encoder)
        return {column: prompt for column, prompt in of_model.items() if prompt}
    text_of: Mapping[str, Any] = dict.fromkeys(columns, prompts) if isinstance(prompts, str) else prompts
    check_keys(text_of, columns, "arguments.prompts")
    if len({text_of.get(column) for column in columns}) > 1:
        for column, text in text_of.items():
            encoder.prompts[columns[column]] = text
    else:
        set_default_prompt(encoder, next(iter(text_of.values()), ""))
    return dict(text_of)


def build_for_all(build: Callable[[], SentenceTransformer]) -> SentenceTransformer:
    """Build a model; of several processes the main one does, as transformers saves in no other, and all read it."""
    if distributed.process_count() == 1:
        return build()

    def save() -> str:
        build().save_pretrained(folder := tempfile.mkdtemp(prefix="st-xling-"))
        return folder

    folder = distributed.run_on_main(save)
    model = distributed.run_on_all(lambda: mark_loaded(load_encoder(folder)))
    distributed.run_on_main(lambda: shutil.rmtree(folder, ignore_errors=True))
    return model


def shape_of(encoder: SentenceTransformer) -> dict[str, Any]:
    """Its ``pooling`` (``None`` without a pooling module) and ``max_length``."""
    modes = [module.pooling_mode for module in encoder.modules() if isinstance(module, Pooling)]
    return {"pooling": modes[0] if modes else None, "max_length": encoder.max_seq_length}


def fit_trainer(trainer: GuardedTrainer, folder: RunFolder, checkpoint: Path | None, *, name: str) -> TrainingResult:
    """Train, from ``checkpoint`` if there is one; ``name`` labels the progress bar."""
    run_trainer(trainer, folder, checkpoint, name=name)
    state = trainer.state
    vocabulary_head = trainer.saved_head if isinstance(trainer, CrossLingualTrainer) else None
    return TrainingResult(
        model=trainer.model,
        folder=folder.path,
        seconds=trainer.seconds,
        steps=state.global_step,
        history=state.log_history,
        best=state.best_metric,
        development=development_score(state.best_metric, trainer.evaluator),
        vocabulary_head=vocabulary_head,
    )


def evaluation_texts(evaluator: Evaluators | None) -> dict[str, Texts]:
    """Return the texts of an evaluator, or of each of a sequence of them, by name.

    Of ``sets`` of questions these are the queries (collections of passages are searched by many sets), of ``pools``
    the queries and the relevant passages, of aligned ``pairs`` both sides, e.g. ``dev deu``.
    """
    texts: dict[str, Texts] = {}
    for single_evaluator in getattr(evaluator, "evaluators", None) or [evaluator]:
        name = getattr(single_evaluator, "name", "") or "evaluation"
        pairs = getattr(single_evaluator, "pairs", None)
        # An evaluator of retrieval has pools too, of passages: its sets come first.
        if sets := getattr(single_evaluator, "sets", ()):
            for retrieval_set in sets:
                for code, queries in retrieval_set.queries.items():
                    texts[f"{name} {retrieval_set.language}, queries {code}"] = list(queries.values())
        elif pools := getattr(single_evaluator, "pools", ()):
            for role, role_texts in pool_texts(pools).items():
                texts[f"{name} {role}"] = role_texts
        elif isinstance(pairs, Mapping):
            for language, sides in pairs.items():
                texts[f"{name} {language}"] = sides
    return texts


def check_tiny(options: Mapping[str, Any] | None, model: str | BaseModel = "tiny") -> dict[str, Any]:
    """Options of :func:`tiny_encoder`, or ``ValueError`` with the nearest valid name or the type that was expected.

    Args:
        options: By name.
        model: What a run starts from; only ``"tiny"`` takes any.
    """
    tiny = read_options(tiny_encoder, dict(options or {}), "tiny")
    if tiny and model != "tiny":
        raise ValueError(f"tiny options shape the model 'tiny' only: got {', '.join(tiny)} for another model.")
    return tiny


def check_static(options: Mapping[str, Any] | None, model: str | BaseModel = "static") -> dict[str, Any]:
    """Options of :func:`static_encoder`, or ``ValueError``, as :func:`check_tiny` those of :func:`tiny_encoder`."""
    static = read_options(static_encoder, dict(options or {}), "static")
    if static and model != "static":
        raise ValueError(f"static options shape the model 'static' only: got {', '.join(static)} for another model.")
    return static


def model_name(model: str | BaseModel) -> str:
    """Name of the model to start from, for the card and the run's manifest."""
    if isinstance(model, str):
        return model
    return str(getattr(model.model_card_data, "base_model", None) or "a loaded model")


def save_run(result: RunResult, folder: RunFolder, leak: LeakReport | None = None) -> None:
    """Write log, model and ``results.json`` (with the machine's facts), then mark the run as finished.

    Args:
        result: With ``model``, ``history`` (the log) and ``figures()``, for ``results.json``.
        folder: The run's.
        leak: Text that training data and evaluation data share, if it was looked for.
    """
    # A run that had ended before has the same model, so its evaluations stand.
    evaluations = read_json_object(folder.path / "results.json").get("evaluations") if folder.is_finished else None
    write_log(folder, result.history)
    head = result.vocabulary_head if isinstance(result, TrainingResult) else None
    folder.save_model(result.model, head)
    results: dict[str, Any] = {"training": {**result.figures(), "machine": machine_facts()}}
    if leak is not None:
        results["leak"] = leak.as_dict()
    if evaluations is not None:
        results["evaluations"] = evaluations
    write_json(folder.path / "results.json", results)
    folder.update(finished=True)


def write_log(folder: RunFolder, history: list[dict[str, Any]]) -> None:
    """The trainer's log, one line a logged step."""
    lines = [json.dumps(entry, ensure_ascii=False) for entry in history]
    write_atomic(folder.training / "log.jsonl", ("\n".join(lines) + "\n").encode("utf-8"))


def machine_facts() -> dict[str, Any]:
    """Processor, accelerators, memory and versions of this process's machine; what cannot be found is omitted.

    Returns:
        ``processor``, ``cores`` (that this process may use), ``threads`` (that torch uses), ``memory_gib``,
        ``accelerators`` (names), ``system``, and ``versions`` of Python and the libraries.
    """
    versions = {"python": platform.python_version()}
    for library in _LIBRARIES:
        versions[library] = version(library)
    facts: dict[str, Any] = {
        "processor": _processor_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "accelerators": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())],
        "system": f"{platform.system()} {platform.machine()}".strip(),
        "versions": versions,
    }
    return {name: fact for name, fact in facts.items() if fact}


def _processor_name() -> str:
    # On Linux platform.processor() is empty, or names the architecture.
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        for line in cpu_info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
