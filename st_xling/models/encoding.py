"""Sentences to vectors: the one way in which mining, evaluation and training encode, faster than batches of rows.

Sentence-transformers sorts by characters and takes 32 rows at a time: of mixed languages, nearly half of what a model
then computes is padding, and a batch of short sentences is too small to be fast. Here texts are tokenized some thousand
at a time, sorted by their tokens, and a batch has as many rows as fit into a number of tokens.
"""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
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
CPU_TOKENS, GPU_TOKENS = 2048, 16384

#: Rows of a batch where tokens cannot be counted, unless the caller sets it.
ROWS = 128


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
        model: A ``SentenceTransformer``; a subclass with its own ``encode``, or anything else that has one, encodes by
            that.
        texts: Texts.
        batch_size: Most rows of a batch; ``None``: as many as suit the device. Either way a batch has at most
            :data:`CPU_TOKENS` or :data:`GPU_TOKENS` tokens, or one row.
        role: ``"query"`` or ``"document"``: as ``encode_query`` and ``encode_document``, with their prompts and routes.
        prompt: Text before each text; by default the model's own for this role.
        normalize_embeddings: Scale each vector to length 1, in float32.
        device: Device to encode on; by default the model's.
        show_progress_bar: Show one on stderr.
        bar: One that is shown already, to be moved on.
    Returns:
        float32. *Shape:* ``(texts, dim)``
    """
    texts = list(texts)
    if (row := next((row for row, text in enumerate(texts) if text is None), None)) is not None:
        raise ValueError(f"texts must be sentences: got None in row {row}; leave it out, or write a text.")
    own = "encode" if role == "text" else f"encode_{role}"
    # Others encode themselves: a fake, a subclass with an encode of its own, several processes of a trainer that
    # evaluate together.
    methods = [getattr(getattr(model, name, None), "__func__", None) for name in ("encode", own)]
    is_plain = methods == [SentenceTransformer.encode, getattr(SentenceTransformer, own)]
    if not is_plain or encodes_in_several_processes(model) or not texts:
        # What is not given is not passed: theirs may not take it.
        options: dict[str, Any] = {"prompt": prompt, "device": device, "normalize_embeddings": normalize_embeddings}
        options |= {"show_progress_bar": show_progress_bar and on_terminal()}
        given = {name: value for name, value in options.items() if value not in (None, False)}
        vectors = getattr(model, own)(texts, batch_size=batch_size or ROWS, convert_to_numpy=True, **given)
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
    autocast = nullcontext() if dtype is None else torch.autocast(model.device.type, getattr(torch, dtype))
    if bar is None:
        shown: Any = progress_bar(total=len(texts), desc="encoding", unit="sentences", show=show_progress_bar)
    else:
        shown = nullcontext(bar)
    with autocast, shown as bar:
        for rows, features in token_batches(model, texts, batch_size=batch_size, prompt=prompt, task=task):
            part = model(features, **route)["sentence_embedding"][..., : model.truncate_dim].float()
            if normalize_embeddings:
                part = F.normalize(part, dim=1)
            if vectors is None:
                vectors = np.empty((len(texts), part.shape[1]), np.float32)
            vectors[rows] = part.cpu().numpy()
            bar.update(len(rows))
    return vectors


def prompt_text(model: Any, prompt: str | None = None, prompt_name: str | None = None) -> str | None:
    """A prompt that is given by its text or by its name; ``None``: by neither, so that the model's own holds.

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
    """Return the model's own prompt in ``encode``, ``encode_query`` or ``encode_document``."""
    prompts, default = getattr(model, "prompts", {}), getattr(model, "default_prompt_name", None)
    names = {"text": (), "query": ("query",), "document": ("document", "passage", "corpus")}[role]
    name = next((name for name in names if name in prompts), default)
    return prompts.get(name) or ""


def name_unused_prompts(model: Any) -> None:
    """Say once that a model has prompts, none of which is used: some models were trained with one before every text.

    Nothing is said of a model whose default prompt is the empty one, as ``load_encoder(prompt="")`` makes it: that is
    a choice.

    Args:
        model: Its prompts are those of its configuration.
    """
    prompts = {name: text for name, text in (getattr(model, "prompts", None) or {}).items() if text}
    if prompts and getattr(model, "default_prompt_name", None) is None:
        _warn_of_unused_prompts(loaded(model).name or type(model).__name__, tuple(prompts.items()))


