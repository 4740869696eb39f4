"""Zero-shot transfer: an encoder is fine-tuned on English, and evaluated in every language.

A run is a folder:

=================================  ==============================================================================
``model.safetensors``, …           the fine-tuned model, for ``CrossEncoder`` or ``AutoModelForTokenClassification``
``results.json``                   metrics with their signature
``predictions/xx.tsv``             true and predicted labels of each language
``training/``                      what is needed to resume, see :class:`~st_xling.training.run_folder.RunFolder`
=================================  ==============================================================================
"""

from __future__ import annotations

import dataclasses
import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from datasets import Dataset, concatenate_datasets
from sentence_transformers import SentenceTransformer
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    TrainingArguments,
)

from st_xling._version import __version__
from st_xling.data.transfer_sets import ClassifiedPairs
from st_xling.models import load_encoder
from st_xling.models.backbone import token_encoder
from st_xling.models.load import limit_length, longest_input
from st_xling.models.lora import check_start
from st_xling.models.view import model_options
from st_xling.training.run import TrainingInterrupted, write_log
from st_xling.training.run_folder import RunFolder
from st_xling.training.trainer import FiniteTrainer, run_trainer
from st_xling.training.transfer_tasks import (
    LIKE,
    TASKS,
    FineTuning,
    Rows,
    TransferData,
    TransferTask,
    fine_tuning,
    label_rows,
    load_transfer_data,
    rows_sha8,
    run_f1,
)
from st_xling.utils.io import atomic_writer, write_json
from st_xling.utils.signature import name_of, sha8
from st_xling.utils.tables import Column, Row, format_table

__all__ = [
    "LIKE",
    "TASKS",
    "FineTuning",
    "TransferData",
    "TransferReport",
    "TransferTask",
    "fine_tuning",
    "load_transfer_data",
    "run_f1",
    "transfer",
]

logger = logging.getLogger(__name__)

PAPERS_LENGTH = 128
"""Tokens of an input. *Source:* DAP, table 9; XTREME, ``scripts/train_udpos.sh``."""

NO_LABEL = -100
"""A label that transformers' loss ignores."""

CHECKPOINT_SHARE = 0.1
"""Share of the steps between two checkpoints."""


@dataclass(frozen=True)
class TransferReport:
    """Metrics of one run.

    Attributes:
        task: The task.
        languages: Language → measures in [0, 1] and counts, in the order of the table.
        trained: Languages that were trained on.
        signature: What the metrics depend on besides the encoder.
        training: Rows, steps and seconds of the fine-tuning.
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
        """Return everything, for JSON."""
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
        """Format languages as columns, then their average and that of the languages never trained on; percent."""
        columns, rows = self.rows()
        lines: list[list[Any]] = []
        for place, column in enumerate(columns):
            values: list[Any] = [row.values[place] for row in rows]
            lines.append([column.name, *(None if value is None else 100.0 * value for value in values)])
        return format_table([self.task.title, *self.languages, "avg", "zero-shot"], lines)


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
        resume: Resume a run in ``out`` that was stopped, from its last checkpoint.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, recorded with the run.
    Raises:
        ValueError: An occupied folder, another run to resume, no such encoder, a length that it does not reach.
        NotFiniteError: A loss that is no longer a number.
        TrainingInterrupted: Ctrl-C.
    """
    options, labels = options or data.task.options, data.task.labels
    # Only the transformer is fine-tuned: what follows it, and prompts, change nothing.
    used = {name: value for name, value in model_options(encoder).items() if name not in ("dim", "pooling", "prompt")}
    manifest = {
        "task": data.task.name,
        "encoder": name_of(encoder),
        "used": used,
        "data": data.as_dict(),
        "hold_out": data.hold_out,
        "options": dataclasses.asdict(options),
        "version": __version__,
        "command": command,
    }
    with RunFolder(out, resume=resume, overwrite=overwrite, start=encoder) as folder:
        model = Classifier.build(
            encoder, labels, words=data.task.name == "pos", max_length=options.max_length, seed=options.seed
        )
        checkpoint = folder.claim(manifest)
        folder.begin(manifest)
        try:
            train = {language: model.encode(rows, labels, language) for language, rows in data.train.items()}
            trainer = model.trainer(concatenate_datasets(list(train.values())), options, folder.training)
            run_trainer(trainer, folder, checkpoint, name=data.task.name)
            write_log(folder, trainer.state.log_history)
            folder.save_model(model, also=[f"predictions/{language}.tsv" for language in data.test])
            trained = {
                "rows": len(trainer.train_dataset),  # type: ignore[arg-type]
                "steps": trainer.state.global_step,
                "seconds": round(trainer.seconds, 1),
            }
            languages = {language: _evaluate(model, trainer, data, language, folder.path) for language in data.test}
        except KeyboardInterrupt as stop:
            raise TrainingInterrupted(folder.path, folder.last_checkpoint()) from stop
        signature = _signature(data, options, model.max_length, used)
        report = TransferReport(data.task, languages, tuple(data.train), signature, trained)
        write_json(folder.path / "results.json", {"transfer": report.as_dict()})
        folder.finish()
    return report


