"""What a step of each recipe costs, by a step of translation ranking; and the vocabulary softmax.

One encoder in the shape of multilingual BERT (random weights, full rows of 32 tokens, batch 32), forward and backward:

- time, in turn in one process;
- memory: peak resident size of a fresh process that takes two steps, beyond its imports;
- FLOPs: matrix products as torch's ``FlopCounterMode`` sees them;
- our ranking loss by sentence-transformers' ``MultipleNegativesRankingLoss``;
- at XLM-R's vocabulary of 250,002, the chunked by the plain vocabulary softmax: memory, and equality.

The paper's figures are those of Li et al. 2023, table 6, on a GPU. ``--rows`` takes recipes with semicolons between.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from st_xling.reproduce.step_cost import flops
from tests.benchmarks.measure import (
    QUICK,
    EncoderShape,
    Ratio,
    Run,
    apart,
    log,
    main,
    peak,
    quotients,
    recipe_loss,
    resident,
    step,
)

ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "tr": ("tr", {}),
    "dap": ("dap", {}),
    "tr-tlm": ("tr-tlm", {}),
    "tr + semacl + langcl": ("tr", {"semantic_contrastive.weight": 1.0, "language_contrastive.weight": 1.0}),
    "amber": ("amber", {}),
}
"""Row → recipe, and what is set in it."""

DEFAULT = "; ".join(list(ROWS)[1:])
PAPER = {"dap": ("1.73", "1.50"), "tr-tlm": ("2.63", "3.06")}
TIME_AT_MOST = {"dap": 1.35, "tr-tlm": 2.4, "tr + semacl + langcl": 1.05}


def build(row: str, model: Any, shape: EncoderShape) -> torch.nn.Module:
    recipe, settings = ROWS[row]
    return recipe_loss(recipe, model, shape, **settings)


def memory_and_flops(row: str, shape: EncoderShape) -> list[float]:
    """Peak MiB of two steps beyond the imports, then the FLOPs of one."""
    before = resident()
    model = shape.encoder()
    loss = build(row, model, shape)
    columns = shape.columns(model)
    for _ in range(2):
        step(loss, columns)
    most = peak() - before
    return [most, float(flops(partial(step, loss, columns)))]


def softmax_inputs(classes: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(1024, 768, generator=generator).requires_grad_()
    weight = torch.randn(classes, 768, generator=generator).mul_(0.02).requires_grad_()
    return hidden, weight, torch.randint(classes, (1024,), generator=generator)


def softmax(kind: str, hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> float:
    """The loss, with its gradients in the inputs."""
    from st_xling.losses.vocabulary_softmax import vocabulary_cross_entropy

    if kind == "plain":
        loss = F.cross_entropy(F.linear(hidden, weight), labels)
    else:
        loss = vocabulary_cross_entropy(hidden, weight, labels, bias=torch.zeros(len(weight)))
    loss.backward()
    return loss.item()


def softmax_memory(kind: str, classes: int) -> float:
    """MiB beyond the inputs and their gradients."""
    inputs = softmax_inputs(classes)
    before = resident() + (inputs[0].numel() + inputs[1].numel()) * 4 / 2**20
    softmax(kind, *inputs)
    return peak() - before


def measure(
    run: Run, *, rows: str = DEFAULT, layers: int | None = None, batch: int | None = None, classes: int = 250_002
) -> Iterator[Ratio]:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    shape = (QUICK if run.quick else EncoderShape()).with_sizes(layers=layers, batch=batch)
    names = [row.strip() for row in rows.split(";")]
    if set(names) - set(ROWS):
        raise SystemExit(f"--rows knows {'; '.join(ROWS)}: got {rows}")
    model = shape.encoder()
    both_ways = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    losses = {"ST": MultipleNegativesRankingLoss(model, **both_ways), "tr": build("tr", model, shape)}
    losses |= {name: build(name, model, shape) for name in names}
    columns = shape.columns(model)
    seconds = run.in_turn({name: partial(step, loss, columns) for name, loss in losses.items()})
    del model, losses
    ranking = quotients(seconds["tr"], seconds["ST"])
    yield Ratio("tr: time", "MultipleNegativesRankingLoss", ranking, at_most=1.05)
    of_tr = apart(memory_and_flops, "tr", shape)
    for name in names:
        if name == "tr":
            continue
        paper = [f"the paper: {figure}" for figure in PAPER[name]] if name in PAPER else ["", ""]
        time = quotients(seconds[name], seconds["tr"])
        yield Ratio(f"{name}: time", "tr", time, at_most=TIME_AT_MOST.get(name), note=paper[0])
        memory, flops = apart(memory_and_flops, name, shape)
        most = 1.4 if name == "dap" else None
        yield Ratio(f"{name}: memory", "tr", memory / of_tr[0], at_most=most, note=f"{memory:,.0f} MiB")
        yield Ratio(f"{name}: FLOPs", "tr", flops / of_tr[1], note=paper[1])
    memory = [apart(softmax_memory, kind, classes) for kind in ("chunked", "plain")]
    yield Ratio("chunked softmax: extra memory", "plain softmax", memory[0] / memory[1], at_most=0.1)
    plain = softmax_inputs(classes)
    chunked = softmax_inputs(classes)
    log(f"loss {softmax('plain', *plain)}, chunked {softmax('chunked', *chunked)}")
    differences = []
    for actual, expected in zip(chunked[:2], plain[:2]):  # hidden states, then weight
        difference = (actual.grad - expected.grad).abs().max() / expected.grad.abs().max()
        differences.append(float(difference))
    yield Ratio("chunked softmax: difference of gradients", "the largest gradient", max(differences), at_most=1e-5)


if __name__ == "__main__":
    main(measure, rounds=5, quick={"classes": 2000, "rows": "dap"})
