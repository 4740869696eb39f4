"""RTL against its definition: each pair alone, unpadded, through the head's own layers, one token at a time."""

from __future__ import annotations

import pytest
import torch

from st_xling.losses import RepresentationTranslationLoss
from st_xling.models import backbone
from tests import reference

ARCHITECTURES = ["bert", "xlm-roberta"]


def language_ids(column, ids):
    return {**column, "language": torch.tensor(ids)}


def definition(loss, columns, *, given, rebuilt, rows, language=None, scored=None):
    """Equations 4 and 6 for the given rows; returns every scored token's loss.

    Each pair goes through the encoder by itself, without padding. CLS is cut off both sides. The head's input is built
    by hand, and its layers are called whole, as the host defines them.
    """
    parts, head = backbone(loss.model), loss.head
    encoder = parts.model
    losses = []
    for row in rows:
        ids = [
            columns[side]["input_ids"][row][columns[side]["attention_mask"][row].bool()] for side in (given, rebuilt)
        ]
        source, target = (encoder(input_ids=one[None]).last_hidden_state[0, 1:] for one in ids)
        positions = torch.arange(1, len(ids[1])) + parts.position_offset
        masks = torch.full((len(positions),), parts.tokenizer.mask_token_id)
        queries = parts.embeddings(input_ids=masks[None], position_ids=positions[None])[0]
        hidden_here = torch.ones(len(positions), dtype=torch.bool) if scored is None else scored[row]
        queries = torch.where(hidden_here[:, None], queries, target)
        if language is not None:
            queries = queries + head.language_embeddings.weight[language[row]]
        states = torch.cat([source, queries])[None]
        for layer in head.layers:
            states = layer(states)
            states = states[0] if isinstance(states, tuple) else states
        words = head.vocabulary_head
        weight = parts.word_embeddings.weight if words.weight is None else words.weight
        if words.vocabulary_index is not None and words.weight is None:
            weight = weight[words.vocabulary_index]
        logits = reference.transform(states[0, len(source) :], words) @ weight.T + words.bias
        labels = ids[1][1:].tolist()
        if words.vocabulary_index is not None:
            classes = words.vocabulary_index.tolist()
            labels = [classes.index(label) if label in classes else None for label in labels]
        for token, label in enumerate(labels):
            if hidden_here[token] and label is not None:
                losses.append(-reference.log_softmax(logits[token].tolist(), label))
    return losses


def mean(values):
    return sum(values) / len(values)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("direction", "given", "rebuilt"), [("target", 0, 1), ("source", 1, 0)])
def test_equals_the_definition(make_model, features, pairs, architecture, layers, direction, given, rebuilt):
    model = make_model(architecture=architecture).double()
    loss = RepresentationTranslationLoss(model, layers=layers, direction=direction, tied=layers == 1).double()
    expected = mean(definition(loss, features(model), given=given, rebuilt=rebuilt, rows=range(len(pairs))))
    assert loss(features(model)).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rows", [8, 5, 1])
def test_both_directions_share_the_batch(make_model, features, rows):
    """Even rows rebuild targets, odd ones sources; the two means are averaged; the head is told the side."""
    model = make_model().double()
    loss = RepresentationTranslationLoss(model, direction="both").double()
    torch.nn.init.normal_(loss.head.language_embeddings.weight)
    columns = features(model, slice(0, rows))
    to_target = definition(loss, columns, given=0, rebuilt=1, rows=range(0, rows, 2), language=[1] * rows)
    to_source = definition(loss, columns, given=1, rebuilt=0, rows=range(1, rows, 2), language=[0] * rows)
    expected = (mean(to_target) + mean(to_source)) / 2 if rows > 1 else mean(to_target)
    assert loss(features(model, slice(0, rows))).item() == pytest.approx(expected, rel=1e-9)


def test_the_rebuilt_language_is_told_by_its_embedding(make_model, features):
    model = make_model().double()
    loss = RepresentationTranslationLoss(model, direction="source", languages=["de", "fr", "en"]).double()
    torch.nn.init.normal_(loss.head.language_embeddings.weight)
    columns, told = features(model), [0, 1, 1, 0, 0, 1, 0, 1]
    expected = mean(definition(loss, columns, given=1, rebuilt=0, rows=range(8), language=told))
    source, target = features(model)
    value = loss([language_ids(source, told), language_ids(target, [2] * 8)])
    assert value.item() == pytest.approx(expected, rel=1e-9)
    other = loss([language_ids(features(model)[0], [1] * 8), language_ids(features(model)[1], [2] * 8)])
    assert other.item() != pytest.approx(expected, rel=1e-6)


def test_a_mask_ratio_shows_the_other_tokens(make_model, features, monkeypatch):
    """Which tokens are masked is drawn by torch.rand; the draw is replayed here to build the definition."""
    model = make_model().double()
    loss = RepresentationTranslationLoss(model, mask_ratio=0.5).double()
    columns = features(model)
    mask = columns[1]["attention_mask"].bool()
    torch.manual_seed(5)
    draw = torch.rand(mask[:, 1:].shape) < 0.5  # CLS's column is cut before the draw
    scored = [row[: int(length) - 1] for row, length in zip(draw, mask.sum(dim=1))]
    expected = mean(definition(loss, columns, given=0, rebuilt=1, rows=range(len(mask)), scored=scored))
    torch.manual_seed(5)
    assert loss(features(model)).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("tied", [True, False])
