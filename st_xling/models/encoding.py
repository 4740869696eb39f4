"""Sentences to vectors: the one way in which mining, evaluation and training encode, faster than batches of rows.

Sentence-transformers sorts by characters and takes 32 rows at a time: of mixed languages, nearly half of what a model
then computes is padding, and a batch of short sentences is too small to be fast. Here texts are tokenized some thousand
at a time, sorted by their tokens, and a batch has as many rows as fit into a number of tokens.
"""

from __future__ import annotations

import inspect
import logging
import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device
from torch import Tensor

from st_xling.models.token_rows import check_texts
from st_xling.utils.private import encodes_in_several_processes
from st_xling.utils.signature import loaded
from st_xling.utils.terminal import on_terminal, progress_bar

logger = logging.getLogger(__name__)

Role = Literal["text", "query", "document"]

#: Texts that are tokenized together. Sorted by bytes before, and by tokens after, 2 to 3 % of all tokens are padding.
CHUNK_TEXTS = 2048

#: At most so many tokens with their padding, or one text: a tokenizer takes some 140 bytes for each.
CHUNK_TOKENS = 2048 * 512

#: Tokens of a batch, padding included: on a CPU as many as its caches hold, on a GPU what keeps it busy.
CPU_TOKENS = 2048
GPU_TOKENS = 16384

#: Rows of a batch where tokens cannot be counted, unless the caller sets it.
ROWS = 128

# Options that change no vector: an encoder of another library may do without them.
_DISPENSABLE = {"batch_size", "convert_to_numpy", "show_progress_bar"}


@torch.inference_mode()
def encode(
    model: Any,
    texts: Sequence[str],
    *,
    batch_size: int | None = None,
    role: Role = "text",
    prompt: str | None = None,
    normalize_embeddings: bool = False,
    device: str | None = None,
    show_progress_bar: bool = False,
    bar: Any = None,
) -> np.ndarray:
    """The vectors of ``model.encode(texts)``, up to rounding (cosine at least 0.99999 in float32).

    The model computes in the type that it was loaded for, by autocast where its weights are float32.

    Args:
        model: A ``SentenceTransformer``; a subclass that overrides ``encode``, or anything else that has one, encodes
            by that. It needs to take no more than a list of texts, unless a prompt, a device or normalized vectors are
            wanted.
        texts: Texts.
        batch_size: Most rows of a batch; ``None``: as many as suit the device. Either way a batch has at most
            :data:`CPU_TOKENS` or :data:`GPU_TOKENS` tokens, or one row.
        role: ``"query"`` or ``"document"``: as ``encode_query`` and ``encode_document``, with their prompts and routes.
        prompt: Text before each text; by default the model's prompt for this role.
        normalize_embeddings: Scale each vector to length 1, in float32.
        device: Device to encode on; by default the model's.
        show_progress_bar: Show one on stderr.
        bar: One that is shown already, to be moved on.

    Returns:
        float32. *Shape:* ``(texts, dim)``
    """
    texts = list(texts)
    for row, text in enumerate(texts):
        if text is None:
            raise ValueError(f"texts must be sentences: got None in row {row}; leave it out, or write a text.")
    if not texts or not _has_plain_encode(model, role) or encodes_in_several_processes(model):
        # What is not set is not passed: the method of another class may not take it.
        options: dict[str, Any] = {"prompt": prompt, "device": device, "normalize_embeddings": normalize_embeddings}
        options["show_progress_bar"] = show_progress_bar and on_terminal()
        options = {name: value for name, value in options.items() if value not in (None, False)}
        options |= {"batch_size": batch_size or ROWS, "convert_to_numpy": True}
        method = getattr(model, _method_name(role))
        needless = _DISPENSABLE - _accepted_names(method, options)
        vectors = method(texts, **{name: value for name, value in options.items() if name not in needless})
        return np.asarray(vectors, np.float32)

    task = None if role == "text" else role
    route = {} if task is None else {"task": task}
    if prompt is None:
        prompt = own_prompt(model, role)
        if not prompt:
            name_unused_prompts(model)
    if device is not None:
        model.to(device)
    model.eval()
    vectors = None
    dtype = loaded(model).options.get("dtype")
    autocast: AbstractContextManager[Any] = nullcontext()
    if dtype is not None:
        autocast = torch.autocast(model.device.type, getattr(torch, dtype))
    shown: AbstractContextManager[Any] = nullcontext(bar)
    if bar is None:
        shown = progress_bar(total=len(texts), desc="encoding", unit="sentences", show=show_progress_bar)
    with autocast, shown as bar:
        for rows, features in token_batches(model, texts, batch_size=batch_size, prompt=prompt, task=task):
            embeddings = model(features, **route)["sentence_embedding"][..., : model.truncate_dim].float()
            if normalize_embeddings:
                embeddings = F.normalize(embeddings, dim=1)
            if vectors is None:
                vectors = np.empty((len(texts), embeddings.shape[1]), np.float32)
            vectors[rows] = embeddings.cpu().numpy()
            bar.update(len(rows))
    return vectors


