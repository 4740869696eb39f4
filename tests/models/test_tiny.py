"""The encoder built from text alone: the same wherever it is built, and able to read every script."""

import hashlib
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from st_xling.models import backbone, tiny_encoder, train_tokenizer
from tests.training.children import CONTEXT

TEXTS = [
    "Der Hund schläft unter dem Tisch.",
    "The dog is sleeping under the table.",
    "لا أعرف أين المفتاح.",
    "แมวดำตัวหนึ่งนั่งอยู่บนหลังคา",
    "我买了三本旧书，他买了一本新书。",
    "Tôi đã gặp cô ấy hôm qua ở chợ.",
    "Él cree que la cafe\u0301 está fría. 🙂",
    "日本語とひらがな、カタカナ",
    "ग्रामीण भारत",
] * 2
SHAPE: dict[str, Any] = {"vocabulary": 120, "layers": 1, "hidden_size": 16}
ARCHITECTURES = ["bert", "xlm-roberta"]


def digest(model: Any, texts: Sequence[str]) -> str:
    """Of everything that decides an embedding: pieces with their ids, and weights."""
    pieces = [model.tokenizer(text)["input_ids"] for text in texts]
    weights = [(name, tensor.tolist()) for name, tensor in model.state_dict().items()]
    vocabulary = sorted(model.tokenizer.get_vocab().items())
    return hashlib.sha256(repr((vocabulary, pieces, weights)).encode()).hexdigest()


def seeded_digest() -> str:
    torch.set_num_threads(1)
    return digest(tiny_encoder(TEXTS, seed=3, **SHAPE), TEXTS)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_decided_by_text_and_seed(architecture: Any) -> None:
    state = torch.get_rng_state()
    first, same, other = (
        tiny_encoder(iter(TEXTS), architecture=architecture, seed=seed, **SHAPE) for seed in (3, 3, 4)
    )
    assert torch.equal(state, torch.get_rng_state()) and first.model_card_data.base_model is None
    assert digest(first, TEXTS) == digest(same, TEXTS) != digest(other, TEXTS)
    assert first.tokenizer.get_vocab() == other.tokenizer.get_vocab()


@pytest.mark.slow
def test_the_same_in_other_processes() -> None:
    """A vocabulary of 120 cannot hold all characters, so that ties are cut: no hash order may decide which."""
    with CONTEXT.Pool(2, maxtasksperchild=1) as pool:
        elsewhere = [pool.apply(seeded_digest), pool.apply(seeded_digest)]
    assert elsewhere == [seeded_digest()] * 2


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_architectures(architecture: Any) -> None:
    model = tiny_encoder(TEXTS, architecture=architecture, max_length=10, **SHAPE)
    parts = backbone(model)
    assert parts.model.config.model_type == architecture
    assert parts.position_offset == {"bert": 0, "xlm-roberta": parts.model.config.pad_token_id + 1}[architecture]
    assert len(parts.layers) == 1 and parts.hidden_size == 16 == model.get_embedding_dimension()
    ids = model.tokenizer("Der Hund")["input_ids"]
    assert (ids[0], ids[-1]) == (model.tokenizer.cls_token_id, model.tokenizer.sep_token_id)
    long = model.encode(["ein sehr langer Satz " * 50], convert_to_tensor=True)  # positions reach as far as the length
    assert long.shape == (1, 16) and bool(torch.isfinite(long).all())
    assert model.preprocess(["ein sehr langer Satz " * 50])["input_ids"].shape == (1, 10)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_script_is_read(architecture: Any) -> None:
    """With room for the alphabet no text has an [UNK], not even a part of a sentence; without, none is [UNK] alone."""
    tokenizer = train_tokenizer(TEXTS, vocabulary=600, architecture=architecture)
    scarce = train_tokenizer(TEXTS, vocabulary=60, architecture=architecture)
    for text in TEXTS[:9]:
        for part in (text, text[: len(text) // 2], text[1:]):
            assert tokenizer.unk_token not in tokenizer.tokenize(part)
        assert set(scarce.tokenize(text)) - {"▁"} != {tokenizer.unk_token}


def test_what_is_refused() -> None:
    for texts, options, message in (
        (TEXTS, {"architecture": "gpt"}, "architecture .*gpt"),
        (TEXTS, {"vocabulary": 4}, "vocabulary .*4"),
        (["  ", "\n"], {}, "needs text"),
    ):
        with pytest.raises(ValueError, match=message):
            tiny_encoder(texts, **{**SHAPE, **options})


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"vocabulary": 10**9}, "vocabulary must be from 15 to 1,000,000: got 1,000,000,000"),
        ({"vocabulary": 3}, "vocabulary must be from 15"),
        ({"hidden_size": 0}, "hidden_size must be from 2 to 8,192: got 0"),
        ({"hidden_size": 30, "heads": 4}, "hidden_size must be a multiple of heads, 4: got 30"),
        ({"max_length": -3}, "max_length must be from 3 to 32,768: got -3"),
        ({"layers": 0}, "layers must be from 1"),
        ({"dropout": float("nan")}, "dropout must be at least 0 and below 1: got nan"),
        ({"heads": 0}, "heads"),
        ({"seed": -1}, "seed must be from 0"),
    ],
)
def test_sizes_that_cannot_be(options: dict[str, Any], fact: str) -> None:
    """``hidden_size=0`` was a division by zero within torch, a billion pieces an hour of waiting."""
    with pytest.raises(ValueError, match=fact):
        tiny_encoder(TEXTS, **options)


def test_case_is_folded_and_accents_are_kept() -> None:
    """Vietnamese words differ by accents alone."""
    tokenizer = train_tokenizer(TEXTS, vocabulary=400)
    assert tokenizer.tokenize("DER HUND") == tokenizer.tokenize("der hund")
    assert tokenizer.tokenize("gặp") != tokenizer.tokenize("gap")