@dataclass(frozen=True)
class Classifier:
    """A transformer with a head for the labels of pairs or words, and its tokenizer.

    Attributes:
        model: ``AutoModelForSequenceClassification`` or, of words, ``AutoModelForTokenClassification``.
        tokenizer: A fast tokenizer; its ``model_max_length`` is the length of inputs.
    """

    model: Any
    tokenizer: Any

    @classmethod
    def build(
        cls,
        encoder: str | SentenceTransformer,
        labels: Sequence[str],
        *,
        words: bool,
        max_length: int | None = None,
        seed: int = 0,
    ) -> Classifier:
        """Put a new head on an encoder, which stays as it is.

        Args:
            encoder: As of :func:`transfer`.
            labels: Names of the outputs.
            words: Whether each word has a label, or a pair of sentences.
            max_length: Tokens of an input; ``None``: :data:`PAPERS_LENGTH`, or as far as the positions reach.
            seed: Seed of the head's weights.
        """
        model = load_encoder(encoder, device="cpu") if isinstance(encoder, str) else encoder
        inner: Any = token_encoder(model)  # or an error that names what is missing
        check_start(model, None, given=not isinstance(encoder, str))
        if max_length is None:
            max_length = min(PAPERS_LENGTH, longest_input(model) or PAPERS_LENGTH)
        limit_length(model, max_length)
        kind = AutoModelForTokenClassification if words else AutoModelForSequenceClassification
        label2id = {label: number for number, label in enumerate(labels)}
        with tempfile.TemporaryDirectory(prefix="st-xling-") as folder, torch.random.fork_rng(devices=[]):
            inner.save_pretrained(folder)
            model.tokenizer.save_pretrained(folder)
            tokenizer = AutoTokenizer.from_pretrained(folder, model_max_length=max_length)
            torch.manual_seed(seed)
            head = kind.from_pretrained(folder, id2label=dict(enumerate(labels)), label2id=label2id)
            return cls(head, tokenizer)

    def save_pretrained(self, folder: str) -> None:
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @property
    def max_length(self) -> int:
        """Maximum number of tokens that the model reads."""
        return int(self.tokenizer.model_max_length)

    def encode(self, rows: Rows, labels: Sequence[str], name: str) -> Dataset:
        """Tokenize labeled rows; those longer than the model reads are counted in the log.

        Pairs are cut. Sentences are read in pieces, as XTREME does, so that every word is evaluated: the first sub-word
        of a word has its tag, the others have :data:`NO_LABEL`. A word without sub-words becomes the unknown token.
        """
        numbers = {label: number for number, label in enumerate(labels)}
        if isinstance(rows, ClassifiedPairs):
            encoded = self.tokenizer(rows.first, rows.second, truncation=True)
            long = sum(bool(encoding.overflowing) for encoding in encoded.encodings)
            columns = {**encoded, "labels": [numbers[label] for label in rows.labels]}
        else:
            columns, long = {"input_ids": [], "labels": []}, 0
            for words, tags in zip(rows.words, rows.tags):
                readable = [word if self.tokenizer.tokenize(word) else self.tokenizer.unk_token for word in words]
                encoded = self.tokenizer(
                    readable, is_split_into_words=True, truncation=True, return_overflowing_tokens=True
                )
                columns["input_ids"] += encoded["input_ids"]
                long += len(encoded["input_ids"]) > 1
                following = 0  # the next word whose first sub-word has not come yet
                for piece in range(len(encoded["input_ids"])):
                    own = [NO_LABEL] * len(encoded["input_ids"][piece])
                    for place, word in enumerate(encoded.word_ids(piece)):
                        if word == following:
                            own[place] = numbers[tags[word]]
                            following += 1
                    columns["labels"].append(own)
                assert following == len(words), f"{len(words) - following} words have no sub-word: {words}"
        if long:
            share = f"{long:,} of {len(rows):,} rows ({100 * long / len(rows):.1f} %)"
            logger.info("%s: %s are longer than %d tokens, and cut or read in pieces.", name, share, self.max_length)
        return Dataset.from_dict(columns)

    def trainer(self, rows: Dataset, options: FineTuning, folder: Path) -> FiniteTrainer:
        """Return transformers' trainer, which trains the model in place."""
        save_steps = options.save_steps or CHECKPOINT_SHARE
        arguments = TrainingArguments(
            output_dir=str(folder),
            per_device_train_batch_size=options.batch_size,
            per_device_eval_batch_size=64,
            num_train_epochs=options.epochs,
            max_steps=options.max_steps,
            learning_rate=options.learning_rate,
            # transformers' "constant" takes no notice of warm-up.
            lr_scheduler_type="constant_with_warmup" if options.schedule == "constant" else options.schedule,
            warmup_steps=options.warmup,
            weight_decay=options.weight_decay,
            logging_steps=save_steps,
            save_strategy="steps",
            save_steps=save_steps,
            save_total_limit=2,
            seed=options.seed,
            data_seed=options.seed,
            dataloader_pin_memory=torch.cuda.is_available(),
            report_to="none",
            disable_tqdm=True,
        )
        of_words = "ForTokenClassification" in type(self.model).__name__
        return FiniteTrainer(
            model=self.model,
            args=arguments,
            train_dataset=rows,
            data_collator=(DataCollatorForTokenClassification if of_words else DataCollatorWithPadding)(self.tokenizer),
            processing_class=self.tokenizer,
            preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(dim=-1),
        )