def _accepted_names(method: Any, names: Iterable[str]) -> set[str]:
    """Return which of some keyword arguments a method takes."""
    parameters = inspect.signature(method).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return set(names)
    return {name for name in names if name in parameters}


def _has_plain_encode(model: Any, role: Role) -> bool:
    """Return whether a model has the methods of sentence-transformers, which a fake or a subclass may replace."""
    for name in ("encode", _method_name(role)):
        method = getattr(model, name, None)
        if getattr(method, "__func__", None) != getattr(SentenceTransformer, name):
            return False
    return True


def _method_name(role: Role) -> str:
    return "encode" if role == "text" else f"encode_{role}"


def prompt_text(model: Any, prompt: str | None = None, prompt_name: str | None = None) -> str | None:
    """A prompt that is given by its text or by its name; ``None``: by neither, so that the model's prompt holds.

    Raises:
        ValueError: Given by both, or a name that the model lacks.
    """
    if prompt_name is None:
        return prompt
    if prompt is not None:
        raise ValueError(f"a prompt is given by its text or by its name: got {prompt!r} and {prompt_name!r}.")
    if prompt_name not in model.prompts:
        raise ValueError(f"this model has no prompt {prompt_name!r}: it has {', '.join(map(repr, model.prompts))}.")
    return model.prompts[prompt_name]


def own_prompt(model: Any, role: Role = "text") -> str:
    """Return the model's prompt in ``encode``, ``encode_query`` or ``encode_document``."""
    prompts = getattr(model, "prompts", {})
    default = getattr(model, "default_prompt_name", None)
    names = {"text": (), "query": ("query",), "document": ("document", "passage", "corpus")}[role]
    name = next((name for name in names if name in prompts), default)
    return prompts.get(name) or ""


def name_unused_prompts(model: Any) -> None:
    """Warn once that a model has prompts, none of which is used: some were trained with one before every text.

    There is no warning for a model whose default prompt is the empty one, as ``load_encoder(prompt="")`` makes it: that
    is a choice.

    Args:
        model: Its prompts are those of its configuration.
    """
    prompts = {name: text for name, text in (getattr(model, "prompts", None) or {}).items() if text}
    if prompts and getattr(model, "default_prompt_name", None) is None:
        _warn_of_unused_prompts(loaded(model).name or type(model).__name__, tuple(prompts.items()))


@lru_cache(maxsize=64)
def _warn_of_unused_prompts(name: str, prompts: tuple[tuple[str, str], ...]) -> None:
    names = ", ".join(prompt_name for prompt_name, _ in prompts)
    example = dict(prompts).get("query", prompts[0][1])
    logger.warning(
        "the model %s has prompts (%s), and none is used; to use one: --prompt %s; to use none: --prompt ''",
        name,
        names,
        _quote_for_shell(example),
    )


def _quote_for_shell(text: str) -> str:
    r"""``text`` as a shell reads it; within ``$'…'`` a line break is ``\n``, as of the prompts of Qwen3."""
    if "\n" not in text:
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"$'{escaped}'"


def count_truncated(model: Any, texts: Sequence[str], prompt: str | None = None) -> int:
    """Count the texts that are longer than the model's maximum length, with the prompt."""
    limit = getattr(model, "max_seq_length", None)
    tokenizer = getattr(model, "tokenizer", None)
    if not limit or not callable(tokenizer):
        return 0
    prompt = own_prompt(model) if prompt is None else prompt
    # A token has at least one byte, so most texts need not be tokenized again.
    prompted = (prompt + text for text in texts)
    long = [text for text in prompted if _byte_count(text) > limit - 2]
    if not long:
        return 0
    ids = tokenizer(long, truncation=False, verbose=False, return_attention_mask=False)["input_ids"]
    return sum(len(row) > limit for row in ids)


