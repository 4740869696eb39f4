"""A small encoder built from nothing but text: for demos, tests, and pairs with no pretrained model."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from st_xling.models.load import mark_loaded
from st_xling.models.view import load_encoder
from st_xling.utils.built_sizes import Architecture, check_sizes
from st_xling.utils.options import Pooling

# In the order of their ids.
_SPECIAL = {
    "bert": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "xlm-roberta": {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"},
}


class TinyOptions(TypedDict, total=False):
    """Sizes of a tiny model, see :func:`tiny_encoder`."""

    vocabulary: int
    layers: int
    hidden_size: int
    heads: int | None
    pooling: Pooling
    max_length: int
    dropout: float
    architecture: Architecture


def tiny_encoder(
    texts: Iterable[str],
    *,
    vocabulary: int = 8000,
    layers: int = 2,
    hidden_size: int = 192,
    heads: int | None = None,
    pooling: Pooling = "mean",
    max_length: int = 32,
    dropout: float = 0.1,
    architecture: Architecture = "bert",
    seed: int = 0,
) -> SentenceTransformer:
    """A subword tokenizer trained on ``texts`` under a small transformer with random weights.

    Args:
        texts: Sentences of all languages the model shall read.
        vocabulary: Size of the vocabulary in pieces, special tokens included; small text gives fewer.
        layers: Transformer layers.
        hidden_size: Width of the states and of the sentence embedding.
        heads: Attention heads; default one for every 64 dimensions (at least 2).
        pooling: ``"mean"`` or ``"cls"``. From scratch, mean learns much faster.
        max_length: Tokens a text is cut to, special tokens included.
        dropout: Dropout of hidden states and attention weights.
        architecture: ``"bert"`` (positions from 0) or ``"xlm-roberta"`` (positions from padding + 1).
        seed: Seed of the weights; the tokenizer has no randomness.

    Returns:
        A ``SentenceTransformer`` of Transformer and Pooling.

    Raises:
        ValueError: No text, or sizes that do not fit each other.

    Example:
        >>> model = tiny_encoder(["Der Hund schläft.", "The dog sleeps."], vocabulary=100, hidden_size=16)
        >>> model.encode(["Der Hund."]).shape
        (1, 16)
    """
    heads = check_sizes(
        vocabulary=vocabulary,
        layers=layers,
        hidden_size=hidden_size,
        heads=heads,
        max_length=max_length,
        dropout=dropout,
        architecture=architecture,
        seed=seed,
    )
    tokenizer = train_tokenizer(texts, vocabulary=vocabulary, architecture=architecture)
    segments = 2 if architecture == "bert" else 1
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden_size,
        max_position_embeddings=max_length + 2,  # XLM-R counts from 2
        type_vocab_size=segments,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = AutoModel.from_config(config)
    with tempfile.TemporaryDirectory(prefix="st-xling-") as folder:
        path = Path(folder) / f"tiny-{architecture}"
        # Not by save_pretrained, which only writes weights in the first of several processes.
        config.save_pretrained(path)
        weights = {name: tensor.contiguous() for name, tensor in encoder.state_dict().items()}
        save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
        tokenizer.model_max_length = max_length
        tokenizer.save_pretrained(path)
        model = mark_loaded(load_encoder(str(path), pooling=pooling, max_length=max_length))
    model.model_card_data.base_model = None
    return model


def train_tokenizer(
    texts: Iterable[str], *, vocabulary: int = 8000, architecture: Architecture = "bert"
) -> PreTrainedTokenizerFast:
    """A subword tokenizer for any script: Chinese and Japanese characters one by one, other text by pieces of words.

    Byte-pair encoding over words in lower case, marked by ``▁``; accents are kept: Vietnamese needs them. (WordPiece
    training breaks ties by hash order, so that the same text gives another vocabulary in each process; this gives the
    same one.)

    Args:
        texts: Sentences to count pieces in.
        vocabulary: Pieces at most, special tokens included.
        architecture: Whose special tokens to use.

    Raises:
        ValueError: No text at all, or a vocabulary too small to hold anything.
    """
    special = _SPECIAL[architecture]
    check_sizes(vocabulary=vocabulary)
    core = Tokenizer(models.BPE(unk_token=special["unk"], fuse_unk=True))
    core.normalizer = normalizers.BertNormalizer(strip_accents=False, handle_chinese_chars=False)
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Split(Regex(r"\p{P}|\p{Han}|\p{Hiragana}"), behavior="isolated")]
    )
    core.decoder = decoders.Metaspace()
    texts = list(texts)
    # The most frequent characters. (The trainer's limit breaks ties by hash order, too.)
    counts: Counter[str] = Counter()
    for text in map(core.normalizer.normalize_str, texts):
        counts.update(text.replace(" ", "▁"))
        counts["▁"] += 1  # before the first word, too
    alphabet = sorted(counts, key=lambda character: (-counts[character], character))[: vocabulary // 2]
    if set(alphabet) <= {"▁"}:
        raise ValueError("a tokenizer needs text: got no sentence with a letter in it; give the training pairs.")
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(special.values()),
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        min_frequency=2,
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    cls = special["cls"]
    sep = special["sep"]
    core.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(token, core.token_to_id(token)) for token in (cls, sep)],
    )
    inputs = ["input_ids", "attention_mask"]
    if architecture == "bert":
        inputs.insert(1, "token_type_ids")
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_input_names=inputs,
        **{f"{name}_token": token for name, token in special.items()},
    )
