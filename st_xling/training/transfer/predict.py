"""Rows of one language → predicted labels."""

from __future__ import annotations

import sys
from typing import Any

import torch
from sentence_transformers import CrossEncoder
from tqdm.auto import tqdm

from st_xling.data.classified_pairs import ClassifiedPairs
from st_xling.training.transfer.heads import WordTagger
from st_xling.training.transfer.tagging_rows import TaggingRows

BATCH_ROWS = 64
BAR_ROWS = 16 * BATCH_ROWS


def predict_pairs(model: CrossEncoder, pairs: ClassifiedPairs, labels: tuple[str, ...], name: str) -> list[list[str]]:
    """The label of highest logit of each pair, in a list of one.

    Args:
        model: The trained model.
        pairs: Their labels are not looked at.
        labels: Names of the model's outputs.
        name: Of the progress bar.
    """
    texts = list(zip(pairs.first, pairs.second))
    found: list[list[str]] = []
    with tqdm(total=len(texts), desc=name, file=sys.stderr, leave=False) as bar:
        for start in range(0, len(texts), BAR_ROWS):
            part = texts[start : start + BAR_ROWS]  # the host sorts a part by length
            options: dict[str, Any] = {"activation_fn": torch.nn.Identity(), "convert_to_tensor": True}
            logits = model.predict(part, batch_size=BATCH_ROWS, show_progress_bar=False, **options)
            found += [[labels[number]] for number in logits.argmax(dim=1).tolist()]
            bar.update(len(part))
    return found


def predict_tags(tagger: WordTagger, rows: TaggingRows, name: str) -> list[list[str]]:
    """A tag for each word.

    Args:
        tagger: The trained model.
        rows: Sentences, tokenised for it.
        name: Of the progress bar.
    """
    model, names = tagger.model.eval(), tagger.model.config.id2label
    order = sorted(range(len(rows.pieces)), key=lambda row: -len(rows.input_ids[row]))
    tags: list[list[str]] = [[] for _ in range(1 + max((sentence for sentence, _, _ in rows.pieces), default=-1))]
    for sentence, start, count in rows.pieces:
        tags[sentence] += [""] * (start + count - len(tags[sentence]))
    with tqdm(total=len(order), desc=name, file=sys.stderr, leave=False) as bar:
        for start in range(0, len(order), BATCH_ROWS):
            batch = order[start : start + BATCH_ROWS]
            best = _best(model, tagger.tokenizer, [rows.input_ids[row] for row in batch])
            for row, numbers in zip(batch, best):
                sentence, first, _ = rows.pieces[row]
                for offset, place in enumerate(rows.places[row]):
                    tags[sentence][first + offset] = names[numbers[place]]
            bar.update(len(batch))
    return tags


def _best(model: Any, tokenizer: Any, input_ids: list[list[int]]) -> list[list[int]]:
    """Number of the likeliest tag of each token."""
    padded = tokenizer.pad({"input_ids": input_ids}, return_tensors="pt").to(model.device)
    with torch.inference_mode():
        return model(**padded).logits.argmax(dim=-1).tolist()


def cut_pairs(model: CrossEncoder, pairs: ClassifiedPairs) -> int:
    """Pairs that are longer than the model reads."""
    tokenizer, limit = model.tokenizer, model.max_seq_length
    if limit is None or not len(pairs):
        return 0
    special = tokenizer.num_special_tokens_to_add(pair=True)
    sizes = [
        list(map(len, tokenizer(column, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]))
        for column in (pairs.first, pairs.second)
    ]
    return sum(one + other + special > limit for one, other in zip(*sizes))
