"""Replay: text on which a model shall stay as it was, with the vectors that it has for it before training.

An encoder that learns translations forgets some of what it could do: search in one language, and languages that the new
text does not have. Next to each pair, training then reads a few texts of that kind, whose embeddings it holds to those
of the frozen start (distillation; Li and Hoiem 2016 call it learning without forgetting). The start's vectors are
computed once and cached, see :mod:`st_xling.training.sentence_vectors`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from torch import Tensor

from st_xling.data.pairs import append_columns, dataset_in_memory
from st_xling.data.spec import split_prompt_name
from st_xling.data.text_cells import KEPT_TEXT, column_texts
from st_xling.data.texts_by_language import language_texts
from st_xling.models.encoding import encode, own_prompt, prompt_text
from st_xling.models.sidecar import model_fingerprint
from st_xling.training.options import ReplayOptions
from st_xling.training.sentence_vectors import cache_folder, cached_vectors, check_cache
from st_xling.training.teacher import LABEL_COLUMNS, OUTPUT, write_labels
from st_xling.utils import distributed
from st_xling.utils.signature import sha8

logger = logging.getLogger(__name__)

KeptTexts = Mapping[str, Sequence[str]]
"""Name of a prompt of the model (``""``: the one that it puts before every text) → texts that are read with it."""


def kept_text_columns(per_pair: int) -> list[str]:
    """Return the names of the columns that :func:`add_replay` adds, but for the labels.

    Example:
        >>> kept_text_columns(2)
        ['kept_text_1', 'kept_text_2']
    """
    return [f"{KEPT_TEXT}{number}" for number in range(1, per_pair + 1)]


def load_kept_texts(specs: Iterable[str], *, skip_bad_lines: bool = False) -> dict[str, list[str]]:
    """Load the texts of ``--keep-like``, each once.

    Args:
        specs: ``xx=PATH`` (a text a line, JSON lines with ``text``, or a document), parallel text, whose two sides are
            both read, or the phrasebook; each with ``?size=…&seed=…`` for a sample of its rows. ``?prompt_name=query``
            names the prompt of the model that goes before these texts.
        skip_bad_lines: Skip faulty lines, with a warning, instead of raising.

    Returns:
        Name of the prompt, ``""`` where none is named → texts, in order.

    Raises:
        FileNotFoundError, ValueError: As :func:`~st_xling.data.texts_by_language.language_texts`.

    Example:
        >>> [len(texts) for texts in load_kept_texts(["de=phrasebook?size=20"]).values()]
        [20]
    """
    texts: dict[str, dict[str, None]] = {}
    for spec in specs:
        plain_spec, name = split_prompt_name(spec)
        texts_of_prompt = texts.setdefault(name, {})
        for row in language_texts(plain_spec, skip_bad_lines=skip_bad_lines):
            for _, text in row:
                texts_of_prompt[text] = None
    return {name: list(texts_of_prompt) for name, texts_of_prompt in texts.items()}


def add_replay(
    dataset: Dataset,
    texts: KeptTexts | Sequence[str],
    start: SentenceTransformer,
    *,
    per_pair: int = 2,
    most_texts: int | None = None,
    max_length: int | None = None,
    seed: int = 0,
    cache: str | Path | None = None,
) -> Dataset:
    """Add texts next to each pair, and the vectors that the model has for them before it is trained.

    A loss that learns from vectors, such as ST's ``EmbedDistillLoss``, then reads these columns alone, and the others
    the pairs: ``ranking.on(0, 1) + 20 * make("EmbedDistillLoss", model).on(2, 3)``. Vectors and labels are files in the
    cache's folder that are mapped into memory: ``4 * rows * per_pair * dim`` bytes on disk, and as many for each text.
    A call that was interrupted resumes with the first 20,480 texts that it lacks; another one with the same model and
    texts encodes nothing. Of several processes that train together, the main one encodes; all must call this function.

    Args:
        dataset: Pairs, in memory or on disk; no stream.
        texts: Texts on which the model shall stay as it is, read with the prompt that it puts before every text; or
            name of one of its prompts → texts.
        start: The model, before training.
        per_pair: Number of texts next to each pair: 2 make half of a batch of pairs.
        most_texts: Maximum number of texts, drawn from all, such as those that training has the steps to read.
        max_length: Maximum number of tokens of a text while training; ``None``: the model's.
        seed: Seed of the order of the texts: each once before any comes again.
        cache: Folder of the cache; ``None``: one next to downloaded models.

    Returns:
        ``dataset`` with the columns ``kept_text_1``, …, which contain the prompt, and ``label``, float32. *Shape of
        each row:* ``(per_pair, dim)``

    Raises:
        TypeError: No data set.
        ValueError: A stream, no texts, labels that are there already, or a prompt that the model does not have.

    Source:
        Li and Hoiem 2016, Learning without Forgetting: the outputs of the frozen start are the targets.

    Example:
        >>> from st_xling.data.phrasebook import parallel_phrases, phrase_sentences
        >>> from st_xling.models import tiny_encoder
        >>> pairs = parallel_phrases("de", "en", size=20).select_columns(["source", "target"])
        >>> start = tiny_encoder(pairs["target"][:], vocabulary=200, hidden_size=16)
        >>> replayed = add_replay(pairs, phrase_sentences("en", size=30), start, cache="vectors")
        >>> replayed.column_names, replayed[0]["label"].shape
        (['source', 'target', 'kept_text_1', 'kept_text_2', 'label'], torch.Size([2, 16]))
    """
    check_replay_columns(dataset)
    if per_pair < 1:
        raise ValueError(f"per_pair must be at least 1: got {per_pair}.")
    check_cache(cache)
    all_texts = prompted_texts(texts, start)
    most_read = len(dataset) * per_pair
    if most_texts is not None:
        most_read = min(most_read, most_texts)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(all_texts))[: max(1, most_read)]
    kept = [all_texts[index] for index in order]

    # A permutation, repeated: each text once before any comes again.
    columns: dict[str, list[str]] = {}
    for number, name in enumerate(kept_text_columns(per_pair)):
        columns[name] = [kept[(row * per_pair + number) % len(kept)] for row in range(len(dataset))]
    added = dataset_in_memory(pa.table(columns))

    def fill() -> str:
        fingerprint = hashlib.sha256(
            f"{model_fingerprint(start)} replay, all dimensions {max_length}".encode()
        ).hexdigest()

        def vectors_of(block: list[str]) -> dict[str, np.ndarray]:
            # All dimensions, as in training, also of a model that keeps fewer when it encodes. The texts have prompts.
            with start.truncate_sentence_embeddings(None):
                return {OUTPUT: encode(start, block, prompt="")}

        with _limited_length(start, max_length):
            cached_vectors(kept, [OUTPUT], vectors_of, fingerprint=fingerprint, folder=cache)
        return fingerprint

    fingerprint = distributed.run_on_main(fill)
    vectors, _ = cached_vectors(kept, [OUTPUT], _encode_nothing, fingerprint=fingerprint, folder=cache)
    digest = hashlib.sha256(fingerprint.encode())
    for text in column_texts(added, *columns):
        digest.update(f"{text}\0".encode("utf-8", "surrogatepass"))

    def labels_of(rows: list[dict[str, str]]) -> Tensor:
        columns_of_vectors: list[Tensor] = []
        for name in columns:
            columns_of_vectors.append(vectors[OUTPUT].of([row[name] for row in rows]))
        return torch.stack(columns_of_vectors, dim=1)

    labels = write_labels(added, labels_of, folder=cache_folder(cache), key=digest.hexdigest())
    replayed = append_columns(append_columns(dataset, added), labels)
    return replayed if dataset.format["type"] is not None else replayed.with_format("torch")


def describe_replay(texts: KeptTexts | Sequence[str], options: ReplayOptions) -> dict[str, Any]:
    """Return the number of texts, their fingerprint and the options of replay, for the record of a run."""
    content = texts_by_prompt(texts)
    return {"texts": sum(map(len, content.values())), "sha8": sha8(content), **asdict(options)}


def texts_by_prompt(texts: KeptTexts | Sequence[str]) -> dict[str, list[str]]:
    """Return name of the prompt → texts; texts without one are those of the name ``""``."""
    by_prompt = texts if isinstance(texts, Mapping) else {"": texts}
    return {name: list(texts_of_prompt) for name, texts_of_prompt in by_prompt.items()}


def check_replay_columns(dataset: Dataset) -> None:
    """Raise an error for what is no data set, or has labels already."""
    if not isinstance(dataset, Dataset):
        if hasattr(dataset, "take"):
            raise ValueError("replay adds columns before training: got a stream; load it whole.")
        raise TypeError(f"expected a data set of pairs, got {type(dataset).__name__}.")
    if taken := [name for name in LABEL_COLUMNS if name in dataset.column_names]:
        raise ValueError(
            f"the labels of replay are the start's vectors: the data set has labels already, in {taken[0]}; remove the "
            f"column first: dataset.remove_columns({taken})."
        )


def prompted_texts(texts: KeptTexts | Sequence[str], model: SentenceTransformer) -> list[str]:
    """Return all texts with their prompts, each once.

    Raises:
        ValueError: No texts, or a prompt that the model does not have.
    """
    prompted: dict[str, None] = {}
    for name, texts_of_prompt in texts_by_prompt(texts).items():
        prompt = prompt_text(model, prompt_name=name) if name else own_prompt(model)
        for text in texts_of_prompt:
            prompted[f"{prompt}{text}"] = None
    if not prompted:
        raise ValueError("replay needs text on which the model shall stay as it is: got none (--keep-like).")
    return list(prompted)


@contextmanager
def _limited_length(model: SentenceTransformer, max_length: int | None) -> Iterator[None]:
    """Read as many tokens of a text as training does."""
    length = model.max_seq_length
    if max_length is None or (length is not None and length <= max_length):
        yield
        return
    model.max_seq_length = max_length
    try:
        yield
    finally:
        model.max_seq_length = length


def _encode_nothing(texts: list[str]) -> dict[str, np.ndarray]:
    raise AssertionError(f"{len(texts)} texts should have been encoded by the main process")