def _evaluate(
    model: Classifier, trainer: FiniteTrainer, data: TransferData, language: str, folder: Path
) -> dict[str, Any]:
    """Write the predictions of one language, and return its metrics."""
    rows, labels = data.test[language], data.task.labels
    gold = label_rows(rows)
    encoded = model.encode(rows, labels, language)
    order = np.argsort([-len(ids) for ids in encoded["input_ids"]], kind="stable")  # little padding
    output: Any = trainer.predict(encoded.select(order))
    back = order.argsort()
    numbers = output.predictions[back][output.label_ids[back] != NO_LABEL]
    ends = np.cumsum([len(row) for row in gold])
    assert len(numbers) == ends[-1], f"{ends[-1]} labels, {len(numbers)} predicted"
    predicted = [[labels[number] for number in row] for row in np.split(numbers, ends[:-1])]
    _write_predictions(folder / "predictions" / f"{language}.tsv", rows, predicted)
    if len(numbers) > 1 and len(set(numbers.tolist())) == 1:
        logger.warning(
            "%s: only the label %s was predicted. See whether the loss fell (training/log.jsonl), and try a lower, "
            "decaying learning rate, more steps or a greater max_length.",
            language,
            labels[numbers[0]],
        )
    right = sum(true == guess for row, guesses in zip(gold, predicted) for true, guess in zip(row, guesses))
    scores = {"accuracy": right / len(numbers), "f1": run_f1(gold, predicted)}
    metrics: dict[str, Any] = {measure: scores[measure] for measure in data.task.measures}
    return {**metrics, "rows": len(rows), "labels": len(numbers), "in_training": data.in_training[language]}


def _write_predictions(path: Path, rows: Rows, predicted: list[list[str]]) -> None:
    """Write ``row TAB gold TAB predicted`` of each pair; of words, such lines and an empty one after each sentence."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pairs = isinstance(rows, ClassifiedPairs)
    names = [[str(row)] for row in rows.rows] if isinstance(rows, ClassifiedPairs) else rows.words
    with atomic_writer(path) as file:
        for cells in zip(names, label_rows(rows), predicted):
            lines = ["\t".join(line) + "\n" for line in zip(*cells)]
            file.write("".join([*lines, "" if pairs else "\n"]).encode("utf-8"))


def _signature(data: TransferData, options: FineTuning, max_length: int, used: dict[str, str]) -> str:
    """Join what the metrics of a run depend on besides the encoder."""
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
        *(["f1:runs"] if "f1" in data.task.measures else []),
        *([] if data.hold_out is None else [f"hold_out:{data.hold_out:g}/0"]),
        f"data:{sha8([rows_sha8(rows) for rows in data.test.values()])}",
        f"st-xling:{__version__}",
    ]
    return "|".join(parts)
