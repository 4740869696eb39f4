"""WA against its definition; the attention weights against transformers' own eager attention."""

import pytest
import torch

from st_xling.losses import WordAlignmentLoss, word_alignment
from st_xling.models import backbone
from tests import reference


def attention(batch: int = 3, heads: int = 2, x: int = 5, y: int = 4):
    generator = torch.Generator().manual_seed(0)
    to_source = torch.rand(batch, heads, y, x, generator=generator, dtype=torch.float64)
    to_target = torch.rand(batch, heads, x, y, generator=generator, dtype=torch.float64)
    source_mask = torch.tensor([[1, 1, 1, 1, 1], [0, 1, 1, 0, 0], [0, 1, 1, 1, 0]], dtype=torch.bool)
    target_mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 0, 0]], dtype=torch.bool)
    return to_source, to_target, source_mask, target_mask


def test_equals_the_formula():
    arguments = attention()
    expected = reference.word_alignment(*(argument.tolist() for argument in arguments))
    assert word_alignment(*arguments).item() == pytest.approx(expected, rel=1e-9)


def test_symmetry_empty_pairs_and_shapes():
    to_source, to_target, xs, ys = attention()
    torch.testing.assert_close(word_alignment(to_target, to_source, ys, xs), word_alignment(*attention()))
    expected = word_alignment(to_source[:2], to_target[:2], xs[:2], ys[:2])
    empty = xs.clone()
    empty[2] = False  # a pair without words does not count
    torch.testing.assert_close(word_alignment(to_source, to_target, empty, ys), expected)
    with pytest.raises(ValueError, match=r"\(3, 2, 4, 5\)"):
        word_alignment(to_source, to_source, xs, ys)


def definition(loss, columns):
    """Each pair alone and unpadded, read twice with eager attention and the two masks written out."""
    parts = backbone(loss.model)
    encoder = parts.model
    encoder.set_attn_implementation("eager")
    losses = []
    for row in range(len(columns[0]["input_ids"])):
        x, y = (column["input_ids"][row][column["attention_mask"][row].bool()] for column in columns)
        y = y[1:]  # without CLS
        ids = torch.cat([x, y])[None]
        cut = len(x)
        size = len(x) + len(y)
        second = torch.arange(1, len(y) + 1) if loss.positions == "restarting" else torch.arange(cut, size)
        positions = torch.cat([torch.arange(len(x)), second])[None] + parts.position_offset
        two = loss.segments and parts.embeddings.token_type_embeddings.num_embeddings > 1
        segments = torch.tensor([[0] * len(x) + [int(two)] * len(y)])
        matrices = []
        for target_first in (False, True):
            mask = torch.full((size, size), torch.finfo(torch.float64).min, dtype=torch.float64)
            for i in range(size):
                for j in range(size):
                    i_seen = (i >= cut) == target_first
                    j_seen = (j >= cut) == target_first
                    if j_seen or (not i_seen and j < i):
                        mask[i, j] = 0.0
            output = encoder(
                inputs_embeds=parts.word_embeddings(ids),
                position_ids=positions,
                token_type_ids=segments,
                attention_mask=mask[None, None],
                output_attentions=True,
            )
            matrices.append(output.attentions[-1])
        special = set(parts.tokenizer.all_special_ids)
        x_mask = [int(token) not in special for token in x]
        y_mask = [int(token) not in special for token in y]
        to_source = matrices[0][:, :, cut:, :cut]
        to_target = matrices[1][:, :, :cut, cut:]
        losses.append(reference.word_alignment(to_source.tolist(), to_target.tolist(), [x_mask], [y_mask]))
    encoder.set_attn_implementation("sdpa")
    return sum(losses) / len(losses)


@pytest.mark.parametrize("architecture", ["bert", "xlm-roberta"])
@pytest.mark.parametrize("options", [{}, {"positions": "running", "segments": True}], ids=["xlm", "amber"])
def test_equals_the_definition_on_an_encoder(make_model, features, architecture, options):
    model = make_model(architecture=architecture, max_length=64).double()
    torch.manual_seed(0)
    for parameter in model.parameters():  # random weights this small attend evenly: make them choose
        torch.nn.init.normal_(parameter, std=0.5)
    loss = WordAlignmentLoss(model, **options)
    expected = definition(loss, features(model, slice(0, 4)))
    assert loss(features(model, slice(0, 4))).item() == pytest.approx(expected, rel=1e-6)


def test_positions_that_run_on_must_fit(make_model, features):
    model = make_model(max_length=24)
    loss = WordAlignmentLoss(model, positions="running")
    with pytest.raises(ValueError, match="a pair must fit the encoder's 26 positions"):
        loss(features(model))
