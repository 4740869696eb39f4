"""Zero-shot transfer: an encoder is fine-tuned on English, and evaluated in every language.

A run is a folder:

=================================  ==============================================================================
``model.safetensors``, …           the fine-tuned model, for ``CrossEncoder`` or ``AutoModelForTokenClassification``
``results.json``                   metrics with their signature
``training/``                      what is needed to resume, see :class:`~st_xling.training.run_folder.RunFolder`
=================================  ==============================================================================
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from st_xling.data.spec import data_name, parse_spec
from st_xling.data.transfer_sets import PAWSX_LABELS, UPOS, XNLI_LABELS, Example, Rows, read_pairs, read_tagged
from st_xling.models import load_encoder
from st_xling.models.backbones import token_encoder
from st_xling.models.load import limit_length, longest_input
from st_xling.models.lora import check_start
from st_xling.models.token_rows import check_ids, tokens_without_row
from st_xling.models.view import model_options
from st_xling.training.run import TrainingInterrupted, write_log
from st_xling.training.run_folder import RunFolder
from st_xling.training.trainer import FiniteTrainer, run_trainer
from st_xling.utils.io import write_json
from st_xling.utils.lazy_model import LazyModel
from st_xling.utils.options import check_choice
from st_xling.utils.signature import name_of, sha8, sign
from st_xling.utils.tables import Column, Row

__all__ = ["TASKS", "FineTuning", "TransferTask", "result_rows", "run_f1", "transfer"]

logger = logging.getLogger(__name__)

PAPERS_LENGTH = 128
"""Tokens of an input. *Source:* DAP, table 9; XTREME, ``scripts/train_udpos.sh``."""

NO_LABEL = -100
"""A label that transformers' loss ignores."""

UNSEEN_SHARE = 0.01
"""Words of a language whose tag may be missing from the training text: rare tags often are, those of a file of another
tag set are not."""

CHECKPOINT_SHARE = 0.1
"""Share of the steps between two checkpoints."""


@dataclass(frozen=True)
class FineTuning:
    """Options of fine-tuning.

    Attributes:
        epochs: Passes over the training rows; a ``max_steps`` other than -1 overrides it.
        batch_size: Rows a step.
        learning_rate: Peak, for AdamW.
        schedule: ``"constant"``, ``"linear"`` or ``"cosine"``: how the rate falls from its peak.
        max_steps: Steps.
        max_length: Tokens of a pair or a sentence, special tokens included; ``None``: 128, or as far as the encoder's
            positions reach.
        seed: Seed of the head's weights, dropout and the order of rows.
    """

    epochs: float
    batch_size: int
    learning_rate: float
    schedule: str = "constant"
    max_steps: int = -1
    max_length: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class TransferTask:
    """One task.

    Attributes:
        title: Title in tables.
        labels: All labels of the task, in the order of the head's outputs.
        measures: What is reported, the papers' measure first.
        options: The fine-tuning of the paper that reports the task.
        tags_words: Whether each word has a label, or a pair of sentences.
    """

    title: str
    labels: tuple[str, ...]
    measures: tuple[str, ...]
    options: FineTuning
    tags_words: bool = False


_DAP = FineTuning(epochs=2, batch_size=256, learning_rate=5e-5, schedule="linear")
_AMBER = FineTuning(epochs=5, batch_size=32, learning_rate=2e-5)
TASKS = {
    "xnli": TransferTask("XNLI", XNLI_LABELS, ("accuracy",), _DAP),
    "pawsx": TransferTask("PAWS-X", PAWSX_LABELS, ("accuracy",), _AMBER),
    "pos": TransferTask("POS", UPOS, ("f1", "accuracy"), dataclasses.replace(_AMBER, epochs=10), tags_words=True),
}
"""Name on the command line → task.

Source:
    DAP (Li et al. 2023), tables 4 and 9; AMBER (Hu et al. 2021), appendix A.1 and tables 5 to 7.
"""


def _hash_rows(task: TransferTask, rows: Sequence[Example]) -> str:
    """Return a hash that changes with any text or label."""
    texts, labels = zip(*rows)
    if task.tags_words:
        return sha8([texts, labels])
    first_texts, second_texts = zip(*texts)
    return sha8([first_texts, second_texts, [label for (label,) in labels]])