def test_a_target_vocabulary_narrows_the_softmax(make_model, features, tied):
    model = make_model().double()
    used = sorted(set(features(model)[1]["input_ids"].flatten().tolist()))
    loss = RepresentationTranslationLoss(model, target_vocabulary=used, tied=tied).double()
    expected = mean(definition(loss, features(model), given=0, rebuilt=1, rows=range(8)))
    assert loss(features(model)).item() == pytest.approx(expected, rel=1e-9)
    full = RepresentationTranslationLoss(model, tied=tied).double()
    assert full(features(model)).item() > loss(features(model)).item()
    half = RepresentationTranslationLoss(model, target_vocabulary=used[::2], tied=tied).double()
    scored = definition(half, features(model), given=0, rebuilt=1, rows=range(8))  # others are not scored
    assert half(features(model)).item() == pytest.approx(mean(scored), rel=1e-9)


def test_padding_and_the_other_column_do_not_matter(make_model, features):
    """Columns padded far to the right, in separate passes or merged, give the same loss."""
    model = make_model().double()
    loss = RepresentationTranslationLoss(model).double()
    wide = []
    for column in features(model):
        padding = 24 - column["input_ids"].shape[1]
        wide.append(
            {
                name: torch.nn.functional.pad(value, (0, padding))
                for name, value in column.items()
                if value is not None and hasattr(value, "shape")
            }
        )
    assert loss(wide).item() == pytest.approx(loss(features(model)).item(), rel=1e-9)


def test_neither_cls_is_seen(make_model, features):
    """Replacing the CLS states of both sides by noise changes nothing; replacing a word's state does."""
    model = make_model().double()
    loss = RepresentationTranslationLoss(model).double()

    def batch(place):
        encoded = [dict(model(column)) for column in features(model)]
        for column in encoded:
            column["token_embeddings"] = column["token_embeddings"].clone()
            column["token_embeddings"][:, place] = torch.linspace(-9, 9, 16)
        return encoded

    untouched = loss(features(model)).item()
    assert loss.compute_loss(batch(0), None).item() == pytest.approx(untouched, rel=1e-9)
    assert loss.compute_loss(batch(1), None).item() != pytest.approx(untouched, rel=1e-9)


def test_the_head_starts_as_a_copy_of_the_last_layers(make_model):
    model = make_model(layers=3)
    loss = RepresentationTranslationLoss(model, layers=2)
    for copied, layer in zip(loss.head.layers, backbone(model).layers[1:]):
        for (name, mine), (_, theirs) in zip(copied.named_parameters(), layer.named_parameters()):
            assert torch.equal(mine, theirs), name
            assert mine.data_ptr() != theirs.data_ptr(), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtypes_give_finite_gradients(make_model, features, dtype):
    model = make_model().to(dtype)
    loss = RepresentationTranslationLoss(model).to(dtype)
    value = loss(features(model))
    value.backward()
    gradients = [p.grad for p in loss.parameters() if p.grad is not None]
    assert torch.isfinite(value) and all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": 3}, r"layers must lie in 1\.\.2, the encoder's depth: got 3"),
        ({"layers": 0}, r"layers must lie in 1\.\.2"),
        ({"direction": "sideways"}, "direction must be one of .* got 'sideways'"),
        ({"mask_ratio": 0.0}, r"mask_ratio must lie in \(0, 1\]: got 0.0"),
        ({"mask_ratio": 1.5}, "mask_ratio must lie in"),
        ({"languages": "de"}, "languages must be a list of distinct names: got 'de'"),
        ({"languages": ["de", "de"]}, "languages must be a list of distinct names"),
        ({"target_vocabulary": []}, "target_vocabulary must hold distinct token ids"),
        ({"target_vocabulary": [1, 1]}, "2 ids, 1 of them distinct"),
        ({"target_vocabulary": [10**6]}, "target_vocabulary must hold ids of this tokenizer"),
    ],
)
def test_options_out_of_range(make_model, options, message):
    with pytest.raises(ValueError, match=message):
        RepresentationTranslationLoss(make_model(), **options)


def test_languages_without_language_columns(make_model, features):
    model = make_model()
    loss = RepresentationTranslationLoss(model, direction="source", languages=["de", "fr"])
    with pytest.raises(ValueError, match="add the columns source_language and target_language"):
        loss(features(model))


def test_models_of_another_kind(make_model):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    model = make_model()
    model.tokenizer.mask_token = None
    with pytest.raises(ValueError, match="representation translation needs a mask token"):
        RepresentationTranslationLoss(model)
    static = SentenceTransformer(modules=[StaticEmbedding(make_model().tokenizer, embedding_dim=8)])
    with pytest.raises(ValueError, match="needs the token embeddings of a transformer encoder.*StaticEmbedding"):
        RepresentationTranslationLoss(static)


def test_an_encoder_of_another_shape_is_told_what_it_lacks(tmp_path, make_model):
    from transformers import DistilBertConfig, DistilBertModel

    from st_xling.models import load_encoder

    config = DistilBertConfig(vocab_size=300, dim=16, n_layers=1, n_heads=2, hidden_dim=32, max_position_embeddings=32)
    DistilBertModel(config).save_pretrained(tmp_path)
    make_model().tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="DistilBertModel lacks encoder.layer"):
        RepresentationTranslationLoss(load_encoder(str(tmp_path)))
