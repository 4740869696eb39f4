"""Zero-shot transfer: an encoder is fine-tuned on English, and evaluated in every language.

- ``tasks``: XNLI, PAWS-X and POS: readers, labels, measures, the papers' fine-tuning, the rows of one run
- ``run``: :func:`transfer`: fine-tune through transformers' ``Trainer``, predict, report
"""

from st_xling.training.transfer.run import TransferReport, transfer
from st_xling.training.transfer.tasks import (
    LIKE,
    TASKS,
    FineTuning,
    TransferData,
    TransferTask,
    fine_tuning,
    load_transfer_data,
    run_f1,
)

__all__ = [
    "LIKE",
    "TASKS",
    "FineTuning",
    "TransferData",
    "TransferReport",
    "TransferTask",
    "fine_tuning",
    "load_transfer_data",
    "run_f1",
    "transfer",
]
