"""One transfer run: an encoder, fine-tuned on English, evaluated in every language.

=================================  ==============================================================================
``model.safetensors``, …           the fine-tuned model, a stock ``CrossEncoder`` or ``AutoModelForTokenClassification``
``results.json``                   metrics with their signature
``predictions/xx.tsv``             true and predicted labels of each language
``training/``                      what is needed to resume, see :class:`~st_xling.training.run_folder.RunFolder`
=================================  ==============================================================================
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from datasets import concatenate_datasets
from sentence_transformers import SentenceTransformer

from st_xling._version import __version__
from st_xling.data.tagged_words import TaggedSentences
from st_xling.models.load import name_of
from st_xling.models.view import model_options
from st_xling.training.run import TrainingInterrupted, run_trainer
from st_xling.training.run_folder import RunFolder
from st_xling.training.saving import write_log
from st_xling.training.transfer.classifiers import PairClassifier, WordTagger
from st_xling.training.transfer.data import TransferData, label_rows, rows_sha8
from st_xling.training.transfer.scores import label_scores
from st_xling.training.transfer.tasks import FineTuning, Rows, TransferTask
from st_xling.utils.io import atomic_writer, write_json
from st_xling.utils.signature import sha8
from st_xling.utils.tables import Column, Row, format_table

logger = logging.getLogger(__name__)

Model = PairClassifier | WordTagger
_MEASURES = {"accuracy": "accuracy", "f1": "F1"}


@dataclass(frozen=True)
class TransferReport:
    """Metrics of one run.

    Attributes:
        task: What was evaluated.
        languages: Language → measures in [0, 1] and counts, such as ``predicted_kinds``, how many different labels were
            predicted; in the order of the table.
        trained: Languages that were trained on.
        signature: What the metrics depend on besides the encoder.
        training: Of the fine-tuning: rows, steps, seconds.
    """

    task: TransferTask
    languages: dict[str, dict[str, Any]]
    trained: tuple[str, ...]
    signature: str
    training: dict[str, Any]

    def average(self, measure: str, *, zero_shot: bool = False) -> float | None:
        """Mean over all languages, as in the papers, or over those that were not trained on; ``None`` without any."""
        languages = [name for name in self.languages if not (zero_shot and name in self.trained)]
        return fmean(self.languages[name][measure] for name in languages) if languages else None

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        measures = self.task.measures
        return {
            "task": self.task.name,
            "languages": self.languages,
            "average": {measure: self.average(measure) for measure in measures},
            "zero_shot_average": {measure: self.average(measure, zero_shot=True) for measure in measures},
            "training": self.training,
            "signature": self.signature,
        }

    def rows(self) -> tuple[list[Column], list[Row]]:
        """Return a column for each measure, and rows: the languages and their averages."""
        measures = self.task.measures
        columns = [Column("F1" if name == "f1" else name, name, picture=name == measures[0]) for name in measures]
        rows = [Row(language, [own[name] for name in measures]) for language, own in self.languages.items()]
        for label, zero_shot in (("mean", False), ("mean of languages not trained on", True)):
            means = [self.average(name, zero_shot=zero_shot) for name in measures]
            rows.append(Row(label, means, average=True))
        return columns, rows

    def table(self) -> str:
        """Languages as columns, then their average and that of the languages never trained on; percent."""
        rows = []
        for measure in self.task.measures:
            values = [metrics[measure] for metrics in self.languages.values()]
            values += [self.average(measure), self.average(measure, zero_shot=True)]
            rows.append([_MEASURES[measure], *(None if value is None else 100.0 * value for value in values)])
        return format_table([self.task.title, *self.languages, "avg", "zero-shot"], rows)


def transfer(
    encoder: str | SentenceTransformer,
    data: TransferData,
    out: str | Path,
    *,
    options: FineTuning | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
) -> TransferReport:
    """Fine-tune ``encoder`` on the training rows and evaluate it on each language's test rows.

    Args:
        encoder: Hub id or folder: a ``SentenceTransformer``, of which the transformer is taken, or a bare transformer;
            or one that is loaded.
        data: From :func:`load_transfer_data`.
        out: Folder of the run.
        options: How to fine-tune; ``None``: as the papers do, see :data:`TASKS`.
        resume: Go on where a run in ``out`` was stopped, in training or among the languages.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, recorded with the run.
    Raises:
        ValueError: An occupied folder, another run to resume, no such encoder, a length that it does not reach.
        NotFiniteError: A loss that is no longer a number.
        TrainingInterrupted: Ctrl-C.
    """
    options = options or data.task.options
    # Only the transformer is fine-tuned: what follows it, and prompts, change nothing.
    used = {name: value for name, value in model_options(encoder).items() if name not in ("dim", "pooling", "prompt")}
    kind: type[Model] = PairClassifier if data.task.kind == "pairs" else WordTagger
    manifest = {
        "task": data.task.name,
        "encoder": name_of(encoder),
        "used": used,
        "data": data.as_dict(),
        "hold_out": None if data.hold_out is None else [data.hold_out, data.hold_out_seed],
        "options": dataclasses.asdict(options),
        "version": __version__,
        "command": command,
    }
    with RunFolder(out, resume=resume, overwrite=overwrite, start=encoder) as folder:
        model = kind.build(encoder, data.task.labels, max_length=options.max_length, seed=options.seed)
        signature = _signature(data, options, model.max_length, used)
        checkpoint = folder.claim(manifest)
        folder.begin(manifest)
        try:
            trained = folder.read_manifest().get("trained")
            if trained is None:
                for language in data.test:  # predictions of another model
                    _predictions(folder.path, language).unlink(missing_ok=True)
                trained = _train(model, data, options, folder, checkpoint)
                folder.update(trained=trained)
            else:
                model = kind.load(folder.path)
            languages = {language: _evaluate(model, data, language, folder.path) for language in data.test}
        except KeyboardInterrupt as stop:
            raise TrainingInterrupted(folder.path, folder.last_checkpoint()) from stop
        _warn_of_one_label(languages, data.task.measures[0], model.long_rows)
        report = TransferReport(data.task, languages, tuple(data.train), signature, trained)
        write_json(folder.path / "results.json", {"transfer": report.as_dict()})
        folder.finish()
    return report


def _train(
    model: Any, data: TransferData, options: FineTuning, folder: RunFolder, checkpoint: Path | None
) -> dict[str, Any]:
    label_ids = {label: number for number, label in enumerate(data.task.labels)}
    parts, long = [], 0
    for rows in data.train.values():
        prepared, count = model.prepare(rows)
        parts.append(model.dataset(prepared, label_rows(rows), label_ids))
        long += count
    total = sum(map(len, data.train.values()))
    _log_long(f"train {','.join(data.train)}", model, long, total)
    trainer = model.trainer(concatenate_datasets(parts), options, folder.training)
    run_trainer(trainer, folder, checkpoint, name=data.task.name)
    write_log(folder, trainer.state.log_history)
    folder.save_model(model, also=[f"predictions/{language}.tsv" for language in data.test])
    result = {"rows": total, "steps": trainer.state.global_step, "seconds": round(trainer.seconds, 1)}
    return {**result, model.long_rows: long}


def _evaluate(model: Any, data: TransferData, language: str, folder: Path) -> dict[str, Any]:
    """Metrics of one language, from its predictions where they already exist."""
    rows, path = data.test[language], _predictions(folder, language)
    gold = label_rows(rows)
    prepared, long = model.prepare(rows, language)
    if path.is_file():
        predicted = _read_predictions(path, gold)
    else:
        predicted = model.predict(prepared, data.task.labels, language)
        _write_predictions(path, rows, predicted)
    _log_long(language, model, long, len(rows))
    scores = label_scores(gold, predicted, f1=data.task.f1)
    metrics: dict[str, Any] = {measure: scores[measure] for measure in data.task.measures}
    metrics |= {"rows": len(rows), "labels": sum(map(len, gold)), model.long_rows: long}
    metrics["predicted_kinds"] = len({label for labels in predicted for label in labels})
    if isinstance(rows, TaggedSentences):
        metrics["unseen_tags"] = data.unseen.get(language, {})
    return {**metrics, "in_training": data.in_training[language]}


def _warn_of_one_label(languages: Mapping[str, Mapping[str, Any]], measure: str, long_rows: str) -> None:
    """Chance, most likely by the rate or by rows that are cut: a pretrained encoder learns each of the tasks."""
    same = [
        name
        for name, metrics in languages.items()
        if metrics["predicted_kinds"] == 1 and metrics["labels"] > 1 and metrics[measure] < 1
    ]
    if same:
        logger.warning(
            "Only one label was predicted for %s: %s. See whether the loss fell (training/log.jsonl) and how many rows "
            "were %s; then try a lower, decaying learning rate, more steps, or a greater max_length.",
            ", ".join(same),
            "nothing was learned" if len(same) == len(languages) else "the task was not learned there",
            long_rows.replace("_", " "),
        )


def _log_long(name: str, model: Model, count: int, rows: int) -> None:
    if count:
        longer = f"{count:,} of {rows:,} rows ({100 * count / rows:.1f} %) are longer than {model.max_length} tokens"
        logger.info("%s: %s and are %s.", name, longer, model.long_rows.replace("_", " "))


def _signature(data: TransferData, options: FineTuning, max_length: int, used: dict[str, str]) -> str:
    """What the metrics of a run depend on besides the encoder."""
    parts = [
        "transfer",
        f"task:{data.task.name}",
        f"train:{','.join(f'{language}@{rows_sha8(rows)}' for language, rows in data.train.items())}",
        f"n:{sum(map(len, data.train.values()))}",
        f"steps:{options.max_steps}" if options.max_steps > 0 else f"epochs:{options.epochs:g}",
        f"batch:{options.batch_size}",
        f"lr:{options.learning_rate:g}/{options.schedule}",
        *([f"warmup:{options.warmup:g}"] if options.warmup else []),
        f"max_length:{max_length}",
        f"seed:{options.seed}",
        f"languages:{','.join(data.test)}",
        *(f"{name}:{value}" for name, value in used.items()),
        *(["words:fused"] if data.fused else []),
        *([f"f1:{data.task.f1}"] if "f1" in data.task.measures else []),
        *([] if data.hold_out is None else [f"hold_out:{data.hold_out:g}/{data.hold_out_seed}"]),
        f"data:{sha8([rows_sha8(rows) for rows in data.test.values()])}",
        f"st-xling:{__version__}",
    ]
    return "|".join(parts)


def _predictions(folder: Path, language: str) -> Path:
    return folder / "predictions" / f"{language}.tsv"


def _write_predictions(path: Path, rows: Rows, predicted: list[list[str]]) -> None:
    """``row TAB gold TAB predicted`` for each pair; for words, their lines and an empty one after each sentence."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tagged = isinstance(rows, TaggedSentences)
    names = rows.words if isinstance(rows, TaggedSentences) else [[str(row)] for row in rows.rows]
    with atomic_writer(path) as file:
        for place, (own, true, guessed) in enumerate(zip(names, label_rows(rows), predicted)):
            assert len(true) == len(guessed), f"row {place} has {len(true)} labels, {len(guessed)} predicted"
            lines = [f"{name}\t{gold}\t{guess}\n" for name, gold, guess in zip(own, true, guessed)]
            file.write("".join([*lines, "\n" if tagged else ""]).encode("utf-8"))


def _read_predictions(path: Path, gold: list[list[str]]) -> list[list[str]]:
    """Predicted labels; ``ValueError`` when the file is of other rows."""
    cells = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    if [cell[1:2] for cell in cells] != [[label] for row in gold for label in row]:
        raise ValueError(f"{path} must hold a prediction for each label: it was changed; remove it and --resume.")
    rest = iter(cells)
    return [[next(rest)[2] for _ in row] for row in gold]
