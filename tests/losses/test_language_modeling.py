"""MLM and TLM: what is hidden, and the loss against its definition, one hidden token at a time."""

import pytest
import torch

from st_xling.losses import TranslationLanguageModelingLoss, token_inputs
from st_xling.losses.token_inputs import mask_tokens
from st_xling.models import backbone
from tests import reference


def test_the_shares_are_those_of_bert():
    torch.manual_seed(0)
    ids = torch.full((200, 500), 7)
    corrupted, hidden = mask_tokens(ids, torch.ones_like(ids, dtype=torch.bool), mask_id=4, vocabulary=1000)
    shares = [is_so.float().mean().item() for is_so in (hidden, corrupted[hidden] == 4, corrupted[hidden] == 7)]
    assert shares == pytest.approx([0.15, 0.8, 0.1], abs=0.02)
    assert torch.equal(corrupted[~hidden], ids[~hidden])
    maskable = torch.rand(200, 500) < 0.5
    assert torch.equal(mask_tokens(ids, maskable, mask_id=4, vocabulary=40, probability=1.0)[1], maskable)


def test_random_words_are_ids_that_the_encoder_has(make_model, features):
    """A tokenizer may have more tokens than the encoder has rows: those it cannot read. Nothing hidden gives 0."""
    model = make_model()
    assert TranslationLanguageModelingLoss(model, mask_probability=1e-9)(features(model)).item() == 0.0
    loss = TranslationLanguageModelingLoss(model, mask_probability=1.0)
    model.tokenizer.add_tokens([f"neu{number}" for number in range(5000)])
    for seed in range(3):
        torch.manual_seed(seed)
        assert torch.isfinite(loss(features(model)))


@pytest.fixture
def fixed_masks(monkeypatch):
    monkeypatch.setattr(token_inputs, "mask_tokens", reference.every_third)


def definition(loss, texts, positions, segments=None):
    """−log P of each hidden token, the encoder reading one unpadded text (ids of one row) at a time."""
    parts = backbone(loss.model)
    losses = []
    tokenizer = parts.tokenizer
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    for row, ids in enumerate(texts):
        hidden = [t for t, id_ in enumerate(ids.tolist()) if id_ % 3 == 0 and id_ not in special]
        corrupted = ids.clone()
        corrupted[hidden] = tokenizer.mask_token_id
        segment_ids = torch.zeros_like(ids) if segments is None else segments[row]
        output = parts.model(
            input_ids=corrupted[None], position_ids=positions[row][None], token_type_ids=segment_ids[None]
        ).last_hidden_state[0]
        states = reference.transform(output, loss.head)
        logits = states @ parts.word_embeddings.weight.T + loss.head.bias
        losses += [-reference.log_softmax(logits[t].tolist(), int(ids[t])) for t in hidden]
    return sum(losses) / len(losses)


@pytest.mark.parametrize("architecture", ["bert", "xlm-roberta"])
@pytest.mark.parametrize(
    "options",
    [
        {"positions": "restarting"},
        {"positions": "running", "segments": True},
        {"objective": "mlm", "contiguous": True, "positions": "running", "segments": True},
    ],
    ids=["xlm", "amber", "amber, monolingual"],
)
def test_pairs_equal_the_definition(make_model, features, fixed_masks, architecture, options):
    model = make_model(architecture=architecture, max_length=64).double()
    loss = TranslationLanguageModelingLoss(model, **options).double()
    parts = backbone(model)
    torch.nn.init.normal_(parts.embeddings.token_type_embeddings.weight)
    texts = []
    positions = []
    segments = []
    for x, y in zip(*(unpadded(column) for column in features(model))):
        y = y[1:]  # without CLS
        second = torch.arange(len(y)) + (1 if options["positions"] == "restarting" else len(x))
        texts.append(torch.cat([x, y]))
        positions.append(torch.cat([torch.arange(len(x)), second]) + parts.position_offset)
        two = options.get("segments") and architecture == "bert"  # XLM-R has a single segment
        segments.append(torch.tensor([0] * len(x) + [int(bool(two))] * len(y)))
    expected = definition(loss, texts, positions, segments)
    assert loss(features(model)).item() == pytest.approx(expected, rel=1e-9)


def unpadded(column):
    return [ids[mask.bool()] for ids, mask in zip(column["input_ids"], column["attention_mask"])]


def test_mlm_reads_every_sentence_alone(make_model, features, fixed_masks):
    model = make_model().double()
    loss = TranslationLanguageModelingLoss(model, objective="mlm").double()
    texts = [ids for column in features(model) for ids in unpadded(column)]
    expected = definition(loss, texts, [torch.arange(len(ids)) for ids in texts])
    assert loss(features(model)).item() == pytest.approx(expected, rel=1e-9)


def test_monolingual_pairs_stand_in_columns_of_their_own(make_model, features, fixed_masks):
    """AMBER's union of monolingual and parallel text: a row without monolingual text counts for nothing."""
    model = make_model(max_length=64).double()
    tlm = TranslationLanguageModelingLoss(model).double()
    mlm = TranslationLanguageModelingLoss(model, objective="mlm", contiguous=True).double()
    texts = ["The dog is sleeping.", "I bought three old books.", ""], ["It is tired.", "They are red.", ""]
    mono = [model.preprocess(column) for column in texts]
    components = (tlm.on(0, 1) + mlm.on(2, 3))([*features(model, slice(0, 3)), *mono])
    assert mlm.head is tlm.head
    alone = mlm([model.preprocess(column[:2]) for column in texts])
    values = [value.item() for value in components.values()]
    assert values == pytest.approx([tlm(features(model, slice(0, 3))).item(), alone.item()], rel=1e-9)


def test_what_is_refused(make_model):
    model = make_model()
    for name, value, message in (
        ("objective", "clm", "must be one of .* got 'clm'"),
        ("mask_probability", 0.0, r"must lie in \(0, 1\]: got 0\.0"),
        ("positions", "xlm", "must be one of .*restarting.*running.* got 'xlm'"),
        ("head", "old", "must be one of .*auto.*new.* got 'old'"),
        ("contiguous", True, ".* 'mlm': got 'tlm'"),
    ):
        with pytest.raises(ValueError, match=f"{name} {message}"):
            TranslationLanguageModelingLoss(model, **{name: value})
    model.tokenizer.mask_token = None
    with pytest.raises(ValueError, match="TLM needs a mask token"):
        TranslationLanguageModelingLoss(model)
