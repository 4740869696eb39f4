"""What became of a model whose vocabulary was cut: sizes, and whether embeddings and retrieval are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from st_xling.hub.card.escaping import fenced, plain, span, table
from st_xling.hub.card.run_command import shown_command

_LABELS = {"counted": "text that was counted", "held_out": "held-out text"}


def slim_section(slim: Mapping[str, Any] | None) -> str:
    """The figures of ``results.json["slim"]``; empty without them."""
    if not slim:
        return ""
    report = slim["report"]
    sizes = report["size"]
    rows = [
        ["tokens", *_counts(sizes["tokens"])],
        ["parameters", *_counts(sizes["parameters"])],
        ["weights and tokenizer, MB", *(f"{sizes['bytes'][when] / 1e6:,.1f}" for when in ("before", "after"))],
    ]
    for kind, found in (report.get("parity") or {}).items():
        rows += [_percent(f"unknown tokens, {_LABELS.get(kind, kind)}, %", found["unknown_share"])]
        for name, ways in (found.get("retrieval") or {}).items():
            source, _, target = name.partition("-")
            for way, label in (("forward", f"{source} to {target}"), ("back", f"{target} to {source}")):
                rows.append(_percent(f"retrieval {plain(label)}, {_LABELS.get(kind, kind)}, %", ways[way]))
    parts = [
        "## Cut vocabulary",
        f"The same model as {span(slim['source'])}, without the tokens that text in {plain(', '.join(slim['langs']))} "
        "does not use; it was not trained further. What is said of training below is said of that model.",
        table(["", "before", "after"], rows, numbers=2),
        *_cosines(report.get("parity") or {}),
        f"Signature: {span(slim['signature'])}",
    ]
    if command := slim.get("command"):
        parts += ["To get it again:", fenced(shown_command(command), "bash")]
    return "\n\n".join(parts)


def _cosines(parity: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            _LABELS.get(kind, plain(kind)),
            f"{found['texts']:,}",
            f"{found['cosine_mean']:.5f}",
            f"{found['cosine_min']:.5f}",
            f"{100 * found['same_share']:.1f}",
        ]
        for kind, found in parity.items()
    ]
    heads = ["cosine to the old embedding", "texts", "mean", "least", "same (0.9999 or more), %"]
    return [table(heads, rows, numbers=4)] if rows else []


def _counts(change: Mapping[str, int]) -> list[str]:
    return [f"{change[when]:,}" for when in ("before", "after")]


def _percent(label: str, change: Mapping[str, float]) -> list[str]:
    return [label, *(f"{100 * change[when]:.1f}" for when in ("before", "after"))]