def load_rows(
    task: TransferTask, train: Sequence[str], test: Sequence[str], hold_out: float | None = None
) -> tuple[dict[str, list[Example]], dict[str, list[Example]]]:
    """Return the rows to train on and those to test on, by language; the arguments are those of :func:`transfer`."""
    train_rows = _read_specs(task, train, "--train")
    test_rows = _read_specs(task, test, "--test")
    held_out = None if hold_out is None else _draw_held_out(task, train_rows, test_rows, hold_out)

    def select(rows: Rows, *, testing: bool) -> list[Example]:
        selected: list[Example] = []
        for number, row in enumerate(rows):
            is_of_split = held_out is None or (number in held_out) == testing
            if row is not None and is_of_split:
                selected.append(row)
        return selected

    trained = {language: select(rows, testing=False) for language, rows in train_rows.items()}
    tested = {language: select(rows, testing=True) for language, rows in test_rows.items()}
    empty = [language for language, rows in (*trained.items(), *tested.items()) if not rows]
    if empty:
        raise ValueError(f"every language needs rows: none are left of {', '.join(empty)}; change --hold-out.")
    return trained, tested


def _read_specs(task: TransferTask, specs: Sequence[str], flag: str) -> dict[str, Rows]:
    """Read the rows of each language; those that a sample leaves out are ``None``, so that positions stay."""
    rows_of: dict[str, Rows] = {}
    files: set[tuple[str, str]] = set()
    for spec in specs:
        parsed = parse_spec(spec, {}, languages=1, forms=f"{flag} xx=FILE, a language and its file")
        language = parsed.languages[0]
        path = parsed.location
        if (language, path) in files:
            raise ValueError(f"{flag} takes each file of a language once: got {path} twice for {language}.")
        files.add((language, path))
        if task.tags_words:
            rows = read_tagged(path)
        else:
            rows = read_pairs(path, task.title, language=language)  # type: ignore[arg-type]
        usable = [number for number, row in enumerate(rows) if row is not None]
        drawn = {usable[position] for position in parsed.sample.places(len(usable), spec)}
        kept = [row if number in drawn else None for number, row in enumerate(rows)]
        rows_of.setdefault(language, []).extend(kept)
    if not rows_of:
        raise ValueError(f"{flag} needs a file: got none; give en=FILE.")
    return rows_of


def _labels(rows: Iterable[Example]) -> Iterator[str]:
    return itertools.chain.from_iterable(row.labels for row in rows)


def check_labels(
    task: TransferTask, train: Mapping[str, Sequence[Example]], test: Mapping[str, Sequence[Example]]
) -> None:
    """Compare the labels of each language's test rows with those of the training rows, before anything is trained.

    A label that is never trained is never predicted. Classes of pairs must all be trained; rare tags may be missing,
    up to :data:`UNSEEN_SHARE` of a language's words.

    Args:
        task: The task.
        train: Language → rows to train on.
        test: Language → rows to evaluate on.

    Raises:
        ValueError: Labels that are not trained; all languages are named at once.
    """
    trained = set(_labels(itertools.chain.from_iterable(train.values())))
    faults: list[str] = []
    for language, rows in test.items():
        counts = Counter(_labels(rows))
        unseen = {label: count for label, count in sorted(counts.items()) if label not in trained}
        shown = ", ".join(f"{label} ({count:,})" for label, count in unseen.items())
        allowed = UNSEEN_SHARE * counts.total() if task.tags_words else 0
        if sum(unseen.values()) > allowed:
            faults.append(f"{language} has {shown}")
        elif unseen:
            logger.warning("%s: tags that are never trained count as wrong: %s", language, shown)
        absent = sorted(trained - counts.keys())
        if absent and not task.tags_words:
            logger.warning("%s: no test row has the label %s", language, ", ".join(absent))
    if faults:
        raise ValueError(
            f"every label of the test rows must be in the training rows, which have {', '.join(sorted(trained))}: "
            f"{'; '.join(faults)}. Check that the files are whole, and of the task {task.title}."
        )