def _byte_count(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def warn_of_truncated(truncated: int, total: int, model: Any) -> None:
    """Warn that some texts are longer than the model's maximum length."""
    if truncated:
        logger.warning(
            "%s of %s sentences are longer than the model's maximum of %s tokens: their ends are not encoded.",
            f"{truncated:,}",
            f"{total:,}",
            model.max_seq_length,
        )


def token_batches(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    batch_size: int | None = None,
    prompt: str | None = None,
    task: str | None = None,
) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    """Batches of a model's features, on its device; what is in them only depends on the texts.

    Args:
        model: Its ``preprocess`` makes the features. Those that are a tensor of *(texts, tokens)* next to an
            ``attention_mask`` are cut to batches; of others (static embeddings, several texts in one row under flash
            attention) each batch is preprocessed by itself.
        texts: Texts.
        batch_size: See :func:`encode`.
        prompt: Text before each text.
        task: ``"query"`` or ``"document"``, for modules that distinguish them.

    Yields:
        Rows of a batch in ``texts``, and its features.

    Raises:
        ValueError: Before the first batch, for tokens that the word embeddings have no row for.
    """
    check_texts(model, texts, prompt=prompt)
    route = {} if task is None else {"task": task}
    most_tokens = CPU_TOKENS if model.device.type == "cpu" else GPU_TOKENS
    # Longest first: what does not fit in memory fails at once. Of UTF-8, a token has about as many bytes in any script.
    order = np.argsort([-_byte_count(text) for text in texts], kind="stable")
    start = 0
    step = CHUNK_TEXTS
    while start < len(order):
        longest = min(_byte_count(texts[order[start]]) + 2, model.max_seq_length or math.inf)
        chunk_size = min(step, max(1, int(CHUNK_TOKENS // longest)))
        chunk = order[start : start + chunk_size]
        features = model.preprocess([texts[row] for row in chunk], prompt=prompt, **route)
        if _has_one_row_a_text(features, len(chunk)):
            for rows, batch in _cut_batches(features, most_tokens, batch_size):
                yield chunk[rows.numpy()], batch_to_device(batch, model.device)
        elif len(chunk) > (batch_size or ROWS):
            step = batch_size or ROWS
            continue  # the same texts again, a batch at a time
        else:
            yield chunk, batch_to_device(features, model.device)
        start += len(chunk)


def _has_one_row_a_text(features: dict[str, Any], texts: int) -> bool:
    """Return whether all tensors are *(texts, tokens)*, so that rows and columns can be cut."""
    mask = features.get("attention_mask")
    if mask is None or len(mask) != texts:
        return False
    return all(value.shape == mask.shape for value in features.values() if isinstance(value, Tensor))


def _cut_batches(
    features: dict[str, Any], most_tokens: int, most_rows: int | None
) -> Iterator[tuple[Tensor, dict[str, Any]]]:
    """Cut the features of many texts into batches of rows of like length: row numbers and features of each."""
    mask = features["attention_mask"]
    lengths = mask.sum(dim=1)
    by_tokens = torch.argsort(lengths, descending=True, stable=True)
    for batch_rows in batches(lengths[by_tokens].numpy(), most_tokens, most_rows):
        rows = by_tokens[batch_rows]
        # Padding is on one side: without it, the columns are those with a token of any row.
        columns = mask[rows].any(dim=0).nonzero().flatten()
        begin, end = (int(columns[0]), int(columns[-1]) + 1) if len(columns) else (0, 1)
        batch = dict(features)
        for name, value in features.items():
            if isinstance(value, Tensor):
                batch[name] = value[rows, begin:end]
        yield rows, batch


def batches(lengths: np.ndarray, token_budget: int, most_rows: int | None = None) -> Iterator[slice]:
    """Runs of rows whose number by their longest is at most the budget, or of one row.

    Args:
        lengths: Tokens, descending. *Shape:* ``(rows,)``
        token_budget: Tokens, padding included.
        most_rows: Maximum number of rows of a run.

    Example:
        >>> [(run.start, run.stop) for run in batches(np.array([9, 4, 4, 2, 2]), 8)]
        [(0, 1), (1, 3), (3, 5)]
    """
    start = 0
    while start < len(lengths):
        rows = max(1, token_budget // max(1, int(lengths[start])))
        stop = min(start + min(rows, most_rows or rows), len(lengths))
        yield slice(start, stop)
        start = stop
