"""The two models of transfer, with their training rows and predictions: a class for a pair, or a tag for each word.

Both are stock models once saved: a ``CrossEncoder`` and an ``AutoModelForTokenClassification``. They have the same
methods: ``build`` and ``load``, ``prepare`` and then ``dataset`` or ``predict``, ``trainer`` and ``save_pretrained``.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import CrossEntropyLoss
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    TrainingArguments,
)

from st_xling.data.classified_pairs import ClassifiedPairs
from st_xling.data.tagged_words import TaggedSentences
from st_xling.models import load_encoder
from st_xling.models.backbone import token_encoder
from st_xling.models.load import limit_length, load_sentence_transformer, loading, longest_input, name_of
from st_xling.models.lora import check_start
from st_xling.models.pair_scorer import pair_sizes
from st_xling.training.trainer import FiniteTrainer, GuardedTrainer
from st_xling.training.transfer.scores import Labels
from st_xling.training.transfer.tasks import FineTuning
from st_xling.utils.console import progress_bar

if TYPE_CHECKING:
    from datasets import Dataset

PAPERS_LENGTH = 128
"""Tokens of an input. *Source:* DAP, table 9; XTREME, ``scripts/train_udpos.sh``."""

NO_LABEL = -100
"""A label that transformers' loss passes over."""

CHECKPOINTS_A_RUN = 10
BATCH_ROWS = 64


class PairTrainer(GuardedTrainer, CrossEncoderTrainer):
    """``CrossEncoderTrainer`` with what :class:`GuardedTrainer` adds."""


class PairClassifier:
    """A ``CrossEncoder`` with one output for each label."""

    long_rows = "cut"
    """Key of the results that counts rows longer than the model reads."""

    def __init__(self, model: CrossEncoder) -> None:
        self.model, self.tokenizer = model, model.tokenizer

    @classmethod
    def build(
        cls,
        encoder: str | SentenceTransformer,
        labels: Sequence[str],
        *,
        max_length: int | None = None,
        seed: int = 0,
    ) -> PairClassifier:
        """A new classifier over an encoder.

        Args:
            encoder: Hub id or folder of a ``SentenceTransformer`` or a bare transformer; or one that is loaded, which
                stays as it is.
            labels: Names of the outputs.
            max_length: Tokens of a pair, the longer sentence cut first; ``None``: :data:`PAPERS_LENGTH`, or as far as
                the encoder's positions reach.
            seed: Of the head's weights.
        Raises:
            ValueError: No encoder there, adapters, or a length that its positions do not reach.
        """
        with _transformer(encoder, max_length, seed) as (folder, length):
            names = _names(labels)
            model = load_sentence_transformer(
                CrossEncoder, folder, num_labels=len(labels), max_length=length, config_kwargs=names
            )
        model.model_card_data.base_model = name_of(encoder)
        return cls(model)

    @classmethod
    def load(cls, folder: str | Path) -> PairClassifier:
        return cls(load_sentence_transformer(CrossEncoder, str(folder)))

    def save_pretrained(self, folder: str) -> None:
        self.model.save_pretrained(folder)

    @property
    def max_length(self) -> int:
        """Tokens that the model reads at most."""
        return int(self.model.max_seq_length or 0)

    def prepare(self, rows: ClassifiedPairs, name: str = "") -> tuple[ClassifiedPairs, int]:
        """Rows for :meth:`dataset` and :meth:`predict`; and how many are longer than the model reads."""
        limit = self.model.max_seq_length
        if limit is None or not len(rows):
            return rows, 0
        first, second = pair_sizes(self.tokenizer, rows.first, rows.second)
        return rows, int((first + second > limit).sum())

    def dataset(self, rows: ClassifiedPairs, labels: Labels, label_ids: Mapping[str, int]) -> Dataset:
        """Two text columns and ``label``."""
        from datasets import Dataset

        numbers = [label_ids[label] for (label,) in labels]
        return Dataset.from_dict({"first": rows.first, "second": rows.second, "label": numbers})

    def trainer(self, rows: Dataset, options: FineTuning, folder: Path) -> PairTrainer:
        """What trains it in place."""
        arguments = _arguments(CrossEncoderTrainingArguments, options, folder, len(rows))
        return PairTrainer(model=self.model, args=arguments, train_dataset=rows, loss=CrossEntropyLoss(self.model))

    def predict(self, rows: ClassifiedPairs, labels: Sequence[str], name: str) -> list[list[str]]:
        """The label of highest logit of each pair, in a list of one.

        Args:
            rows: As :meth:`prepare` gives them; their labels are not looked at.
            labels: Names of the model's outputs.
            name: Of the progress bar; pairs are read without one.
        """
        texts = list(zip(rows.first, rows.second))
        options: dict[str, Any] = {"activation_fn": torch.nn.Identity(), "convert_to_tensor": True}
        logits = self.model.predict(texts, batch_size=BATCH_ROWS, show_progress_bar=False, **options)
        return [[labels[number]] for number in logits.argmax(dim=1).tolist()]


