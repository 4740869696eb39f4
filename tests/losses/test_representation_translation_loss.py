"""RTL against its definition: each pair alone, unpadded, through the head's own layers, one token at a time."""

import pytest
import torch

from st_xling.losses import RepresentationTranslationLoss
from st_xling.models import backbone
from tests import reference


def definition(loss, columns, *, direction="target", rows=range(8), language=None, scored=None):
    """Equations 4 and 6: the mean loss of the scored tokens of some rows.

    Each pair goes through the encoder by itself, without padding. CLS is cut off both sentences. The head's input is
    built by hand, and its layers are called whole, as transformers defines them.
    """
    parts = backbone(loss.model)
    head = loss.head
    order = (0, 1) if direction == "target" else (1, 0)
    losses = []
    for row in rows:
        ids = [columns[side]["input_ids"][row][columns[side]["attention_mask"][row].bool()] for side in order]
        source, target = (parts.model(input_ids=row_ids[None]).last_hidden_state[0, 1:] for row_ids in ids)
        positions = torch.arange(1, len(ids[1])) + parts.position_offset
        masks = torch.full((len(positions),), parts.tokenizer.mask_token_id)
        queries = parts.embeddings(input_ids=masks[None], position_ids=positions[None])[0]
        hidden = torch.ones(len(positions), dtype=torch.bool) if scored is None else scored[row]
        queries = torch.where(hidden[:, None], queries, target)
        if language is not None:
            queries = queries + head.language_embeddings.weight[language[row]]
        states = torch.cat([source, queries])[None]
        for layer in head.layers:
            states = layer(states)
            states = states[0] if isinstance(states, tuple) else states
        words = head.vocabulary_head
        weight = parts.word_embeddings.weight if words.weight is None else words.weight
        labels = ids[1][1:].tolist()
        if words.vocabulary_index is not None:
            weight = weight[words.vocabulary_index] if words.weight is None else weight
            classes = words.vocabulary_index.tolist()
            labels = [classes.index(label) if label in classes else None for label in labels]
        logits = reference.transform(states[0, len(source) :], words) @ weight.T + words.bias
        for token, label in enumerate(labels):
            if hidden[token] and label is not None:
                losses.append(-reference.log_softmax(logits[token].tolist(), label))
    return sum(losses) / len(losses)


@pytest.mark.parametrize(
    ("architecture", "layers", "direction"),
    [("bert", 1, "target"), ("bert", 2, "source"), ("xlm-roberta", 2, "target")],
)
def test_equals_the_definition(make_model, features, architecture, layers, direction):
    model = make_model(architecture=architecture).double()
    loss = RepresentationTranslationLoss(model, layers=layers, direction=direction, tied=layers == 1).double()
    expected = definition(loss, features(model), direction=direction)
    assert loss(features(model)).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rows", [8, 5, 1])
def test_both_directions_share_the_batch(make_model, features, rows):
    """Even rows rebuild targets, odd ones sources; the two means are averaged; the head knows the side."""
    model = make_model().double()
    loss = RepresentationTranslationLoss(model, direction="both").double()
    torch.nn.init.normal_(loss.head.language_embeddings.weight)
    columns = features(model, slice(0, rows))
    means = [definition(loss, columns, rows=range(0, rows, 2), language=[1] * rows)]
    if rows > 1:
        odd = range(1, rows, 2)
        means.append(definition(loss, columns, direction="source", rows=odd, language=[0] * rows))
    assert loss(features(model, slice(0, rows))).item() == pytest.approx(sum(means) / len(means), rel=1e-9)