def _draw_held_out(task: TransferTask, train: dict[str, Rows], test: dict[str, Rows], share: float) -> set[int]:
    """Draw the numbers of the rows to be tested on."""
    if not 0 < share < 1:
        raise ValueError(f"--hold-out must be a share above 0 and below 1: got {share}.")
    totals = {language: len(rows) for language, rows in (*train.items(), *test.items())}
    if len(set(totals.values())) > 1:
        raise ValueError(f"--hold-out needs files whose rows are the same items in every language: got {totals} rows.")
    rows = next(iter(train.values()))
    # Pairs that share their first sentence are drawn together; a row that was skipped is drawn alone.
    groups: dict[object, set[int]] = {}
    for number, row in enumerate(rows):
        key: object = number if row is None or task.tags_words else row.texts[0]
        groups.setdefault(key, set()).add(number)
    order = list(groups.values())
    random.Random(0).shuffle(order)
    held_out: set[int] = set()
    for group in order:
        if len(held_out) >= share * len(rows):
            break
        held_out |= group
    return held_out


def run_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """F1 of runs of equal tags: a run counts if its ends and its tag are all right.

    This is what ``seqeval`` makes of tags without ``B-`` and ``I-``, by which XTREME evaluates part-of-speech tags and
    so AMBER's table 6: it falls below accuracy, since one wrong word breaks a run. A tag that begins with ``S``
    (``SCONJ``, ``SYM``) is a run by itself each time, because ``seqeval`` takes the letter for "single".

    Source:
        Hu et al. 2020 (XTREME), ``third_party/run_tag.py``; seqeval 0.0.12, ``get_entities``.

    Example:
        >>> run_f1([["DET", "NOUN", "NOUN", "VERB"]], [["DET", "NOUN", "VERB", "VERB"]])
        0.3333333333333333
    """
    gold_runs = _find_runs(gold)
    predicted_runs = _find_runs(predicted)
    correct = len(gold_runs & predicted_runs)
    if not correct:
        return 0.0
    return 2 * correct / (len(gold_runs) + len(predicted_runs))


def _find_runs(rows: Sequence[Sequence[str]]) -> set[tuple[int, int, int, str]]:
    """Row, first and last word, and tag of every run."""
    runs = set()
    for row, tags in enumerate(rows):
        start = 0
        for word, tag in enumerate(tags):
            is_last = word + 1 == len(tags)
            if is_last or tags[word + 1] != tag or tag.startswith("S"):
                runs.add((row, start, word, tag))
                start = word + 1
    return runs


def result_rows(content: dict[str, Any]) -> tuple[list[Column], list[Row]]:
    """Return a column for each measure of a result of :func:`transfer`, and rows: the languages and their averages."""
    measures = TASKS[content["task"]].measures
    columns: list[Column] = []
    for name in measures:
        title = "F1" if name == "f1" else name
        columns.append(Column(title, name, picture=name == measures[0]))
    rows: list[Row] = []
    for language, metrics in content["languages"].items():
        rows.append(Row(language, [metrics[name] for name in measures]))
    for label, key in (("mean", "average"), ("mean of languages not trained on", "zero_shot_average")):
        rows.append(Row(label, list(content[key].values()), average=True))
    return columns, rows


