"""What a transfer run found: figures of each language, as the papers print them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from st_xling._version import __version__
from st_xling.training.transfer.tasks import FineTuning, TransferTask
from st_xling.training.transfer.transfer_data import TransferData, rows_sha8
from st_xling.utils.signature import sha8

SHOWN = {"accuracy": "accuracy", "f1": "F1"}


@dataclass(frozen=True)
class TransferReport:
    """Figures of one run.

    Attributes:
        task: What was judged by.
        languages: Language → measures in [0, 1] and counts, in the order of the table.
        trained: Languages that were trained on.
        signature: What the figures depend on besides the encoder.
        training: Figures of the fine-tuning: rows, steps, seconds.
    """

    task: TransferTask
    languages: dict[str, dict[str, Any]]
    trained: tuple[str, ...]
    signature: str
    training: dict[str, Any]

    def average(self, measure: str, *, zero_shot: bool = False) -> float | None:
        """Mean over all languages, as in the papers, or over those that were not trained on; ``None`` without any."""
        values = [
            figures[measure]
            for language, figures in self.languages.items()
            if not (zero_shot and language in self.trained)
        ]
        return fmean(values) if values else None

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        measures = self.task.measures
        return {
            "task": self.task.name,
            "languages": self.languages,
            "average": {measure: self.average(measure) for measure in measures},
            "zero_shot_average": {measure: self.average(measure, zero_shot=True) for measure in measures},
            "training": self.training,
            "signature": self.signature,
        }

    def table(self) -> str:
        """Languages as columns, then their average and that of the languages never trained on; percent."""
        head = [self.task.title, *self.languages, "avg", "zero-shot"]
        rows = [head]
        for measure in self.task.measures:
            values = [figures[measure] for figures in self.languages.values()]
            means = [self.average(measure), self.average(measure, zero_shot=True)]
            rows.append([SHOWN[measure], *("-" if value is None else f"{100 * value:.1f}" for value in values + means)])
        widths = [max(4 if column else 0, *(len(row[column]) for row in rows)) for column in range(len(head))]
        lines = []
        for row in rows:
            cells = [f"{row[0]:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:]))]
            lines.append("  ".join(cells))
        return "\n".join(lines)


def transfer_signature(data: TransferData, options: FineTuning, max_length: int) -> str:
    """What the figures of a run depend on besides the encoder."""
    length = f"steps:{options.max_steps}" if options.max_steps > 0 else f"epochs:{options.epochs:g}"
    parts = [
        "transfer",
        f"task:{data.task.name}",
        f"train:{','.join(f'{language}@{rows_sha8(rows)}' for language, rows in data.train.items())}",
        f"n:{sum(map(len, data.train.values()))}",
        length,
        f"batch:{options.batch_size}",
        f"lr:{options.learning_rate:g}/{options.schedule}",
        f"max_length:{max_length}",
        f"seed:{options.seed}",
        f"languages:{','.join(data.test)}",
        *(["words:fused"] if data.fused else []),
        *([f"f1:{data.task.f1}"] if "f1" in data.task.measures else []),
        *([] if data.hold_out is None else [f"hold_out:{data.hold_out:g}/{data.hold_out_seed}"]),
        f"data:{sha8([rows_sha8(rows) for rows in data.test.values()])}",
        f"st-xling:{__version__}",
    ]
    return "|".join(parts)