def test_the_rebuilt_language_is_known_by_its_embedding(make_model, features):
    model = make_model().double()
    loss = RepresentationTranslationLoss(model, direction="source", languages=["de", "fr", "en"]).double()
    torch.nn.init.normal_(loss.head.language_embeddings.weight)

    def columns(source_ids):
        named = zip(features(model), (source_ids, [2] * 8))
        return [{**column, "language": torch.tensor(ids)} for column, ids in named]

    languages = [0, 1, 1, 0, 0, 1, 0, 1]
    expected = definition(loss, features(model), direction="source", language=languages)
    assert loss(columns(languages)).item() == pytest.approx(expected, rel=1e-9)
    assert loss(columns([1] * 8)).item() != pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="add the columns source_language and target_language"):
        loss(features(model))


def test_a_mask_ratio_shows_the_other_tokens(make_model, features):
    """Which tokens are masked is drawn by torch.rand; the draw is replayed here to build the definition."""
    model = make_model().double()
    loss = RepresentationTranslationLoss(model, mask_ratio=0.5).double()
    mask = features(model)[1]["attention_mask"].bool()
    torch.manual_seed(5)
    draw = torch.rand(mask[:, 1:].shape) < 0.5  # CLS's column is cut before the draw
    scored = [row[: int(length) - 1] for row, length in zip(draw, mask.sum(dim=1))]
    expected = definition(loss, features(model), scored=scored)
    torch.manual_seed(5)
    assert loss(features(model)).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("tied", [True, False])
def test_a_target_vocabulary_narrows_the_softmax(make_model, features, tied):
    """Tokens outside of it are not scored."""
    model = make_model().double()
    used = features(model)[1]["input_ids"].unique().tolist()
    for ids in (used, used[::2]):
        loss = RepresentationTranslationLoss(model, target_vocabulary=ids, tied=tied).double()
        assert loss(features(model)).item() == pytest.approx(definition(loss, features(model)), rel=1e-9)


def test_padding_does_not_matter_and_neither_cls_is_seen(make_model, features):
    """Noise in both CLS states changes nothing; in a word's state it does."""
    model = make_model().double()
    loss = RepresentationTranslationLoss(model).double()
    expected = loss(features(model)).item()
    wide = features(model)
    for column in wide:
        padding = (0, 24 - column["input_ids"].shape[1])
        column |= {key: torch.nn.functional.pad(column[key], padding) for key in ("input_ids", "attention_mask")}
        del column["token_type_ids"]
    assert loss(wide).item() == pytest.approx(expected, rel=1e-9)
    values = []
    for position in (0, 1):
        batch = [dict(model(column)) for column in features(model)]
        for column in batch:
            column["token_embeddings"] = column["token_embeddings"].clone()
            column["token_embeddings"][:, position] = torch.linspace(-9, 9, 16)
        values.append(loss.compute_loss(batch, None).item())
    assert values[0] == pytest.approx(expected, rel=1e-9) != pytest.approx(values[1], rel=1e-9)


def test_options_out_of_range(make_model):
    model = make_model()
    for name, value, message in (
        ("layers", 3, r"must lie in 1\.\.2, .* got 3"),
        ("direction", "sideways", ".* got 'sideways'"),
        ("mask_ratio", 0.0, ".* got 0.0"),
        ("languages", ["de", "de"], "must be .* distinct"),
        ("target_vocabulary", [], "must contain distinct ids .* got 0 ids"),
        ("target_vocabulary", [1, 1], "must .* 2 ids, 1 of them distinct"),
        ("target_vocabulary", [10**6], "must contain .* ids of this tokenizer"),
    ):
        with pytest.raises(ValueError, match=f"{name} {message}"):
            RepresentationTranslationLoss(model, **{name: value})


def test_bfloat16_gives_finite_gradients(make_model, features):
    """Of an encoder in half precision, through the states of the sentence that the other one is rebuilt from."""
    loss = RepresentationTranslationLoss(make_model().to(torch.bfloat16)).to(torch.bfloat16)
    loss(features(loss.model)).backward()
    assert all(torch.isfinite(part.grad).all() for part in loss.parameters() if part.grad is not None)
    assert backbone(loss.model).layers[-1].output.dense.weight.grad.abs().sum() > 0
