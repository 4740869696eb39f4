"""The look at all text: counts exact against the tokenizer that will cut it."""

from __future__ import annotations

from typing import Any

import pytest

from st_xling.models import tiny_encoder
from st_xling.training import mixture as texts_module
from st_xling.training.mixture import TextReport, report_texts

TEXTS = [
    "",
    "Der Hund schläft unter dem Tisch.",
    "لا أعرف أين المفتاح.",
    "แมวดำตัวหนึ่งนั่งอยู่บนหลังคา",
    "我买了三本旧书。",
    "Él cree que la cafe\u0301 está fría. 🙂👩‍👩‍👧",
    "kurz",
    "ein sehr langer Satz " * 30,
]


@pytest.fixture(scope="module", params=["bert", "xlm-roberta"])
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_encoder(TEXTS * 2, vocabulary=200, layers=1, hidden_size=16, max_length=12, architecture=request.param)


@pytest.mark.parametrize("max_length", [3, 8, 12])
def test_counts_are_those_of_the_tokenizer(model: Any, max_length: int) -> None:
    tokenizer = model.tokenizer
    whole = [tokenizer(text, verbose=False)["input_ids"] for text in TEXTS]
    cut = [tokenizer(text, truncation=True, max_length=max_length)["input_ids"] for text in TEXTS]
    report = report_texts(tokenizer, iter(TEXTS), max_length=max_length)
    assert report.texts == len(TEXTS)
    assert report.truncated == sum(left != right for left, right in zip(whole, cut)) > 0
    assert report.longest == max(len(ids) for ids in whole)
    assert report.token_ids == {token for ids in cut for token in ids}


def test_a_text_of_just_the_limit_is_not_cut(model: Any) -> None:
    length = len(model.tokenizer("Der Hund")["input_ids"])
    assert report_texts(model.tokenizer, ["Der Hund"], max_length=length).truncated == 0
    assert report_texts(model.tokenizer, ["Der Hund"], max_length=length - 1).truncated == 1


def test_token_ids_are_those_the_encoder_sees(model: Any) -> None:
    seen = {int(token) for text in TEXTS for token in model.preprocess([text])["input_ids"].flatten()}
    assert report_texts(model.tokenizer, TEXTS, max_length=model.max_seq_length).token_ids == seen


def test_a_cut_text_keeps_its_closing_token(model: Any) -> None:
    cut = model.tokenizer(TEXTS[-1], truncation=True, max_length=4)["input_ids"]
    assert report_texts(model.tokenizer, TEXTS[-1:], max_length=4).token_ids == set(cut)


def test_never_cut(model: Any) -> None:
    report = report_texts(model.tokenizer, TEXTS, max_length=None)
    assert report.truncated == 0 and report.longest > 100


def test_batches_add_up(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = report_texts(model.tokenizer, TEXTS, max_length=8)
    monkeypatch.setattr(texts_module, "BATCH_TEXTS", 3)
    assert report_texts(model.tokenizer, TEXTS, max_length=8) == whole
    assert report_texts(model.tokenizer, [], max_length=8) == TextReport()
