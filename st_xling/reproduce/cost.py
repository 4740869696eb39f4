"""What tables will take: steps, time, memory and disk, before anything is run."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from st_xling.reproduce.paper import Paper, Step
from st_xling.reproduce.run import is_done, seconds_of
from st_xling.utils.tables import format_table

# Seconds until a command has imported its libraries and loaded a small model.
_START_S = 8.0


@dataclass(frozen=True)
class _Model:
    """Sizes of an encoder: weights in layers and in all, layers, width."""

    body: float
    parameters: float
    layers: int
    width: int


@dataclass(frozen=True)
class PlannedStep:
    """A step of the plan.

    Attributes:
        name: Of the step.
        done: Whether it has run.
        seconds: It took, or will take; ``None`` where nothing tells.
        source: ``measured`` (it, or the same with another seed), ``estimated`` from the size of the model, or ``""``.
        memory_gib: At its peak, estimated; ``None`` where the model's size is not known.
        disk_gib: That its model will fill.
    """

    name: str
    done: bool
    seconds: float | None
    source: str
    memory_gib: float | None
    disk_gib: float


@dataclass(frozen=True)
class Plan:
    """Steps in the order in which they are run; see :func:`plan`."""

    title: str
    steps: tuple[PlannedStep, ...]
    jobs: int

    def table(self) -> str:
        """For a terminal, sums below."""
        rows = [
            [
                step.name,
                "done" if step.done else "",
                _minutes(step.seconds),
                step.source,
                step.memory_gib,
                step.disk_gib,
            ]
            for step in self.steps
        ]
        left = [step for step in self.steps if not step.done]
        known = sum(step.seconds or 0.0 for step in left) / self.jobs
        unknown = sum(step.seconds is None for step in left)
        memory = max((step.memory_gib or 0.0 for step in left), default=0.0) * min(self.jobs, max(1, len(left)))
        disk = sum(step.disk_gib for step in left)
        end = f"{len(left)} steps to run: {_minutes(known)} min"
        if unknown:
            end += f" and {unknown} steps whose time is known once one of their kind has run"
        end += f"; {memory:.1f} GiB of memory, {disk:.1f} GiB of disk"
        head = ["step", "", "min", "", "memory, GiB", "disk, GiB"]
        return f"{self.title}\n\n{format_table(head, rows)}\n\n{end}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def plan(paper: Paper, out: str | Path, *, data: str | Path | None = None, jobs: int = 1) -> Plan:
    """Steps that a paper's tables take in a folder, with what is known of their cost.

    A step that has run, with whatever seed, tells its time. Time and memory of training else follow from steps, batch,
    length and the size of the model, and from how fast this machine multiplies matrices, times what other trainings
    have taken of their estimate.

    Args:
        paper: From :func:`~st_xling.reproduce.paper.load_paper`.
        out: Folder in which earlier steps may have run.
        data: Folder of the data; what ran on another is not done.
        jobs: Steps at a time.

    Raises:
        ValueError: If ``jobs`` is below 1.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1: got {jobs}.")
    out = Path(out).resolve()
    steps = paper.steps()
    done = {step.id for step in steps if is_done(step, out, data)}
    measured: dict[str, list[float]] = {}
    for step in steps:
        if step.id in done:
            measured.setdefault(_kind(step), []).append(seconds_of(step, out) or 0.0)
    speed = _multiplications_per_second()
    sizes = {step.id: _model(step, out) for step in steps if step.trains}
    costs = {step.id: _training(step, model) for step in steps if (model := sizes.get(step.id))}
    estimates = {name: cost[0] / speed + _START_S for name, cost in costs.items() if cost}
    # What the size of a model does not tell (objectives, the vocabulary's share, how busy the machine is), trainings do
    # that have run here.
    trained = [step for step in steps if step.id in done & estimates.keys()]
    factor = fmean((seconds_of(step, out) or 0.0) / estimates[step.id] for step in trained) if trained else 1.0
    planned = []
    for step in steps:
        times, estimate, model = measured.get(_kind(step)), estimates.get(step.id), sizes.get(step.id)
        cost = costs.get(step.id)
        planned.append(
            PlannedStep(
                step.name,
                step.id in done,
                fmean(times) if times else estimate and estimate * factor,
                "measured" if times else "estimated" if estimate else "",
                cost[1] if cost else None,
                model.parameters * 4 / 2**30 if model else 0.0,
            )
        )
    return Plan(f"{paper.title}\nscale {paper.scale}, from {Path(paper.model).name}", tuple(planned), jobs)