def transfer(
    task: str,
    encoder: str | SentenceTransformer | LazyModel,
    train: Sequence[str],
    test: Sequence[str],
    out: str | Path,
    *,
    hold_out: float | None = None,
    options: FineTuning | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
) -> dict[str, Any]:
    """Fine-tune ``encoder`` on the training rows and evaluate it on each language's test rows.

    Args:
        task: A name in :data:`TASKS`.
        encoder: Hub id or folder: a ``SentenceTransformer``, of which the transformer is taken, or a bare transformer;
            or one that is loaded, or that is loaded once the files are read.
        train: ``en=FILE``, or several languages. Several files of a language are joined. ``?size=N&seed=S`` behind a
            file takes a seeded sample of its rows, in their order.
        test: ``xx=FILE`` for each language, likewise. A file with a column of languages may be named for several.
        out: Folder of the run.
        hold_out: For sets that have one split only, whose row i is the same item in every language: this share of the
            rows is tested on in every language and kept out of training. Rows that share their first sentence in the
            training file stay together.
        options: How to fine-tune; ``None``: as the papers do, see :data:`TASKS`.
        resume: Resume a run in ``out`` that was stopped, from its last checkpoint.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, recorded with the run.

    Returns:
        The name of the task; of ``languages``, in the order of the table, measures in [0, 1] and counts; the measures'
        ``average`` over all languages, as in the papers, and ``zero_shot_average`` over those that were not trained on
        (``None`` without any); rows, steps and seconds of the ``training``; the signature.

    Raises:
        ValueError: Bad specs or files, files that are not parallel, a language without rows, labels that are never
            trained; an occupied folder, another run to resume, no such encoder, a length that it does not reach.
        FileNotFoundError: A missing file.
        NotFiniteError: A loss that is no longer a number.
        TrainingInterrupted: Ctrl-C.
    """
    check_choice("task", task, TASKS)
    kind = TASKS[task]
    options = options or kind.options
    trained, tested = load_rows(kind, train, test, hold_out)
    check_labels(kind, trained, tested)
    start: str | SentenceTransformer = encoder.load() if isinstance(encoder, LazyModel) else encoder
    sizes: dict[str, Any] = {}
    for split, rows_of in (("train", trained), ("test", tested)):
        sizes[split] = {}
        for language, rows in rows_of.items():
            sizes[split][language] = {"rows": len(rows), "sha8": _hash_rows(kind, rows)}
        logger.info("%s: %s", split, ", ".join(f"{language} {len(rows):,}" for language, rows in rows_of.items()))
    # Only the transformer is fine-tuned: what follows it, and prompts, change nothing.
    used = {name: value for name, value in model_options(start).items() if name not in ("dim", "pooling", "prompt")}
    manifest = {
        "task": task,
        "encoder": name_of(start),
        "used": used,
        "data": sizes,
        "hold_out": hold_out,
        "options": dataclasses.asdict(options),
        "version": __version__,
        "command": command,
    }
    with RunFolder(out, resume=resume, overwrite=overwrite, start=start) as folder:
        model = Classifier.build(start, kind, max_length=options.max_length, seed=options.seed)
        checkpoint = folder.claim(manifest)
        folder.begin(manifest)
        try:
            data = concatenate_datasets([model.encode(rows, kind, language) for language, rows in trained.items()])
            trainer = _trainer(model, kind, data, options, folder.training)
            run_trainer(trainer, folder, checkpoint, name=task)
            write_log(folder, trainer.state.log_history)
            folder.save_model(model)
            training = {"rows": len(data), "steps": trainer.state.global_step, "seconds": round(trainer.seconds, 1)}
            languages = _evaluate_languages(model, trainer, kind, trained, tested)
        except KeyboardInterrupt as stop:
            raise TrainingInterrupted(folder.path, folder.last_checkpoint()) from stop
        zero_shot = [metrics for language, metrics in languages.items() if language not in trained]
        content = {
            "task": task,
            "languages": languages,
            "average": _means(kind, list(languages.values())),
            "zero_shot_average": _means(kind, zero_shot),
            "training": training,
            "signature": _sign(
                task,
                options,
                sizes,
                max_length=model.tokenizer.model_max_length,
                hold_out=hold_out,
                model=used,
                data_name=data_name(test, split="test"),
            ),
        }
        write_json(folder.path / "results.json", {"transfer": content})
        folder.update(finished=True)
    return content


def _evaluate_languages(
    model: Classifier,
    trainer: FiniteTrainer,
    task: TransferTask,
    train: Mapping[str, Sequence[Example]],
    test: Mapping[str, Sequence[Example]],
) -> dict[str, dict[str, Any]]:
    """Return the metrics of each language, with the number of its test rows that are in the training data."""
    training_texts = {tuple(row.texts) for row in itertools.chain.from_iterable(train.values())}
    languages: dict[str, dict[str, Any]] = {}
    for language, rows in test.items():
        repeated = sum(tuple(row.texts) in training_texts for row in rows)
        if repeated:
            logger.warning("%s: %s test rows are in the training data", language, repeated)
        metrics = _evaluate(model, trainer, task, rows, language)
        languages[language] = {**metrics, "in_training": repeated}
    return languages


