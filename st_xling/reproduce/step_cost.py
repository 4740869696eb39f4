"""Cost of a training step of DAP and of TR + TLM, divided by that of TR: DAP's table 6.

    python -m st_xling.reproduce.step_cost --rounds 5 --json cost.json

One encoder in the shape of multilingual BERT (random weights, full rows of 32 tokens, batch 32), forward and backward
on one thread: seconds of the processor, in turn, so that other work on the machine meets all alike; and the FLOPs of
matrix products, as torch's ``FlopCounterMode`` sees them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from st_xling.utils.io import write_json
from st_xling.utils.signature import sign

#: Recipes whose steps are compared with those of ``tr``.
RECIPES = ("dap", "tr-tlm")


@dataclass(frozen=True)
class EncoderShape:
    """An encoder and a batch: by default multilingual BERT (12 layers of 768) on full rows of 32 tokens.

    Attributes:
        target_vocabulary: Number of ids that the text is drawn from, over which DAP's softmax ranges.
    """

    layers: int = 12
    hidden: int = 768
    vocabulary: int = 119_547
    target_vocabulary: int = 30_000
    tokens: int = 32
    batch: int = 32

    def with_sizes(self, **sizes: int | None) -> EncoderShape:
        """Return the shape with other sizes, where they are set."""
        return replace(self, **{name: size for name, size in sizes.items() if size})

    def encoder(self) -> Any:
        """Build an encoder of random weights, under mean pooling, with dropout."""
        from transformers import BertConfig, BertModel
        from transformers.utils.logging import disable_progress_bar

        from st_xling.models import tiny_encoder

        disable_progress_bar()
        text = ["a b c d e f g h"] * 4
        model: Any = tiny_encoder(text, vocabulary=64, hidden_size=24, layers=1, max_length=self.tokens)
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=self.vocabulary,
            num_hidden_layers=self.layers,
            hidden_size=self.hidden,
            intermediate_size=4 * self.hidden,
            num_attention_heads=max(1, self.hidden // 64),
        )
        model[0].model = BertModel(config)
        model[1].embedding_dimension = self.hidden
        return model.train()

    def columns(self, model: Any, rows: int | None = None, *, seed: int = 0) -> list[dict[str, torch.Tensor]]:
        """Draw source and target of random ids without padding. *EncoderShape of each:* ``(rows, tokens)``"""
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(10, self.target_vocabulary, (2, rows or self.batch, self.tokens), generator=generator)
        ids[:, :, 0] = model.tokenizer.cls_token_id
        ids[:, :, -1] = model.tokenizer.sep_token_id
        return [{"input_ids": side.clone(), "attention_mask": torch.ones_like(side)} for side in ids]


#: To see that all runs; its figures mean nothing.
QUICK = EncoderShape(layers=2, hidden=64, vocabulary=2_000, target_vocabulary=500, tokens=16, batch=8)


def recipe_loss(name: str, model: Any, shape: EncoderShape, **settings: Any) -> torch.nn.Module:
    """Build a recipe's loss on ``model``, as training does."""
    from st_xling.training import load_recipe
    from st_xling.training.encoder import build_loss

    ids = set(range(shape.target_vocabulary))
    recipe = load_recipe(name, overrides={f"losses.{key}": value for key, value in settings.items()})
    return build_loss(recipe, model, token_ids=[ids, ids], languages=[["de"], ["en"]])


def step(loss: torch.nn.Module, columns: Sequence[dict[str, torch.Tensor]]) -> None:
    """Run the forward and backward pass of a training step."""
    loss.zero_grad()
    torch.manual_seed(0)  # equal masks and dropout each time
    value = loss([dict(column) for column in columns], None)  # sentence-transformers' losses write into their columns
    total = torch.stack(list(value.values())).sum() if isinstance(value, dict) else value
    total.backward()


def flops(call: Callable[[], Any]) -> int:
    """Count the floating-point operations of the matrix products in a call."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: _addmm_flops}) as counter:
        call()
    return int(counter.get_total_flops())


def _addmm_flops(bias_shape: Any, first: tuple[int, int], second: tuple[int, int], **_: Any) -> int:
    """Count those of addmm's in-place form, which the vocabulary softmax uses and the counter does not know."""
    rows, inner = first
    return 2 * rows * inner * second[1]


def step_costs(shape: EncoderShape, *, rounds: int = 5) -> dict[str, dict[str, float]]:
    """Measure steps of :data:`RECIPES` relative to a step of ``tr``.

    Args:
        shape: Encoder and batch.
        rounds: Rounds of measurement, of which the medians are taken; one more warms up.

    Returns:
        Recipe → ``time`` and ``flops``, quotients.
    """
    model = shape.encoder()
    columns = shape.columns(model)
    losses = {name: recipe_loss(name, model, shape) for name in ("tr", *RECIPES)}
    seconds: dict[str, list[float]] = {name: [] for name in losses}
    for number in range(-1, rounds):
        names = list(losses)
        if number % 2:  # every other round in reverse order
            names.reverse()
        for name in names:
            start = time.process_time()
            step(losses[name], columns)
            if number >= 0:  # the first round warms up
                seconds[name].append(time.process_time() - start)
    counts = {name: flops(lambda loss=loss: step(loss, columns)) for name, loss in losses.items()}  # type: ignore[misc]
    costs = {}
    for name in RECIPES:
        ratios = [recipe_seconds / tr_seconds for recipe_seconds, tr_seconds in zip(seconds[name], seconds["tr"])]
        costs[name] = {"time": median(ratios), "flops": counts[name] / counts["tr"]}
    return costs


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command_line = argparse.ArgumentParser(
        prog="python -m st_xling.reproduce.step_cost",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command_line.add_argument(
        "--rounds", type=int, default=5, help="rounds, of which the medians are taken (default: 5)"
    )
    command_line.add_argument(
        "--quick", action="store_true", help="a toy, to see that it runs: its figures mean nothing"
    )
    command_line.add_argument("--json", type=Path, required=True, help="file for the quotients")
    return command_line


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = parser().parse_args(arguments)
    if options.rounds < 1:
        raise SystemExit(f"--rounds must be at least 1: got {options.rounds}.")
    torch.set_num_threads(1)
    shape = QUICK if options.quick else EncoderShape()
    costs = step_costs(shape, rounds=options.rounds)
    sizes = f"{shape.layers}x{shape.hidden},vocabulary={shape.vocabulary},targets={shape.target_vocabulary}"
    batch = f"{shape.batch}x{shape.tokens}"
    signature = sign(
        "step-cost", encoder=sizes, batch=batch, rounds=options.rounds, threads=1, torch=str(torch.__version__)
    )
    write_json(options.json, {"cost": costs, "signature": signature})


if __name__ == "__main__":
    main()
