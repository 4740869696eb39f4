"""The chunked vocabulary softmax is the plain one, whatever the chunks."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from st_xling.losses.vocabulary_softmax import vocabulary_cross_entropy
from tests import reference


def inputs(rows: int = 11, classes: int = 23, dim: int = 5, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(rows, dim, generator=generator, dtype=dtype, requires_grad=True)
    weight = torch.randn(classes, dim, generator=generator, dtype=dtype, requires_grad=True)
    bias = torch.randn(classes, generator=generator, dtype=dtype, requires_grad=True)
    labels = torch.randint(classes, (rows,), generator=generator)
    return hidden, weight, bias, labels


@pytest.mark.parametrize("chunk_rows", [1, 4, 11, 100, None])
def test_equals_the_formula(chunk_rows):
    hidden, weight, bias, labels = inputs()
    loss = vocabulary_cross_entropy(hidden, weight, labels, bias=bias, chunk_rows=chunk_rows)
    numbers = [part.tolist() for part in (hidden, weight, bias, labels)]
    assert loss.item() == pytest.approx(reference.vocabulary_cross_entropy(*numbers), rel=1e-9)


@pytest.mark.parametrize("chunk_rows", [1, 4, 11])
def test_gradients_equal_the_plain_softmax_once(chunk_rows):
    ours = inputs()
    plain = inputs()
    loss = vocabulary_cross_entropy(*ours[:2], ours[3], bias=ours[2], chunk_rows=chunk_rows)
    loss.mul(3.0).backward(retain_graph=True)
    F.cross_entropy(F.linear(*plain[:3]), plain[3]).mul(3.0).backward()
    for mine, theirs in zip(ours[:3], plain[:3]):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-9, atol=1e-12)
    with pytest.raises(RuntimeError, match="differentiated once"):
        loss.backward()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_close_to_the_exact_softmax(dtype):
    hidden, weight, bias, labels = inputs()
    low = [part.detach().to(dtype).requires_grad_() for part in (hidden, weight, bias)]
    loss = vocabulary_cross_entropy(*low[:2], labels, bias=low[2], chunk_rows=4)
    loss.backward()
    exact = F.cross_entropy(F.linear(hidden, weight, bias), labels)
    exact.backward()
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), rel=2e-2)
    for mine, theirs in zip(low, (hidden, weight, bias)):
        assert mine.grad.dtype == dtype
        torch.testing.assert_close(mine.grad.double(), theirs.grad, rtol=0.1, atol=0.02)


def test_no_states_are_zero_with_a_zero_gradient():
    """Of a batch in which nothing is scored; NaN would end the run."""
    hidden, weight, bias, labels = inputs(rows=0)
    loss = vocabulary_cross_entropy(hidden, weight, labels, bias=bias)
    loss.backward()
    assert loss.item() == 0.0 and not weight.grad.any() and not bias.grad.any() and hidden.grad.shape == (0, 5)


def test_nothing_is_learned_without_gradients():
    """Nor by a weight that is frozen."""
    hidden, weight, bias, labels = inputs()
    with torch.no_grad():
        value = vocabulary_cross_entropy(hidden, weight, labels, bias=bias, chunk_rows=4)
    assert value.item() == pytest.approx(F.cross_entropy(F.linear(hidden, weight, bias), labels).item(), rel=1e-12)
    frozen = weight.detach()
    vocabulary_cross_entropy(hidden, frozen, labels, bias=bias).backward()
    assert hidden.grad is not None and frozen.grad is None


class Copies(TorchDispatchMode):
    """Remembers the shapes of tensors that are copied."""

    def __init__(self):
        super().__init__()
        self.shapes = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "clone" in str(function) or "copy" in str(function):
            self.shapes.append(tuple(args[0].shape))
        return function(*args, **(kwargs or {}))


def test_the_gradient_buffer_is_handed_over_not_copied():
    """A backward pass that copied the weight's gradient would hold two of the largest tensors there are."""
    hidden, weight, bias, labels = inputs()
    loss = vocabulary_cross_entropy(hidden, weight, labels, bias=bias, chunk_rows=4)
    with Copies() as copies:
        loss.backward()
    assert tuple(weight.shape) not in copies.shapes