def _sign(
    task: str,
    options: FineTuning,
    sizes: Mapping[str, Mapping[str, Any]],
    *,
    max_length: int,
    hold_out: float | None,
    model: Mapping[str, str],
    data_name: str,
) -> str:
    """Return the signature of a result.

    Args:
        task: Name of the task.
        options: How the model was fine-tuned.
        sizes: Split → language → number and hash of the rows.
        max_length: Tokens of an input.
        hold_out: Share of the rows that is tested on.
        model: How the encoder is used.
        data_name: Name of the test data.
    """
    # Steps override epochs.
    steps = options.max_steps if options.max_steps > 0 else None
    epochs = f"{options.epochs:g}" if steps is None else None
    f1 = "runs" if "f1" in TASKS[task].measures else None
    held_out = None if hold_out is None else f"{hold_out:g}/0"
    test_hash = sha8([size["sha8"] for size in sizes["test"].values()])
    return sign(
        "transfer",
        task=task,
        train=[f"{language}@{size['sha8']}" for language, size in sizes["train"].items()],
        n=sum(size["rows"] for size in sizes["train"].values()),
        steps=steps,
        epochs=epochs,
        batch=options.batch_size,
        lr=f"{options.learning_rate:g}/{options.schedule}",
        max_length=max_length,
        seed=options.seed,
        languages=list(sizes["test"]),
        f1=f1,
        hold_out=held_out,
        model=model,
        data=f"{data_name}@{test_hash}",
    )


def _means(task: TransferTask, languages: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Return the mean of each measure over languages; ``None`` without any."""
    means: dict[str, float | None] = {}
    for name in task.measures:
        values = [metrics[name] for metrics in languages]
        means[name] = fmean(values) if values else None
    return means


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
        cls, encoder: str | SentenceTransformer, task: TransferTask, *, max_length: int | None = None, seed: int = 0
    ) -> Classifier:
        """Put a new head on an encoder, which stays as it is.

        Args:
            encoder: As of :func:`transfer`.
            task: Its labels are the outputs.
            max_length: Tokens of an input; ``None``: :data:`PAPERS_LENGTH`, or as far as the positions reach.
            seed: Seed of the head's weights.
        """
        model = load_encoder(encoder, device="cpu") if isinstance(encoder, str) else encoder
        inner: Any = token_encoder(model)  # or an error that names what is missing
        check_start(model, None, ready_made=not isinstance(encoder, str))
        if max_length is None:
            max_length = min(PAPERS_LENGTH, longest_input(model) or PAPERS_LENGTH)
        limit_length(model, max_length)
        model_class = AutoModelForTokenClassification if task.tags_words else AutoModelForSequenceClassification
        id2label = dict(enumerate(task.labels))
        label2id = {label: number for number, label in id2label.items()}
        with tempfile.TemporaryDirectory(prefix="st-xling-") as folder, torch.random.fork_rng(devices=[]):
            inner.save_pretrained(folder)
            model.tokenizer.save_pretrained(folder)
            tokenizer = AutoTokenizer.from_pretrained(folder, model_max_length=max_length)
            torch.manual_seed(seed)
            classifier = model_class.from_pretrained(folder, id2label=id2label, label2id=label2id)
            return cls(classifier, tokenizer)

    def save_pretrained(self, folder: str) -> None:
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def encode(self, rows: Sequence[Example], task: TransferTask, name: str) -> Dataset:
        """Tokenize labeled rows; those longer than the model reads are counted in the log.

        Pairs are cut. Sentences are read in pieces, as XTREME does, so that every word is evaluated: the first sub-word
        of a word has its tag, the others have :data:`NO_LABEL`. A word without sub-words becomes the unknown token.
        """
        numbers = {label: number for number, label in enumerate(task.labels)}
        if task.tags_words:
            pieces: list[dict[str, list[int]]] = []
            too_long = 0
            for words, tags in rows:
                row_pieces = self._split_into_pieces(words, [numbers[tag] for tag in tags])
                pieces += row_pieces
                too_long += len(row_pieces) > 1
            encoded = Dataset.from_list(pieces)
        else:
            first_texts = [row.texts[0] for row in rows]
            second_texts = [row.texts[1] for row in rows]
            tokenized = self.tokenizer(first_texts, second_texts, truncation=True)
            too_long = sum(bool(encoding.overflowing) for encoding in tokenized.encodings)
            encoded = Dataset.from_dict({**tokenized, "labels": [numbers[row.labels[0]] for row in rows]})
        embedding_rows = self.model.get_input_embeddings().num_embeddings
        if tokens_without_row(self.tokenizer, embedding_rows):
            check_ids(self.tokenizer, embedding_rows, itertools.chain.from_iterable(encoded["input_ids"][:]))
        if too_long:
            share = f"{too_long:,} of {len(rows):,} rows ({100 * too_long / len(rows):.1f} %)"
            length = self.tokenizer.model_max_length
            logger.info("%s: %s are longer than %d tokens, and cut or read in pieces.", name, share, length)
        return encoded

    def _split_into_pieces(self, words: Sequence[str], labels: Sequence[int]) -> list[dict[str, list[int]]]:
        """Return token ids and labels of a sentence, in pieces of the model's length."""
        readable = [word if self.tokenizer.tokenize(word) else self.tokenizer.unk_token for word in words]
        encoded = self.tokenizer(readable, is_split_into_words=True, truncation=True, return_overflowing_tokens=True)
        pieces: list[dict[str, list[int]]] = []
        next_word = 0  # the first word of which no sub-word has come yet
        for piece, ids in enumerate(encoded["input_ids"]):
            piece_labels = [NO_LABEL] * len(ids)
            for position, word in enumerate(encoded.word_ids(piece)):
                if word == next_word:
                    piece_labels[position] = labels[word]
                    next_word += 1
            pieces.append({"input_ids": ids, "labels": piece_labels})

        assert next_word == len(words), f"{len(words) - next_word} words have no sub-word: {words}"
        return pieces


def _trainer(model: Classifier, task: TransferTask, rows: Dataset, options: FineTuning, folder: Path) -> FiniteTrainer:
    """Return transformers' trainer, which trains the model in place."""
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=options.batch_size,
        per_device_eval_batch_size=64,
        num_train_epochs=options.epochs,
        max_steps=options.max_steps,
        learning_rate=options.learning_rate,
        lr_scheduler_type=options.schedule,
        logging_steps=CHECKPOINT_SHARE,
        save_strategy="steps",
        save_steps=CHECKPOINT_SHARE,
        save_total_limit=2,
        seed=options.seed,
        data_seed=options.seed,
        dataloader_pin_memory=torch.cuda.is_available(),
        report_to="none",
        disable_tqdm=True,
    )
    collator = DataCollatorForTokenClassification if task.tags_words else DataCollatorWithPadding
    return FiniteTrainer(
        model=model.model,
        args=arguments,
        train_dataset=rows,
        data_collator=collator(model.tokenizer),
        processing_class=model.tokenizer,
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(dim=-1),
    )