@lru_cache(maxsize=64)
def _warn_of_unused_prompts(name: str, prompts: tuple[tuple[str, str], ...]) -> None:
    names = ", ".join(prompt_name for prompt_name, _ in prompts)
    logger.warning(
        "the model %s has prompts (%s), and none is used; to use one: --prompt %s; to use none: --prompt ''",
        *(name, names, _quoted(dict(prompts).get("query", prompts[0][1]))),
    )


def _quoted(text: str) -> str:
    r"""``text`` as a shell reads it; within ``$'…'`` a line break is ``\n``, as of the prompts of Qwen3."""
    if "\n" not in text:
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"$'{escaped}'"


def count_truncated(model: Any, texts: Sequence[str], prompt: str | None = None) -> int:
    """Count the texts that are longer than the model's maximum length, with the prompt."""
    limit, tokenizer = getattr(model, "max_seq_length", None), getattr(model, "tokenizer", None)
    if not limit or not callable(tokenizer):
        return 0
    prompt = own_prompt(model) if prompt is None else prompt
    # A token has at least one byte, so most texts need not be tokenized again.
    long = [prompt + text for text in texts if len((prompt + text).encode("utf-8", "surrogatepass")) > limit - 2]
    ids = tokenizer(long, truncation=False, verbose=False, return_attention_mask=False)["input_ids"] if long else []
    return sum(len(row) > limit for row in ids)


def warn_of_truncated(truncated: int, total: int, model: Any) -> None:
    """Warn that some texts are longer than the model's maximum length."""
    if truncated:
        logger.warning(
            "%s of %s sentences are longer than the model's maximum of %s tokens: their ends are not encoded.",
            *(f"{truncated:,}", f"{total:,}", model.max_seq_length),
        )


def token_batches(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    batch_size: int | None = None,
    prompt: str | None = None,
    task: str | None = None,
) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    """Batches of a model's features, on its device; what is in them depends on the texts alone.

    Args:
        model: Its ``preprocess`` makes the features. Those that are a tensor of *(texts, tokens)* next to an
            ``attention_mask`` are cut to batches; of others (static embeddings, several texts in one row under flash
            attention) each batch is preprocessed by itself.
        texts: Texts.
        batch_size: See :func:`encode`.
        prompt: Text before each text.
        task: ``"query"`` or ``"document"``, for modules that distinguish them.
    Yields:
        Places of a batch in ``texts``, and its features.
    Raises:
        ValueError: Before the first batch, for tokens that the word embeddings have no row for.
    """
    check_texts(model, texts, prompt=prompt)
    route = {} if task is None else {"task": task}
    most_tokens = CPU_TOKENS if model.device.type == "cpu" else GPU_TOKENS
    # Longest first: what does not fit in memory fails at once. Of UTF-8, a token has about as many bytes in any script.
    order = np.argsort([-len(text.encode("utf-8", "surrogatepass")) for text in texts], kind="stable")
    start, step = 0, CHUNK_TEXTS
    while start < len(order):
        longest = min(len(texts[order[start]].encode("utf-8", "surrogatepass")) + 2, model.max_seq_length or math.inf)
        places = order[start : start + min(step, max(1, int(CHUNK_TOKENS // longest)))]
        features = model.preprocess([texts[place] for place in places], prompt=prompt, **route)
        mask = features.get("attention_mask")
        tensors = {name: value for name, value in features.items() if isinstance(value, Tensor)}
        if mask is None or any(value.shape != mask.shape for value in tensors.values()) or len(mask) != len(places):
            if len(places) > (batch_size or ROWS):
                step = batch_size or ROWS
                continue
            yield places, batch_to_device(features, model.device)
        else:
            lengths = mask.sum(dim=1)
            by_tokens = torch.argsort(lengths, descending=True, stable=True)
            for batch_rows in batches(lengths[by_tokens].numpy(), most_tokens, batch_size):
                rows = by_tokens[batch_rows]
                # Padding is on one side: what is left are the columns that hold a token of any row.
                columns = mask[rows].any(dim=0).nonzero().flatten()
                begin, end = (int(columns[0]), int(columns[-1]) + 1) if len(columns) else (0, 1)
                batch = {**features, **{name: value[rows, begin:end] for name, value in tensors.items()}}
                yield places[rows.numpy()], batch_to_device(batch, model.device)
        start += len(places)


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
