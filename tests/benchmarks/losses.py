"""What the objectives cost, as ratios within one run: ``python -m tests.benchmarks.losses``.

At BERT-base shape (12 layers of 768, vocabulary 119,547, 32 tokens, batch 32, forward and backward):

1. a DAP step against a TR step (target: at most 1.35x the time and 1.4x the peak memory; the paper's figure is 1.73x);
2. our ranking loss against sentence-transformers' ``MultipleNegativesRankingLoss`` (at most 1.05x);

and, at XLM-R's vocabulary of 250,002, the chunked against the plain vocabulary softmax (same loss and gradient to 1e-5,
extra memory at most a tenth).

Each memory figure is the peak resident size of a fresh process.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from tests.benchmarks.measure import Shape, apart, peak, resident

HERE, SHAPE = "tests.benchmarks.losses", Shape()


def build(name: str) -> tuple[Callable[[], torch.Tensor], torch.nn.Module]:
    """A callable that computes one step's loss, and the module whose gradients it fills."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss

    model = SHAPE.encoder()
    if name == "host":
        loss: Any = MultipleNegativesRankingLoss(
            model, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
        )
    else:
        loss = TranslationRankingLoss(model)
    if name == "dap":
        loss = loss + RepresentationTranslationLoss(model, target_vocabulary=range(SHAPE.target_vocabulary))
    columns = SHAPE.columns(model)

    def step() -> torch.Tensor:
        value = loss([dict(column) for column in columns], None)  # sentence-transformers' loss writes into its columns
        return sum(value.values()) if isinstance(value, dict) else value

    return step, loss


def time_against(names: tuple[str, str], rounds: int) -> float:
    """Median over rounds of the first's time by the second's, step by step in turn."""
    steps = [build(name) for name in names]
    ratios = []
    for number in range(rounds + 1):
        seconds = []
        for step, loss in steps:
            loss.zero_grad()
            started = time.perf_counter()
            step().backward()
            seconds.append(time.perf_counter() - started)
        if number:  # the first round warms up
            ratios.append(seconds[0] / seconds[1])
            print(f"  {names[0]} {seconds[0]:.2f} s, {names[1]} {seconds[1]:.2f} s", file=sys.stderr)
    return sorted(ratios)[len(ratios) // 2]


def peak_of_step(name: str) -> float:
    """MiB of a process that builds the model and takes two steps, beyond a process that has only imported torch."""
    before = resident()
    step, loss = build(name)
    for _ in range(2):
        loss.zero_grad()
        step().backward()
    return peak() - before


def softmax_inputs() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(1024, 768, generator=generator).requires_grad_()
    weight = torch.randn(250_002, 768, generator=generator).mul_(0.02).requires_grad_()
    return hidden, weight, torch.randint(250_002, (1024,), generator=generator)


def softmax(kind: str) -> dict[str, float]:
    """Loss of one vocabulary softmax, and the MiB it takes beyond its inputs and their gradients."""
    from st_xling.losses.vocabulary_softmax import vocabulary_cross_entropy

    hidden, weight, labels = softmax_inputs()
    before = resident() + (hidden.numel() + weight.numel()) * 4 / 2**20
    if kind == "plain":
        loss = F.cross_entropy(F.linear(hidden, weight), labels)
    else:
        loss = vocabulary_cross_entropy(hidden, weight, labels)
    loss.backward()
    return {"loss": loss.item(), "extra": peak() - before}


def softmax_difference() -> tuple[float, float]:
    """Largest difference of loss and, relative to its largest entry, of gradient between both softmaxes."""
    from st_xling.losses.vocabulary_softmax import vocabulary_cross_entropy

    plain, ours = softmax_inputs(), softmax_inputs()
    expected = F.cross_entropy(F.linear(*plain[:2]), plain[2])
    expected.backward()
    value = vocabulary_cross_entropy(*ours)
    value.backward()
    worst = max(float((a.grad - b.grad).abs().max() / b.grad.abs().max()) for a, b in zip(ours[:2], plain[:2]))
    return abs(value.item() - expected.item()), worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--apart", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.apart:
        function, argument = arguments.apart
        print(json.dumps({"peak_of_step": peak_of_step, "softmax": softmax}[function](argument)))
        return
    print(f"DAP step / TR step, time:            {time_against(('dap', 'tr'), arguments.rounds):.3f}   (at most 1.35)")
    memory = [apart(HERE, ["--apart", "peak_of_step", name]) for name in ("dap", "tr")]
    print(f"DAP step / TR step, peak memory:     {memory[0] / memory[1]:.3f}   (at most 1.40)")
    print(f"our ranking / ST's, time:            {time_against(('tr', 'host'), arguments.rounds):.3f}   (at most 1.05)")
    chunked, plain = (apart(HERE, ["--apart", "softmax", kind]) for kind in ("chunked", "plain"))
    print(f"chunked / plain softmax, extra MiB:  {chunked['extra'] / plain['extra']:.3f}   (at most 0.10)")
    loss, gradient = softmax_difference()
    print(f"chunked - plain softmax:             loss {loss:.1e}, gradient {gradient:.1e}   (at most 1e-5)")


if __name__ == "__main__":
    main()
