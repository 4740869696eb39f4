"""MLM and TLM: what is hidden, and the loss against its definition, one hidden token at a time."""

from __future__ import annotations

import pytest
import torch

from st_xling.losses import TranslationLanguageModelingLoss
from st_xling.losses import translation_language_modeling as module
from st_xling.losses.token_inputs import mask_tokens, word_continuations
from st_xling.models import backbone
from tests import reference


def test_the_shares_are_those_of_bert():
    torch.manual_seed(0)
    ids = torch.full((200, 500), 7)
    corrupted, hidden = mask_tokens(ids, torch.ones_like(ids, dtype=torch.bool), mask_id=4, vocabulary=1000)
    share = hidden.float().mean().item()
    assert share == pytest.approx(0.15, abs=0.005)
    shown = corrupted[hidden]
    assert (shown == 4).float().mean().item() == pytest.approx(0.8, abs=0.02)
    assert (shown == 7).float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert torch.equal(corrupted[~hidden], ids[~hidden])
    maskable = torch.rand(200, 500) < 0.5
    assert torch.equal(mask_tokens(ids, maskable, mask_id=4, vocabulary=40, probability=1.0)[1], maskable)


def test_whole_words_are_hidden_together(make_model):
    tokenizer = make_model().tokenizer
    text = "Der Hund schläft, Mañana iré 我买了三本旧书。"
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    marks = word_continuations(tokenizer, len(tokenizer))
    maskable = ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    words, current = [], -1
    for id_ in ids[0].tolist():
        current += 0 if marks[id_] and words else 1
        words.append(current)
    split = 0
    for seed in range(30):
        torch.manual_seed(seed)
        _, hidden = mask_tokens(ids, maskable, mask_id=4, vocabulary=9, probability=0.5, continues_word=marks)
        for word in set(words):
            pieces = [bool(h) for h, w, m in zip(hidden[0], words, maskable[0]) if w == word and m]
            assert len(set(pieces)) <= 1
            split += len(pieces) > 1
    assert split > 0, "the text has no word of several pieces"


def test_vowel_signs_and_accents_continue_a_word():
    """XLM-R's pieces of Hindi and Thai hold marks, which are no letters; punctuation still begins a word."""

    class Tokenizer:
        tokens = ("<s>", "▁नम", "स्ते", "▁แม", "ว์", "e\u0301", "。", "▁", "x")
        all_special_tokens = ("<s>",)

        def __len__(self):
            return len(self.tokens)

        def convert_ids_to_tokens(self, ids):
            return [self.tokens[number] for number in ids]

    marks = word_continuations(Tokenizer(), 10)
    assert marks.tolist() == [False, False, True, False, True, True, False, False, True, False]


def test_random_words_are_ids_that_the_encoder_has(make_model, features):
    """A tokenizer may have more tokens than the encoder has rows: those it cannot read. Nothing hidden gives 0."""
    model = make_model()
    assert TranslationLanguageModelingLoss(model, mask_probability=1e-9)(features(model)).item() == 0.0
    loss = TranslationLanguageModelingLoss(model, mask_probability=1.0)
    model.tokenizer.add_tokens([f"neu{number}" for number in range(5000)])
    for seed in range(3):
        torch.manual_seed(seed)
        assert torch.isfinite(loss(features(model)))


def definition(loss, rows, corrupted_rows, hidden_rows, positions, segments=None):
    """−log P of each hidden token, the encoder reading one unpadded row at a time."""
    parts, losses = backbone(loss.model), []
    for row, (ids, corrupted, hidden, places) in enumerate(zip(rows, corrupted_rows, hidden_rows, positions)):
        segment_ids = torch.zeros_like(ids) if segments is None else segments[row]
        output = parts.model(
            input_ids=corrupted[None], position_ids=places[None], token_type_ids=segment_ids[None]
        ).last_hidden_state[0]
        states = reference.transform(output, loss.head)
        logits = states @ parts.word_embeddings.weight.T + loss.head.bias
        losses += [-reference.log_softmax(logits[t].tolist(), int(ids[t])) for t in range(len(ids)) if hidden[t]]
    return sum(losses) / len(losses)


