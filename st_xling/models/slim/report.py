"""What became of a model: the table, and the figures for its ``results.json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from st_xling._version import __version__
from st_xling.models.slim.parity import Parity
from st_xling.models.slim.slim_encoder import SlimReport

RELATION = "quantized"
"""Of the slim model to its source, out of the Hub's four words (adapter, finetune, merge, quantized): the same model in
less space; it was not trained.
"""


@dataclass(frozen=True)
class SlimFigures:
    """Everything there is to say of one cut.

    Attributes:
        source: Hub id, or name of the folder.
        fingerprint: Eight hex digits of the source: weights, settings and vocabulary.
        languages: That the text covered.
        texts: Texts counted, by language.
        report: What became of the vocabulary.
        signature: What the figures depend on besides the source.
        counted: Parity on a sample of the text that was counted; ``None`` of a plan.
        held_out: Parity on text that was not.
        command: Which gives the same again.
    """

    source: str
    fingerprint: str
    languages: list[str]
    texts: dict[str, int]
    report: SlimReport
    signature: str
    counted: Parity | None = None
    held_out: Parity | None = None
    command: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For ``results.json["slim"]`` and ``--json``."""
        parities = {"counted": self.counted, "held_out": self.held_out}
        sizes = (asdict(self.report.before), asdict(self.report.after))
        return {
            "source": self.source,
            "source_fingerprint": self.fingerprint,
            "relation": RELATION,
            "langs": self.languages,
            "report": {
                "texts": self.texts,
                "size": {name: {"before": sizes[0][name], "after": sizes[1][name]} for name in sizes[0]},
                "kept": self.report.reasons,
                "rare": self.report.rare,
                "parity": {name: found.as_dict() for name, found in parities.items() if found is not None},
            },
            "signature": self.signature,
            **({} if self.command is None else {"command": self.command}),
            "version": __version__,
        }

    def table(self) -> str:
        """Sizes, reasons and parity as plain text."""
        before, after = self.report.before, self.report.after
        rows = [
            ("", "before", "after", "left"),
            ("vocabulary", f"{before.tokens:,}", f"{after.tokens:,}", _left(before.tokens, after.tokens)),
            (
                "parameters",
                f"{before.parameters:,}",
                f"{after.parameters:,}",
                _left(before.parameters, after.parameters),
            ),
            ("weights and tokenizer, MB", _mb(before.bytes), _mb(after.bytes), _left(before.bytes, after.bytes)),
        ]
        for label, found in (("counted", self.counted), ("held out", self.held_out)):
            for name, figures in (found.retrieval if found else {}).items():
                source, _, target = name.partition("-")
                for key, way in (("forward", f"{source} to {target}"), ("back", f"{target} to {source}")):
                    was = figures[key]
                    rows.append(
                        (f"retrieval {way}, {label}, %", f"{100 * was.before:.1f}", f"{100 * was.after:.1f}", "")
                    )
            if found:
                length, unknown = found.tokens_per_text, found.unknown_share
                rows.append((f"tokens a text, {label}", f"{length.before:.2f}", f"{length.after:.2f}", ""))
                rows.append(
                    (f"unknown tokens, {label}, %", f"{100 * unknown.before:.3f}", f"{100 * unknown.after:.3f}", "")
                )
        lines = [
            _columns(rows),
            "",
            "kept: " + ", ".join(f"{count:,} {why}" for why, count in self.report.reasons.items()),
        ]
        if self.report.rare:
            lines.append(f"tokens of the text that came too seldom: {self.report.rare:,}")
        texts = ", ".join(f"{language} {count:,}" for language, count in self.texts.items())
        lines += [f"texts counted: {texts}", *self._cosines(), self.signature]
        return "\n".join(lines)

    def _cosines(self) -> list[str]:
        rows = [
            ("cosine to the old embedding", "texts", "mean", "least", "same, %", "same tokens, %", "largest difference")
        ]
        for label, found in (("counted text", self.counted), ("held-out text", self.held_out)):
            if found:
                shares = (f"{100 * found.same_share:.1f}", f"{100 * found.same_tokens_share:.1f}")
                cosines = (f"{found.cosine_mean:.5f}", f"{found.cosine_min:.5f}")
                rows.append((label, f"{found.texts:,}", *cosines, *shares, f"{found.largest_difference:.1e}"))
        return ["", _columns(rows), ""] if len(rows) > 1 else []


def _columns(rows: list[Any]) -> str:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            f"{cell:<{width}}" if not place else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    )


def _left(before: int, after: int) -> str:
    return f"{100 * after / before:.1f} %"


def _mb(count: int) -> str:
    return f"{count / 1e6:,.1f}"