@dataclass(frozen=True)
class TaggingRows:
    """Sentences as token ids; the first sub-word of a word carries its tag.

    Attributes:
        pieces: Sentence, first word and number of words of each row: a sentence that is too long is read in pieces, as
            XTREME does, so that every word is evaluated.
        input_ids: Tokens of each piece, special tokens included.
        places: Where in ``input_ids`` each word's first sub-word stands.
    """

    pieces: list[tuple[int, int, int]]
    input_ids: list[list[int]]
    places: list[list[int]]


class WordTagger:
    """``AutoModelForTokenClassification``, whose configuration names the labels, and its fast tokenizer."""

    long_rows = "read_in_pieces"
    """Key of the results that counts sentences longer than the model reads."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer

    @classmethod
    def build(
        cls,
        encoder: str | SentenceTransformer,
        labels: Sequence[str],
        *,
        max_length: int | None = None,
        seed: int = 0,
    ) -> WordTagger:
        """A new tagger over an encoder; arguments and errors as of :meth:`PairClassifier.build`."""
        with _transformer(encoder, max_length, seed) as (folder, length):
            tokenizer = AutoTokenizer.from_pretrained(folder, model_max_length=length)
            if not tokenizer.is_fast:
                raise ValueError(
                    f"words can be tagged by their first sub-word only with a fast tokenizer: {name_of(encoder)} has "
                    f"{type(tokenizer).__name__}; start from an encoder that has one."
                )
            return cls(AutoModelForTokenClassification.from_pretrained(folder, **_names(labels)), tokenizer)

    @classmethod
    def load(cls, folder: str | Path) -> WordTagger:
        with loading(folder):
            model = AutoModelForTokenClassification.from_pretrained(str(folder))
            return cls(model, AutoTokenizer.from_pretrained(str(folder)))

    def save_pretrained(self, folder: str) -> None:
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @property
    def max_length(self) -> int:
        """Tokens that the model reads at most."""
        return int(self.tokenizer.model_max_length)

    def dataset(self, rows: TaggingRows, tags: Labels, label_ids: Mapping[str, int]) -> Dataset:
        """Rows for transformers' trainer; all but first sub-words are labelled :data:`NO_LABEL`."""
        from datasets import Dataset

        labels = []
        for (sentence, start, _), ids, places in zip(rows.pieces, rows.input_ids, rows.places):
            row = [NO_LABEL] * len(ids)
            for offset, place in enumerate(places):
                row[place] = label_ids[tags[sentence][start + offset]]
            labels.append(row)
        masks = [[1] * len(ids) for ids in rows.input_ids]
        return Dataset.from_dict({"input_ids": rows.input_ids, "attention_mask": masks, "labels": labels})

    def trainer(self, rows: Dataset, options: FineTuning, folder: Path) -> FiniteTrainer:
        """What trains it in place."""
        arguments = _arguments(TrainingArguments, options, folder, len(rows))
        collator = DataCollatorForTokenClassification(self.tokenizer)
        parts = {"processing_class": self.tokenizer, "data_collator": collator}
        return FiniteTrainer(model=self.model, args=arguments, train_dataset=rows, **parts)

    def predict(self, rows: TaggingRows, labels: Sequence[str], name: str) -> list[list[str]]:
        """A tag for each word of each sentence; arguments as of :meth:`PairClassifier.predict`."""
        model = self.model.eval()
        tags: list[list[str]] = [[] for _ in range(1 + max((sentence for sentence, _, _ in rows.pieces), default=-1))]
        for sentence, start, count in rows.pieces:
            tags[sentence] += [""] * (start + count - len(tags[sentence]))
        order = sorted(range(len(rows.pieces)), key=lambda row: -len(rows.input_ids[row]))
        with progress_bar(total=len(order), desc=name, unit="rows") as bar, torch.inference_mode():
            for start in range(0, len(order), BATCH_ROWS):
                batch = order[start : start + BATCH_ROWS]
                ids = {"input_ids": [rows.input_ids[row] for row in batch]}
                padded = self.tokenizer.pad(ids, return_tensors="pt").to(model.device)
                for row, numbers in zip(batch, model(**padded).logits.argmax(dim=-1).tolist()):
                    sentence, first, _ = rows.pieces[row]
                    for offset, place in enumerate(rows.places[row]):
                        tags[sentence][first + offset] = labels[numbers[place]]
                bar.update(len(batch))
        return tags

    def prepare(self, rows: TaggedSentences, name: str = "tokens") -> tuple[TaggingRows, int]:
        """Token ids, in pieces of at most :attr:`max_length`, as few and as long as fit; and how many are in pieces.

        A word that the tokenizer reads as nothing becomes its unknown token; one that is longer than a piece is cut.
        """
        tokenizer, limit = self.tokenizer, self.max_length
        room = limit - tokenizer.num_special_tokens_to_add(pair=False)
        pieces, input_ids, places, split = [], [], [], 0
        for number, words in enumerate(progress_bar(rows.words, desc=name, unit="sentences")):
            # Sub-words of each word decide where a piece ends.
            encoded = tokenizer(
                list(words), is_split_into_words=True, add_special_tokens=False, truncation=False, verbose=False
            )
            sizes = [0] * len(words)
            for owner in encoded.word_ids():
                sizes[owner] += 1
            starts, filled = [0] if words else [], 0
            for place, size in enumerate(min(max(size, 1), room) for size in sizes):
                if filled + size > room:
                    starts.append(place)
                    filled = 0
                filled += size
            split += len(starts) > 1

            readable = [word if size else tokenizer.unk_token for word, size in zip(words, sizes)]
            for start, end in zip(starts, [*starts[1:], len(words)]):
                encoded = tokenizer(readable[start:end], is_split_into_words=True, truncation=True, max_length=limit)
                owners = encoded.word_ids()
                pieces.append((number, start, end - start))
                input_ids.append(encoded["input_ids"])
                places.append([owners.index(word) for word in range(end - start)])
        return TaggingRows(pieces, input_ids, places), split


