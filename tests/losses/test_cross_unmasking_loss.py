"""Cross-unmasking: the definition as a loop, what the head sees, gradients, and bad input."""

import pytest
import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Dense

from st_xling.losses import CrossUnmaskingLoss, token_inputs
from st_xling.models.backbones import backbone
from tests import reference

TOKENS = ("input_ids", "attention_mask")


@pytest.fixture
def loss(make_model, monkeypatch):
    monkeypatch.setattr(token_inputs, "mask_tokens", reference.every_third)
    torch.manual_seed(0)
    return CrossUnmaskingLoss(make_model().double(), layers=2).eval()


def test_it_is_the_definition_pair_by_pair(loss, features):
    model = loss.model
    parts = backbone(model)
    columns = features(model)
    value = loss([dict(column) for column in columns])
    means = []
    for side in (0, 1):
        losses = []
        for row in range(len(columns[0]["input_ids"])):
            text = {key: columns[side][key][row : row + 1] for key in TOKENS}
            translation = {key: columns[1 - side][key][row : row + 1] for key in TOKENS}
            ids = text["input_ids"][:, text["attention_mask"][0].bool()]
            words = torch.ones_like(ids, dtype=torch.bool)
            words[0, [0, -1]] = False  # CLS and SEP
            corrupted, hidden = reference.every_third(ids, words, mask_id=loss.mask_id, vocabulary=300)
            states = parts.model(input_ids=corrupted).last_hidden_state
            states = torch.cat([model(translation)["sentence_embedding"][:, None], states[:, 1:]], dim=1)
            states = loss.head(loss.unmasking(states)[hidden])
            logits = states @ parts.word_embeddings.weight.T + loss.head.bias
            losses += F.cross_entropy(logits, ids[hidden], reduction="none").tolist()
        means.append(sum(losses) / len(losses))
    assert value.item() == pytest.approx(sum(means) / 2, rel=1e-9)


def test_the_translation_is_read_and_the_own_cls_is_not(loss, features):
    columns = features(loss.model)
    batch = [dict(loss.model(dict(column))) for column in columns]
    value = loss.compute_loss(batch, None)
    for column in batch:
        column["token_embeddings"] = torch.full_like(column["token_embeddings"], torch.nan)  # of the whole text
    assert torch.equal(loss.compute_loss(batch, None), value)
    batch[0]["sentence_embedding"] = batch[0]["sentence_embedding"].flip(0)
    assert not torch.equal(loss.compute_loss(batch, None), value)


def test_what_is_refused(make_model, features):
    for options, fact in (({"mask_probability": 0.0}, "0.0"), ({"layers": 0}, "0")):
        with pytest.raises(ValueError, match=fact):
            CrossUnmaskingLoss(make_model(), **options)
    model = make_model()
    model.append(Dense(16, 8))
    with pytest.raises(ValueError, match="16.*8"):
        CrossUnmaskingLoss(model)(features(model))