def _kind(step: Step) -> str:
    return step.name.rpartition(", seed")[0] or step.name


def _minutes(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds / 60:.1f}"


def _option(words: Sequence[str], name: str) -> str | None:
    return words[words.index(name) + 1] if name in words else None


def _model(step: Step, out: Path) -> _Model | None:
    """Sizes of the model that a step makes; of a slim one at most, for its vocabulary is not known before."""
    name = step.words[1] if step.words[0] == "slim" else _option(step.words, "--model") or ""
    below = [need for need in step.needs if need.folder == name]
    if below:
        return _model(below[0], out)
    from st_xling.models import tiny_encoder

    config: dict[str, Any] | None
    if name == "tiny":
        options = [word for flag, word in zip(step.words, step.words[1:]) if flag == "--tiny"]
        usual = {name: option.default for name, option in inspect.signature(tiny_encoder).parameters.items()}
        sizes = usual | dict(option.split("=") for option in options)
        names = {"vocab_size": "vocabulary", "hidden_size": "hidden_size", "num_hidden_layers": "layers"}
        config = {key: sizes[name] for key, name in names.items()}
    else:
        config = _config(name, out)
    if not config:
        return None
    layers = int(_option(step.words, "--layer") or config["num_hidden_layers"])
    width = int(config["hidden_size"])
    body = 12.0 * layers * width**2
    return _Model(body, body + int(config["vocab_size"]) * width, layers, width)


def _config(name: str, out: Path) -> dict[str, Any] | None:
    from transformers import AutoConfig

    places = [place for place in (out / name, *sorted((out / name).glob("0_*"))) if (place / "config.json").is_file()]
    try:
        config = AutoConfig.from_pretrained(places[0] if places else name)
        # Its attributes have one name in all families, its keys do not.
        return {key: getattr(config, key) for key in ("vocab_size", "hidden_size", "num_hidden_layers")}
    except (OSError, ValueError, AttributeError):  # not reachable, or of another kind: the plan goes without
        return None


def _training(step: Step, model: _Model) -> tuple[float, float] | None:
    """Multiplications and additions, and GiB at the peak, of a training; ``None`` where it counts in epochs."""
    steps, batch = _option(step.words, "--max-steps"), _option(step.words, "--batch-size")
    if steps is None or batch is None:
        return None
    length = int(_option(step.words, "--max-length") or 32)
    tokens = 2.0 * int(batch) * length
    at_once = _option(step.words, "--mini-batch-size")
    in_memory = 2.0 * int(batch if at_once in (None, "auto") else str(at_once)) * length
    # Forward and backward: two and four a weight and token. Weights, gradients and Adam's two averages; per token and
    # layer some 34 widths of activations in float32.
    activations = in_memory * model.layers * model.width * 34 * 4
    return 6.0 * int(steps) * tokens * model.body, (16.0 * model.parameters + activations) / 2**30 + 1.0


def _multiplications_per_second() -> float:
    """Multiplications and additions of float32 matrices, counted apart; the fastest of many, as if nothing else ran."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    matrix, best, end = torch.ones(512, 512, device=device), float("inf"), time.monotonic() + 0.3
    while time.monotonic() < end:
        begun = time.perf_counter()
        float((matrix @ matrix)[0, 0])
        best = min(best, time.perf_counter() - begun)
    return 2.0 * 512**3 / best
