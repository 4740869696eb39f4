"""How a model was trained: command, data, recipe, leak check, cost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from st_xling.hub.card.escaping import code, fenced, plain, span, table
from st_xling.hub.card.facts import CardFacts
from st_xling.hub.card.pictures import TOKENS, picture
from st_xling.hub.card.run_command import shown_command
from st_xling.hub.card.sources import DataSource


def training_section(facts: CardFacts) -> str:
    """What the run's files tell; nothing about a run that left none."""
    if not facts.run:
        return "\n\n".join(["## Training data", _data(facts.sources)]) if facts.sources else ""
    parts = ["## Training"]
    if summary := facts.recipe.get("summary"):
        parts.append(plain(summary))
    parts.append(_start(facts))
    if command := facts.run.get("command"):
        parts.append(fenced(shown_command(command), "bash"))
    if facts.sources:
        parts += ["### Data", _data(facts.sources)]
    leak = facts.results.get("leak")
    if leak is not None or not facts.slim:  # of a model whose vocabulary was cut, the card of the uncut one tells it
        parts += ["### Leak check", _leak(leak)]
    if facts.recipe:
        parts += ["### Recipe", _recipe(facts.recipe, facts.run)]
    cost = _cost(facts)
    if cost:
        parts += ["### Cost", cost]
    parts += picture(facts, TOKENS, "Token states of parallel sentences, before and after training")
    return "\n\n".join(parts)


def flat_recipe(recipe: Mapping[str, Any], stem: str = "") -> Iterator[tuple[str, Any]]:
    """Every hyper-parameter: dotted name, as ``--set`` takes it, and value."""
    for key, value in recipe.items():
        if isinstance(value, Mapping) and value:
            yield from flat_recipe(value, f"{stem}{key}.")
        elif stem or key not in ("name", "summary"):
            yield f"{stem}{key}", value


def _start(facts: CardFacts) -> str:
    start = facts.run.get("model")
    base = facts.found.get("base_model") if facts.slim else facts.base_model
    if base:
        return f"It started from [{plain(base)}](https://huggingface.co/{base})."
    if start == "tiny":
        shape = ", ".join(f"{key} {value}" for key, value in (facts.run.get("tiny") or {}).items())
        asked = f" ({plain(shape)})" if shape else ""
        return f"It started from random weights: a small encoder, whose vocabulary was built from the data{asked}."
    if start == "a loaded model" or not isinstance(start, str):
        return "It started from a model that was loaded in Python."
    return f"It started from a model that lay beside it, {span(start.rstrip('/').rpartition('/')[2])}."


def _data(sources: list[DataSource]) -> str:
    rows = []
    for source in sources:
        where = f"[{plain(source.hub_id)}](https://huggingface.co/datasets/{source.hub_id})" if source.hub_id else ""
        given = ", ".join(code(_without_folders(spec)) for spec in source.specs)
        count = "" if source.rows is None else f"{source.rows:,}"
        print_ = code(source.sha8) if source.sha8 else ""
        rows.append([plain(source.name), where or given, count, print_, plain(source.licence)])
    return table(["data", "read from", "rows", "fingerprint", "licence"], rows)


def _without_folders(spec: str) -> str:
    """A spec without the folders that one machine has."""
    return re.sub(r"(?<![^=,])[/~][^=,?]*/", "…/", spec)


def _recipe(recipe: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    rows = [[code(key), code(json.dumps(value, ensure_ascii=False))] for key, value in flat_recipe(recipe)]
    if "mini_batch_size" in run:
        rows.append(["mini-batch that was found to fit", code(run["mini_batch_size"])])
    if run.get("processes", 1) != 1:
        rows.append(["processes", code(run["processes"])])
    told = f"Recipe {span(recipe.get('name', 'unnamed'))}; every option as `--set` takes it:"
    return f"{told}\n\n{table(['option', 'value'], rows)}"


def _leak(leak: Mapping[str, Any] | None) -> str:
    if leak is None:
        return "Training data were not compared with evaluation text in this run."
    rows = []
    for name, sides in leak["sets"].items():
        counts = [(side, found["rows"], found["leaked"]) for side, found in sides.items()]
        texts = max(rows_ for _, rows_, _ in counts)
        told = ", ".join(f"{leaked:,} ({side})" for side, _, leaked in counts)
        rows.append([plain(name), f"{texts:,}", plain(told)])
    lost = sum(found["leaked"] for found in leak["train"].values())
    of = sum(found["rows"] for found in leak["train"].values())
    did = "they were left out" if leak["dropped"] else "they were trained on"
    what = f"{lost:,} of {of:,} training rows hold text that judged the model{f'; {did}' if lost else ''}."
    shown = table(["evaluation text", "rows", "of them in the training data"], rows)
    return f"{what}\n\n{shown}\n\nSignature: {span(leak['signature'])}"


def _cost(facts: CardFacts) -> str:
    training = facts.results.get("training") or {}
    machine, rows = training.get("machine") or {}, []
    seconds = training.get("seconds")
    if isinstance(seconds, (int, float)):
        rows.append(("time", duration(seconds)))
    elif isinstance(seconds, Mapping):
        rows += [(f"time of {name}", duration(value)) for name, value in seconds.items()]
    if training.get("steps"):
        rows.append(("steps", f"{training['steps']:,}"))
    if (best := training.get("best_dev")) is not None:
        rows.append(("best development score", f"{100 * best:.1f} %"))
    if machine.get("accelerators"):
        rows.append(("accelerators", ", ".join(machine["accelerators"])))
    if machine.get("processor"):
        cores = f" ({machine['cores']} cores, {machine.get('threads', '?')} threads used)" if "cores" in machine else ""
        rows.append(("processor", f"{machine['processor']}{cores}"))
    if machine.get("memory_gib"):
        rows.append(("memory", f"{machine['memory_gib']:g} GiB"))
    if machine.get("system"):
        rows.append(("system", machine["system"]))
    shown = table(["", ""], [[name, plain(value)] for name, value in rows])
    dev = facts.run.get("dev")
    judged_by = (
        f"\n\nThe development score is by {span(dev)}." if isinstance(dev, str) and training.get("best_dev") else ""
    )
    return shown + judged_by if rows else ""


def duration(seconds: float) -> str:
    """``51 s``, ``12 min``, ``3.4 h``."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