def _evaluate(
    model: Classifier, trainer: FiniteTrainer, task: TransferTask, rows: Sequence[Example], language: str
) -> dict[str, Any]:
    """Return the metrics of one language."""
    encoded = model.encode(rows, task, language)
    order = np.argsort([-len(ids) for ids in encoded["input_ids"]], kind="stable")  # little padding
    output: Any = trainer.predict(encoded.select(order))
    original_order = order.argsort()
    is_labeled = output.label_ids[original_order] != NO_LABEL
    numbers = output.predictions[original_order][is_labeled]
    gold = [row.labels for row in rows]
    ends = np.cumsum([len(labels) for labels in gold])
    assert len(numbers) == ends[-1], f"{ends[-1]} labels, {len(numbers)} predicted"
    predicted: list[list[str]] = []
    for row_numbers in np.split(numbers, ends[:-1]):
        predicted.append([task.labels[number] for number in row_numbers])
    gold_labels = list(itertools.chain.from_iterable(gold))
    predicted_labels = list(itertools.chain.from_iterable(predicted))
    only, *others = set(predicted_labels)
    if not others and set(gold_labels) != {only}:
        logger.warning(
            "%s: only the label %s is predicted. See in training/log.jsonl whether the loss falls; try a lower "
            "learning rate, more steps, or longer inputs.",
            language,
            only,
        )
    correct = sum(label == prediction for label, prediction in zip(gold_labels, predicted_labels))
    scores = {"accuracy": correct / len(numbers), "f1": run_f1(gold, predicted)}
    metrics: dict[str, Any] = {measure: scores[measure] for measure in task.measures}
    metrics["rows"] = len(rows)
    metrics["labels"] = len(numbers)
    return metrics