@contextlib.contextmanager
def _transformer(encoder: str | SentenceTransformer, max_length: int | None, seed: int) -> Iterator[tuple[str, int]]:
    """The transformer inside ``encoder`` in a folder of its own, and the length of its inputs.

    New weights made within are those of ``seed``; the caller's random numbers go on as if nothing had been drawn.
    """
    model = load_encoder(encoder, device="cpu") if isinstance(encoder, str) else encoder
    inner: Any = token_encoder(model)  # or an error that says what is missing
    check_start(model, None, given=not isinstance(encoder, str))
    if max_length is None:
        reach = longest_input(model)
        max_length = PAPERS_LENGTH if reach is None else min(PAPERS_LENGTH, reach)
    limit_length(model, max_length)
    with tempfile.TemporaryDirectory(prefix="st-xling-") as folder:
        inner.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield folder, max_length


def _names(labels: Sequence[str]) -> dict[str, Any]:
    return {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }


def _arguments(kind: Any, options: FineTuning, folder: Path, rows: int) -> Any:
    steps = options.max_steps
    if steps <= 0:
        steps = max(1, math.ceil(options.epochs * math.ceil(rows / options.batch_size)))
    save_steps = min(steps, options.save_steps or max(1, steps // CHECKPOINTS_A_RUN))
    # transformers' "constant" takes no notice of warm-up.
    schedule = "constant_with_warmup" if options.schedule == "constant" else options.schedule
    return kind(
        output_dir=str(folder),
        per_device_train_batch_size=options.batch_size,
        num_train_epochs=options.epochs,
        max_steps=options.max_steps,
        learning_rate=options.learning_rate,
        lr_scheduler_type=schedule,
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