@pytest.mark.parametrize("architecture", ["bert", "xlm-roberta"])
@pytest.mark.parametrize(
    "options",
    [
        {"positions": "restarting"},
        {"positions": "running"},
        {"positions": "running", "segments": True},
        {"objective": "mlm", "contiguous": True, "positions": "running", "segments": True},
    ],
    ids=["xlm", "running", "amber", "amber, monolingual"],
)
def test_pairs_equal_the_definition(make_model, features, monkeypatch, architecture, options):
    """The corruption is recorded from the one call and given to the definition."""
    model = make_model(architecture=architecture, max_length=64).double()
    loss = TranslationLanguageModelingLoss(model, mask_probability=0.3, **options).double()
    torch.nn.init.normal_(backbone(model).embeddings.token_type_embeddings.weight)
    restart = options["positions"] == "restarting"
    seen = {}

    def recording(input_ids, maskable, **options):
        seen["ids"], seen["maskable"] = input_ids, maskable
        seen["corrupted"], seen["hidden"] = mask_tokens(input_ids, maskable, **options)
        return seen["corrupted"], seen["hidden"]

    monkeypatch.setattr(module, "mask_tokens", recording)
    rows = slice(0, 2)
    columns = features(model, rows)
    value = loss(features(model, rows))
    offset = backbone(model).position_offset
    kept, positions, segments = [], [], []
    for row in range(2):
        lengths = [int(column["attention_mask"][row].sum()) for column in columns]
        width = columns[0]["input_ids"].shape[1]
        kept.append(torch.cat([torch.arange(lengths[0]), width + torch.arange(lengths[1] - 1)]))
        second = torch.arange(1, lengths[1]) if restart else lengths[0] + torch.arange(lengths[1] - 1)
        positions.append(torch.cat([torch.arange(lengths[0]), second]) + offset)
        two = options.get("segments") and architecture == "bert"  # XLM-R has a single segment
        segments.append(torch.tensor([0] * lengths[0] + [int(bool(two))] * (lengths[1] - 1)))
    pick = [[seen[name][row][kept[row]] for row in range(2)] for name in ("ids", "corrupted", "hidden")]
    for row, column in ((0, 0), (1, 1)):
        tokens = columns[column]["input_ids"][row][columns[column]["attention_mask"][row].bool()]
        assert torch.equal(
            pick[0][row][: len(tokens)] if column == 0 else pick[0][row][-len(tokens) + 1 :], tokens[column:]
        )
    special = torch.tensor(model.tokenizer.all_special_ids)
    assert not torch.isin(seen["ids"][seen["maskable"]], special[special != model.tokenizer.unk_token_id]).any()
    assert value.item() == pytest.approx(definition(loss, *pick, positions, segments), rel=1e-9)


def test_mlm_reads_every_sentence_alone(make_model, features, monkeypatch):
    model = make_model().double()
    loss = TranslationLanguageModelingLoss(model, objective="mlm", mask_probability=0.3).double()
    calls = []

    def recording(input_ids, maskable, **options):
        corrupted, hidden = mask_tokens(input_ids, maskable, **options)
        calls.append((input_ids, corrupted, hidden))
        return corrupted, hidden

    monkeypatch.setattr(module, "mask_tokens", recording)
    value = loss(features(model, slice(0, 3)))
    assert len(calls) == 2
    rows = [[], [], [], []]
    for (ids, corrupted, hidden), column in zip(calls, features(model, slice(0, 3))):
        for row in range(3):
            kept = column["attention_mask"][row].bool()
            length = int(kept.sum())
            values = (ids[row, :length], corrupted[row, :length], hidden[row, :length], torch.arange(length))
            for place, part in zip(rows, values):
                place.append(part)
    assert value.item() == pytest.approx(definition(loss, *rows), rel=1e-9)


def test_monolingual_pairs_stand_in_columns_of_their_own(make_model, features, monkeypatch):
    """AMBER's union of monolingual and parallel text: a row without monolingual text counts for nothing."""

    def every_third(input_ids, maskable, *, mask_id, **options):
        hidden = maskable & (input_ids % 3 == 0)
        return input_ids.masked_fill(hidden, mask_id), hidden

    monkeypatch.setattr(module, "mask_tokens", every_third)
    model = make_model(max_length=64).double()
    tlm = TranslationLanguageModelingLoss(model).double()
    mlm = TranslationLanguageModelingLoss(model, objective="mlm", contiguous=True).double()
    texts = ["The dog is sleeping.", "I bought three old books.", ""], ["It is tired.", "They are red.", ""]
    mono = [model.preprocess(column) for column in texts]
    found = (tlm.on(0, 1) + mlm.on(2, 3))([*features(model, slice(0, 3)), *mono])
    assert mlm.head is tlm.head
    alone = mlm([model.preprocess(column[:2]) for column in texts])
    values = [value.item() for value in found.values()]
    assert values == pytest.approx([tlm(features(model, slice(0, 3))).item(), alone.item()], rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "clm"}, "objective must be one of .* got 'clm'"),
        ({"mask_probability": 0.0}, r"mask_probability must lie in \(0, 1\]: got 0\.0"),
        ({"positions": "xlm"}, "positions must be one of .*restarting.*running.* got 'xlm'"),
        ({"head": "old"}, "head must be one of .*auto.*new.* got 'old'"),
        ({"contiguous": True}, "contiguous .* 'mlm': got 'tlm'"),
    ],
)
def test_options_out_of_range(make_model, options, message):
    with pytest.raises(ValueError, match=message):
        TranslationLanguageModelingLoss(make_model(), **options)


def test_a_tokenizer_without_a_mask_token(make_model):
    model = make_model()
    model.tokenizer.mask_token = None
    with pytest.raises(ValueError, match="TLM needs a mask token"):
        TranslationLanguageModelingLoss(model)
