"""What every recipe costs beside translation ranking alone: ``python -m tests.benchmarks.recipes``.

One encoder in the shape of multilingual BERT (random weights, full rows of 32 tokens, batch 32), forward and backward:

- time: each row's step by a TR step just before it, in the same process and on the same encoder; median (range) over
  rounds;
- memory: peak resident size of a fresh process that takes two steps, by that of TR;
- FLOPs: matrix products of forward and backward as torch's ``FlopCounterMode`` sees them, by those of TR.

The paper's figures are those of Li et al. 2023, table 6, on a GPU. ``--quick`` runs a toy, to see that all is well.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from statistics import median
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.benchmarks.measure import QUICK, Shape, apart, backward, peak, resident, spread

_OFF = {name: f"losses.{name}.weight" for name in ("tlm", "word_alignment", "translation_ranking")}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "tr": ("tr", {}),
    "semacl": ("semacl", {}),
    "langcl": ("langcl", {}),
    "semacl-langcl": ("semacl-langcl", {}),
    "tr + semacl + langcl": (
        "tr",
        {"losses.semantic_contrastive.weight": 1.0, "losses.language_contrastive.weight": 1.0},
    ),
    "dap": ("dap", {}),
    "tr-tlm": ("tr-tlm", {}),
    "amber: MLM": ("amber", dict.fromkeys(_OFF.values(), 0)),
    "amber: MLM+TLM": ("amber", {_OFF["word_alignment"]: 0, _OFF["translation_ranking"]: 0}),
    "amber: MLM+TLM+WA": ("amber", {_OFF["translation_ranking"]: 0}),
    "amber": ("amber", {}),
}
"""Row → recipe, and what is set in it."""

PAPER = {"dap": ("1.73", "1.50"), "tr-tlm": ("2.63", "3.06")}
TARGETS = {"dap": 1.35, "tr-tlm": 2.4, "tr + semacl + langcl": 1.05}


def build(row: str, model: Any, shape: Shape) -> torch.nn.Module:
    """The row's loss on ``model``, as training builds it."""
    from st_xling.training import load_recipe
    from st_xling.training.encoder import build_loss

    recipe, overrides = ROWS[row]
    ids = set(range(shape.target_vocabulary))
    return build_loss(load_recipe(recipe, overrides=overrides), model, token_ids=[ids, ids], languages=[["de"], ["en"]])


def time_rows(rows: list[str], shape: Shape, rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Each row's step time by TR's, one ratio a round; what TR itself gives says how still the machine is."""
    model = shape.encoder()
    losses = {row: build(row, model, shape) for row in dict.fromkeys(["tr", *rows])}
    columns = shape.columns(model)

    def step(row: str) -> float:
        for loss in losses.values():
            loss.zero_grad()
        torch.manual_seed(0)  # equal masks and dropout in every round
        started = clock()
        backward(losses[row](columns, None))
        return clock() - started

    step("tr")  # warms up
    ratios: dict[str, list[float]] = {row: [] for row in rows}
    for number in range(rounds):
        for row in rows:
            ranking, own = step("tr"), step(row)
            ratios[row].append(own / ranking)
            print(f"  round {number + 1}: {row} {own:.2f} s, tr {ranking:.2f} s", file=sys.stderr)
    return ratios


def measure_apart(row: str, shape: Shape) -> dict[str, float]:
    """Peak MiB of two steps beyond the imports, then the FLOPs of one."""
    import transformers.models.bert.modeling_bert  # noqa: F401  # part of every process, not of the step

    import st_xling.training.encoder  # noqa: F401

    before = resident()
    model = shape.encoder()
    loss, columns = build(row, model, shape), shape.columns(model)
    for _ in range(2):
        loss.zero_grad()
        backward(loss(columns, None))
    most = peak() - before
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: addmm_flops}) as counter:
        torch.manual_seed(0)
        backward(loss(columns, None))
    return {"peak": most, "flops": float(counter.get_total_flops())}


def addmm_flops(added: Any, left: tuple[int, int], right: tuple[int, int], **_: Any) -> int:
    """Of addmm's in-place form, which the vocabulary softmax uses and the counter does not know; from the shapes."""
    return 2 * left[0] * left[1] * right[1]


def table(
    rows: list[str], times: dict[str, list[float]], figures: dict[str, dict[str, float]], targets: dict[str, float]
) -> str:
    """One line a row, ratios to TR."""
    lines = [("row", "time / TR", "memory", "FLOPs", "paper: time", "FLOPs", "target: time")]
    for row in rows:
        memory, flops = (f"{figures[row][key] / figures['tr'][key]:.2f}" for key in ("peak", "flops"))
        target = targets.get(row)
        met = "" if target is None else f"{target:.2f} {'met' if median(times[row]) <= target else 'MISSED'}"
        lines.append((row, spread(times[row]), memory, flops, *PAPER.get(row, ("", "")), met))
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, help="pairs (default: 32)")
    parser.add_argument("--layers", type=int, help="of the encoder (default: 12)")
    parser.add_argument("--rows", help="comma-separated; default: all")
    parser.add_argument("--threads", type=int, help="default: torch's")
    parser.add_argument("--cpu-time", action="store_true", help="processor time: for a busy machine, with --threads 1")
    parser.add_argument("--quick", action="store_true", help="a toy shape: figures without meaning")
    parser.add_argument("--json", metavar="PATH", help="also write the figures here")
    parser.add_argument("--apart", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.apart:
        print(json.dumps(measure_apart(arguments.apart[0], Shape(**json.loads(arguments.apart[1])))))
        return
    given = {"batch": arguments.batch, "layers": arguments.layers}
    shape = replace(QUICK if arguments.quick else Shape(), **{key: value for key, value in given.items() if value})
    rows = [row.strip() for row in arguments.rows.split(",")] if arguments.rows else list(ROWS)
    unknown = [row for row in rows if row not in ROWS]
    if unknown:
        parser.error(f"--rows knows {', '.join(ROWS)}: got {', '.join(unknown)}")
    threads = ["--threads", str(torch.get_num_threads())]
    figures = {}
    for row in dict.fromkeys(["tr", *rows]):
        figures[row] = apart("tests.benchmarks.recipes", ["--apart", row, json.dumps(asdict(shape)), *threads])
        print(f"  {row}: {figures[row]['peak']:,.0f} MiB, {figures[row]['flops'] / 1e9:,.0f} GFLOP", file=sys.stderr)
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    times = time_rows(rows, shape, 2 if arguments.quick else arguments.rounds, clock)
    print(table(rows, times, figures, {} if arguments.quick else TARGETS))
    print(f"{shape}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    if arguments.json:
        content = {"shape": asdict(shape), "times": times, "figures": figures}
        with open(arguments.json, "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(content, file, indent=2)


if __name__ == "__main__":
    main()
